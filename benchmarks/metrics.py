"""The four measures of Wang et al. (ICML 2022), 5.2 and 5.3, one number for each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from coalition_games import BoolArray, FloatArray, IntArray, TabulatedGame

from shapley_adapters import criteria
from shapley_adapters.criteria import absolute_error, ranking_accuracy

__all__ = ["absolute_error", "faithfulness", "monotonicity", "ranking_accuracy"]


def faithfulness(values: FloatArray, game: TabulatedGame) -> FloatArray:
    """Return the correlation of the values with what v(N) loses without each player, (R,)."""
    return criteria.faithfulness(values, _AsGame(game), subset_size=1, n_subsets=game.n_players)


def monotonicity(values: FloatArray, game: TabulatedGame) -> FloatArray:
    """Return how often the next player adds no more than the one before, (R,)."""
    return criteria.monotonicity(values, _AsGame(game))


@dataclass(frozen=True)
class _AsGame:
    """A tabulated game in the form that criteria take."""

    game: TabulatedGame
    evaluations_per_batch: int = 2**16

    @property
    def n_rows(self) -> int:
        return len(self.game.table)

    @property
    def n_players(self) -> int:
        return self.game.n_players

    def active_players(self) -> BoolArray:
        return np.ones((self.n_rows, self.n_players), dtype=bool)

    def __call__(self, rows: IntArray, coalitions: BoolArray) -> FloatArray:
        places = coalitions @ (1 << np.arange(self.n_players))
        return self.game.table[rows, places][:, None]
