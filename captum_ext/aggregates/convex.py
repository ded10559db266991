"""Convex combinations of attributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation.convex import check_criterion, loss_of_criterion
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.criteria import Neighbourhood

from ..argument_types import Inputs, Target
from ..captum_internals import TargetType, TensorOrTupleOfTensorsGeneric
from ..inputs.checks import checked_inputs
from .base_explainers import DrawnInputs, shared_arguments
from .methods import AggregateAttribution


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

    _kind = core.Convex

    weights: Any = None
    scale: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.learned_weights: core.LearnedWeights | None = None
        self._aggregator()(np.zeros((len(self.attribution_methods), 1, 1)))

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
        check_criterion("criterion", criterion, ("complexity", "sensitivity"), neighbourhood)
        arguments = shared_arguments(self.attribution_methods, kwargs)
        if target is not None:
            self._check_target()

        def candidates(of: Inputs, target_of: Target, further: dict[str, Any]) -> FloatArray:
            if target_of is not None:
                further = {**further, "target": target_of}
            _, arrays = self._candidates(of, checked_inputs(of), further)
            return core.on_one_scale(np.array(arrays), self.scale)

        def sensitivity() -> core.SensitivityLoss:
            drawn = DrawnInputs(
                inputs, target, self.forward_func, arguments, self.attribution_methods
            )
            drawn.check(neighbourhood)
            return core.SensitivityLoss.around(
                lambda rows, owners: candidates(
                    drawn.tensor(rows), drawn.target_of(owners), drawn.arguments
                ),
                drawn.predict,
                drawn.rows,
                neighbourhood,
                seed=seed,
                with_owners=True,
            )

        loss = loss_of_criterion(
            criterion,
            lambda: candidates(inputs, target, arguments),
            {"sensitivity": sensitivity},
        )
        self.learned_weights = core.learned_weights(loss, len(self.attribution_methods), seed=seed)
        self.weights = self.learned_weights.weights
        return self.learned_weights
