"""Explanations whose error bounds remain valid under shap's arithmetic."""

from __future__ import annotations

import copy
from collections.abc import Callable
from numbers import Number, Real
from typing import Any

import numpy as np
import shap

from shapley_adapters.errors import InvalidArgumentTypeError, warn_user

from ..argument_types import Table
from ..shap_internals import copied, copy_tracked, remove_tracked, set_bounds
from .record import CallRecord

UNIONS = ("hierarchical_widths", "hierarchical_errors")
"""Half widths of 95 % intervals of `hierarchical_values`, and their standard errors; they are
sliced with the Explanation."""

_SHIFTS = frozenset(["__add__", "__radd__", "__sub__", "__rsub__"])


class BoundedExplanation(shap.Explanation):  # type: ignore[misc] # shap is untyped
    """An Explanation with standard errors and intervals.

    shap copies `lower_bounds`, `upper_bounds` and `error_std` unchanged when it changes `values`.
    Here they follow the values:

    - Numbers and arrays that scale or shift the values scale and shift the bounds.
    - Selecting rows, features or outputs selects their bounds.
    - A sum or difference of two explanations has the root of the sum of squared errors if their
      random draws are independent, which is known from their seeds. Otherwise it has the sum of
      their errors, which is the largest error that any correlation allows.
    - All other operations remove them, because the error of a mean or of a product depends on
      correlations that an Explanation does not store. Sums, differences, products and `hstack`
      warn where they remove bounds; `repr` names the operation in all cases.

    Attributes
    ----------
    rounding : float
        The relative rounding error of the model's outputs; 0 where it is unknown.
    seeds : frozenset of int, or None
        The seeds of all random draws behind the values; None where they are unknown.
    call : CallRecord, or None
        The call that made the explanation: model, method, options, evaluations, warnings. None for
        sums and differences of several explanations.
    errors_cancel : bool
        Whether the errors of different rows are independent and have mean 0. It is False for sums
        and differences with shared draws, of which the same draw may be in several rows.
    """

    rounding = 0.0
    seeds: frozenset[int] | None = None
    call: CallRecord | None = None
    __array_priority__ = 1000  # NumPy's numbers and arrays leave their products to this class
    errors_cancel = False

    @property
    def values(self) -> Any:
        """The attributions. Assigning new ones removes the bounds, which belong to the old ones."""
        return super().values

    @values.setter
    def values(self, values: Table) -> None:
        shap.Explanation.values.fset(self, values)
        set_bounds(self, None, None, None)
        remove_tracked(self, UNIONS)

    def __copy__(self) -> Any:
        return self._as_own(copied(self))

    def __getitem__(self, item: Any) -> Any:
        """Return a part; errors of rows that appear twice do not cancel."""
        part = super().__getitem__(item)
        if isinstance(part, BoundedExplanation) and _repeats_rows(item, len(self.values)):
            part.errors_cancel = False
        return part

    def __repr__(self) -> str:
        """Return shap's text, with the standard errors or the reason why there are none."""
        removed = removed_bounds(self)
        errors = repr(self.error_std) if removed is None else f"None: {removed}"
        unit = "" if self.call is None else f"\n\n.call.unit = {self.call.unit!r}"
        return f"{super().__repr__()}{unit}\n\n.error_std =\n{errors}"

    def hstack(self, other: object) -> Any:
        """Join the features of two explanations of the same rows, with their bounds."""
        joined = self._as_own(super().hstack(other))
        both: tuple[Any, ...] = (self, other)
        fields = [(one.lower_bounds, one.upper_bounds, one.error_std) for one in both]
        if not all(isinstance(field, np.ndarray) for one in fields for field in one):
            set_bounds(joined, None, None, None)
            _warn_of_removal("The joined explanation", "one part has none, or rows differ in size")
        else:
            set_bounds(joined, *(np.hstack(pair) for pair in zip(*fields, strict=True)))
        joined.seeds, joined.call = _joined_seeds(self, other), None
        joined.errors_cancel = self.errors_cancel and getattr(other, "errors_cancel", False)
        return joined

    def cohorts(self, cohorts: Any) -> Any:
        """Split the rows as shap does; for a number of cohorts, a tree splits data of numbers."""
        columns = np.transpose(self.data) if isinstance(cohorts, int) and self.shape[1:] else ()
        for name, column in zip(self.feature_names or (), columns, strict=False):
            try:
                np.asarray(column, dtype=np.float64)
            except (TypeError, ValueError) as error:
                kind = next(type(cell).__name__ for cell in column if not isinstance(cell, Real))
                raise InvalidArgumentTypeError(
                    f"cohorts={cohorts} splits rows by numbers, but the data of feature {name!r} "
                    f"hold {kind}. Pass a label for each row, such as "
                    f"explanation.cohorts(explanation[:, {name!r}].data.astype(str))."
                ) from error
        return super().cohorts(cohorts)

    def __neg__(self) -> Any:
        return self * -1

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

    def _as_own(self, explanation: shap.Explanation) -> Any:
        """Return an Explanation that shap made of this one, in this class."""
        explanation.__class__ = type(self)
        explanation.rounding, explanation.seeds = self.rounding, self.seeds
        explanation.call, explanation.errors_cancel = self.call, self.errors_cancel
        copy_tracked(self, explanation, UNIONS)
        return explanation

    def _changed_by(self, name: str, other: object) -> Any:
        """Apply shap's operator to the values, and to the bounds where their errors are known."""
        if name.startswith("__r") and isinstance(other, shap.Explanation):
            # Python calls a subclass on the right first; shap's result would have the wrong sign.
            if self.lower_bounds is not None:
                _warn_of_removal("The result", "the explanation on the left has none")
            return NotImplemented
        operator = getattr(shap.Explanation, name)
        changed = self._values_changed_by(operator, other)
        if isinstance(other, shap.Explanation):
            changed.seeds, changed.call = _joined_seeds(self, other), None
            changed.errors_cancel = _errors_of_sum_cancel(self, other)
        if self.lower_bounds is None:
            return changed
        obstacle = self._obstacle(name, other, np.shape(changed.values))
        if obstacle is not None:
            _warn_of_removal("The result", obstacle)
        elif isinstance(other, shap.Explanation):
            set_bounds(changed, *self._bounds_of_sum(other, changed.values, name))
        else:
            set_bounds(
                changed, *self._bounds_under(lambda bound: operator(bound, other).values, name)
            )
        return changed

    def _values_changed_by(self, operator: Callable[..., Any], other: object) -> Any:
        """Apply shap's operator; data that are not numbers, such as words, remain as they are."""
        of_other = other.data if isinstance(other, shap.Explanation) else 0
        if _is_numeric(self.data) and _is_numeric(of_other):
            return operator(self, other)
        without_data = copy.copy(self)
        without_data.data = None
        changed = operator(without_data, other)
        changed.data = self.data
        return changed

    def _obstacle(self, name: str, other: object, shape: tuple[int, ...]) -> str | None:
        """Return why the bounds of a result are unknown; None where they are known."""
        if isinstance(other, shap.Explanation):
            if name not in _SHIFTS:
                return "the error of a product or quotient of explanations is not computed"
            if other.lower_bounds is None:
                return "the explanation on the right has none"
        elif not _is_constant(other, self.lower_bounds):
            return f"they cannot be scaled or shifted by a {type(other).__name__} such as this one"
        if shape != np.shape(self.values):
            return "the operands have different shapes"
        return None

    def _bounds_of_sum(self, other: Any, values: Any, name: str) -> tuple[Any, Any, Any]:
        """Return the bounds and errors of a sum or difference of explanations."""
        are_independent = have_independent_draws(self, other)
        sides = [_half_widths(one) for one in (self, other)]
        if name == "__sub__":
            sides[1].reverse()  # the upper end of a difference comes from the lower end
        # Otherwise the sum of the errors, which is the largest that any correlation allows.
        add = np.hypot if are_independent else np.add
        below, above = (_by_row(add, *pair) for pair in zip(*sides, strict=True))
        errors = _by_row(add, _as_values(self.error_std), _as_values(other.error_std))
        return (
            _by_row(np.subtract, values, _as_values(below)),
            _by_row(np.add, values, _as_values(above)),
            errors,
        )

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


