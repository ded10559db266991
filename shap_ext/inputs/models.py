"""Models: those inside wrappers, the games that evaluate them, and those of foreign frames."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

import narwhals.stable.v2 as nw
import pandas as pd
import shap

from shapley_adapters.frames import frame_like
from shapley_adapters.games.evaluation import ModelCalls, OutputShape
from shapley_adapters.games.game import Game
from shapley_adapters.memory_bounds import MAX_INPUT_BYTES
from shapley_adapters.remote import Usage

new_shape = partial(OutputShape, "The model", "Explain rows with different outputs one at a time.")
"""Returns the shape of the outputs of a model for one row, before its first call."""


new_calls = partial(ModelCalls, "The model")
"""Returns what calls a model, with all rows of a batch if it takes them."""


def is_torch_module(model: object) -> TypeGuard[Any]:
    """Return whether `model` is a torch module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def inner_model(model: Any) -> Any:
    """Return the model inside `shap.models.Model`, or the model itself."""
    # Its subclasses do more than wrap.
    return model.inner_model if type(model) is shap.models.Model else model


class GameOfModel(Game):
    """Base of the games that evaluate a model.

    Attributes
    ----------
    predict : callable
        The model.
    """

    predict: Callable[..., Any]
    _shape: OutputShape

    @property
    def is_in_training_mode(self) -> bool:
        """Whether the model is known not to be deterministic, which users are warned of."""
        return bool(getattr(self.predict, "is_in_training_mode", False))

    @property
    def answers_at_random(self) -> bool:
        """Whether the model is known to answer at random, as one that samples texts."""
        return bool(getattr(self.predict, "answers_at_random", False))

    @property
    def max_input_bytes(self) -> int:
        """The bytes that the inputs of one batch may take: a share of the free memory of a GPU."""
        return int(getattr(self.predict, "max_input_bytes", MAX_INPUT_BYTES))

    @property
    def output_columns(self) -> list[str] | None:
        """The columns of the frames that the model returns; None of arrays, and before a call."""
        return self._shape.names

    @property
    def usage(self) -> Usage | None:
        """What a remote model was used for so far."""
        return getattr(self.predict, "usage", None)

    @property
    def rounding(self) -> float:
        """Relative rounding error of the model's output, where it is known.

        That of the output is known after the first evaluation; a model may compute less precisely.
        """
        return max(float(getattr(self.predict, "rounding", 0.0)), self._shape.rounding)


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
