"""Estimates from the first evaluations, stored in an Explanation and sliced with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.pipeline.result import quantiles
from shapley_adapters.pipeline.solutions import Trace

from ..argument_types import Explanation
from ..shap_internals import set_tracked, tracked_of

UNIONS = ("hierarchical_widths", "hierarchical_errors")
"""Half widths of 95 % intervals of `hierarchical_values`, and their standard errors."""

TRACE = ("trace_evaluations", "trace_values", "trace_lower", "trace_upper")
"""The arrays of a trace in an Explanation."""

TRACKED = (*TRACE, *UNIONS)
"""All arrays that are sliced with an Explanation beside shap's own."""


@dataclass(frozen=True)
class RowTrace:
    """The trace of one row and one output.

    Attributes
    ----------
    evaluations : array, (T,)
        The evaluations of each point.
    values, lower, upper : arrays, (M, T)
        The attributions and the ends of their 95 % intervals.
    """

    evaluations: IntArray
    values: FloatArray
    lower: FloatArray
    upper: FloatArray


def store_trace(
    explanation: Explanation, trace: Trace, of_part: Callable[[FloatArray], Any]
) -> None:
    """Store a trace in an Explanation of some features and outputs.

    `of_part` returns numbers of all players and outputs, (R, M, K), in the form of the values.
    """
    widths = quantiles(0.95, trace.degrees_of_freedom) * trace.standard_errors
    arrays = (trace.values, trace.values - widths, trace.values + widths)
    set_tracked(explanation, TRACE[0], trace.evaluations, 1)
    for name, array in zip(TRACE[1:], arrays, strict=True):
        points = [of_part(array[:, :, point]) for point in range(array.shape[2])]
        set_tracked(explanation, name, *_joined(points))


def _joined(points: list[Any]) -> tuple[Any, int]:
    """Return the points along a last axis, and the number of the other axes."""
    first = points[0]
    if first.dtype != object:
        return np.stack(points, axis=-1), first.ndim
    rows = [np.stack(of_row, axis=-1) for of_row in zip(*points, strict=True)]
    return rows, 1 + first[0].ndim


def trace_of(explanation: Explanation) -> RowTrace | None:
    """Return the trace of an Explanation of one row and one output; None if it has none."""
    evaluations, *arrays = (tracked_of(explanation, name) for name in TRACE)
    if evaluations is None:
        return None
    is_known = evaluations > 0
    return RowTrace(evaluations[is_known], *(array[:, is_known] for array in arrays))
