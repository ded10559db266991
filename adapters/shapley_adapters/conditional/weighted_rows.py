"""Absent features taken together from one row of the data, the more often the better it fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..array_types import BoolArray, FloatArray
from ..errors import InvalidArgumentError, warn_user
from ..workers import one_blas_thread
from .draws import CoalitionCache, Filled, LogRatios, named_column
from .gaussian import Gaussian
from .refits import N_FITS

_WEIGHTS_AT_ONCE = 2**22
"""Weights of rows for coalitions that are in memory at a time."""

_UNDERFLOW = 700.0
"""Weights are exponentials of minus this number, and 0 in double precision, beyond it."""

_MOST_DIFFERENT = 0.5
"""A column with more different values than this share of the rows has no categories."""


@dataclass
class WeightedRows(ABC):
    """A distribution on the rows of the data, with weights that depend on the present features.

    Attributes
    ----------
    data : array, (N, D)
        The rows, of any type.
    """

    data: npt.NDArray[Any]

    @abstractmethod
    def weights(self, row: npt.NDArray[Any], masks: BoolArray) -> FloatArray:
        """Return the weights of the data, (P, N), not all 0, for coalitions of a row."""

    def refitted(self, rng: np.random.Generator) -> LogRatios:
        """Return the log-ratios of draws where rows of the data count more or less.

        What the weights of rows are a function of, such as trees, stays as it is.
        """
        more = rng.normal(size=(len(self.data), N_FITS))
        return partial(_changes_of_weights, more)

    def fill(self, row: npt.NDArray[Any], masks: BoolArray, points: FloatArray) -> Filled:
        """Return rows whose absent values are those of rows of the data, (P, K, D), and which.

        Only one coordinate of the points is needed: rows are drawn in proportion to their weights,
        and at equal distances of their cumulative weight.
        """
        n_at_once = max(1, _WEIGHTS_AT_ONCE // len(self.data))
        drawn = []
        for start in range(0, len(masks), n_at_once):
            part = slice(start, start + n_at_once)
            levels = np.cumsum(self.weights(row, masks[part]), axis=1)
            first_absent = np.argmin(masks[part], axis=1)
            uniform = np.take_along_axis(points[part], first_absent[:, None, None], axis=2)[..., 0]
            drawn += [
                np.searchsorted(of_mask, of_points * of_mask[-1], side="right")
                for of_mask, of_points in zip(levels, uniform, strict=True)
            ]
        chosen = np.minimum(np.array(drawn), len(self.data) - 1)
        return np.where(masks[:, None], row, self.data[chosen]), chosen


def _changes_of_weights(more: FloatArray, _row: object, _masks: object, chosen: Any) -> FloatArray:
    return more[chosen]


@dataclass
class Empirical(WeightedRows):
    """Rows weighted by their distance from the present features.

    The weight of a row is exp(−d² / 2σ²), where d² is the squared Mahalanobis distance of the
    present features over their number. Of the rows in the order of their weights, the first ones
    that have the share η of all weights are kept (Aas, Jullum and Løland, 2021, section 3.3).

    Without σ, that of k features is N^(−1 / (k + 4)) / √k, by Scott's rule for densities of N rows:
    .25 to .2 with 1,000 rows and 1 to 7 features.

    Attributes
    ----------
    normal : Gaussian
        Its mean and covariance scale the distances.
    sigma, eta : float
        σ and η.
    """

    normal: Gaussian
    sigma: float | None = None
    eta: float = 0.95
    _centred: FloatArray = field(init=False, repr=False)
    _precisions: CoalitionCache = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._centred = np.asarray(self.data, dtype=np.float64) - self.normal.mean
        self._precisions = CoalitionCache(self._of_coalitions)

    @classmethod
    def fitted(
        cls, data: npt.NDArray[Any], names: Any = None, *, sigma: float | None, eta: float
    ) -> Empirical:
        """Return the distribution on rows, (N, D), which must be numbers."""
        for name, value in (("sigma", sigma), ("eta", eta)):
            if value is not None and not 0 < value <= (np.inf if name == "sigma" else 1):
                raise InvalidArgumentError(
                    f"{name} must be positive{' and at most 1' if name == 'eta' else ''}; got "
                    f"{value!r}."
                )
        return cls(data, Gaussian.fitted(data, names), sigma, eta)

    @one_blas_thread()
    def weights(self, row: npt.NDArray[Any], masks: BoolArray) -> FloatArray:
        """Return the weights of the data, (P, N)."""
        values = np.asarray(row, dtype=np.float64)
        known = masks & ~np.isnan(values)
        n_columns = self._centred.shape[1]
        cached = self._precisions(known)  # (P, D² + N)
        precisions = cached[:, : n_columns**2].reshape(-1, n_columns, n_columns)
        centred = np.where(np.isnan(values), 0.0, values - self.normal.mean)
        across = precisions @ centred  # (P, D)
        squares = (
            cached[:, n_columns**2 :] - 2 * across @ self._centred.T + (across @ centred)[:, None]
        )
        exponents = np.maximum(squares, 0.0)
        n_known = np.maximum(known.sum(axis=1, keepdims=True), 1)
        if self.sigma is None:
            exponents /= 2 * len(self.data) ** (-2 / (n_known + 4))
        else:
            exponents /= 2 * self.sigma**2 * n_known
        least = exponents.min(axis=1, keepdims=True)
        if (least > _UNDERFLOW).any():
            width = "the default sigma" if self.sigma is None else f"sigma={self.sigma:g}"
            warn_user(
                "Present features are so far from all rows of the data that the weights of these "
                f"are 0 at {width}. The nearest rows are taken. Pass more data, a "
                "larger sigma, or a distribution with values between rows, such as Gaussian.",
                subject="weights of 0",
            )
        weights: FloatArray = np.exp(least - exponents)
        order = np.argsort(-weights, axis=1, kind="stable")
        before = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        is_left = before - np.take_along_axis(weights, order, axis=1) >= self.eta * before[:, -1:]
        rows, places = np.nonzero(is_left)
        weights[rows, order[rows, places]] = 0.0
        return weights

    def _of_coalitions(self, known: npt.NDArray[Any]) -> FloatArray:
        """Return the inverse covariances of known features and the data's squares, (n, D² + N)."""
        covariance = self.normal.covariance
        known = known & (np.diag(covariance) > 0)
        both = known[:, :, None] & known[:, None, :]
        inner = np.where(both, covariance, np.eye(len(covariance)))
        precisions = np.where(both, np.linalg.inv(inner), 0.0)
        squares = np.array(
            [((self._centred @ one) * self._centred).sum(axis=1) for one in precisions]
        )
        return np.concatenate([precisions.reshape(len(known), -1), squares], axis=1)


