"""Global importance of a game's players: with a fixed cost, or up to a tolerance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arguments import checked_choice
from ..array_types import AttributionArray, FloatArray
from ..errors import BudgetError, InvalidArgumentError, warn_user, warnings_once
from ..estimators.protocol import Estimator
from ..pipeline.settings import Settings, Tolerance, default_budget
from .allocation import (
    Allocation,
    VarianceModel,
    budget_choices,
    for_tolerance,
    for_total,
    variance_model,
)
from .error_parts import KINDS, ErrorParts, error_parts
from .row_sampler import RowSampler

_PILOT_ROWS = 25
"""Rows of the pilot sample with each of its two budgets."""

_PILOT_SHARE = 0.2
"""The largest share of a given number of evaluations that the pilot may cost."""

_GROWTH = 4
"""The largest factor by which the number of rows grows between two looks at the errors. The
variances of a small pilot sample are often too small or too large."""


@dataclass(frozen=True)
class Plan:
    """What a user asks for.

    Attributes
    ----------
    kind : {"mean_absolute", "mean", "loss"}
        What is averaged over rows.
    n_rows : int, optional
        The number of rows to draw, or the most with a tolerance.
    tolerance : Tolerance, optional
        The largest standard error allowed; as a share, of the distance between the largest and
        the smallest importance.
    total : int, optional
        The evaluations for all rows together.
    is_population : bool
        Whether the rows are all that there are, rather than a sample.
    total_name : str
        The name of `total` in the host, for errors.
    """

    kind: str
    n_rows: int | None = None
    tolerance: Tolerance | None = None
    total: int | None = None
    is_population: bool = False
    total_name: str = "total_evals"

    @property
    def needs_errors(self) -> bool:
        """Whether standard errors of the rows are needed."""
        return self.kind == "mean_absolute" or self.is_population


@dataclass(frozen=True)
class ImportanceEstimate:
    """The importance of players, (M, K), and the cost.

    Attributes
    ----------
    parts : ErrorParts
        The means and the parts of their variance.
    variance, freedom : arrays, (M, K)
        The variance of the means, and its degrees of freedom.
    n_rows, n_rows_available, evaluations : int
        Rows drawn, rows passed, and evaluations for all rows together.
    budget : int, optional
        Evaluations per row of the last rows.
    """

    parts: ErrorParts
    variance: FloatArray
    freedom: FloatArray
    n_rows: int
    n_rows_available: int
    evaluations: int
    budget: int | None


def estimate_importance(
    game: Any, estimator: Estimator[Any], settings: Settings, plan: Plan
) -> ImportanceEstimate:
    """Estimate the mean over rows of the attributions of a game.

    Parameters
    ----------
    game : Game
        The games of all rows that may be drawn.
    estimator : Estimator
        The estimator for a row.
    settings : Settings
        The settings for a row. Without a budget, a tolerance or a total chooses it.
    plan : Plan
        What is averaged, and how accurate or how expensive it shall be.
    """
    with warnings_once():  # each round of rows would warn
        return ImportanceRun(game, estimator, settings, plan).run()


class ImportanceRun:
    """One estimate of global importance."""

    def __init__(
        self, game: Any, estimator: Estimator[Any], settings: Settings, plan: Plan
    ) -> None:
        self.plan, self.budget = plan, settings.budget
        # An estimator whose errors do not cancel needs their size.
        with_errors = plan.needs_errors or not estimator.is_unbiased
        settings = replace(settings, independent_rows=True, with_errors=with_errors)
        self.settings, self.estimator = settings, estimator
        self.sampler = RowSampler(game, estimator, settings, plan.kind)
        self.n_available = int(game.n_rows)
        self.n_players = max(1, int(game.active_players().sum(axis=1).max(initial=0)))
        self.most_rows = min(plan.n_rows or self.n_available, self.n_available)
        self._check_arguments()

    def run(self) -> ImportanceEstimate:
        """Draw rows until there are enough."""
        if self.plan.tolerance is not None:
            self._meet(self.plan.tolerance)
        elif self.plan.total is not None:
            self._spend(self.plan.total)
        else:
            self.sampler.draw(self.most_rows, self.budget)
        parts = self._known_parts()
        variance, freedom = parts.variance(self._sampled_share())
        return ImportanceEstimate(
            parts,
            variance,
            freedom,
            self.sampler.n_rows,
            self.n_available,
            self.sampler.evaluations,
            self.sampler.estimated[-1].budget,
        )

    def _check_arguments(self) -> None:
        if self.most_rows < 2 and not self.plan.is_population:
            raise InvalidArgumentError(
                f"global_importance needs at least 2 rows; got {self.most_rows}. One row has no "
                "spread from which a standard error could be estimated."
            )
        is_chosen = self.plan.tolerance is not None or self.plan.total is not None
        if self.estimator.needs_graph and self.budget is None and is_chosen:
            raise InvalidArgumentError(
                f"{self.settings.budget_name}= is missing: with another number of evaluations per "
                f"row, {self.settings.name} may estimate other values, so that a pilot sample "
                "cannot choose it."
            )

    def _known_parts(self) -> ErrorParts:
        """Return the parts of the variance; refuse estimators that have no standard errors."""
        parts = self.sampler.parts()
        is_needed = self.settings.with_errors
        if is_needed and np.isnan(parts.within + parts.constant).any():
            raise InvalidArgumentError(
                f"{self.settings.name} has no standard errors for these rows and this budget, "
                f"which kind={self.plan.kind!r} needs. Use another method, such as random order."
            )
        return parts

    def _sampled_share(self) -> float:
        return self.sampler.n_rows / self.n_available if self.plan.is_population else 0.0

    # --- a total of evaluations ---

    def _spend(self, total: int) -> None:
        """Spend a number of evaluations."""
        if self.budget is not None:
            self._check_two_rows(total, self.budget)
            self._spend_on_rows(total, self.budget)
        elif self.plan.n_rows is not None:
            self.sampler.draw(self.most_rows, self._checked_budget(total, total // self.most_rows))
        else:
            self._spend_after_pilot(total)

    def _spend_after_pilot(self, total: int) -> None:
        least, larger = self._pilot_budgets()
        pilot = min(_PILOT_ROWS, int(_PILOT_SHARE * total) // (least + larger))
        if pilot < 5:  # too few for variances
            self._check_two_rows(total, least)
            self._spend_on_rows(total, least)
            return
        model = self._pilot(pilot)
        n_before, left = self.sampler.n_rows, total - self.sampler.evaluations
        choice = for_total(model, self._choices(), left, n_before, self.sampler.n_left)
        self._spend_on_rows(total, choice.budget)

    def _spend_on_rows(self, total: int, budget: int) -> None:
        """Draw rows while the total pays for them; a row may cost less than its budget."""
        while True:
            n_left = self.most_rows - self.sampler.n_rows
            n_rows = min((total - self.sampler.evaluations) // budget, n_left)
            if n_rows < 1:
                return
            self.sampler.draw(n_rows, budget)

    def _check_two_rows(self, total: int, budget: int) -> None:
        """Refuse a total that does not pay for two rows."""
        if total < 2 * budget:
            raise BudgetError(
                f"{self.plan.total_name}={total} is too small: {self.settings.name} takes {budget} "
                f"evaluations for a row, and 2 rows are needed. Pass at least {2 * budget}.",
                2 * budget,
            )

    def _checked_budget(self, total: int, budget: int) -> int:
        least = self._least_budget()
        if budget < least:
            raise BudgetError(
                f"{self.plan.total_name}={total} leaves {budget} evaluations for each of "
                f"{self.most_rows} rows; {self.settings.name} needs at least {least}. Pass "
                f"at least {least * self.most_rows}, or fewer rows.",
                least,
            )
        return budget

    # --- a tolerance ---

    def _meet(self, tolerance: Tolerance) -> None:
        """Draw rows until all standard errors are small enough, or all rows are drawn."""
        most_pilot = max(2, self.most_rows // 4)
        model = self._pilot(min(_PILOT_ROWS, most_pilot))
        while True:
            excess, allowed = self._excess(tolerance)
            n_left = self.most_rows - self.sampler.n_rows
            if excess <= 1:
                return
            if n_left == 0:
                self._warn_of_missed(excess, model, allowed)
                return
            # Of a finite population, fewer rows may suffice than of a sample.
            most_rows = np.inf if self.plan.is_population else self.most_rows
            choice = for_tolerance(model, self._choices(), allowed, most_rows)
            self.sampler.draw(self._next_rows(choice, n_left), choice.budget)
            model = self._model()

    def _next_rows(self, choice: Allocation, n_left: int) -> int:
        """Return the rows of the next round: those that are missing, or fewer after a pilot."""
        n_rows, needed = self.sampler.n_rows, choice.n_rows
        if self.plan.is_population:
            needed = 1 / (1 / needed + 1 / self.n_available)
        needed = np.ceil(min(needed, self.most_rows)) - n_rows
        # At least a tenth more, so that a few rounds suffice where a plan was too small.
        needed = max(needed, np.ceil(n_rows / 10))
        return int(min(needed, (_GROWTH - 1) * n_rows, n_left))

    def _excess(self, tolerance: Tolerance) -> tuple[float, FloatArray]:
        """Return the largest standard error over the allowed one, and allowed variances, (K,)."""
        parts = self._known_parts()
        variance, _ = parts.variance(self._sampled_share())
        allowed = np.full(variance.shape[1], tolerance.amount)
        if tolerance.is_relative:
            allowed = allowed * np.ptp(parts.mean, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.sqrt(variance) / allowed
        return float(np.where(variance == 0, 0.0, excess).max()), allowed**2

    def _warn_of_missed(self, excess: float, model: VarianceModel, allowed: FloatArray) -> None:
        needed = min(model.rows_needed(budget, allowed) for budget in self._choices())
        remedy = "Raise the tolerance or the evaluations per row."
        if np.isfinite(needed):
            remedy = f"About {needed:,.0f} rows would suffice. Pass more, or raise the tolerance."
        warn_user(
            f"global_importance did not reach the tolerance with {self.sampler.n_rows:,} rows: "
            f"standard errors are up to {excess:.3g} times as large. {remedy}"
        )

    # --- the pilot sample ---

    def _pilot(self, n_rows: int) -> VarianceModel:
        """Estimate some rows with each of two budgets, and return the variances."""
        for budget in dict.fromkeys(self._pilot_budgets()):
            n_left = self.most_rows - self.sampler.n_rows
            if n_left > 0:
                self.sampler.draw(min(n_rows, n_left), budget)
        self._known_parts()
        return self._model()

    def _model(self) -> VarianceModel:
        parts = self.sampler.parts_of_budgets()
        pilots = sorted((entry for entry in parts if entry[1].n_rows > 1), key=lambda e: e[0])
        return variance_model(pilots, self._n_all())

    def _pilot_budgets(self) -> tuple[int, int]:
        if self.budget is not None:
            return self.budget, self.budget
        least = self._least_budget()
        larger = max(2 * least, self._least_with_errors())
        n_all = self._n_all()
        return int(min(least, n_all)), int(min(larger, n_all))

    def _least_budget(self) -> int:
        """Return the smallest budget to consider: a coalition for each second player at least."""
        least = self.estimator.minimum_budget(self.n_players)
        if self.settings.with_errors:
            least = self._least_with_errors()
        useful = max(self.estimator.useful_budget(self.n_players), self.n_players // 2 * 2)
        return int(min(max(least, useful), self._n_all()))

    def _least_with_errors(self) -> int:
        """Return the smallest budget whose errors may be subtracted from squares.

        One order of players has errors, too, but only the spread of two is unbiased.
        """
        least = self.estimator.minimum_budget(self.n_players, True)
        if not self.estimator.is_unbiased:
            return least
        return max(least, 2 * self.estimator.useful_budget(self.n_players) - 2)

    def _choices(self) -> list[int]:
        if self.budget is not None:
            return [self.budget]
        largest = default_budget(self.n_players, with_tolerance=True)
        return budget_choices(self._least_budget(), largest, self._n_all())

    def _n_all(self) -> float:
        return np.inf if self.estimator.needs_graph else 2.0**self.n_players


def importance_of_attributions(
    values: AttributionArray,
    errors: AttributionArray,
    kind: str,
    *,
    errors_cancel: bool,
    is_population: bool,
) -> ImportanceEstimate:
    """Return the mean of attributions over their rows, with its variance.

    Parameters
    ----------
    values, errors : arrays, (R, M, K)
        Attributions and their standard errors.
    kind : {"mean_absolute", "mean"}
        What is averaged.
    errors_cancel : bool
        Whether the errors of the rows are independent and have mean 0.
    is_population : bool
        Whether the rows are all that there are, rather than a sample.
    """
    if checked_choice("kind", kind, KINDS) == "loss":
        raise InvalidArgumentError(
            "kind='loss' needs the model and labels, which attributions do not hold. Call "
            "global_importance of the explainer with X, y and loss."
        )
    if len(values) < 2 and not is_population:
        raise InvalidArgumentError(
            f"global_importance needs at least 2 rows; got {len(values)}. One row has no spread "
            "from which a standard error could be estimated."
        )
    if np.isnan(errors).any():
        raise InvalidArgumentError(
            "The attributions have unknown standard errors (NaN). Explain the rows with a larger "
            "budget, or by a method that has standard errors."
        )
    is_exact = not errors.any()
    parts = error_parts(values, errors, kind, errors_cancel or is_exact)
    variance, freedom = parts.variance(1.0 if is_population else 0.0)
    return ImportanceEstimate(parts, variance, freedom, len(values), len(values), 0, None)
