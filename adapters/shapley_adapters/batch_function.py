"""A picklable function from a batch of rows to a batch of attributions, and its columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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

    def frame(self, prefix: str, index: Any) -> pd.DataFrame:
        """Return a column for each number of a row, one output after the other."""
        endings = [""] if self.outputs is None else [f"_{output}" for output in self.outputs]
        names, columns = list[str](), list[Any]()
        for start, array in ((prefix, self.values), (f"{prefix}error_", self.standard_errors)):
            if array is not None:
                names += [f"{start}{player}{end}" for end in endings for player in self.players]
                columns.append(array.transpose(0, 2, 1).reshape(len(index), -1))  # (R, K·M)
        names += [f"{prefix}base_value{end}" for end in endings]
        return pd.DataFrame(np.hstack([*columns, self.base_values]), index, names, np.float64)


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
    keep : tuple of str
        The columns that are copied from the rows.
    prefix : str
        The beginning of the names of the other columns.
    meta : DataFrame
        The result without rows: `meta=` of `map_partitions` of Dask.
    """

    _explainer: Pickled
    features: tuple[str, ...]
    keep: tuple[str, ...]
    prefix: str
    meta: pd.DataFrame

    def __post_init__(self) -> None:
        """Refuse columns of one name."""
        names = self.meta.columns
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
        return list(self.meta.columns)

    @property
    def arrow_schema(self) -> Any:
        """The schema of the result as a `pyarrow.Schema`."""
        with required_packages("The schema needs pyarrow", "arrow"):
            import pyarrow as pa

        return pa.Schema.from_pandas(self.meta, preserve_index=False).remove_metadata()

    @property
    def spark_schema(self) -> str:
        """The schema of the result for `mapInPandas` of Spark."""
        return ", ".join(f"`{name}` {_spark_type(name, its)}" for name, its in self.meta.items())

    def _explained(self, batch: pd.DataFrame) -> pd.DataFrame:
        copied = _columns(batch, self.keep, "batch")
        types = self.meta.dtypes[copied.columns].items()
        copied = copied.astype({name: _type_with_missing(copied[name], of) for name, of in types})
        rows = _columns(batch, self.features, "batch")
        if len(rows) == 0:  # engines also call with empty partitions
            return self.meta
        explain: FrameExplainer = loaded_once(self._explainer.data)
        with rows_counted_from(0):
            return pd.concat([copied, explain(rows).frame(self.prefix, copied.index)], axis=1)


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
    kept = _columns(frame, keep, "example")  # a wrong name would be taken for no feature
    if features is None:
        features = [name for name in frame.columns if name not in keep]
    rows = _columns(frame, features, "example").iloc[:1]
    with rows_counted_from(0):
        numbers = explain(rows).frame(prefix, rows.index)
    meta = pd.concat([kept.iloc[:0], numbers.iloc[:0]], axis=1)
    return BatchFunction(Pickled.from_object(explain), tuple(features), tuple(keep), prefix, meta)


def _columns(frame: pd.DataFrame, names: Sequence[str], argument: str) -> pd.DataFrame:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InvalidArgumentError(
            f"{argument} has no column {missing[0]!r}; its columns are "
            f"{', '.join(map(str, frame.columns[:20]))}{', …' if len(frame.columns) > 20 else ''}."
        )
    columns = frame[list(names)]
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
