"""A picklable function from a batch of rows to a batch of attributions, and its columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .array_types import AttributionArray, ValueArray
from .errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    required_packages,
    rows_counted_from,
)
from .frames import frame_like, narwhals_frame, pandas_frame
from .workers import Pickled, loaded_once

_SPARK_TYPES = {
    "bool": "boolean",
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "datetime64[ns]": "timestamp",
    "datetime64[us]": "timestamp",
}


def _type_with_missing(column: Any, dtype: Any) -> Any:
    """Return a type for the entries of a column: pandas' nullable one where some are missing.

    The example, from which types are known, may have none missing, and whole numbers be `int64`.
    """
    if getattr(dtype, "kind", "O") not in "iub" or not column.isna().any():
        return dtype
    return pd.Series(dtype=dtype).convert_dtypes().dtype


def _spark_type(name: str, column: Any) -> str:
    if isinstance(column.dtype, pd.StringDtype) or column.dtype == object:
        return "string"
    try:
        return _SPARK_TYPES[str(column.dtype).lower()]  # "Int64", too
    except KeyError:
        raise InvalidArgumentError(
            f"keep names the column {name!r} of type {column.dtype}, which has no counterpart in "
            "Spark here. Leave it out, or convert it to numbers, texts or times."
        ) from None


@dataclass(frozen=True)
class BatchAttributions:
    """The attributions of the rows of a batch.

    Attributes
    ----------
    values : array, (R, M, K)
        The attributions.
    standard_errors : array, (R, M, K)
        Their standard errors.
    base_values : array, (R, K)
        The values without any feature.
    players : list of str
        Names of the features or groups.
    outputs : list of str, or None
        Names of the outputs; None for a single one.
    """

    values: AttributionArray
    standard_errors: AttributionArray | None
    base_values: ValueArray
    players: list[str]
    outputs: list[str] | None


FrameExplainer: TypeAlias = Callable[[pd.DataFrame], BatchAttributions]
"""An explainer of a host with the options of its call: explains the rows of a frame of features."""


@dataclass(frozen=True)
class BatchFunction:
    """Explains batches of a table that an engine owns, such as Spark, Dask or Ray Data.

    It can be pickled. Each process loads the model once, for its first batch. A row's numbers have
    the same bits in any batch.

    Attributes
    ----------
    features : tuple of str
        The columns that are explained.
    kept_columns : DataFrame
        The columns that are copied from the rows, without rows.
    number_columns : three tuples of str
        The columns of the attributions, one output after the other; of their standard errors, if
        there are any; and of the values without any feature.
    """

    _explainer: Pickled
    features: tuple[str, ...]
    kept_columns: pd.DataFrame
    number_columns: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]

    def __post_init__(self) -> None:
        """Refuse columns of one name."""
        names = pd.Index(self.columns)
        if not names.is_unique:
            raise InvalidArgumentError(
                f"Two columns of the result are named {names[names.duplicated()][0]!r}. Pass "
                "another prefix=, or keep fewer columns."
            )

    def __call__(self, batch: Any) -> Any:
        """Return the attributions of a batch in its form, and with its index.

        Parameters
        ----------
        batch : DataFrame of pandas or polars, pyarrow.Table or pyarrow.RecordBatch
            Rows of the table. Columns that are neither features nor kept are ignored.

        Raises
        ------
        InvalidArgumentTypeError
            If the batch has another form.
        InvalidArgumentError
            If it lacks a column.
        """
        if isinstance(batch, pd.DataFrame):
            return self._explained(batch)
        table = None if _is_arrow(batch) else narwhals_frame(batch, "batch")
        if table is not None:
            return frame_like(self._explained(pandas_frame(table, "batch")), table)
        if not _is_arrow(batch):
            raise InvalidArgumentTypeError(
                "batch must be a DataFrame, or a Table or RecordBatch of pyarrow; got "
                f"{type(batch).__name__}. In Ray pass batch_format='pandas', in Spark call "
                "mapInPandas with the method each_batch."
            )
        import pyarrow as pa

        frame = self._explained(batch.to_pandas())
        kind = pa.RecordBatch if isinstance(batch, pa.RecordBatch) else pa.Table
        return kind.from_pandas(frame, schema=self.arrow_schema, preserve_index=False)

    def each_batch(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Explain batches as they come, for `mapInPandas` and `mapInArrow` of Spark."""
        return map(self, batches)

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the result."""
        return [*self.kept_columns.columns, *chain(*self.number_columns)]

    @property
    def meta(self) -> pd.DataFrame:
        """A frame without rows: `meta=` of `map_partitions` of Dask."""
        numbers = (np.zeros((0, len(names))) for names in self.number_columns)
        return self._frame(self.kept_columns, *numbers)

    @property
    def arrow_schema(self) -> Any:
        """The schema of the result as a `pyarrow.Schema`."""
        with required_packages("The schema needs pyarrow", "arrow"):
            import pyarrow as pa

        return pa.Schema.from_pandas(self.meta, preserve_index=False).remove_metadata()

    @property
    def spark_schema(self) -> str:
        """The schema of the result for `mapInPandas` of Spark."""
        meta = self.meta
        return ", ".join(f"`{name}` {_spark_type(name, meta[name])}" for name in self.columns)

    def _explained(self, batch: pd.DataFrame) -> pd.DataFrame:
        copied = _columns(batch, list(self.kept_columns.columns), "batch")
        types = self.kept_columns.dtypes.items()
        copied = copied.astype({name: _type_with_missing(copied[name], of) for name, of in types})
        rows = _columns(batch, list(self.features), "batch")
        if len(rows) == 0:  # engines also call with empty partitions
            return self.meta
        explain: FrameExplainer = loaded_once(self._explainer.data)
        with rows_counted_from(0):
            attributions = explain(rows)
        _, has_errors, _ = self.number_columns
        errors: Any = attributions.standard_errors if has_errors else attributions.values[:, :0]
        # Numbers of players and outputs, (R, M, K), become columns, one output after the other.
        values, errors = (
            array.transpose(0, 2, 1).reshape(len(rows), -1)
            for array in (attributions.values, errors)
        )
        return self._frame(copied, values, errors, attributions.base_values)

    def _frame(self, copied_columns: pd.DataFrame, *numbers: Any) -> pd.DataFrame:
        """Return copied columns beside the arrays of values, errors and base values."""
        parts = [
            pd.DataFrame(array, columns=list(names), index=copied_columns.index, dtype=np.float64)
            for names, array in zip(self.number_columns, numbers, strict=True)
        ]
        return pd.concat([copied_columns, *parts], axis=1)


def make_batch_function(
    explain: FrameExplainer,
    example: Any,
    features: Sequence[str] | None,
    keep: Sequence[str],
    prefix: str,
) -> BatchFunction:
    """Return the function of an explainer, whose columns are read off from an example.

    Parameters
    ----------
    explain : FrameExplainer
        The explainer of the host.
    example : DataFrame or pyarrow.Table
        A batch of at least one row. Its first row is explained once.
    features : sequence of str, optional
        The columns to explain; by default all that are not kept.
    keep : sequence of str
        Columns that are copied to the result, such as an identifier.
    prefix : str
        The beginning of the names of the new columns.
    """
    frame = example.to_pandas() if _is_arrow(example) else pandas_frame(example, "example")
    if not isinstance(frame, pd.DataFrame) or len(frame) == 0:
        raise InvalidArgumentError(
            "example must be a DataFrame or a pyarrow Table with at least one row, such as "
            f"table.head(1); got {type(example).__name__}"
            f"{' without rows' if isinstance(frame, pd.DataFrame) else ''}."
        )
    kept = _columns(frame, list(keep), "example")  # a wrong name would be taken for no feature
    if features is None:
        features = [name for name in frame.columns if name not in keep]
    rows = _columns(frame, list(features), "example").iloc[:1]
    with rows_counted_from(0):
        attributions = explain(rows)
    outputs = attributions.outputs  # a single one has no name
    endings = [""] if outputs is None else [f"_{output}" for output in outputs]

    def names(start: str) -> tuple[str, ...]:
        players = attributions.players
        return tuple(f"{start}{player}{ending}" for ending in endings for player in players)

    has_errors = attributions.standard_errors is not None
    number_columns = (
        names(prefix),
        names(f"{prefix}error_") if has_errors else (),
        tuple(f"{prefix}base_value{ending}" for ending in endings),
    )
    pickled = Pickled.from_object(explain)
    return BatchFunction(pickled, tuple(features), kept.iloc[:0], number_columns)


def _columns(frame: pd.DataFrame, names: list[str], argument: str) -> pd.DataFrame:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InvalidArgumentError(
            f"{argument} has no column {missing[0]!r}; its columns are "
            f"{', '.join(map(str, frame.columns[:20]))}{', …' if len(frame.columns) > 20 else ''}."
        )
    columns = frame[names]
    if columns.shape[1] > len(names):
        twice = columns.columns[columns.columns.duplicated()][0]
        raise InvalidArgumentError(
            f"{argument} has several columns of the name {twice!r}. Rename them, so that each "
            "column has a name of its own."
        )
    return columns


def _is_arrow(batch: Any) -> bool:
    pa = sys.modules.get("pyarrow")  # whoever has such a batch has loaded it
    return pa is not None and isinstance(batch, (pa.Table, pa.RecordBatch))
