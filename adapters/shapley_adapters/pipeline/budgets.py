"""The number of evaluations per row: its limit, its minimum, and its value at the first check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..array_types import IntArray
from ..errors import BudgetError
from ..estimators.exact import MAX_PLAYERS
from ..estimators.protocol import Estimator
from ..memory_bounds import memory_limit
from .settings import Settings

_FIRST_CHECK = 4
"""The first check for the tolerance comes after so many times the minimum. Errors estimated from
fewer evaluations are often too small, and a row that stops then stops too early."""


FEWER_PLAYERS = "Group features (groups= or a coarser masker in shap, feature_mask in captum)"


ENUMERATED_BY_DEFAULT = 10
"""With at most this many players, the default budget pays for all coalitions. It is the number up
to which `shap.Explainer` enumerates by default, so that nobody loses exact values."""


def default_budget(n_players: int, with_tolerance: bool = False) -> int:
    """Return the evaluations for each row by default.

    Up to 10 players, those of all coalitions, at least 500; then 16 per player, at least 500.
    Twenty times as many with a tolerance, which ends most rows earlier.
    """
    budget = max(500, 16 * n_players) * (20 if with_tolerance else 1)
    return max(budget, 2**n_players) if n_players <= ENUMERATED_BY_DEFAULT else budget


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


def budget_for(n_players: int, estimator: Estimator[Any], settings: Settings) -> RowBudget:
    """Return the budget of rows with `n_players` active players."""
    n_all = 2**n_players
    has_tolerance = settings.tolerance is not None
    limit = settings.budget
    if limit is None:
        limit = default_budget(n_players, has_tolerance)
    # Estimators on graphs estimate other values than enumeration does.
    can_enumerate = not estimator.needs_graph and n_all <= limit
    if can_enumerate and (not has_tolerance or needs_enumeration(estimator, settings)):
        return RowBudget(n_players, limit, n_all, limit, True, True)
    minimum = min(n_all, estimation_cost(n_players, estimator, settings))
    if settings.budget is None and n_all > limit:
        limit = max(limit, minimum)
    first_check = limit
    if has_tolerance:
        first_check = min(limit, max(_FIRST_CHECK * minimum, 4 * n_players))
    enumerates_now = can_enumerate and n_all <= first_check
    return RowBudget(n_players, limit, minimum, first_check, can_enumerate, enumerates_now)


def needs_enumeration(estimator: Estimator[Any], settings: Settings) -> bool:
    """Return whether only the values of all coalitions give the interactions asked for."""
    index = settings.interactions
    return index is not None and index not in estimator.interaction_indices


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
    sizes = [int(n_players) for n_players in np.unique(n_active)]
    budgets = {size: budget_for(size, estimator, settings) for size in sizes}
    if estimator.needs_graph:
        _check_memory(budgets[sizes[-1]], estimator, settings)
        return budgets
    for budget in budgets.values():
        _check(budget, estimator, settings)
    return budgets


def _check(budget: RowBudget, estimator: Estimator[Any], settings: Settings) -> None:
    """Refuse a budget that is too small for a row, or too large for any machine."""
    n_players = budget.n_players
    if budget.can_enumerate and n_players > MAX_PLAYERS:
        name = settings.budget_name
        raise BudgetError(
            f"{name}={settings.budget} pays for all 2^{n_players} = {2**n_players} coalitions of a "
            f"row of {n_players} players, but enumeration is limited to {MAX_PLAYERS} players. "
            f"Lower {name}, and coalitions are drawn; the default is {default_budget(n_players)}. "
            f"{FEWER_PLAYERS} for exact values."
        )
    if budget.enumerates_now:
        return
    if budget.limit < budget.minimum:
        exact = f"; {2**n_players} make it exact" if n_players <= 20 else ""
        raise BudgetError(
            f"{settings.budget_name}={settings.budget} is too small: {settings.name} needs at "
            f"least {budget.minimum} evaluations for a row of {n_players} players"
            f"{' to estimate standard errors' if settings.with_errors else ''}{exact}.",
            budget.minimum,
        )
    _check_memory(budget, estimator, settings)


def _check_memory(budget: RowBudget, estimator: Estimator[Any], settings: Settings) -> None:
    """Refuse so many players, or so large a budget, that memory does not suffice."""
    n_players = budget.n_players
    n_evaluations = min(budget.limit, 2**n_players)  # no coalition is evaluated twice
    if estimator.needs_graph:  # a small graph may need less than a large budget pays for
        n_evaluations = min(n_evaluations, default_budget(n_players))
    needed, limit = estimator.memory(n_players, n_evaluations), memory_limit()
    without = needed / 2**30
    if settings.interactions is not None:
        needed += estimator.interaction_memory(n_players, n_evaluations)
    if needed > limit:
        remedy = f"{FEWER_PLAYERS}, or lower {settings.budget_name}."
        if settings.interactions is not None:
            remedy += f" Without interactions, it needs about {without:.3g} GiB."
        raise BudgetError(
            f"{settings.name} needs about {needed / 2**30:.3g} GiB of memory for {n_players} "
            f"players and {n_evaluations} evaluations per row. At most {limit / 2**30:.3g} GiB, "
            f"half of the memory, may be used. {remedy}"
        )


def memory_error(n_players: int, settings: Settings) -> BudgetError:
    """Return the error for coalitions of a graph that do not fit into memory."""
    name, budget, limit = settings.budget_name, settings.budget, memory_limit()
    cause = f"{name}={budget} is too large: " if budget else ""
    return BudgetError(
        f"{cause}{settings.name} needs more than {limit / 2**30:.3g} GiB, half of the memory, for "
        f"the coalitions of {n_players} players on their graph. Lower {name} or the order, if any. "
        f"{FEWER_PLAYERS}."
    )
