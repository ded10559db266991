"""The intervals of an Explanation at the level that a plot draws."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import scipy.special
import shap

from shapley_adapters.arguments import checked_probability
from shapley_adapters.array_types import BoolArray, FloatArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError, warn_user
from shapley_adapters.pipeline.result import percent, quantiles

from ..argument_types import Explanation

_STORED_LEVEL = 0.95
"""The level of `lower_bounds` and `upper_bounds`."""


@dataclass(frozen=True)
class Intervals:
    """Attributions and the distances to the ends of their intervals.

    Attributes
    ----------
    values : array
        The attributions.
    below, above : arrays
        Distances from the attribution to the lower and the upper end, at least 0; NaN where the
        error is unknown.
    """

    values: FloatArray
    below: FloatArray
    above: FloatArray

    @property
    def lower(self) -> FloatArray:
        """The lower ends."""
        return self.values - self.below

    @property
    def upper(self) -> FloatArray:
        """The upper ends."""
        return self.values + self.above

    @property
    def contain_zero(self) -> BoolArray:
        """Whether each interval contains 0; False where the error is unknown."""
        return (self.lower <= 0) & (self.upper >= 0)

    def label(self, kind: str, level: float) -> str:
        """Return what error bars or bands are, or that the attributions have no error."""
        if not (self.below.any() or self.above.any()):
            return "Exact values"
        return f"{kind}: {percent(level)} intervals"

    def mapped(self, change: Callable[[FloatArray], FloatArray]) -> Intervals:
        """Return the intervals whose arrays are those of these, changed alike."""
        return Intervals(*map(change, (self.values, self.below, self.above)))

    def sums(self, members: Collection[Collection[int]]) -> Intervals:
        """Return the intervals of the sums over groups of features, the last axis.

        The distances are summed, too: the error of a sum is at most the sum of the errors, however
        they correlate.
        """
        return self.mapped(
            lambda array: np.stack([array[..., list(group)].sum(-1) for group in members], axis=-1)
        )

    def mean_sizes(self, *, independent_rows: bool = False) -> Intervals:
        """Return the intervals of the mean absolute attributions over the rows, the first axis.

        The absolute value changes by at most the error of the attribution. The error of the mean
        is at most the mean of the errors; with independent rows their squares add up.
        """
        sizes = np.abs(self.values).mean(axis=0)
        errors = np.maximum(self.below, self.above)
        if independent_rows:
            widths = np.sqrt((errors**2).sum(axis=0)) / len(errors)
        else:
            widths = errors.mean(axis=0)
        return Intervals(sizes, np.minimum(widths, sizes), widths)


def intervals_of(
    explanation: Explanation, level: float, plot: str, shapes: dict[int, str], remedy: str
) -> Intervals:
    """Return the intervals of an Explanation, checked for a plot.

    Parameters
    ----------
    explanation : Explanation
        With bounds, or with standard errors only, which then give normal intervals.
    level : float
        The share of cases in which an interval shall contain the true value.
    plot : str
        The name of the plot.
    shapes : dict of int to str
        The numbers of axes that the plot accepts, and a description of each.
    remedy : str
        The advice for values with other axes.
    """
    checked_probability("level", level)
    if not isinstance(explanation, shap.Explanation):
        raise InvalidArgumentTypeError(
            f"plots.{plot} needs a shap.Explanation with bounds; got "
            f"{type(explanation).__name__}. explainer(X, error_bounds=True) returns one."
        )
    values = np.asarray(explanation.values)
    if values.ndim not in shapes or values.dtype == object:
        raise InvalidArgumentError(
            f"plots.{plot} needs attributions of one output with the shape "
            f"{' or '.join(shapes.values())}; got {values.shape}. {remedy}"
        )
    below, above = _distances(explanation, values, level, plot)
    are_unknown = np.isnan(below) | np.isnan(above)
    n_unknown = int(are_unknown.sum())
    if n_unknown and n_unknown == are_unknown.size:
        raise InvalidArgumentError(
            f"plots.{plot} draws error bars, but all standard errors of the Explanation are NaN, "
            "which means unknown: there were too few draws. Pass a larger max_evals."
        )
    if n_unknown:
        warn_user(
            f"{n_unknown} of {are_unknown.size} attributions have no standard error (NaN); they "
            "are drawn without error bars. A larger max_evals gives them one."
        )
    return Intervals(values.astype(np.float64), below, above)


def _distances(
    explanation: Explanation, values: FloatArray, level: float, plot: str
) -> tuple[FloatArray, FloatArray]:
    """Return the distances to the ends of the intervals at a level."""
    lower, upper, errors = (
        None if bounds is None else np.asarray(bounds, dtype=np.float64)
        for bounds in (explanation.lower_bounds, explanation.upper_bounds, explanation.error_std)
    )
    if lower is not None and upper is not None:
        below, above = np.maximum(values - lower, 0), np.maximum(upper - values, 0)
        if level == _STORED_LEVEL:
            return below, above
        if errors is None:
            raise InvalidArgumentError(
                f"level={level} needs standard errors, but the Explanation has only bounds, at "
                f"level {_STORED_LEVEL}. Leave level out, or compute the Explanation with "
                "error_bounds=True."
            )
        scales = _width_ratios(np.maximum(below, above), errors, level)
        return below * scales, above * scales
    if errors is None or errors.shape != values.shape:
        raise InvalidArgumentError(
            f"plots.{plot} draws error bars, but the Explanation has no bounds. Compute them by "
            "explainer(X, error_bounds=True). Operations such as explanation.abs.mean(0) remove "
            "them: pass the Explanation of the rows itself."
        )
    widths = quantiles(level) * errors
    return widths, widths


def _width_ratios(widths: FloatArray, errors: FloatArray, level: float) -> FloatArray:
    """Return the widths of intervals at a level, relative to those at the stored level.

    The widths in standard errors are Student's quantiles and give the degrees of freedom.
    """
    normal = float(quantiles(_STORED_LEVEL))
    with np.errstate(divide="ignore", invalid="ignore"):
        multiples = np.where(errors > 0, widths / errors, normal)
    are_finite = multiples > normal * (1 + 1e-9)
    safe = np.where(are_finite, multiples, 2 * normal)
    freedom = scipy.special.stdtridf((1 + _STORED_LEVEL) / 2, safe)
    freedom = np.where(are_finite, freedom, np.inf)
    return quantiles(level, freedom) / quantiles(_STORED_LEVEL, freedom)
