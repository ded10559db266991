"""The designs of groups of rows, each made once where rows share it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from ..errors import BudgetError
from ..estimators.exact import full_design
from ..estimators.graph.linear_design import DesignMemoryError
from ..estimators.protocol import Design, DesignRequest, Estimator, GraphView
from .budgets import RowBudget, memory_error
from .row_groups import RowGroup
from .settings import Settings

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


_MOST_SHARED = 64
"""The most designs that one run keeps for its later rows."""

design_cache = DesignCache()
"""Designs on graphs, for later calls."""


@dataclass(frozen=True)
class GroupDesign:
    """The design of a group of rows.

    Attributes
    ----------
    design : Design
        The design.
    shortfall : str, optional
        Why it leaves out all neighbours in the graph, if it does.
    """

    design: Design
    shortfall: str | None = None


@dataclass
class GroupDesigns:
    """Makes the designs of one run.

    Attributes
    ----------
    estimator : Estimator
        The estimator that chooses the coalitions where not all of them are evaluated.
    settings : Settings
        The settings of the run.
    budgets : dict of int to RowBudget
        The budget for each number of active players.
    """

    estimator: Estimator[Any]
    settings: Settings
    budgets: Mapping[int, RowBudget]
    _shared: dict[Hashable, GroupDesign] = field(default_factory=dict, init=False)
    _drawn_keys: set[Hashable] = field(default_factory=set, init=False)

    def copy(self) -> GroupDesigns:
        """Return a copy with the same designs, which makes the next ones by itself."""
        twin = GroupDesigns(self.estimator, self.settings, self.budgets)
        twin._shared.update(self._shared)
        return twin

    def design_for(self, group: RowGroup) -> GroupDesign:
        """Return the design of a group, or of its only row."""
        key: Hashable = group.n_players
        if group.graph is not None:
            key = (group.graph, group.players[0].tobytes())
        if key in self._shared:
            return self._shared[key]
        group_design = self._make(group, must_draw=key in self._drawn_keys)
        if group.scores is None and (group.own_words is None or group_design.design.is_whole):
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            self._shared[key] = group_design
        else:
            self._drawn_keys.add(key)
        return group_design

    def _make(self, group: RowGroup, must_draw: bool) -> GroupDesign:
        if self.budgets[group.n_players].enumerates_now:
            return GroupDesign(full_design(group.n_players, group.known))
        request = self._request(group, must_draw)
        try:
            if not self.estimator.needs_graph:
                return GroupDesign(self.estimator.design(request))
            keeps_drawn = group.own_words is None
            design = design_cache.design(self.estimator, request, keeps_drawn)
        except DesignMemoryError as error:
            raise memory_error(group.n_players, self.settings) from error
        except BudgetError as error:
            name, budget = self.settings.budget_name, self.settings.budget
            context = f"{name}={budget} is too small" if budget else f"{name} has to be given"
            raise BudgetError(f"{context}: {self.settings.name} {error}") from error
        return GroupDesign(design, self.estimator.shortfall(design, request))

    def _request(self, group: RowGroup, must_draw: bool) -> DesignRequest:
        n_players, budget = group.n_players, self.budgets[group.n_players]
        limit = budget.limit
        if budget.can_enumerate:
            # Until a tolerance is met; beyond half of all coalitions, all are evaluated.
            limit = max(budget.first_check, 2 ** (n_players - 1))
        return DesignRequest(
            n_players=n_players,
            budget=min(limit, 2**n_players),
            planned=min(budget.first_check, 2**n_players),
            rng=group.generator(self.settings.seed),
            known=group.known,
            scores=group.scores,
            has_scores=None if group.sources is None else ~np.isin(group.sources, ("", "random")),
            graph_view=None if group.graph is None else GraphView(group.graph, group.players[0]),
            budget_is_default=self.settings.budget is None,
            needs_errors=self.settings.needs_errors,
            must_draw=must_draw,
        )
