"""Additional training rows: each player's values come from one of two real rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..array_types import IntArray


def mixed_rows(
    rows: npt.NDArray[np.generic], players: IntArray, n_mixed: int, seed: int
) -> npt.NDArray[np.generic]:
    """Return rows, (n, …), that take the values of each player from one of two real rows.

    The network learns values of a model, and these are correct for artificial rows too. Training on
    more rows reduces the error on real ones.

    Parameters
    ----------
    rows : array, (R, …)
        The real rows.
    players : array, (size of one row,)
        The player of each number.
    n_mixed : int
        Number of rows to return.
    seed : int
        Seed of the choice of rows and players.
    """
    rng = np.random.default_rng([seed, 3])
    first, second = rng.integers(0, len(rows), size=(2, n_mixed))
    is_first = rng.random((n_mixed, int(players.max()) + 1)) < 0.5
    takes_first = is_first[:, players].reshape(n_mixed, *rows.shape[1:])
    mixed_rows: npt.NDArray[np.generic] = np.where(takes_first, rows[first], rows[second])
    return mixed_rows
