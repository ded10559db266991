"""One run: rows are grouped, scored, given a design, evaluated round by round, and solved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..array_types import BoolArray, CoalitionArray, IntArray, ScoreArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points, first_occurrences, pack
from ..errors import InvalidArgumentError, first_row
from ..estimators.draws import Draws
from ..estimators.exact import FullDesign, solve_full
from ..estimators.protocol import Design, Estimator, Solution
from ..estimators.random_answers import MOST_COMPARED, most_surprising
from ..games.evaluation import Evaluator, Request
from ..games.fingerprints import as_words
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..graphs.reading import Structure, graphs_of_rows
from ..workers import one_blas_thread
from .designs import GroupDesigns, PendingRows, RowGroup, group_rows, group_rows_on_graphs
from .drawing import Drawing, budgets_of_plans, pays_for_answers, repeated_drawing
from .repetition import Difference, Repetition
from .result import Estimate
from .run_warnings import RunWarnings
from .scoring import Scoring
from .settings import (
    MANY_ENTRIES,
    RowBudget,
    Settings,
    Tolerance,
    budget_for,
    checked_budgets,
    refuse_long_rows,
)
from .solutions import Trace, ValueScales, check_interactions, record_interactions, solve_near_one

_BLOCK_BYTES = 2**28
"""Bound on the coalitions and values in memory at a time; a block has at least one row."""

_OWN_DESIGN = 3
"""The memory of a row with a design of its own, for its equations, as a multiple of others'."""

_ARRAYS_OF_DRAWS = 6
"""Arrays of all draws that are in memory while their means are computed."""

_FEWEST_AGAIN, _SHARE_AGAIN, _SHARE_OF_ROW = 4, 0.05, 0.03
"""Evaluations that look for random answers: the most of a call, the most as a share of its
evaluations where that is more, and those of a row's values as a share of these. With 2 %, bars of
noise in 5 % of the answers held .25 to .79; with 3 %, .80 to 1.0."""

_Record: TypeAlias = Callable[[PendingRows, IntArray | slice, Solution], None]
"""Writes the solution of some rows, given by their indices, into the result."""


class CallBudget(NamedTuple):
    """The most that a call takes: evaluations, and rows of the model's input, of each row, (R,)."""

    evaluations: IntArray
    model_rows: IntArray


