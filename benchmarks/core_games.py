"""Games as the core takes them, outside of shap and captum, and how well intervals hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from coalition_games import BoolArray, FloatArray, IntArray, TabulatedGame

import shapley_adapters as core


@dataclass(frozen=True)
class CoreGame(core.Game):
    """A function of rows and coalitions as the core takes games; all players are active.

    Attributes
    ----------
    values_of : callable
        Rows, (P,), and a coalition of each, (P, M), to values, (P,).
    n_players, n_rows : int
        M and R.
    evaluations_per_batch : int
        Evaluations in one call.
    """

    values_of: Callable[[IntArray, BoolArray], FloatArray]
    n_players: int
    n_rows: int
    evaluations_per_batch: int = 1024

    def __call__(self, rows: IntArray, coalitions: BoolArray) -> FloatArray:
        """Return the values, (P, 1)."""
        return self.values_of(rows, coalitions)[:, None]


def core_game(games: TabulatedGame) -> CoreGame:
    """Return tabulated games as the core takes them."""
    powers = 1 << np.arange(games.n_players)
    return CoreGame(
        lambda rows, coalitions: games.table[rows, coalitions @ powers],
        games.n_players,
        len(games.table),
    )


def share_inside(
    found: core.Estimate, exact: FloatArray, confidence: float = 0.95, slack: Any = 1e-9
) -> float:
    """Return the share of exact values, (R, M), in intervals, up to rounding."""
    lower, upper = (bound[:, :, 0] for bound in found.interval(confidence))
    return float(((lower - slack <= exact) & (exact <= upper + slack)).mean())
