"""Attributions of a stream of rows, read from their files when they are needed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.streams import StreamedValues
from shapley_adapters.streams.journal import names_of


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
        The attributions of the first input: a memory map, or read into memory from Parquet or
        Arrow.
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
        arrays = self._arrays_of(start, max(0, stop - start))
        array_names = names_of(self.journal.header.arrays)
        expected = (array_name("values", i) for i in range(len(array_names)))
        names = [name for name in expected if name in array_names]
        tensors: list[Any] = [torch.from_numpy(np.array(arrays[name])) for name in names]
        return tuple(tensors) if self.journal.header.about["is_tuple"] else tensors[0]
