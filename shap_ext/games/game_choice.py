"""Cooperative games of rows, by the kind of their masker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..argument_types import Model
from ..inputs.backgrounds import Background, check_columns, model_input_maker
from ..inputs.column_groups import ColumnGroups
from ..inputs.datasets import Dataset, one_array
from ..inputs.masked_rows import MaskedRow
from ..inputs.models import inner_model, is_torch_module, prediction_function
from ..shap_internals import keeps_row_between_calls
from .dense_game import TabularGame
from .links import LinkedAverage
from .masker_game import MaskerGame, TargetedTextGame
from .sparse_game import SparseGame, in_one_type


def tabular_game(
    model: Model,
    background: Background,
    dataset: Dataset,
    groups: ColumnGroups,
    average: LinkedAverage,
    linearize_link: bool,
) -> TabularGame | SparseGame:
    """Make the game of rows against a background.

    Raises
    ------
    InvalidArgumentError
        If rows and background do not have the same columns in the same order.
    """
    if dataset.is_sparse:
        return _sparse_game(model, background, dataset, groups, average, linearize_link)
    rows, absent, row_shape = table_and_background(dataset, background)
    predict = prediction_function(model)
    is_module = is_torch_module(inner_model(model))
    if is_module and rows.dtype.kind not in "biuf":
        raise InvalidArgumentTypeError(
            "X holds values that are not numbers, which a torch module cannot take. Encode them."
        )
    if is_module:  # once, not in each batch
        rows, absent = predict.in_precision(rows), predict.in_precision(absent)  # type: ignore[attr-defined]
    return TabularGame(
        predict=predict,
        rows=rows,
        background=absent,
        players=groups.players,
        average=average,
        to_model_input=model_input_maker(background, dataset, row_shape, is_module),
        module=predict if is_module else None,  # type: ignore[arg-type]
        row_shape=row_shape,
        linearize_link=linearize_link,
    )


def _sparse_game(
    model: Model,
    background: Background,
    dataset: Dataset,
    groups: ColumnGroups,
    average: LinkedAverage,
    linearize_link: bool,
) -> SparseGame:
    check_columns(dataset.row_shape[0], dataset, background)
    if not background.is_sparse and background.values.dtype.kind not in "biufc":
        raise InvalidArgumentTypeError(
            "X is sparse, but masker's background holds values that are not numbers. Pass X as a "
            "DataFrame like the background."
        )
    rows, absent = in_one_type(dataset.values, background.values)
    is_module = is_torch_module(inner_model(model))
    return SparseGame(
        predict=prediction_function(model),
        rows=rows,
        background=absent,
        players=groups.players,
        average=average,
        to_model_input=(lambda masked: masked.toarray()) if is_module else (lambda masked: masked),
        is_dense_for_model=is_module,
        linearize_link=linearize_link,
    )


def table_and_background(
    dataset: Dataset, background: Background
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], tuple[int, ...]]:
    """Return rows and background as tables of one type, and the shape of a row."""
    rows = one_array(dataset.values)
    if rows.ndim < 2:
        raise InvalidArgumentError(
            f"X has shape {rows.shape}: a table of rows is needed. For one row pass X[None]."
        )
    row_shape = rows.shape[1:]
    rows = rows.reshape(len(rows), -1)
    check_columns(rows.shape[1], dataset, background)
    absent = background.values.toarray() if background.is_sparse else background.values
    families = {
        "number" if dtype.kind in "biufc" else dtype.kind for dtype in (rows.dtype, absent.dtype)
    }
    if len(families) > 1 and "O" not in families:  # NumPy would make texts of numbers
        raise InvalidArgumentTypeError(
            f"X holds {rows.dtype} and masker's background {absent.dtype}: absent values must be "
            "of the same kind as present ones. Bring both to one type, for example times to "
            "numbers."
        )
    common = np.result_type(rows.dtype, absent.dtype)
    # Without copies, because games only read them and large tables are passed. Those of frames are
    # stored by columns, and `take` would copy the whole table for each batch: eleven times the time
    # of a row, with 200,000 of them.
    return rows.astype(common, order="C", copy=False), absent.astype(common, copy=False), row_shape


def masker_game(
    model: Model,
    rows: Sequence[MaskedRow],
    players_of_rows: Sequence[IntArray],
    n_players: int,
    average: LinkedAverage,
    linearize_link: bool,
) -> MaskerGame:
    """Build the game of rows that mask themselves."""
    predict = prediction_function(model)
    kind = TargetedTextGame if keeps_row_between_calls(predict) else MaskerGame
    return kind(predict, rows, players_of_rows, n_players, average, linearize_link)
