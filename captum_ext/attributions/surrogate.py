"""Surrogates of models that take masked inputs, for captum."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from shapley_adapters import Game
from shapley_adapters.arguments import checked_flag
from shapley_adapters.constructors import fill_docstring
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.surrogates.surrogate_model import SurrogateModel
from shapley_adapters.torch_support.array_module import warn_in_training_mode
from shapley_adapters.torch_support.tensor_arrays import array_of
from shapley_adapters.training_options import surrogate_parameters

from ..argument_types import Batches, FeatureMask, Inputs
from .coalition_attribution import CoalitionAttribution

_DELAY = 10.0
"""Seconds until bars appear by default, so that short trainings show none."""


_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    )
}
"""Types of inputs, by the names that files have for them."""


def bar_delay(show_progress: bool | None) -> float | None:
    """Return the seconds until bars appear; None for no bars."""
    if show_progress is None:
        return _DELAY
    return 0.0 if checked_flag("show_progress", show_progress) else None


class Surrogate(SurrogateModel):
    """A network that predicts a model's outputs from inputs with absent numbers, which are NaN.

    It learns the mean output given the present features. This is the value function of SimSHAP and
    FastSHAP. With a baseline instead, absent features take values that may never occur together
    with the present ones. The fitted surrogate is a forward function for any method. Its
    `reference` is the baseline:

    `OddGP(surrogate).attribute(x, baselines=surrogate.reference, target=1)`

    Fitting runs the model once on each example. Needs safetensors:
    `pip install shapley-ext[amortized]`.

    Parameters
    ----------
    model : callable
        The forward function, with or without derivatives.
    network : {"mlp", "unet"} or Module
        The network. A module of your own gets standardised examples with 0 for absent numbers, and
        beside them the marks of present ones: (examples, 2, …), or (examples, 2 C, height, width)
        for images of C channels; it returns raw outputs, (examples, outputs).
    network_options : mapping, optional
        Options of a named network.
    seed : int, optional
        Seed of the weights, the order of the examples, the split and all coalitions.
    {training}
    """

    def fit(
        self,
        inputs: Batches,
        additional_forward_args: object = None,
        feature_mask: FeatureMask = None,
        show_progress: bool | None = None,
    ) -> Surrogate:
        """Train on examples; returns the surrogate.

        Parameters
        ----------
        inputs : Tensor, or iterable of batches
            The examples, in one tensor or as `SimShap.fit` takes them.
        additional_forward_args, feature_mask
            As in `attribute`. Features that are explained together should be one group here, too.
        show_progress : bool, optional
            Whether to show progress bars and the remaining time on stderr. By default they appear
            after ten seconds.
        """
        delay = bar_delay(show_progress)
        tensors = gathered(inputs)
        if isinstance(tensors, tuple) and len(tensors) > 1:
            raise InvalidArgumentError(
                f"inputs holds {len(tensors)} tensors; a surrogate takes one."
            )
        game = self._game(tensors, additional_forward_args, feature_mask)
        if game.groups.differ_by_example:
            raise InvalidArgumentError("feature_mask must be the same for all examples.")
        warn_in_training_mode(self.model)
        (real,) = game.inputs
        if not real.is_floating_point():
            raise InvalidArgumentTypeError(
                f"inputs holds whole numbers ({real.dtype}), none of which is NaN. Convert them "
                "to floating point."
            )
        self._train(array_of(real), game, game.groups.players[0][0], {}, delay)
        return self

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return the outputs, (B,) or (B, K), of examples whose absent numbers are NaN."""
        outputs = torch.as_tensor(self._predict(array_of(inputs)))
        dtype = inputs.dtype if inputs.is_floating_point() else torch.get_default_dtype()
        outputs = outputs.to(inputs.device, dtype)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    @property
    def reference(self) -> Tensor:
        """An example of which nothing is present, the baseline that goes with the surrogate."""
        return torch.as_tensor(self._absent_row())

    def _game_of(self, probes: Tensor) -> Game:
        return self._game(probes, None, None)

    def _game(self, inputs: Inputs, additional: object, feature_mask: FeatureMask) -> Any:
        method = CoalitionAttribution(self._checked_model())
        return method.checked_call(inputs, None, None, additional, feature_mask, None).game


fill_docstring(Surrogate, training=surrogate_parameters("example"))


def gathered(inputs: Batches) -> Any:
    """Return all examples of an iterable of batches as one tensor, or as one for each input."""
    if isinstance(inputs, Tensor) or (
        isinstance(inputs, tuple) and all(isinstance(part, Tensor) for part in inputs)
    ):
        return inputs
    if not isinstance(inputs, Iterable):
        raise InvalidArgumentTypeError(
            f"inputs must be a tensor, a tuple of tensors, or batches of them; got "
            f"{type(inputs).__name__}."
        )
    batches: list[list[Tensor]] = []
    kinds: set[Any] = set()
    for entry in inputs:
        batch = entry[0] if isinstance(entry, (list, tuple)) and entry else entry
        parts = [batch] if isinstance(batch, Tensor) else batch
        are_parts = isinstance(parts, (list, tuple)) and len(parts) > 0
        if not are_parts or not all(isinstance(part, Tensor) and part.dim() for part in parts):
            kinds.clear()
            break
        batches.append([part.detach().clone() for part in parts])  # which a loader may reuse
        kinds.add((batch is parts, *((part.dtype, part.shape[1:]) for part in parts)))
    if len(kinds) != 1:
        raise InvalidArgumentTypeError(
            "inputs must be batches: tensors, or lists or tuples such as inputs and labels, that "
            "start with a tensor. With several inputs, they start with a tuple of tensors. "
            "Batches of an input have the same type, and examples of the same shape."
        )
    joined = tuple(map(torch.cat, zip(*batches, strict=True)))
    return joined if batch is parts else joined[0]


def network_inputs(tensors: tuple[Tensor, ...], network: object) -> Tensor:
    """Return the inputs of the network: all input tensors, side by side.

    Whole numbers are tokens, or have the meaning that a user's module gives them. For the other
    named networks they are measurements.
    """
    if len(tensors) > 1:
        return torch.cat([tensor.detach().cpu().flatten(1).float() for tensor in tensors], dim=1)
    values = torch.from_numpy(array_of(tensors[0]))
    are_measures = network in (None, "mlp", "unet", "embeddings", "trees")
    return values.float() if are_measures and not values.is_floating_point() else values


def layout_of(tensors: tuple[Tensor, ...]) -> list[list[Any]]:
    """Return shape and type of each input, such as JSON holds."""
    return [
        [list(tensor.shape[1:]), str(tensor.dtype).removeprefix("torch.")] for tensor in tensors
    ]


def inputs_from_network(values: Tensor, layout: Any, path: str) -> tuple[Tensor, ...]:
    """Undo `network_inputs`, given the `layout_of` the inputs from the file at `path`."""
    from shapley_adapters.amortized.storage import refusing

    with refusing(path, "explainer"):
        parts = torch.split(values.flatten(1), [math.prod(shape) for shape, _ in layout], dim=1)
        return tuple(
            part.reshape(-1, *shape).to(_DTYPES[dtype])
            for part, (shape, dtype) in zip(parts, layout, strict=True)
        )
