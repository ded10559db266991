"""What a call asks for, and how many evaluations this gives each row."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..array_types import FloatArray, IntArray
from ..errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError
from ..estimators.exact import MAX_PLAYERS
from ..estimators.protocol import Estimator, Solution
from ..graphs.reading import Structure
from ..interactions.result import InteractionRequest
from ..memory_bounds import memory_limit

_FIRST_CHECK = 4
"""The first check for the tolerance comes after so many times the minimum. Errors estimated from
fewer evaluations are often too small, and a row that stops then stops too early."""

FEWER_PLAYERS = "Group features (groups= or a coarser masker in shap, feature_mask in captum)"

_MANY_NUMBERS = 1000
"""Beyond how many numbers of an image as players superpixels are the better advice."""

_MOST_SPLIT_BY_DEFAULT = 63
"""Hierarchies of more players have the default budget of so many, 1,008 evaluations: it finds the
regions of an image, in seconds of our own time."""

ENUMERATED_BY_DEFAULT = 10
"""With at most this many players, the default budget pays for all coalitions. It is the number up
to which `shap.Explainer` enumerates by default, so that nobody loses exact values."""

MANY_ENTRIES = 10**7
"""No estimator computes for a minute where the coalitions have fewer entries than this: some 2 µs
for each, with learned weights and a curved model."""

OPERATIONS_PER_SECOND = 1e10
"""Those of one core, as measured with products of large matrices."""

_MOST_SECONDS = 600.0
"""Beyond how many seconds for a row a call is refused."""


@dataclass(frozen=True)
class Tolerance:
    """The standard error at which a row needs no further evaluations.

    Attributes
    ----------
    amount : float
        The largest standard error allowed, of any player and output.
    is_relative : bool
        Whether it is a fraction of the distance between the row's largest and smallest
        attribution to the output, rather than in units of the output.
    """

    amount: float
    is_relative: bool = False

    def excess(self, solution: Solution) -> FloatArray:
        """Return the largest standard error of each row as a multiple of the tolerance, (R,).

        Rows with unknown errors have infinite ones.
        """
        allowed: Any = self.amount
        if self.is_relative:
            allowed = allowed * np.ptp(solution.values, axis=1)  # (R, K)
        errors = np.where(np.isnan(solution.standard_errors), np.inf, solution.standard_errors)
        largest = errors.max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            excess: FloatArray = np.where(largest == 0, 0.0, largest / allowed).max(axis=1)
        return excess


def checked_tolerance(tolerance: Any) -> Tolerance | None:
    """Read a user's `tolerance`: a number in units of the output, or a percentage as in "1%"."""
    if tolerance is None:
        return None
    requirement = (
        "tolerance must be a positive number, in units of the output, or a text such as '1%', of "
        "the range of a row's attributions"
    )
    is_relative = isinstance(tolerance, str)
    number = tolerance
    if is_relative:
        try:
            number = float(tolerance.strip().removesuffix("%")) / 100
        except ValueError:
            raise InvalidArgumentError(f"{requirement}; got {tolerance!r}.") from None
        if not tolerance.strip().endswith("%"):
            raise InvalidArgumentError(f"{requirement}; got {tolerance!r}.")
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise InvalidArgumentTypeError(f"{requirement}; got {type(tolerance).__name__}.")
    if not 0 < float(number) < np.inf:
        raise InvalidArgumentError(f"{requirement}; got {tolerance!r}.")
    return Tolerance(float(number), is_relative)


