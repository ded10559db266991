"""Imputation: absent values predicted from present ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.threads.thread_limits import one_blas_thread

from ..argument_types import Table
from .masked_rows import Mask, MaskedRow

_CACHE_BYTES = 2**26


@dataclass(frozen=True)
class LinearImputer:
    """Replaces absent values by their expectation, as if the data were normally distributed.

    Attributes
    ----------
    mean, covariance : arrays, (D,) and (D, D)
        Mean and covariance of the data.
    columns : pandas Index, or None
        Names of the columns, if the model takes DataFrames.
    """

    mean: FloatArray
    covariance: FloatArray
    columns: pd.Index[Any] | None = None

    @classmethod
    @one_blas_thread()
    def from_masker(cls, masker: shap.maskers.Masker) -> LinearImputer:
        """Convert a `shap.maskers.Impute`, which in shap only stores its arguments."""
        if masker.method != "linear":
            raise InvalidArgumentError(
                f"masker Impute has method={masker.method!r}; only 'linear' is supported. Pass a "
                "function of a mask and a row as masker= for another imputation."
            )
        data = masker.data
        if getattr(masker, "cov", None) is not None:  # the attributes of a dict since shap 0.52
            data = {"mean": masker.mean, "cov": masker.cov}
        if isinstance(data, Mapping):
            if not {"mean", "cov"} <= set(data):
                raise InvalidArgumentError(
                    "masker Impute holds a dict, which must have 'mean' and 'cov'."
                )
            return cls._checked(_numbers(data["mean"]), _numbers(data["cov"]), None)
        columns = data.columns if isinstance(data, pd.DataFrame) else None
        rows = _numbers(data)
        if rows.ndim != 2 or len(rows) < 2:
            raise InvalidArgumentError(
                f"masker Impute holds data of shape {rows.shape}; a table of at least two rows is "
                "needed to compute the covariance of the columns."
            )
        return cls._checked(rows.mean(axis=0), np.cov(rows.T).reshape(rows.shape[1], -1), columns)

    @classmethod
    def _checked(
        cls, mean: FloatArray, covariance: FloatArray, columns: pd.Index[Any] | None
    ) -> LinearImputer:
        if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
            raise InvalidArgumentError(
                f"masker Impute has a mean of shape {mean.shape} and a covariance of shape "
                f"{covariance.shape}; (D,) and (D, D) are needed."
            )
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            raise InvalidArgumentError(
                "masker Impute holds missing or infinite values, from which no covariance can be "
                "computed. Drop those rows."
            )
        return cls(mean, covariance, columns)

    @one_blas_thread()
    def __call__(self, row: FloatArray, mask: Mask) -> FloatArray:
        """Return the row, (D,), with absent values replaced; missing ones are not used."""
        is_known = mask & ~np.isnan(row)
        filled: FloatArray = row.copy()
        expected = self.mean[~mask]
        if is_known.any() and not mask.all():
            slopes = self._slopes(is_known.tobytes())[~mask[~is_known]]
            expected = expected + slopes @ (row - self.mean)[is_known]
        filled[~mask] = expected
        return filled

    @cached_property
    def _slopes(self) -> Callable[[bytes], FloatArray]:
        """The regression of unknown values on known ones, cached for the latest sets of columns."""

        def slopes(is_known_bytes: bytes) -> FloatArray:
            is_known = np.frombuffer(is_known_bytes, dtype=bool)
            known_covariance = self.covariance[np.ix_(is_known, is_known)]
            cross_covariance: FloatArray = self.covariance[np.ix_(~is_known, is_known)]
            return cross_covariance @ np.linalg.pinv(known_covariance, hermitian=True)

        # Rows share coalitions, and the same coalition of several rows comes in succession.
        return lru_cache(max(1, _CACHE_BYTES // (8 * self.covariance.size)))(slopes)


@dataclass
class ImputedRow(MaskedRow):
    """A row whose absent values are predicted from its present ones.

    Attributes
    ----------
    row : array, (D,)
        Present values.
    imputer : LinearImputer
        Predicts the absent values.
    as_frame : bool
        Whether the model takes DataFrames.
    """

    row: FloatArray
    imputer: LinearImputer
    as_frame: bool

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """One entry of the mask per column."""
        return [self.row.shape]

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return one row."""
        masked = self.imputer(self.row, mask)[None]
        return (pd.DataFrame(masked, columns=self.imputer.columns) if self.as_frame else masked,)


def _numbers(values: Table) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentTypeError(
            "masker Impute holds values that are not numbers, which cannot be predicted. Encode "
            "them, or pass background rows as masker=."
        ) from error
