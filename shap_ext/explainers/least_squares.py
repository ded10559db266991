"""Least squares, for shap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import shap

import shapley_adapters as core
from shapley_adapters.arguments import checked_flag

from .coalition_explainer import CoalitionExplainer
from .shared_parameters import documented


@documented
class LeastSquaresExplainer(CoalitionExplainer):
    """Shapley values as the solution of a weighted regression (KernelSHAP).

    The values sum to the model's output exactly. Consistent, with a bias that vanishes with the
    inverse of the budget, or unbiased, at the price of a larger variance. The counterpart of shap's
    kernel explainer, for all rows at once, with pairs and standard errors. Needs at least 2 M + 2
    evaluations; the unbiased form needs 4.

    Parameters
    ----------
    {parameters}
    {least_squares_options}
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.LeastSquaresExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "least squares"

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
        paired: bool = True,
        sizes: str = "kernel",
        replacement: bool = True,
        unbiased: bool = False,
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
        self.paired = paired
        self.sizes = sizes
        self.replacement = replacement
        self.unbiased = unbiased
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.LeastSquares | core.UnbiasedLeastSquares:
        return core.least_squares(self.paired, self.sizes, self.replacement, self.unbiased)