@dataclass(frozen=True)
class Settings:
    """How to run an estimate.

    Attributes
    ----------
    seed : int
        Seed of all random choices.
    budget : int, optional
        Evaluations for each row; `default_budget` where None.
    batch_size : int, optional
        Evaluations in one call of the game; the size that the game prefers where None.
    graph : PlayerGraph, PlayerTree, CausalGraph, or sequence of them, optional
        The graph of the game's players, or the graph of each row, for estimators that need one; the
        tree for `Hierarchy`.
        Their estimates depend on it, so that enumeration of all coalitions never replaces them.
    with_errors : bool
        Whether standard errors are needed, so that a budget too small for them is refused.
    tolerance : Tolerance, optional
        The standard error at which a row stops before its budget is spent.
    max_seconds : float, optional
        The time for the call, for all rows together. The budget is then the largest that fits, by
        the costs of smaller ones, and `budget` is a further limit.
    independent_rows : bool
        Whether each row has random draws of its own, from the seed and the content of the row.
    is_for_training : bool
        Whether a network learns from the values, and no user reads them. There is then no warning
        of small budgets, because errors average out over rows, and no check that the model is
        deterministic.
    interactions : InteractionRequest, optional
        The interactions to compute from the same evaluations.
    trace : bool
        Whether to estimate from the first evaluations, too.
    n_jobs : int, optional
        The number of workers of joblib that share the rows; None for joblib's configuration.
    progress_delay : float, optional
        Seconds after which a progress bar appears; no bar where None.
    name : str
        Name of the estimator for the bar and for errors.
    budget_name : str
        Name of the budget in the host, for errors.
    max_model_rows : int, optional
        Rows of the model's input for each row, where values are means over a background.
    limiting_rows : int, optional
        The `max_model_rows` of the call, where designs keep to it or the budget follows from it.
    saves_rows : bool
        Whether rows that are not enumerated have half of their default budget.
    n_repeats : int
        The evaluations of each coalition of a random model.
    fewer_players : str
        How to have fewer players, for errors and warnings.
    """

    seed: int
    budget: int | None = None
    batch_size: int | None = None
    graph: Structure | Sequence[Structure] | None = None
    with_errors: bool = False
    tolerance: Tolerance | None = None
    max_seconds: float | None = None
    independent_rows: bool = False
    is_for_training: bool = False
    interactions: InteractionRequest | None = None
    trace: bool = False
    n_jobs: int | None = 1
    progress_delay: float | None = None
    name: str = "the estimator"
    budget_name: str = "budget"
    max_model_rows: int | None = None
    limiting_rows: int | None = None
    saves_rows: bool = False
    n_repeats: int = 1
    fewer_players: str = FEWER_PLAYERS

    @property
    def limit_name(self) -> str:
        """The argument that limits the evaluations, for messages."""
        if self.max_seconds is not None:
            return "max_seconds"
        return self.budget_name if self.limiting_rows is None else "max_model_rows"

    @property
    def limit_text(self) -> str:
        """The argument that limits the evaluations and its value, for messages."""
        text = f"{self.budget_name}={self.budget or 'auto'}"
        limit = self.max_seconds or self.limiting_rows
        if limit is None:
            return text
        pays_for = f", which pays for {text}" if self.budget or self.max_seconds else ""
        return f"{self.limit_name}={limit:g}{pays_for}"

    def budget_text(self, budget: int | None) -> str:
        """Return the beginning of a sentence about a budget in evaluations, for messages."""
        limit = "" if self.limiting_rows is None else f"With max_model_rows={self.limiting_rows}, "
        return f"{limit}{self.budget_name}={budget}"

    @property
    def needs_errors(self) -> bool:
        """Whether the estimate needs standard errors."""
        return self.with_errors or self.trace or self.tolerance is not None


def default_budget(n_players: int, with_tolerance: bool = False) -> int:
    """Return the evaluations for each row by default.

    Up to 10 players, those of all coalitions, at least 500; then 16 per player, at least 500.
    Twenty times as many with a tolerance, which ends most rows earlier.
    """
    budget = max(500, 16 * n_players) * (20 if with_tolerance else 1)
    return max(budget, 2**n_players) if n_players <= ENUMERATED_BY_DEFAULT else budget


