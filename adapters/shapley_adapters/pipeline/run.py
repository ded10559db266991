"""One run: rows are grouped, scored, given a design, evaluated round by round, and solved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points, first_occurrences, pack
from ..conditional.refits import errors_of_fits
from ..errors import InvalidArgumentError, first_row
from ..estimators.exact import FullDesign, full_design
from ..estimators.protocol import Design, Estimator, Passes, Solution
from ..games.evaluation import Evaluator, Request
from ..games.fingerprints import as_words
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..graphs.reading import Structure, graphs_of_rows
from ..workers import one_blas_thread
from .designs import GROWTH, GroupDesigns, PendingRows, RowGroup, scored
from .passes import passes_at_ends, refuse_what_needs_values, usable, with_flat_players, with_passes
from .repetition import Repetition, errors_of_repeated
from .result import Estimate, add_fit_errors, blank_estimate
from .run_warnings import RunWarnings
from .settings import MANY_ENTRIES, RowBudget, Settings, checked_budgets, refuse_long_rows
from .solutions import check_interactions, record_interactions, scale_exponents, solve_near_one

_BLOCK_BYTES = 2**28
"""Bound on the coalitions and values in memory at a time; a block has at least one row."""

_OWN_DESIGN = 3
"""The memory of a row with a design of its own, for its equations, as a multiple of others'."""

_NO_ENDS = np.zeros((1, 2, 1))
"""Values of no and of all players that no design depends on."""

_Record: TypeAlias = Callable[[PendingRows, IntArray | slice, Solution], None]
"""Writes the solution of some rows, given by their indices, into the result."""


class CallBudget(NamedTuple):
    """The most that a call takes: evaluations, and rows of the model's input, of each row, (R,)."""

    evaluations: IntArray
    model_rows: IntArray


