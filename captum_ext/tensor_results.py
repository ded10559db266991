"""Attributions of players as tensors shaped like the inputs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import AttributionArray

from .feature_groups import FeatureGroups


def as_tensors(
    per_player: AttributionArray,
    groups: FeatureGroups,
    inputs: tuple[Tensor, ...],
    output_shape: tuple[int, ...],
    output_dtype: torch.dtype,
) -> tuple[Tensor, ...]:
    """Give each number of the inputs what its player gets.

    Parameters
    ----------
    per_player : array, (R, M, K)
        Attributions, or their standard errors; R is 1 where the batch has one value.
    groups, inputs
        The players and the input tensors.
    output_shape : tuple of int
        Shape of one row's output, K numbers in all.
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


def _result_dtype(inputs: torch.dtype, output: torch.dtype) -> torch.dtype:
    if inputs.is_floating_point:
        return inputs
    return output if output.is_floating_point else torch.get_default_dtype()
