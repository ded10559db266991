"""The value that is explained for a classifier: its outputs, log-probabilities, or a margin.

Chen et al., 2019, 2.1 explain log-probabilities: that of the predicted class, or the expectation
over all classes. The average over absent features comes first: the probability of a class, given
some of the features, is the mean of its probabilities over the background.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.special

from ..arguments import checked_choice
from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from .evaluation import background_mean
from .fingerprints import fingerprint
from .game import WrappedGame

if TYPE_CHECKING:
    import torch

KINDS = ("raw", "log_probability", "expected_log_probability", "margin")
SCALES = ("auto", "probabilities", "logits")

_LEAST_PROBABILITY = 1e-15
"""Smaller probabilities are replaced by this one, which keeps logarithms finite."""

_ROUNDING = 1e-4
_DOUBT = 0.05
"""Outputs are probabilities if their sum differs from 1 by at most `_ROUNDING`; up to `_DOUBT` the
kind of the outputs is unclear."""

Reduction: TypeAlias = Callable[[FloatArray, IntArray], ValueArray]
"""Maps the outputs of P masked rows with B background rows, (P, B, K), to values, (P, K′)."""


@dataclass(frozen=True)
class ValueFunction:
    """How the outputs of a classifier become the value that is explained.

    Attributes
    ----------
    kind : {"raw", "log_probability", "expected_log_probability", "margin"}
        `"raw"`: the outputs. `"log_probability"`: the logarithm of the probability of the class
        that the model predicts for the row. `"expected_log_probability"`: that of all classes,
        weighted by the probabilities that the model predicts for the row. `"margin"`: the
        difference of two outputs, by default those of the class that the model predicts and of
        the next one.
    scale : {"auto", "probabilities", "logits"}
        The kind of the model's outputs. `"auto"`: they are probabilities if none is negative and
        their sum is 1, else logits. For a model with a single output, "auto" is an error.
    classes : int or pair of int, optional
        Another class to explain than the predicted one. For the margin, also a pair of classes, of
        which the second is subtracted.
    """

    kind: str = "raw"
    scale: str = "auto"
    classes: Any = None

    def __post_init__(self) -> None:
        checked_choice("value_function", self.kind, KINDS)
        checked_choice("scale", self.scale, SCALES)
        if self.classes is None:
            return
        if self.kind in ("raw", "expected_log_probability"):
            raise InvalidArgumentError(
                f"classes={self.classes!r} has no meaning for value_function={self.kind!r}, which "
                "uses all classes; leave it out."
            )
        n_largest = 2 if self.kind == "margin" else 1
        classes = self.classes if isinstance(self.classes, (tuple, list)) else (self.classes,)
        are_whole = all(isinstance(c, numbers.Integral) and int(c) >= 0 for c in classes)
        if not are_whole or not 1 <= len(set(classes)) == len(classes) <= n_largest:
            raise InvalidArgumentError(
                f"classes must be the index of a class, counted from 0"
                f"{', or a pair of different ones' if n_largest == 2 else ''}; got "
                f"{self.classes!r}."
            )

    @property
    def is_raw(self) -> bool:
        """Whether outputs are explained as they are."""
        return self.kind == "raw"


ValueFunctionOrName: TypeAlias = ValueFunction | str
"""A value function, or the name of its kind."""


def checked_value_function(value_function: Any) -> ValueFunction:
    """Return a value function, which may be given by its name."""
    if isinstance(value_function, ValueFunction):
        return value_function
    if isinstance(value_function, str):
        return ValueFunction(value_function)
    raise InvalidArgumentTypeError(
        f"value_function must be one of {', '.join(map(repr, KINDS))}, or a ValueFunction; got "
        f"{type(value_function).__name__}."
    )


def checked_log_probability(value_function: Any) -> ValueFunction:
    """Return a value function, which may be given by its name, if it is a log-probability."""
    function = checked_value_function(value_function)
    if function.kind != "log_probability":
        raise InvalidArgumentError(
            "value_function must be 'log_probability' or a ValueFunction of that kind; got "
            f"{function.kind!r}."
        )
    return function


@dataclass
class ValuedGame(WrappedGame):
    """The game of a value function.

    The class of a row is computed from the outputs for the whole row. The same outputs are also the
    value of all players together, so that they are evaluated once.

    Attributes
    ----------
    game : OutputGame
        Returns the outputs.
    value_function : ValueFunction
        The value function; not "raw".
    classes : array, (R,), optional
        The class of each row, instead of the value function's.
    background_weights : array, (B,), optional
        Weight of each background row, with sum 1; by default they are equal.
    """

    game: Any
    value_function: ValueFunction
    classes: IntArray | None = None
    background_weights: FloatArray | None = None
    _weights: FloatArray = field(init=False, repr=False)
    _full: FloatArray = field(init=False, repr=False)
    _are_probabilities: BoolArray = field(init=False, repr=False)
    _is_known: BoolArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._is_known = np.zeros(self.n_rows, dtype=bool)
        self._are_probabilities = np.zeros(self.n_rows, dtype=bool)
        self._full = self._weights = np.zeros((self.n_rows, 0))

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, 1)."""
        self._evaluate_full(rows)
        values = self._values(self._full[rows][:, None], rows)
        is_partial = ~coalitions.all(axis=1)
        if is_partial.any():
            values[is_partial] = self.game.reduced(
                rows[is_partial], coalitions[is_partial], self._values
            )
        return values

    def repeated(self, n_repeats: int) -> ValuedGame:
        """Return the game of repetitions, where the values of the inner game are random."""
        classes = None if self.classes is None else np.repeat(self.classes, n_repeats)
        return replace(self, game=self.game.repeated(n_repeats), classes=classes)

    def row_fingerprints(self) -> list[bytes]:
        """Return digests of the inner game's rows and of their classes."""
        rows = super().row_fingerprints()
        if self.classes is None:
            return rows
        return [fingerprint(row, c) for row, c in zip(rows, self.classes, strict=True)]

    @property
    def derivative_obstacle(self) -> str | None:
        """The reason why there are no derivatives; None if there are."""
        return self.game.derivative_obstacle

    def fully_present(self, n_points: int) -> torch.Tensor:
        """Return ones in the model's precision."""
        return self.game.fully_present(n_points)

    def presence_values(self, rows: IntArray, presence: torch.Tensor) -> torch.Tensor:
        """Return the values of the outputs at `presence`, (P, 1)."""
        from .value_functions_torch import tensor_values

        self._evaluate_full(rows)
        is_margin = self.value_function.kind == "margin"
        values = partial(
            tensor_values,
            weights=self._weights[rows],
            are_probabilities=None if is_margin else self._are_probabilities[rows],
            background_weights=self.background_weights,
        )
        found: torch.Tensor = self.game.presence_values(rows, presence, values)
        return found

    def _evaluate_full(self, rows: IntArray) -> None:
        """Evaluate the outputs for whole rows, unless this has been done."""
        new = np.unique(rows[~self._is_known[rows]])
        if len(new) == 0:
            return
        full_coalitions = np.ones((len(new), self.n_players), dtype=bool)
        full = self.game.reduced(new, full_coalitions, lambda outputs, _: outputs.mean(axis=1))
        if self._full.shape[1] == 0:
            self._full = np.zeros((self.n_rows, full.shape[1]))
            self._weights = np.zeros((self.n_rows, max(2, full.shape[1])))
        self._full[new] = full
        self._are_probabilities[new] = self._checked_scale(full)
        self._is_known[new] = True
        classes = None if self.classes is None else self.classes[new]
        self._weights[new] = _class_weights(
            self._class_values(full[:, None], new)[:, 0], self.value_function, classes
        )

    def _values(self, outputs: FloatArray, rows: IntArray) -> ValueArray:
        """Return the values of outputs, (P, B, K)."""
        of_classes = self._class_values(outputs, rows)
        if self.value_function.kind == "margin":
            means = background_mean(of_classes, self.background_weights)
        else:  # the logarithm of the mean of probabilities
            means = self._mean_logarithms(of_classes)
        return (self._weights[rows] * means).sum(axis=1, keepdims=True)

    def _mean_logarithms(self, of_classes: FloatArray) -> FloatArray:
        """Return the logarithm of the mean over the background, (P, K), from logarithms."""
        weights = self.background_weights
        if weights is not None:
            return scipy.special.logsumexp(of_classes, axis=1, b=weights[:, None])
        n_background = of_classes.shape[1]
        return scipy.special.logsumexp(of_classes, axis=1) - math.log(n_background)

    def _class_values(self, outputs: FloatArray, rows: IntArray) -> FloatArray:
        """Return log-probabilities, or plain outputs for the margin, of at least two classes."""
        are_probabilities = self._are_probabilities[rows][:, None, None]
        if outputs.shape[2] == 1:
            outputs = np.concatenate([np.where(are_probabilities, 1 - outputs, 0.0), outputs], 2)
        if self.value_function.kind == "margin":
            return outputs
        with np.errstate(invalid="ignore"):  # from the branch that is not used
            logs = np.log(np.maximum(outputs, _LEAST_PROBABILITY))
        return np.where(are_probabilities, logs, scipy.special.log_softmax(outputs, axis=2))

    def _checked_scale(self, full: FloatArray) -> BoolArray:
        """Return for which rows, (R,), the outputs for whole rows, (R, K), are probabilities."""
        scale, kind = self.value_function.scale, self.value_function.kind
        n_outputs = full.shape[1]
        if scale == "auto" and n_outputs == 1:
            raise InvalidArgumentError(
                f"value_function={kind!r}: a single output may be a probability or a logit. Pass "
                f"ValueFunction({kind!r}, scale='probabilities') or scale='logits'."
            )
        distance = np.abs(full.sum(axis=1) - 1)
        if n_outputs == 1:
            distance = np.zeros(len(full))
        looks_so = (full >= -_ROUNDING).all(axis=1) & (full <= 1 + _ROUNDING).all(axis=1)
        if scale == "probabilities" and not (looks_so & (distance < _DOUBT)).all():
            row = int(np.argmin(looks_so & (distance < _DOUBT)))
            raise InvalidArgumentError(
                f"scale='probabilities', but the model returned {full[row].round(4).tolist()}, "
                "which does not add up to 1. Pass scale='logits'."
            )
        if scale != "auto":
            return np.full(len(full), scale == "probabilities")
        in_doubt = looks_so & (distance > _ROUNDING) & (distance < _DOUBT)
        if in_doubt.any():
            raise InvalidArgumentError(
                f"value_function={kind!r}: the outputs {full[in_doubt][0].tolist()} add up to "
                "almost 1, so that they may be rounded probabilities or logits. Pass "
                f"ValueFunction({kind!r}, scale='probabilities') or scale='logits'."
            )
        return looks_so & (distance <= _ROUNDING)


