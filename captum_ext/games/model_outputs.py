"""Outputs of forward functions: checks, and the selection of targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, ModelOutputError, ShapleyExtError
from shapley_adapters.games.evaluation import OutputShape
from shapley_adapters.torch_support.array_module import wrapping_advice

from ..argument_types import Target
from ..captum_internals import select_targets
from ..inputs.checks import special_kind


class OneValueForBatchError(ShapleyExtError):
    """The forward function returned one value, or one tensor, for the whole batch."""


_new_shape = partial(
    OutputShape,
    "forward_func",
    "Check that it depends neither on the batch nor on the values of the input.",
)


@dataclass
class OutputSelection:
    """Checks the outputs of a forward function in each call, and selects the targets.

    Attributes
    ----------
    target
        As captum takes it, or a function of the outputs.
    n_examples : int
        Number of examples.
    may_be_one_for_all : bool
        Whether one tensor of any shape may be meant for the whole batch.
    shape : tuple of int
        Shape of the selected output of one example; known after the first call.
    dtype : torch.dtype
        Type of the output; known after the first call.
    """

    target: Any
    n_examples: int
    may_be_one_for_all: bool
    shape: tuple[int, ...] = field(default=(), init=False)
    dtype: torch.dtype = field(default=torch.float32, init=False)
    _first_shape: OutputShape = field(default_factory=_new_shape, init=False)
    _shape_of_all: tuple[int, ...] | None = field(default=None, init=False)

    def __call__(self, output: object, rows: IntArray) -> Tensor:
        """Return the selected outputs of some rows, (P, K).

        Raises
        ------
        OneValueForBatchError
            If the output is one value or, where the user allows that, one tensor for the whole
            batch.
        ModelOutputError
            If it is neither that nor an entry for each row.
        """
        if isinstance(output, (int, float)):
            raise OneValueForBatchError
        selected, n_rows = dense_output(output), len(rows)
        shape = tuple(selected.shape)
        if shape == () and n_rows == 1 and self._shape_of_all is not None:
            selected = selected.reshape(1)  # by a model that ends with squeeze()
        elif shape == () or (selected.numel() == 1 and n_rows > 1):
            raise OneValueForBatchError
        elif shape[0] != n_rows:
            if self.may_be_one_for_all and self._shape_of_all in (None, shape):
                raise OneValueForBatchError
            raise ModelOutputError(
                f"forward_func must return one entry for each of its {n_rows} examples; its output "
                f"has shape {shape}. A single example needs a batch axis, inputs[None]; for one "
                "result of the whole batch, pass perturbations_per_eval=1."
            )
        elif n_rows == self.n_examples > 1:
            self._shape_of_all = shape
        if self.target is not None:
            selected = self._target_of(selected, rows)
        self._first_shape.check(tuple(selected.shape[1:]))
        self.shape, self.dtype = tuple(selected.shape[1:]), selected.dtype
        return selected.reshape(n_rows, int(np.prod(self.shape, dtype=np.intp)))

    def _target_of(self, output: Tensor, rows: IntArray) -> Tensor:
        target = self.target
        if callable(target):
            return _checked_result(target(output), len(rows))
        if isinstance(target, list):
            target = [target[r] for r in rows]
        elif isinstance(target, Tensor) and target.numel() > 1:
            target = target.to(output.device)[rows]
        return selected_targets(output, target, self.target)


def _checked_result(result: object, n_rows: int) -> Tensor:
    """Return the result of a user's function of the outputs."""
    if isinstance(result, Tensor) and result.shape[:1] == (n_rows,):
        return result
    shape = f" {tuple(result.shape)}" if isinstance(result, Tensor) else ""
    raise ModelOutputError(
        f"target(outputs) must return a tensor with one entry for each of the {n_rows} rows of the "
        f"outputs; it returned a {type(result).__name__}{shape}."
    )


def selected_targets(output: Tensor, target: Target, user_target: Target) -> Tensor:
    """Select the target of each example, or say that `given`, the user's, does not select.

    Raises
    ------
    InvalidArgumentError
        If there is no such output.
    """
    try:
        selected: Tensor = select_targets(output, target)
    except (AssertionError, IndexError, RuntimeError, TypeError) as error:
        raise InvalidArgumentError(
            f"target={_brief(user_target)} does not select from an output of shape "
            f"{tuple(output.shape[1:])} for each example. {error}"
        ) from error
    return selected


def rounding_of(dtype: torch.dtype) -> float:
    """Return the relative rounding error of numbers of a type."""
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


@contextmanager
def one_row_alone() -> Iterator[None]:
    """Say why a forward function that works for all examples at once may fail for one of them."""
    try:
        yield
    except (OneValueForBatchError, ShapleyExtError):
        raise
    except Exception as error:
        raise ModelOutputError(
            "forward_func works for all examples together and fails for one of them alone: "
            f"{error}. It is called with any number of examples in any order. So pass data of the "
            "examples, such as labels, in additional_forward_args. Call model.eval() where batch "
            "normalisation is in training mode."
        ) from error


def dense_output(output: object) -> Tensor:
    """Return an output that is a dense tensor of real numbers; refuse all others."""
    if not isinstance(output, Tensor):
        raise ModelOutputError(
            f"forward_func must return a tensor or a number; {wrapping_advice(output)}"
        )
    if kind := special_kind(output):
        raise ModelOutputError(
            "forward_func must return a dense tensor of real numbers; it returned a "
            f"{kind.partition('_')[0]} one."
        )
    return output


def _brief(target: object) -> str:
    text = repr(target)
    return text if len(text) <= 60 else text[:57] + "..."
