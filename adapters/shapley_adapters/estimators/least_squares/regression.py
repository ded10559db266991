"""Shapley values as the solution of a weighted regression (KernelSHAP)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.special

from ...arguments import checked_choice, checked_flag
from ...array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ...coalitions.sizes import (
    SIZE_DISTRIBUTIONS,
    capped_shares,
    distinct_subsets,
    kernel_mass,
    random_subsets,
    randomly_rounded,
    size_probabilities,
)
from ...coalitions.tables import pack, select_units, units_within
from ..linear_algebra import ConstrainedFit, fit_with_fixed_sum
from ..protocol import Design, DesignRequest, Estimator, Solution


@dataclass(frozen=True)
class LeastSquaresDesign(Design):
    """The equations of the regression.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions, shared by all rows.
    positions : array, (n, S)
        Where the coalition of each equation, and its complement where S is 2, stand in the table.
    members : array, (n, M)
        The coalition of each equation.
    weights : array, (n,)
        Weight of each equation; of a drawn one, times the number of draws.
    is_drawn : array, (n,)
        Which equations were drawn at random; the others come first and are there in any case.
    stratum_sizes : array, (n,)
        Among how many an equation was drawn without replacement; infinite where with.
    """

    positions: IntArray
    members: CoalitionArray
    weights: FloatArray
    is_drawn: BoolArray
    stratum_sizes: FloatArray

    def within(self, n_coalitions: int) -> LeastSquaresDesign:
        """Return the equations that the first coalitions of the table serve."""
        n = int(units_within(self.positions[None], n_coalitions)[0])
        return LeastSquaresDesign(
            self.table.first(n_coalitions),
            self.positions[:n],
            self.members[:n],
            self.weights[:n],
            self.is_drawn[:n],
            self.stratum_sizes[:n],
        )

    @property
    def is_paired(self) -> bool:
        """Whether each coalition comes with its complement."""
        return bool(self.positions.shape[1] == 2)

    @cached_property
    def fit(self) -> ConstrainedFit:
        """The regression, prepared."""
        n_drawn = max(int(self.is_drawn.sum()), 1)
        weights = np.where(self.is_drawn, self.weights / n_drawn, self.weights)
        # Of a pair only the odd part of the game depends on the attributions: with the sum
        # fixed, (v(S) − v(N∖S)) / 2 = Σ φ_i (1[i ∈ S] − 1/2).
        regressors = self.members.astype(np.float64) - (0.5 if self.is_paired else 0.0)
        return fit_with_fixed_sum(regressors, weights)

    @cached_property
    def unseen(self) -> FloatArray:
        """Which part of its stratum an equation's draws have left out, (n_drawn,)."""
        sizes = self.stratum_sizes[self.is_drawn]
        # Strata differ in their sizes of coalitions, and so do these numbers.
        of_size = self.members[self.is_drawn].sum(axis=1)
        n_players = self.members.shape[1]
        stratum = np.minimum(of_size, n_players - of_size) if self.is_paired else of_size
        unseen: FloatArray = 1 - np.bincount(stratum)[stratum] / sizes
        return unseen


