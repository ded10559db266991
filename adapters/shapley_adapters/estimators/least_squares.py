"""Shapley values as the solution of a weighted regression (KernelSHAP)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.special

from ..arguments import checked_choice, checked_flag
from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..coalition_sets import CoalitionTable, buy, pack
from ..constrained_regression import ConstrainedFit, fit_with_fixed_sum
from ..designs import DesignRequest, Solution
from ..size_distributions import (
    SIZE_DISTRIBUTIONS,
    kernel_mass,
    random_subsets,
    size_probabilities,
)


@dataclass(frozen=True)
class LeastSquaresDesign:
    """The equations of the regression.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions, shared by all rows.
    positions : array, (n, S)
        Where the coalition of each equation, and its complement where S is 2, stand in the table.
    fit : ConstrainedFit
        The regression, prepared.
    is_drawn : array, (n,)
        Which equations were drawn at random; the others are there in any case.
    """

    table: CoalitionTable
    positions: IntArray
    fit: ConstrainedFit
    is_drawn: BoolArray


@dataclass(frozen=True)
class LeastSquares:
    """Regression of the values on who is present, weighted by the Shapley kernel.

    Sizes of which so many coalitions would be drawn that all of them can be taken are taken whole,
    from the smallest and largest sizes inwards, and the rest is drawn with replacement. Efficiency
    holds exactly. Consistent; the bias vanishes with the inverse of the budget. With `paired`, a
    coalition comes with its complement, and quadratic games come out exactly.
    """

    paired: bool = True
    sizes: str = "kernel"

    def __post_init__(self) -> None:
        checked_flag("paired", self.paired)
        checked_choice("sizes", self.sizes, SIZE_DISTRIBUTIONS)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return what single players, their complements and the end points cost.

        Errors need two draws on top.
        """
        n_drawn = 2 * (2 if self.paired else 1) if with_errors else 0
        return 2 * n_players + 2 + n_drawn

    def design(self, request: DesignRequest) -> LeastSquaresDesign:
        """Choose sizes to take whole and draw the rest."""
        n_players = request.n_players
        unit_size = 2 if self.paired else 1
        n_affordable = (request.budget - 2) // unit_size
        plan = _plan_sizes(n_players, self.sizes, n_affordable, self.paired)
        whole = _whole_sizes(n_players, plan.n_whole, self.paired)
        # Duplicates are free, so offer more draws than the budget pays for at full price.
        n_offered = 4 * (n_affordable - len(whole)) if plan.draw_probabilities.size else 0
        drawn_sizes = request.rng.choice(
            plan.drawn_sizes, size=n_offered, p=plan.draw_probabilities
        )
        drawn = random_subsets(drawn_sizes, n_players, request.rng)
        first = np.concatenate([whole, drawn])
        units = np.stack([first, ~first], axis=1) if self.paired else first[:, None]
        purchase = buy(request.known, pack(units)[None], request.budget)
        n_units = purchase.n_units[0]
        n_drawn = n_units - len(whole)
        sizes = first[:n_units].sum(axis=1)
        is_drawn = np.arange(n_units) >= len(whole)
        # A drawn pair may have been drawn by either of its two, a whole pair stands there once.
        whole_weight = unit_size * plan.whole_weight(sizes)
        weights = np.where(is_drawn, plan.drawn_weight(sizes) / max(n_drawn, 1), whole_weight)
        # Of a pair only the odd part of the game depends on the attributions: with the sum
        # fixed, (v(S) − v(N∖S)) / 2 = Σ φ_i (1[i ∈ S] − 1/2).
        regressors = first[:n_units] - (0.5 if self.paired else 0.0)
        fit = fit_with_fixed_sum(regressors, weights)
        return LeastSquaresDesign(purchase.table, purchase.positions[0, :n_units], fit, is_drawn)

    def solve(self, design: LeastSquaresDesign, values: ValueArray) -> Solution:
        """Solve the regression; errors by the sandwich of the drawn equations' residuals."""
        empty, grand = values[:, :1], values[:, 1:2]
        if self.paired:
            first, second = values[:, design.positions[:, 0]], values[:, design.positions[:, 1]]
            targets = (first - second) / 2
        else:
            targets = values[:, design.positions[:, 0]] - empty
        attributions = design.fit.coefficients(targets, (grand - empty)[:, 0])
        return Solution(attributions, _standard_errors(design, targets, attributions))


