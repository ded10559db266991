"""Aggregates of several explanations, as explainers of shap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import shap

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation import Aggregator
from shapley_adapters.constructors import write_constructor
from shapley_adapters.criteria.attribution_arrays import plain_array
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..argument_types import Explanation, Values
from ..explainers.shared_parameters import documented
from ..results.explanations import folded, unfolded, with_outputs
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
    _kind = core.Centroid

    distance: str | float = "l2"
    power: float | None = None
    scale: str = "none"
    order: str = "value"
    approximate: bool = False


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
    _kind = core.LowComplexity

    method: str = "descent"
    scale: str = "none"
    n_steps: int = 20
    n_rounds: int = 20
    tolerance: float = 1e-3
    n_points: int = 1000


def combine(explanations: Sequence[Any], aggregator: Aggregator) -> Any:
    """Combine explanations of the same rows, of shap or captum, into one.

    Parameters
    ----------
    explanations : sequence of Explanations, arrays or tensors
        At least one Explanation of shap, from which names, data and outputs come. Tensors of
        captum's attributions have the shape of the rows; those of several outputs, (R, K, …), are
        brought to shap's order, (R, …, K).
    aggregator : aggregator
        `shapley_adapters.aggregation.Centroid`, `Convex` or `LowComplexity`, with its options.

    Returns
    -------
    shap.Explanation
        Base values are the mean of those of the Explanations, with the aggregator's weights where
        it is a convex combination; 0 for rankings.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If there is no Explanation, or shapes differ.

    Examples
    --------
    >>> import numpy as np, shap, shap_ext
    >>> from shapley_adapters.aggregation import Centroid
    >>> first = shap.Explanation(np.array([[1.0, 2.0]]), np.array([0.5]), np.ones((1, 2)))
    >>> shap_ext.combine([first, np.array([[3.0, 2.0]])], Centroid()).values
    array([[2., 2.]])
    """
    if isinstance(explanations, shap.Explanation) or not isinstance(explanations, Sequence):
        raise InvalidArgumentTypeError(
            f"explanations must be a list; got {type(explanations).__name__}."
        )
    template = next((item for item in explanations if isinstance(item, shap.Explanation)), None)
    if template is None:
        raise InvalidArgumentError(
            "explanations must hold a shap.Explanation, for data and names; captum_ext.combine "
            "makes tensors of tensors."
        )
    shape = np.shape(template.values)
    has_outputs = with_outputs(template)
    arrays = [
        _in_order(f"explanations[{index}]", item, shape, has_outputs)
        for index, item in enumerate(explanations)
    ]
    aggregate = aggregator([folded(array, has_outputs) for array in arrays])
    base_values = [getattr(item, "base_values", None) for item in explanations]
    base_shape = aggregate.values.shape[:-1]
    bases = [None if base is None else _in_shape(base, base_shape) for base in base_values]
    return shap.Explanation(
        unfolded(aggregate.values, shape, has_outputs),
        base_values=aggregate.base_values(bases),
        data=template.data,
        display_data=template.display_data,
        feature_names=template.feature_names,
        output_names=template.output_names,
    )


def _in_order(
    name: str, attributions: Explanation | Values, shape: tuple[int, ...], has_outputs: bool
) -> Any:
    """Return values in shap's order of axes."""
    values = plain_array(name, attributions)
    if has_outputs and hasattr(attributions, "detach") and values.ndim == len(shape):
        values = np.moveaxis(values, 1, -1)
    if values.shape != shape:
        raise InvalidArgumentError(
            f"{name} has shape {values.shape}, but the first Explanation's values have {shape}; "
            "they must explain the same rows, features and outputs."
        )
    return values


def _in_shape(base: npt.ArrayLike, shape: tuple[int, ...]) -> Any:
    """Return base values of all rows; some explainers give one number, or keep an axis of it."""
    base = np.asarray(base)
    return base[..., 0] if base.shape == (*shape, 1) else np.broadcast_to(base, shape)