def fewer_players(n_players: int, shape: tuple[int, ...], superpixels: str) -> str:
    """Return how to have fewer players: by superpixels where the numbers of an image are players.

    Parameters
    ----------
    n_players : int
        The number of players.
    shape : tuple of int
        The shape of their input.
    superpixels : str
        What makes 50 superpixels in the host.
    """
    if n_players <= _MANY_NUMBERS or len(shape) not in (2, 3):
        return FEWER_PLAYERS
    return (
        f"Explain superpixels instead of the {n_players} numbers of an image: {superpixels} takes "
        f"{default_budget(50)} evaluations of each image by default"
    )


@dataclass(frozen=True)
class RowBudget:
    """The evaluations of each row with a certain number of active players.

    The players of the row alone decide, so that other rows have no influence.

    Attributes
    ----------
    n_players : int
        The number of active players, m.
    limit : int
        The evaluations that a row may have.
    minimum : int
        The evaluations that an estimate needs; all 2^m where a row is enumerated in any case.
    first_check : int
        The evaluations after which a row may stop for the first time: `limit` without a tolerance.
    can_enumerate : bool
        Whether the limit pays for all coalitions, so that a row may be enumerated in the end.
    enumerates_now : bool
        Whether a row is enumerated from the start.
    """

    n_players: int
    limit: int
    minimum: int
    first_check: int
    can_enumerate: bool
    enumerates_now: bool

    @property
    def first_limit(self) -> int:
        """The evaluations up to which a row is estimated until a tolerance is met.

        Beyond half of all coalitions, all are evaluated, if the limit pays for them.
        """
        return max(self.first_check, 2 ** (self.n_players - 1))


def budget_for(n_players: int, estimator: Estimator[Any], settings: Settings) -> RowBudget:
    """Return the budget of rows with `n_players` active players."""
    n_all = 2**n_players
    has_tolerance = settings.tolerance is not None
    limit = settings.budget
    if limit is None:
        limit = default_budget(n_players, has_tolerance)
        limit //= 2 if settings.saves_rows and n_players > ENUMERATED_BY_DEFAULT else 1
        if estimator.has_unions:  # which has use for any budget, however many players there are
            limit = min(limit, default_budget(_MOST_SPLIT_BY_DEFAULT, has_tolerance))
    # Estimators on graphs estimate other values than enumeration does.
    can_enumerate = not estimator.needs_graph and n_all <= limit
    if can_enumerate and (not has_tolerance or needs_enumeration(estimator, settings)):
        return RowBudget(n_players, limit, n_all, limit, True, True)
    minimum = min(n_all, estimation_cost(n_players, estimator, settings))
    if settings.budget is None and n_all > limit:
        limit = max(limit, minimum)
    first_check = limit
    if has_tolerance:
        least = max(_FIRST_CHECK * minimum, 4 * n_players, estimator.first_check(n_players))
        first_check = min(limit, least)
    enumerates_now = can_enumerate and n_all <= first_check
    return RowBudget(n_players, limit, minimum, first_check, can_enumerate, enumerates_now)


def needs_enumeration(estimator: Estimator[Any], settings: Settings) -> bool:
    """Return whether only the values of all coalitions give the interactions asked for."""
    request = settings.interactions
    return request is not None and not estimator.has_interactions(request)


def estimation_cost(n_players: int, estimator: Estimator[Any], settings: Settings) -> int:
    """Return the evaluations for an estimate, and for the scores that come from differences."""
    cost = estimator.minimum_budget(n_players, settings.needs_errors)
    if settings.interactions is not None:
        cost = max(cost, estimator.interaction_budget(n_players))
    source = estimator.score_source
    if isinstance(source, str) and source == "difference":
        cost += n_players * (n_players + 1) // 2
    return int(cost)


