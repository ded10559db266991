"""Sim-semivalues, for shap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import shap

import shapley_adapters as core
from shapley_adapters.arguments import checked_flag

from .coalition_explainer import CoalitionExplainer
from .shared_parameters import documented


@documented
class SimSemivalueExplainer(CoalitionExplainer):
    """Shapley values from one draw of coalitions for all features, signed by membership.

    The estimator of SimSHAP (Zhang et al., 2023, Table 1 and Eq. 14), and draw by draw the same as
    the unbiased form of least squares. Unbiased; the values sum to the model's output exactly.
    Works with any budget from 4 evaluations on, but has a larger variance than random orders.

    Parameters
    ----------
    {parameters}
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether values count from the straight line between the outputs without and with all
        features, which lowers the variance and leaves the expectation; the paper's form does not.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.SimSemivalueExplainer(model, np.zeros((1, 12)), seed=0)
    >>> round(float(explainer(np.arange(1.0, 13.0)[None], max_evals=100).values.sum()), 6)
    6084.0
    """

    name = "sim-semivalue"

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
        centred: bool = True,
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
        self.centred = centred
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.SimSemivalue:
        return core.SimSemivalue(self.paired, self.centred)