def _repeats_rows(item: Any, n_rows: int) -> bool:
    """Return whether an index of `__getitem__` has a row more than once."""
    rows = item[0] if isinstance(item, tuple) and item else item
    if not isinstance(rows, (list, np.ndarray)):
        return False
    numbers = np.asarray(rows)
    return numbers.dtype.kind in "iu" and len(np.unique(numbers % n_rows)) < numbers.size


def _is_numeric(data: object) -> bool:
    return isinstance(data, Number) or (isinstance(data, np.ndarray) and data.dtype.kind in "biufc")


def removed_bounds(explanation: shap.Explanation) -> str | None:
    """Return the operation that removed the bounds; None if there are bounds, or never were any."""
    if not isinstance(explanation, BoundedExplanation) or explanation.lower_bounds is not None:
        return None
    names = [item.name for item in explanation.op_history if item.name != "__getitem__"]
    cause = ", ".join(name.strip("_") for name in names) or "new values"
    return f"the error bounds were removed by an operation ({cause}) after which they are unknown"


def _warn_of_removal(subject: str, reason: str) -> None:
    warn_user(
        f"{subject} has no error bounds: {reason}. Use explanations that are made with "
        "error_bounds=True, and numbers, sums and differences.",
        "removed bounds",
    )


def _joined_seeds(first: shap.Explanation, second: shap.Explanation) -> frozenset[int] | None:
    """Return the seeds of both; None if those of one are unknown."""
    seeds, second_seeds = getattr(first, "seeds", None), getattr(second, "seeds", None)
    return None if seeds is None or second_seeds is None else seeds | second_seeds


def _errors_of_sum_cancel(first: shap.Explanation, second: shap.Explanation) -> bool:
    """Return whether the errors of the rows of a sum are known to be independent with mean 0.

    With shared draws, the second operand may have the rows in another order, and standard errors
    are only upper bounds. One row that is added to all rows has the same error in all of them.
    """
    return (
        first.shape == second.shape
        and first.errors_cancel
        and getattr(second, "errors_cancel", False)
        and have_independent_draws(first, second)
    )


def have_independent_draws(first: shap.Explanation, second: shap.Explanation) -> bool:
    """Return whether two explanations are known, by their seeds, to have independent draws."""
    seeds, second_seeds = getattr(first, "seeds", None), getattr(second, "seeds", None)
    return seeds is not None and second_seeds is not None and seeds.isdisjoint(second_seeds)


def _half_widths(explanation: shap.Explanation) -> list[Any]:
    """Return the distances of the values from the lower and from the upper bounds."""
    lower, upper = _as_values(explanation.lower_bounds), _as_values(explanation.upper_bounds)
    values = explanation.values
    return [_as_values(_by_row(np.subtract, *pair)) for pair in ((values, lower), (upper, values))]


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
