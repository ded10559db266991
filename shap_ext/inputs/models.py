"""Models in the forms that users pass."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentTypeError, ModelOutputError
from shapley_adapters.games.evaluation import OutputShape, in_double_precision
from shapley_adapters.memory_bounds import MAX_INPUT_BYTES
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..argument_types import Model, ModelOutput
from .fitted_models import estimator_function


def is_torch_module(model: object) -> TypeGuard[Any]:
    """Return whether `model` is a torch module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def inner_model(model: Any) -> Any:
    """Return the model inside `shap.models.Model`, or the model itself."""
    # Its subclasses do more than wrap.
    return model.inner_model if type(model) is shap.models.Model else model


def prediction_function(model: Model) -> Callable[..., Any]:
    """Return the function of the inputs that is to be explained.

    Torch modules run without gradients, on arrays. Of models that are not callable, the function
    is that of `estimator_function`.
    """
    model = inner_model(model)
    if isinstance(model, type):
        raise InvalidArgumentTypeError(
            f"model must be a function or a fitted model; got the class {model.__name__}. Pass an "
            "object of the class."
        )
    if is_torch_module(model):
        from shapley_adapters.torch_support.array_module import ArrayModule

        return ArrayModule(model)
    if callable(model):
        return model
    return estimator_function(model)


new_shape = partial(OutputShape, "The model", "Explain rows with different outputs one at a time.")
"""Returns the shape of the outputs of a model for one row, before its first call."""


class GameOfModel:
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
    def max_input_bytes(self) -> int:
        """The bytes that the inputs of one batch may take: a share of the free memory of a GPU."""
        return int(getattr(self.predict, "max_input_bytes", MAX_INPUT_BYTES))

    @property
    def rounding(self) -> float:
        """Relative rounding error of the model's output, where it is known.

        That of the output is known after the first evaluation; a model may compute less precisely.
        """
        return max(float(getattr(self.predict, "rounding", 0.0)), self._shape.rounding)


def as_outputs(output: ModelOutput, n_rows: int, shape: OutputShape | None = None) -> FloatArray:
    """Convert the output of a model to an array, (n_rows, K); further dimensions are flattened.

    The array is a copy, because some models write each output into the same memory.

    Raises
    ------
    ModelOutputError
        If there is not one entry for each row, or not one number at least in each entry; or if K
        differs from that of earlier calls with the same `shape`.
    """
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
        shape.rounding = _rounding_of(output)
    return values


def _rounding_of(output: ModelOutput) -> float:
    """Return the relative rounding error of the output's type; 0 where it is not a float."""
    dtype = np.asarray(array_of(output)).dtype  # outputs may be lists or tables
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0


def _numbers(output: ModelOutput) -> FloatArray:
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
        raise ModelOutputError(
            f"The model must return numbers; it returned {type(output).__name__}. Explain a "
            "function that does, such as predict_proba."
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
