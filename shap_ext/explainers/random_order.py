"""Random orders, for shap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import shap

import shapley_adapters as core
from shapley_adapters.arguments import checked_flag

from .coalition_explainer import CoalitionExplainer
from .shared_parameters import documented


@documented
class RandomOrderExplainer(CoalitionExplainer):
    """Shapley values from random orders of the features and their reverses.

    Unbiased; the values sum to the model's output exactly. A pair of orders of M players costs
    2 (M − 1) evaluations and makes quadratic models exact. The counterpart of shap's permutation
    explainer, for all rows at once and with standard errors.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each order comes with its reverse.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.RandomOrderExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "random order"

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
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.RandomOrder:
        return core.RandomOrder(self.antithetic)
