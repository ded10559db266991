"""The function of a fitted estimator or Booster that is explained."""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections.abc import Callable
from typing import Any, TypeGuard

from shapley_adapters.errors import InvalidArgumentTypeError, warn_user

from ..argument_types import Table

_OF_CLASS_NUMBERS = frozenset(["classifier", "clusterer", "outlier_detector"])
"""Kinds of estimators whose `predict` returns numbers or labels of classes."""

_OBJECTIVES_OF_CLASS_NUMBERS = {
    "multi:softmax": "multi:softprob",
    "binary:hinge": "binary:logistic",
}
"""Objectives of xgboost that predict numbers of classes, and those that predict probabilities."""

_INDICATOR = "lambda x: (model.predict(x) == label).astype(float)"


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
