"""From a game to attributions, by the road that the settings ask for."""

from __future__ import annotations

from typing import Any

from ..estimators.protocol import Estimator
from ..games.game import Game
from ..row_numbers import first_row
from .choices import estimate_by_cost
from .deadline import estimate_until
from .one_round import estimate_round
from .result import Estimate
from .settings import Settings


def estimate(game: Game, estimator: Estimator[Any], settings: Settings) -> Estimate:
    """Estimate the Shapley values of all rows of `game`.

    A row's result does not depend on the other rows, on their order, on the batch size or on the
    number of workers: all rows share one set of random draws or, with `independent_rows`, each has
    its own. Players that cannot change the value of a row are left out first. Where the budget pays
    for all coalitions of the others, all are evaluated and the result is exact; estimators on
    graphs decide for themselves.

    With `max_seconds`, or an estimator that chooses among several, costs are measured first. The
    rest is the estimate with the budget and the estimator that were chosen, so that the same ones
    and the same seed give the same numbers again.

    In the end two values of one row are computed once more, if a budget has evaluations left or
    the user gave none; a warning says where they differ, because the model is not deterministic.

    Raises
    ------
    InvalidArgumentError
        If the graphs do not fit the rows or their players.
    BudgetError
        If the budget is too small for the estimator, or the time too short.
    WorkerError
        If the model fails in a worker.
    """
    if settings.max_seconds is not None:
        return estimate_until(game, estimator, settings)
    # A part of the user's rows must be explained as all others are, whatever the clock says.
    if first_row() is None and not settings.is_for_training and estimator.candidates:
        return estimate_by_cost(game, estimator, settings)
    first = estimator.candidates[0] if estimator.candidates else estimator
    return estimate_round(game, first, settings)
