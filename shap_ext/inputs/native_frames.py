"""Models that take frames of polars, Arrow and other packages than pandas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import pandas as pd

from shapley_adapters.frames import frame_like


def empty_table(data: Any) -> nw.DataFrame[Any] | None:
    """Return the columns of a frame of any package, without rows; None of anything else."""
    if isinstance(data, pd.DataFrame):  # narwhals takes no columns of one name
        data = data.loc[:, ~data.columns.duplicated()]
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        frame = frame.head(0).collect()
    return frame.head(0) if isinstance(frame, nw.DataFrame) else None


def in_native_frames(
    predict: Callable[..., Any], tables: Sequence[nw.DataFrame[Any] | None]
) -> Callable[..., Any]:
    """Return a model of pandas frames that passes frames of another package to the given one.

    Parameters
    ----------
    predict : callable
        The model.
    tables : sequence
        What `empty_table` returns for the background, if there is one, and for the rows. The model
        gets frames of the package of the first table. A column of numbers has its type if all
        agree, and otherwise the one that holds the numbers of both.
    """
    known = [table for table in tables if table is not None]
    if not known or known[0].implementation.is_pandas():
        return predict
    example = known[0]
    agreed = [
        name
        for name, dtype in example.schema.items()
        if not (dtype.is_numeric() or dtype == nw.Boolean)
        or all(table is not None and table.schema.get(name) == dtype for table in tables)
    ]
    return NativeFrames(predict, example.select(agreed))


@dataclass(frozen=True)
class NativeFrames:
    """A model of frames of another package, called with frames of pandas.

    Attributes
    ----------
    predict : callable
        The model, whose attributes this object has, too.
    example : narwhals.DataFrame
        A frame of the package, with the types of the columns.
    """

    predict: Callable[..., Any]
    example: nw.DataFrame[Any]

    def __call__(self, rows: Any) -> Any:
        """Return the outputs for a frame, or for an array, which stays as it is."""
        is_frame = isinstance(rows, pd.DataFrame)
        return self.predict(frame_like(rows, self.example) if is_frame else rows)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "predict":  # asked for by pickle before it is there
            raise AttributeError(name)
        return getattr(self.predict, name)
