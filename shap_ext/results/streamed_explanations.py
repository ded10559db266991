"""Explanations of a stream of rows, read from their files when they are needed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.row_sources import is_sliced, rows_of
from shapley_adapters.streamed_values import StreamedValues

from .explanations import explanation


class StreamedExplanations(StreamedValues):
    """The explanations of a stream of rows, in files.

    Iterating yields a `shap.Explanation` for each chunk. An index or a slice of rows returns one
    for these rows, as `explainer(X)[index]` does. Arrays of all rows are attributes.

    Attributes
    ----------
    values : array, (R, M) or (R, M, K)
        The attributions, read into memory.
    base_values : array, (R,) or (R, K)
        The values without any feature.
    standard_errors : array, or None
        The standard errors of the values, with `error_bounds=True`.
    evaluations : array, (R,)
        The coalitions evaluated for each row.
    n_rows : int
        The number of finished rows.
    is_complete : bool
        Whether all rows of the stream are finished.
    seed : int
        The seed of all random choices.
    """

    host: ClassVar[str] = "shap"

    @property
    def feature_names(self) -> list[Any] | None:
        """The names of the features."""
        return self._record.about["feature_names"]

    @property
    def output_names(self) -> list[str] | None:
        """The names of the outputs, where the model has several."""
        return self._record.about["output_names"]

    def __getitem__(self, rows: int | slice) -> Any:
        """Return the Explanation of a row, or of a slice of rows."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_rows)
            if step != 1:
                raise InvalidArgumentTypeError(
                    f"a slice of rows must have the step 1; got {step}. Take every {step}th row "
                    "of the arrays, as in values[::2]."
                )
            return self._explanation(start, max(start, stop))
        index = range(self.n_rows)[rows]
        return self._explanation(index, index + 1)[0]

    def _explanation(self, start: int, stop: int) -> Any:
        arrays = self._arrays_of(start, stop)
        return explanation(
            arrays["values"],
            base_values=arrays["base_values"],
            data=self._data(start, stop),
            feature_names=self.feature_names,
            output_names=self.output_names,
            lower_bounds=arrays.get("lower_bounds"),
            upper_bounds=arrays.get("upper_bounds"),
            error_std=arrays.get("standard_errors"),
            seeds=frozenset([self.seed]),
        )

    def _data(self, start: int, stop: int) -> Any:
        """Return the rows for plots, where they can be read again and have the values' columns."""
        if not is_sliced(self.rows):
            return None
        (table,) = rows_of((self.rows,), start, stop)
        data = table.toarray() if hasattr(table, "toarray") else np.asarray(table)
        n_columns = int(np.prod(data.shape[1:]))
        n_features = len(self.feature_names or []) or n_columns
        return data if n_features == n_columns else None  # groups show no single cell
