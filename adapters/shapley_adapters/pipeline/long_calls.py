"""Our own work where it takes minutes: said before it begins."""

from __future__ import annotations

from typing import Any

from ..errors import warn_user
from ..estimators.least_squares.regression import LeastSquares
from ..estimators.protocol import Estimator
from .budgets import FEWER_PLAYERS, RowBudget
from .costs import Costs
from .own_seconds import rounded_seconds

_MANY_SECONDS = 60.0
"""From this time of our own work on, a warning is given."""

_PARTS = (8, 4)
"""First rows are measured with the budget divided by these numbers."""

_FEW_ROWS = 8
"""From so many rows on, one of them is measured with the whole budget if the call may be long."""


def forecast_own_seconds(costs: Costs, estimator: Estimator[Any], budget: RowBudget) -> None:
    """Forecast our own work by that of the first row, and warn from a minute on.

    The work of the design, of all rows and of all outputs is forecast from smaller budgets and,
    where there are many rows, from one row with the whole budget.
    """
    limit = budget.limit
    for part in _PARTS:
        costs.measure(estimator, max(budget.minimum, limit // part), n_rows=1)
    if costs.own_seconds(estimator, limit) < _MANY_SECONDS / 3:
        return
    if costs.game.n_rows >= _FEW_ROWS:
        costs.measure(estimator, limit, n_rows=1)
    warn_of_long_call(costs, estimator, limit)


def warn_of_long_call(costs: Costs, estimator: Estimator[Any], limit: int) -> None:
    """Warn where measured costs say that our own work takes minutes."""
    settings = costs.settings
    seconds = costs.own_seconds(estimator, limit)
    if seconds < _MANY_SECONDS:
        return
    cheaper = LeastSquares()
    remedy = ""
    if not isinstance(estimator, LeastSquares) and limit >= cheaper.minimum_budget(costs.n_players):
        costs.measure(cheaper, limit, n_rows=1)
        fewer = costs.own_seconds(cheaper, limit)
        if fewer < seconds / 2:
            remedy = f" Least squares would take {rounded_seconds(fewer)}, with larger errors."
    warn_user(
        f"{settings.name} computes for about {rounded_seconds(seconds)} beside the model, for "
        f"{costs.game.n_rows} rows of {costs.n_players} players and {limit} evaluations."
        f"{remedy} {FEWER_PLAYERS}, lower {settings.budget_name}, or pass max_seconds.",
        subject="own seconds",
    )
