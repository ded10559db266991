"""More rows to train on: two real ones each, player by player."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..array_types import IntArray


def crossed_rows(
    rows: npt.NDArray[np.generic], players: IntArray, n_crossed: int, seed: int
) -> npt.NDArray[np.generic]:
    """Return rows, (n, …), in which each player is as in one or the other of two rows.

    What is learned are the values of a model, which are as right for rows that never occurred: a
    network that has seen more of them errs less on those that do.

    Parameters
    ----------
    rows : array, (R, …)
        The real rows.
    players : array, (size of one row,)
        The player of each number.
    n_crossed : int
        How many to make.
    seed : int
        Seed of the choice of rows and players.
    """
    rng = np.random.default_rng([seed, 3])
    first, second = rng.integers(0, len(rows), size=(2, n_crossed))
    is_first = rng.random((n_crossed, int(players.max()) + 1)) < 0.5
    chosen = is_first[:, players].reshape(n_crossed, *rows.shape[1:])
    made: npt.NDArray[np.generic] = np.where(chosen, rows[first], rows[second])
    return made
