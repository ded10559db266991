"""Data to learn convex combinations: attributions of inputs and of their neighbours."""

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
class ConvexFitData:
    """Inputs and the methods that attribute them.

    Attributes
    ----------
    candidates : callable
        Inputs, targets and further arguments to the attributions of all methods, (G, B, …, M).
    inputs, target
        The inputs, and the target of each.
    arguments : dict
        Further arguments of the methods.
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
        candidates = self.candidates(self.inputs, self.target, self.arguments)
        return candidates.reshape(len(candidates), -1, candidates.shape[-1])

    def sensitivity(
        self, neighbourhood: Neighbourhood | None, forward_func: ForwardFunction, seed: int
    ) -> SensitivityLoss:
        """Return how combinations differ between inputs and neighbours."""
        if not isinstance(neighbourhood, Neighbourhood):
            raise InvalidArgumentError(
                "neighbourhood= is needed for sensitivity, such as Neighbourhood(radius=0.1) of "
                f"shapley_adapters.criteria; got {neighbourhood!r}."
            )
        neighbours = DrawnInputs(
            self.inputs, self.target, forward_func, self.arguments, self.methods
        )
        neighbours.check(neighbourhood)

        def explain(rows: FloatArray, owners: IntArray) -> FloatArray:
            arguments = neighbours.tensor(rows), neighbours.target_of(owners), neighbours.arguments
            candidates = self.candidates(*arguments)
            n_features = candidates.shape[-1]
            return np.moveaxis(candidates.reshape(*candidates.shape[:2], -1, n_features), 0, 1)

        explanations = explained_neighbours(
            explain, neighbours.predict, neighbours.rows, neighbourhood, seed=seed, with_owners=True
        )
        return SensitivityLoss.from_explanations(*explanations)
