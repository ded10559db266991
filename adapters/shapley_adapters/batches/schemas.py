"""The columns of a batch of attributions: their names and types, in the forms of the engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InvalidArgumentError, required_packages

_SPARK_TYPES = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "datetime64[ns]": "timestamp",
    "datetime64[us]": "timestamp",
}


@dataclass(frozen=True)
class BatchSchema:
    """The columns of a batch of attributions.

    Attributes
    ----------
    kept : DataFrame
        The columns that are copied from the rows, without rows.
    values, errors, base_values : tuple of str
        The columns of the attributions, one output after the other; of their standard errors, if
        there are any; and of the values without any feature.
    """

    kept: pd.DataFrame
    values: tuple[str, ...]
    errors: tuple[str, ...]
    base_values: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse columns of one name."""
        names = pd.Index(self.columns)
        if not names.is_unique:
            raise InvalidArgumentError(
                f"Two columns of the result are named {names[names.duplicated()][0]!r}. Pass "
                "another prefix=, or keep fewer columns."
            )

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in their order."""
        return [*self.kept.columns, *self.values, *self.errors, *self.base_values]

    @property
    def meta(self) -> pd.DataFrame:
        """A frame without rows, with the columns and types: `meta=` of Dask."""
        return self.frame(self.kept, *(np.zeros((0, len(c))) for c in self._numbers()))

    @property
    def arrow(self) -> Any:
        """The schema of pyarrow."""
        with required_packages("The schema needs pyarrow", "spark"):
            import pyarrow as pa

        return pa.Schema.from_pandas(self.meta, preserve_index=False).remove_metadata()

    @property
    def spark(self) -> str:
        """The schema of `DataFrame.mapInPandas`, in Spark's own words."""
        meta = self.meta
        return ", ".join(f"`{name}` {_spark_type(name, meta[name])}" for name in self.columns)

    def frame(self, kept: pd.DataFrame, *numbers: Any) -> pd.DataFrame:
        """Return kept columns beside the arrays of values, errors and base values."""
        parts = [
            pd.DataFrame(array, columns=list(names), index=kept.index, dtype=np.float64)
            for names, array in zip(self._numbers(), numbers, strict=True)
        ]
        return pd.concat([kept, *parts], axis=1)

    def _numbers(self) -> tuple[tuple[str, ...], ...]:
        return self.values, self.errors, self.base_values


def schema_of(
    kept: pd.DataFrame,
    players: list[str],
    outputs: list[str] | None,
    prefix: str,
    with_errors: bool,
) -> BatchSchema:
    """Return the columns for some players and outputs; with one output it has no name."""
    endings = [""] if outputs is None else [f"_{output}" for output in outputs]

    def names(start: str) -> tuple[str, ...]:
        return tuple(f"{start}{player}{ending}" for ending in endings for player in players)

    return BatchSchema(
        kept.iloc[:0],
        names(prefix),
        names(f"{prefix}error_") if with_errors else (),
        tuple(f"{prefix}base_value{ending}" for ending in endings),
    )


def _spark_type(name: str, column: Any) -> str:
    if isinstance(column.dtype, pd.StringDtype) or column.dtype == object:
        return "string"
    try:
        return _SPARK_TYPES[str(column.dtype)]
    except KeyError:
        raise InvalidArgumentError(
            f"keep names the column {name!r} of type {column.dtype}, which has no counterpart in "
            "Spark here. Leave it out, or convert it to numbers, texts or times."
        ) from None
