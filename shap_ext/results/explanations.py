"""Estimates as shap Explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shapley_adapters import Estimate
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError

from ..argument_types import Outputs
from ..inputs.datasets import ragged
from ..shap_internals import chosen_by, is_op_chain
from .bounded_explanation import explanation


@dataclass(frozen=True)
class Part:
    """One model input's share of the players.

    Attributes
    ----------
    first : int
        Its first player.
    shapes : sequence of tuples
        The shape of each row's attributions.
    data, display_data : arrays
        The explained rows, and how plots are to show them.
    feature_names : list of str, list of lists of str, or None
        Names of the features, of all rows or of each.
    """

    first: int
    shapes: Sequence[tuple[int, ...]]
    data: Any
    display_data: Any
    feature_names: list[Any] | None

    def of(self, per_player: Sequence[FloatArray] | FloatArray) -> Any:
        """Return the part of something given for all players, (R, M, …), in the rows' shapes."""
        if isinstance(per_player, np.ndarray) and len(set(self.shapes)) == 1:
            size = int(np.prod(self.shapes[0]))
            own = per_player[:, self.first : self.first + size]
            return own.reshape(len(own), *self.shapes[0], *own.shape[2:])
        return packed([self._of_row(row, values) for row, values in enumerate(per_player)])

    def _of_row(self, row: int, values: FloatArray) -> FloatArray:
        shape = self.shapes[row]
        own = values[self.first : self.first + int(np.prod(shape))]
        return own.reshape(*shape, *values.shape[1:])


def packed(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return values of rows as one array; as an array of arrays where their shapes differ."""
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
    """Return one Explanation, or a list with one for each model input.

    Models with one output get values (R, M) and base values (R,), as shap's plots want them.

    Parameters
    ----------
    estimate : Estimate
        Values of all players and outputs.
    parts : sequence of Part
        The inputs.
    error_bounds : bool
        Whether standard errors and intervals are shown.
    outputs : sequence of int, chain of operations, or None
        Which outputs to show, or how each row chooses.
    output_names : sequence of str, or of lists of str, or None
        Names of the outputs, the same for all rows or for each row.
    clustering : array, or None
        The clustering of the features of each row.
    compute_time : float
        Seconds.
    """
    selection = _Selection.of(estimate, outputs, output_names)
    values = selection.values(estimate.values)
    shown = (estimate.standard_errors, *estimate.interval()) if error_bounds else ()
    bounds = [selection.values(of_players) for of_players in shown]
    empty = [row[0] for row in selection.values(estimate.empty_values[:, None])]
    made = []
    for part in parts:
        own = part.of(values)
        errors, lower, upper = map(part.of, bounds) if bounds else (None, None, None)
        made.append(
            explanation(
                own,
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
            )
        )
    return made[0] if len(made) == 1 else made


@dataclass(frozen=True)
class _Selection:
    """Which outputs are shown, and under which names.

    Attributes
    ----------
    places : list of arrays, or array
        The outputs of each row, or those of all rows.
    is_single : bool
        Whether the model has one output, which has no axis of its own.
    names : array, list of arrays, or None
        Names of all rows' outputs, or of each row's.
    """

    places: Any
    is_single: bool
    names: Any

    @classmethod
    def of(cls, estimate: Estimate, outputs: Outputs, names: Sequence[Any] | None) -> _Selection:
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
            chosen_names = [str(all_names[place]) for place in outputs]
            return cls(np.asarray(outputs), False, chosen_names)
        shared = _numbered(n_outputs) if names is None else names
        of_rows = shared if are_of_rows else [shared] * n_rows
        chosen = [
            _places(outputs, estimate.grand_values[row, : len(own)], row)
            for row, own in enumerate(of_rows)
        ]
        return cls(chosen, False, _chosen_names(of_rows, chosen))

    def values(self, per_output: FloatArray) -> Any:
        """Return the shown ones of (R, M, K): an array, or a list where rows choose."""
        if self.is_single:
            return per_output[..., 0]
        if isinstance(self.places, np.ndarray):
            return per_output[..., self.places]
        return [row[:, places] for row, places in zip(per_output, self.places, strict=True)]


def _numbered(n_outputs: int) -> list[str]:
    """Return the names that shap gives outputs without names."""
    return [f"Output {place}" for place in range(n_outputs)]


def _places(outputs: Outputs, grand: FloatArray, row: int) -> npt.NDArray[np.intp]:
    if outputs is None:
        return np.arange(len(grand))
    if is_op_chain(outputs):
        return np.atleast_1d(np.asarray(chosen_by(outputs, grand), dtype=np.intp))
    if max(outputs) >= len(grand):
        raise InvalidArgumentError(
            f"outputs={list(outputs)} names outputs beyond the {len(grand)} of row {row}, counted "
            "from 0."
        )
    return np.asarray(outputs, dtype=np.intp)


def _chosen_names(of_rows: Any, chosen: Sequence[Any]) -> Any:
    """Return the names of what each row chose, as shap does: one list where all are the same."""
    named = [
        np.array([str(name) for name in names])[places]
        for names, places in zip(of_rows, chosen, strict=True)
    ]
    if all(np.array_equal(names, named[0]) for names in named):
        return list(named[0])
    return packed(named)
