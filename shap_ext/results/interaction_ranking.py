"""The ranking of the pairs of features of an Explanation of interactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.interactions.indices import pairs_of
from shapley_adapters.interactions.ranking import PairRanking, rank_pairs, rounding_of_rows

from ..argument_types import Explanation

_UPPER = 0.975
"""The quantile at the upper end of a 95 % interval."""

_TOLERANCE = 1e-6
"""Intervals that are wider than normal ones by at most this share are taken for normal ones."""


def rank_interactions(
    explanation: Explanation, *, output: int | None = None, rate: float = 0.05
) -> PairRanking:
    """Rank pairs of features by their interactions over all rows, with q-values.

    A pair interacts if its interaction is not 0 in some row. Its p-value is the smallest of its
    rows times their number, which is right however the errors of the rows depend on each other.
    The q-values bound the rate of false discoveries (Benjamini and Hochberg). P-values use the same
    degrees of freedom as the intervals. An interaction that may be rounding has the p-value 1.

    Parameters
    ----------
    explanation : shap.Explanation
        Interactions with standard errors: `explainer(X, interactions=True, error_bounds=True)`.
    output : int, optional
        The output, for explanations of several outputs.
    rate : float
        The rate of false discoveries, between 0 and 1.

    Returns
    -------
    PairRanking
        The pairs, those with the largest mean size first. `to_frame()` returns a DataFrame.

    Raises
    ------
    InvalidArgumentError
        If the explanation has no interactions or no standard errors, or if its rows have features
        of their own, such as texts.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> explainer = shap_ext.OddGPExplainer(model, np.zeros((1, 3)), feature_names=["a", "b", "c"])
    >>> rows = np.random.default_rng(0).normal(size=(5, 3))
    >>> ranking = shap_ext.rank_interactions(explainer(rows, interactions=True, error_bounds=True))
    >>> ranking.names[0], ranking.n_discoveries
    (('a', 'b'), 1)
    """
    if not isinstance(explanation, shap.Explanation):
        raise InvalidArgumentTypeError(
            f"explanation must be a shap.Explanation; got {type(explanation).__name__}. Pass the "
            "result of explainer(X, interactions=True, error_bounds=True)."
        )
    values, errors, upper = explanation.values, explanation.error_std, explanation.upper_bounds
    base = np.asarray(explanation.base_values)
    if errors is None:
        raise InvalidArgumentError(
            "explanation has no standard errors, which p-values need. Call the explainer with "
            "interactions=True and error_bounds=True."
        )
    names = _names_of_features(explanation.feature_names)
    if output is None and np.ndim(values) == 4 and values.shape[3] == 1:
        output = 0
    if output is not None and np.ndim(values) == 4:
        values, errors, upper = (array[..., output] for array in (values, errors, upper))
        base = base[..., output]
    if np.ndim(values) != 3 or values.shape[1] != values.shape[2]:
        raise InvalidArgumentError(
            f"explanation must hold interactions of the same features in all rows, (R, M, M); its "
            f"values have the shape {np.shape(values)}. Call the explainer with interactions=True, "
            "and pass output= where the model has several outputs."
        )
    first, second = pairs_of(values.shape[1])
    base = np.abs(base).reshape(len(values), -1).max(axis=1)
    rounding = rounding_of_rows(values.sum(axis=2), base, getattr(explanation, "rounding", 0.0))
    of_pairs = 2 * errors[:, first, second]
    return rank_pairs(
        2 * values[:, first, second],
        of_pairs,
        names,
        rate,
        freedom=_freedom(2 * (upper - values)[:, first, second], of_pairs),
        rounding=rounding,
    )


def _names_of_features(names: Sequence[Any] | None) -> Sequence[str] | None:
    """Return one list of names for all rows; refuse lists of several rows, such as texts."""
    if names is None or not any(isinstance(of_row, (list, np.ndarray)) for of_row in names):
        return names
    if len(names) > 1:
        raise InvalidArgumentError(
            f"explanation holds {len(names)} rows that have features of their own; rank one row at "
            "a time: rank_interactions(explainer(rows[:1], interactions=True, error_bounds=True))."
        )
    return list(names[0])


def _freedom(widths: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the degrees of freedom that make 95 % intervals so wide, beside standard errors."""
    normal = scipy.special.ndtri(_UPPER)
    ratios = np.divide(widths, errors, out=np.full_like(errors, normal), where=errors > 0)
    is_wider = ratios > normal * (1 + _TOLERANCE)
    freedom = scipy.special.stdtridf(_UPPER, np.where(is_wider, ratios, 2 * normal))
    return np.where(is_wider, freedom, np.inf)
