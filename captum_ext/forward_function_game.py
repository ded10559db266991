"""A forward function, its inputs and baselines as cooperative games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from shapley_adapters.batch_sizes import BatchBounds
from shapley_adapters.batched_evaluation import in_batches, rows_per_batch
from shapley_adapters.errors import DerivativeError, InvalidArgumentError, ModelOutputError
from shapley_adapters.torch_modules import how_to_pick
from shapley_adapters.value_functions import Reduction

from .baselines import Baselines
from .captum_internals import select_targets
from .feature_groups import FeatureGroups
from .inputs import takes_nothing


class OneValueForBatchError(Exception):
    """The forward function returned one value for the whole batch."""


@dataclass
class ForwardFunctionGame:
    """One game for each example.

    Attributes
    ----------
    forward_func : callable
        The forward function.
    inputs : tuple of tensors
        Values of present numbers.
    baselines : Baselines
        Values of absent numbers. The output is averaged over a distribution of them, each draw of
        which costs a row of the forward function.
    groups : FeatureGroups
        The players.
    target, additional_forward_args
        As captum takes them; those that belong to examples follow their example.
    perturbations_per_eval : int, optional
        How many masked copies of the examples one call of the forward function holds at most.
    output_shape : tuple of int
        Shape of the selected output of one example; known after the first evaluation.
    output_dtype : torch.dtype
        Its type; known after the first evaluation.
    """

    forward_func: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    baselines: Baselines
    groups: FeatureGroups
    target: Any = None
    additional_forward_args: tuple[Any, ...] = ()
    perturbations_per_eval: int | None = None
    output_shape: tuple[int, ...] = field(default=(), init=False)
    output_dtype: torch.dtype = field(default=torch.float32, init=False)

    def __post_init__(self) -> None:
        self._takes_nothing = takes_nothing(self.forward_func)
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
    def rows_per_forward(self) -> int:
        """How many masked examples go into one call of the forward function."""
        if self.perturbations_per_eval is not None:
            return self.perturbations_per_eval * self.n_rows
        return rows_per_batch(self._example_bytes, self.inputs[0].device.type)

    @property
    def evaluations_per_batch(self) -> int:
        """How many evaluations make a good batch, each a row for every draw of the baselines."""
        return max(1, self.rows_per_forward // self.baselines.n_draws)

    @property
    def batch_bounds(self) -> BatchBounds | None:
        """Between which sizes of batches to choose, unless the user has chosen one."""
        if self.perturbations_per_eval is not None:
            return None
        return BatchBounds.of_bytes(self._example_bytes, self.baselines.n_draws)

    @property
    def _example_bytes(self) -> int:
        return sum(t[0].numel() * t.element_size() for t in self.inputs)

    def active_players(self) -> BoolArray:
        """Tell where inputs differ from baselines; NaN differs from all but NaN."""
        active = np.zeros((self.n_rows, self.n_players), dtype=bool)
        for index, given in enumerate(self.inputs):
            active |= self.groups.any_of(self.baselines.differ_from(given, index), index)
        return active

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the selected outputs, (P, K), outputs of several dimensions flattened."""
        outputs = self._outputs(rows, coalitions)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs.mean(axis=1)

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values that `reduce` makes of the outputs, one for each class."""
        outputs = self._outputs(rows, coalitions)
        if len(self.output_shape) > 1:
            raise InvalidArgumentError(
                "value_function needs outputs of shape (B, classes); those of forward_func have "
                f"shape (B, {', '.join(map(str, self.output_shape))})."
            )
        return reduce(outputs, rows)

    def masked(
        self, rows: IntArray, coalitions: CoalitionArray, draws: IntArray | None = None
    ) -> tuple[Tensor, ...]:
        """Return the inputs of each row with absent numbers replaced by the baseline's."""
        absent = ~coalitions
        return tuple(
            self.baselines.filled(
                given, index, rows, draws, self.groups.spread(absent, rows, index)
            )
            for index, given in enumerate(self.inputs)
        )

    def _outputs(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the selected outputs for each draw of the baselines, (P, draws, K)."""
        n_pairs, n_draws = len(rows), self.baselines.n_draws
        collected: list[ValueArray] = []

        def collect(start: int, stop: int) -> None:
            part: Any = slice(start, stop)
            draws = None
            if n_draws > 1:
                draws, part = np.divmod(np.arange(start, stop), n_pairs)
            with torch.no_grad():
                masked = self.masked(rows[part], coalitions[part], draws)
                output = self._selected(masked, rows[part])
            collected.append(output.to(device="cpu", dtype=torch.float64).numpy())

        total, first = n_pairs * n_draws, 0
        was_known, self._is_known = self._is_known, True
        if not was_known and total > self.n_rows:
            # The first forward pass holds the examples once, as captum's does: a function that
            # returns one value for the batch may work for no other number of them.
            first = min(self.n_rows, self.rows_per_forward)
            collect(0, first)
        if n_pairs > 1 or n_draws == 1:
            collect(first, total)  # as many as the caller has found to fit
        else:
            size = self.rows_per_forward
            in_batches(total - first, size, lambda i, j: collect(first + i, first + j))
        outputs = np.concatenate(collected)
        return outputs.reshape(n_draws, n_pairs, outputs.shape[1]).swapaxes(0, 1)

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
        """Return the selected outputs on the lines from baselines to inputs, averaged."""
        n_pairs, n_draws = len(rows), self.baselines.n_draws
        draw, pair = np.divmod(np.arange(n_pairs * n_draws), n_pairs)
        rows, presence = rows[pair], presence.repeat(n_draws, 1)
        points = []
        for index, given in enumerate(self.inputs):
            start = self.baselines.of_rows(index, rows, draw)
            degree = self.groups.spread_tensor(presence, rows, index).reshape(start.shape)
            if start.is_inference():  # autograd cannot save it
                start = start.clone()
            # Exact at both ends, which matters to models that compare or convert.
            points.append(torch.lerp(start, given[rows], degree.to(start)))
        outputs = self._selected(tuple(points), rows)
        if not outputs.is_floating_point():
            raise DerivativeError(f"forward_func returns {outputs.dtype} numbers.")
        return outputs.reshape(n_draws, n_pairs, outputs.shape[1]).mean(dim=0)

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
        return selected_targets(output, target, self.target)


@dataclass
class BatchGame:
    """One game for the whole batch, for forward functions that return one value for all examples.

    Each evaluation masks all examples alike and is one call of the forward function, for each draw
    of the baselines.
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
        values = []
        for draw in range(game.baselines.n_draws):
            with torch.no_grad():
                masked = game.masked(everyone, alike, np.full(game.n_rows, draw))
                output = game.call(masked, game.additional_forward_args)
            if isinstance(output, Tensor):
                self.output_dtype = output.dtype
            values.append(float(output))
        return float(np.mean(values))


def selected_targets(output: Tensor, target: Any, given: Any) -> Tensor:
    """Select the target of each example, or say that `given`, the user's, does not select.

    Raises
    ------
    InvalidArgumentError
        If there is no such output.
    """
    try:
        selected: Tensor = select_targets(output, target)
    except (AssertionError, IndexError, RuntimeError, TypeError) as error:
        raise InvalidArgumentError(
            f"target={_brief(given)} does not select from an output of shape "
            f"{tuple(output.shape[1:])} for each example. {error}"
        ) from error
    return selected


def _check_output(output: Any, n_expected: int) -> None:
    if isinstance(output, (int, float)):
        raise OneValueForBatchError
    if not isinstance(output, Tensor):
        raise ModelOutputError(
            f"forward_func must return a tensor or a number; {how_to_pick(output)}"
        )
    if output.is_complex() or output.layout != torch.strided:
        kind = "complex" if output.is_complex() else "sparse"
        raise ModelOutputError(
            f"forward_func must return a dense tensor of real numbers; it returned a {kind} one."
        )
    if output.dim() == 0 or (output.numel() == 1 and n_expected > 1):
        raise OneValueForBatchError
    if len(output) != n_expected:
        raise ModelOutputError(
            f"forward_func must return one entry for each of its {n_expected} examples; its "
            f"output has shape {tuple(output.shape)}."
        )


def _brief(target: Any) -> str:
    text = repr(target)
    return text if len(text) <= 60 else text[:57] + "..."
