"""A forward function, its inputs and baselines as cooperative games."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from shapley_adapters.array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from shapley_adapters.batched_evaluation import rows_per_batch
from shapley_adapters.errors import InvalidArgumentError, ModelOutputError
from shapley_adapters.value_functions import Reduction

from .captum_internals import select_targets
from .feature_groups import FeatureGroups


class OneValueForBatchError(Exception):
    """The forward function returned one value for the whole batch."""


@dataclass
class ForwardFunctionGame:
    """One game for each example.

    Attributes
    ----------
    forward_func : callable
        The forward function.
    inputs, baselines : tuple of tensors
        Values of present and absent numbers; the first dimension of a baseline may be 1.
    groups : FeatureGroups
        The players.
    target, additional_forward_args
        As captum takes them; those that belong to examples follow their example.
    output_shape : tuple of int
        Shape of the selected output of one example; known after the first evaluation.
    output_dtype : torch.dtype
        Its type; known after the first evaluation.
    """

    forward_func: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    baselines: tuple[Tensor, ...]
    groups: FeatureGroups
    target: Any = None
    additional_forward_args: tuple[Any, ...] = ()
    output_shape: tuple[int, ...] = field(default=(), init=False)
    output_dtype: torch.dtype = field(default=torch.float32, init=False)

    def __post_init__(self) -> None:
        self._takes_nothing = _takes_nothing(self.forward_func)
        self._is_known = False

    @property
    def n_rows(self) -> int:
        """Number of examples."""
        return len(self.inputs[0])

    @property
    def n_players(self) -> int:
        """Number of players."""
        return self.groups.n_players

    @property
    def evaluations_per_batch(self) -> int:
        """How many masked examples make a good batch."""
        example_bytes = sum(t[0].numel() * t.element_size() for t in self.inputs)
        return rows_per_batch(example_bytes, self.inputs[0].device.type)

    def active_players(self) -> BoolArray:
        """Tell where inputs differ from baselines; NaN differs from all but NaN."""
        active = np.zeros((self.n_rows, self.n_players), dtype=bool)
        for index, (given, absent) in enumerate(zip(self.inputs, self.baselines, strict=True)):
            differs = given != absent
            if given.is_floating_point():
                differs &= ~(given.isnan() & absent.isnan())
            flat = differs.reshape(self.n_rows, given[0].numel()).cpu().numpy()
            active |= self.groups.any_of(flat, index)
        return active

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the selected outputs, (P, K), outputs of several dimensions flattened."""
        if not self._is_known and len(rows) > self.n_rows:
            # The first forward pass holds the examples once, as captum's does: a function that
            # returns one value for the batch may work for no other number of them.
            first, rest = slice(self.n_rows), slice(self.n_rows, None)
            halves = [self(rows[part], coalitions[part]) for part in (first, rest)]
            return np.concatenate(halves)
        self._is_known = True
        with torch.no_grad():
            output = self._selected(self.masked(rows, coalitions), rows)
        return output.to(device="cpu", dtype=torch.float64).numpy()

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values that `reduce` makes of the outputs, one for each class."""
        outputs = self(rows, coalitions)
        if len(self.output_shape) > 1:
            raise InvalidArgumentError(
                "value_function needs outputs of shape (B, classes); those of forward_func have "
                f"shape (B, {', '.join(map(str, self.output_shape))})."
            )
        return reduce(outputs[:, None], rows)

    def masked(self, rows: IntArray, coalitions: CoalitionArray) -> tuple[Tensor, ...]:
        """Return the inputs of each row with absent numbers replaced by the baseline's."""
        absent = ~coalitions
        return tuple(
            _filled(given, baseline, rows, self.groups.spread(absent, rows, index))
            for index, (given, baseline) in enumerate(zip(self.inputs, self.baselines, strict=True))
        )

    # What follows makes this a DifferentiableGame.

    @property
    def derivative_obstacle(self) -> str | None:
        """Inputs of whole numbers have no derivative."""
        for index, tensor in enumerate(self.inputs):
            if not tensor.is_floating_point():
                return f"inputs[{index}] holds whole numbers ({tensor.dtype})"
        return None

    def fully_present(self, n_points: int) -> Tensor:
        """Return ones in the precision of the inputs."""
        first = self.inputs[0]
        return torch.ones(n_points, self.n_players, dtype=first.dtype, device=first.device)

    def presence_values(self, rows: IntArray, presence: Tensor) -> Tensor:
        """Return the selected outputs on the line from baselines to inputs."""
        points = []
        for index, (given, absent) in enumerate(zip(self.inputs, self.baselines, strict=True)):
            start = _of_rows(absent, rows)
            degree = self.groups.spread_tensor(presence, rows, index).reshape(start.shape)
            points.append(start + degree * (given[rows] - start))
        return self._selected(tuple(points), rows)

    def call(self, inputs: tuple[Tensor, ...], additional: tuple[Any, ...]) -> Any:
        """Call the forward function; one without parameters is called without inputs."""
        if self._takes_nothing:
            return self.forward_func()
        return self.forward_func(*inputs, *additional)

    def _selected(self, masked: tuple[Tensor, ...], rows: IntArray) -> Tensor:
        """Run the forward function and select targets, (P, K)."""
        output = self.call(masked, self._additional(rows))
        _check_output(output, len(rows))
        selected = self._target_of(output, rows)
        self.output_shape, self.output_dtype = tuple(selected.shape[1:]), selected.dtype
        return selected.reshape(len(rows), -1)

    def _additional(self, rows: IntArray) -> tuple[Any, ...]:
        """Repeat what belongs to examples; other tensors, as an edge index, go in as they are."""
        return tuple(
            argument[rows]
            if isinstance(argument, Tensor) and argument.shape[:1] == (self.n_rows,)
            else argument
            for argument in self.additional_forward_args
        )

    def _target_of(self, output: Tensor, rows: IntArray) -> Tensor:
        target = self.target
        if isinstance(target, list):
            target = [target[r] for r in rows]
        elif isinstance(target, Tensor) and target.numel() > 1:
            target = target.to(output.device)[rows]
        try:
            selected: Tensor = select_targets(output, target)
        except (AssertionError, IndexError, RuntimeError, TypeError) as error:
            raise InvalidArgumentError(
                f"target={_brief(self.target)} does not select from an output of shape "
                f"{tuple(output.shape[1:])} for each example. {error}"
            ) from error
        return selected


