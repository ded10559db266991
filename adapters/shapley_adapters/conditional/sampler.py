"""Absent features from a function of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..array_types import BoolArray, FloatArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError

SamplingFunction = Callable[[BoolArray, npt.NDArray[Any], int, np.random.Generator], npt.ArrayLike]
"""f(mask, row, n, rng) returns n rows, (n, D)."""


@dataclass
class Sampled:
    """The draws of a function.

    Attributes
    ----------
    function : SamplingFunction
        Draws rows; the values of present features in them are not used.
    """

    function: SamplingFunction

    @classmethod
    def checked(cls, function: object) -> Sampled:
        """Return the distribution of a user's argument."""
        if not callable(function):
            raise InvalidArgumentTypeError(
                "function must be callable as function(mask, row, n, rng) and return n rows; got "
                f"{type(function).__name__}."
            )
        return cls(function)

    def fill(self, row: npt.NDArray[Any], masks: BoolArray, points: FloatArray) -> npt.NDArray[Any]:
        """Return rows whose absent values are those of the function, (P, K, D)."""
        return np.array(
            [self._filled(row, mask, own) for mask, own in zip(masks, points, strict=True)]
        )

    def _filled(
        self, row: npt.NDArray[Any], mask: BoolArray, points: FloatArray
    ) -> npt.NDArray[Any]:
        # The first point is the random shift of the coalition: a seed that no other one has.
        rng = np.random.default_rng(points[0].view(np.uint64).tolist())
        drawn = np.asarray(self.function(mask.copy(), row.copy(), len(points), rng))
        if drawn.shape != points.shape:
            raise InvalidArgumentError(
                f"function must return {len(points)} rows of {len(row)} values, shape "
                f"{points.shape}; it returned shape {drawn.shape}."
            )
        return np.where(mask, row, drawn)
