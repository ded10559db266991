"""Value functions of a classifier's outputs, for examples and captum's targets."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.games.value_functions import ValuedGame, ValueFunction

from .forward_function_game import ForwardFunctionGame


class ClassValueGame(ValuedGame):
    """The game of a value function for each example: one number comes out."""

    output_shape: tuple[int, ...] = ()

    @property
    def output_dtype(self) -> torch.dtype:
        """Type of the model's output."""
        dtype: torch.dtype = self.game.output_dtype
        return dtype


def class_value_game(
    game: ForwardFunctionGame, value_function: ValueFunction, target: object
) -> ClassValueGame:
    """Return the game of a value function, in which `target` names the class of each example."""
    if target is None:
        return ClassValueGame(game, value_function)
    kind = value_function.kind
    if kind == "expected_log_probability":
        raise InvalidArgumentError(
            f"target must be None where value_function={kind!r}, which is about all classes; got "
            f"{target!r}."
        )
    if value_function.classes is not None:
        raise InvalidArgumentError(
            f"target={target!r} and classes={value_function.classes!r} of the value function both "
            "name a class; leave one of them out."
        )
    return ClassValueGame(game, value_function, _classes(target, game.n_rows, kind))


def _classes(target: object, n_examples: int, kind: str) -> IntArray:
    classes = target.cpu().numpy() if isinstance(target, Tensor) else np.asarray(target)
    # A tuple is captum's index of several dimensions, not one class for each example.
    n_allowed = (1,) if isinstance(target, tuple) else (1, n_examples)
    if classes.dtype.kind not in "iu" or classes.size not in n_allowed or classes.ndim > 1:
        raise InvalidArgumentError(
            f"target must be one class, or one for each example, where value_function={kind!r}; "
            f"got {target!r}."
        )
    return np.broadcast_to(classes.astype(np.intp).ravel(), n_examples)
