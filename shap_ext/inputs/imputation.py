"""Absent values told from present ones."""

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
from shapley_adapters.threads.blas_threads import one_blas_thread

from ..argument_types import Table
from .masked_rows import Mask, MaskedRow

_CACHE_BYTES = 2**26


@dataclass(frozen=True)
class LinearImputer:
    """Expects absent values given present ones, as if the data were normally distributed.

    Attributes
    ----------
    mean, covariance : arrays, (D,) and (D, D)
        Of the data.
    columns : pandas Index, or None
        Names of the columns where the model is to see DataFrames.
    """

    mean: FloatArray
    covariance: FloatArray
    columns: pd.Index[Any] | None = None

    @classmethod
    @one_blas_thread()
    def of_masker(cls, masker: shap.maskers.Masker) -> LinearImputer:
        """Read a `shap.maskers.Impute`, of which shap itself only knows the arguments."""
        if masker.method != "linear":
            raise InvalidArgumentError(
                f"masker Impute has method={masker.method!r}; only 'linear' is known. Pass a "
                "function of a mask and a row as masker= for another imputation."
            )
        data = masker.data
        if getattr(masker, "cov", None) is not None:  # as shap keeps a dict from 0.52 on
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
                f"masker Impute holds data of shape {rows.shape}; a table of two rows at least is "
                "needed to tell how columns vary together."
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
                "masker Impute holds missing or infinite values, from which none can be told. "
                "Drop those rows."
            )
        return cls(mean, covariance, columns)

    @one_blas_thread()
    def __call__(self, row: FloatArray, mask: Mask) -> FloatArray:
        """Return the row, (D,), with absent values as expected; missing ones tell nothing."""
        known = mask & ~np.isnan(row)
        filled: FloatArray = row.copy()
        expected = self.mean[~mask]
        if known.any() and not mask.all():
            slopes = self._slopes(known.tobytes())[~mask[~known]]
            expected = expected + slopes @ (row - self.mean)[known]
        filled[~mask] = expected
        return filled

    @cached_property
    def _slopes(self) -> Callable[[bytes], FloatArray]:
        """How much each unknown value changes with each known one, of latest sets of columns."""

        def slopes(known_bytes: bytes) -> FloatArray:
            known = np.frombuffer(known_bytes, dtype=bool)
            among = self.covariance[np.ix_(known, known)]
            across: FloatArray = self.covariance[np.ix_(~known, known)]
            return across @ np.linalg.pinv(among, hermitian=True)

        # Rows share coalitions, which come one after the other.
        return lru_cache(max(1, _CACHE_BYTES // (8 * self.covariance.size)))(slopes)


@dataclass
class ImputedRow(MaskedRow):
    """A row whose absent values are told from its present ones.

    Attributes
    ----------
    row : array, (D,)
        Present values.
    imputer : LinearImputer
        Tells the others.
    as_frame : bool
        Whether the model gets DataFrames.
    """

    row: FloatArray
    imputer: LinearImputer
    as_frame: bool

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """One place for each column."""
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
            "masker Impute holds values that are not numbers, which cannot be told from others. "
            "Encode them, or pass background rows as masker=."
        ) from error
