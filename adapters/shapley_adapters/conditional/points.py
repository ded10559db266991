"""Random points, from which values of absent features are made."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from ..array_types import BoolArray, FloatArray
from ..games.fingerprints import as_words, fingerprint
from .coalition_cache import CoalitionCache

_BITS = 32

Words = npt.NDArray[np.uint32]
"""Coordinates of points, as multiples of 2⁻³²."""


@dataclass
class ShiftedPoints:
    """Scrambled Sobol points with a random digital shift for each row, coalition and repetition.

    The bits of all points are changed alike at random (L'Ecuyer and Lemieux, 2002). A mean over the
    points is then unbiased, and its error is smaller than that of independent points: measured on
    conditional normal distributions of 6 and 13 features, .3 to .5 of it at 16 points, .14 to .35
    at 64. Without the scrambling, or with shifts modulo 1, it is half as large again.

    Shifts depend on the contents of the row and on the coalition, not on the order in which they
    are asked for. Those of a row and of a coalition are combined by exclusive or, so that the
    points of two rows or of two coalitions are independent. Without present features, all rows
    share the points, and have the same value.

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
    _points: Words = field(init=False, repr=False)
    _shifts: CoalitionCache = field(init=False, repr=False)

    def __post_init__(self) -> None:
        scrambled = qmc.Sobol(self.n_features, seed=np.random.default_rng([self.seed, 2]))
        n_all = 1 << (self.n_draws - 1).bit_length()  # SciPy warns of other numbers
        points = scrambled.random(n_all)[: self.n_draws]
        self._points = np.floor(points * 2.0**_BITS).astype(np.uint32)
        self._shifts = CoalitionCache(self._drawn_shifts)

    def row_shift(self, row: npt.NDArray[np.generic]) -> Words:
        """Return the shift, (D,), of a row, from a digest of its contents."""
        return self._shift(1, *as_words([fingerprint(row)])[0].tolist())

    def __call__(self, masks: BoolArray, row_shift: Words, repeat: int) -> FloatArray:
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
        shifts = np.where(masks.any(axis=1, keepdims=True), shifts ^ row_shift, shifts)
        dimensions = np.maximum(np.cumsum(~masks, axis=1) - 1, 0)  # (P, D)
        words = self._points.T[dimensions].swapaxes(1, 2) ^ shifts[:, None]
        points: FloatArray = (words + 0.5) * 2.0**-_BITS  # the middle of their cells: never 0 or 1
        return points

    def _drawn_shifts(self, keys: npt.NDArray[np.int64]) -> Words:
        """Return the shifts of repetitions and coalitions, (n, D)."""
        bits = np.packbits(keys[:, 1:] == 1, axis=1)
        return np.array(
            [
                self._shift(0, repeat, *of_coalition)
                for repeat, of_coalition in zip(keys[:, 0].tolist(), bits.tolist(), strict=True)
            ]
        )

    def _shift(self, *words: int) -> Words:
        rng = np.random.default_rng([self.seed, *words])
        return rng.integers(2**_BITS, size=self.n_features, dtype=np.uint32)
