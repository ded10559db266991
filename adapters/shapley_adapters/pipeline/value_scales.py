"""Solutions of games whose values are so large or so small that squares are no numbers.

Estimators square values for variances, and square these again for degrees of freedom. So values
far from 1 are first multiplied by powers of two, which rounds nothing, and their solutions are
multiplied back. All other values are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..array_types import AttributionArray, FloatArray, IntArray, ValueArray
from ..estimators.protocol import Estimator, Solution
from ..interactions.result import PairSolution

_MOST_EXPONENT = 200
"""Values up to 2 to this power, and down to its reciprocal, have fourth powers that are numbers. So
have differences between them that are rounding."""

_LEAST_EXPONENT = -2000
"""Of values that are all 0: less than that of any number."""


@dataclass(frozen=True)
class ValueScales:
    """Powers of two that bring the values of each row and output near 1.

    Attributes
    ----------
    exponents : array, (R, 1, K)
        The values are 2 to these powers times those that are solved; 0 for ordinary values.
    """

    exponents: IntArray

    @classmethod
    def from_values(cls, values: ValueArray) -> ValueScales:
        """Return the scales for values, (R, n, K).

        Outputs of a row have one scale, unless they are so different that one scale does not serve
        them: a share over all outputs then is the same as before.
        """
        largest = np.maximum(values.max(axis=1), -values.min(axis=1))
        own = np.where(largest > 0, np.frexp(largest)[1], _LEAST_EXPONENT)
        of_row = own.max(axis=1, keepdims=True)
        exponents = np.where(of_row - own <= _MOST_EXPONENT, of_row, own)
        is_extreme = (np.abs(exponents) > _MOST_EXPONENT) & (largest > 0)
        return cls(np.where(is_extreme, exponents, 0)[:, None])

    def near_one(self, values: FloatArray) -> FloatArray:
        """Return values, (R, n, K), or errors, as they are solved."""
        shifted: FloatArray = np.ldexp(values, -self.exponents)
        return shifted

    def original(self, solved: FloatArray) -> FloatArray:
        """Return attributions, (R, M, K), or errors, in the units of the game."""
        shifted: FloatArray = np.ldexp(solved, self.exponents)
        return shifted


def solve_near_one(estimator: Estimator[Any], design: Any, values: ValueArray) -> Solution:
    """Return the solution of an estimator for values, (R, n, K), whatever their scale."""
    scales = ValueScales.from_values(values)
    if not scales.exponents.any():
        return estimator.solve(design, values)
    solution = estimator.solve(design, scales.near_one(values))
    attributions, errors = map(scales.original, (solution.values, solution.standard_errors))
    return replace(solution, values=attributions, standard_errors=errors)


def pairs_near_one(
    solve: Callable[[ValueArray, AttributionArray], PairSolution],
    values: ValueArray,
    errors: AttributionArray,
) -> PairSolution:
    """Return the interactions of pairs that `solve` computes, whatever the scale of the values.

    Parameters
    ----------
    solve : callable
        Values and the standard errors of the attributions to interactions.
    values, errors : arrays, (R, n, K) and (R, M, K)
    """
    scales = ValueScales.from_values(values)
    if not scales.exponents.any():
        return solve(values, errors)
    pairs = solve(scales.near_one(values), scales.near_one(errors))
    arrays = pairs.values, pairs.standard_errors, pairs.main_errors
    return PairSolution(*map(scales.original, arrays))
