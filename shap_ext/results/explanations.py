"""Estimates as shap Explanations, painted on images; axes of several outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters import Estimate
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.errors import InvalidArgumentError, row_number
from shapley_adapters.superpixels import collect, paint

from ..argument_types import Explanation, Outputs, Table, Values
from ..inputs.datasets import packed
from ..shap_internals import chosen_by, is_op_chain, set_tables
from .bounded_explanation import BoundedExplanation


def has_outputs(values: FloatArray, rows: Table) -> bool:
    """Return whether the last axis of attributions of rows is the outputs'."""
    return bool(values.ndim > np.ndim(rows))


def with_outputs(explanation: Explanation | Values) -> bool:
    """Return whether the last axis of an Explanation's values, or of an array, is the outputs'."""
    values = explanation.values if isinstance(explanation, shap.Explanation) else explanation
    if isinstance(explanation, shap.Explanation) and explanation.data is not None:
        return bool(np.ndim(values) == np.ndim(explanation.data) + 1)
    return np.ndim(values) == 3


def folded(values: FloatArray, has_outputs: bool) -> FloatArray:
    """Return values with the features of a row in the last axis, (R, M) or (R, K, M)."""
    if has_outputs:
        values = np.moveaxis(values, -1, 1)
        return values.reshape(*values.shape[:2], -1)
    return values.reshape(len(values), -1)


def unfolded(values: FloatArray, shape: tuple[int, ...], has_outputs: bool) -> FloatArray:
    """Return values in their original shape, the inverse of `folded`."""
    if not has_outputs:
        return values.reshape(shape)
    return np.moveaxis(values.reshape(len(values), shape[-1], *shape[1:-1]), 1, -1)


def base_of_rows(explanation: Any, values: FloatArray) -> FloatArray | None:
    """Return the base values of an Explanation, (R,) or (R, K), given its values, features last."""
    base = getattr(explanation, "base_values", None)
    if base is None:
        return None
    base, shape = np.asarray(base, dtype=np.float64), values.shape[:-1]
    # Some explainers give one number for all rows, or keep an axis of it.
    return base.reshape(shape) if base.size == np.prod(shape) else np.broadcast_to(base, shape)


@dataclass(frozen=True)
class Part:
    """The players and data of one model input.

    Attributes
    ----------
    first : int
        The first player of the input.
    shapes : sequence of tuples
        The shape of each row's attributions.
    data, display_data : arrays
        The explained rows, and their data for plots.
    feature_names : list of str, list of lists of str, or None
        Names of the features, for all rows or per row.
    segments : sequence of arrays, optional
        For each row, the player of each number of the input, counted from `first`, if attributions
        are painted on the input: each player shares its own equally between its numbers.
    """

    first: int
    shapes: Sequence[tuple[int, ...]]
    data: Any
    display_data: Any
    feature_names: list[Any] | None
    segments: Sequence[IntArray] | None = None

    def places(self) -> list[IntArray]:
        """Return the player of each attribution of each row."""
        if self.segments is not None:
            return [self.first + of_row for of_row in self.segments]
        return [
            np.arange(self.first, self.first + int(np.prod(shape))).reshape(shape)
            for shape in self.shapes
        ]

    def collect(self, values: FloatArray) -> FloatArray:
        """Return attributions of the inputs, (R, *shape, …), as those of players, (R, M, …)."""
        if self.segments is None:
            return values
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        rows = zip(values, self.segments, strict=True)
        return np.stack([collect(of_row, places, max(sizes)) for of_row, places in rows])

    def select(self, per_player: Sequence[FloatArray] | FloatArray) -> Any:
        """Return the input's part of numbers per player, (R, M, …), in the rows' shapes."""
        are_alike = self.segments is None and len(set(self.shapes)) == 1
        if isinstance(per_player, np.ndarray) and are_alike:
            size = int(np.prod(self.shapes[0]))
            part_values = per_player[:, self.first : self.first + size]
            return part_values.reshape(len(part_values), *self.shapes[0], *part_values.shape[2:])
        return packed([self._row_values(row, values) for row, values in enumerate(per_player)])

    def _row_values(self, row: int, values: FloatArray) -> FloatArray:
        shape = self.shapes[row]
        part_values = values[self.first : self.first + int(np.prod(shape))]
        if self.segments is not None:
            return paint(part_values, self.segments[row])
        return part_values.reshape(*shape, *values.shape[1:])