@dataclass
class Categorical(WeightedRows):
    """Rows that have the same values as the present features, each as likely as the others.

    That is the conditional distribution of the data itself. Where no row has all values, those with
    most of them are taken, with a warning.

    Attributes
    ----------
    codes : array of int, (N, D)
        The number of each value among those of its column.
    values : list of pandas Index
        The different values of each column, without missing ones, whose code is −1.
    """

    codes: npt.NDArray[np.intp]
    values: list[Any]

    @classmethod
    def fitted(cls, data: npt.NDArray[Any], names: Any = None) -> Categorical:
        """Return the distribution on rows, (N, D), whose columns must repeat their values.

        Raises
        ------
        InvalidArgumentError
            If a column has more different values than half of the rows.
        """
        import pandas as pd

        codes, values = [], []
        for place, column in enumerate(data.T):
            of_column, different = pd.factorize(column)
            if len(different) > max(2, _MOST_DIFFERENT * len(data)):
                raise InvalidArgumentError(
                    f"data has {len(different)} different values in {len(data)} rows of "
                    f"{named_column(place, names)}; Categorical needs rows with equal values. "
                    "Round them or put them into bins, or use Empirical or Copula for numbers."
                )
            codes.append(of_column)
            values.append(pd.Index(different))
        return cls(data, np.array(codes).T, values)

    def weights(self, row: npt.NDArray[Any], masks: BoolArray) -> FloatArray:
        """Return 1 for rows with most of the present values, else 0, (P, N)."""
        own = codes_of(row, self.values)
        n_same = masks.astype(np.float64) @ (self.codes == own).T
        most = n_same.max(axis=1, keepdims=True)
        lacking = np.flatnonzero(most[:, 0] < masks.sum(axis=1))
        if len(lacking):
            warn_user(
                f"No row of the data has the values of all {masks[lacking[0]].sum()} present "
                "features; rows with most of them are taken. Pass more data, or join rare "
                "categories.",
                subject="no rows with all values",
            )
        return np.asarray(n_same == most, dtype=np.float64)


def codes_of(cells: Iterable[object], values: Iterable[Any]) -> list[int]:
    """Return the places of cells among the values of their columns.

    −1 where they are missing, as `pandas.factorize` has it, and −2 where the data do not have them.
    """
    import pandas as pd

    codes = []
    for cell, different in zip(cells, values, strict=True):
        place = -1 if pd.isna(cell) else int(different.get_indexer([cell])[0])
        codes.append(-2 if place < 0 and not pd.isna(cell) else place)
    return codes
