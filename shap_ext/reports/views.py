"""Explanations in the one form that a report reads: rows first, one output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..argument_types import Explanation
from ..inputs.datasets import ragged
from ..plots.features import names_of_features
from ..results.explanations import explanation as explanation_of
from ..results.traces import EVALUATIONS, arrays_of_trace, store_arrays_of_trace


@dataclass(frozen=True)
class View:
    """One output of an Explanation.

    Attributes
    ----------
    explanation : shap.Explanation
        The rows of this output.
    kind : str
        "table", "interactions", "words" or "images".
    output : str
        The name of the output; "" if there is only one.
    """

    explanation: Explanation
    kind: str
    output: str

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.explanation.values)

    @property
    def has_bounds(self) -> bool:
        """Whether there are intervals."""
        return self.explanation.lower_bounds is not None

    @property
    def names(self) -> list[str]:
        """The names of the features of a table."""
        n_features = self.explanation.values.shape[1]
        return names_of_features(self.explanation, n_features)

    @property
    def base_values(self) -> FloatArray:
        """The base value of each row."""
        base: FloatArray = np.broadcast_to(np.asarray(self.explanation.base_values), self.n_rows)
        return base

    def row(self, index: int) -> tuple[Any, Any, Any, Any]:
        """Return the values, lower bounds, upper bounds and errors of a row; None for unknown."""
        one = self.explanation
        fields = (one.values, one.lower_bounds, one.upper_bounds, one.error_std)
        values, lower, upper, errors = (None if f is None else f[index] for f in fields)
        return values, lower, upper, errors

    def row_data(self, index: int) -> list[str]:
        """Return the data of a row as texts; empty texts where there are none."""
        one = self.explanation
        data = one.data if one.display_data is None else one.display_data
        n_features = len(one.values[index])
        if data is None or np.size(data[index]) != n_features:
            return [""] * n_features
        return [_as_text(cell) for cell in np.ravel(np.asarray(data[index], dtype=object))]


def views_of(explanation: Explanation, n_outputs: int) -> tuple[list[View], int]:
    """Return the outputs with the largest mean attributions, and the number of all outputs."""
    if not isinstance(explanation, shap.Explanation):
        raise InvalidArgumentTypeError(
            f"explanation must be a shap.Explanation; got {type(explanation).__name__}. Of several "
            "inputs, report one at a time."
        )
    if not len(explanation.values):
        raise InvalidArgumentError(
            "explanation has no rows. Pass one of at least one row: explainer(X) of some rows."
        )
    rows = _with_rows(explanation)
    kind = _kind(rows)
    n_all = _n_outputs(rows)
    if n_all is None:
        return [View(rows, kind, "")], 1
    sizes = [np.mean([np.abs(row[..., k]).sum() for row in rows.values]) for k in range(n_all)]
    indices = sorted(np.argsort(sizes)[::-1][:n_outputs].tolist())
    names = _output_names(rows, n_all)
    return [View(_output_rows(rows, k), kind, names[k]) for k in indices], n_all


def _with_rows(explanation: Explanation) -> Any:
    """Return an Explanation of rows; one row gets an axis of rows."""
    return _expanded(explanation) if _is_one_row(explanation) else explanation


def _is_one_row(explanation: Explanation) -> bool:
    base, values, data = explanation.base_values, explanation.values, explanation.data
    if isinstance(values, np.ndarray) and values.dtype == object:
        return False  # rows of different lengths
    if np.ndim(values) == 1 or np.ndim(base) == 0:
        return base is not None or np.ndim(values) == 1
    if len(base) != len(values):
        return True
    return isinstance(data, np.ndarray) and data.ndim == 1 and np.ndim(data[0]) == 0


def _expanded(row: Explanation) -> Any:
    """Return an Explanation of one row with an axis of rows."""
    arrays: dict[str, Any] = {
        name: None if getattr(row, name) is None else np.asarray(getattr(row, name))[None]
        for name in ("values", "lower_bounds", "upper_bounds", "error_std")
    }
    data = {
        name: None if getattr(row, name) is None else _one_row(getattr(row, name))
        for name in ("data", "display_data")
    }
    names = row.feature_names
    if names is not None and np.ndim(row.data) == 1 and len(row.data) == len(names):
        is_text = [str(word).strip() for word in row.data] == [str(name).strip() for name in names]
        names = [list(names)] if is_text else names
    base = 0.0 if row.base_values is None else row.base_values
    expanded = explanation_of(
        arrays.pop("values"),
        base_values=np.asarray(base, dtype=float)[None],
        feature_names=names,
        output_names=row.output_names if np.ndim(base) else None,
        **arrays,
        **data,
    )
    expanded.call = getattr(row, "call", None)
    trace = {name: array[None] for name, array in arrays_of_trace(row).items()}
    store_arrays_of_trace(expanded, trace)
    return expanded


def _one_row(data: Any) -> Any:
    """Return the data of one row as those of a table; objects stay objects."""
    cells = np.asarray(data)
    if cells.ndim == 0:
        return None
    return cells[None]


def _kind(rows: shap.Explanation) -> str:
    """Return the kind of the features."""
    values = rows.values
    if values.dtype == object or _holds_words(rows.feature_names) or _holds_words(rows.data):
        return "words"
    n_feature_axes = values.ndim - max(1, np.ndim(rows.base_values))
    if n_feature_axes == 1:
        return "table"
    is_square = n_feature_axes == 2 and values.shape[1] == values.shape[2]
    has_data_of_image = np.shape(rows.data)[: values.ndim] == values.shape[: n_feature_axes + 1]
    return "interactions" if is_square and not has_data_of_image else "images"


def _holds_words(texts: Any) -> bool:
    """Return whether each row has texts of its own, instead of a table's names or cells."""
    if not isinstance(texts, (tuple, list)) or not len(texts):
        return False
    return not isinstance(texts[0], (str, int, float))


def _n_outputs(rows: shap.Explanation) -> int | None:
    """Return the number of outputs; None for a model with one output."""
    base = np.asarray(rows.base_values)
    if base.dtype == object:
        return min(len(of_row) for of_row in base)
    return base.shape[1] if base.ndim == 2 else None


def _output_names(rows: shap.Explanation, n_outputs: int) -> list[str]:
    names = rows.output_names
    if names is None or np.ndim(names) != 1 or len(names) != n_outputs:
        return [f"Output {index}" for index in range(n_outputs)]
    return [str(name) for name in names]


def _output_rows(rows: shap.Explanation, output: int) -> Any:
    """Return the rows of one output, without its name, which shap cannot copy for one row."""
    fields = ("values", "lower_bounds", "upper_bounds", "error_std")
    arrays = {name: _output_of_rows(getattr(rows, name), output) for name in fields}
    of_output = explanation_of(
        arrays.pop("values"),
        base_values=np.array([base[output] for base in rows.base_values]),
        data=rows.data,
        display_data=rows.display_data,
        feature_names=rows.feature_names,
        **arrays,
    )
    trace = {
        name: array if name == EVALUATIONS else array[..., output, :]
        for name, array in arrays_of_trace(rows).items()
    }
    store_arrays_of_trace(of_output, trace)
    return of_output


def _output_of_rows(per_row: Any, output: int) -> Any:
    """Return the numbers of one output; rows may have different lengths."""
    if per_row is None or (isinstance(per_row, np.ndarray) and per_row.dtype != object):
        return None if per_row is None else per_row[..., output]
    return ragged([row[..., output] for row in per_row])


def _as_text(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, (float, np.floating)) else str(cell)
