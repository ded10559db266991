"""Random points, from which values of absent features are made."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from ..array_types import BoolArray, FloatArray
from ..games.fingerprints import as_words, fingerprint
from .coalition_cache import CoalitionCache

_LEAST = 2.0**-54
"""Points are at least this large: a quantile at 0 may be infinite."""


@dataclass
class ShiftedPoints:
    """Sobol points in the unit cube with a random shift for each row, coalition and repetition.

    A mean over shifted points is unbiased, and its error is much smaller than that of independent
    points (Cranley and Patterson, 1976). Shifts depend on the contents of the row and on the
    coalition, not on the order in which they are asked for. The shift is the sum, modulo 1, of one
    of the row and one of the coalition, so that those of two rows or of two coalitions are
    independent. Without present features, all rows share the points, and have the same value.

    Attributes
    ----------
    n_draws : int
        K, the points of each coalition.
    n_features : int
        D.
    seed : int
        Seed of the shifts.
    """

    n_draws: int
    n_features: int
    seed: int
    _sobol: FloatArray = field(init=False, repr=False)
    _shifts: CoalitionCache = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_all = 1 << (self.n_draws - 1).bit_length()  # SciPy warns of other numbers
        points = qmc.Sobol(self.n_features, scramble=False).random(n_all)[: self.n_draws]
        self._sobol = points
        self._shifts = CoalitionCache(self._drawn_shifts)

    def row_shift(self, row: npt.NDArray[np.generic]) -> FloatArray:
        """Return the shift, (D,), of a row, from a digest of its contents."""
        words = as_words([fingerprint(row)])[0].tolist()
        return np.random.default_rng([self.seed, 1, *words]).random(self.n_features)

    def __call__(self, masks: BoolArray, row_shift: FloatArray, repeat: int) -> FloatArray:
        """Return the points of coalitions of a row, (P, K, D), each coordinate uniform in (0, 1).

        The first coordinates of the Sobol sequence, which are spread best, go to the first absent
        features.

        Parameters
        ----------
        masks : array, (P, D)
            True where the feature is present.
        row_shift : array, (D,)
            Result of `row_shift`.
        repeat : int
            Points of other repetitions are independent.
        """
        keys = np.concatenate([np.full((len(masks), 1), repeat), masks], axis=1)
        shifts = self._shifts(keys.astype(np.int64))
        shifts = shifts + np.where(masks.any(axis=1, keepdims=True), row_shift, 0.0)
        dimensions = np.maximum(np.cumsum(~masks, axis=1) - 1, 0)  # (P, D)
        points: FloatArray = self._sobol.T[dimensions].swapaxes(1, 2) + shifts[:, None]
        points -= np.floor(points)
        return np.clip(points, _LEAST, 1 - _LEAST, out=points)

    def _drawn_shifts(self, keys: npt.NDArray[np.int64]) -> FloatArray:
        """Return the shifts of repetitions and coalitions, (n, D)."""
        return np.array(
            [
                np.random.default_rng([self.seed, 0, *_words(key)]).random(self.n_features)
                for key in keys
            ]
        )


def _words(key: npt.NDArray[np.int64]) -> list[int]:
    """Return a repetition and a coalition as whole numbers for a seed."""
    repeat, *present = key.tolist()
    return [repeat, *np.packbits(np.array(present, dtype=bool)).tolist()]
