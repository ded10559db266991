"""Interactions of pairs as shap Explanations, in the form of TreeExplainer's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shapley_adapters import Estimate
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.interactions.result import PairInteractions
from shapley_adapters.pipeline.result import quantiles

from ..argument_types import Outputs
from .bounded_explanation import BoundedExplanation
from .explanations import OutputSelection, Part, explanation, packed


def interaction_explanation(
    estimate: Estimate,
    interactions: PairInteractions,
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
    interactions : PairInteractions
        Its interactions.
    parts : sequence of Part
        The inputs.
    error_bounds, outputs, output_names, compute_time
        As in `explanations`.
    """
    selection = OutputSelection.from_names(estimate, outputs, output_names)
    matrices = interactions.matrices(estimate.values)
    statistics = [matrices, *_bounds(estimate, interactions, matrices)] if error_bounds else []
    players = [_players_of_row(parts, row) for row in range(len(matrices))]
    values, errors, lower, upper = (
        _player_matrices(selection, array, players) for array in statistics or [matrices] * 4
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


def _bounds(
    estimate: Estimate, interactions: PairInteractions, matrices: FloatArray
) -> list[FloatArray]:
    """Return standard errors and the ends of 95 % intervals, (R, M, M, K) each."""
    errors = interactions.error_matrices()
    freedom = estimate.degrees_of_freedom
    widths = quantiles(0.95, np.minimum(freedom[:, :, None], freedom[:, None])) * errors
    return [errors, matrices - widths, matrices + widths]


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


def _joined_data(parts: Sequence[Part]) -> Any:
    """Return the data with one axis of features; None where inputs cannot be joined."""
    if len(parts) == 1 and (len(parts[0].shapes[0]) == 1 or not _is_numeric(parts[0].data)):
        return parts[0].data
    if not all(_is_numeric(part.data) for part in parts):
        return None
    return np.concatenate([part.data.reshape(len(part.data), -1) for part in parts], axis=1)


def _is_numeric(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.dtype.kind in "biuf"
