"""A run whose values are means of draws: of background rows, or of answers of a random model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ..array_types import IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..estimators.protocol import Design, Solution
from ..games.drawn_values import DrawnRequest, SingleDraws
from ..games.evaluation import Evaluator
from .designs import PendingRows, RowGroup
from .drawing import ENDS_SHARE, FEWEST_ENDS, Drawing, repeated_drawing
from .result import Estimate
from .run import CallBudget, Run
from .settings import RowBudget, budget_for, checked_budgets


@dataclass
class DrawnRun(Run):
    """A run that evaluates draws, more of some values than of others.

    Attributes
    ----------
    drawing : Drawing
        The draws whose means are the values.
    """

    has_draws: ClassVar[bool] = True
    n_arrays: ClassVar[int] = 6

    drawing: Drawing = field(kw_only=True)

    def __post_init__(self) -> None:
        """Check the arguments; the game is that of single draws."""
        super().__post_init__()
        draws, game = self.drawing.draws, self.game
        self.n_draws = draws.n_draws
        self.evaluated_game = SingleDraws(game, draws.n_draws, draws.is_background)
        if game.draws_values:
            self.evaluated_game = game.repeated(draws.n_draws)

    def checked_budgets(self) -> dict[int, RowBudget]:
        """Return those of coalitions that the draws leave."""
        budgets: dict[int, RowBudget] = {}
        for size, plan in self.drawing.plans.items():
            settings = replace(self.settings, budget=plan.n_coalitions)
            budgets |= checked_budgets(np.array([size]), self.estimator, settings)
        return budgets

    def evaluated_ends(self, evaluate: Evaluator) -> tuple[ValueArray, ValueArray]:
        """Return the draws of no and of all players, (R, 2, D · K), and their means, (R, 2, K)."""
        draws, ends = self.drawing.draws, end_points(self.game.n_players)
        drawn = np.ones((1, 2, draws.n_draws), dtype=bool)
        drawn[:, 1, 1:] = not draws.has_one_full_value
        rows, table = np.arange(self.game.n_rows), CoalitionTable(ends[None], np.array([2]))
        (evaluated,) = evaluate([DrawnRequest(rows, table, drawn=drawn)])
        return evaluated, self.means_of_ends(evaluated)

    def means_of_ends(self, evaluated: ValueArray) -> ValueArray:
        """Return the means of the draws of no and of all players, (R, 2, K)."""
        return self.drawing.draws.ends(evaluated)

    def budget(self) -> CallBudget:
        """Return the most that the run takes, in evaluations and in rows of the model."""
        evaluations, model_rows = super().budget()
        n_backgrounds, is_background = self.game.n_backgrounds, self.drawing.draws.is_background
        if not is_background:
            model_rows *= self.n_draws
        of_limit = replace(self.settings, max_model_rows=self.settings.limiting_rows)
        for size in np.unique(self.n_active).tolist():
            limit = of_limit.model_rows(size, n_backgrounds)
            if not is_background:
                limit = budget_for(size, self.estimator, self.settings).limit * n_backgrounds
            if limit is not None:
                of_size = self.n_active == size
                model_rows[of_size] = np.minimum(model_rows[of_size], limit)
        return CallBudget(evaluations, model_rows)

    def groups(
        self, rows: IntArray, ends: ValueArray, evaluate: Evaluator | None = None
    ) -> list[RowGroup]:
        """Group rows; with the draws of single players, where the others depend on these."""
        groups = super().groups(rows, ends)
        if evaluate is None:
            return groups
        for index, group in enumerate(groups):
            if self.drawing.knows_singles(group.n_players):
                single = np.eye(group.n_players, dtype=bool)
                coalitions = np.unique(np.concatenate([single, ~single]), axis=0)
                is_new = ~(coalitions.all(axis=1) | ~coalitions.any(axis=1))
                groups[index], _ = self.knowing(group, coalitions[is_new], evaluate)
        if self.estimator.score_source is None or self.own_words is None:
            return groups
        return [row for group in groups for row in group.one_by_one()]  # with draws of their own

    def start(self, group: RowGroup) -> list[PendingRows]:
        """Return the rows of a group, or each row, with a design that the draws pay for."""
        pending = []
        for part in [group] if group.own_words is None else group.one_by_one():
            design = self.drawing.affordable(part, self.designs.design_for(part))
            if part.graph is not None:
                self.warnings.count_isolated(part, design)
            pending.append(self.pending(part, design, part.known_values))
        return pending

    def pending(self, group: RowGroup, design: Design, values: ValueArray) -> PendingRows:
        """Return rows with the first round of a design, and the draws of its coalitions."""
        drawn = self.drawing.drawn(group, design)
        return replace(super().pending(group, design, values), drawn=drawn)

    def with_means(self, pending: PendingRows) -> PendingRows:
        """Return rows with the means of their draws, and the errors of these."""
        values, errors = self.drawing.means(pending)
        return replace(pending, values=values, errors=errors)

    def record(
        self,
        result: Estimate,
        first_row: int,
        pending: PendingRows,
        indices: IntArray | slice,
        solution: Solution,
    ) -> None:
        """Write the solution of some of the rows into the result, and what their draws took."""
        super().record(result, first_row, pending, indices, solution)
        if not isinstance(indices, slice):
            pending = pending.subset_rows(indices)
        n_of_model = self.drawing.model_rows(pending, self.game.n_backgrounds)
        result.model_rows[pending.group.rows - first_row] = n_of_model


def can_be_random(run: Run) -> bool:
    """Return whether the budget pays for means of answers, among them many of the ends.

    With less, more coalitions are worth more: with 12 features and noise of .03 and .3 times the
    standard deviation of the values, the error is .2 to 1.0 of that of means at 30 and 60
    evaluations, .7 to 1.0 at 100, and .8 to 1.25 from 200 on.
    """
    if run.has_draws or run.estimator.needs_graph:
        return True
    sizes = np.unique(run.n_active[run.n_active > 0]).tolist()
    limits = [budget_for(size, run.estimator, run.settings).limit for size in sizes]
    # The noise of the ends counts as much as that of others with the fewest answers.
    each = FEWEST_ENDS * ENDS_SHARE
    return all(limit >= each * size for size, limit in zip(sizes, limits, strict=True))


def for_random_model(run: Run) -> DrawnRun:
    """Return the run of a model that answers at random, whose values are means of answers."""
    if isinstance(run, DrawnRun):
        draws = replace(run.drawing.draws, is_random=True, has_one_full_value=False)
        drawing = replace(run.drawing, draws=draws)
    else:
        drawing = repeated_drawing(run.n_active, run.estimator, run.settings)
    return DrawnRun(run.game, run.estimator, run.settings, run.active, drawing=drawing)
