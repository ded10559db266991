"""Explanations of lower complexity than several, for shap."""

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
class LowComplexityExplainer(CandidateExplainer):
    """An explanation no more complex than that of any of several explainers.

    The answer comes from the region that the explanations span, and its complexity, the entropy of
    ``|φ_i| / Σ|φ|``, is at most that of the simplest of them. Bhatt, Weller and Moura (Evaluating
    and aggregating feature-based model explanations) show two such algorithms as a figure; these
    are readings of it. Neither sums to the model's output.

    Parameters
    ----------
    {of_aggregates}
    {explainers}
    method : {"descent", "shrinking"}
        `"descent"`: from each explanation towards their mean, and from the mean towards each, one
        feature at a time, keeping a step only if the complexity falls; ends in the box that they
        span. `"shrinking"`: keeps the lowest points of the segments between the corners of their
        convex hull until the region is small; ends in the hull. It goes below the simplest
        explanation only where they disagree in the sign of a feature.
    scale : {"none", "l1", "l2", "max"}
        The norm by which each explanation is scaled first, to the mean norm of all. `"none"`: no
        scaling.
    n_steps : int
        Steps of each feature on its whole way (descent).
    n_rounds, tolerance, n_points : int, float, int
        Rounds at most, the part of its width at which the region is small, and how many changes of
        sign are looked at on a segment (shrinking).

    Notes
    -----
    The cost is that of all explainers. `max_evals` is divided equally among those that have it.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> explainer = shap_ext.LowComplexityExplainer(
    ...     lambda x: x.sum(axis=1),
    ...     explainers=[lambda x: x * [1, 2, -1], lambda x: x * [1, 3, 1]],
    ...     method="shrinking",
    ... )
    >>> explainer(np.ones((1, 3))).values
    array([[1. , 2.5, 0. ]])
    """

    name = "low complexity"

    method: str = "descent"
    scale: str = "none"
    n_steps: int = 20
    n_rounds: int = 20
    tolerance: float = 1e-3
    n_points: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        self._specs()  # raises errors for unusable options, as the next line does
        self._aggregator(None, {})

    def _aggregator(self, rows: Table | None, arguments: Mapping[str, Any]) -> core.LowComplexity:
        return core.LowComplexity(
            self.method, self.scale, self.n_steps, self.n_rounds, self.tolerance, self.n_points
        )
