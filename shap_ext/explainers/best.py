"""The exact or the most accurate attributions for what they cost, for shap."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import shap

import shapley_adapters as core
from shapley_adapters import Estimate, Game, Settings
from shapley_adapters.constructors import write_constructor

from ..inputs.models import inner_model
from .native_explainers import NativeExplainer, native_explainer
from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented


@documented
@write_constructor
class BestExplainer(SamplingExplainer):
    """Exact Shapley values where they cost no more, else the most accurate estimate for the time.

    The first of these that applies is chosen, and `last_estimate.choice` says which one and why:

    1. A model object that `shap.TreeExplainer` or `shap.LinearExplainer` supports, with a plain
       background: their exact values, of the outputs that they explain (the log-odds of boosted
       trees and linear classifiers). Where these do not sum to the model's outputs, the same
       outputs are explained by the rules that follow. Pass `model.predict_proba` to explain
       probabilities.
    2. All 2^M coalitions of M features, which are exact: up to 10 features, where the budget pays
       for them, and where they take no longer than an estimate.
    3. Odd Gaussian-process regression (`OddGPExplainer`); with equal weights, or random orders,
       where its own work takes seconds and longer than the model.

    Costs are measured with the first evaluations. With `max_seconds`, the choice is what errs
    least within that time. A call with the explainer that was chosen, its budget
    (`last_estimate.budget`) and `seed` repeats the numbers exactly.

    Parameters
    ----------
    {parameters}
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.BestExplainer(model, np.zeros((1, 10)), seed=0)
    >>> explainer(np.arange(1.0, 11.0)[None]).values[0, :3].round(6)
    array([ 55., 110., 165.])
    >>> explainer.last_estimate.choice
    'all 2^10 coalitions, which the budget pays for'
    """

    name = "best"

    _native: NativeExplainer | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.value_function == "raw" and self.link is shap.links.identity:
            self._native = native_explainer(inner_model(self.model), self.masker)

    def _estimator(self) -> core.Best:
        return core.Best()

    @property
    def _explained_model(self) -> Any:
        return self.model if self._native is None else self._native.outputs

    def _estimate(self, game: Game, args: tuple[Any, ...], settings: Settings) -> Estimate:
        native, refusal = self._native, ""
        needs_coalitions = self.groups is not None or settings.interactions or settings.trace
        if native is not None and not needs_coalitions:
            exact = native.estimate(args[0], settings.seed)
            if exact is not None:
                return exact
            refusal = f"; the values of {native.name} do not sum to the outputs of the model"
        result = super()._estimate(game, args, settings)
        return replace(result, choice=result.choice + refusal)
