"""Shapley values as the solution of a weighted regression (KernelSHAP)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.special

from ...arguments import checked_choice, checked_flag
from ...array_types import (
    AttributionArray,
    BoolArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ValueArray,
)
from ...coalitions.tables import (
    SIZE_DISTRIBUTIONS,
    capped_shares,
    distinct_subsets,
    kernel_mass,
    pack,
    random_subsets,
    randomly_rounded,
    select_units,
    size_probabilities,
    units_within,
)
from ...errors import InvalidArgumentError
from ...interactions.result import InteractionRequest, SetSolution
from ..linear_algebra import ConstrainedFit, RidgeFit, fit_with_fixed_sum
from ..order_designs import OrdersDesign, draw_orders, solve_orders, solve_orders_with_errors
from ..pair_folds import KernelDraws
from ..protocol import Declaration, Design, DesignRequest, Estimator, Operations, Solution
from ..value_errors import ValueErrors, pooled_variances
from .pair_regression import PairFit, pair_budget, pair_memory, pair_targets

_MANY_DRAWS = 3
"""With more drawn equations for each player than this, no ridge is needed: only few drawn equations
let a regression follow their noise."""

_MANY_PLAYERS = 30
"""With more players than this, single players come first only where draws would cover them.

Measured at 2 to 8 evaluations per player on sparse, dense, additive and saturating games, texts,
votes and networks: orders have .1 to 1.5 times the error with 120 players, .65 times in the
geometric mean; .9 times with 30 players, and 1.3 times with 11."""


@dataclass(frozen=True)
class LeastSquaresDesign(Design):
    """The equations of the regression.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions, shared by all rows.
    positions : array, (n, S)
        Indices into the table: the coalition of each equation, and its complement if S is 2.
    members : array, (n, M)
        The coalition of each equation.
    weights : array, (n,)
        Weight of each equation; for a drawn one, multiplied by the number of draws.
    is_drawn : array, (n,)
        Whether the equation was drawn at random. The others are always included, and come first.
    stratum_sizes : array, (n,)
        The number of coalitions among which an equation was drawn without replacement; infinite
        for draws with replacement.
    is_paired : bool
        Whether each coalition is evaluated with its complement.
    """

    positions: IntArray
    members: CoalitionArray
    weights: FloatArray
    is_drawn: BoolArray
    stratum_sizes: FloatArray
    is_paired: bool

    def within(self, n_coalitions: int) -> LeastSquaresDesign:
        """Return the equations whose coalitions are among the first of the table."""
        n = int(units_within(self.positions[None], n_coalitions)[0])
        return LeastSquaresDesign(
            self.table.first(n_coalitions),
            self.positions[:n],
            self.members[:n],
            self.weights[:n],
            self.is_drawn[:n],
            self.stratum_sizes[:n],
            self.is_paired,
        )

    @property
    def fewest_coalitions(self) -> int:
        """Those of single players, their complements and two draws."""
        return int(2 * (1 + self.members.shape[1] + self.positions.shape[1]))

    @cached_property
    def fit(self) -> ConstrainedFit:
        """The regression without its targets."""
        # A pair contributes only the difference of its values, because the sum of the
        # attributions is fixed: (v(S) − v(N∖S)) / 2 = Σ φ_i (1[i ∈ S] − 1/2).
        regressors = self.members.astype(np.float64) - (0.5 if self.is_paired else 0.0)
        return fit_with_fixed_sum(regressors, self._weights)

    @cached_property
    def fit_without_draws(self) -> ConstrainedFit:
        """The regression on the equations that are always included."""
        fixed = ~self.is_drawn
        return fit_with_fixed_sum(self.fit.design[fixed], self._weights[fixed])

    @cached_property
    def ridge(self) -> RidgeFit:
        """The ridge regressions around `fit_without_draws`."""
        return RidgeFit.from_equations(self.fit.design, self._weights, self.is_drawn)

    @cached_property
    def pair_fit(self) -> PairFit:
        """The regression of the pairs without its targets."""
        return PairFit.from_members(self.members, self._weights)

    @property
    def _weights(self) -> FloatArray:
        """The weights of the equations, those of the drawn ones divided by their number."""
        n_drawn = max(int(self.is_drawn.sum()), 1)
        return np.where(self.is_drawn, self.weights / n_drawn, self.weights)


def least_squares(
    paired: bool = True, sizes: str = "kernel", replacement: bool = True, unbiased: bool = False
) -> LeastSquares | UnbiasedLeastSquares:
    """Shapley values as the solution of a weighted regression (KernelSHAP).

    Attributions sum exactly to the difference of the outputs with all features and with none. By
    default the estimator is consistent, with a bias in proportion to 1 / budget. `unbiased=True`
    has no bias but a larger variance. The counterpart of shap's kernel explainer and of captum's
    `KernelShap`, for all rows at once, with pairs and standard errors. Needs at least 4
    evaluations. Few evaluations are spent on random orders, and the regression is on differences of
    successive outputs: below 2 M + 2 or, with more than 30 features, until draws of coalitions
    would cover the single features, at 8 to 15 evaluations per feature.

    Parameters
    ----------
    paired : bool
        Whether each coalition is evaluated with its complement; quadratic models are then exact.
    sizes : {"kernel", "leverage"}
        The distribution of coalition sizes: the Shapley kernel, or leverage scores, which are
        uniform over sizes.
    replacement : bool
        Whether coalitions are drawn with replacement. If not, each is drawn at most once, with
        weights that account for this.
    unbiased : bool
        Whether to solve with the exact matrix (Covert and Lee, Improving KernelSHAP, AISTATS 2021)
        instead of the matrix of the draws.

    Raises
    ------
    InvalidArgumentError
        If the unbiased form is combined with other sizes or draws without replacement.
    """
    regression = LeastSquares(paired, sizes, replacement)
    if not checked_flag("unbiased", unbiased):
        return regression
    if sizes != "kernel" or not replacement:
        raise InvalidArgumentError(
            "unbiased=True draws independently by the Shapley kernel; leave sizes='kernel' and "
            f"replacement=True. Got sizes={sizes!r}, replacement={replacement!r}."
        )
    return UnbiasedLeastSquares(paired)


@dataclass(frozen=True)
class LeastSquares(Estimator[LeastSquaresDesign | OrdersDesign]):
    """The regression on the draws; `least_squares` describes its options.

    Coalition sizes are enumerated if the expected draws would cover all their coalitions, from the
    smallest and largest sizes inwards. Coalitions of the other sizes are drawn. Efficiency holds
    exactly. The estimate is consistent; its bias is proportional to the inverse of the budget.

    Few values of drawn coalitions do not determine the attributions of many players, and about as
    many values as players determine them badly. So a small budget is spent on random orders. The
    errors of similar coalitions are much alike. The equations are therefore differences of
    successive values, with weights 1 / number of players between them. Their solution is the mean
    over orders, and the last order has blocks of players if the budget does not pay for all of it.
    The solution is linear in the game and, from one order on, exact for additive games; with less
    than an order it is biased towards the equal split. A budget is small if it does not pay for all
    single players or, with more than 30 players, if draws by the kernel would not cover them.
    `sizes` and `replacement` then do not matter.

    Without replacement, as many distinct coalitions of each size are drawn as the expected number
    of draws with replacement, weighted by the inverse of their inclusion probability.
    """

    declaration: ClassVar[Declaration | None] = Declaration("least squares", made_by=least_squares)

    paired: bool = True
    sizes: str = "kernel"
    replacement: bool = True

    def __post_init__(self) -> None:
        checked_flag("paired", self.paired)
        checked_choice("sizes", self.sizes, SIZE_DISTRIBUTIONS)
        checked_flag("replacement", self.replacement)

    has_orders_for_few_rows: ClassVar[bool] = True

    def has_interactions(self, request: InteractionRequest) -> bool:
        """Return whether they are Shapley interactions of pairs."""
        return request.are_pairs and request.name in ("SII", "k-SII")

    def interaction_budget(self, n_players: int) -> int:
        """Return the evaluations that determine the interactions of all pairs."""
        return pair_budget(n_players, self.paired)

    def interaction_memory(self, n_players: int, budget: int, request: InteractionRequest) -> int:
        """Return the bytes of the regression on all pairs."""
        del request
        return pair_memory(n_players, budget // 2 if self.paired else budget)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return that of random orders; see `RandomOrder`."""
        if with_errors:
            return 6 if self.paired else 2 * n_players
        return 4 if self.paired else 3

    def useful_budget(self, n_players: int) -> int:
        """Return the cost of one order of all players."""
        return (n_players - 1) * (2 if self.paired else 1) + 2

    def first_check(self, n_players: int) -> int:
        """Return four times the cost of single players, their complements and two draws."""
        return 4 * (2 * n_players + (6 if self.paired else 4))

    def memory(self, n_players: int, budget: int) -> int:
        """Return the memory of the coalitions, of which more are drawn than evaluated."""
        return 26 * budget * n_players

    def operations(self, n_players: int, budget: int, n_outputs: int = 1) -> Operations:
        """Return those of the matrix of the regression, its factor, and the influences."""
        work = super().operations(n_players, budget, n_outputs)
        if self._has_few(n_players, budget):
            return work
        n_equations = budget / (2 if self.paired else 1)
        return replace(work, once=work.once + 3.0 * n_equations * n_players**2 + n_players**3)

    def _has_few(self, n_players: int, budget: int, needs_errors: bool = False) -> bool:
        """Return whether a budget pays for orders only."""
        n_drawn = 2 * (2 if self.paired else 1) if needs_errors else 0
        least: float = 2 * n_players + 2 + n_drawn
        if n_players > _MANY_PLAYERS:
            kernel = kernel_mass(n_players)
            least = max(least, 2 + 2 * n_players / (kernel[0] + kernel[-1]))
        return budget < least

    def design(self, request: DesignRequest) -> LeastSquaresDesign | OrdersDesign:
        """Enumerate some sizes, and draw coalitions of the other sizes; or draw orders."""
        if self._has_few(request.n_players, request.budget, request.needs_errors):
            return draw_orders(request, self.paired)
        unit_size, rng = 2 if self.paired else 1, request.rng
        n_planned = (request.planned - 2) // unit_size
        plan = _plan_sizes(request.n_players, self.sizes, n_planned, self.paired)
        enumerated = plan.enumerated
        n_draws = (request.budget - 2) // unit_size - len(enumerated)
        if self.replacement:
            # Duplicates are free, so offer more draws than the budget covers without duplicates.
            n_offered = 4 * n_draws if plan.drawn_sizes.size else 0
            probabilities = plan.probability[plan.drawn_sizes - 1]
            sizes = rng.choice(plan.drawn_sizes, size=n_offered, p=probabilities)
            weights = plan.mass[sizes - 1] / plan.probability[sizes - 1]
            members = random_subsets(sizes, plan.n_players, rng)
            draws = _Draws(members, weights, np.full(n_offered, np.inf))
        else:
            draws = self._without_replacement(plan, n_draws, rng)
        first = np.concatenate([enumerated, draws.members])
        units = np.stack([first, ~first], axis=1) if self.paired else first[:, None]
        selection = select_units(request.known, pack(units)[None], request.budget)
        n = selection.n_units[0]
        enumerated_sizes = enumerated.sum(axis=1)
        enumerated_weights = unit_size * (plan.mass / plan.counts)[enumerated_sizes - 1]
        no_strata = np.full(len(enumerated), np.inf)
        return LeastSquaresDesign(
            table=selection.table,
            positions=selection.positions[0, :n],
            members=first[:n],
            weights=np.concatenate([enumerated_weights, draws.weights])[:n],
            is_drawn=np.arange(n) >= len(enumerated),
            stratum_sizes=np.concatenate([no_strata, draws.stratum_sizes])[:n],
            is_paired=self.paired,
        )

    def _without_replacement(
        self, plan: _SizePlan, n_draws: int, rng: np.random.Generator
    ) -> _Draws:
        """Draw different coalitions of each size, or pair of sizes, in random order."""
        n_players = plan.n_players
        strata = [
            sorted({size, n_players - size}) if self.paired else [size]
            for size in plan.drawn_sizes
            if not self.paired or 2 * size <= n_players
        ]
        indices = [np.array(sizes) - 1 for sizes in strata]
        with np.errstate(over="ignore"):  # infinite if too many for a float
            n_units = np.array([plan.counts[i].sum() / (2 if self.paired else 1) for i in indices])
        if n_draws == 0 or not strata:
            no_weights = np.zeros(0)
            return _Draws(np.zeros((0, n_players), dtype=bool), no_weights, no_weights)
        probability = np.array([plan.probability[i].sum() for i in indices])
        expected = capped_shares(probability, n_units, n_draws)
        counts = randomly_rounded(expected, rng)
        members = [
            distinct_subsets(int(count), size, n_players, self.paired, rng)
            for (size, *_), count in zip(strata, counts, strict=True)
        ]
        weights = [plan.mass[i].sum() for i in indices] / expected * expected.sum()
        order = rng.permutation(int(counts.sum()))
        return _Draws(
            np.concatenate(members)[order],
            np.repeat(weights, counts)[order],
            np.repeat(n_units, counts)[order],
        )

    def solve(self, design: LeastSquaresDesign | OrdersDesign, values: ValueArray) -> Solution:
        """Solve the regression; sandwich errors from the residuals of the drawn equations."""
        if isinstance(design, OrdersDesign):
            return solve_orders(design, values)
        empty, grand = values[:, :1], values[:, 1:2]
        if design.is_paired:
            first, second = (
                np.take(values, design.positions[:, index], axis=1) for index in (0, 1)
            )
            targets = (first - second) / 2
        else:
            targets = np.take(values, design.positions[:, 0], axis=1) - empty
        totals = (grand - empty)[:, 0]
        attributions = design.fit.coefficients(targets, totals)
        n_drawn = int(design.is_drawn.sum())
        residuals = targets - design.fit.design @ attributions
        errors = _standard_errors(design, design.fit, residuals)
        variances, freedom = pooled_variances(errors**2, n_drawn - 1.0)
        n_players = design.members.shape[1]
        if 0 < n_drawn <= _MANY_DRAWS * n_players and n_players > 1:
            # The errors stay those without a ridge, which are larger: a ridge has a bias.
            fixed = design.fit_without_draws
            attributions = fixed.coefficients(targets[:, ~design.is_drawn], totals)
            attributions += design.ridge.corrections(targets - design.fit.design @ attributions)
        return Solution(attributions, np.sqrt(variances), freedom)

    def solve_with_errors(
        self,
        design: LeastSquaresDesign | OrdersDesign,
        values: ValueArray,
        errors: ValueErrors,
    ) -> Solution:
        """Solve the regression; the errors of values add to those that the spread does not show.

        These are those of equations that are always included and, where a stratum is drawn without
        replacement, the share by which the variance of its draws is reduced.
        """
        if isinstance(design, OrdersDesign):
            return solve_orders_with_errors(design, values, errors)
        solution = super().solve_with_errors(design, values, errors)
        hidden = np.ones(len(design.members))
        hidden[design.is_drawn] -= _undrawn(design)
        of_values = errors.odd if design.is_paired else errors.variances
        of_targets = np.take(of_values, design.positions[:, 0], axis=1)  # (R, n, K)
        added = (design.fit.operator**2 * hidden) @ of_targets
        return solution.with_variances(added)

    def interactions(
        self,
        design: LeastSquaresDesign | OrdersDesign,
        values: ValueArray,
        errors: AttributionArray,
        request: InteractionRequest,
        value_errors: ValueErrors | None = None,
    ) -> SetSolution:
        """Solve the regression of the pairs; sandwich errors as of the attributions.

        The main effects have the errors of the attributions, because the sums of the interactions
        of each player are known.
        """
        del request, value_errors  # there is one index, and the spread holds the errors
        if isinstance(design, OrdersDesign):
            raise InvalidArgumentError(
                "interactions need single players, and the design has random orders. Use a budget "
                "of interaction_budget at least."
            )
        attributions = self.solve(design, values).values
        targets, sums = pair_targets(design, values, attributions)
        fit = design.pair_fit
        interactions = fit.interactions(targets, sums)
        residuals = fit.residuals(targets, interactions)
        return SetSolution(interactions, _standard_errors(design, fit, residuals), errors)


