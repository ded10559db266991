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
    model explanations). The mean lowers the noise of explainers whose errors are independent. The
    median ignores single outliers. The Kemeny–Young rule uses only their rankings. The mean of
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
        The norm by which each explanation is scaled first, to the mean norm of all. `"none"`: no
        scaling.
    order : {"value", "magnitude"}
        Whether the rankings of `"kendall"` sort by value or by magnitude. The values of this
        centroid are M for the first feature down to 1 for the last.
    approximate : bool
        Whether rankings may be approximate if no majority orders more than 60 of their features.
        `last_aggregate.rankings` holds the bound that proves each of them, or the gap.

    Notes
    -----
    The cost is that of all explainers. `max_evals` is divided equally among those that have it.
    Others, such as `shap.KernelExplainer`, spend their own budget in addition, which may be larger:
    `max_evals` does not limit it.

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
        self._specs()  # raises errors for unusable options, as the next line does
        self._aggregator(None, {})

    def _aggregator(self, rows: Table | None, arguments: Mapping[str, Any]) -> core.Centroid:
        return core.Centroid(self.distance, self.power, self.scale, self.order, self.approximate)
