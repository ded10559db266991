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
        Type of the model's output.

    Returns
    -------
    tuple of tensors, (R, output shape, shape of one example) each
        On the inputs' device, in the widest of float32 and the types of the input and the output.
    """
    n_rows = len(per_player)
    tensors = []
    for index, tensor in enumerate(inputs):
        spread = groups.spread(per_player, np.arange(n_rows), index)  # (R, size, K)
        shaped = spread.transpose(0, 2, 1).reshape(n_rows, *output_shape, *tensor.shape[1:])
        dtype = _widest(tensor.dtype, output_dtype)
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
        On the device of the first input, in the widest of float32 and the types of inputs and
        output.
    """
    columns = groups.columns(per_player)  # (R, columns, K)
    shaped = columns.transpose(0, 2, 1).reshape(len(columns), *output_shape, columns.shape[1])
    dtype = _widest(*(tensor.dtype for tensor in inputs), output_dtype)
    return torch.from_numpy(shaped.copy()).to(device=inputs[0].device, dtype=dtype)


def _widest(*dtypes: torch.dtype) -> torch.dtype:
    """Return the widest type of floating point, at least float32.

    Sums of outputs in half precision may exceed its largest number, 65,504.
    """
    floating = [dtype for dtype in dtypes if dtype.is_floating_point]
    # The default type is for whole numbers alone; torch does not promote types of 8 bits.
    return max(
        [torch.float32, *(floating or [torch.get_default_dtype()])],
        key=lambda dtype: dtype.itemsize,
    )
