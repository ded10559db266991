"""Neighbours of inputs, as tensors, with the targets of the examples that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.torch_support.tensor_arrays import array_of_tensor

from ..argument_types import ForwardFunction, Inputs, Target
from ..inputs.checks import checked_inputs, checked_target
from .base_explainers import shared_by_all


class DrawnInputs:
    """Converter of drawn points to inputs.

    Parameters
    ----------
    inputs : Tensor, or tuple of one
        The inputs, of floating point.
    target
        As captum takes it.
    forward_func : callable or None
        By whose outputs neighbours are kept.
    arguments : dict
        Further arguments of the methods; none may have one entry per example.
    methods : sequence
        The methods that attribute the inputs.

    Attributes
    ----------
    arguments : dict
        Further arguments of the methods, for neighbours.
    """

    def __init__(
        self,
        inputs: Inputs,
        target: Target,
        forward_func: ForwardFunction | None,
        arguments: dict[str, Any],
        methods: Sequence[Any],
    ) -> None:
        tensors = checked_inputs(inputs)
        if len(tensors) > 1 or not tensors[0].is_floating_point():
            raise InvalidArgumentError(
                "sensitivity takes one tensor of floating point as inputs; neighbours of others "
                "cannot be drawn."
            )
        (self._inputs,) = tensors
        self._target = checked_target(target, len(self._inputs))
        self._forward_func = forward_func
        self.arguments = shared_by_all(methods, arguments, len(self._inputs))

    def check(self, neighbourhood: Neighbourhood) -> None:
        """Refuse a neighbourhood that needs predictions where there are none."""
        if self._forward_func is None and neighbourhood.keep != "all":
            raise InvalidArgumentError(
                "forward_func= is needed to find the neighbours that keep the prediction "
                f"(keep={neighbourhood.keep!r})."
            )

    @property
    def rows(self) -> FloatArray:
        """The inputs as an array."""
        return array_of_tensor(self._inputs)

    def tensor(self, rows: FloatArray) -> Tensor:
        """Return points in the type and on the device of the inputs."""
        # A copy, because models may write into their input.
        return torch.from_numpy(np.array(rows)).to(self._inputs)

    def target_of(self, owners: IntArray) -> Any:
        """Return the targets of the examples whose neighbours the points are."""
        target, n_examples = self._target, len(self._inputs)
        if isinstance(target, list) and len(target) == n_examples:
            return [target[owner] for owner in owners]
        if isinstance(target, Tensor) and target.dim() > 0 and len(target) == n_examples:
            return target[torch.as_tensor(owners)]
        return target

    def predict(self, rows: FloatArray) -> Any:
        """Return the outputs for points; zeros where no predictions are asked for."""
        if self._forward_func is None:
            return np.zeros(len(rows))
        with torch.no_grad():
            outputs = self._forward_func(self.tensor(rows))
        return array_of_tensor(outputs) if isinstance(outputs, Tensor) else outputs
