"""How many rows, and how many evaluations for each of them.

The mean over R rows with n evaluations each has the variance (B + W(n)) / R + C(n) and costs R n
evaluations. For W(n) = w / n and C = 0, the cheapest choice is n = √(w / B), the optimum of
sampling in two stages, whatever R is. Here W and C fall like a power of n that is fitted to a pilot
sample, and n is chosen from a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..array_types import FloatArray
from .error_parts import ErrorParts

_EXPONENTS = (0.5, 6.0)
"""Bounds of the power of n with which the error of a row falls, because pilots are small."""

_KNOWN = 2
"""Evaluations of a row that are not drawn: without any player, and with all of them."""


@dataclass(frozen=True)
class VarianceModel:
    """The variance of the mean, as a function of rows and evaluations per row.

    Attributes
    ----------
    between, within, constant : arrays, (M, K)
        B, and W and C at `budget`.
    budget : int
        The evaluations per row at which `within` and `constant` were estimated.
    exponent : float
        The power of n with which they fall.
    n_all : int
        The number of coalitions, 2^M, at which they are 0.
    """

    between: FloatArray
    within: FloatArray
    constant: FloatArray
    budget: int
    exponent: float
    n_all: float

    def parts(self, budget: int) -> tuple[FloatArray, FloatArray]:
        """Return B + W(n) and C(n)."""
        if budget >= self.n_all:
            return self.between, np.zeros_like(self.constant)
        factor = ((self.budget - _KNOWN) / (budget - _KNOWN)) ** self.exponent
        return self.between + factor * self.within, factor * self.constant

    def rows_needed(self, budget: int, allowed: FloatArray) -> float:
        """Return the rows for a variance of at most `allowed`, (K,); infinite if no number does."""
        of_rows, constant = self.parts(budget)
        room = allowed - constant
        if (room <= 0).any():
            is_out = (room <= 0) & (of_rows + constant > 0)
            if is_out.any():
                return np.inf
            room = np.where(room <= 0, 1.0, room)
        return float((of_rows / room).max())


def variance_model(parts: Sequence[tuple[int, ErrorParts]], n_all: float) -> VarianceModel:
    """Return the model that fits samples with different budgets, the largest budget last."""
    budget, last = parts[-1]
    weights = np.array([of_budget.n_rows - 1 for _, of_budget in parts], dtype=np.float64)
    known = [of_budget.between for _, of_budget in parts]
    if not np.isnan(last.within).any():  # those without errors include the errors
        is_known = np.array([not np.isnan(of_budget.within).any() for _, of_budget in parts])
        weights *= is_known
    between = np.average(known, axis=0, weights=weights)
    return VarianceModel(
        between=between,
        within=np.nan_to_num(last.within),
        constant=last.constant,
        budget=budget,
        exponent=_exponent(parts),
        n_all=n_all,
    )


def _exponent(parts: Sequence[tuple[int, ErrorParts]]) -> float:
    """Return the power with which errors fall from the first budget to the last; 1 if unknown."""
    (first_budget, first), (last_budget, last) = parts[0], parts[-1]
    before = float((first.within + first.constant).sum())
    after = float((last.within + last.constant).sum())
    if first_budget == last_budget or not (before > 0 and after > 0):  # or NaN
        return 1.0
    steps = np.log((last_budget - _KNOWN) / max(first_budget - _KNOWN, 1))
    return float(np.clip(np.log(before / after) / steps, *_EXPONENTS))


@dataclass(frozen=True)
class Allocation:
    """Evaluations per row, and the number of rows; infinite if no number suffices."""

    budget: int
    n_rows: float


def for_tolerance(
    model: VarianceModel, budgets: Sequence[int], allowed: FloatArray, most_rows: float
) -> Allocation:
    """Return the cheapest allocation with a variance of at most `allowed`.

    If none with at most `most_rows` rows reaches it, the one with the smallest variance.
    """
    choices = [Allocation(budget, model.rows_needed(budget, allowed)) for budget in budgets]
    possible = [choice for choice in choices if choice.n_rows <= most_rows]
    if possible:
        return min(possible, key=lambda choice: choice.budget * max(choice.n_rows, 2))
    return min(choices, key=lambda choice: choice.n_rows)


def for_total(
    model: VarianceModel, budgets: Sequence[int], total: int, n_before: int, most_rows: int
) -> Allocation:
    """Return the allocation of `total` evaluations with the smallest sum of variances.

    Parameters
    ----------
    model : VarianceModel
        The variances.
    budgets : sequence of int
        Evaluations per row to choose from.
    total : int
        The evaluations for further rows.
    n_before : int
        The rows that there are already.
    most_rows : int
        The largest number of further rows.
    """

    def variance(budget: int) -> float:
        of_rows, constant = model.parts(budget)
        n_rows = n_before + min(total // budget, most_rows)
        return float((of_rows / max(n_rows, 1) + constant).sum())

    affordable = [budget for budget in budgets if budget <= total] or [budgets[0]]
    budget = min(affordable, key=variance)
    return Allocation(budget, min(total // budget, most_rows))


def budget_choices(least: int, largest: int, n_all: float) -> list[int]:
    """Return budgets from the least to the largest, each about a quarter larger."""
    budgets, budget = [], float(least)
    while budget <= largest:
        budgets.append(int(np.ceil(budget / 2) * 2))  # pairs
        budget *= 1.25
    budgets = [budget for budget in budgets if budget < n_all]
    if n_all <= largest:
        budgets.append(int(n_all))
    return budgets or [least]