def explanations(
    estimate: Estimate,
    parts: Sequence[Part],
    *,
    error_bounds: bool,
    outputs: Outputs,
    output_names: Sequence[Any] | None,
    clustering: FloatArray | None,
    compute_time: float,
) -> Any:
    """Return one Explanation, or a list with one per model input.

    Models with one output get values (R, M) and base values (R,), as shap's plots require.

    Parameters
    ----------
    estimate : Estimate
        Values of all players and outputs.
    parts : sequence of Part
        The inputs.
    error_bounds : bool
        Whether to include standard errors and intervals.
    outputs : sequence of int, chain of operations, or None
        The outputs to include, or the operations that select them per row.
    output_names : sequence of str, or of lists of str, or None
        Names of the outputs, for all rows or per row.
    clustering : array, or None
        The clustering of the features of each row.
    compute_time : float
        Seconds.
    """
    selection = OutputSelection.from_names(estimate, outputs, output_names)
    values = selection.values(estimate.values)
    statistics = (estimate.standard_errors, *estimate.interval()) if error_bounds else ()
    bounds = [selection.values(of_players) for of_players in statistics]
    empty = [row[0] for row in selection.values(estimate.empty_values[:, None])]
    results = []
    for part in parts:
        part_values = part.select(values)
        errors, lower, upper = map(part.select, bounds) if bounds else (None, None, None)
        result = explanation(
            part_values,
            base_values=packed(empty),
            data=part.data,
            display_data=part.display_data,
            feature_names=part.feature_names if part.segments is None else None,
            output_names=selection.names,
            lower_bounds=lower,
            upper_bounds=upper,
            error_std=errors,
            clustering=clustering,
            compute_time=compute_time,
            seeds=frozenset([estimate.seed]),
        )
        if isinstance(result, BoundedExplanation):
            result.errors_cancel = estimate.errors_cancel  # `global_importance` needs it
        results.append(result)
    return results[0] if len(results) == 1 else results


def explanation(
    values: Table,
    *,
    lower_bounds: Any = None,
    seeds: frozenset[int] | None = None,
    **fields: Any,
) -> Any:
    """Return an Explanation of shap: a `BoundedExplanation` if there are bounds.

    `seeds` are those of its random draws, where they are known.
    """
    kind = shap.Explanation if lower_bounds is None else BoundedExplanation
    tables = {
        name: field
        for name, field in fields.items()
        if isinstance(field, np.ndarray) and field.dtype == object and field.ndim > 1
    }
    shapes = {name: np.broadcast_to(0, table.shape) for name, table in tables.items()}
    result = kind(values, lower_bounds=lower_bounds, **(fields | shapes))
    if tables:
        set_tables(result, tables)
    if isinstance(result, BoundedExplanation):
        result.seeds = seeds
    return result


@dataclass(frozen=True)
class OutputSelection:
    """The selected outputs and their names.

    Attributes
    ----------
    output_indices : list of arrays, or array
        The outputs of each row, or those of all rows.
    is_single : bool
        Whether the model has one output; explanations then have no axis of outputs.
    names : array, list of arrays, or None
        Names of the outputs, for all rows or per row.
    """

    output_indices: Any
    is_single: bool
    names: Any

    @classmethod
    def from_names(
        cls, estimate: Estimate, outputs: Outputs, names: Sequence[Any] | None
    ) -> OutputSelection:
        """Return the selection of some outputs, by the names of all of them."""
        n_rows, _, n_outputs = estimate.values.shape
        are_of_rows = names is not None and isinstance(names[0], list)
        if n_outputs == 1:
            return cls(np.arange(1), True, None)
        if not are_of_rows and not is_op_chain(outputs):
            if outputs is None:
                return cls(
                    np.arange(n_outputs), False, None if names is None else [*map(str, names)]
                )
            all_names = _numbered(n_outputs) if names is None else names
            chosen_names = [str(all_names[index]) for index in outputs]
            return cls(np.asarray(outputs), False, chosen_names)
        shared = _numbered(n_outputs) if names is None else names
        of_rows = shared if are_of_rows else [shared] * n_rows
        indices_of_rows = [
            _output_indices(outputs, estimate.grand_values[row, : len(row_names)], row)
            for row, row_names in enumerate(of_rows)
        ]
        return cls(indices_of_rows, False, _chosen_names(of_rows, indices_of_rows))

    def values(self, per_output: FloatArray) -> Any:
        """Return the selected entries of (R, M, K): an array, or a list if rows differ."""
        if self.is_single:
            return per_output[..., 0]
        if isinstance(self.output_indices, np.ndarray):
            return per_output[..., self.output_indices]
        return [
            row[:, indices] for row, indices in zip(per_output, self.output_indices, strict=True)
        ]


def _numbered(n_outputs: int) -> list[str]:
    """Return shap's names of outputs without names."""
    return [f"Output {index}" for index in range(n_outputs)]


def _output_indices(outputs: Outputs, grand: FloatArray, row: int) -> npt.NDArray[np.intp]:
    if outputs is None:
        return np.arange(len(grand))
    if is_op_chain(outputs):
        return np.atleast_1d(np.asarray(chosen_by(outputs, grand), dtype=np.intp))
    if max(outputs) >= len(grand):
        raise InvalidArgumentError(
            f"outputs={list(outputs)} has indices beyond the {len(grand)} outputs of row "
            f"{row_number(row)}, counted from 0."
        )
    return np.asarray(outputs, dtype=np.intp)


def _chosen_names(of_rows: Any, indices_of_rows: Sequence[Any]) -> Any:
    """Return the names of each row's outputs; one list, as in shap, if all rows have the same."""
    selected_names = [
        np.array([str(name) for name in names])[indices]
        for names, indices in zip(of_rows, indices_of_rows, strict=True)
    ]
    if all(np.array_equal(names, selected_names[0]) for names in selected_names):
        return list(selected_names[0])
    return packed(selected_names)
