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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array_types import AttributionArray, FloatArray
from .absolute_values import bias_bounds, corrected_absolute, slopes

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