def _standard_errors(
    design: LeastSquaresDesign, targets: FloatArray, attributions: FloatArray
) -> FloatArray:
    """Return the standard errors that the draws leave, (R, M, K).

    Each drawn equation moves the solution by its influence. The draws are independent, so the
    variance of their sum is estimated by their spread. Dividing a residual by one minus its
    leverage makes up for the part of it that the fit has absorbed.
    """
    n_drawn = int(design.is_drawn.sum())
    if n_drawn < 2:
        return np.full_like(attributions, np.nan)
    residuals = design.fit.residuals(targets, attributions)[:, design.is_drawn]
    slack = np.maximum(1 - design.fit.leverages[design.is_drawn], 1e-12)
    residuals = residuals / slack[:, None]
    influence = design.fit.operator[:, design.is_drawn]
    total = influence @ residuals
    squares = influence**2 @ residuals**2
    variances = (squares - total**2 / n_drawn) * n_drawn / (n_drawn - 1)
    return np.sqrt(np.maximum(variances, 0.0))


@dataclass(frozen=True)
class _SizePlan:
    """Which sizes are taken whole, and how the others are drawn and weighted.

    `mass` and `counts` are the kernel weight of each size 1, …, M − 1 and its number of
    coalitions; `probability` is how likely a draw has this size (0 for sizes taken whole).
    """

    n_whole: int
    mass: FloatArray
    counts: FloatArray
    probability: FloatArray

    @property
    def drawn_sizes(self) -> IntArray:
        return np.flatnonzero(self.probability) + 1

    @property
    def draw_probabilities(self) -> FloatArray:
        return self.probability[self.probability > 0]

    def whole_weight(self, sizes: IntArray) -> FloatArray:
        return self.mass[sizes - 1] / self.counts[sizes - 1]

    def drawn_weight(self, sizes: IntArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return (self.mass / self.probability)[sizes - 1]


def _plan_sizes(n_players: int, sizes: str, n_affordable: int, paired: bool) -> _SizePlan:
    """Take sizes s and M − s whole while the draws expected of them would cover them.

    Single players and their complements are always taken: they make the regression determined.
    """
    all_sizes = np.arange(1, n_players)
    counts = scipy.special.comb(n_players, all_sizes)
    probability = size_probabilities(n_players, sizes)
    n_left = n_affordable
    n_whole = 0
    for size in range(1, n_players // 2 + 1):
        pair = np.unique([size, n_players - size]) - 1
        n_units = counts[pair].sum() / (2 if paired else 1)
        share = probability[pair].sum() / probability.sum()
        if n_units > n_left or (n_whole > 0 and n_left * share < n_units):
            break
        n_left -= int(n_units)
        n_whole = size
        probability[pair] = 0.0
        if not probability.any():
            break
    total = probability.sum()
    probability = probability / total if total > 0 else probability
    return _SizePlan(n_whole, kernel_mass(n_players), counts, probability)


def _whole_sizes(n_players: int, n_whole: int, paired: bool) -> CoalitionArray:
    """Return all coalitions of the n_whole smallest sizes and, unless paired, the largest."""
    coalitions = [np.zeros((0, n_players), dtype=bool)]
    for size in range(1, n_whole + 1):
        members = np.array(list(itertools.combinations(range(n_players), size)))
        of_size = np.zeros((len(members), n_players), dtype=bool)
        np.put_along_axis(of_size, members, True, axis=1)
        if 2 * size == n_players:
            # Each of these is the complement of another one of them.
            of_size = of_size[of_size[:, 0]] if paired else of_size
            coalitions.append(of_size)
        else:
            coalitions.extend([of_size] if paired else [of_size, ~of_size])
    return np.concatenate(coalitions)
