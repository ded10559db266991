"""What users pass to an explainer's call, and the game that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    warn_user,
)

from .column_groups import ColumnGroups
from .links import LinkedAverage
from .masked_model_game import MaskerGame, TabularGame
from .models import inner_model, is_torch_module, prediction_function


@dataclass(frozen=True)
class Dataset:
    """The rows of one model input.

    Attributes
    ----------
    values : array, (R, *shape of a row), or list
        The rows.
    columns : list of str, or None
        Names of the columns of a DataFrame.
    dtypes : pandas Series, or None
        Their types.
    """

    values: Any
    columns: list[Any] | None = None
    dtypes: Any = None

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return tuple(np.shape(self.values[0]))


def checked_dataset(data: Any, place: int = 0) -> Dataset:
    """Read what a user passes as rows to explain."""
    name = "X" if place == 0 else f"input {place}"
    if isinstance(data, pd.Series):
        raise InvalidArgumentTypeError(f"{name} is a Series; pass a DataFrame, as in X.iloc[[0]].")
    if isinstance(data, pd.DataFrame):
        dataset = Dataset(frame_values(data), list(data.columns), data.dtypes)
    elif hasattr(data, "detach"):
        dataset = Dataset(data.detach().cpu().numpy())
    elif isinstance(data, (np.ndarray, Sequence)) and not isinstance(data, str):
        dataset = Dataset(data)
    else:
        raise InvalidArgumentTypeError(
            f"{name} must be an array, a DataFrame, a tensor or a list of rows; got "
            f"{type(data).__name__}."
        )
    if getattr(dataset.values, "ndim", 1) == 0:
        raise InvalidArgumentError(f"{name} has shape (): a table of rows is needed.")
    if len(dataset.values) == 0:
        raise InvalidArgumentError(f"{name} holds no rows; at least one is needed.")
    return dataset


def frame_values(frame: pd.DataFrame) -> npt.NDArray[Any]:
    """Return a frame as one array: numbers where all columns hold numbers, else objects."""
    is_numeric = all(map(_is_number, frame.dtypes))
    # pandas itself turns numbers and booleans into objects.
    dtype = np.result_type(*frame.dtypes) if is_numeric and frame.shape[1] else object
    values: npt.NDArray[Any] = frame.to_numpy(dtype=dtype)
    return values


def _is_number(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


@dataclass(frozen=True)
class Background:
    """The rows that absent columns take their values from.

    Attributes
    ----------
    values : array, (B, D)
        The rows.
    columns : list of str, or None
        Names of the columns where the model is to see DataFrames.
    dtypes : pandas Series, or None
        Their types, where they are known.
    """

    values: npt.NDArray[Any]
    columns: list[Any] | None = None
    dtypes: Any = None


def zero_background(model: Any, datasets: Sequence[Dataset]) -> Background:
    """Return the reference that goes without saying when no masker was given: zeros.

    Raises
    ------
    InvalidArgumentError
        If the rows are not plain numbers in one array.
    """
    values = datasets[0].values
    is_plain = (
        len(datasets) == 1
        and datasets[0].columns is None
        and isinstance(values, np.ndarray)
        and values.dtype.kind in "biuf"
        and (is_torch_module(inner_model(model)) or callable(model))
    )
    if not is_plain:
        raise InvalidArgumentError(
            "masker=None leaves open which values absent features take. Pass background rows as "
            "masker=, such as a sample or the mean of the training data."
        )
    warn_user(
        "No masker was given, so absent features are zero. Pass background rows as masker= to "
        "choose another reference."
    )
    return Background(np.zeros((1, int(np.prod(datasets[0].row_shape))), dtype=values.dtype))


def tabular_game(
    model: Any,
    background: Background,
    dataset: Dataset,
    groups: ColumnGroups,
    average: LinkedAverage,
    linearize_link: bool,
) -> TabularGame:
    """Make the game of rows against a background.

    Raises
    ------
    InvalidArgumentError
        If rows and background do not have the same columns in the same order.
    """
    rows = _table(dataset.values)
    row_shape = rows.shape[1:]
    rows = rows.reshape(len(rows), -1)
    _check_columns(rows, dataset, background)
    common = np.result_type(rows, background.values)
    predict = prediction_function(model)
    is_module = is_torch_module(inner_model(model))
    if is_module and common.kind == "O":
        raise InvalidArgumentTypeError(
            "X holds values that are not numbers, which a torch module cannot take. Encode them."
        )
    return TabularGame(
        predict=predict,
        rows=_in_precision(rows.astype(common), predict, is_module),
        background=_in_precision(background.values.astype(common), predict, is_module),
        players=groups.players,
        average=average,
        dress=_dresser(background, dataset, row_shape, is_module),
        module=predict if is_module else None,  # type: ignore[arg-type]
        row_shape=row_shape,
        linearize_link=linearize_link,
    )


def _table(values: Any) -> npt.NDArray[Any]:
    try:
        rows = np.asarray(values)
    except ValueError as error:
        raise InvalidArgumentError(
            "X holds rows of different lengths; a table needs rows of the same length."
        ) from error
    if rows.ndim < 2:
        raise InvalidArgumentError(
            f"X has shape {rows.shape}: a table of rows is needed. For one row pass X[None]."
        )
    return rows


def masker_game(
    model: Any,
    masker: Any,
    datasets: Sequence[Dataset],
    groups: ColumnGroups,
    average: LinkedAverage,
    linearize_link: bool,
) -> MaskerGame:
    """Make the game of rows masked by any masker."""
    inputs = list(zip(*(dataset.values for dataset in datasets), strict=True))
    predict = prediction_function(model)
    return MaskerGame(predict, masker, inputs, groups.players, average, linearize_link)


def mask_shapes(masker: Any, inputs: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Return the shape of each input's part of the mask."""
    if callable(getattr(masker, "mask_shapes", None)):
        return [tuple(shape) for shape in masker.mask_shapes(*inputs)]
    return [tuple(np.shape(one)) for one in inputs]


