"""Baselines: the values of absent features, as one row, one row per example, or a distribution."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from .checks import KNOWN_TO_NUMPY, at_least_half, checked_plain, no_tensor, parts_of, takes_nothing
from .forward_arguments import copied


class BaselineDistribution(Tensor):
    """Baselines over which the output is averaged.

    A plain tensor is also a distribution, if its first dimension is neither 1 nor the number of
    examples. If it is the number of examples, captum's convention applies: each example has its own
    baseline. With this class all examples share all rows in that case too. Use it if batches differ
    in length, and inside `sensitivity_max`, which explains longer batches.

    Parameters
    ----------
    rows : Tensor
        The baselines, one per entry of the first dimension; other dimensions as in an example.

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
            raise no_tensor("rows", rows)
        if rows.dim() == 0 or len(rows) == 0:
            raise InvalidArgumentError(
                f"rows must hold at least one baseline along its first dimension; got the shape "
                f"{tuple(rows.shape)}."
            )
        return rows.as_subclass(cls)

    def __deepcopy__(self, memo: dict[int, Any]) -> BaselineDistribution:
        """Copy the rows; captum's metrics copy their arguments."""
        return type(self)(copy.deepcopy(self.as_subclass(Tensor), memo))


@dataclass(frozen=True)
class Baselines:
    """The baselines of all inputs.

    Attributes
    ----------
    tensors : tuple of tensors
        One for each input: with one row, with one row per example, or with one row per draw.
    are_drawn : tuple of bool
        Which of them have one row per draw. The draws of several inputs belong together.
    n_draws : int
        Number of baselines over which the output is averaged; 1 without distributions.
    """

    tensors: tuple[Tensor, ...]
    are_drawn: tuple[bool, ...]
    n_draws: int = 1

    @property
    def differ_by_example(self) -> bool:
        """Whether an input has baselines of its own for each example."""
        return any(
            len(tensor) > 1 and not is_drawn
            for tensor, is_drawn in zip(self.tensors, self.are_drawn, strict=True)
        )

    def differ_from(self, inputs: Tensor, index: int) -> npt.NDArray[np.bool_]:
        """Return which numbers of an input differ from any of their baselines, (B, size).

        NaN equals NaN only.
        """
        absent = self.tensors[index]
        if self.are_drawn[index]:
            varies = _differ(absent, absent[:1]).any(dim=0, keepdim=True)
            differs = _differ(inputs, absent[:1]) | varies
        else:
            differs = _differ(inputs, absent)
        return differs.reshape(len(inputs), inputs[0].numel()).cpu().numpy()

    def filled(
        self,
        inputs: Tensor,
        index: int,
        rows: IntArray,
        draws: IntArray | None,
        absent: npt.NDArray[np.bool_],
    ) -> Tensor:
        """Return the rows of an input with absent numbers replaced by the baseline.

        Numbers are selected, not multiplied by 0 and 1, because 0 times NaN or infinity is NaN.
        """
        shape = (len(rows), *inputs.shape[1:])
        if inputs.device.type != "cpu" or inputs.dtype not in KNOWN_TO_NUMPY:
            is_absent = torch.as_tensor(absent.reshape(shape), device=inputs.device)
            return torch.where(is_absent, self.drawn_rows(index, rows, draws), inputs[rows])
        # NumPy gathers and copies several times faster than torch does on a CPU.
        filled = inputs.numpy()[rows]
        source, baseline_rows = self.tensors[index].numpy(), self._baseline_rows(index, rows, draws)
        np.copyto(
            filled,
            source if baseline_rows is None else source[baseline_rows],
            where=absent.reshape(shape),
        )
        return torch.from_numpy(filled)

    def drawn_rows(self, index: int, rows: IntArray, draws: IntArray | None) -> Tensor:
        """Return the baselines of an input for examples `rows` and draws `draws`."""
        baseline, baseline_rows = self.tensors[index], self._baseline_rows(index, rows, draws)
        if baseline_rows is None:
            return baseline.expand(len(rows), *baseline.shape[1:])
        return baseline[baseline_rows]

    def _baseline_rows(self, index: int, rows: IntArray, draws: IntArray | None) -> IntArray | None:
        """Return the row of the baseline for each entry; None if the baseline has one row."""
        if len(self.tensors[index]) == 1:
            return None
        return draws if self.are_drawn[index] else rows