@dataclass
class Run:
    """The parts of a run that all its rows share; `DrawnRun` has means of draws as values.

    Attributes
    ----------
    game : Game
        The games of all rows.
    estimator : Estimator
        The estimator.
    settings : Settings
        The settings of the run.
    active : array, (R, M)
        The players that can change the value of each row.
    evaluated_game : Game
        The game that is evaluated.
    n_draws : int
        How many rows of it a row of the game has.
    n_active : array, (R,)
        How many players can change the value of each row.
    budgets : dict of int to RowBudget
        The budget for each number of active players.
    traced_limit : int, optional
        The most evaluations of a row, if the run is traced.
    blank_estimate : callable
        Returns a result without attributions, for the values of no and of all players, (R, 2, K).
    warnings : RunWarnings
        The warnings that are given at the end.
    largest : float
        The largest value so far, regardless of signs.
    memory : ValueMemory, optional
        Values that are known already.
    noise : Repetition
        What values tell that were evaluated twice.
    asks_gradients : array, (R,)
        Whether gradients of the model are wanted for a row.
    end_passes : Passes, optional
        Those at the values of all players and of none; of rows that are not drawn, any numbers.
    has_gradients : array, (R,)
        Whether the gradients of a row are of use.
    are_flat : array, (R, M)
        The players who have no slope at the values of all players and of none.
    why_values_alone : str
        Why gradients that are wanted are not used.
    """

    has_draws: ClassVar[bool] = False
    """Whether values are means of draws."""

    n_arrays = 1
    """Arrays of the values of all coalitions that are in memory at a time."""

    game: Game
    estimator: Estimator[Any]
    settings: Settings
    active: BoolArray
    evaluated_game: Game = field(init=False)
    n_draws: int = field(default=1, init=False)
    n_active: IntArray = field(init=False)
    budgets: dict[int, RowBudget] = field(default_factory=dict, init=False)
    traced_limit: int | None = field(default=None, init=False)
    blank_estimate: Callable[[ValueArray], Estimate] = field(init=False)
    warnings: RunWarnings = field(default_factory=RunWarnings, init=False)
    largest: float = 0.0
    memory: ValueMemory | None = None
    noise: Repetition = field(default_factory=Repetition)
    asks_gradients: BoolArray = field(init=False)
    end_passes: Passes | None = field(default=None, init=False)
    has_gradients: BoolArray = field(init=False)
    are_flat: BoolArray = field(init=False)
    why_values_alone: str = field(default="", init=False)
    _graphs: Sequence[Structure] = ()
    own_words: npt.NDArray[np.uint32] | None = None

    def __post_init__(self) -> None:
        """Check the arguments before anything is evaluated."""
        settings, self.evaluated_game = self.settings, self.game
        self.estimator = usable(self.game, self.estimator, settings)
        self.n_active = self.active.sum(axis=1)
        self.has_gradients = np.zeros(len(self.active), dtype=bool)
        self.are_flat = np.zeros_like(self.active)
        if settings.independent_rows:
            self.own_words = as_words(self.game.row_fingerprints())
        has_graph = self.estimator.needs_graph or settings.graph is not None
        if has_graph or self.estimator.score_source is not None:
            self._check_arguments_of_a_part()
        if has_graph:
            if not (self.estimator.needs_graph or self.estimator.can_use_graph):
                raise InvalidArgumentError(
                    f"graph is of no use to {settings.name} with these options: leave it out."
                )
            n_rows, n_players = self.active.shape
            self._graphs = graphs_of_rows(settings.graph, n_rows, n_players, settings.name)
        self.budgets = self.budgets or checked_budgets(self.n_active, self.estimator, settings)
        asks = {
            size: size > 0
            and not budget.enumerates_now
            and self.estimator.uses_gradients(size, budget.limit)
            for size, budget in self.budgets.items()
        }
        self.asks_gradients = np.array([asks[size] for size in self.n_active.tolist()])
        if self.asks_gradients.any():
            refuse_what_needs_values(self.game, settings)
        widest = self.budgets[max(self.budgets)]
        if widest.limit * widest.n_players > MANY_ENTRIES:
            refuse_long_rows(widest, self.estimator, settings)
        if settings.trace:
            self.traced_limit = int(self.most_evaluations().max(initial=0))
        if settings.interactions is not None:
            check_interactions(self.estimator, settings, self.budgets.values(), self.active.shape)
        self.blank_estimate = partial(
            blank_estimate,
            n_players=self.game.n_players,
            seed=settings.seed,
            method=type(self.estimator).__name__,
            request=settings.interactions,
            traced_limit=self.traced_limit,
            has_unions=self.estimator.has_unions,
        )
        self.designs = GroupDesigns(self.estimator, settings, self.budgets)
        if self.estimator.needs_graph:  # the row with most players is mostly the most expensive one
            with one_blas_thread():
                for group in self.groups(np.argmax(self.n_active, keepdims=True), _NO_ENDS):
                    self.designs.design_for(group)

    def means_of_ends(self, evaluated: ValueArray) -> ValueArray:
        """Return the values of no and of all players, (R, 2, K), as `evaluated_ends` has them."""
        return evaluated

    def _check_arguments_of_a_part(self) -> None:
        """Refuse arguments with an entry per row: each part would take those of the first rows."""
        if first_row() is None:
            return
        scores = self.estimator.score_source
        if isinstance(scores, np.ndarray) and scores.ndim == 3:
            raise InvalidArgumentError(
                f"cooperators has shape {scores.shape}, with scores for each row. Streams and "
                "batches explain a part of the rows at a time. Pass scores (M, M) for all rows, "
                "or call the explainer with all rows."
            )
        if not isinstance(self.settings.graph, Structure | None):
            raise InvalidArgumentError(
                "graph is a list with a graph for each row. Streams and batches explain a part of "
                "the rows at a time: pass one graph for all rows, or call the explainer with all "
                "rows."
            )

    def evaluated_ends(self, evaluate: Evaluator) -> tuple[ValueArray, ValueArray]:
        """Return the values of no and of all players, as they are evaluated, and (R, 2, K).

        With gradients of the rows for which they are wanted.
        """
        rows = np.arange(self.game.n_rows)
        table = CoalitionTable(end_points(self.game.n_players)[None], np.array([2]))
        asks = self.asks_gradients
        if not asks.any():
            (ends,) = evaluate([Request(rows, table)])
            return ends, ends
        of_asked, are_usable, are_flat, obstacle = passes_at_ends(self, rows[asks], evaluate)
        passes = of_asked.subset_rows(np.cumsum(asks) - 1)
        ends = passes.values[:, ::-1].copy()
        if not asks.all():
            (ends[~asks],) = evaluate([Request(rows[~asks], table)])
        if obstacle is None:
            self.end_passes, self.has_gradients[asks] = passes, are_usable
            self.are_flat[asks] = are_flat
        else:
            self.why_values_alone = obstacle
        return ends, ends

    def for_worker(self) -> Run:
        """Return a copy for another thread: it shares the games, and counts by itself."""
        twin = copy.copy(self)
        twin.warnings, twin.largest = RunWarnings(), 0.0
        twin.noise = replace(self.noise, n_evaluations=0)
        return twin

    def most_evaluations(self) -> IntArray:
        """Return the largest number of evaluations of each row, (R,), without those of graphs."""
        sizes, index = np.unique(self.n_active, return_inverse=True)
        limits = []
        for size in sizes.tolist():
            budget, n_all = self.budgets[size], 2**size
            if self.asks_gradients[self.n_active == size].any():
                n_all += budget.first_limit  # passes of a row that a tolerance lets be enumerated
            limits.append(min(n_all, budget.limit))
        return np.array(limits, dtype=np.intp)[index]

    @one_blas_thread()
    def budget(self) -> CallBudget:
        """Return the most that the run takes; on graphs, their designs say how many evaluations."""
        evaluations = np.maximum(self.most_evaluations(), 2)  # no player has any effect
        if self.estimator.needs_graph:
            no_values = np.zeros((self.game.n_rows, 2, 1))
            for group in self.groups(np.arange(self.game.n_rows), no_values):
                design = self.designs.design_for(group)
                if not design.n_before_choice:
                    evaluations[group.rows] = design.table.counts
        return CallBudget(evaluations, evaluations * self.game.n_backgrounds)

    def estimate_rows(
        self, start: int, stop: int, ends: ValueArray, evaluate: Evaluator, result: Estimate
    ) -> None:
        """Estimate the rows from `start` to `stop`, and write their attributions into the result.

        They are estimated in blocks whose coalitions fit into memory. `ends` and `result` are those
        of the rows from `start` on.
        """
        n_players = self.active.shape[1]
        n_evaluations = max(budget.limit for budget in self.budgets.values())
        row_bytes = n_evaluations * (8 * n_players + 24 * ends.shape[2])
        if self.estimator.score_source is not None:
            row_bytes += 24 * n_players**2
        if self.settings.independent_rows:
            row_bytes *= _OWN_DESIGN
        size = int(max(1, _BLOCK_BYTES // (row_bytes * self.n_arrays)))
        record = partial(self.record, result, start)
        for first in range(start, stop, size):
            rows = np.arange(first, min(first + size, stop))
            groups = self.groups(rows, ends[rows - start], evaluate)
            if self.estimator.score_source is not None:
                groups = [part for group in groups for part in scored(self, group, evaluate)]
            # BLAS is limited once for all rows, also where each has a design.
            with one_blas_thread():
                pending = [of_group for group in groups for of_group in self.start(group)]
            if self.end_passes is not None:
                passes = self.end_passes
                pending = [
                    part for rows in pending for part in with_passes(self, rows, passes, evaluate)
                ]
            while pending:
                # All groups in one go, so that batches are full although a group has few rows.
                values = evaluate([of_group.request() for of_group in pending])
                self.largest = max(self.largest, *(np.abs(new).max(initial=0.0) for new in values))
                pending = [
                    replace(rows, values=np.concatenate([rows.values, new], axis=1))
                    if new.shape[1]  # all of its values may be known
                    else rows
                    for rows, new in zip(pending, values, strict=True)
                ]
                if self.noise.may_continue:
                    pending = self.noise.checked(pending, evaluate, self.largest)
                with one_blas_thread():
                    pending = [
                        unfinished
                        for of_group in pending
                        for unfinished in self._finish_round(of_group, record)
                    ]

    def groups(
        self, rows: IntArray, ends: ValueArray, evaluate: Evaluator | None = None
    ) -> list[RowGroup]:
        """Group rows by their number of active players; those without any are left out.

        Estimators on graphs have groups of the same graph and the same players. `ends` are the
        values of no and of all players of these rows. With an evaluator, groups also have what is
        evaluated before their designs.
        """
        active, on_graphs = self.active[rows], self.estimator.needs_graph
        indices_of: dict[Any, list[int]] = {}
        for index in np.flatnonzero(self.n_active[rows]).tolist():
            row = rows[index]
            are_flat = self.are_flat[row, active[index]].tobytes()
            key: Any = int(self.n_active[row]), bool(self.has_gradients[row]), are_flat
            if on_graphs:
                key = self._graphs[row], active[index].tobytes()
            indices_of.setdefault(key, []).append(index)
        groups = []
        for key in indices_of if on_graphs else sorted(indices_of):
            of_group = indices_of[key]
            n_players = int(self.n_active[rows[of_group[0]]])
            group = RowGroup(
                rows[of_group],
                np.nonzero(active[of_group])[1].reshape(-1, n_players),
                n_players,
                active.shape[1],
                known=end_points(n_players),
                known_values=ends[of_group],
                graph=key[0] if on_graphs else None,
                has_gradients=bool(self.has_gradients[rows[of_group[0]]]),
            )
            if self.end_passes is not None and self.asks_gradients[rows[of_group[0]]]:
                group = group.with_passes(2)
            if evaluate is None or not self.are_flat.any():
                groups.append(group)
            else:
                groups += with_flat_players(self, group, evaluate)
        if self._graphs and not on_graphs:
            groups = [group.on_graphs(self._graphs) for group in groups]
        if self.own_words is None:
            return groups
        return [replace(group, own_words=self.own_words[group.rows]) for group in groups]

    def knowing(
        self, group: RowGroup, coalitions: CoalitionArray, evaluate: Evaluator
    ) -> tuple[RowGroup, ValueArray]:
        """Return the group with more coalitions evaluated, and the values of all it then knows.

        Where values are means of draws, the group has the draws.
        """
        known = np.concatenate([group.known, coalitions])
        is_first = first_occurrences(pack(known)[None])[0] == np.arange(len(known))
        known = known[is_first]
        table = CoalitionTable(known[None], np.array([len(known)]))
        pending = self.pending(group, Design(table), group.known_values)
        (new,) = evaluate([pending.request()])
        known_values = np.concatenate([group.known_values, new], axis=1)
        group = replace(group, known=known, known_values=known_values)
        return group, self.with_means(replace(pending, values=group.known_values)).values

    def start(self, group: RowGroup) -> list[PendingRows]:
        """Return the rows of a group with one design for all, or with a design for each row."""
        groups = [group]
        if group.own_words is not None:
            is_drawn = not self.budgets[group.n_players].enumerates_now
            if self.estimator.is_drawn_by_labels and group.scores is None and is_drawn:
                groups = [group.relabelled(self.settings.seed)]
            else:
                groups = group.one_by_one()
        pending = []
        for part in groups:
            design = self.designs.design_for(part)
            # A whole design serves all rows of the group.
            rows = group if design.is_whole and len(groups) > 1 else part
            if rows.graph is not None:
                self.warnings.count_isolated(rows, design)
            pending.append(self.pending(rows, design, rows.known_values))
            if rows is group:
                break
        return pending

    def pending(self, group: RowGroup, design: Design, values: ValueArray) -> PendingRows:
        """Return rows with the first round of a design, whose first values are known."""
        if design.n_before_choice:
            round_end = design.n_before_choice
        elif self.settings.tolerance is None or design.is_whole:
            round_end = int(design.table.counts.max())
        else:
            n_first = self.budgets[group.n_players].first_check - group.n_beside_values
            round_end = max(n_first, values.shape[1])
        return PendingRows(group, design, values, round_end)

    def _finish_round(self, pending: PendingRows, record: _Record) -> list[PendingRows]:
        """Record the rows that are done, and return the others with their next round."""
        design, tolerance = pending.design, self.settings.tolerance
        leaves_choice = design.n_before_choice > 0
        if leaves_choice and (tolerance is None or not self.estimator.has_unions):
            return self._chosen(pending)
        is_last = not leaves_choice and pending.round_end >= design.table.counts.max()
        solved = self.with_means(pending)
        if not (is_last or leaves_choice):
            solved = replace(solved, design=design.within(pending.round_end))
        solution = solve_near_one(self.estimator, solved.design, solved.values, solved.errors)
        if tolerance is None:
            record(solved, slice(None), solution)
            return []
        excess = tolerance.excess(self._with_additive_part(pending.group, solution))
        is_met = excess <= 1
        is_full = isinstance(design, FullDesign)  # whose errors are those of the values alone
        budget = self.budgets[pending.group.n_players]
        n_all = 2**budget.n_players + pending.group.n_beside_values
        if is_last and (is_full or not budget.can_enumerate or n_all > budget.limit):
            record(solved, slice(None), solution)
            self.warnings.count_missed(excess)
            return []
        if is_met.any():
            record(solved, np.flatnonzero(is_met), solution)
        if is_met.all():
            return []
        unfinished = pending.subset_rows(np.flatnonzero(~is_met))
        if leaves_choice:
            return self._chosen(unfinished)
        if not is_last:
            return [replace(unfinished, round_end=int(np.ceil(GROWTH * pending.round_end)))]
        return [
            self._enumerated(unfinished.subset_rows(np.array([index])))
            for index in range(len(unfinished.group.rows))
        ]

    def _chosen(self, pending: PendingRows) -> list[PendingRows]:
        """Return the rows with the designs that their first values ask for."""
        values = self.with_means(pending).values
        values = np.ldexp(values, -scale_exponents(values))
        return [
            self.pending(pending.group.subset_rows(indices), design, pending.values[indices])
            for indices, design in self.estimator.chosen_designs(pending.design, values)
        ]

    def _enumerated(self, row: PendingRows) -> PendingRows:
        """Return a row with the design of all coalitions."""
        (n_known,) = row.design.table.counts
        full = full_design(row.group.n_players, row.design.table.coalitions[0, :n_known])
        return self.pending(row.group, full, row.values[:, :n_known])

    def with_means(self, pending: PendingRows) -> PendingRows:
        """Return rows with values and their errors, where these are random."""
        if pending.again is not None or pending.noise is not None:
            return replace(pending, errors=errors_of_repeated(pending))
        return pending

    def _with_additive_part(self, group: RowGroup, solution: Solution) -> Solution:
        """Return the solution with the part that was subtracted from the game, if it has one.

        A relative tolerance is a share of the attributions of the whole game.
        """
        additive = self.game.additive_part
        if additive is None:
            return solution
        part = additive[group.rows[:, None], group.players]
        return replace(solution, values=solution.values + part)

    def model_rows(self, pending: PendingRows, counts: IntArray) -> IntArray:
        """Return the rows of the model that each row took, by its evaluated coalitions, (R,)."""
        return (counts + max(0, pending.group.n_passes - 2)) * self.game.n_backgrounds

    def record(
        self,
        result: Estimate,
        first_row: int,
        pending: PendingRows,
        indices: IntArray | slice,
        solution: Solution,
    ) -> None:
        """Write the solution of some of the rows, given by their indices, into the result.

        The result is that of the rows from `first_row` on.
        """
        if not isinstance(indices, slice):
            pending, solution = pending.subset_rows(indices), solution.subset_rows(indices)
        group, design = pending.group, pending.design
        rows = group.rows - first_row
        # A solution on a graph has values for all its nodes, any other one for the active players.
        target: Any = (rows[:, None], group.players) if group.graph is None else rows
        result.values[target] = solution.values
        result.standard_errors[target] = solution.standard_errors
        result.degrees_of_freedom[target] = np.broadcast_to(
            solution.degrees_of_freedom, solution.values.shape
        )
        result.orders[rows] = design.order
        if isinstance(design, FullDesign):
            result.enumerated[rows] = True
        elif solution.prior_shares is not None:
            result.prior_shares[rows] = solution.prior_shares
        if result.unions is not None and solution.unions is not None:
            result.unions[rows] = solution.unions
        if result.union_errors is not None and solution.union_errors is not None:
            result.union_errors[rows] = solution.union_errors
        counts = np.minimum(design.table.counts, pending.round_end)
        result.evaluations[rows] = counts + group.n_beside_values
        result.model_rows[rows] = self.model_rows(pending, counts)
        if pending.errors is not None:
            mean_errors = np.sqrt(pending.errors.variances.mean(axis=1, keepdims=True))
            result.value_errors[rows] = pending.errors.in_units_of_values(mean_errors)[:, 0]
        if group.sources is not None:
            result.cooperators[rows] = group.sources
        if group.backward_passes is not None:
            result.backward_passes[rows] = group.backward_passes
        if result.trace is not None and len(rows):
            minimum = self.budgets[group.n_players].minimum
            result.trace.record(first_row, self.estimator, pending, solution, minimum)
        if result.interactions is not None and len(rows):
            record_interactions(
                self.estimator, result.interactions, first_row, pending, solution.standard_errors
            )
        if pending.changes is not None:
            estimator = self.estimator.linear or self.estimator
            changes = solve_near_one(estimator, design, pending.changes).values
            add_fit_errors(result, target, errors_of_fits(changes))
