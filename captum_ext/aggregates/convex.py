"""Convex combinations of attributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation import SensitivityLoss
from shapley_adapters.arguments import checked_choice
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.criteria.neighbourhoods import explained_neighbours
from shapley_adapters.errors import InvalidArgumentError

from ..argument_types import ForwardFunction, Inputs, Target
from ..captum_internals import TargetType, TensorOrTupleOfTensorsGeneric
from ..inputs.checks import checked_inputs
from .aggregate_attribution import AggregateAttribution
from .base_explainers import DrawnInputs, shared_arguments


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


@write_constructor
class Convex(AggregateAttribution):
    """A convex combination of the attributions of several methods.

    Σ_i w_i g_i (Bhatt, Weller and Moura). The weights are passed, or are learned by `learn`.

    Parameters
    ----------
    attribution_methods : sequence
        As in `Centroid`.
    weights : sequence of float, optional
        One for each method, not negative; they are divided by their sum. Equal by default.
    scale : {"none", "l1", "l2", "max"}
        The norm by which each attribution is scaled first, to the mean norm of all. `"none"`: no
        scaling.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Convex
    >>> Convex([lambda x: x, lambda x: 5 * x], weights=[3, 1]).attribute(torch.ones(1, 2))
    tensor([[2., 2.]])
    """

    weights: Any = None
    scale: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.learned_weights: core.LearnedWeights | None = None
        self._aggregator()(np.zeros((len(self.attribution_methods), 1, 1)))

    def _aggregator(self) -> core.Convex:
        return core.Convex(self.weights, self.scale)

    def learn(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        criterion: Callable[[FloatArray], Any] | str = "complexity",
        *,
        target: TargetType = None,
        neighbourhood: Neighbourhood | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> core.LearnedWeights:
        """Learn weights for a criterion on inputs, and use them from now on.

        On these inputs the combination is at least as good as the best of the methods.

        Parameters
        ----------
        inputs, target, **kwargs
            As in `attribute`.
        criterion : {"complexity", "sensitivity"} or callable
            The criterion, by name. Or a function of attributions, (R, M), that returns one number
            per attribution; lower is better.
        neighbourhood : shapley_adapters.criteria.Neighbourhood, optional
            The neighbours for the average sensitivity. `forward_func` of the first method decides
            which of them keep the prediction.
        seed : int
            Seed of random starts, and of the neighbours.
        """
        if not callable(criterion):
            checked_choice("criterion", criterion, ("complexity", "sensitivity"))
        fit_data = self._fit_data(inputs, target, kwargs)
        loss: Any
        if callable(criterion):
            loss = core.CriterionLoss(fit_data(), criterion)
        elif criterion == "complexity":
            loss = core.ComplexityLoss(fit_data())
        else:
            loss = fit_data.sensitivity(neighbourhood, self.forward_func, seed)
        self.learned_weights = core.learned_weights(loss, len(self.attribution_methods), seed=seed)
        self.weights = self.learned_weights.weights
        return self.learned_weights

    def _fit_data(self, inputs: Inputs, target: Target, kwargs: dict[str, Any]) -> ConvexFitData:
        arguments = shared_arguments(self.attribution_methods, kwargs)
        if target is not None:
            self._check_target()

        def candidates(
            inputs: Inputs, target_of_rows: Target, arguments: dict[str, Any]
        ) -> FloatArray:
            if target_of_rows is not None:
                arguments = {**arguments, "target": target_of_rows}
            _, arrays = self._candidates(inputs, checked_inputs(inputs), arguments)
            return core.on_one_scale(np.array(arrays), self.scale)

        return ConvexFitData(candidates, inputs, target, arguments, self.attribution_methods)