def _differ(first: Tensor, second: Tensor) -> Tensor:
    differs = first != second
    if first.is_floating_point():
        differs &= ~(first.isnan() & second.isnan())
        # The output of a model may depend on the sign of zero.
        first, second = at_least_half(first), at_least_half(second)
        differs |= (first == 0) & (second == 0) & (first.signbit() != second.signbit())
    return differs


def checked_baselines(
    baselines: object, inputs: tuple[Tensor, ...], user_inputs: object = None
) -> Baselines:
    """Return `baselines` in the inputs' types and on their devices.

    Parameters
    ----------
    baselines : None, number, tensor, function, or tuple of the first three
        The argument of the user. A function is called once, with the inputs if it has parameters.
    inputs : tuple of tensors
        The checked inputs.
    user_inputs : tensor or tuple of tensors, optional
        The inputs as the user passed them, for a function.

    Raises
    ------
    InvalidArgumentError
        If there are too few or too many baselines, if a shape does not fit, or if a fractional
        baseline would be rounded to the whole numbers of an input.
    """
    if callable(baselines):
        baselines = _called(baselines, inputs if user_inputs is None else user_inputs)
    baselines = (None,) * len(inputs) if baselines is None else baselines
    parts = parts_of("baselines", baselines, len(inputs))
    tensors: list[Tensor] = []  # each with its rows along the first dimension
    for index, (baseline, tensor) in enumerate(zip(parts, inputs, strict=True)):
        if baseline is None:
            tensors.append(torch.zeros_like(tensor[:1]))
            continue
        if isinstance(baseline, numbers.Real):
            # In double precision, so that a float64 input gets the exact number.
            dtype = torch.float64 if isinstance(baseline, float) else None
            plain = torch.as_tensor(baseline, dtype=dtype)
        else:
            name = f"baselines[{index}]"
            plain = checked_plain(name, baseline, "a number or a tensor").as_subclass(Tensor)
        if plain.dim() and (plain.shape[1:] != tensor.shape[1:] or len(plain) == 0):
            is_row = plain.shape == tensor.shape[1:]
            hint = " For the same row for all examples, pass it as baseline[None]."
            raise InvalidArgumentError(
                f"{name} has shape {tuple(plain.shape)}; it must be (rows, "
                f"{', '.join(map(str, tensor.shape[1:]))}) for an input of shape "
                f"{tuple(tensor.shape)}. Pass one row, one for each example, or any other number "
                f"of rows, over which the output is averaged.{hint if is_row else ''}"
            )
        cast = _cast(plain, tensor, index)
        tensors.append(cast if plain.dim() else cast.expand(1, *tensor.shape[1:]))
    are_drawn = tuple(
        len(baseline) > 1
        and (isinstance(part, BaselineDistribution) or len(baseline) != len(tensor))
        for part, baseline, tensor in zip(parts, tensors, inputs, strict=True)
    )
    counts = {
        len(baseline) for baseline, is_drawn in zip(tensors, are_drawn, strict=True) if is_drawn
    }
    if len(counts) > 1:
        raise InvalidArgumentError(
            f"baselines holds distributions of {' and '.join(map(str, sorted(counts)))} rows for "
            "several inputs. Their rows belong together, so that their numbers must be equal."
        )
    return Baselines(tuple(tensors), are_drawn, *counts)


def _called(function: Callable[..., Any], user_inputs: object) -> Any:
    """Call a function that returns baselines, as captum's DeepLiftShap does."""
    baselines = function() if takes_nothing(function) else function(copied(user_inputs))
    if baselines is None or callable(baselines):
        raise InvalidArgumentTypeError(
            "baselines, a function, must return numbers or tensors; it returned "
            f"{type(baselines).__name__}."
        )
    return baselines


def _cast(baseline: Tensor, tensor: Tensor, index: int) -> Tensor:
    """Convert a baseline to its input's type; refuse it if this does more than round it."""
    cast = baseline.to(device=tensor.device, dtype=tensor.dtype)
    if tensor.is_floating_point():
        is_kept = bool((_are_finite(cast) | ~_are_finite(baseline)).all())
    else:
        is_kept = torch.equal(cast.to(baseline.dtype), baseline.to(tensor.device))
    if not is_kept:
        raise InvalidArgumentError(
            f"baselines[{index}] holds values that {tensor.dtype} cannot represent; convert the "
            "inputs to floating point, or choose a baseline of their type."
        )
    return cast


def _are_finite(tensor: Tensor) -> Tensor:
    return at_least_half(tensor).isfinite().cpu()
