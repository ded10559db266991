"""Losses of predictions, by which features are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arguments import checked_choice
from ..array_types import FloatArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError

LOSSES = ("squared_error", "cross_entropy")

_LEAST_PROBABILITY = 1e-15
_ROUNDING = 1e-3
"""By how much probabilities of single precision may leave the range from 0 to 1, or their sum 1."""

LossFunction: TypeAlias = Callable[[Any, Any], Any]
"""Maps predictions, (P,) or (P, K), and labels, (P,) or (P, …), to losses, (P,)."""


@dataclass(frozen=True)
class LabelledLoss:
    """The loss of predictions against labels.

    Attributes
    ----------
    function : callable
        Maps predictions and labels to losses.
    labels : array, (R,) or (R, …)
        The label of each row.
    """

    function: LossFunction
    labels: npt.NDArray[Any]

    def __call__(self, predictions: FloatArray, rows: Any) -> FloatArray:
        """Return the losses, (P,), of predictions, (P, K), for rows of the labels."""
        shown = predictions[:, 0] if predictions.shape[1] == 1 else predictions
        losses = np.asarray(self.function(shown, self.labels[rows]), dtype=np.float64)
        if losses.shape != (len(predictions),):
            raise InvalidArgumentError(
                f"loss must return one number for each prediction, shape ({len(predictions)},); it "
                f"returned shape {losses.shape}. Do not average over predictions."
            )
        return losses


def checked_loss(loss: Any, labels: Any, n_rows: int, name: str = "y") -> LabelledLoss:
    """Return the loss that a user names or passes, with the labels of all rows.

    `name` is that of the labels in the host.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If there is no loss or no labels, or if they do not fit the rows.
    """
    if loss is None:
        raise InvalidArgumentError(
            "loss= is missing for kind='loss'. Pass 'squared_error', 'cross_entropy', or a "
            "function of predictions and labels that returns one loss for each row."
        )
    if labels is None:
        raise InvalidArgumentError(
            f"{name}= is missing for kind='loss'. Pass the label of each row."
        )
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 0 or len(array) != n_rows:
        raise InvalidArgumentError(
            f"{name} has shape {array.shape}; one label is needed for each of the {n_rows} rows."
        )
    if callable(loss):
        return LabelledLoss(loss, array)
    if not isinstance(loss, str):
        raise InvalidArgumentTypeError(
            f"loss must be one of {', '.join(map(repr, LOSSES))}, or a function; got "
            f"{type(loss).__name__}."
        )
    if checked_choice("loss", loss, LOSSES) == "squared_error":
        return LabelledLoss(squared_error, _checked_numbers(array))
    return LabelledLoss(cross_entropy, _checked_classes(array))


def squared_error(predictions: FloatArray, labels: npt.NDArray[Any]) -> FloatArray:
    """Return the squared differences, summed over the outputs."""
    if predictions.shape != labels.shape:
        raise InvalidArgumentError(
            f"The labels have {_per_row(labels)} for each row, but the model returns "
            f"{_per_row(predictions)}. The squared error needs one label for each output."
        )
    squares: FloatArray = (predictions - labels) ** 2
    if squares.ndim == 1:
        return squares
    sums: FloatArray = squares.sum(axis=1)
    return sums


def cross_entropy(predictions: FloatArray, labels: npt.NDArray[Any]) -> FloatArray:
    """Return −log of the probability of the label's class.

    Predictions are probabilities of all classes or, if there is one output, of class 1.
    """
    probabilities = predictions
    if predictions.ndim == 1:
        probabilities = np.stack([1 - predictions, predictions], axis=1)
    _check_probabilities(probabilities)
    if labels.max() >= probabilities.shape[1]:
        raise InvalidArgumentError(
            f"The labels name class {int(labels.max())}, but the model has "
            f"{probabilities.shape[1]} classes, counted from 0."
        )
    of_labels = probabilities[np.arange(len(labels)), labels]
    losses: FloatArray = -np.log(np.maximum(of_labels, _LEAST_PROBABILITY))
    return losses


def _check_probabilities(probabilities: FloatArray) -> None:
    is_inside = (probabilities >= -_ROUNDING) & (probabilities <= 1 + _ROUNDING)
    is_whole = np.abs(probabilities.sum(axis=1) - 1) <= _ROUNDING
    if is_inside.all() and is_whole.all():
        return
    worst = int(np.argmin(is_inside.all(axis=1) & is_whole))
    raise InvalidArgumentError(
        "loss='cross_entropy' needs a model that returns probabilities; the model returned "
        f"{probabilities[worst].round(4).tolist()}. Pass a model that returns probabilities, such "
        "as predict_proba, or a loss function of your own."
    )


def _checked_numbers(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if labels.dtype.kind not in "biuf":
        raise InvalidArgumentTypeError(
            f"The labels must hold numbers for loss='squared_error'; they are {labels.dtype}."
        )
    numbers = labels.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise InvalidArgumentError(
            f"{int((~np.isfinite(numbers)).sum())} labels are not finite. Leave their rows out."
        )
    return numbers


def _checked_classes(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    is_whole = labels.dtype.kind in "biu" or (
        labels.dtype.kind == "f" and bool((labels == np.floor(labels)).all())
    )
    if not is_whole or labels.ndim != 1 or (labels < 0).any():
        raise InvalidArgumentError(
            "The labels must be the index of a class for each row, counted from 0, for "
            f"loss='cross_entropy'; they are {labels.dtype} of shape {labels.shape}. With names "
            "of classes, pass np.searchsorted(model.classes_, y)."
        )
    return labels.astype(np.intp)


def _per_row(array: npt.NDArray[Any]) -> str:
    return "one number" if array.ndim == 1 else f"{array.shape[1]} numbers"
