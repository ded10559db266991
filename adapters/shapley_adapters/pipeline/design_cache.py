"""Designs on graphs, kept from one call to the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

from ..estimators.protocol import Design, DesignRequest, Estimator, WholeDesign

_MOST_DESIGNS = 16
_MOST_BYTES = 2**26
"""Bounds on what is kept: the number of designs, and the bytes of their coalitions in all. What
belongs to a design besides takes about as much again."""


class KeptDesigns:
    """The designs made last, for graphs and options that come again.

    Images of one size, or texts of one length, have the same graph; a design takes a tenth to a
    fifth of the time of a model's evaluations, so that calls with one example each should not make
    it again and again. A design that is drawn is kept for requests with the same stream of random
    numbers.
    """

    def __init__(self, most_designs: int = _MOST_DESIGNS, most_bytes: int = _MOST_BYTES) -> None:
        self.most_designs = most_designs
        self.most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, Design] = OrderedDict()
        self._lock = Lock()  # explainers may run in threads

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._kept)

    @property
    def n_bytes(self) -> int:
        """How much their coalitions take."""
        return sum(map(_n_bytes, self._kept.values()))

    def design(
        self,
        estimator: Estimator[Any],
        request: DesignRequest,
        make: Callable[[], Design],
        keeps_drawn: bool = True,
    ) -> Design:
        """Return the estimator's design for a request: as it was kept, or made by `make`.

        Without `keeps_drawn`, designs that are drawn are not kept. Rows with draws of their own
        would push all others out.
        """
        if request.place is None:
            return make()
        question, stream = _question(estimator, request), repr(request.rng.bit_generator.state)
        kept = self._found(question) or self._found((question, stream))
        if kept is not None:
            return kept
        design = make()
        is_drawn = not isinstance(design, WholeDesign)
        if keeps_drawn or not is_drawn:
            self._keep((question, stream) if is_drawn else question, design)
        return design

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._kept.clear()

    def _found(self, key: Hashable) -> Design | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: Hashable, design: Design) -> None:
        if _n_bytes(design) > self.most_bytes:
            return
        with self._lock:
            self._kept[key] = design
            while len(self._kept) > self.most_designs or self.n_bytes > self.most_bytes:
                self._kept.popitem(last=False)


def _n_bytes(design: Design) -> int:
    return int(design.table.coalitions.nbytes)


def _question(estimator: Estimator[Any], request: DesignRequest) -> Hashable:
    """Return all that a design depends on but for its draws."""
    place = request.on_graph
    return (
        estimator,
        place.graph,
        place.players.tobytes(),
        request.known.tobytes(),
        request.budget,
        request.planned,
        request.budget_is_default,
        request.needs_errors,
    )
