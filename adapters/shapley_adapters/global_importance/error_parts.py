"""Means over rows, and the parts of their variance.

An estimate for a row is φ(x) + e: the attribution of a random row x, and the error of the random
coalitions. The variance of the mean over R rows is (between + within) / R + constant:

- *between* is the variance of φ(x) over the rows,
- *within* is the variance of e. The variance of the estimates over the sampled rows is the sum of
  both, if the errors of the rows are independent and have mean 0,
- *constant* does not fall with the number of rows. It holds the bias that remains in absolute
  values, a uniform distribution of half width β with variance β²/3. If the errors of the rows do
  not cancel, because rows share their draws or the estimator is biased, it holds the square of the
  mean standard error, as if all rows had the same error.

**Absolute values.** That of an estimate φ + σZ is too large on average: E|φ + σZ| > |φ|, most of
all where φ = 0. No function of the estimate is free of this bias, because |φ| is not smooth at 0
(Cai and Low, 2011). Let F(v) = E|φ + √v Z|. The absolute value estimates F(σ²). Adding noise to the
estimate by calculation gives F(2σ²). Extrapolation to no noise gives F(0) ≈ 2 F(σ²) − F(2σ²). The
bias of this is at most 0.47 σ instead of 0.80 σ, and -0.1 σ to 0 from |φ| = σ on. Where φ has a
smooth density over the rows, the bias of the mean over rows falls from order σ² to order σ⁴.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from ..array_types import AttributionArray, FloatArray

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


KINDS = ("mean_absolute", "mean", "loss")


@dataclass(frozen=True)
class ErrorParts:
    """A mean over rows and the parts of its variance, (M, K) each.

    Attributes
    ----------
    mean : array
        The mean over the rows.
    spread : array
        Variance of the estimates over the rows; NaN for a single row.
    within : array
        The part of `spread` that the random coalitions cause; NaN if it is unknown.
    constant : array
        Variance that does not fall with the number of rows.
    bias_bounds : array
        Half width of the distribution of the bias that remains in a mean of absolute values.
    n_rows : int
        R.
    """

    mean: FloatArray
    spread: FloatArray
    within: FloatArray
    constant: FloatArray
    bias_bounds: FloatArray
    n_rows: int

    @property
    def between(self) -> FloatArray:
        """Variance of the attributions themselves over the rows."""
        return np.maximum(self.spread - np.nan_to_num(self.within), 0.0)

    def variance(self, sampled_share: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Return the variance of the mean, and its degrees of freedom.

        Parameters
        ----------
        sampled_share : float
            The share of the rows of a finite population that are in the sample; 0 if the rows are
            a sample of infinitely many.
        """
        of_rows = self.spread / self.n_rows
        if sampled_share == 1:
            of_rows = self.within / self.n_rows
        elif sampled_share > 0:
            of_rows = (self.spread - sampled_share * self.between) / self.n_rows
        total = of_rows + self.constant
        with np.errstate(divide="ignore", invalid="ignore"):  # Welch and Satterthwaite
            freedom = (self.n_rows - 1) * (total / of_rows) ** 2
        is_unknown = np.isnan(freedom) | (sampled_share == 1)
        return total, np.where(is_unknown, np.inf, freedom)


def error_parts(
    values: AttributionArray, errors: AttributionArray, kind: str, errors_cancel: bool
) -> ErrorParts:
    """Return the mean over rows and the parts of its variance.

    Parameters
    ----------
    values, errors : arrays, (R, M, K)
        Attributions and their standard errors.
    kind : {"mean_absolute", "mean", "loss"}
        Whether to average absolute values, or the attributions themselves.
    errors_cancel : bool
        Whether the errors of the rows are independent and have mean 0.
    """
    is_absolute, n_rows = kind == "mean_absolute", len(values)
    bounds = np.zeros(values.shape[1:])
    if not errors_cancel:
        of_rows = np.abs(values) if is_absolute else values
        within, constant = np.zeros(bounds.shape), errors.mean(axis=0) ** 2
    elif is_absolute:
        of_rows = corrected_absolute(values, errors)
        within = ((slopes(values, errors) * errors) ** 2).mean(axis=0)
        bounds = bias_bounds(values, errors).mean(axis=0)
        constant = bounds**2 / 3
    else:
        of_rows, constant = values, bounds
        within = (errors**2).mean(axis=0)
    unknown = np.full(bounds.shape, np.nan)
    spread = of_rows.var(axis=0, ddof=1) if n_rows > 1 else unknown
    return ErrorParts(of_rows.mean(axis=0), spread, within, constant, bounds, n_rows)