def _in_precision(
    values: npt.NDArray[Any], predict: Callable[..., Any], is_module: bool
) -> npt.NDArray[Any]:
    """Bring numbers to the module's precision once, not in each batch."""
    return predict.in_precision(values) if is_module else values  # type: ignore[attr-defined]


def _dresser(
    background: Background, dataset: Dataset, row_shape: tuple[int, ...], is_module: bool
) -> Callable[[npt.NDArray[Any]], Any]:
    """Return the function that gives masked rows the form that the model takes."""
    columns = background.columns
    if columns is None or is_module:
        if len(row_shape) == 1:
            return lambda masked: masked
        return lambda masked: masked.reshape(-1, *row_shape)
    dtypes = _column_dtypes(background, dataset)

    def as_frame(masked: npt.NDArray[Any]) -> pd.DataFrame:
        frame = pd.DataFrame(masked, columns=columns, dtype=masked.dtype)
        return frame if dtypes is None else frame.astype(dtypes)

    return as_frame


def _column_dtypes(background: Background, dataset: Dataset) -> dict[Any, Any] | None:
    """Return the type of each column, unless all have that of the array.

    A column keeps the type that rows and background share; numbers of two types are promoted.
    """
    if background.columns is None:
        return None
    values = np.asarray(dataset.values)
    common = np.result_type(values, background.values)
    dtypes = {}
    for place, column in enumerate(background.columns):
        own = _column_dtype(dataset.dtypes, values, place)
        other = _column_dtype(background.dtypes, background.values, place)
        if dataset.dtypes is None and not _is_number(other):
            own = other
        if background.dtypes is None and not _is_number(own):
            other = own
        if own == other:
            dtype = own
        elif _is_number(own) and _is_number(other):
            dtype = np.result_type(own, other)
        else:
            dtype = np.dtype(object)
        if dtype != common:
            dtypes[column] = dtype
    return dtypes or None


def _column_dtype(dtypes: Any, values: npt.NDArray[Any], place: int) -> Any:
    """Return a column's type as its frame tells it, or else as its values do."""
    if dtypes is not None:
        return dtypes.iloc[place]
    return np.asarray(values[:, place].tolist()).dtype if values.dtype == object else values.dtype


def _check_columns(rows: npt.NDArray[Any], dataset: Dataset, background: Background) -> None:
    if rows.shape[1] != background.values.shape[1]:
        raise InvalidArgumentError(
            f"X has {rows.shape[1]} columns, but the masker's background has "
            f"{background.values.shape[1]}."
        )
    if dataset.columns is None or background.columns is None:
        return
    if dataset.columns != list(background.columns):
        if set(dataset.columns) == set(background.columns):
            raise InvalidArgumentError(
                "X has the masker's columns in another order. Pass X[list(background.columns)]."
            )
        missing = [c for c in background.columns if c not in dataset.columns]
        raise InvalidArgumentError(
            f"X lacks columns of the masker's background, or names them otherwise: {missing[:5]}."
        )
