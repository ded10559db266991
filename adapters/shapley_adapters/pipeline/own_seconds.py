"""The seconds that an estimator itself computes, where they are minutes: said before they begin."""

from __future__ import annotations

from typing import Any

from ..errors import BudgetError, warn_user
from ..estimators.protocol import Estimator
from .budgets import FEWER_PLAYERS, RowBudget
from .settings import Settings

MANY_ENTRIES = 10**7
"""No estimator computes for a minute where the coalitions have fewer entries than this."""

_PER_SECOND = 1e10
"""Operations of one core in a second, as measured with products of large matrices."""

_MANY_SECONDS, _MOST_SECONDS = 60.0, 600.0
"""From how many seconds for a row on a warning is given, and beyond how many a call is refused."""


def check_own_seconds(budget: RowBudget, estimator: Estimator[Any], settings: Settings) -> None:
    """Warn of rows that take minutes beside the model, and refuse those that take too many.

    With `max_seconds`, the budget fits into the time.

    Raises
    ------
    BudgetError
        If a row takes more than ten minutes.
    """
    if budget.enumerates_now or settings.max_seconds is not None:
        return
    n_evaluations = min(budget.limit, 2**budget.n_players)
    operations = estimator.operations(budget.n_players, n_evaluations)
    once, per_row = operations.once / _PER_SECOND, operations.per_row / _PER_SECOND
    if once + per_row < _MANY_SECONDS:
        return
    work = (
        f"{settings.name} computes about {_rounded(per_row)} s for each row and "
        f"{_rounded(once)} s once for all rows, for {budget.n_players} players and "
        f"{n_evaluations} evaluations per row (one core)"
    )
    remedy = f"Random orders take a few seconds. {FEWER_PLAYERS}, or lower {settings.budget_name}."
    if once + per_row > _MOST_SECONDS:
        raise BudgetError(f"{work}. At most {_MOST_SECONDS:.0f} s may be used for a row. {remedy}")
    warn_user(f"{work}, beside the time of the model. {remedy}", subject="own seconds")


def _rounded(seconds: float) -> str:
    """Return seconds with two digits, and no more precise than the estimate is."""
    return f"{float(f'{seconds:.1e}'):,.0f}"
