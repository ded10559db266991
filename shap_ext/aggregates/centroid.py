"""Centroids of several explanations, for shap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import shapley_adapters.aggregation as core
from shapley_adapters.constructors import write_constructor

from ..argument_types import Table
from ..explainers.shared_parameters import documented
from .candidate_explainer import CandidateExplainer


@documented
@write_constructor
class CentroidExplainer(CandidateExplainer):
    """The explanation nearest to those of several explainers.

    argmin_g Σ_i D(g, g_i)^p (Bhatt, Weller and Moura, Evaluating and aggregating feature-based
    model explanations). The mean lowers the noise of explainers that err apart; the median passes
    over single ones that stand out; the Kemeny–Young rule takes their rankings only. The mean of
    Shapley estimates sums to the model's output; medians and ranks do not.

    Parameters
    ----------
    {of_aggregates}
    {explainers}
    distance : {"l2", "l1", "kendall"} or float
        D: Euclidean, ℓ1, Kendall's between rankings, or the order q ≥ 1 of a norm. By default, with
        p = 2, the mean.
    power : float, optional
        p ≥ 1, by default q: each feature by itself. `distance="l1"` is the median,
        `distance="l2", power=1` the geometric median.
    scale : {"none", "l1", "l2", "max"}
        Whether each explanation is first brought to the mean size of all, measured so.
    order : {"value", "magnitude"}
        What the rankings of `"kendall"` go by. Its values are M for the first feature down to 1.
    approximate : bool
        Whether rankings of more than 60 features that no majority tells apart may be approximate.
        `last_aggregate.rankings` holds the bound that proves each of them, or the gap.

    Notes
    -----
    Costs what the explainers cost; `max_evals` is shared equally by those that take it.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.CentroidExplainer(model, np.zeros((1, 3)), seed=0, distance="l1")
    >>> explainer(np.array([[1.0, 2.0, 3.0]]), silent=True).values.round(6)
    array([[ 6., 12., 18.]])
    """

    name = "centroid"

    distance: str | float = "l2"
    power: float | None = None
    scale: str = "none"
    order: str = "value"
    approximate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._specs()  # refuses what cannot be used, as the next line does
        self._aggregator(None, {})

    def _aggregator(self, rows: Table | None, arguments: Mapping[str, Any]) -> core.Centroid:
        return core.Centroid(self.distance, self.power, self.scale, self.order, self.approximate)