def _standard_errors(
    design: LeastSquaresDesign, fit: ConstrainedFit | PairFit, residuals: FloatArray
) -> FloatArray:
    """Return the standard errors from the draws, (R, M, K), given the residuals of the fit.

    Each drawn equation changes the solution by its influence times its residual. The draws are
    independent, so the spread of these changes estimates the variance of their sum. Each residual
    is divided by one minus its leverage, because the fit reduces the residuals. For draws without
    replacement, the variance is multiplied by the share of the stratum that was not drawn.
    """
    n_drawn = int(design.is_drawn.sum())
    if n_drawn < 2:
        return np.full((len(residuals), len(fit.operator), residuals.shape[2]), np.nan)
    undrawn = _undrawn(design)
    residuals = np.compress(design.is_drawn, residuals, axis=1)
    slack = np.maximum(1 - fit.leverages[design.is_drawn], 1e-12)
    residuals = residuals / slack[:, None]
    influence = fit.operator[:, design.is_drawn] * np.sqrt(undrawn)
    total = influence @ residuals
    squares = influence**2 @ residuals**2
    variances = (squares - total**2 / n_drawn) * n_drawn / (n_drawn - 1)
    return np.sqrt(np.maximum(variances, 0.0))


def _undrawn(design: LeastSquaresDesign) -> FloatArray:
    """Return the share of its stratum that was not drawn, for each drawn equation."""
    # The size of its coalitions identifies the stratum of an equation.
    stratum = of_size = design.members[design.is_drawn].sum(axis=1)
    if design.is_paired:
        stratum = np.minimum(of_size, design.members.shape[1] - of_size)
    return 1 - np.bincount(stratum)[stratum] / design.stratum_sizes[design.is_drawn]


