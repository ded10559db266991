"""Losses of predictions, and the game of a loss (SAGE).

Covert, Lundberg and Lee, 2020: the value of a coalition is the loss without any feature less the
loss with the features of the coalition. The prediction with some of the features is the mean over
the background. The loss is taken of this mean. The mean of the losses for the background rows, as a
model with the loss as its output gives it, is another game: it also charges the spread of the
predictions over the background.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arguments import checked_choice
from ..array_types import CoalitionArray, FloatArray, IntArray, ValueArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from ..games.evaluation import background_mean
from ..games.fingerprints import fingerprint
from ..games.game import WrappedGame
from ..games.value_functions import ValueFunctionOrName, checked_value_function

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


def checked_loss(
    loss: Any, labels: Any, n_rows: int, name: str, value_function: ValueFunctionOrName
) -> LabelledLoss:
    """Return the loss that a user names or passes, with the labels of all rows.

    `name` is that of the labels in the host, and `value_function` that of its explainer.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If there is no loss or no labels, or if they do not fit the rows.
    """
    if not checked_value_function(value_function).is_raw:
        raise InvalidArgumentError(
            f"value_function={value_function!r} is used for the output, but kind='loss' explains "
            "the loss of the output itself. Leave out value_function."
        )
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
    return squares.sum(axis=1)


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
    return -np.log(np.maximum(of_labels, _LEAST_PROBABILITY))


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


@dataclass
class LossGame(WrappedGame):
    """The negative loss of each row.

    Attributes
    ----------
    game : OutputGame
        Returns the outputs.
    loss : LabelledLoss
        The loss, with the labels of all rows of the game.
    background_weights : array, (B,), optional
        Weight of each background row, 1 in all; by default they are equal.
    """

    game: Any
    loss: LabelledLoss
    background_weights: FloatArray | None = None

    derivative_obstacle = "the loss is not differentiated"

    def repeated(self, n_repeats: int) -> LossGame:
        """Return the game of repetitions, where the values of the inner game are random."""
        loss = replace(self.loss, labels=np.repeat(self.loss.labels, n_repeats, axis=0))
        return replace(self, game=self.game.repeated(n_repeats), loss=loss)

    def row_fingerprints(self) -> list[bytes]:
        """Return digests of the inner game's rows and of their labels."""
        rows = super().row_fingerprints()
        return [fingerprint(row, label) for row, label in zip(rows, self.loss.labels, strict=True)]

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the negative losses, (P, 1)."""
        return self.game.reduced(rows, coalitions, self._negative_losses)

    def _negative_losses(self, outputs: FloatArray, rows: IntArray) -> ValueArray:
        """Return the negative losses, (P, 1), of outputs for the background, (P, B, K)."""
        predictions = background_mean(outputs, self.background_weights)
        return -self.loss(predictions, rows)[:, None]


def check_no_loss(kind: str, **arguments: Any) -> None:
    """Refuse a loss and labels where attributions are averaged, which would ignore them."""
    for name, value in arguments.items():
        if value is not None:
            raise InvalidArgumentError(
                f"{name} is used with kind='loss' only; kind is {kind!r}. Pass kind='loss', or "
                f"leave out {name}."
            )
