"""Semivalues, for shap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import shap

import shapley_adapters as core
from shapley_adapters.arguments import checked_flag

from .coalition_explainer import CoalitionExplainer
from .shared_parameters import documented


@documented
class SemivalueExplainer(CoalitionExplainer):
    """Shapley values from marginal contributions, drawn for each feature alone.

    ApproSemivalue (Castro et al., 2009; Zhang et al., SimSHAP, 2023, Eq. 2). Unbiased. Random
    orders draw from the same distribution at half the price: prefer them. Needs at least 4 M + 2
    evaluations.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each coalition comes with its complement among the other features.
    efficient : bool
        Whether what the values lack of the model's output is shared equally.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.SemivalueExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "semivalue"

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Callable[[Any], Any] | str = shap.links.identity,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        linearize_link: bool = True,
        seed: int | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        value_function: Any = "raw",
        algorithm: str | None = None,  # shap passes it back in when it unwraps a pipeline
        antithetic: bool = True,
        efficient: bool = True,
        independent_rows: bool = False,
    ) -> None:
        super().__init__(
            model,
            masker,
            link,
            feature_names,
            output_names,
            linearize_link,
            seed,
            groups,
            value_function,
        )
        self.antithetic = antithetic
        self.efficient = efficient
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.Semivalue:
        return core.Semivalue(self.antithetic, self.efficient)