@dataclass(frozen=True)
class _Draws:
    """Drawn coalitions, their weights times the number of draws, and the sizes of their strata."""

    members: CoalitionArray
    weights: FloatArray
    stratum_sizes: FloatArray


@dataclass(frozen=True)
class _SizePlan:
    """The coalitions of enumerated sizes, and the distribution and weights of the other sizes.

    `enumerated` has one of each pair of complements, if these are evaluated together. `mass` and
    `counts` are the kernel weight of each size 1, …, M − 1 and its number of coalitions.
    `probability` is the probability that a draw has this size, 0 for enumerated sizes.
    `drawn_sizes` are the sizes with a positive probability.
    """

    n_players: int
    enumerated: CoalitionArray
    mass: FloatArray
    counts: FloatArray
    probability: FloatArray
    drawn_sizes: IntArray


def _plan_sizes(n_players: int, sizes: str, n_affordable: int, paired: bool) -> _SizePlan:
    """Enumerate sizes s and M − s as long as their expected draws would cover all coalitions.

    Single players and their complements are always included, so that the regression has a unique
    solution.
    """
    all_sizes = np.arange(1, n_players)
    counts = scipy.special.comb(n_players, all_sizes)
    probability = size_probabilities(n_players, sizes)
    n_free = n_affordable
    enumerated = [np.zeros((0, n_players), dtype=bool)]
    for size in range(1, n_players // 2 + 1):
        pair = np.unique([size, n_players - size]) - 1
        n_units = counts[pair].sum() / (2 if paired else 1)
        share = probability[pair].sum() / probability.sum()
        if n_units > n_free or (len(enumerated) > 1 and n_free * share < n_units):
            break
        n_free -= int(n_units)
        members = np.array(list(itertools.combinations(range(n_players), size)))
        of_size = np.zeros((len(members), n_players), dtype=bool)
        np.put_along_axis(of_size, members, True, axis=1)
        if 2 * size == n_players:  # the complements of these have the same size
            enumerated.append(of_size[of_size[:, 0]] if paired else of_size)
        else:
            enumerated += [of_size] if paired else [of_size, ~of_size]
        probability[pair] = 0.0
        if not probability.any():
            break
    total = probability.sum()
    probability = probability / total if total > 0 else probability
    drawn_sizes = np.flatnonzero(probability) + 1
    mass = kernel_mass(n_players)
    known = np.concatenate(enumerated)
    return _SizePlan(n_players, known, mass, counts, probability, drawn_sizes)


@dataclass(frozen=True)
class UnbiasedLeastSquares(KernelDraws):
    """Least squares with its matrix in expectation, Zhang et al., 2023, Eq. 30–32.

    Only the right-hand side E[1_S v(S)] is estimated, by the mean over draws; the matrix
    E[1_S 1_Sᵀ] is known. The estimate is unbiased and efficient. Its variance is larger than that
    of the regression on the draws, where the errors of matrix and right-hand side cancel in part.
    It equals the sim-semivalue for the same draws.

    Parameters
    ----------
    paired : bool
        Draw each coalition together with its complement.
    centred : bool
        Subtract from each value the straight line between v(∅) and v(N); see
        `CoalitionDraws.targets`.
    """

    def _coefficients(self, members: CoalitionArray) -> FloatArray:
        """Return them as solutions of the normal equations.

        The right-hand side of a draw is 1_S times its target; for a pair it is the mean of two
        right-hand sides. It is multiplied by A⁻¹ − A⁻¹ 1 1ᵀ A⁻¹ / (1ᵀ A⁻¹ 1) of Eq. 32, with
        A = E[1_S 1_Sᵀ], which maps it to the deviations from the equal split. Constants are mapped
        to 0, so the complement 1 − 1_S is mapped like −1_S, and the target of a pair is half the
        difference of its values.
        """
        # The distribution is symmetric in the players, and in S and N∖S. Therefore the diagonal of
        # A is 1/2, and all other entries are the probability that a draw contains two players.
        n_players = members.shape[1]
        sizes = np.arange(1, n_players)
        joint = kernel_mass(n_players) @ (sizes * (sizes - 1)) / (n_players * (n_players - 1))
        matrix = np.full((n_players, n_players), joint) + (0.5 - joint) * np.eye(n_players)
        inverse = np.linalg.inv(matrix)
        of_ones = inverse.sum(axis=1)
        return members @ (inverse - np.outer(of_ones, of_ones) / of_ones.sum())
