"""The explainers that an aggregate combines: names, shares of the budget, what they spent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..array_types import FloatArray, IntArray
from ..errors import BudgetError


def name_of(explainer: Any) -> str:
    """Return the name of an explainer, a method or a function, for messages."""
    name: str = getattr(explainer, "__name__", type(explainer).__name__)
    return name


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function; none for builtins without a signature."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def share_of_budget(name: str, budget: int, n_shares: int, sharers: str, way_out: str = "") -> int:
    """Return the budget of each explainer when `n_shares` of them share `budget` equally.

    Parameters
    ----------
    name : str
        The host's name of the budget.
    budget, n_shares : int
        The budget, and the number of shares.
    sharers : str
        The host's word for explainers.
    way_out : str
        Another remedy, for the message.

    Raises
    ------
    BudgetError
        If a share is less than one evaluation.
    """
    if n_shares > budget:
        raise BudgetError(
            f"{name}={budget} must be shared by {n_shares} {sharers}; pass at least "
            f"{n_shares}{way_out}."
        )
    return budget // max(1, n_shares)


class RowCache:
    """Arrays with one entry for each row of the data that was needed so far.

    Parameters
    ----------
    n_rows : int
        D, the number of rows of the data.
    """

    def __init__(self, n_rows: int) -> None:
        self._positions = np.full(n_rows, -1)  # position of each data row in the arrays
        self._arrays: tuple[FloatArray | None, ...] = ()

    def fill(
        self, rows: IntArray, compute: Callable[[IntArray], tuple[FloatArray | None, ...]]
    ) -> None:
        """Compute the arrays of those rows that are not in the cache.

        Parameters
        ----------
        rows : array of any shape
            Indices of rows of the data.
        compute : callable
            Takes the indices of new rows, in increasing order, and returns arrays with one entry
            per row, or None for an array that cannot be computed for any row.
        """
        needed = np.unique(rows)
        new_rows = needed[self._positions[needed] < 0]
        if len(new_rows) == 0:
            return
        arrays = compute(new_rows)
        n_cached = int((self._positions >= 0).sum())
        if n_cached:
            pairs = zip(self._arrays, arrays, strict=True)
            arrays = tuple(None if a is None else np.concatenate([a, b]) for a, b in pairs)
        self._arrays = arrays
        self._positions[new_rows] = n_cached + np.arange(len(new_rows))

    def at(self, rows: IntArray) -> tuple[Any, ...]:
        """Return the arrays of the given rows, each with the shape (*rows.shape, …)."""
        positions = self._positions[rows]
        return tuple(None if array is None else array[positions] for array in self._arrays)


@dataclass(frozen=True)
class SpentEvaluations:
    """The evaluations of the members of an aggregate in one call, all rows together.

    An evaluation is that of one coalition of one row. Members of other packages are not counted.

    Attributes
    ----------
    counted : tuple of (str, int)
        The name of each member that counts, and its evaluations.
    not_counted : tuple of str
        The names of the others.
    """

    counted: tuple[tuple[str, int], ...]
    not_counted: tuple[str, ...]

    @classmethod
    def from_members(cls, members: Iterable[tuple[str, int | None]]) -> SpentEvaluations:
        """Return the counts of named members; None for those that do not count."""
        named = list(members)
        return cls(
            tuple((name, count) for name, count in named if count is not None),
            tuple(name for name, count in named if count is None),
        )

    @property
    def total(self) -> int:
        """The evaluations of the members that count."""
        return sum(count for _, count in self.counted)

    def __str__(self) -> str:
        """Return the counts, and who does not count."""
        parts = [f"{name}: {count:,}" for name, count in self.counted]
        if self.not_counted:
            parts.append(f"not counted: {', '.join(self.not_counted)}")
        return "; ".join(parts)


def latest_evaluations(explainer: Any) -> int | None:
    """Return the evaluations of an explainer's latest call; None if it does not count them."""
    spent = getattr(explainer, "last_evaluations", None)
    if isinstance(spent, SpentEvaluations):
        return None if spent.not_counted else spent.total
    counts = getattr(getattr(explainer, "last_estimate", None), "evaluations", None)
    return None if counts is None else int(counts.sum())
