"""Explanations whose error bounds remain valid under shap's arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import shap

from ..argument_types import Table
from ..shap_internals import set_bounds

_SHIFTS = frozenset(["__add__", "__radd__", "__sub__", "__rsub__"])


class BoundedExplanation(shap.Explanation):  # type: ignore[misc] # shap is untyped
    """An Explanation with standard errors and intervals.

    shap copies `lower_bounds`, `upper_bounds` and `error_std` unchanged when it changes `values`.
    Here they follow the values. Numbers and arrays that scale or shift the values scale and shift
    the bounds. Selecting rows, features or outputs selects their bounds. All other operations
    remove them: the error of a mean, or of a difference of two explanations, depends on the
    correlation of errors, which an Explanation does not store.

    Attributes
    ----------
    rounding : float
        The relative rounding error of the model's outputs; 0 where it is unknown.
    errors_cancel : bool
        Whether the errors of different rows are independent and have mean 0.
    """

    rounding = 0.0
    errors_cancel = False

    @property
    def values(self) -> Any:
        """The attributions. Assigning new ones removes the bounds, which belong to the old ones."""
        return super().values

    @values.setter
    def values(self, values: Table) -> None:
        shap.Explanation.values.fset(self, values)
        set_bounds(self, None, None, None)

    def __copy__(self) -> BoundedExplanation:
        copied = super().__copy__()  # of shap's class
        copied.__class__ = type(self)
        copied.rounding = self.rounding
        copied.errors_cancel = self.errors_cancel
        return copied  # type: ignore[no-any-return]

    def hstack(self, other: object) -> Any:
        """Join the features of two explanations of the same rows; the bounds are removed."""
        joined = super().hstack(other)
        set_bounds(joined, None, None, None)
        return joined

    def __add__(self, other: object) -> Any:
        return self._changed_by("__add__", other)

    def __radd__(self, other: object) -> Any:
        return self._changed_by("__radd__", other)

    def __sub__(self, other: object) -> Any:
        return self._changed_by("__sub__", other)

    def __rsub__(self, other: object) -> Any:
        return self._changed_by("__rsub__", other)

    def __mul__(self, other: object) -> Any:
        return self._changed_by("__mul__", other)

    def __rmul__(self, other: object) -> Any:
        return self._changed_by("__rmul__", other)

    def __truediv__(self, other: object) -> Any:
        return self._changed_by("__truediv__", other)

    def _changed_by(self, name: str, other: object) -> Any:
        """Apply shap's operator to the values, and to the bounds if `other` is a constant."""
        if name.startswith("__r") and isinstance(other, shap.Explanation):
            # Python calls a subclass on the right first; shap's result would have the wrong sign.
            return NotImplemented
        operator = getattr(shap.Explanation, name)
        changed = operator(self, other)
        has_bounds = self.lower_bounds is not None
        keeps_shape = np.shape(changed.values) == np.shape(self.values)
        if has_bounds and keeps_shape and _is_constant(other, self.lower_bounds):
            set_bounds(
                changed, *self._bounds_under(lambda bound: operator(bound, other).values, name)
            )
        return changed

    def _bounds_under(self, change: Callable[[Any], Any], name: str) -> tuple[Any, Any, Any]:
        """Return lower bounds, upper bounds and standard errors under a linear change."""
        bounds = (self.lower_bounds, self.upper_bounds)
        ends = [change(shap.Explanation(_as_values(bound))) for bound in bounds]
        errors: Any = _as_values(self.error_std)
        if name not in _SHIFTS:
            errors = change(shap.Explanation(errors))
        return (
            _by_row(np.minimum, *ends),
            _by_row(np.maximum, *ends),
            _by_row(np.abs, errors),
        )


def _is_constant(other: object, bounds: object) -> bool:
    """Return whether `other` is a number, or an array if all rows have the same shape."""
    if isinstance(other, np.ndarray):
        return other.dtype.kind in "biuf" and (other.ndim == 0 or isinstance(bounds, np.ndarray))
    return isinstance(other, Real)


def _as_values(bounds: Any) -> Any:
    """Return bounds in the form of values: an array of arrays for rows of different lengths."""
    if not isinstance(bounds, list):
        return bounds
    rows = np.empty(len(bounds), dtype=object)
    rows[:] = bounds
    return rows


def _by_row(function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a function to arrays, or to each row if rows have different lengths."""
    if arrays[0].dtype != object:
        return function(*arrays)
    return [function(*rows) for rows in zip(*arrays, strict=True)]
