"""Absolute values of estimates that have errors, corrected for the bias of the errors.

The absolute value of an estimate φ + σZ is too large on average: E|φ + σZ| > |φ|, most of all where
φ = 0. No function of the estimate is free of this bias, because |φ| is not smooth at 0 (Cai and
Low, 2011). Let F(v) = E|φ + √v Z|. The absolute value estimates F(σ²). Adding noise to the
estimate by calculation gives F(2σ²). Extrapolation to no noise gives F(0) ≈ 2 F(σ²) − F(2σ²).
The bias of this is at most 0.47 σ instead of 0.80 σ, and -0.1 σ to 0 from |φ| = σ on. Where φ has a
smooth density over the rows, the bias of the mean over rows falls from order σ² to order σ⁴.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from ..array_types import FloatArray

LARGEST_BIAS = np.sqrt(2 / np.pi) * (2 - np.sqrt(2))
"""The bias of `corrected_absolute` for φ = 0 and σ = 1: 0.467. It is smaller for all other φ."""

_WIDTH = 0.5
"""Standard deviation of the function of the estimate that bounds the bias, for σ = 1. With the
noise of the estimate, its mean falls like exp(−φ²/2.5), as slowly as the bias."""


def corrected_absolute(values: FloatArray, errors: FloatArray) -> FloatArray:
    """Return estimates of |φ| from unbiased estimates of φ and their standard errors."""
    corrected: FloatArray = 2 * np.abs(values) - folded_mean(values, errors)
    return corrected


def folded_mean(values: FloatArray, errors: FloatArray) -> FloatArray:
    """Return E|x + σZ| for each value x and error σ, the mean of the folded normal."""
    sizes = _sizes(values, errors)
    with np.errstate(under="ignore"):
        density = np.exp(-(sizes**2) / 2) * np.sqrt(2 / np.pi)
    tails = 2 * scipy.special.ndtr(-sizes)
    mean: FloatArray = np.abs(values) * (1 - tails) + errors * density
    return np.where(errors > 0, mean, np.abs(values))


def slopes(values: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the size of the derivative of `corrected_absolute` by the value."""
    slope: FloatArray = 1 + 2 * scipy.special.ndtr(-_sizes(values, errors))
    return np.where(errors > 0, slope, 1.0)


def bias_bounds(values: FloatArray, errors: FloatArray) -> FloatArray:
    """Return numbers whose mean is about the largest bias that `corrected_absolute` may have.

    For φ = 0 their expectation is that bias.
    """
    height = LARGEST_BIAS * np.sqrt(1 + _WIDTH**2) / _WIDTH
    with np.errstate(under="ignore"):
        bounds: FloatArray = height * errors * np.exp(-((_sizes(values, errors) / _WIDTH) ** 2) / 2)
    return bounds


def _sizes(values: FloatArray, errors: FloatArray) -> FloatArray:
    """Return |x|/σ; infinite where σ = 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        sizes = np.abs(values) / errors
    return np.where(errors > 0, sizes, np.inf)
