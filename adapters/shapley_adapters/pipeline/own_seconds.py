"""Rows that take so long beside the model that they are refused."""

from __future__ import annotations

from typing import Any

from ..errors import BudgetError
from ..estimators.protocol import Estimator
from .budgets import FEWER_PLAYERS, RowBudget
from .settings import Settings

MANY_ENTRIES = 10**7
"""No estimator computes for a minute where the coalitions have fewer entries than this: some 2 µs
for each, with learned weights and a curved model."""

_PER_SECOND = 1e10
"""Operations of one core in a second, as measured with products of large matrices."""

_MOST_SECONDS = 600.0
"""Beyond how many seconds for a row a call is refused."""


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
    once, per_row = operations.once / _PER_SECOND, operations.per_row / _PER_SECOND
    if once + per_row > _MOST_SECONDS:
        raise BudgetError(
            f"{settings.name} computes about {rounded_seconds(per_row)} for each row and "
            f"{rounded_seconds(once)} once for all rows, for {budget.n_players} players and "
            f"{n_evaluations} evaluations per row (one core). At most {_MOST_SECONDS:.0f} s may "
            f"be used for a row. Random orders take a few seconds. {FEWER_PLAYERS}, or lower "
            f"{settings.budget_name}."
        )


def rounded_seconds(seconds: float) -> str:
    """Return seconds with two digits, and no more precise than the estimate is."""
    return f"{max(1.0, float(f'{seconds:.1e}')):,.0f} s"
