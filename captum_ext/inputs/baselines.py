"""What absent numbers of the inputs are: one baseline, one for each example, or a distribution."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

_KNOWN_TO_NUMPY = frozenset(
    [
        *(torch.float64, torch.float32, torch.float16),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    ]
)


class BaselineDistribution(Tensor):
    """Baselines over which the output is averaged, however many there are.

    A plain tensor whose first dimension is neither 1 nor the number of examples is read as a
    distribution, too. If it is the number of examples, captum's convention holds, and each example
    has a baseline of its own; this class says that all examples share all rows all the same. Use it
    where batches differ in length, and inside `sensitivity_max`, which explains longer batches.

    Parameters
    ----------
    rows : Tensor
        The baselines; the first dimension counts them, the others are those of an example.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import BaselineDistribution, Exact
    >>> background = BaselineDistribution(torch.tensor([[0.0, 0.0], [2.0, 4.0]]))
    >>> x = torch.tensor([[1.0, 1.0], [3.0, 2.0]])
    >>> Exact(lambda x: x[:, 0] * x[:, 1]).attribute(x, baselines=background)
    tensor([[-1., -2.],
            [ 3., -1.]])
    """

    @staticmethod
    def __new__(cls, rows: Tensor) -> BaselineDistribution:
        """Mark a tensor as a distribution; its numbers are shared, not copied."""
        if not isinstance(rows, Tensor):
            raise InvalidArgumentTypeError(
                f"rows must be a tensor; got {type(rows).__name__}. Convert it with "
                "torch.as_tensor."
            )
        if rows.dim() == 0 or len(rows) == 0:
            raise InvalidArgumentError(
                f"rows must hold at least one baseline along its first dimension; got the shape "
                f"{tuple(rows.shape)}."
            )
        marked: BaselineDistribution = rows.as_subclass(cls)
        return marked

    def __deepcopy__(self, memo: dict[int, Any]) -> BaselineDistribution:
        """Copy the rows; captum's metrics copy their arguments."""
        return type(self)(copy.deepcopy(self.as_subclass(Tensor), memo))


@dataclass(frozen=True)
class Baselines:
    """The baselines of all inputs.

    Attributes
    ----------
    tensors : tuple of tensors
        One for each input: with one row, with one for each example, or with one for each draw.
    are_drawn : tuple of bool
        Which of them hold a row for each draw. The draws of several inputs belong together.
    n_draws : int
        How many baselines the output is averaged over; 1 where none is drawn.
    """

    tensors: tuple[Tensor, ...]
    are_drawn: tuple[bool, ...]
    n_draws: int = 1

    def differ_from(self, given: Tensor, index: int) -> npt.NDArray[np.bool_]:
        """Tell which numbers of an input differ from any of their baselines, (B, size).

        NaN differs from all but NaN.
        """
        absent = self.tensors[index]
        if self.are_drawn[index]:
            varies = _differ(absent, absent[:1]).any(dim=0, keepdim=True)
            differs = _differ(given, absent[:1]) | varies
        else:
            differs = _differ(given, absent)
        return differs.reshape(len(given), given[0].numel()).cpu().numpy()

    def of_examples(self) -> list[Tensor]:
        """Return the baselines that have a row for each example, or one for all of them."""
        pairs = zip(self.tensors, self.are_drawn, strict=True)
        return [tensor for tensor, is_drawn in pairs if not is_drawn]

    def filled(
        self,
        given: Tensor,
        index: int,
        rows: IntArray,
        draws: IntArray | None,
        absent: npt.NDArray[np.bool_],
    ) -> Tensor:
        """Return the rows of an input with the baseline's numbers where they are absent.

        Numbers are selected, not multiplied: NaN and infinities of the other side must not leak.
        """
        shape = (len(rows), *given.shape[1:])
        if given.device.type != "cpu" or given.dtype not in _KNOWN_TO_NUMPY:
            where = torch.as_tensor(absent.reshape(shape), device=given.device)
            return torch.where(where, self.of_rows(index, rows, draws), given[rows])
        # NumPy gathers and copies several times faster than torch does on a CPU.
        filled = given.numpy()[rows]
        source, places = self.tensors[index].numpy(), self._places(index, rows, draws)
        np.copyto(filled, source if places is None else source[places], where=absent.reshape(shape))
        return torch.from_numpy(filled)

    def of_rows(self, index: int, rows: IntArray, draws: IntArray | None) -> Tensor:
        """Return the baselines of an input for examples `rows` and draws `draws`."""
        baseline, places = self.tensors[index], self._places(index, rows, draws)
        if places is None:
            return baseline.expand(len(rows), *baseline.shape[1:])
        return baseline[places]

    def _places(self, index: int, rows: IntArray, draws: IntArray | None) -> IntArray | None:
        """Return which rows of a tensor are meant; None for its only one."""
        if len(self.tensors[index]) == 1:
            return None
        return draws if self.are_drawn[index] else rows


def readable(tensor: Tensor) -> Tensor:
    """Return a tensor that NumPy can read: on the CPU, in float32 for types that NumPy lacks."""
    plain = tensor.detach().cpu().resolve_neg()
    lacks_type = plain.is_floating_point() and plain.dtype not in _KNOWN_TO_NUMPY
    return plain.float() if lacks_type else plain


def at_least_half(tensor: Tensor) -> Tensor:
    """Return a tensor of floating point in a type that torch computes with: not of eight bits."""
    return tensor.float() if tensor.element_size() == 1 else tensor


def _differ(first: Tensor, second: Tensor) -> Tensor:
    differs = first != second
    if first.is_floating_point():
        differs &= ~(first.isnan() & second.isnan())
        # A model may tell zeros of two signs apart.
        first, second = at_least_half(first), at_least_half(second)
        differs |= (first == 0) & (second == 0) & (first.signbit() != second.signbit())
    return differs
