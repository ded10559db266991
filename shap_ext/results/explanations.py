"""Estimates as shap Explanations, also as images; axes of several outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters import Estimate
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, row_number

from ..argument_types import Explanation, Outputs, Table, Values
from ..inputs.column_groups import labels_of_entries
from ..inputs.datasets import ragged
from ..shap_internals import chosen_by, is_op_chain, set_tables
from .bounded_explanation import BoundedExplanation
from .traces import store_trace


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


def image_explanation(
    explanation: shap.Explanation, images: npt.NDArray[Any], labels: npt.NDArray[np.integer[Any]]
) -> shap.Explanation:
    """Return attributions of superpixels as those of all pixels, for `shap.image_plot`.

    The attribution of a superpixel is shared equally by its entries, so that those of an image
    still sum to the model's output less the base value.

    Parameters
    ----------
    explanation : shap.Explanation
        The explanation of the images by an explainer with `groups=labels`: values (R, M) or
        (R, M, K) of M superpixels.
    images : array, (R, H, W, C) or (R, H, W)
        The images.
    labels : array of int, (H, W) or the shape of an image
        The labels that `groups=` got.

    Returns
    -------
    shap.Explanation
        Values of the shape of the images, with an axis for the outputs where there are several.

    Raises
    ------
    InvalidArgumentError
        If the shapes do not belong together.

    Examples
    --------
    >>> import numpy as np
    >>> import shap
    >>> import shap_ext
    >>> images = np.ones((1, 4, 4, 3))
    >>> labels = np.repeat(np.repeat([[0, 1], [2, 3]], 2, axis=0), 2, axis=1)
    >>> model = lambda x: x.reshape(len(x), -1).sum(axis=1)
    >>> masked = lambda mask, x: (np.where(mask.reshape(x.shape), x, 0)[None],)
    >>> explainer = shap.Explainer(model, masked, algorithm="best", groups=labels)
    >>> explained = shap_ext.image_explanation(explainer(images), images, labels)
    >>> explained.values.shape, float(explained.values.sum().round(6))
    ((1, 4, 4, 3), 48.0)
    """
    images, values = np.asarray(images), np.asarray(explanation.values)
    n_entries = int(np.prod(images.shape[1:]))
    of_entries = labels_of_entries(np.asarray(labels), n_entries)
    # Players are in the order of their first entries.
    found, firsts, places = np.unique(of_entries, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(firsts))[places]
    if values.ndim < 2 or values.shape[:2] != (len(images), len(found)):
        raise InvalidArgumentError(
            f"explanation has values of the shape {values.shape}, but there are {len(images)} "
            f"images with {len(found)} superpixels. Pass explainer(images) of an explainer with "
            "groups=labels."
        )
    shares = values / np.bincount(rank).reshape(-1, *[1] * (values.ndim - 2))
    return shap.Explanation(
        shares[:, rank].reshape(*images.shape, *values.shape[2:]),
        base_values=explanation.base_values,
        data=images,
        output_names=explanation.output_names,
    )


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
    """

    first: int
    shapes: Sequence[tuple[int, ...]]
    data: Any
    display_data: Any
    feature_names: list[Any] | None

    def select(self, per_player: Sequence[FloatArray] | FloatArray) -> Any:
        """Return the input's part of numbers per player, (R, M, …), in the rows' shapes."""
        if isinstance(per_player, np.ndarray) and len(set(self.shapes)) == 1:
            size = int(np.prod(self.shapes[0]))
            part_values = per_player[:, self.first : self.first + size]
            return part_values.reshape(len(part_values), *self.shapes[0], *part_values.shape[2:])
        return packed([self._row_values(row, values) for row, values in enumerate(per_player)])

    def _row_values(self, row: int, values: FloatArray) -> FloatArray:
        shape = self.shapes[row]
        part_values = values[self.first : self.first + int(np.prod(shape))]
        return part_values.reshape(*shape, *values.shape[1:])


def packed(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return values of rows as one array, or as an array of arrays if their shapes differ."""
    shapes = {np.shape(value) for value in values}
    return np.array(values) if len(shapes) == 1 else ragged(values)


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
            feature_names=part.feature_names,
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
        if estimate.trace is not None:
            store_trace(result, estimate.trace, partial(_part_values, part, selection))
        results.append(result)
    return results[0] if len(results) == 1 else results


def _part_values(part: Part, selection: OutputSelection, per_player: FloatArray) -> Any:
    """Return numbers of all players and outputs, (R, M, K), in the form of a part's values."""
    return part.select(selection.values(per_player))


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
