"""A forward function, its inputs and baselines as cooperative games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from shapley_adapters.array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from shapley_adapters.errors import InvalidArgumentError, ModelOutputError
from torch import Tensor

from .captum_internals import run_forward, select_targets
from .feature_groups import FeatureGroups

_BATCH_BYTES = 2**26
_MAX_BATCH = 4096


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
        """How many masked examples fit a bound on memory."""
        example = sum(t[0].numel() * t.element_size() for t in self.inputs)
        return max(1, min(_MAX_BATCH, _BATCH_BYTES // max(1, example)))

    def active_players(self) -> BoolArray:
        """Tell where inputs differ from baselines; NaN differs from all but NaN."""
        active = torch.zeros(self.n_rows, self.n_players, dtype=torch.bool)
        for index, (given, absent) in enumerate(zip(self.inputs, self.baselines, strict=True)):
            differs = given != absent
            if given.is_floating_point():
                differs &= ~(given.isnan() & absent.isnan())
            active |= self.groups.any_of(differs.flatten(1), index).cpu()
        return active.numpy()

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the selected outputs, (P, K), outputs of several dimensions flattened."""
        device = self.inputs[0].device
        row, present = torch.as_tensor(rows, device=device), torch.as_tensor(coalitions)
        with torch.no_grad():
            masked = self._masked(row, present.to(device))
            output = self._selected(masked, rows, row)
        return output.to(device="cpu", dtype=torch.float64).numpy()

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
        row = torch.as_tensor(rows, device=presence.device)
        points = []
        for index, (given, absent) in enumerate(zip(self.inputs, self.baselines, strict=True)):
            start = _of_rows(absent, row)
            degree = self.groups.spread(presence, row, index).reshape(start.shape)
            points.append(start + degree * (given[row] - start))
        return self._selected(tuple(points), rows, row)

    def _masked(self, row: Tensor, coalitions: Tensor) -> tuple[Tensor, ...]:
        masked = []
        for index, (given, absent) in enumerate(zip(self.inputs, self.baselines, strict=True)):
            own = given[row]
            present = self.groups.spread(coalitions, row, index).reshape(own.shape)
            # Selected, not multiplied: NaN and infinities of the other side must not leak.
            masked.append(torch.where(present, own, _of_rows(absent, row)))
        return tuple(masked)

    def _selected(self, masked: tuple[Tensor, ...], rows: IntArray, row: Tensor) -> Tensor:
        """Run the forward function and select targets, (P, K)."""
        output = run_forward(self.forward_func, masked, self._additional(row))
        _check_output(output, len(rows))
        selected = self._target_of(output, rows, row)
        self.output_shape, self.output_dtype = tuple(selected.shape[1:]), selected.dtype
        return selected.reshape(len(rows), -1)

    def _additional(self, row: Tensor) -> tuple[Any, ...]:
        """Repeat what belongs to examples; other tensors, as an edge index, go in as they are."""
        return tuple(
            argument[row.to(argument.device)]
            if isinstance(argument, Tensor) and argument.shape[:1] == (self.n_rows,)
            else argument
            for argument in self.additional_forward_args
        )

    def _target_of(self, output: Tensor, rows: IntArray, row: Tensor) -> Tensor:
        target = self.target
        if isinstance(target, list):
            target = [target[r] for r in rows]
        elif isinstance(target, Tensor) and target.numel() > 1:
            target = target.to(output.device)[row.to(output.device)]
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
        device = game.inputs[0].device
        everyone = torch.arange(game.n_rows, device=device)
        present = torch.as_tensor(coalition, device=device).expand(game.n_rows, -1)
        with torch.no_grad():
            masked = game._masked(everyone, present)
            output = run_forward(game.forward_func, masked, game.additional_forward_args)
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


def _of_rows(baseline: Tensor, row: Tensor) -> Tensor:
    return baseline.expand(len(row), *baseline.shape[1:]) if len(baseline) == 1 else baseline[row]


def _brief(target: Any) -> str:
    text = repr(target)
    return text if len(text) <= 60 else text[:57] + "..."
