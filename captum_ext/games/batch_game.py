"""A forward function that returns one result for all examples, as a cooperative game."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from shapley_adapters.errors import InvalidArgumentError, ModelOutputError
from shapley_adapters.games.evaluation import in_double_precision
from shapley_adapters.games.fingerprints import fingerprint
from shapley_adapters.games.game import WrappedGame
from shapley_adapters.games.value_functions import ValuedGame, ValueFunction
from shapley_adapters.torch_support.tensor_arrays import array_of

from .forward_function_game import ForwardFunctionGame
from .model_outputs import dense_output, rounding_of


@dataclass
class BatchGame(WrappedGame):
    """One game for the whole batch, for forward functions that return one result for all examples.

    The result is a number or, with `perturbations_per_eval=1`, a tensor of any shape. Each
    evaluation masks all examples alike and is one call of the forward function, for each draw of
    the baselines.
    """

    game: ForwardFunctionGame
    output_shape: tuple[int, ...] = field(default=(), init=False)
    output_dtype: torch.dtype = field(default=torch.float32, init=False)
    _is_known: bool = field(default=False, init=False)

    n_rows, evaluations_per_batch, batch_bounds = 1, 1, None
    has_single_outputs = has_one_full_value = True
    derivative_obstacle = "forward_func returns one value for the whole batch"

    @property
    def rounding(self) -> float:
        """Relative rounding error of the output, known after the first evaluation."""
        return rounding_of(self.output_dtype)

    def active_players(self) -> BoolArray:
        """Return the players that differ from their baselines in any example."""
        return np.any(super().active_players(), axis=0)[None]

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of the whole batch."""
        return [fingerprint(*super().row_fingerprints())]

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the outputs, (P, K)."""
        return np.array([self._values(coalition) for coalition in coalitions])

    def outputs_at(
        self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray
    ) -> ValueArray:
        """Return the outputs, (P, K), each for one draw of the baselines."""
        return np.array(list(map(self._value_at, coalitions, backgrounds)))

    def _values(self, coalition: CoalitionArray) -> FloatArray:
        draws = range(self.n_backgrounds)
        return np.mean([self._value_at(coalition, draw) for draw in draws], axis=0)

    def _value_at(self, coalition: CoalitionArray, draw: int) -> FloatArray:
        game = self.game
        all_rows = np.arange(game.n_rows)
        alike = np.broadcast_to(coalition, (game.n_rows, len(coalition)))
        with torch.no_grad():
            masked = game.masked(all_rows, alike, np.full(game.n_rows, draw))
            output = game.call(masked, game.additional_of(all_rows))
        return self._flat(output)

    def _flat(self, output: object) -> FloatArray:
        """Return one result as an array, (K,); all results must have the same shape."""
        if isinstance(output, (int, float)):
            in_double_precision("forward_func", output)
            tensor = torch.tensor(output, dtype=torch.float64)
        else:
            tensor = dense_output(output)
            self.output_dtype = tensor.dtype
        shape = () if tensor.numel() == 1 else tuple(tensor.shape)
        if shape and self.game.perturbations_per_eval != 1:
            self._refuse((), shape)  # one value has been seen before this game was made
        if self._is_known and shape != self.output_shape:
            self._refuse(self.output_shape, shape)
        self._is_known, self.output_shape = True, shape
        return in_double_precision("forward_func", array_of(tensor)).ravel()

    @staticmethod
    def _refuse(first: tuple[int, ...], later: tuple[int, ...]) -> NoReturn:
        spoken = [
            f"a result of shape {shape}" if shape else "one value" for shape in (first, later)
        ]
        raise ModelOutputError(
            f"forward_func returned {spoken[0]} for the whole batch first, and {spoken[1]} in a "
            "later call. It must return one entry for each example, or results of the same shape "
            "for the whole batch."
        )


class ClassValueGame(ValuedGame):
    """The game of a value function for each example: one number comes out."""

    output_shape: tuple[int, ...] = ()

    @property
    def output_dtype(self) -> torch.dtype:
        """Type of the model's output."""
        return self.game.output_dtype


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
