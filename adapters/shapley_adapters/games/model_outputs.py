"""Outputs of models of all kinds, as arrays."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt

from ..array_types import FloatArray
from ..errors import ModelOutputError
from ..torch_support.tensor_arrays import array_of
from .evaluation import OutputShape, in_double_precision


def as_outputs(output: Any, n_rows: int, shape: OutputShape | None = None) -> FloatArray:
    """Convert the output of a model to an array, (n_rows, K); further dimensions are flattened.

    The array is a copy, because some models write each output into the same memory.

    Raises
    ------
    ModelOutputError
        If there is not one entry for each row, or not one number at least in each entry; or if K
        differs from that of earlier calls with the same `shape`.
    """
    columns = getattr(output, "columns", None)
    names = None if columns is None else list(map(str, columns))
    if isinstance(output, (list, tuple)):
        arrays = [array_of(entry) for entry in output]
        output = arrays if isinstance(output, list) else tuple(arrays)
        _refuse_one_array_per_target(output)
    values = _numbers(array_of(output))
    if values.ndim == 0 or len(values) != n_rows:
        raise ModelOutputError(
            f"The model must return one entry for each of its {n_rows} input rows; its output has "
            f"shape {values.shape}."
        )
    if values.size == 0 and n_rows > 0:
        raise ModelOutputError(
            f"The model must return one number at least for each row; its output has shape "
            f"{values.shape}."
        )
    values = values.reshape(n_rows, -1)
    if shape is not None:
        shape.check(values.shape[1:])
        dtype = np.asarray(array_of(output)).dtype  # outputs may be lists or tables
        shape.rounding = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
        shape.names = names
    return values


def _numbers(output: Any) -> FloatArray:
    """Return a copy in double precision; raise an error for texts and times."""
    if isinstance(output, np.ma.MaskedArray) and np.ma.is_masked(output):
        raise ModelOutputError(
            "The model returned a masked array, some of whose values are masked. Return numbers "
            "for all rows, for example by output.filled(0.0)."
        )
    try:
        array = np.asarray(output)
        kind = array.dtype.kind
        if kind not in "biufcO" or (kind == "O" and _holds_texts(array)):
            raise TypeError("texts and times are not numbers")  # NumPy would convert "1" to 1.0
        if kind != "c":
            return in_double_precision("The model", array)
    except ModelOutputError:  # a ValueError, too
        raise
    except (TypeError, ValueError) as error:
        advice = "Explain a function that does, such as predict_proba."
        if inspect.iscoroutine(output):
            output.close()
            advice = "Wrap the coroutine function: RemoteModel(model)."
        raise ModelOutputError(
            f"The model must return numbers; it returned {type(output).__name__}. {advice}"
        ) from error
    raise ModelOutputError("The model must return real numbers; it returned complex ones.")


def _holds_texts(array: npt.NDArray[Any]) -> bool:
    return any(isinstance(cell, (str, bytes)) for cell in array.flat)


def _refuse_one_array_per_target(output: list[Any] | tuple[Any, ...]) -> None:
    """Refuse lists of arrays, which may hold one array for each target and not for each row."""
    n_axes = [np.ndim(entry) for entry in output]
    max_axes = 0 if isinstance(output, tuple) else 1  # a list may hold the outputs of each row
    if any(n > max_axes for n in n_axes):
        raise ModelOutputError(
            f"The model returned a {type(output).__name__} of {len(output)} arrays, so that it is "
            "not known which axis holds the rows. Explain a function that returns one array: "
            "lambda x: function(x)[0] explains the first target, lambda x: np.hstack(function(x)) "
            "all targets side by side. Of an estimator, function is its method predict_proba."
        )