@dataclass(frozen=True)
class LeastSquares(Estimator[LeastSquaresDesign]):
    """Regression of the values on who is present, weighted by the Shapley kernel.

    Sizes of which so many coalitions would be drawn that all of them can be taken are taken whole,
    from the smallest and largest sizes inwards, and the rest is drawn. Efficiency holds exactly.
    Consistent; the bias vanishes with the inverse of the budget.

    Parameters
    ----------
    paired : bool
        Take each coalition together with its complement; quadratic games are exact then.
    sizes : {"kernel", "leverage"}
        How the sizes of drawn coalitions are distributed.
    replacement : bool
        Draw with replacement, or take so many different coalitions of each size as would be
        expected of the draws, weighted by the inverse of their chance to be taken.
    """

    paired: bool = True
    sizes: str = "kernel"
    replacement: bool = True

    def __post_init__(self) -> None:
        checked_flag("paired", self.paired)
        checked_choice("sizes", self.sizes, SIZE_DISTRIBUTIONS)
        checked_flag("replacement", self.replacement)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return what single players, their complements and the end points cost.

        Errors need two draws on top.
        """
        n_drawn = 2 * (2 if self.paired else 1) if with_errors else 0
        return 2 * n_players + 2 + n_drawn

    def memory(self, n_players: int, budget: int) -> int:
        """Return what the coalitions take, of which more are drawn than the budget pays for."""
        return 26 * budget * n_players

    def design(self, request: DesignRequest) -> LeastSquaresDesign:
        """Choose sizes to take whole and draw the rest."""
        n_players = request.n_players
        unit_size = 2 if self.paired else 1
        n_planned = (request.planned - 2) // unit_size
        plan = _plan_sizes(n_players, self.sizes, n_planned, self.paired)
        whole = _whole_sizes(n_players, plan.n_whole, self.paired)
        n_wanted = (request.budget - 2) // unit_size - len(whole)
        draw = self._with_replacement if self.replacement else self._without_replacement
        drawn = draw(plan, n_wanted, request.rng)
        first = np.concatenate([whole, drawn.members])
        units = np.stack([first, ~first], axis=1) if self.paired else first[:, None]
        selection = select_units(request.known, pack(units)[None], request.budget)
        n = selection.n_units[0]
        whole_sizes = whole.sum(axis=1)
        whole_weights = unit_size * (plan.mass / plan.counts)[whole_sizes - 1]
        return LeastSquaresDesign(
            table=selection.table,
            positions=selection.positions[0, :n],
            members=first[:n],
            weights=np.concatenate([whole_weights, drawn.weights])[:n],
            is_drawn=np.arange(n) >= len(whole),
            stratum_sizes=np.concatenate([np.full(len(whole), np.inf), drawn.stratum_sizes])[:n],
        )

    def _with_replacement(self, plan: _SizePlan, n_wanted: int, rng: np.random.Generator) -> _Drawn:
        # Duplicates are free, so offer more draws than the budget pays for at full price.
        n_offered = 4 * n_wanted if plan.drawn_sizes.size else 0
        probabilities = plan.probability[plan.drawn_sizes - 1]
        sizes = rng.choice(plan.drawn_sizes, size=n_offered, p=probabilities)
        members = random_subsets(sizes, plan.n_players, rng)
        weights = plan.mass[sizes - 1] / plan.probability[sizes - 1]
        return _Drawn(members, weights, np.full(n_offered, np.inf))

    def _without_replacement(
        self, plan: _SizePlan, n_wanted: int, rng: np.random.Generator
    ) -> _Drawn:
        """Draw different coalitions of each size, or pair of sizes, in random order."""
        n_players = plan.n_players
        strata = [
            sorted({size, n_players - size}) if self.paired else [size]
            for size in plan.drawn_sizes
            if not self.paired or 2 * size <= n_players
        ]
        places = [np.array(sizes) - 1 for sizes in strata]
        n_units = np.array([plan.counts[p].sum() / (2 if self.paired else 1) for p in places])
        if n_wanted == 0 or not strata:
            nothing = np.zeros(0)
            return _Drawn(np.zeros((0, n_players), dtype=bool), nothing, nothing)
        probability = np.array([plan.probability[p].sum() for p in places])
        expected = capped_shares(probability, n_units, n_wanted)
        counts = randomly_rounded(expected, rng)
        members = [
            distinct_subsets(int(count), size, n_players, self.paired, rng)
            for (size, *_), count in zip(strata, counts, strict=True)
        ]
        weights = [plan.mass[p].sum() for p in places] / expected * expected.sum()
        order = rng.permutation(int(counts.sum()))
        return _Drawn(
            np.concatenate(members)[order],
            np.repeat(weights, counts)[order],
            np.repeat(n_units, counts)[order],
        )

    def solve(self, design: LeastSquaresDesign, values: ValueArray) -> Solution:
        """Solve the regression; errors by the sandwich of the drawn equations' residuals."""
        empty, grand = values[:, :1], values[:, 1:2]
        if design.is_paired:
            first, second = values[:, design.positions[:, 0]], values[:, design.positions[:, 1]]
            targets = (first - second) / 2
        else:
            targets = values[:, design.positions[:, 0]] - empty
        attributions = design.fit.coefficients(targets, (grand - empty)[:, 0])
        n_drawn = int(design.is_drawn.sum())
        return Solution(attributions, _standard_errors(design, targets, attributions), n_drawn - 1)


def _standard_errors(
    design: LeastSquaresDesign, targets: FloatArray, attributions: FloatArray
) -> FloatArray:
    """Return the standard errors that the draws leave, (R, M, K).

    Each drawn equation moves the solution by its influence. The draws are independent, so the
    variance of their sum is estimated by their spread. Dividing a residual by one minus its
    leverage makes up for the part of it that the fit has absorbed. What is drawn without
    replacement errs only by what it has left out.
    """
    n_drawn = int(design.is_drawn.sum())
    if n_drawn < 2:
        return np.full_like(attributions, np.nan)
    residuals = design.fit.residuals(targets, attributions)[:, design.is_drawn]
    slack = np.maximum(1 - design.fit.leverages[design.is_drawn], 1e-12)
    residuals = residuals / slack[:, None]
    influence = design.fit.operator[:, design.is_drawn] * np.sqrt(design.unseen)
    total = influence @ residuals
    squares = influence**2 @ residuals**2
    variances = (squares - total**2 / n_drawn) * n_drawn / (n_drawn - 1)
    return np.sqrt(np.maximum(variances, 0.0))


@dataclass(frozen=True)
class _Drawn:
    """Drawn coalitions, their weights times the number of draws, and the sizes of their strata."""

    members: CoalitionArray
    weights: FloatArray
    stratum_sizes: FloatArray


@dataclass(frozen=True)
class _SizePlan:
    """Which sizes are taken whole, and how the others are drawn and weighted.

    `mass` and `counts` are the kernel weight of each size 1, …, M − 1 and its number of
    coalitions; `probability` is the probability that a draw has this size (0 for sizes taken
    whole); `drawn_sizes` are the sizes with a positive one.
    """

    n_players: int
    n_whole: int
    mass: FloatArray
    counts: FloatArray
    probability: FloatArray
    drawn_sizes: IntArray


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
    drawn_sizes = np.flatnonzero(probability) + 1
    mass = kernel_mass(n_players)
    return _SizePlan(n_players, n_whole, mass, counts, probability, drawn_sizes)


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
