"""Models in the forms that users pass: functions, torch modules, fitted estimators, Boosters."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentTypeError, ModelOutputError, warn_user
from shapley_adapters.games.evaluation import OutputShape, in_double_precision
from shapley_adapters.memory_bounds import MAX_INPUT_BYTES
from shapley_adapters.model_usage import Usage
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..argument_types import Model, ModelOutput, Table

_OF_CLASS_NUMBERS = frozenset(["classifier", "clusterer", "outlier_detector"])
"""Kinds of estimators whose `predict` returns numbers or labels of classes."""

_OBJECTIVES_OF_CLASS_NUMBERS = {
    "multi:softmax": "multi:softprob",
    "binary:hinge": "binary:logistic",
}
"""Objectives of xgboost that predict numbers of classes, and those that predict probabilities."""

_INDICATOR = "lambda x: (model.predict(x) == label).astype(float)"


new_shape = partial(OutputShape, "The model", "Explain rows with different outputs one at a time.")
"""Returns the shape of the outputs of a model for one row, before its first call."""


def estimator_function(model: object) -> Callable[..., Any]:
    """Return the function of a fitted estimator that is explained.

    It is the first one that the estimator has: `predict_proba`; then `decision_function` if
    `predict` returns numbers or labels of classes, and `predict` otherwise.

    Raises
    ------
    InvalidArgumentTypeError
        If the estimator has none of these, or can only predict numbers or labels of classes.
    """
    if _is_xgboost_booster(model):
        return BoosterPrediction(model)
    methods = ["predict_proba", "decision_function" if predicts_classes(model) else "predict"]
    for method in methods:
        if callable(getattr(model, method, None)):
            return getattr(model, method)  # type: ignore[no-any-return]
    if callable(getattr(model, "predict", None)):
        raise InvalidArgumentTypeError(
            f"model {type(model).__name__} predicts numbers or labels of classes, which cannot be "
            f"averaged, and has neither predict_proba nor decision_function.{_remedy(model)} Pass "
            f"a function that returns scores as model: {_INDICATOR} explains one class."
        )
    raise InvalidArgumentTypeError(
        f"model must be callable, or have predict_proba or predict; got {type(model).__name__}. "
        "Pass the function to explain, such as model.predict."
    )


def predicts_classes(model: object) -> bool:
    """Return whether `predict` of an estimator returns numbers or labels of classes."""
    catboost = sys.modules.get("catboost")
    if catboost is not None and type(model) is catboost.CatBoost:
        return False  # its tags are those of a classifier, but it predicts raw scores
    kind = _kind(model)
    return kind in _OF_CLASS_NUMBERS or (kind is None and hasattr(model, "classes_"))


def warn_of_classes(model: object) -> None:
    """Warn if `model` is the method `predict` of an estimator that predicts classes."""
    while isinstance(model, functools.partial):
        model = model.func
    estimator = getattr(model, "__self__", None)
    if estimator is None or isinstance(estimator, type):
        return
    if getattr(model, "__name__", "") != "predict" or not predicts_classes(estimator):
        return
    name = type(estimator).__name__
    warn_user(
        f"model is {name}.predict, which returns numbers or labels of classes: averages of these "
        f"depend on how the classes are numbered. Pass the {name} itself, whose probabilities or "
        f"scores are explained, or {_INDICATOR} for one class."
    )


class BoosterPrediction:
    """The predictions of an `xgboost.Booster`, which takes a DMatrix instead of an array.

    Raises
    ------
    InvalidArgumentTypeError
        If the objective of the Booster predicts numbers of classes.
    """

    def __init__(self, booster: Any) -> None:
        self.booster = booster
        learner = json.loads(booster.save_config())["learner"]
        objective = learner["objective"]["name"]
        if objective in _OBJECTIVES_OF_CLASS_NUMBERS:
            raise InvalidArgumentTypeError(
                f"model is a Booster with the objective {objective!r}, which predicts numbers of "
                "classes. These cannot be averaged. Train it with "
                f"{_OBJECTIVES_OF_CLASS_NUMBERS[objective]!r}, or pass its raw scores as model: "
                "lambda x: booster.predict(xgboost.DMatrix(x, enable_categorical=True), "
                "output_margin=True)."
            )

    def __call__(self, rows: Table) -> Any:
        """Return the predictions for rows."""
        is_frame = hasattr(rows, "columns")
        matrix = importlib.import_module("xgboost").DMatrix(
            rows,
            feature_names=None if is_frame else self.booster.feature_names,
            feature_types=None if is_frame else self.booster.feature_types,
            enable_categorical=True,
        )
        return self.booster.predict(matrix)


def _is_xgboost_booster(model: object) -> TypeGuard[Any]:
    xgboost = sys.modules.get("xgboost")
    return xgboost is not None and isinstance(model, xgboost.Booster)


def _kind(model: object) -> str | None:
    """Return scikit-learn's kind of an estimator: "classifier", "regressor", "clusterer", …."""
    tags = getattr(model, "__sklearn_tags__", None)  # None in some other libraries
    try:
        kind = None if tags is None else tags().estimator_type
    except AttributeError:  # of estimators that have the mixins of scikit-learn only
        kind = None
    return getattr(model, "_estimator_type", None) if kind is None else kind


def _remedy(model: object) -> str:
    """Return a remedy for the error message, if the estimator has one."""
    if getattr(model, "voting", None) == "hard":
        return " With voting='soft' it has predict_proba."
    if _kind(model) == "clusterer" and callable(getattr(model, "transform", None)):
        return " Its distances to the centres are numbers: pass model.transform."
    return ""


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
    def usage(self) -> Usage | None:
        """What a remote model was used for so far."""
        return getattr(self.predict, "usage", None)

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
        dtype = np.asarray(array_of(output)).dtype  # outputs may be lists or tables
        shape.rounding = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
    return values


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
        advice = "Explain a function that does, such as predict_proba."
        if inspect.iscoroutine(output):
            output.close()
            advice = "Wrap the coroutine function: shap_ext.RemoteModel(model)."
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