def _class_weights(
    of_classes: FloatArray, value_function: ValueFunction, classes: IntArray | None
) -> FloatArray:
    """Return the weight of each class in the value of each row, (R, K), from its outputs."""
    n_rows, n_classes = of_classes.shape
    if value_function.kind == "expected_log_probability":
        return np.exp(of_classes)
    choice = value_function.classes
    if classes is not None:
        choice = (classes,)
    elif choice is None:
        choice = ()
    elif not isinstance(choice, (tuple, list)):
        choice = (choice,)
    rows = np.arange(n_rows)
    first = choice[0] if choice else of_classes.argmax(axis=1)
    first = np.broadcast_to(first, n_rows)
    _check_classes(first, n_classes)
    weights = np.zeros((n_rows, n_classes))
    weights[rows, first] = 1.0
    if value_function.kind == "margin":
        other_outputs = of_classes.copy()
        other_outputs[rows, first] = -np.inf
        second = choice[1] if len(choice) == 2 else other_outputs.argmax(axis=1)
        second = np.broadcast_to(second, n_rows)
        _check_classes(second, n_classes)
        weights[rows, second] = -1.0
    return weights


def _check_classes(classes: IntArray, n_classes: int) -> None:
    if (classes >= n_classes).any() or (classes < 0).any():
        raise InvalidArgumentError(
            f"classes names class {int(classes[(classes >= n_classes) | (classes < 0)][0])}, but "
            f"the model has {n_classes} classes, counted from 0."
        )
