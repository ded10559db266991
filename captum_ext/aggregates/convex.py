"""Convex combinations of attributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shapley_adapters.aggregation as core
from shapley_adapters.arguments import checked_choice
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.criteria import Neighbourhood

from ..argument_types import Inputs, Target
from ..captum_internals import TargetType, TensorOrTupleOfTensorsGeneric
from ..inputs.checks import checked_inputs
from .aggregate_attribution import AggregateAttribution
from .base_explainers import (
    shared_arguments,
)
from .convex_fit_data import ExplainedInputs


@write_constructor
class Convex(AggregateAttribution):
    """A convex combination of the attributions of several methods.

    Σ_i w_i g_i (Bhatt, Weller and Moura), with given weights, or with weights learned by `learn`.

    Parameters
    ----------
    attribution_methods : sequence
        As in `Centroid`.
    weights : sequence of float, optional
        One for each method, not negative; they are divided by their sum. Equal by default.
    scale : {"none", "l1", "l2", "max"}
        Whether each attribution is first brought to the mean size of all, measured so.

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
            A function of attributions, (R, M), to one number each, less of which is better.
        neighbourhood : shapley_adapters.criteria.Neighbourhood, optional
            Where sensitivity, on average, looks for neighbours; `forward_func` of the first method
            tells which keep the prediction.
        seed : int
            Seed of random starts, and of the neighbours.
        """
        if not callable(criterion):
            checked_choice("criterion", criterion, ("complexity", "sensitivity"))
        explained = self._explained(inputs, target, kwargs)
        loss: Any
        if callable(criterion):
            loss = core.CriterionLoss(explained(), criterion)
        elif criterion == "complexity":
            loss = core.ComplexityLoss(explained())
        else:
            loss = explained.sensitivity(neighbourhood, self.forward_func, seed)
        self.learned_weights = core.learned_weights(loss, len(self.attribution_methods), seed=seed)
        self.weights = self.learned_weights.weights
        return self.learned_weights

    def trade_off(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        neighbourhood: Neighbourhood,
        complexity_weights: FloatArray | None = None,
        *,
        target: TargetType = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> core.TradeOff:
        """Return the curve of sensitivity against complexity over all combinations, to be plotted.

        Parameters
        ----------
        inputs, target, neighbourhood, seed, **kwargs
            As in `learn`.
        complexity_weights : sequence of float, optional
            λ, in units of sensitivity per nat of complexity; by default 16 values over three
            decades.
        """
        explained = self._explained(inputs, target, kwargs)
        sensitivity = explained.sensitivity(neighbourhood, self.forward_func, seed)
        return core.trade_off(
            core.ComplexityLoss(explained()), sensitivity, complexity_weights, seed=seed
        )

    def _explained(self, inputs: Inputs, target: Target, kwargs: dict[str, Any]) -> ExplainedInputs:
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

        return ExplainedInputs(candidates, inputs, target, arguments, self.attribution_methods)
