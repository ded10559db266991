"""Interactions of pairs as explanations of shap, and their ranking over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special
import shap

from shapley_adapters import Estimate
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.interactions.ranking import PairRanking, rank_pairs, rounding_of_rows
from shapley_adapters.interactions.result import Interactions, pairs_of
from shapley_adapters.pipeline.result import quantiles

from ..argument_types import Explanation, Outputs
from ..inputs.datasets import packed
from .bounded_explanation import BoundedExplanation
from .explanations import OutputSelection, Part, explanation

_UPPER = 0.975
"""The quantile at the upper end of a 95 % interval."""

_TOLERANCE = 1e-6
"""Intervals that are wider than normal ones by at most this share are taken for normal ones."""


def interaction_explanation(
    estimate: Estimate,
    interactions: Interactions,
    parts: Sequence[Part],
    *,
    error_bounds: bool,
    outputs: Outputs,
    output_names: Sequence[Any] | None,
    compute_time: float,
) -> Any:
    """Return one Explanation with the interactions of the features of all inputs.

    Parameters
    ----------
    estimate : Estimate
        Values of all players and outputs.
    interactions : Interactions
        Its interactions.
    parts : sequence of Part
        The inputs.
    error_bounds, outputs, output_names, compute_time
        As in `explanations`.
    """
    selection = OutputSelection.from_names(estimate, outputs, output_names)
    matrices = interactions.matrices(estimate.values)
    statistics = [matrices] * 4
    if error_bounds:  # 95 % intervals
        freedom, deviations = estimate.degrees_of_freedom, interactions.error_matrices()
        widths = quantiles(0.95, np.minimum(freedom[:, :, None], freedom[:, None])) * deviations
        statistics = [matrices, deviations, matrices - widths, matrices + widths]
    players = [_players_of_row(parts, row) for row in range(len(matrices))]
    values, errors, lower, upper = (
        _player_matrices(selection, array, players) for array in statistics
    )
    empty = [row[0] for row in selection.values(estimate.empty_values[:, None])]
    result = explanation(
        values,
        base_values=packed(empty),
        data=_joined_data(parts),
        display_data=parts[0].display_data if len(parts) == 1 else None,
        feature_names=_joined_names(parts),
        output_names=selection.names,
        lower_bounds=lower if error_bounds else None,
        upper_bounds=upper if error_bounds else None,
        error_std=errors if error_bounds else None,
        compute_time=compute_time,
        seeds=frozenset([estimate.seed]),
    )
    if isinstance(result, BoundedExplanation):
        result.rounding = estimate.rounding  # `rank_interactions` needs it
    return result


def _players_of_row(parts: Sequence[Part], row: int) -> IntArray:
    """Return the players of a row; rows of texts have fewer than the longest one."""
    sizes = [int(np.prod(part.shapes[row])) for part in parts]
    return np.concatenate(
        [part.first + np.arange(size) for part, size in zip(parts, sizes, strict=True)]
    )


def _player_matrices(
    selection: OutputSelection, matrices: FloatArray, players: Sequence[IntArray]
) -> Any:
    """Return the matrices, (R, M, M, K), of the selected outputs and of each row's players."""
    n_players = matrices.shape[1]
    flat = selection.values(matrices.reshape(len(matrices), n_players**2, -1))
    of_rows = []
    for row, indices in zip(flat, players, strict=True):
        matrix = row.reshape(n_players, n_players, *row.shape[1:])
        of_rows.append(matrix[np.ix_(indices, indices)])
    return packed(of_rows)


def _joined_names(parts: Sequence[Part]) -> list[Any] | None:
    """Return the names of the features of all inputs, if all have names."""
    if len(parts) == 1:
        return parts[0].feature_names
    names: list[Any] = []
    for part in parts:
        if part.feature_names is None or any(isinstance(n, list) for n in part.feature_names):
            return None
        names += part.feature_names
    return names


def joined_names(explanations: Sequence[Any]) -> list[str] | None:
    """Return the names of the features of all inputs; None if some have none or rows differ."""
    names: list[str] = []
    for one in explanations:
        of_input = one.feature_names
        if of_input is not None and len(of_input) == 1 and not isinstance(of_input[0], str):
            of_input = of_input[0]  # of one text
        if of_input is None or not all(isinstance(name, str) for name in of_input):
            return None
        names += list(of_input)
    return names


def _joined_data(parts: Sequence[Part]) -> Any:
    """Return the data with one axis of features; None where inputs cannot be joined."""
    if any(part.segments is not None for part in parts):
        return None
    if len(parts) == 1 and (len(parts[0].shapes[0]) == 1 or not _is_numeric(parts[0].data)):
        return parts[0].data
    if not all(_is_numeric(part.data) for part in parts):
        return None
    return np.concatenate([part.data.reshape(len(part.data), -1) for part in parts], axis=1)


def _is_numeric(data: object) -> bool:
    return isinstance(data, np.ndarray) and data.dtype.kind in "biuf"


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
