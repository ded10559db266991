"""The values that a network is validated by, at a bounded share of the training's evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..array_types import IntArray, ValueArray
from ..estimators.odd_gp.estimator import OddGP
from ..pipeline.estimate import estimate
from ..pipeline.settings import Settings
from .training_rows import SomeRows, TrainingRows

if TYPE_CHECKING:
    from .training import Training

_SHARE = 0.25
"""Of the training's evaluations: as many at most are spent on the values of held-out rows."""

_EXACT_PLAYERS = 12
"""Up to here, the values are exact where the share pays for it."""

_FEWEST_ROWS = 16
"""The error of fewer rows says little about epochs; they are valued whatever the share."""


@dataclass(frozen=True)
class HeldOutValues:
    """Shapley values of held-out rows.

    Attributes
    ----------
    rows : array, (n,)
        The rows that have values.
    values : array, (n, M, K)
        Exact or estimated values.
    evaluations : int
        What they cost.
    """

    rows: IntArray
    values: ValueArray
    evaluations: int


def held_out_values(
    rows: TrainingRows, held_out: IntArray, training: Training, n_kept: int
) -> HeldOutValues:
    """Return values of held-out rows, of a random part of them where all would cost too much."""
    planned = training.evaluations_in_all(rows.game.n_players, n_kept)
    budget, n_rows = training.validation_evaluations, len(held_out)
    if budget is None:
        budget, n_rows = _affordable(_SHARE * planned, rows.game.n_players, len(held_out))
    order = np.random.default_rng([training.seed, 6]).permutation(len(held_out))
    valued = np.sort(held_out[order[:n_rows]])
    # Weights learned for each row would take most of the time; who asks for a budget gets them.
    estimator = OddGP("equal" if training.validation_evaluations is None else "learned")
    settings = Settings(
        seed=training.seed,
        budget=budget,
        budget_name="validation_evaluations",
        name=rows.progress.description("values of held-out rows"),
        progress_delay=rows.progress.remaining_delay,
        is_for_training=True,
    )
    found = estimate(SomeRows(rows.game, valued), estimator, settings)
    return HeldOutValues(valued, found.values, int(found.evaluations.sum()))


def _affordable(total: float, n_players: int, n_held_out: int) -> tuple[int, int]:
    """Return the evaluations of a row, and how many rows can have them, for a total.

    Fewer evaluations of each row come first, down to 8 a player; then fewer rows.
    """
    most = 2**n_players if n_players <= _EXACT_PLAYERS else 32 * n_players
    least = min(most, max(64, 8 * n_players))
    budget = int(np.clip(total // n_held_out, least, most))
    n_rows = max(int(total // budget), _FEWEST_ROWS)
    return budget, min(n_held_out, n_rows)
