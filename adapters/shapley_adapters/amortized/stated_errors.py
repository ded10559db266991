"""Standard errors of a network's attributions, from its errors on held-out rows.

A network has larger errors on rows that are unlike the training rows. Two numbers tell how unlike a
row is: its distance to the nearest training row, and its efficiency gap v(N) − v(∅) − Σφ, which is
the sum of the errors. The values of held-out rows give the size of errors near the training rows.
The gaps of artificial rows, which cost one or two evaluations each, tell how errors grow with the
distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special

from ..array_types import AttributionArray, BoolArray, FloatArray, IntArray, ValueArray

_FREEDOM = 5.0
"""Degrees of freedom of the t distribution in the fits, so that single outliers have little
influence."""

_PRIOR_SLOPE, _PRIOR_SLOPE_BEYOND, _PRIOR_DEVIATION, _STEEPEST = 1.0, 2.0, 1.5, 6.0
"""How errors grow with the distance: prior means, their standard deviation, and the bound."""

_CHOICES_OF_FREEDOM = np.array([2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 30.0, 100.0])

_SMALLEST_DISTANCE = 0.25
"""Smaller distances, relative to the usual one, count as this distance: such a row is a copy."""

_FAR = 2.0
"""Rows at more than this many times the 95 % quantile of the held-out rows' distances are far."""

_LARGEST_EXPONENT = 200.0
"""Variances grow by at most this power of e, so that errors and their squares are finite."""

_PSEUDO_ROWS = 2.0
"""Rows with the errors of a mean player, which are added to those of each player."""


@dataclass(frozen=True)
class RowsWithErrors:
    """What is known about some rows with values.

    Attributes
    ----------
    distances : array, (R,)
        Distance to the nearest training row.
    gaps : array, (R, K)
        Efficiency gaps.
    errors : array, (R, M, K)
        Differences between the network's attributions, made efficient, and the values.
    variances : array, (R, M, K)
        Squared standard errors of the values.
    active : array, (R, M)
        The players that can change the value.
    """

    distances: FloatArray
    gaps: ValueArray
    errors: AttributionArray
    variances: AttributionArray
    active: BoolArray


