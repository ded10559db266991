"""Outputs of a model: their shape, the same in all calls, and their mean over the background."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..array_types import FloatArray
from ..errors import ModelOutputError

_MOST_WHOLE = 2**53
"""Double precision holds all whole numbers up to this one."""


@dataclass
class OutputShape:
    """Remembers the shape of the output for one row, and refuses outputs of another shape.

    Attributes
    ----------
    model : str
        The name of the model in messages, such as "The model".
    advice : str
        Advice to the user if the shape varies.
    shape : tuple of int, or None
        The shape; None before the first call.
    rounding : float
        The relative rounding error of the type of the numbers; 0 before the first call.
    """

    model: str
    advice: str
    shape: tuple[int, ...] | None = field(default=None, init=False)
    rounding: float = field(default=0.0, init=False)

    def check(self, shape: tuple[int, ...]) -> None:
        """Compare the shape of another call.

        Raises
        ------
        ModelOutputError
            If the output has no number, or if its shape differs from that of earlier calls.
        """
        if 0 in shape:
            raise ModelOutputError(
                f"{self.model} returns no number for a row: its output for one row has shape "
                f"{shape}. Return at least one number."
            )
        if self.shape not in (None, shape):
            raise ModelOutputError(
                f"{self.model} must return outputs of the same shape in all calls; for one row "
                f"the shape was {self.shape} first and {shape} later. {self.advice}"
            )
        self.shape = shape


def in_double_precision(model: str, numbers: Any) -> FloatArray:
    """Return a copy of the outputs of a model as an array in double precision.

    Raises
    ------
    ModelOutputError
        If whole numbers exceed 2^53, beyond which double precision rounds them.
    """
    array = np.asarray(numbers)
    if array.dtype.kind in "iuO" and array.size:
        whole = array if array.dtype.kind != "O" else array[_are_whole(array)]
        if whole.size and max(int(whole.max()), -int(whole.min())) > _MOST_WHOLE:
            raise ModelOutputError(
                f"{model} returns whole numbers beyond 2^53, such as {_largest(whole)}, which "
                "double precision cannot hold exactly. Subtract a constant from them, or convert "
                "them to floating point if rounding does not matter."
            )
    return np.array(array, dtype=np.float64)


def _are_whole(array: Any) -> Any:
    kinds = [isinstance(entry, (int, np.integer)) for entry in array.flat]
    return np.array(kinds).reshape(array.shape)


def _largest(whole: Any) -> int:
    return max(int(whole.max()), int(whole.min()), key=abs)


def background_mean(outputs: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Return the mean over the background, (P, K), of outputs, (P, B, K).

    Parameters
    ----------
    outputs : array, (P, B, K)
        Outputs for B background rows.
    weights : array, (B,), or None
        Weight of each background row, 1 in all; None for equal weights.
    """
    if outputs.shape[1] == 1:  # taking a mean of ones is slow
        only: FloatArray = outputs[:, 0]
        return only
    mean: FloatArray
    mean = outputs.mean(axis=1) if weights is None else (outputs * weights[:, None]).sum(axis=1)
    return mean
