"""Interactions of features, those of pairs as tensors."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.arguments import checked_choice, checked_flag
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.interactions.result import INDICES, InteractionRequest, checked_pairs

from ..argument_types import Inputs
from ..inputs.checks import checked_inputs
from .call_options import OPTIONS

if TYPE_CHECKING:
    from .coalition_attribution import CoalitionAttribution


def pair_interactions(
    method: CoalitionAttribution,
    inputs: Inputs,
    *arguments: Any,
    index: str,
    **options: Any,
) -> Any:
    """Return the interactions of all pairs of features; see `CoalitionAttribution.interactions`."""
    if "return_input_shape" in options:
        OPTIONS.read("interactions", {"return_input_shape": options["return_input_shape"]})
    with_errors = checked_flag("return_standard_error", options.get("return_standard_error", False))
    estimate, answer = estimated_interactions(
        method,
        inputs,
        *arguments,
        request=checked_pairs("index", checked_choice("index", index, INDICES)),
        **options,
    )
    attributions = answer[0] if with_errors else answer
    pairs = estimate.interactions
    matrices = _as_tensor(pairs.matrices(estimate.values), inputs, attributions)
    if not with_errors:
        return matrices
    return matrices, _as_tensor(pairs.error_matrices(), inputs, attributions)


def estimated_interactions(
    method: CoalitionAttribution,
    inputs: Inputs,
    *arguments: Any,
    request: InteractionRequest | None,
    **options: Any,
) -> tuple[Any, Any]:
    """Return the estimate of a call with interactions, and the answer of `attribute`."""
    if not method._evaluates_coalitions:
        raise InvalidArgumentTypeError(
            f"{type(method).__name__} has no interactions: its network gives attributions in one "
            "pass. Use OddGP or Best."
        )
    twin: Any = copy.copy(method)
    twin._interactions = request
    answer = twin.attribute(inputs, *arguments, **options)
    method.last_estimate = twin.last_estimate
    return method.last_estimate, answer


def _as_tensor(matrices: FloatArray, inputs: Inputs, attributions: Any) -> Tensor:
    """Return matrices of players, (R, M, M, K), as a tensor, (R, output shape, M, M).

    The attributions, in the form of the inputs, have the type, the device and the output shape.
    """
    tensors = attributions if isinstance(attributions, tuple) else (attributions,)
    of_floats = [tensor for tensor in tensors if tensor.is_floating_point()]
    n_axes = checked_inputs(inputs)[0].dim() - 1  # of one example
    leading = tensors[0].shape[: tensors[0].dim() - n_axes]
    n_players = matrices.shape[1]
    shaped = np.moveaxis(matrices, 3, 1).reshape(*leading, n_players, n_players)
    return torch.from_numpy(shaped.copy()).to(
        device=tensors[0].device, dtype=(of_floats or tensors)[0].dtype
    )