@dataclass
class Run:
    """The parts of a run that all its rows share.

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
    n_active : array, (R,)
        How many there are.
    budgets : dict of int to RowBudget
        The budget for each number of active players.
    traced_limit : int, optional
        The most evaluations of a row, if the run is traced.
    warnings : RunWarnings
        The warnings that are given at the end.
    largest : float
        The largest value so far, regardless of signs.
    memory : ValueMemory, optional
        Values that are known already.
    drawing : Drawing, optional
        The draws whose means are the values; None where the game has the values themselves.
    noise : Repetition
        What the first row has told of random answers.
    """

    game: Game
    estimator: Estimator[Any]
    settings: Settings
    active: BoolArray
    n_active: IntArray = field(init=False)
    budgets: dict[int, RowBudget] = field(init=False)
    traced_limit: int | None = field(default=None, init=False)
    warnings: RunWarnings = field(default_factory=RunWarnings, init=False)
    largest: float = 0.0
    memory: ValueMemory | None = None
    drawing: Drawing | None = None
    noise: Repetition = field(default_factory=Repetition)
    _graphs: Sequence[Structure] = ()
    _own_words: npt.NDArray[np.uint32] | None = None

    def __post_init__(self) -> None:
        """Check the arguments before anything is evaluated."""
        settings = self.settings
        self.n_active = self.active.sum(axis=1)
        if settings.independent_rows:
            self._own_words = as_words(self.game.row_fingerprints())
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
        if self.drawing is None:
            self.budgets = checked_budgets(self.n_active, self.estimator, settings)
        else:
            self.budgets = budgets_of_plans(self.drawing, self.estimator, settings)
        widest = self.budgets[max(self.budgets)]
        if widest.limit * widest.n_players > MANY_ENTRIES:
            refuse_long_rows(widest, self.estimator, settings)
        if settings.trace:
            self.traced_limit = int(self.most_evaluations().max(initial=0))
        if settings.interactions is not None:
            check_interactions(self.estimator, settings, self.budgets.values(), self.active.shape)
        self._designs = GroupDesigns(self.estimator, settings, self.budgets)
        if self.estimator.needs_graph:
            self._check_widest_row()

    def _check_arguments_of_a_part(self) -> None:
        """Refuse arguments with an entry per row: each part would take those of the first rows."""
        if first_row() is None:
            return
        scores = self.estimator.score_source
        if isinstance(scores, np.ndarray) and scores.ndim == 3:
            raise InvalidArgumentError(
                f"cooperators has shape {scores.shape}, with scores for each row. Streams and "
                "batches explain a part of the rows at a time: pass scores (M, M) for all rows, "
                "or call the explainer with all rows."
            )
        if not isinstance(self.settings.graph, Structure | None):
            raise InvalidArgumentError(
                "graph is a list with a graph for each row. Streams and batches explain a part of "
                "the rows at a time: pass one graph for all rows, or call the explainer with all "
                "rows."
            )

    @one_blas_thread()
    def _check_widest_row(self) -> None:
        """Refuse a budget before any evaluation, by the design of the row with most players.

        That row is, if not always, the most expensive one.
        """
        widest = np.argmax(self.n_active, keepdims=True)
        no_values = np.zeros((1, 2, 1))
        for group in self._groups(widest, no_values):
            self._designs.design_for(group)

    @property
    def evaluated_game(self) -> Any:
        """The game that is evaluated: that of single draws, where values are means of these."""
        return self.game if self.drawing is None else self.drawing.game(self.game)

    @property
    def n_draws(self) -> int:
        """How many rows of the evaluated game a row of the game has."""
        return 1 if self.drawing is None else self.drawing.draws.n_draws

    def ends_request(self) -> Request:
        """Return the request for the values of no and of all players, or for all their draws."""
        rows, coalitions = np.arange(self.game.n_rows), end_points(self.game.n_players)
        if self.drawing is not None:
            return self.drawing.ends_request(rows, coalitions)
        return Request(rows, CoalitionTable(coalitions[None], np.array([2])))

    def means_of_ends(self, ends: ValueArray) -> ValueArray:
        """Return the values of no and of all players, (R, 2, K), from those of `ends_request`."""
        if self.drawing is None:
            return ends
        return self.drawing.draws.ends(ends)

    @property
    def can_be_random(self) -> bool:
        """Whether the budget pays for means of answers, among them many of the ends.

        With less, more coalitions are worth more: with 12 features and noise of .03 and .3 times
        the standard deviation of the values, the error is .2 to 1.0 of that of means at 30 and 60
        evaluations, .7 to 1.0 at 100, and .8 to 1.25 from 200 on.
        """
        if self.drawing is not None or self.estimator.needs_graph:
            return True
        sizes = np.unique(self.n_active[self.n_active > 0]).tolist()
        limits = [budget_for(size, self.estimator, self.settings).limit for size in sizes]
        return all(map(pays_for_answers, sizes, limits))

    def for_random_model(self) -> Run:
        """Return the run of a model that answers at random, whose values are means of answers."""
        if self.drawing is None:
            drawing = repeated_drawing(self.n_active, self.estimator, self.settings)
        else:
            draws = replace(self.drawing.draws, is_random=True, has_one_full_value=False)
            drawing = replace(self.drawing, draws=draws)
        return Run(self.game, self.estimator, self.settings, self.active, drawing=drawing)

    def for_worker(self) -> Run:
        """Return a copy for another thread: it shares the games, and counts by itself."""
        twin = copy.copy(self)
        twin.warnings, twin.largest = RunWarnings(), 0.0
        twin._designs = self._designs.copy()
        return twin

    def most_evaluations(self) -> IntArray:
        """Return the largest number of evaluations of each row, (R,), without those of graphs."""
        sizes, index = np.unique(self.n_active, return_inverse=True)
        limits = [min(2 ** int(size), self.budgets[int(size)].limit) for size in sizes]
        return np.array(limits, dtype=np.intp)[index]

    @one_blas_thread()
    def budget(self) -> CallBudget:
        """Return the most that the run takes; on graphs, their designs say how many evaluations."""
        evaluations = np.maximum(self.most_evaluations(), 2)  # no player has any effect
        if self.estimator.needs_graph:
            no_values = np.zeros((self.game.n_rows, 2, 1))
            for group in self._groups(np.arange(self.game.n_rows), no_values):
                design = self._designs.design_for(group).design
                if not design.n_before_choice:
                    evaluations[group.rows] = design.table.counts
        n_backgrounds, drawing = self.game.n_backgrounds, self.drawing
        model_rows = evaluations * n_backgrounds
        if drawing is None:
            return CallBudget(evaluations, model_rows)
        if not drawing.draws.is_background:
            model_rows *= drawing.draws.n_draws
        of_limit = replace(self.settings, max_model_rows=self.settings.limiting_rows)
        for size in np.unique(self.n_active).tolist():
            limit = of_limit.model_rows(size, n_backgrounds)
            if not drawing.draws.is_background:
                limit = budget_for(size, self.estimator, self.settings).limit * n_backgrounds
            if limit is not None:
                of_size = self.n_active == size
                model_rows[of_size] = np.minimum(model_rows[of_size], limit)
        return CallBudget(evaluations, model_rows)

    def blocks(self, start: int, stop: int, n_outputs: int) -> Iterator[IntArray]:
        """Yield the rows from `start` to `stop`, in blocks whose coalitions fit into memory."""
        n_players = self.active.shape[1]
        n_evaluations = max(budget.limit for budget in self.budgets.values())
        row_bytes = n_evaluations * (8 * n_players + 24 * n_outputs)
        if self.estimator.score_source is not None:
            row_bytes += 24 * n_players**2
        if self.settings.independent_rows:
            row_bytes *= _OWN_DESIGN
        if self.drawing is not None:
            row_bytes *= _ARRAYS_OF_DRAWS
        size = int(max(1, _BLOCK_BYTES // row_bytes))
        for first in range(start, stop, size):
            yield np.arange(first, min(first + size, stop))

    def estimate_block(
        self,
        rows: IntArray,
        ends: ValueArray,
        evaluate: Evaluator,
        result: Estimate,
        first_row: int = 0,
    ) -> None:
        """Estimate some rows, and write their attributions into the result.

        `ends` are those of these rows, and `result` is that of the rows from `first_row` on.
        """
        groups = self._groups(rows, ends)
        drawing = self.drawing
        if drawing is not None:
            groups = [
                self._with_singles(group, evaluate)
                if drawing.knows_singles(group.n_players)
                else group
                for group in groups
            ]
        source = self.estimator.score_source
        if source is not None:
            groups = self._scored(groups, source, evaluate)
        record = partial(self._record, result, first_row)
        # BLAS is limited once for all rows, also where each has a design.
        with one_blas_thread():
            pending = [of_group for group in groups for of_group in self._start(group)]
        while pending:
            # All groups in one go, so that batches are full although a group has few rows.
            values = evaluate([of_group.request() for of_group in pending])
            if self.drawing is None:
                self.largest = max([self.largest, *map(largest_magnitude, values)])
            pending = [
                of_group.with_values(new) for of_group, new in zip(pending, values, strict=True)
            ]
            if self.noise.may_continue:
                pending = self._checked(pending, evaluate)
            with one_blas_thread():
                pending = [
                    unfinished
                    for of_group in pending
                    for unfinished in self._finish_round(of_group, record)
                ]

    def _groups(self, rows: IntArray, ends: ValueArray) -> list[RowGroup]:
        """Group rows that can be treated alike; `ends` are theirs."""
        active = self.active[rows]
        if self.estimator.needs_graph:
            graphs = [self._graphs[row] for row in rows]
            groups = group_rows_on_graphs(rows, active, ends, graphs)
        else:
            groups = group_rows(rows, active, ends)
            if self._graphs:
                groups = [group.on_graphs(self._graphs) for group in groups]
        if self._own_words is None:
            return groups
        return [replace(group, own_words=self._own_words[group.rows]) for group in groups]

    def _with_singles(self, group: RowGroup, evaluate: Evaluator) -> RowGroup:
        """Return the group with the draws of single players, on which the others depend."""
        single = np.eye(group.n_players, dtype=bool)
        coalitions = np.unique(np.concatenate([single, ~single]), axis=0)
        is_new = ~(coalitions.all(axis=1) | ~coalitions.any(axis=1))
        return self._knowing(group, coalitions[is_new], evaluate)[0]

    def _knowing(
        self, group: RowGroup, coalitions: CoalitionArray, evaluate: Evaluator
    ) -> tuple[RowGroup, ValueArray]:
        """Return the group with more coalitions evaluated, and the values of all it then knows.

        Where values are means of draws, the group has the draws.
        """
        known = np.concatenate([group.known, coalitions])
        is_first = first_occurrences(pack(known)[None])[0] == np.arange(len(known))
        known = known[is_first]
        table = CoalitionTable(known[None], np.array([len(known)]))
        design = Design(table)
        drawn = None if self.drawing is None else self.drawing.drawn(group, design)
        pending = PendingRows(group, design, group.known_values, len(known), drawn)
        (new,) = evaluate([pending.request()])
        known_values = np.concatenate([group.known_values, new], axis=1)
        group = replace(group, known=known, known_values=known_values)
        return group, self._with_means(replace(pending, values=group.known_values)).values

    def _scored(
        self, groups: list[RowGroup], source: str | ScoreArray, evaluate: Evaluator
    ) -> list[RowGroup]:
        """Return the groups with scores of their players, where their coalitions are drawn."""
        if isinstance(source, str):
            self.warnings.score_source = source
        know = partial(self._knowing, evaluate=evaluate)
        scored: list[RowGroup] = []
        for group in groups:
            budget = self.budgets[group.n_players]
            if budget.enumerates_now:
                scored.append(group)
                continue
            minimum = self.estimator.minimum_budget(group.n_players, self.settings.needs_errors)
            # Differences of means of draws have errors: unless asked for, they are not worth their
            # rows of the model (12 features, 100 background rows, 500 to 2,000 model rows each).
            can_spend = budget.first_check if self.drawing is None else 0
            scoring = Scoring(
                source,
                can_spend,
                minimum,
                self.settings.seed,
                self.warnings.count_scores,
                know,
            )
            # With draws of their own, rows are evaluated on different ones.
            is_alone = self.drawing is not None and group.own_words is not None
            for part in group.one_by_one() if is_alone else [group]:
                scored += scoring.scored(part, self.game, self.settings.batch_size)
        return scored

    def _start(self, group: RowGroup) -> list[PendingRows]:
        """Return the rows of a group with one design for all, or with a design for each row."""
        groups = [group]
        if group.own_words is not None:
            is_drawn = not self.budgets[group.n_players].enumerates_now
            has_labels = self.estimator.is_drawn_by_labels and self.drawing is None
            if has_labels and group.scores is None and is_drawn:
                groups = [group.relabelled(self.settings.seed)]
            else:
                groups = group.one_by_one()
        pending = []
        for part in groups:
            group_design = self._designs.design_for(part)
            design = group_design.design
            if self.drawing is not None:
                design = self.drawing.affordable(part, design)
            # A whole design serves all rows of the group.
            shares_all = design.is_whole and self.drawing is None
            rows = group if shares_all and len(groups) > 1 else part
            if rows.graph is not None:
                self.warnings.count_isolated(rows, group_design)
            round_end = self._first_round_end(rows, design)
            drawn = None if self.drawing is None else self.drawing.drawn(rows, design)
            pending.append(PendingRows(rows, design, rows.known_values, round_end, drawn))
            if rows is group:
                break
        return pending

    def _first_round_end(self, group: RowGroup, design: Design) -> int:
        """Return the number of coalitions before the next choice or, if none is left, solution."""
        if design.n_before_choice:
            return design.n_before_choice
        if self.settings.tolerance is None or design.is_whole:
            return int(design.table.counts.max())
        return self.budgets[group.n_players].first_check

    def _finish_round(self, pending: PendingRows, record: _Record) -> list[PendingRows]:
        """Record the rows that are done, and return the others with their next round."""
        tolerance = self.settings.tolerance
        if pending.design.n_before_choice:
            if tolerance is not None and self.estimator.has_unions:
                pending = self._unmet(pending, tolerance, record)
            return self._chosen(pending) if len(pending.group.rows) else []
        design = pending.design
        is_last = bool(pending.round_end >= design.table.counts.max())
        with_means = self._with_means(pending)
        if isinstance(design, FullDesign):
            solution = solve_full(design, with_means.values, with_means.errors)
        else:
            design = design if is_last else design.within(pending.round_end)
            values, errors = with_means.values, with_means.errors
            solution = solve_near_one(self.estimator, design, values, errors)
        solved = replace(with_means, design=design)
        if tolerance is None:
            record(solved, slice(None), solution)
            return []
        whole = self._with_additive_part(pending.group, solution)
        is_met = tolerance.is_met(whole)
        is_full = isinstance(design, FullDesign)  # whose errors are those of the values alone
        if is_last and (is_full or not self.budgets[pending.group.n_players].can_enumerate):
            record(solved, slice(None), solution)
            if not is_met.all():
                self.warnings.count_missed(is_met, tolerance, whole)
            return []
        record(solved, np.flatnonzero(is_met), solution)
        if is_met.all():
            return []
        unfinished = pending.subset_rows(np.flatnonzero(~is_met))
        if not is_last:
            return [unfinished.next_round()]
        return [self._with_draws(row) for row in unfinished.enumerated()]

    def _with_draws(self, pending: PendingRows) -> PendingRows:
        """Return rows with the draws of their present design, where values are means of draws."""
        if self.drawing is None:
            return pending
        return replace(pending, drawn=self.drawing.drawn(pending.group, pending.design))

    def _with_means(self, pending: PendingRows) -> PendingRows:
        """Return rows with values and their errors, where these are means of draws or random."""
        n_values = pending.values.shape[1]
        if pending.again is not None and pending.repeated is not None:
            (values,) = pending.values
            answers = np.stack([values, values], axis=1)  # (C, 2, K)
            answers[pending.repeated, 1] = pending.again
            drawn = np.zeros((1, n_values, 2), dtype=bool)
            drawn[:, :, 0], drawn[:, pending.repeated, 1] = True, True
            draws, table = answers.reshape(1, n_values, -1), pending.design.table.part(0, n_values)
            return replace(
                pending, errors=Draws(2, is_background=False).means(draws, table, drawn)[1]
            )
        if self.drawing is None or pending.drawn is None:
            return pending
        values, errors = self.drawing.means(
            pending.group, pending.values, pending.design.table, pending.drawn[:, :n_values]
        )
        self.largest = max(self.largest, largest_magnitude(values))
        return replace(pending, values=values, errors=errors)

    def _checked(self, pending: list[PendingRows], evaluate: Evaluator) -> list[PendingRows]:
        """Evaluate some values of each row again, and separate rows whose answers differ.

        Those are the values that the others let expect least: they differ most the next time, if
        the model answers at random. The first answers stay; errors are known by the second ones.
        """
        samples, done = [], []
        for rows in pending:
            n_each = self._n_again(rows)
            if rows.is_checked or rows.design.n_before_choice or not n_each.any():
                done.append(rows)
            else:
                samples.append((replace(rows, is_checked=True), *self._surprising(rows, n_each)))
        evaluate = evaluate.anew()
        answers = evaluate([sample for _, sample, _ in samples])
        for (rows, sample, repeated), again in zip(samples, answers, strict=True):
            self.warnings.n_repeated += sample.n_pairs
            done += self._separated(rows, sample, repeated, again, evaluate)
        return done

    def _n_again(self, pending: PendingRows) -> IntArray:
        """Return how many values of each row are evaluated again, (R,).

        The rows of a call share few of them by their indices.
        """
        n_values, n_rows = pending.values.shape[1], self.game.n_rows
        n_first = self.noise.n_evaluations - self.noise.n_explaining
        n_left = max(_FEWEST_AGAIN, _SHARE_AGAIN * n_values * n_rows) - n_first
        each = min(n_left / n_rows, max(1.0, _SHARE_OF_ROW * n_values))
        rows = pending.group.rows
        counts = np.floor((rows + 1) * each) - np.floor(rows * each)
        n_inner = min(pending.design.table.counts.min() - 2, MOST_COMPARED)
        n_again: IntArray = np.clip(counts, 0, max(0, n_inner)).astype(np.intp)
        return n_again

    @one_blas_thread()
    def _surprising(self, pending: PendingRows, n_each: IntArray) -> tuple[Request, IntArray]:
        """Return the request for values that the others let expect least, and which, (R, n).

        The first ones of each row, `n_each`, (R,).
        """
        table, n_values = pending.design.table, pending.values.shape[1]
        coalitions, counts = table.coalitions[:, :n_values], np.minimum(table.counts, n_values)
        repeated = most_surprising(pending.values, coalitions, counts, int(n_each.max()))
        chosen = coalitions[np.arange(len(coalitions))[:, None], repeated]
        return pending.group.request(CoalitionTable(chosen, n_each)), repeated

    def _separated(
        self,
        pending: PendingRows,
        sample: Request,
        repeated: IntArray,
        again: ValueArray,
        evaluate: Evaluator,
    ) -> list[PendingRows]:
        """Return rows whose answers are the same again together, and each other row by itself."""
        first = np.take_along_axis(pending.values, repeated[..., None], axis=1)
        is_asked = np.arange(again.shape[1]) < sample.table.counts[:, None]
        allowed = self.noise.smallest * self.largest
        differ = is_asked[..., None] & (np.abs(first - again) > allowed)
        if not differ.any():
            return [pending]
        if self.warnings.difference is None and self.noise.difference is None:
            row, index = (int(found[0]) for found in np.nonzero(differ.any(axis=2)))
            alone = replace(
                sample,
                rows=sample.rows[row : row + 1],
                table=CoalitionTable(sample.table.coalitions[row, [[index]]], np.array([1])),
                players=None if sample.players is None else sample.players[row : row + 1],
            )
            two = np.stack([first[row, index], again[row, index]])
            self.warnings.difference, n_more = Difference.explained(two, evaluate, alone, allowed)
            self.warnings.n_repeated += n_more
        if self.warnings.difference is not None and self.warnings.difference.cause == "influence":
            return [pending]
        are_random = differ.any(axis=(1, 2))
        parts = [pending.subset_rows(np.flatnonzero(~are_random))] if not are_random.all() else []
        for place in np.flatnonzero(are_random).tolist():
            part, n = pending.subset_rows(np.array([place])), int(sample.table.counts[place])
            parts.append(replace(part, repeated=repeated[place, :n], again=again[place, :n]))
        return parts

    def _unmet(self, pending: PendingRows, tolerance: Tolerance, record: _Record) -> PendingRows:
        """Record the rows that meet the tolerance before their next choice; return the others."""
        with_means = self._with_means(pending)
        values, errors = with_means.values, with_means.errors
        solution = solve_near_one(self.estimator, pending.design, values, errors)
        is_met = tolerance.is_met(self._with_additive_part(pending.group, solution))
        record(with_means, np.flatnonzero(is_met), solution)
        return pending.subset_rows(np.flatnonzero(~is_met))

    def _chosen(self, pending: PendingRows) -> list[PendingRows]:
        """Return the rows with the designs that their first values ask for."""
        first_values = self._with_means(pending).values
        values = ValueScales.from_values(first_values).near_one(first_values)
        chosen = self.estimator.chosen_designs(pending.design, values)
        return [
            self._with_draws(
                replace(
                    pending.subset_rows(indices),
                    design=design,
                    round_end=self._first_round_end(pending.group, design),
                )
            )
            for indices, design in chosen
        ]

    def _with_additive_part(self, group: RowGroup, solution: Solution) -> Solution:
        """Return the solution with the part that was subtracted from the game, if it has one.

        A relative tolerance is a share of the attributions of the whole game.
        """
        additive = self.game.additive_part
        if additive is None:
            return solution
        part = additive[group.rows[:, None], group.players]
        return replace(solution, values=solution.values + part)

    def _record(
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
        group, design = pending.group, pending.design
        rows = group.rows[indices] - first_row
        # A solution on a graph has values for all its nodes, any other one for the active players.
        players = group.players[indices] if group.graph is None else slice(None)
        target = (rows[:, None], players) if group.graph is None else rows
        errors = solution.standard_errors
        freedom = np.broadcast_to(solution.degrees_of_freedom, errors.shape)
        result.values[target] = solution.values[indices]
        result.standard_errors[target] = errors[indices]
        result.degrees_of_freedom[target] = freedom[indices]
        result.orders[rows] = design.order
        if isinstance(design, FullDesign):
            result.enumerated[rows] = True
        elif solution.prior_shares is not None:
            result.prior_shares[rows] = solution.prior_shares[indices]
        evaluations = np.minimum(design.table.counts, pending.round_end)
        result.evaluations[rows] = evaluations if len(evaluations) == 1 else evaluations[indices]
        drawing, of_values, drawn = self.drawing, pending.errors, pending.drawn
        n_backgrounds = self.game.n_backgrounds
        for whole, part in (
            (result.unions, solution.unions),
            (result.union_errors, solution.union_errors),
        ):
            if whole is not None and part is not None:
                whole[rows] = part[indices]
        if drawing is None or of_values is None or drawn is None:
            result.model_rows[rows] = result.evaluations[rows] * n_backgrounds
        else:
            n_draws = drawn[:, : pending.values.shape[1]].sum(axis=(1, 2))
            each = 1 if drawing.draws.is_background else n_backgrounds
            n_of_model = each * (n_draws if len(n_draws) == 1 else n_draws[indices])
            if drawing.draws.has_one_full_value:  # which is one row of the model
                n_of_model = n_of_model - (each - 1)
            result.model_rows[rows] = n_of_model
        if of_values is not None:
            mean_errors = np.sqrt(of_values.variances.mean(axis=1, keepdims=True))
            result.value_errors[rows] = of_values.in_units_of_values(mean_errors)[indices, 0]
        if group.sources is not None and group.backward_passes is not None:
            result.cooperators[rows] = group.sources[indices]
            result.backward_passes[rows] = group.backward_passes[indices]
        if result.trace is not None and len(group.rows[indices]):
            self._record_trace(result.trace, first_row, pending, indices, solution)
        if result.interactions is not None:
            found = result.interactions
            record_interactions(self.estimator, found, first_row, pending, indices, solution)

    def _record_trace(
        self,
        trace: Trace,
        first_row: int,
        pending: PendingRows,
        indices: IntArray | slice,
        solution: Solution,
    ) -> None:
        """Write the estimates from the first evaluations of some rows into the trace."""
        if not isinstance(indices, slice):
            pending = pending.subset_rows(indices)
        freedom = np.broadcast_to(solution.degrees_of_freedom, solution.values.shape)
        last = Solution(
            solution.values[indices], solution.standard_errors[indices], freedom[indices]
        )
        minimum = self.budgets[pending.group.n_players].minimum
        trace.record(first_row, self.estimator, pending, last, minimum)


def largest_magnitude(values: ValueArray) -> float:
    """Return the largest of some values, regardless of signs; 0 if there are none."""
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))
