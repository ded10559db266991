"""Models, the games that evaluate them, and what is explained: a function of rows and its unit.

What is explained follows from the model alone, for all algorithms, backgrounds and frames. A
function is explained as it is. Of a fitted estimator the default is what shap's own default
explains: the margins of boosted trees and linear models, the probabilities of forests, and else
`predict_proba` of classifiers and `predict` of regressors. Pipelines and searches are explained as
their last or best estimator alone.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import shap

from shapley_adapters.arguments import checked_choice
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError, warn_user
from shapley_adapters.frames import frame_like
from shapley_adapters.games.evaluation import ModelCalls, OutputShape
from shapley_adapters.games.game import Game
from shapley_adapters.memory_bounds import MAX_INPUT_BYTES
from shapley_adapters.remote import Usage

from ..argument_types import Model, Table

MODEL_OUTPUTS = ("auto", "raw", "probability", "log_odds")
"""The words of `model_output`: those of shap's TreeExplainer, and log-odds."""

_OF_CLASS_NUMBERS = frozenset(["classifier", "clusterer", "outlier_detector"])
"""Kinds of estimators whose `predict` returns numbers or labels of classes."""

_INDICATOR = "lambda x: (model.predict(x) == label).astype(float)"


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
    output_shape : OutputShape
        What the outputs have been like so far.
    """

    predict: Callable[..., Any]
    output_shape: OutputShape

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
    def derivative_obstacle(self) -> str | None:
        """Say why there are no derivatives, of torch modules by the game alone."""
        if getattr(self.predict, "has_derivatives", False):
            return "the masker is not a background of dense rows"
        return super().derivative_obstacle

    @property
    def usage(self) -> Usage | None:
        """What a remote model was used for so far."""
        return getattr(self.predict, "usage", None)

    @property
    def rounding(self) -> float:
        """Relative rounding error of the model's output, where it is known.

        That of the output is known after the first evaluation; a model may compute less precisely.
        """
        return max(float(getattr(self.predict, "rounding", 0.0)), self.output_shape.rounding)


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


@dataclass(frozen=True)
class ExplainedFunction:
    """What is explained of a model.

    Attributes
    ----------
    model : callable or torch module
        The function of rows.
    unit : {"raw", "probability", "log_odds"}
        The unit of its outputs: of attributions, too, unless there is a link.
    classes : list of str, or None
        The names of the classes, which outputs have where there is one for each.
    structure : object, optional
        The estimator whose trees or coefficients are this function; None of other functions.
    """

    model: Any
    unit: str = "raw"
    classes: list[str] | None = None
    structure: Any = None


def explained_function(model: Model, model_output: str = "auto") -> ExplainedFunction:
    """Return what is explained of a model.

    Parameters
    ----------
    model : callable, torch module or fitted estimator
        The model.
    model_output : {"auto", "raw", "probability", "log_odds"}
        The unit. `"raw"` are margins where the estimator has them; `"log_odds"` are those of the
        probabilities, of the second class where there are two, with probabilities at least the
        smallest step of double precision away from 0 and 1.

    Raises
    ------
    InvalidArgumentError
        If the model does not have this output.
    InvalidArgumentTypeError
        If it is neither a function nor a fitted estimator, or predicts numbers or labels of classes
        alone.
    """
    checked_choice("model_output", model_output, MODEL_OUTPUTS)
    model = inner_model(model)
    if isinstance(model, type):
        raise InvalidArgumentTypeError(
            f"model must be a function or a fitted model; got the class {model.__name__}. Pass an "
            "object of the class."
        )
    if callable(model):  # as torch modules are
        if model_output in ("probability", "log_odds"):
            raise InvalidArgumentError(
                f"model_output={model_output!r} needs a fitted classifier; model is a function, "
                "whose outputs are explained as they are. Pass the classifier itself, or a "
                "function that returns what you want to explain."
            )
        return ExplainedFunction(model)
    return _of_estimator(model, model_output)


def prediction_function(model: Model) -> Callable[..., Any]:
    """Return the function that is explained, on arrays: torch modules run without gradients."""
    function: Callable[..., Any] = explained_function(model).model
    if is_torch_module(function):
        from shapley_adapters.torch_support.array_module import ArrayModule

        return ArrayModule(function)
    return function


def prediction(model: Model) -> ExplainedFunction:
    """Return what a model predicts: probabilities where it has them, for losses and their kind."""
    model = inner_model(model)
    if callable(model):
        return ExplainedFunction(model)
    if is_instance(model, "xgboost", "Booster"):
        return ExplainedFunction(partial(_booster_outputs, model, output_margin=False))
    scores = "decision_function" if predicts_classes(model) else "predict"
    for method in ("predict_proba", scores):
        if callable(getattr(model, method, None)):
            return ExplainedFunction(getattr(model, method))
    return explained_function(model)


def text_vectorizer(model: Any) -> Any:
    """Return the first step of a pipeline, or of its method, if it takes texts; else None."""
    model = inner_model(model)
    model = getattr(model, "__self__", model)
    model = getattr(model, "best_estimator_", model)  # of a search
    steps = getattr(model, "steps", None)  # of a Pipeline
    first = steps[0][1] if isinstance(steps, list) and steps else None
    return first if hasattr(first, "build_analyzer") else None


def _of_estimator(model: Any, model_output: str) -> ExplainedFunction:
    if hasattr(model, "best_estimator_"):  # of a search
        return _of_estimator(model.best_estimator_, model_output)
    if hasattr(model, "steps") and hasattr(model, "__getitem__"):  # a Pipeline
        last = _of_estimator(model[-1], model_output)
        if len(model.steps) == 1:
            return last
        return ExplainedFunction(
            partial(_after_steps, model[:-1], last.model), last.unit, last.classes
        )
    classes = getattr(model, "classes_", None)
    names = None
    if isinstance(classes, np.ndarray) and classes.ndim == 1:  # not of several targets
        names = list(map(str, classes))
    if model_output in ("probability", "log_odds"):
        probabilities = getattr(model, "predict_proba", None)
        if probabilities is None:
            raise InvalidArgumentError(
                f"model_output={model_output!r} needs predict_proba, which {type(model).__name__} "
                "does not have."
            )
        if model_output == "probability":
            return ExplainedFunction(probabilities, "probability", names)
        return ExplainedFunction(partial(_log_odds, probabilities), "log_odds", names)
    margins = _margins(model)
    if margins is not None:
        return ExplainedFunction(margins, "raw", names, structure=model)
    has_structure = callable(getattr(model, "apply", None)) and hasattr(model, "predict")
    structure = model if has_structure else None  # the trees of scikit-learn's forests
    if callable(getattr(model, "predict_proba", None)):
        return ExplainedFunction(model.predict_proba, "probability", names, structure)
    if shap.TreeExplainer.supports_model_with_masker(model, None):  # such as isolation forests
        sums = partial(_tree_sums, shap.TreeExplainer(model).model)
        return ExplainedFunction(sums, "raw", names, structure=model)
    scores = "decision_function" if predicts_classes(model) else "predict"
    if callable(getattr(model, scores, None)):
        return ExplainedFunction(getattr(model, scores), "raw", names, structure)
    if callable(getattr(model, "predict", None)):
        raise InvalidArgumentTypeError(
            f"model {type(model).__name__} predicts numbers or labels of classes, which cannot be "
            f"averaged. It has neither predict_proba nor decision_function.{_remedy(model)} Pass "
            f"a function that returns scores as model: {_INDICATOR} explains one class."
        )
    raise InvalidArgumentTypeError(
        f"model must be callable, or have predict_proba or predict; got {type(model).__name__}. "
        "Pass the function to explain, such as model.predict."
    )


def _margins(model: Any) -> Callable[[Any], Any] | None:
    """Return the margins of boosted trees and linear models; None of other estimators."""
    if is_instance(model, "xgboost", "Booster"):
        return partial(_booster_outputs, model, output_margin=True)
    if is_instance(model, "xgboost", "XGBModel"):
        if model.booster == "gblinear":
            return None
        return partial(model.predict, output_margin=True)
    if is_instance(model, "lightgbm", "LGBMModel", "Booster"):
        return partial(model.predict, raw_score=True)
    if is_instance(model, "catboost", "CatBoost"):
        return partial(model.predict, prediction_type="RawFormulaVal")
    boosted = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")
    if is_instance(model, "sklearn.ensemble", *boosted):
        return model.decision_function
    is_linear = getattr(model, "coef_", None) is not None and hasattr(model, "intercept_")
    if is_linear and predicts_classes(model):
        return getattr(model, "decision_function", None)
    if is_linear or is_instance(model, "sklearn.ensemble", "HistGradientBoostingRegressor"):
        return partial(_log_of, model.predict) if _has_log_link(model) else model.predict
    return None


def _has_log_link(model: Any) -> bool:
    """Return whether a regressor of scikit-learn predicts the exponential of its trees or sum."""
    if is_instance(model, "sklearn.ensemble", "HistGradientBoostingRegressor"):
        return model.loss in ("poisson", "gamma")
    names = ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
    if not is_instance(model, "sklearn.linear_model", *names):
        return False
    link = getattr(model, "link", "log")
    return bool(link == "log" or (link == "auto" and model.power > 0))


def is_instance(model: object, package: str, *names: str) -> TypeGuard[Any]:
    """Return whether `model` is of a class of a package, without importing the package."""
    module = sys.modules.get(package)
    kinds = tuple(getattr(module, name) for name in names if hasattr(module, name))
    return isinstance(model, kinds)


def _booster_outputs(booster: Any, rows: Table, output_margin: bool) -> Any:
    """Return the margins or predictions of an `xgboost.Booster`, which takes a DMatrix of rows."""
    is_frame = hasattr(rows, "columns")
    matrix = importlib.import_module("xgboost").DMatrix(
        rows,
        feature_names=None if is_frame else booster.feature_names,
        feature_types=None if is_frame else booster.feature_types,
        enable_categorical=True,
    )
    return booster.predict(matrix, output_margin=output_margin)


def _log_odds(probabilities: Callable[[Any], Any], rows: Table) -> FloatArray:
    """Return log-odds of probabilities of classes, (n,) of the second of two, or (n, K) of each."""
    shares = np.asarray(probabilities(rows), dtype=np.float64)
    if shares.ndim == 2 and shares.shape[1] == 2:  # the two classes
        shares = shares[:, 1]
    step = np.finfo(np.float64).eps
    shares = np.clip(shares, step, 1 - step)
    return np.log(shares) - np.log1p(-shares)


def _log_of(predict: Callable[[Any], Any], rows: Table) -> FloatArray:
    """Return the linear predictor of a regressor of positive numbers, whose link is the log."""
    return np.log(np.asarray(predict(rows), dtype=np.float64))


def _after_steps(steps: Any, predict: Callable[[Any], Any], rows: Table) -> Any:
    """Return what is explained of the last step of a Pipeline, behind the others."""
    return predict(steps.transform(rows))


def _tree_sums(ensemble: Any, rows: Table) -> Any:
    """Return the sums of trees that shap knows, and that their own methods do not return."""
    return ensemble.predict(np.asarray(rows))


def predicts_classes(model: object) -> bool:
    """Return whether `predict` of an estimator returns numbers or labels of classes."""
    kind = _kind(model)
    return kind in _OF_CLASS_NUMBERS or (kind is None and hasattr(model, "classes_"))


def warn_of_classes(model: object) -> None:
    """Warn if `model` is the method `predict` of an estimator that predicts classes."""
    while isinstance(model, partial):
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


def _kind(model: object) -> str | None:
    """Return scikit-learn's kind of an estimator: "classifier", "regressor", "clusterer", …."""
    tags = getattr(model, "__sklearn_tags__", None)  # from scikit-learn 1.6 on
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
