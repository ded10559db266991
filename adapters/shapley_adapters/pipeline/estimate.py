"""The one road from a game to attributions: score, design, evaluate, solve."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm.auto import tqdm

from ..array_types import BoolArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import BudgetError, InvalidArgumentTypeError, warn_user
from ..estimators.exact import FullDesign, full_design, solve_full
from ..estimators.graph.linear_design import DesignMemoryError
from ..estimators.protocol import (
    Design,
    DesignRequest,
    Estimator,
    OnGraph,
    PlannedDesign,
    Solution,
    WholeDesign,
)
from ..games.evaluation import Evaluator, Request
from ..games.fingerprints import as_words
from ..games.game import FingerprintedGame, Game
from ..graphs.graphs_of_rows import graphs_of_rows
from ..graphs.player_graph import PlayerGraph
from ..threads.blas_threads import one_blas_thread
from .budgets import RowBudgets
from .design_cache import KeptDesigns
from .repeated_values import check_repeated_values, n_affordable
from .result import Estimate
from .rounds import OpenRows
from .row_groups import RowGroup, Scoring, group_rows, group_rows_on_graphs
from .settings import Settings

__all__ = ["Settings", "estimate", "kept_designs"]

_MOST_DESIGNS = 64
"""Designs of graphs kept from one chunk of rows to the next."""

kept_designs = KeptDesigns()
"""Designs on graphs, for calls to come."""

_CHUNK_BYTES = 2**28
"""Bound on the coalitions and values held at a time; a chunk has at least one row."""


_OWN_DESIGN = 3
"""How many times as much a row takes with a design of its own, for the equations it makes."""


def estimate(game: Game, estimator: Estimator[Any], settings: Settings) -> Estimate:
    """Estimate the Shapley values of all rows of `game`.

    A row's result does not depend on the other rows, on their order or on the batch size: all rows
    share one set of random draws or, with `independent_rows`, each has its own. Players that cannot
    change the value of a row are set aside first. Where the budget pays for all coalitions of the
    others, all are evaluated and the result is exact; estimators on graphs decide for themselves.

    In the end two values of one row are computed once more, if the budgets have left anything or
    none was named; a warning says where they differ, because the model is not deterministic.

    Raises
    ------
    InvalidArgumentError
        If the graphs do not fit the rows or their players.
    BudgetError
        If the budget is too small for the estimator.
    """
    run = _Run(game, estimator, settings, RowBudgets(estimator, settings))
    return run.estimate(game.active_players())


@dataclass
class _Run:
    game: Game
    estimator: Estimator[Any]
    settings: Settings
    budgets: RowBudgets
    _graphs: Sequence[PlayerGraph] = ()
    _own_words: npt.NDArray[np.uint32] | None = None
    _shared: dict[Hashable, PlannedDesign] = field(default_factory=dict)
    _drawn: set[Hashable] = field(default_factory=set)
    _missed: list[tuple[int, float]] = field(default_factory=list)
    _largest: float = 0.0
    _shortfalls: list[str] = field(default_factory=list)
    _unjoined: int = 0

    def estimate(self, active: BoolArray) -> Estimate:
        if self.settings.independent_rows:
            self._own_words = as_words(_fingerprints(self.game))
        if self.budgets.are_on_graph:
            n_rows, n_players = active.shape
            graph, name = self.settings.graph, self.settings.name
            self._graphs = graphs_of_rows(graph, n_rows, n_players, name)
            self.budgets.check_memory(int(active.sum(axis=1).max(initial=0)))
            self._refuse_budget_early(active)
        else:
            self._check_budgets(active)
        with self._progress_bar(active) as bar:
            evaluate = Evaluator(self.game, self.settings.batch_size, bar.update, is_timed=True)
            ends = self._end_values(evaluate)
            self._note_largest([ends])
            result = self._blank_result(ends)
            for rows in self._chunks(ends.shape[2]):
                self._estimate_chunk(self._groups(rows, active[rows], ends), evaluate, result)
            bar.total = bar.n  # designs may leave a few evaluations of the budget
        self._warn_of_missed_rows()
        self._warn_of_left_out_neighbours()
        return self._with_model_checked(result, ends, active)

    def _with_model_checked(
        self, result: Estimate, ends: ValueArray, active: BoolArray
    ) -> Estimate:
        """Warn of a model that is not deterministic; return what that took with the result."""
        if self.settings.is_for_training:
            return result
        n_checked = check_repeated_values(
            Evaluator(self.game, self.settings.batch_size),
            ends,
            active,
            n_affordable(self.budgets, active, result.evaluations),
            self._largest,
        )
        return replace(result, check_evaluations=n_checked)

    def _check_budgets(self, active: BoolArray) -> None:
        sizes = [int(n_active) for n_active in np.unique(active.sum(axis=1))]
        for n_players in sizes:
            self.budgets.check(n_players)
        for n_players in sizes[::-1]:
            if self.budgets.warn_of_small(n_players):
                break

    def _groups(self, rows: IntArray, active: BoolArray, ends: ValueArray) -> list[RowGroup]:
        if self.budgets.are_on_graph:
            if len(self._shared) > _MOST_DESIGNS:
                self._shared.clear()
            graphs = [self._graphs[row] for row in rows]
            groups = group_rows_on_graphs(rows, active, ends[rows], graphs)
        else:
            groups = group_rows(rows, active, ends[rows])
        if self._own_words is None:
            return groups
        return [replace(group, own_words=self._own_words[group.rows]) for group in groups]

    @one_blas_thread()
    def _refuse_budget_early(self, active: BoolArray) -> None:
        """Refuse a budget before anything is evaluated.

        The row with most active players is, if not always, the most expensive one.
        """
        widest = np.argmax(active.sum(axis=1), keepdims=True)
        nothing = np.zeros((len(active), 2, 1))
        for group in self._groups(widest, active[widest], nothing):
            self._design(group)

    def _estimate_chunk(
        self, groups: list[RowGroup], evaluate: Evaluator, result: Estimate
    ) -> None:
        scored = self._scored(groups, evaluate)
        with one_blas_thread():  # once for all rows, also where each has a design of its own
            open_rows = [rows for group in scored for rows in self._with_designs(group)]
        while open_rows:
            # All groups in one go, so that batches are full however few rows a group has.
            found = evaluate([rows.request() for rows in open_rows])
            self._note_largest(found)
            with one_blas_thread():
                open_rows = [
                    left
                    for rows, values in zip(open_rows, found, strict=True)
                    for left in self._left_open(rows.with_values(values), result)
                ]

    def _with_designs(self, group: RowGroup) -> list[OpenRows]:
        """Open the rows of a group: all with one design, or each with its own where it is drawn."""
        if self.estimator.is_drawn_by_labels and group.scores is None:
            group = self._relabelled(group)
        if group.own_words is None:
            return [self._opened(group, self._design(group))]
        first, *others = group.one_by_one()
        planned = self._design(first)
        if isinstance(planned.design, WholeDesign):
            return [self._opened(group, planned)]
        opened = self._opened(first, planned)
        return [opened, *(self._opened(other, self._design(other)) for other in others)]

    def _relabelled(self, group: RowGroup) -> RowGroup:
        """Return the group with its players in orders of the rows' own, unless all is evaluated."""
        if group.own_words is None or self.budgets.pay_for_all_at_once(group.n_players):
            return group
        return group.relabelled(self.settings.seed)

    def _note_largest(self, found: Sequence[ValueArray]) -> None:
        """Remember the largest value, regardless of signs."""
        for values in found:
            highest, lowest = values.max(initial=0.0), values.min(initial=0.0)
            self._largest = max(self._largest, highest, -lowest)

    def _opened(self, group: RowGroup, planned: PlannedDesign) -> OpenRows:
        design = planned.design
        is_whole = self.settings.tolerance is None or isinstance(design, WholeDesign)
        limit = (
            int(design.table.counts.max()) if is_whole else self.budgets.planned(group.n_players)
        )
        return OpenRows(group, design, group.known_values, limit, planned.shortfall)

    def _left_open(self, rows: OpenRows, result: Estimate) -> list[OpenRows]:
        """Record the rows that are done, and return the others with their next round."""
        tolerance = self.settings.tolerance
        solution = self._solve(rows)
        everyone = np.arange(len(rows.group.rows))
        is_met = np.ones(len(everyone), dtype=bool)
        if tolerance is not None:
            is_met = tolerance.is_met(solution)
        n_players = rows.group.n_players
        can_be_full = self.budgets.pay_for_all(n_players)
        if rows.is_last_round and (is_met.all() or not can_be_full):
            self._record(rows, everyone, solution, result)
            if tolerance is not None and not is_met.all():
                self._missed.append((int((~is_met).sum()), tolerance.largest_excess(solution)))
            return []
        self._record(rows, everyone[is_met], solution, result)
        if is_met.all():
            return []
        left = rows.of_rows(everyone[~is_met])
        return left.one_by_one() if rows.is_last_round else [left.next_round()]

    def _scored(self, groups: list[RowGroup], evaluate: Evaluator) -> list[RowGroup]:
        """Score the rows for which cooperators have to be chosen."""
        source = self.estimator.score_source
        if source is None:
            return groups
        scored: list[RowGroup] = []
        for group in groups:
            if self.budgets.pay_for_all_at_once(group.n_players):
                scored.append(group)
                continue
            needed = self.estimator.minimum_budget(group.n_players, self.settings.needs_errors)
            budget = self.budgets.planned(group.n_players)
            find = Scoring(source, budget, needed, self.settings.seed)
            scored += find(group, evaluate)
        return scored

    def _design(self, group: RowGroup) -> PlannedDesign:
        """Return the design of a group, or of its only row; made once where rows share it."""
        n_players = group.n_players
        key: Hashable = n_players
        if group.graph is not None:
            key = (group.graph, group.players[0].tobytes())
        if key in self._shared:
            return self._shared[key]
        if self.budgets.pay_for_all_at_once(n_players):
            planned = PlannedDesign(full_design(n_players, group.known))
        else:
            planned = self._made(self._design_request(group, must_draw=key in self._drawn))
        is_whole = isinstance(planned.design, WholeDesign)
        if group.scores is None and (group.own_words is None or is_whole):
            self._shared[key] = planned
        else:
            self._drawn.add(key)
        return planned

    def _made(self, request: DesignRequest) -> PlannedDesign:
        try:
            design: Design = kept_designs.design(
                self.estimator,
                request,
                lambda: self.estimator.design(request),
                keeps_drawn=self._own_words is None,
            )
        except DesignMemoryError as error:
            raise self.budgets.memory_error(request.n_players) from error
        except BudgetError as error:
            name, budget = self.settings.budget_name, self.settings.budget
            spoken = f"{name}={budget} is too small" if budget else f"{name} has to be given"
            raise BudgetError(f"{spoken}: {self.settings.name} {error}") from error
        shortfall = None
        if isinstance(self.estimator, OnGraph):
            shortfall = self.estimator.shortfall(design, request)
        return PlannedDesign(design, shortfall)

    def _design_request(self, group: RowGroup, must_draw: bool) -> DesignRequest:
        n_players = group.n_players
        planned, budget = self.budgets.planned(n_players), self.budgets.of(n_players)
        if self.budgets.pay_for_all(n_players):
            # Until a tolerance is met; beyond half of all coalitions, all are evaluated.
            budget = max(planned, 2 ** (n_players - 1))
        return DesignRequest(
            n_players=n_players,
            budget=min(budget, 2**n_players),
            planned=min(planned, 2**n_players),
            rng=group.generator(self.settings.seed),
            known=group.known,
            scores=group.scores,
            informed=None if group.sources is None else ~np.isin(group.sources, ("", "random")),
            place=group.place,
            budget_is_default=self.settings.budget is None,
            needs_errors=self.settings.needs_errors,
            must_draw=must_draw,
        )

    def _solve(self, rows: OpenRows) -> Solution:
        if isinstance(rows.design, FullDesign):
            return solve_full(rows.design, rows.values)
        design = rows.design if rows.is_last_round else rows.design.within(rows.limit)
        solution: Solution = self.estimator.solve(design, rows.values)
        return solution

    def _record(
        self, open_rows: OpenRows, places: IntArray, solution: Solution, result: Estimate
    ) -> None:
        """Write down what was found for some of the rows, given by their places."""
        group = open_rows.group.of_rows(places)
        rows = group.rows
        result.values[rows[:, None], group.recipients] = solution.values[places]
        errors = solution.standard_errors
        result.standard_errors[rows[:, None], group.recipients] = errors[places]
        freedom = np.broadcast_to(solution.degrees_of_freedom, errors.shape)
        result.degrees_of_freedom[rows[:, None], group.recipients] = freedom[places]
        result.orders[rows] = getattr(open_rows.design, "order", -1)
        self._note_shortfall(open_rows, len(rows))
        evaluations = open_rows.evaluations
        result.evaluations[rows] = evaluations if len(evaluations) == 1 else evaluations[places]
        if group.sources is not None and group.backward_passes is not None:
            result.cooperators[rows] = group.sources
            result.backward_passes[rows] = group.backward_passes

    def _warn_of_missed_rows(self) -> None:
        if self._missed:
            n_rows = sum(count for count, _ in self._missed)
            worst = max(excess for _, excess in self._missed)
            name, budget = self.settings.budget_name, self.settings.budget or "auto"
            warn_user(
                f"{n_rows} of {self.game.n_rows} rows did not reach the tolerance within "
                f"{name}={budget}: standard errors are up to {worst:.3g} times as large. Raise "
                f"{name} or the tolerance."
            )

    def _note_shortfall(self, open_rows: OpenRows, n_rows: int) -> None:
        """Count the rows whose players have no neighbours, or lose them for want of budget."""
        place = open_rows.group.place
        if place is None or open_rows.group.n_players < 2:
            return
        if not place.graph.degrees[place.players].any():
            self._unjoined += n_rows
        elif open_rows.shortfall is not None:
            self._shortfalls += [open_rows.shortfall] * n_rows

    def _warn_of_left_out_neighbours(self) -> None:
        name, n_rows = self.settings.name, self.game.n_rows
        if self._unjoined:
            warn_user(
                f"graph joins no two players in {self._unjoined} of {n_rows} rows: {name} takes "
                "each player by itself, as if none of them interacted. Check graph=."
            )
        if self._shortfalls:
            budget = f"{self.settings.budget_name}={self.settings.budget or 'auto'}"
            warn_user(
                f"{name} takes each player by itself in {len(self._shortfalls)} of {n_rows} rows, "
                f"and leaves out what players do together: {self._shortfalls[0]}. Raise {budget}."
            )

    def _progress_bar(self, active: BoolArray) -> tqdm[Any]:
        delay = self.settings.progress_delay
        sizes, n_rows = np.unique(active.sum(axis=1), return_counts=True)
        each = [min(2 ** int(n), self.budgets.of(int(n))) for n in sizes]
        return tqdm(
            total=None if self.budgets.are_on_graph else int(np.dot(each, n_rows)),
            desc=self.settings.name,
            unit=" evaluations",
            disable=delay is None,
            delay=delay or 0.0,
        )

    def _end_values(self, evaluate: Evaluator) -> ValueArray:
        """Evaluate the empty coalition and that of all players for each row, (R, 2, K)."""
        table = CoalitionTable(end_points(self.game.n_players)[None], np.array([2]))
        return evaluate([Request(np.arange(self.game.n_rows), table)])[0]

    def _blank_result(self, ends: ValueArray) -> Estimate:
        shape = (self.game.n_rows, self.game.n_players, ends.shape[2])
        return Estimate(
            values=np.zeros(shape),
            standard_errors=np.zeros(shape),
            degrees_of_freedom=np.full(shape, np.inf),
            empty_values=ends[:, 0],
            grand_values=ends[:, 1],
            evaluations=np.full(self.game.n_rows, 2),
            backward_passes=np.zeros(self.game.n_rows, dtype=np.intp),
            cooperators=np.full(self.game.n_rows, "", dtype="U10"),
            orders=np.full(self.game.n_rows, -1, dtype=np.intp),
            seed=self.settings.seed,
            method=type(self.estimator).__name__,
        )

    def _chunks(self, n_outputs: int) -> Iterator[IntArray]:
        n_players = self.game.n_players
        row_bytes = self.budgets.of(n_players) * (8 * n_players + 24 * n_outputs)
        if self.estimator.score_source is not None:
            row_bytes += 24 * n_players**2
        if self.settings.independent_rows:
            row_bytes *= _OWN_DESIGN
        size = max(1, _CHUNK_BYTES // row_bytes)
        for start in range(0, self.game.n_rows, size):
            yield np.arange(start, min(start + size, self.game.n_rows))


def _fingerprints(game: Game) -> list[bytes]:
    if not isinstance(game, FingerprintedGame):
        raise InvalidArgumentTypeError(
            "independent_rows=True needs a game with row_fingerprints(), which "
            f"{type(game).__name__} lacks. Leave independent_rows=False."
        )
    return game.row_fingerprints()