def checked_budgets(
    n_active: IntArray, estimator: Estimator[Any], settings: Settings
) -> dict[int, RowBudget]:
    """Return the budget for each number of active players, before anything is evaluated.

    Budgets of estimators that need a graph are checked when their designs are made.

    Raises
    ------
    BudgetError
        If a budget is too small for a row, or its design needs more memory than there is.
    """
    budgets = {size: budget_for(size, estimator, settings) for size in np.unique(n_active).tolist()}
    for n_players, budget in budgets.items():
        n_evaluations = min(budget.limit, 2**n_players)  # no coalition is evaluated twice
        if estimator.needs_graph:
            if n_players < max(budgets):
                continue
            # A small graph may need less than a large budget pays for.
            n_evaluations = min(n_evaluations, default_budget(n_players))
        elif budget.can_enumerate and n_players > MAX_PLAYERS:
            raise BudgetError(
                f"{settings.budget_text(settings.budget)} pays for all 2^{n_players} = "
                f"{2**n_players} coalitions of a row of {n_players} players, but enumeration is "
                f"limited to {MAX_PLAYERS} players. Lower {settings.limit_name}, and coalitions "
                f"are drawn; the default is {default_budget(n_players)}. {settings.fewer_players} "
                "for exact values."
            )
        elif budget.enumerates_now:
            continue
        elif budget.limit < budget.minimum:
            exact = f"; {2**n_players} make it exact" if n_players <= 20 else ""
            raise BudgetError(
                f"{settings.budget_text(settings.budget)} is too small: {settings.name} needs at "
                f"least {budget.minimum} evaluations for a row of {n_players} players"
                f"{' to estimate standard errors' if settings.with_errors else ''}{exact}.",
                budget.minimum,
            )
        needed, limit = estimator.memory(n_players, n_evaluations), memory_limit()
        without = needed / 2**30
        if settings.interactions is not None:
            needed += estimator.interaction_memory(n_players, n_evaluations, settings.interactions)
        if needed > limit:
            remedy = f"{settings.fewer_players}, or lower {settings.limit_name}."
            if settings.interactions is not None:
                remedy += f" Without interactions, it needs about {without:.3g} GiB."
            raise BudgetError(
                f"{settings.name} needs about {needed / 2**30:.3g} GiB of memory for {n_players} "
                f"players and {n_evaluations} evaluations per row. At most "
                f"{limit / 2**30:.3g} GiB, half of the memory, may be used. {remedy}"
            )
    return budgets


def memory_error(n_players: int, settings: Settings) -> BudgetError:
    """Return the error for coalitions of a graph that do not fit into memory."""
    budget, limit = settings.budget, memory_limit()
    cause = f"{settings.budget_text(budget)} is too large: " if budget else ""
    return BudgetError(
        f"{cause}{settings.name} needs more than {limit / 2**30:.3g} GiB, half of the memory, for "
        f"the coalitions of {n_players} players on their graph. Lower {settings.limit_name} or the "
        f"order, if any. "
        f"{settings.fewer_players}."
    )


def refuse_long_rows(budget: RowBudget, estimator: Estimator[Any], settings: Settings) -> None:
    """Refuse rows that take more than ten minutes each, before anything is evaluated.

    Raises
    ------
    BudgetError
        If a row takes so long.
    """
    if budget.enumerates_now or settings.max_seconds is not None:
        return
    n_evaluations = min(budget.limit, 2**budget.n_players)
    operations = estimator.operations(budget.n_players, n_evaluations)
    once = operations.once / OPERATIONS_PER_SECOND
    per_row = operations.per_row / OPERATIONS_PER_SECOND
    if once + per_row > _MOST_SECONDS:
        raise BudgetError(
            f"{settings.name} computes about {rounded_seconds(per_row)} for each row and "
            f"{rounded_seconds(once)} once for all rows, for {budget.n_players} players and "
            f"{n_evaluations} evaluations per row (one core). At most {_MOST_SECONDS:.0f} s may "
            f"be used for a row. Random orders take a few seconds. {settings.fewer_players}, or "
            f"lower {settings.limit_name}."
        )


def rounded_seconds(seconds: float) -> str:
    """Return seconds with two digits, and no more precise than the estimate is."""
    return f"{max(1.0, float(f'{seconds:.1e}')):,.0f} s"
