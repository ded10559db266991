"""Attributions of players as tensors shaped like the inputs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import AttributionArray

from ..inputs.feature_groups import FeatureGroups


def as_tensors(
    per_player: AttributionArray,
    groups: FeatureGroups,
    inputs: tuple[Tensor, ...],
    output_shape: tuple[int, ...],
    output_dtype: torch.dtype,
) -> tuple[Tensor, ...]:
    """Return the attribution of its player for each number of the inputs.

    Parameters
    ----------
    per_player : array, (R, M, K)
        Attributions, or their standard errors; R is 1 if the whole batch has one value.
    groups, inputs
        The players and the input tensors.
    output_shape : tuple of int
        Shape of one row's output, with K numbers.
    output_dtype : torch.dtype
        Type of the model's output, for inputs that are not floating point.

    Returns
    -------
    tuple of tensors, (R, output shape, shape of one example) each
        In the inputs' precision and on their device.
    """
    n_rows = len(per_player)
    tensors = []
    for index, tensor in enumerate(inputs):
        spread = groups.spread(per_player, np.arange(n_rows), index)  # (R, size, K)
        shaped = spread.transpose(0, 2, 1).reshape(n_rows, *output_shape, *tensor.shape[1:])
        dtype = _result_dtype(tensor.dtype, output_dtype)
        tensors.append(torch.from_numpy(shaped.copy()).to(device=tensor.device, dtype=dtype))
    return tuple(tensors)


def as_group_tensor(
    per_player: AttributionArray,
    groups: FeatureGroups,
    inputs: tuple[Tensor, ...],
    output_shape: tuple[int, ...],
    output_dtype: torch.dtype,
) -> Tensor:
    """Return one number for each id of the feature mask, as captum's KernelShap does.

    Parameters
    ----------
    per_player, groups, inputs, output_shape, output_dtype
        As in `as_tensors`.

    Returns
    -------
    Tensor, (R, output shape, columns)
        In the type of the first input of floating point, and on the device of the first.
    """
    columns = groups.columns(per_player)  # (R, columns, K)
    shaped = columns.transpose(0, 2, 1).reshape(len(columns), *output_shape, columns.shape[1])
    floating = [tensor.dtype for tensor in inputs if tensor.is_floating_point()]
    dtype = floating[0] if floating else _result_dtype(inputs[0].dtype, output_dtype)
    return torch.from_numpy(shaped.copy()).to(device=inputs[0].device, dtype=dtype)


def _result_dtype(inputs: torch.dtype, output: torch.dtype) -> torch.dtype:
    if inputs.is_floating_point:
        return inputs
    return output if output.is_floating_point else torch.get_default_dtype()
