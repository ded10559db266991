"""Attributions of players as tensors shaped like the inputs, also read from streamed files."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import AttributionArray
from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.streamed_values import StreamedValues

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
        key=attrgetter("itemsize"),
    )


def array_name(name: str, index: int) -> str:
    """Return the name of the stored array of one of several inputs: values, values_1, …."""
    return name if index == 0 else f"{name}_{index}"


class StreamedAttributions(StreamedValues):
    """The attributions of a stream of rows, in files.

    Iterating yields the attributions of each chunk, in the form that `attribute` returns. A slice
    of rows returns those of these rows. Arrays of all rows are attributes. For several inputs,
    `array("values_1")` holds the attributions of the second one, and so on.

    Attributes
    ----------
    values : array, (R, output shape, shape of an example)
        The attributions of the first input, read into memory.
    base_values : array, (R, K)
        The outputs without any feature, for K outputs.
    standard_errors : array, or None
        The standard errors of the values, with `return_standard_error=True`.
    evaluations : array, (R,)
        The coalitions evaluated for each row.
    n_rows : int
        The number of finished rows.
    is_complete : bool
        Whether all rows of the stream are finished.
    seed : int
        The seed of all random choices.
    """

    host: ClassVar[str] = "captum"

    def __getitem__(self, rows: slice) -> Tensor | tuple[Tensor, ...]:
        """Return the attributions of a slice of rows, as a tensor or a tuple of tensors."""
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise InvalidArgumentTypeError(
                f"rows must be a slice with the step 1, such as [0:10]; got {rows!r}."
            )
        start, stop, _ = rows.indices(self.n_rows)
        arrays = self._arrays_of(start, stop)
        expected = (array_name("values", i) for i in range(len(arrays)))
        names = [name for name in expected if name in arrays]
        tensors: list[Any] = [torch.from_numpy(arrays[name]) for name in names]
        return tuple(tensors) if self._record.about["is_tuple"] else tensors[0]
