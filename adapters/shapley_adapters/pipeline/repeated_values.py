"""Whether a model gives the same value for the same input again."""

from __future__ import annotations

import numpy as np

from ..array_types import IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import warn_user
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from .settings import Settings

_DIFFERENCE = 2.0**-8
"""Share of the largest value by which repeated values may differ. Many models compute with reduced
precision inside, and then differ that much between batches of different sizes."""

_ROUNDINGS = 8
"""Rounding errors of the output by which they may differ, where that is more."""


def check_repeated_values(
    game: Game,
    settings: Settings,
    rows: IntArray,
    ends: ValueArray,
    largest: float,
    evaluations: IntArray,
) -> int:
    """Warn where two values of the same input differ; return the evaluations that this took.

    At most two, if the rows' budgets still pay for them; the default budget is no limit. Models in
    training mode are not checked, because the hosts warn of them.

    Parameters
    ----------
    game : Game
        The games of all rows.
    settings : Settings
        The settings of the run, after its estimate.
    rows : array, (R,)
        The rows that have players.
    ends : array, (R, 2, K)
        Their values of the empty coalition and of all players.
    largest : float
        The largest value, regardless of signs.
    evaluations : array, (R,)
        The evaluations of each of these rows.
    """
    if len(rows) == 0 or getattr(game, "is_in_training_mode", False):
        return 0
    n_affordable, budget = 2, settings.budget
    if budget is not None:
        budget = min(budget, int(evaluations.max()) + 2)  # NumPy's integers are bounded
        n_affordable = min(2, int(np.maximum(budget - evaluations, 0).sum()))
    evaluate = Evaluator(game, settings.batch_size)
    allowed = max(_DIFFERENCE, _ROUNDINGS * getattr(game, "rounding", 0.0)) * largest
    # All players first: without any input, a random part of the model may have no effect.
    coalitions = end_points(game.n_players)[::-1][:n_affordable]
    pairs = []
    for coalition, first in zip(coalitions, ends[0, ::-1], strict=False):
        # Each is evaluated alone: rows of a batch may influence each other.
        table = CoalitionTable(coalition[None, None], np.array([1]))
        pairs.append((first, evaluate([Request(rows[:1], table)])[0][0, 0]))
    if getattr(game, "has_common_empty_value", False):
        pairs.append((ends[:, 0].min(axis=0), ends[:, 0].max(axis=0)))
    for first, second in pairs:
        if (np.abs(first - second) > allowed).any():
            _warn(first, second)
            break
    return len(coalitions)


def _warn(first: ValueArray, second: ValueArray) -> None:
    output = int(np.abs(first - second).argmax())
    warn_user(
        f"The model is not deterministic: it returned {first[output]:.6g} and {second[output]:.6g} "
        "for the same input. The explanation holds that noise, and need not sum to the model's "
        "output. Switch off the random parts of the model (model.eval() for dropout), let it start "
        "from a fixed seed in each call, or average many outputs inside it. If its rows influence "
        "each other within a batch, as in batch normalisation, explain one that treats each row "
        "alone.",
        subject="repeated values",
    )
