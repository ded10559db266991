"""What convex combinations are learned on: attributions of inputs and of their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapley_adapters.aggregation import SensitivityLoss
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.criteria.neighbourhoods import explained_neighbours
from shapley_adapters.errors import InvalidArgumentError

from ..argument_types import ForwardFunction
from .drawn_inputs import DrawnInputs


@dataclass(frozen=True)
class ExplainedInputs:
    """Inputs, and what attributes them.

    Attributes
    ----------
    candidates : callable
        Inputs, targets and further arguments to the attributions of all methods, (G, B, …, M).
    inputs, target
        The inputs, and what is explained of each.
    arguments : dict
        What else the methods get.
    methods : sequence
        The methods.
    """

    candidates: Callable[[Any, Any, dict[str, Any]], FloatArray]
    inputs: Any
    target: Any
    arguments: dict[str, Any]
    methods: Sequence[Any]

    def __call__(self) -> FloatArray:
        """Return the attributions of the inputs, (G, R, M), each output a row of its own."""
        found = self.candidates(self.inputs, self.target, self.arguments)
        return found.reshape(len(found), -1, found.shape[-1])

    def sensitivity(
        self, neighbourhood: Neighbourhood | None, forward_func: ForwardFunction, seed: int
    ) -> SensitivityLoss:
        """Return how combinations differ between inputs and neighbours."""
        if not isinstance(neighbourhood, Neighbourhood):
            raise InvalidArgumentError(
                "neighbourhood= is needed for sensitivity, such as Neighbourhood(radius=0.1) of "
                f"shapley_adapters.criteria; got {neighbourhood!r}."
            )
        drawn = DrawnInputs(self.inputs, self.target, forward_func, self.arguments, self.methods)
        drawn.check(neighbourhood)

        def explain(rows: FloatArray, owners: IntArray) -> FloatArray:
            given = drawn.tensor(rows), drawn.target_of(owners), drawn.arguments
            found = self.candidates(*given)
            return np.moveaxis(found.reshape(*found.shape[:2], -1, found.shape[-1]), 0, 1)

        found = explained_neighbours(
            explain, drawn.predict, drawn.rows, neighbourhood, seed=seed, with_owners=True
        )
        return SensitivityLoss.of(*found)