@dataclass(frozen=True)
class StatedErrors:
    """How large a network's errors are, by distance and efficiency gap.

    The variance of an error is the mean square of the player's errors on held-out rows, times a
    growth with the distance, times a factor that rises with the square of the row's own gap.

    Attributes
    ----------
    sizes : array, (M, K)
        Root mean square of each player's errors on held-out rows.
    gap_sizes : tuple of float, (K,)
        Root mean square of the gaps on held-out rows.
    usual, largest : float
        The median and the 95 % quantile of the held-out rows' distances to training rows.
    slope, slope_beyond : float
        The power of the distance with which errors grow, up to `largest` and beyond it.
    gap_weight : float
        How many gaps the knowledge from the held-out rows is worth, beside the row's own.
    scale : float
        A factor of all errors, by which intervals contain 95 % of the held-out values.
    freedom : float
        Degrees of freedom of the errors.
    """

    sizes: FloatArray
    gap_sizes: tuple[float, ...]
    usual: float
    largest: float
    slope: float
    slope_beyond: float
    gap_weight: float
    scale: float
    freedom: float

    @classmethod
    def fit(
        cls, held_out: RowsWithErrors, distances: FloatArray, gaps: ValueArray, rounding: FloatArray
    ) -> StatedErrors:
        """Learn the sizes from held-out rows, and the growth also from other rows.

        Parameters
        ----------
        held_out : RowsWithErrors
            Rows like the training rows, with values.
        distances, gaps : arrays, (R,) and (R, K)
            Those of other rows, at any distance.
        rounding : array, (K,)
            Rounding errors of each output.
        """
        usual = max(float(np.median(held_out.distances)), 1e-6)
        largest = max(float(np.quantile(held_out.distances, 0.95)), usual)
        gap_sizes = np.maximum(np.sqrt((held_out.gaps**2).mean(axis=0)), rounding)
        sizes = np.maximum(_sizes(held_out), rounding)
        first = cls(sizes, tuple(gap_sizes.tolist()), usual, largest, 0.0, 0.0, 1.0, 1.0, _FREEDOM)
        all_distances = np.concatenate([held_out.distances, distances])
        all_gaps = np.concatenate([held_out.gaps, gaps])
        slope, slope_beyond = first._fitted_slopes(all_distances, all_gaps)
        grown = replace(first, slope=slope, slope_beyond=slope_beyond)
        return grown._calibrated(held_out)

    def row_errors(self, distances: FloatArray, gaps: ValueArray, active: BoolArray) -> FloatArray:
        """Return standard errors, (R, M, K), of attributions that were made efficient.

        Gaps that are NaN say nothing. Players that cannot change the value have no error, nor has
        the only one that can, whose attribution is v(N) − v(∅).
        """
        factors = np.sqrt(self._factors(distances, gaps))
        errors: FloatArray = self.scale * factors[:, None, None] * self.sizes
        return errors * _uncertain(active)[:, :, None]

    def raw_row_errors(self, distances: FloatArray, active: BoolArray) -> FloatArray:
        """Return standard errors, (R, M, K), of attributions as the network predicts them.

        Their sum misses v(N) − v(∅) by the gap, an equal part of which is in each attribution.
        """
        no_gaps = np.full((len(distances), len(self.gap_sizes)), np.nan)
        shares = np.array(self.gap_sizes) / np.maximum(active.sum(axis=1), 1)[:, None]  # (R, K)
        shares *= np.sqrt(self._growth(distances))[:, None]
        errors: FloatArray = np.hypot(self.row_errors(distances, no_gaps, active), shares[:, None])
        return errors * active[:, :, None]

    def far_rows(self, distances: FloatArray) -> IntArray:
        """Return the rows that are far from the training rows, from distances, (R,)."""
        return np.flatnonzero(distances > _FAR * self.largest)

    def _distances(self, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return logarithms of squared distances, up to the largest held-out one and beyond."""
        up_to = np.clip(distances, _SMALLEST_DISTANCE * self.usual, self.largest)
        beyond = np.maximum(distances / self.largest, 1.0)
        return 2 * np.log(up_to / self.usual), 2 * np.log(beyond)

    def _growth(self, distances: FloatArray) -> FloatArray:
        """Return the factor of variances by the distance."""
        near, far = self._distances(distances)
        exponents = self.slope * near + self.slope_beyond * far
        return np.exp(np.clip(exponents, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))

    def _relative_gaps(self, gaps: ValueArray) -> FloatArray:
        """Return the mean square of each row's gaps, relative to the held-out ones."""
        return ((gaps / np.array(self.gap_sizes)) ** 2).mean(axis=1)

    def _factors(self, distances: FloatArray, gaps: ValueArray) -> FloatArray:
        """Return the factor of variances of each row, (R,)."""
        growth, weight = self._growth(distances), self.gap_weight
        relative = self._relative_gaps(gaps) / growth
        relative = np.where(np.isnan(relative), 1.0, relative)
        return growth * (weight + relative) / (weight + 1)

    def _fitted_slopes(self, distances: FloatArray, gaps: ValueArray) -> tuple[float, float]:
        """Return the slopes by which the gaps grow with the distances."""
        near, far = self._distances(distances)
        squares = np.maximum(self._relative_gaps(gaps), 1e-12)
        prior = np.array([_PRIOR_SLOPE, _PRIOR_SLOPE_BEYOND])

        def misfit(parameters: FloatArray) -> float:
            level, slopes = parameters[0], parameters[1:]
            logs = level + slopes[0] * near + slopes[1] * far
            penalty = (((slopes - prior) / _PRIOR_DEVIATION) ** 2).sum() / 2
            return _misfit(squares, logs) + float(penalty)

        bounds = [(None, None), (0.0, _STEEPEST), (0.0, _STEEPEST)]
        _, slope, slope_beyond = _minimum(misfit, [0.0, *prior], bounds)
        return slope, slope_beyond

    def _calibrated(self, held_out: RowsWithErrors) -> StatedErrors:
        """Return the errors with the weight of gaps, the scale and the degrees of freedom."""
        others = _sizes_without_each(held_out, self.sizes)
        is_used = np.broadcast_to(_uncertain(held_out.active)[:, :, None], held_out.errors.shape)
        squares = np.maximum(held_out.errors**2, 1e-30)
        n_independent = np.sqrt(held_out.errors.shape[1] * held_out.errors.shape[2])

        def variances(level: float, log_weight: float) -> FloatArray:
            weighted = replace(self, gap_weight=float(np.exp(log_weight)))
            factors = weighted._factors(held_out.distances, held_out.gaps)
            stated: FloatArray = np.exp(level) * factors[:, None, None] * others
            return np.maximum(stated + held_out.variances, 1e-30)

        def misfit(parameters: FloatArray) -> float:
            logs = np.log(variances(*parameters))
            # The errors of a row are not independent.
            of_errors = _misfit(squares[is_used], logs[is_used]) / n_independent
            return float(of_errors + (parameters[1] - 1.0) ** 2 / 2)

        level, log_weight = _minimum(misfit, [0.0, 1.0], [(-3.0, 3.0), (-2.0, 4.0)])
        relative = np.sqrt(squares / variances(level, log_weight))[is_used]
        scale, freedom = _student(relative)
        return replace(
            self,
            gap_weight=float(np.exp(log_weight)),
            scale=float(np.exp(level / 2)) * scale,
            freedom=freedom,
        )


def _minimum(
    misfit: Callable[[FloatArray], float],
    start: list[float],
    bounds: list[tuple[float | None, float | None]],
) -> list[float]:
    fitted = optimize.minimize(misfit, np.array(start), method="L-BFGS-B", bounds=bounds)
    return [float(parameter) for parameter in fitted.x]


def _misfit(squares: FloatArray, log_variances: FloatArray) -> float:
    """Return the negative log-likelihood of a t distribution, for squared deviations."""
    tails = (_FREEDOM + 1) / 2 * np.log1p(squares / np.exp(log_variances) / _FREEDOM)
    return float((log_variances / 2 + tails).sum())


def _uncertain(active: BoolArray) -> BoolArray:
    """Return which players have errors: the active ones of rows with more than one of them."""
    return active & (active.sum(axis=1) > 1)[:, None]


def _mean_squares(rows: RowsWithErrors) -> tuple[FloatArray, FloatArray]:
    """Return the squared errors less those of the values, (R, M, K), and which ones count."""
    counts = _uncertain(rows.active)[:, :, None].astype(np.float64)
    return (rows.errors**2 - rows.variances) * counts, counts


def _sizes(rows: RowsWithErrors) -> FloatArray:
    """Return the root mean square of the errors of each player, (M, K)."""
    squares, counts = _mean_squares(rows)
    pooled = squares.sum(axis=(0, 1)) / max(float(counts.sum()), 1.0)
    smallest = 1e-4 * (rows.errors**2).mean(axis=(0, 1))
    mean = (squares.sum(axis=0) + _PSEUDO_ROWS * pooled) / (counts.sum(axis=0) + _PSEUDO_ROWS)
    return np.sqrt(np.maximum(mean, np.maximum(smallest, 1e-30)))


def _sizes_without_each(rows: RowsWithErrors, sizes: FloatArray) -> FloatArray:
    """Return mean squares of errors, (R, M, K), each from all rows but its own."""
    squares, counts = _mean_squares(rows)
    n_rows = counts.sum(axis=0) + _PSEUDO_ROWS
    others = (sizes**2 * n_rows - squares) / np.maximum(n_rows - counts, 1.0)
    return np.maximum(others, 0.05 * sizes**2)


def _student(relative: FloatArray) -> tuple[float, float]:
    """Return scale and degrees of freedom by which 68 and 95 % intervals contain their share."""
    if not len(relative):
        return 1.0, _FREEDOM
    middle, far = np.quantile(relative, [0.6827, 0.9545])
    expected = special.stdtrit(_CHOICES_OF_FREEDOM, 0.97725) / special.stdtrit(
        _CHOICES_OF_FREEDOM, 0.84135
    )
    index = int(np.argmin(np.abs(expected - far / max(float(middle), 1e-12))))
    freedom = float(_CHOICES_OF_FREEDOM[index])
    return float(far / special.stdtrit(freedom, 0.97725)), freedom
