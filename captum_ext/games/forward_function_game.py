"""A forward function, its inputs and baselines as cooperative games."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.futures import Future

from shapley_adapters.array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from shapley_adapters.errors import (
    DerivativeError,
    FutureError,
    InvalidArgumentError,
    ModelOutputError,
)
from shapley_adapters.games.batch_sizes import BatchBounds
from shapley_adapters.games.evaluation import (
    ModelCalls,
    in_batches,
    in_double_precision,
    rows_per_batch,
)
from shapley_adapters.games.fingerprints import fingerprint
from shapley_adapters.games.game import Game
from shapley_adapters.games.value_functions import Reduction
from shapley_adapters.remote import Usage
from shapley_adapters.torch_support.array_module import (
    changing_layers,
    interpolated,
    max_input_bytes,
)
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..inputs.baselines import Baselines
from ..inputs.checks import takes_nothing
from ..inputs.feature_groups import FeatureGroups
from ..inputs.forward_arguments import arguments_of_rows, entries_of_examples
from .model_outputs import OutputSelection, one_row_alone, rounding_of

CALLS_IN_FLIGHT = 8
"""How many calls of the forward function `attribute_future` starts before it waits for the first.

Enough to hide the delay of a remote model. The masked inputs of all calls are in memory.
"""


def waited(output: object) -> Any:
    """Return the result of an output that is a Future; return other outputs unchanged.

    Raises
    ------
    FutureError
        If the Future ended with an error.
    """
    if not isinstance(output, Future):
        return output
    try:
        return output.wait()
    except Exception as error:
        raise FutureError(
            "The Future that forward_func returned ended with an error: "
            f"{type(error).__name__}: {error}"
        ) from error


def in_background(function: Callable[[], Any], inputs: Sequence[Tensor]) -> Future[Any]:
    """Call `function` in a thread and return a Future of its result at once.

    Context variables and autocast are those of the caller, so that the forward function computes
    the same as in the caller's thread.

    Parameters
    ----------
    function : callable
        The function to call.
    inputs : sequence of tensors
        The result is on their devices.
    """
    devices = {tensor.device for tensor in inputs if tensor.device.type != "cpu"}
    future: Future[Any] = Future(devices=sorted(devices, key=str))
    context = contextvars.copy_context()
    kind = inputs[0].device.type
    autocast = torch.autocast(
        kind, dtype=torch.get_autocast_dtype(kind), enabled=torch.is_autocast_enabled(kind)
    )

    def run() -> None:
        try:
            with autocast:
                result = function()
        except Exception as error:
            future.set_exception(error)
        except BaseException as error:  # such as SystemExit, which a Future does not take
            future.set_exception(FutureError(f"The call was ended by {type(error).__name__}."))
        else:
            future.set_result(result)

    # A daemon, so that a Future that never completes does not keep the program alive.
    threading.Thread(target=context.run, args=(run,), daemon=True).start()
    return future


@dataclass
class ForwardFunctionGame(Game):
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
        As captum takes them, or marked; those that belong to examples follow their example.
    perturbations_per_eval : int, optional
        How many masked copies of the examples one call of the forward function holds at most.
    calls_in_flight : int
        How many calls of a forward function that returns futures are started before the first is
        waited for; 0 refuses futures.
    n_rows, n_players, n_backgrounds : int
        Number of examples, of players, and of draws of the baselines.
    rows_per_forward, evaluations_per_batch : int
        How many masked examples go into one call of the forward function, and how many evaluations
        make a good batch, each a row for every draw of the baselines.
    evaluates_first_alone : bool
        Whether the first forward passes have one row, and later ones more.
    answers_at_random, is_in_training_mode : bool
        Whether the forward function is known to answer at random, and whether users are warned.
    """

    forward_func: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    baselines: Baselines
    groups: FeatureGroups
    target: Any = None
    additional_forward_args: tuple[Any, ...] = ()
    perturbations_per_eval: int | None = None
    calls_in_flight: int = 0
    n_rows: int = field(init=False)
    n_players: int = field(init=False)
    n_backgrounds: int = field(init=False)
    rows_per_forward: int = field(init=False)
    evaluations_per_batch: int = field(init=False)
    evaluates_first_alone: bool = field(init=False)
    answers_at_random: bool = field(init=False)
    is_in_training_mode: bool = field(init=False)

    def __post_init__(self) -> None:
        self._forward: Callable[..., Any] = self.forward_func
        if takes_nothing(self.forward_func):
            self._forward = partial(_called_without_inputs, self.forward_func)
        self._example_bytes = sum(t[0].numel() * t.element_size() for t in self.inputs)
        self.n_rows, self.n_players = len(self.inputs[0]), self.groups.n_players
        self.n_backgrounds, n_together = self.baselines.n_draws, self.perturbations_per_eval
        if n_together is None:
            device = self.inputs[0].device.type
            self.rows_per_forward = rows_per_batch(self._example_bytes, device)
        else:
            self.rows_per_forward = n_together * self.n_rows
        rows_in_flight = max(1, self.calls_in_flight) * self.rows_per_forward
        self.evaluations_per_batch = max(1, rows_in_flight // self.n_backgrounds)
        self.evaluates_first_alone = self.n_rows * self.n_backgrounds == 1 and n_together != 1
        self.answers_at_random = bool(getattr(self.forward_func, "answers_at_random", False))
        self.is_in_training_mode = bool(changing_layers(self.forward_func))
        self._is_known = False
        self._calls = ModelCalls("forward_func")
        self._select = OutputSelection(
            self.target, self.n_rows, may_be_one_for_all=self.perturbations_per_eval == 1
        )
        self._is_checked_alone = self.perturbations_per_eval != 1 or self.n_rows == 1

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the selected output of one example, known after the first evaluation."""
        return self._select.shape

    @property
    def output_dtype(self) -> torch.dtype:
        """Type of the output, known after the first evaluation."""
        return self._select.dtype

    @property
    def only_absence_is_random(self) -> bool:
        """Whether values of all players together are not random, where others are."""
        return self.draws_values or bool(
            getattr(self.forward_func, "only_absence_is_random", False)
        )

    @property
    def usage(self) -> Usage | None:
        """What a remote model was used for so far."""
        return getattr(self.forward_func, "usage", None)

    @property
    def rounding(self) -> float:
        """Relative rounding error of the output, known after the first evaluation.

        A forward function may have a `rounding`: it knows that its model rounds more coarsely.
        """
        return max(rounding_of(self._select.dtype), getattr(self.forward_func, "rounding", 0.0))

    @property
    def batch_bounds(self) -> BatchBounds | None:
        """Between which sizes of batches to choose, unless the user has chosen one."""
        if self.perturbations_per_eval is not None or self.calls_in_flight > 0:
            return None  # calls in flight make a batch of their own
        return BatchBounds.from_bytes(
            self._example_bytes,
            self.baselines.n_draws,
            max_bytes=max_input_bytes(self.inputs[0].device),
            rows_at_once=getattr(self.forward_func, "rows_at_once", None),
        )

    def active_players(self) -> BoolArray:
        """Return the players whose inputs differ from the baselines; NaN equals NaN only."""
        active = np.zeros((self.n_rows, self.n_players), dtype=bool)
        for index, tensor in enumerate(self.inputs):
            example, entry = np.nonzero(self.baselines.differ_from(tensor, index))
            players = self.groups.players[index]
            active[example, players[example if len(players) > 1 else 0, entry]] = True
        return active

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest per example, of its inputs, baselines, target and further arguments.

        An example has the same digest in any batch. Arguments of zeros count as absent.
        """
        beside = [array_of(p) if isinstance(p, Tensor) else p for p in self._beside_inputs()]
        inputs = [array_of(tensor) for tensor in self.inputs]
        digests = []
        for row in range(self.n_rows):
            entries = [part[row if len(part) > 1 else 0] for part in beside]
            arguments = [entry for entry in entries if entry is not None and np.any(entry)]
            digests.append(fingerprint(*(array[row] for array in inputs), *arguments))
        return digests

    def _beside_inputs(self) -> list[Any]:
        """Return baselines, targets and further arguments that have an entry for each example.

        Those with one entry are the same for all examples, or belong to the only one.
        """
        target, arguments = self.target, self.additional_forward_args
        if isinstance(target, Tensor):
            target = target.reshape(-1)
        baselines = zip(self.baselines.tensors, self.baselines.are_drawn, strict=True)
        return [
            *(part for part, is_drawn in baselines if not is_drawn),
            target if isinstance(target, (list, Tensor)) else [target],
            *(arguments and entries_of_examples(arguments, self.n_rows)),
        ]

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the selected outputs, (P, K), outputs of several dimensions flattened."""
        outputs = self._outputs(rows, coalitions)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs.mean(axis=1)

    has_single_outputs = True
    has_one_full_value = True

    def outputs_at(
        self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray
    ) -> ValueArray:
        """Return the selected outputs, (P, K), each for one draw of the baselines."""
        return np.concatenate(self._outputs_between(0, len(rows), rows, coalitions, backgrounds))

    def level_columns(self, row: int) -> tuple[npt.NDArray[Any], IntArray] | None:
        """Return the columns, (draws + 1, D), of example and baselines, and their players."""
        draws = np.arange(self.n_backgrounds)
        columns, players = [], []
        for index, tensor in enumerate(self.inputs):
            baselines = self.baselines.drawn_rows(index, np.full(len(draws), row), draws)
            both = torch.cat([tensor[row : row + 1], baselines.to(tensor)])
            columns.append(array_of(both).reshape(len(both), -1))
            of_examples = self.groups.players[index]
            players.append(of_examples[row if len(of_examples) > 1 else 0])
        return np.concatenate(columns, axis=1), np.concatenate(players)

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
                tensor, index, rows, draws, self.groups.spread(absent, rows, index)
            )
            for index, tensor in enumerate(self.inputs)
        )

    def _outputs(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the selected outputs for each draw of the baselines, (P, draws, K)."""
        n_pairs, n_draws = len(rows), self.baselines.n_draws
        total = n_pairs * n_draws
        is_first, self._is_known = not self._is_known, True
        first = 0  # so many of them have a forward pass of their own
        if is_first and total > self.n_rows:
            # The first forward pass holds the examples once, as captum's does: a function that
            # returns one value for the batch may work for no other number of them.
            first = min(self.n_rows, self.rows_per_forward)
        elif not (is_first or self._is_checked_alone) and total > 1:
            # With one copy of the examples in each pass, the output for a single row shows whether
            # there is an output for each example or one of the same length for the whole batch.
            self._is_checked_alone, first = True, 1
        collected: list[ValueArray] = []
        if first > 0:
            with nullcontext() if is_first else one_row_alone():
                collected += self._outputs_between(0, first, rows, coalitions)
        if n_pairs > 1 or n_draws == 1:  # as many as the caller has found to fit
            is_alone = total == 1 < self.n_rows and self._calls.take_batches
            with one_row_alone() if is_alone else nullcontext():
                collected += self._outputs_between(first, total, rows, coalitions)
        else:

            def collect(start: int, stop: int) -> None:
                part = self._outputs_between(first + start, first + stop, rows, coalitions)
                collected.extend(part)

            in_batches(total - first, self.rows_per_forward, collect)
        outputs = np.concatenate(collected)
        return outputs.reshape(n_draws, n_pairs, outputs.shape[1]).swapaxes(0, 1)

    def _outputs_between(
        self,
        start: int,
        stop: int,
        rows: IntArray,
        coalitions: CoalitionArray,
        draws_of_rows: IntArray | None = None,
    ) -> list[ValueArray]:
        """Return the outputs of the copies from `start` to `stop`, those of one draw together.

        With the draws of rows, each has a copy for its own draw. They are one call of the forward
        function or, if it returns futures, the calls in flight.
        """
        step = self.rows_per_forward if self.calls_in_flight > 1 else stop - start
        outputs: list[ValueArray | tuple[Future[Any], IntArray]] = []
        with torch.no_grad():
            for first in range(start, stop, step):
                part: Any = slice(first, min(first + step, stop))
                draws = None
                if draws_of_rows is not None:
                    draws = draws_of_rows[part]
                elif self.baselines.n_draws > 1:
                    draws, part = np.divmod(np.arange(part.start, part.stop), len(rows))
                pairs = rows[part], coalitions[part], draws
                outputs += self._calls(partial(self._started, *pairs), len(pairs[0]))
            return [
                self._read(waited(entry[0]), entry[1]) if isinstance(entry, tuple) else entry
                for entry in outputs
            ]

    def _started(
        self, rows: IntArray, coalitions: CoalitionArray, draws: IntArray | None, part: slice
    ) -> ValueArray | tuple[Future[Any], IntArray]:
        """Return the outputs of a part of some pairs, or a Future of them and their rows.

        The masked inputs are made here, because the forward function may write into them.
        """
        rows = rows[part]
        masked = self.masked(rows, coalitions[part], None if draws is None else draws[part])
        additional = self.additional_forward_args and self.additional_of(rows)
        output = self._forward(*masked, *additional)
        if isinstance(output, Future):
            self._check_futures()
            return output, rows
        return self._read(output, rows)  # before the next call, which may use its memory

    def _read(self, output: Any, rows: IntArray) -> ValueArray:
        """Return the selected outputs as an array, (P, K)."""
        return in_double_precision("forward_func", array_of(self._select(output, rows)))

    @property
    def derivative_obstacle(self) -> str | None:
        """Say why there are no derivatives."""
        if obstacle := getattr(self.forward_func, "derivative_obstacle", None):
            return str(obstacle)
        for index, tensor in enumerate(self.inputs):
            if not tensor.is_floating_point():
                return (
                    f"inputs[{index}] holds whole numbers ({tensor.dtype}); tokens have gradients "
                    "through captum_ext.EmbeddingAttribution"
                )
        return None

    def fully_present(self, n_points: int) -> Tensor:
        """Return ones in the precision of the inputs."""
        first = self.inputs[0]
        return torch.ones(n_points, self.n_players, dtype=first.dtype, device=first.device)

    def presence_values(
        self, rows: IntArray, presence: Tensor, reduce: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """Return the selected outputs on the lines from baselines to inputs, averaged.

        Or what `reduce` makes of those of all draws, (P, draws, K).
        """
        n_pairs, n_draws = len(rows), self.baselines.n_draws
        draw, pair = np.divmod(np.arange(n_pairs * n_draws), n_pairs)
        rows, presence = rows[pair], presence.repeat(n_draws, 1)
        points = []
        for index, tensor in enumerate(self.inputs):
            start = self.baselines.drawn_rows(index, rows, draw)
            degree = self.groups.spread_tensor(presence, rows, index).reshape(start.shape)
            if start.is_inference():  # autograd cannot save it
                start = start.clone()
            points.append(interpolated(start, tensor[rows], degree.to(start)))
        outputs = self._selected(tuple(points), rows)
        if not outputs.is_floating_point():
            raise DerivativeError(f"forward_func returns {outputs.dtype} numbers.")
        of_draws = outputs.reshape(n_draws, n_pairs, outputs.shape[1])
        return of_draws.mean(dim=0) if reduce is None else reduce(of_draws.movedim(0, 1))

    def call(self, inputs: tuple[Tensor, ...], additional: tuple[Any, ...]) -> Any:
        """Return the output of the forward function, or the result of its Future."""
        output = self._forward(*inputs, *additional)
        if isinstance(output, Future):
            self._check_futures()
        return waited(output)

    def _check_futures(self) -> None:
        """Refuse a Future, unless the caller can wait for it."""
        if self.calls_in_flight == 0:
            raise ModelOutputError(
                "forward_func returned a Future. Call attribute_future, which waits for it and "
                "returns a Future of the attributions."
            )

    def _selected(self, masked: tuple[Tensor, ...], rows: IntArray) -> Tensor:
        """Run the forward function and select targets, (P, K)."""

        def call(part: slice) -> Tensor:
            inputs = tuple(tensor[part] for tensor in masked)
            if not self._calls.take_batches:
                inputs = tuple(tensor.clone() for tensor in inputs)
            return self._select(self.call(inputs, self.additional_of(rows[part])), rows[part])

        return torch.cat(self._calls(call, len(rows)))

    def additional_of(self, rows: IntArray) -> tuple[Any, ...]:
        """Return the further arguments of the forward function for masked copies of rows."""
        return arguments_of_rows(self.additional_forward_args, rows, self.n_rows)


def _called_without_inputs(forward_func: Callable[[], Any], *_: object) -> Any:
    """Call a forward function without parameters, whatever the inputs."""
    return forward_func()