@dataclass
class BatchGame:
    """One game for the whole batch, for forward functions that return one value for all examples.

    Each evaluation masks all examples alike and is one call of the forward function.
    """

    examples: ForwardFunctionGame
    evaluations_per_batch: int = 1
    derivative_obstacle: str = "forward_func returns one value for the whole batch"
    output_shape: tuple[int, ...] = field(default=(), init=False)
    output_dtype: torch.dtype = field(default=torch.float32, init=False)

    @property
    def n_rows(self) -> int:
        """The batch is one row."""
        return 1

    @property
    def n_players(self) -> int:
        """Number of players."""
        return self.examples.n_players

    def active_players(self) -> BoolArray:
        """Tell which players differ from their baselines in any example."""
        active: BoolArray = np.any(self.examples.active_players(), axis=0)[None]
        return active

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the outputs, (P, 1)."""
        return np.array([[self._value(coalition)] for coalition in coalitions])

    def _value(self, coalition: CoalitionArray) -> float:
        game = self.examples
        everyone = np.arange(game.n_rows)
        alike = np.broadcast_to(coalition, (game.n_rows, len(coalition)))
        with torch.no_grad():
            masked = game.masked(everyone, alike)
            output = game.call(masked, game.additional_forward_args)
        if isinstance(output, Tensor):
            self.output_dtype = output.dtype
        return float(output)


def _check_output(output: Any, n_expected: int) -> None:
    if isinstance(output, (int, float)):
        raise OneValueForBatchError
    if not isinstance(output, Tensor):
        raise ModelOutputError(
            f"forward_func must return a tensor or a number; it returned {type(output).__name__}. "
            "Wrap it in a function that picks the tensor to explain."
        )
    if output.dim() == 0 or (output.numel() == 1 and n_expected > 1):
        raise OneValueForBatchError
    if len(output) != n_expected:
        raise ModelOutputError(
            f"forward_func must return one entry for each of its {n_expected} examples; its "
            f"output has shape {tuple(output.shape)}."
        )


def _filled(
    given: Tensor, baseline: Tensor, rows: IntArray, absent: npt.NDArray[np.bool_]
) -> Tensor:
    """Return the rows of `given` with the baseline's numbers where they are absent.

    Numbers are selected, not multiplied: NaN and infinities of the other side must not leak.
    """
    shape = (len(rows), *given.shape[1:])
    if given.device.type != "cpu" or given.dtype == torch.bfloat16:
        where = torch.as_tensor(absent.reshape(shape), device=given.device)
        return torch.where(where, _of_rows(baseline, rows), given[rows])
    # NumPy gathers and copies several times faster than torch does on a CPU.
    filled = given.numpy()[rows]
    source = baseline.numpy() if len(baseline) == 1 else baseline.numpy()[rows]
    np.copyto(filled, source, where=absent.reshape(shape))
    return torch.from_numpy(filled)


def _of_rows(baseline: Tensor, rows: IntArray) -> Tensor:
    return baseline.expand(len(rows), *baseline.shape[1:]) if len(baseline) == 1 else baseline[rows]


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        return len(inspect.signature(function).parameters) == 0
    except ValueError:  # builtins have no signature; they do take inputs
        return False


def _brief(target: Any) -> str:
    text = repr(target)
    return text if len(text) <= 60 else text[:57] + "..."
