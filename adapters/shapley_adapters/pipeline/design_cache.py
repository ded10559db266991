"""A cache of designs on graphs, from one call to the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any

from ..estimators.protocol import Design, DesignRequest, Estimator

_MOST_DESIGNS = 16
_MOST_BYTES = 2**26
"""Bounds on the number of designs, and on the bytes of all their coalitions. The other arrays of a
design take about as much memory again."""


class DesignCache:
    """The most recent designs on graphs, for requests with the same graph and options.

    Images of one size, or texts of one length, have the same graph. A design takes a tenth to a
    fifth of the time of a model's evaluations, so that many calls with one example each should not
    make it again in each call. A drawn design is reused only for requests with the same stream of
    random numbers.
    """

    def __init__(self, most_designs: int = _MOST_DESIGNS, most_bytes: int = _MOST_BYTES) -> None:
        self.most_designs = most_designs
        self.most_bytes = most_bytes
        self._designs: OrderedDict[Hashable, Design] = OrderedDict()
        self._lock = Lock()  # explainers may run in threads

    def __len__(self) -> int:
        """Return the number of designs."""
        return len(self._designs)

    @property
    def n_bytes(self) -> int:
        """The bytes of all their coalitions."""
        return sum(map(_n_bytes, self._designs.values()))

    def design(
        self,
        estimator: Estimator[Any],
        request: DesignRequest,
        keeps_drawn: bool = True,
    ) -> Design:
        """Return the estimator's design for a request, from the cache if it is there.

        Without `keeps_drawn`, drawn designs do not enter the cache: those of rows with random draws
        of their own would replace all others.
        """
        key = _key(estimator, request)
        key_if_drawn = (key, repr(request.rng.bit_generator.state))
        cached = self._get(key) or self._get(key_if_drawn)
        if cached is not None:
            return cached
        design: Design = estimator.design(request)
        if design.is_whole:
            self._put(key, design)
        elif keeps_drawn:
            self._put(key_if_drawn, design)
        return design

    def clear(self) -> None:
        """Remove all designs."""
        with self._lock:
            self._designs.clear()

    def _get(self, key: Hashable) -> Design | None:
        with self._lock:
            if key in self._designs:
                self._designs.move_to_end(key)
            return self._designs.get(key)

    def _put(self, key: Hashable, design: Design) -> None:
        if _n_bytes(design) > self.most_bytes:
            return
        with self._lock:
            self._designs[key] = design
            while len(self._designs) > self.most_designs or self.n_bytes > self.most_bytes:
                self._designs.popitem(last=False)


def _n_bytes(design: Design) -> int:
    return int(design.table.coalitions.nbytes)


def _key(estimator: Estimator[Any], request: DesignRequest) -> Hashable:
    """Return all that a design depends on, without the random stream."""
    view = request.required_graph_view
    return (
        estimator,
        view.graph,
        view.players.tobytes(),
        request.known.tobytes(),
        request.budget,
        request.planned,
        request.budget_is_default,
        request.needs_errors,
    )
