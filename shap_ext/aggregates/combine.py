"""Explanations that are there already, of either host, combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters.aggregation import Aggregator
from shapley_adapters.criteria.attribution_arrays import plain_array
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..argument_types import Explanation, Values
from ..results.output_axes import folded, unfolded, with_outputs


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
