"""SHEAR: enumerates each player's strongest cooperators and draws the others at random.

The variances of strata with few draws are shrunk, by Smyth, Linear Models and Empirical Bayes
Methods for Assessing Differential Expression in Microarray Experiments, 2004: the players'
variances are draws of one scaled inverse χ² distribution. Its scale and degrees of freedom are
estimated from the variances of all players.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, cast

import numpy as np
import scipy.sparse
import scipy.special

from ...arguments import checked_choice, checked_flag
from ...array_types import (
    BoolArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ScoreArray,
    ValueArray,
    WordArray,
)
from ...coalitions.tables import pack, select_units, units_within
from ...cooperators.choices import LEARNED, Cooperators, checked_cooperators
from ...errors import InvalidArgumentError
from ..protocol import Declaration, Design, DesignRequest, Estimator, Solution
from ..units import share_residual, shared_variances
from ..value_errors import ValueErrors, pooled_variances
from .residual_draws import UnitDraws

_MIN_PLAYERS = 3
"""Without this many players with known variances, no variance is shrunk."""

_MIN_EXCESS = 1e-6
"""Smallest variance of the logarithms beyond that of chance; below it, all players are alike."""

_STEPS = 8
"""Steps of Newton's method. Each doubles the digits, and seven reach all of them."""


COMPLEMENTS = ("posterior", "uniform", "none")

_ROUNDING = 4 * float(np.finfo(np.float32).eps)
"""Error of a contribution if the model computes in single precision, as a share of the row's
largest value. Values that are means over a background do not show the model's precision."""

_REPEATS_OF_SMALL, _REPEATS_OF_SMALL_LEARNED, _MOST_LEARNED_PLAYERS = 3, 12, 10
"""How many times the repeats within the budget are offered if there are few coalitions; and with
learned cooperators, up to so many players. That is enough to evaluate 960 of the 1,024 coalitions
of ten players. With more players, the pairs of all units need too much memory."""


def shrink_variances(
    variances: FloatArray, freedom: FloatArray, rounding: FloatArray | float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return the posterior means of the variances, and their degrees of freedom.

    Variances that consist of rounding errors, such as those of null players and of players without
    interactions, are returned unchanged, and the others do not depend on them.

    Parameters
    ----------
    variances : array, (R, M, K)
        Estimate for each player; NaN if there is none.
    freedom : array, (R, M, 1)
        Their degrees of freedom.
    rounding : array, (R, M, K), or float
        Upper bound of variances that consist of rounding errors.

    Returns
    -------
    arrays, (R, M, K) each
    """
    freedom = np.broadcast_to(freedom, variances.shape)
    is_known = variances > rounding
    n = is_known.sum(axis=1, keepdims=True)
    is_known &= n >= _MIN_PLAYERS
    n = np.maximum(n, _MIN_PLAYERS)
    half = np.where(is_known, freedom, 1.0) / 2
    logs = np.log(np.where(is_known, variances, 1.0)) - scipy.special.digamma(half) + np.log(half)

    def mean(numbers: FloatArray) -> FloatArray:
        return np.where(is_known, numbers, 0.0).sum(axis=1, keepdims=True) / n

    centre = mean(logs)
    scatter = mean((logs - centre) ** 2) * n / (n - 1)
    excess = scatter - mean(_trigamma(half))
    half_prior = _inverse_trigamma(np.maximum(excess, _MIN_EXCESS))
    prior_scale = np.exp(centre + scipy.special.digamma(half_prior) - np.log(half_prior))
    posterior_freedom = freedom + 2 * half_prior
    posterior = (2 * half_prior * prior_scale + freedom * variances) / posterior_freedom
    return np.where(is_known, posterior, variances), np.where(is_known, posterior_freedom, freedom)


def _trigamma(values: FloatArray) -> FloatArray:
    """Return the trigamma function; it is computed once for each distinct value."""
    distinct, indices = np.unique(values, return_inverse=True)
    of_distinct: FloatArray = scipy.special.polygamma(1, distinct)
    return of_distinct[indices].reshape(values.shape)


def _inverse_trigamma(values: FloatArray) -> FloatArray:
    """Return the arguments at which the trigamma function has `values` > 0: Newton's method."""
    x: FloatArray = 0.5 + 1 / values  # below the solution
    for _ in range(_STEPS):
        trigamma = scipy.special.polygamma(1, x)
        x = x + trigamma * (1 - trigamma / values) / scipy.special.polygamma(2, x)
    return x


@dataclass(frozen=True)
class ShearDesign(Design):
    """Pairs of marginal contributions, one pair per unit.

    A unit belongs to a player and to a stratum. A stratum is a subset of the player's cooperators
    together with the complementary subset. A unit has two contexts, one for each of these subsets;
    both contain random players beside it.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions of each row.
    positions : array, (R, U, 4)
        Indices of a unit's coalitions in the table: two contexts, without and with the player.
    strata : array, (U,)
        Stratum of each unit: player · P + subset.
    stratum_weights : array, (P,)
        Shapley weight of each pair of subsets in the game of the player and its cooperators.
    draws : array, (R, M · P)
        Number of units per stratum in each row.
    n_units : array, (R,)
        Number of units in each row: the first ones.
    shares : array, (R, M)
        The share of the efficiency residual that each player gets; 0 without this correction.
    cooperators : array, (R, M, K)
        The cooperators of each player.
    is_random : bool
        Whether the design contains random draws.
    """

    positions: IntArray
    strata: IntArray
    stratum_weights: FloatArray
    draws: IntArray
    n_units: IntArray
    shares: FloatArray
    cooperators: IntArray
    is_random: bool

    @property
    def fewest_coalitions(self) -> int:
        """Those of one draw of each stratum and a second draw for each player."""
        n_units = min(self.draws.shape[1] + self.shares.shape[1], self.positions.shape[1])
        return int(self.positions[:, :n_units].max()) + 1

    def within(self, n_coalitions: int) -> ShearDesign:
        """Return the units whose coalitions are among the first of each row."""
        n_units = np.minimum(self.n_units, units_within(self.positions, n_coalitions))
        max_units = int(n_units.max())
        n_strata = self.draws.shape[1]
        is_complete = np.arange(max_units) < n_units[:, None]
        return replace(
            self,
            table=self.table.first(n_coalitions),
            positions=np.where(is_complete[:, :, None], self.positions[:, :max_units], 0),
            strata=self.strata[:max_units],
            draws=_draws(self.strata[:max_units], n_units, n_strata),
            n_units=n_units,
        )

    def subset_rows(self, indices: IntArray) -> ShearDesign:
        """Return the design of some of the rows."""
        return replace(
            self,
            table=self.table.subset_rows(indices),
            positions=self.positions[indices],
            draws=self.draws[indices],
            n_units=self.n_units[indices],
            shares=self.shares[indices],
            cooperators=self.cooperators[indices],
        )

    def draws_of_row(self, row: int) -> UnitDraws:
        """Return the pairs of complements that the units of a row have evaluated."""
        n_units = self.n_units[row]
        players = self.strata[:n_units] // len(self.stratum_weights)
        coalitions, positions = self.table.coalitions[row], self.positions[row, :n_units]
        return UnitDraws.from_units(players, self.cooperators[row], coalitions, positions)


@dataclass(frozen=True)
class Shear(Estimator[ShearDesign]):
    """Shapley values from all coalitions of the features that interact most with each (SHEAR).

    With N evaluations per feature, all subsets of its log2(N / 2) strongest cooperators are
    evaluated (Wang et al., Accelerating Shapley Explanation via Contributive Cooperator Selection,
    ICML 2022, Eq. 12–14). All features share one budget: a coalition that several features need is
    evaluated once, and the saved evaluations are used for others. Unbiased with the default
    options, and efficient. Needs at least 4 M + 2 evaluations.

    Parameters
    ----------
    cooperators : {"auto", "hessian", "gradient", "difference", "random", "learned"} or array
        How the strongest cooperators are found. `"hessian"`: second derivatives (Eq. 11) of a torch
        module, 1 + M backward passes. `"gradient"`: differences of first derivatives, M + 1
        backward passes, suited to ReLU networks. `"difference"`: M + M (M − 1) / 2 evaluations, for
        any model. `"auto"`: the first of these that gives scores other than zero for the row;
        differences only if they cost at most half the budget, otherwise at random. `"learned"`: a
        regression learns the interactions from all values, for any model; the draws, of which each
        serves all features, estimate only what it leaves. The most accurate. An array, (M, M)
        or (R, M, M) for R rows, holds your scores. Backward passes are reported, and are not part
        of the budget.
    complement : {"posterior", "uniform", "none"}
        How the features that are not cooperators are drawn. `"posterior"`: if s of the K
        cooperators are present, each other feature is present with probability
        t ~ Beta(s + 1, K − s + 1), as in a random order, which is unbiased. `"uniform"`: each with
        probability 1/2, as in the authors' code. `"none"`: not at all (Eq. 13).
    antithetic : bool
        Whether complementary subsets of the cooperators get complementary draws (4.2).
    efficient : bool
        Whether attributions are made to sum to the difference of the outputs with all features and
        with none. The residual is shared in proportion to scores, which adds no bias.
    """

    declaration: ClassVar[Declaration | None] = Declaration("SHEAR")

    cooperators: Cooperators = "auto"
    complement: str = "posterior"
    antithetic: bool = True
    efficient: bool = True
    score_source: str | ScoreArray | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "score_source", checked_cooperators(self.cooperators))
        checked_choice("complement", self.complement, COMPLEMENTS)
        checked_flag("antithetic", self.antithetic)
        checked_flag("efficient", self.efficient)
        if self._learns and not (self.complement == "posterior" and self.antithetic):
            raise InvalidArgumentError(
                "cooperators='learned' needs draws of known distribution in pairs of complements: "
                f"complement='posterior' and antithetic=True; got complement={self.complement!r} "
                f"and antithetic={self.antithetic!r}."
            )

    @property
    def _learns(self) -> bool:
        return isinstance(self.cooperators, str) and self.cooperators == LEARNED

    @property
    def is_unbiased(self) -> bool:
        """With players drawn as in a random order."""
        return self.complement == "posterior"

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one cooperator per player, of two if errors are needed.

        Raises
        ------
        InvalidArgumentError
            If errors are needed but nothing is drawn at random.
        """
        if with_errors and self.complement == "none":
            raise InvalidArgumentError(
                "complement='none' draws nothing at random, so its error is bias, not a standard "
                "error. Use complement='posterior'."
            )
        return (8 if with_errors else 4) * n_players + 2

    def memory(self, n_players: int, budget: int) -> int:
        """Return the memory of the coalitions and of the scores of all pairs of players.

        Learned cooperators need the probabilities of all pairs of coalitions, for each unit.
        """
        of_pairs = 4 * budget**2 if self._learns else 0
        return 6 * budget * n_players + 48 * n_players**2 + of_pairs

    def design(self, request: DesignRequest) -> ShearDesign:
        """Draw every stratum once, then those of largest weight until the budget is spent."""
        scores = cast(ScoreArray, request.scores)
        n_players = request.n_players
        n_cooperators = cooperator_count(n_players, request.planned - len(request.known))
        cooperators = strongest(scores, n_cooperators)  # (R, M, K)
        weights = stratum_weights(n_cooperators)
        strata = self._strata(request, weights)
        units = self._units(request, cooperators, strata)
        selection = select_units(request.known, units, request.budget)
        return ShearDesign(
            table=selection.table,
            positions=selection.positions,
            strata=strata,
            stratum_weights=weights,
            draws=_draws(strata, selection.n_units, n_players * len(weights)),
            n_units=selection.n_units,
            shares=self._shares(request, cooperators),
            cooperators=cooperators,
            is_random=self.complement != "none",
        )

    def solve(self, design: ShearDesign, values: ValueArray) -> Solution:
        """Weight the marginal contributions; errors from their spread within strata."""
        if self._learns:
            return _solved_by_rows(design, values)
        contributions = _contributions(design, values)  # (R, U, K)
        n_rows, n_players = design.shares.shape
        n_strata = len(design.stratum_weights)
        is_selected = (np.arange(len(design.strata)) < design.n_units[:, None])[:, :, None]
        sums = _sum_by(design.strata, n_players * n_strata, is_selected * contributions)
        means = sums / design.draws[:, :, None]
        deviations = is_selected * (contributions - means[:, design.strata])
        squares = _sum_by(design.strata // n_strata, n_players, deviations**2)
        means = means.reshape(n_rows, n_players, n_strata, -1)
        attributions = (design.stratum_weights[:, None] * means).sum(axis=2)
        rounding = _ROUNDING * np.abs(values).max(axis=1, keepdims=True)  # (R, 1, K)
        variances, freedom = _variances(design, means, squares, rounding)
        return share_residual(attributions, variances, values, design.shares, freedom)

    def solve_with_errors(
        self, design: ShearDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Weight the marginal contributions; add the errors that the spread does not show."""
        added = []
        for row in range(len(values)):
            of_row = errors.subset_rows(slice(row, row + 1))
            if self._learns:
                of_ends = of_row.variances_of_ends(design.shares.shape[1])
                added.append(design.draws_of_row(row).added_variances(of_row.odd) + of_ends)
            else:
                added.append(_added_variances(design, row, of_row))
        return self.solve(design, values).with_variances(np.concatenate(added))

    def _strata(self, request: DesignRequest, weights: FloatArray) -> IntArray:
        """Return the stratum of each offered unit: each once, then the heaviest again."""
        n_strata = len(weights)
        base = np.arange(request.n_players * n_strata)
        if self.complement == "none":
            return base  # without random draws, repeats are duplicates
        # The repeats within the budget if half of the first round were duplicates. With few
        # coalitions, most repeats are duplicates, too, so there are more of them.
        n_repeats = max(0, -(-(request.budget - 2 * len(base)) // 4))
        if 2**request.n_players < 32 * request.budget:
            is_small = self._learns and request.n_players <= _MOST_LEARNED_PLAYERS
            n_repeats *= _REPEATS_OF_SMALL_LEARNED if is_small else _REPEATS_OF_SMALL
        repeats: list[IntArray] = []
        draws = np.ones(n_strata)
        while sum(map(len, repeats)) < n_repeats:
            heaviest = int(np.argmax(weights**2 / (draws * (draws + 1))))
            draws[heaviest] += 1
            repeats.append(request.rng.permutation(request.n_players) * n_strata + heaviest)
        return np.concatenate([base, *repeats])

    def _units(self, request: DesignRequest, cooperators: IntArray, strata: IntArray) -> WordArray:
        """Return the packed coalitions of each unit, (R, U, 4, W): two contexts, without and with.

        All rows use the same random numbers, so that a row's result does not depend on the other
        rows.
        """
        n_players, n_cooperators = cooperators.shape[1:]
        n_strata = _stratum_count(n_cooperators)
        players, subsets = strata // n_strata, strata % n_strata
        bits = pack(np.eye(n_players, dtype=bool))  # (M, W)
        player_bit = bits[players]
        subset_bits, union_bits = _cooperator_subsets(bits[cooperators])
        subset, cooperator_bits = subset_bits[:, players, subsets], union_bits[:, players]
        random_bits = np.bitwise_or.reduce(bits) & ~(cooperator_bits | player_bit)  # (R, U, W)
        sizes = ((subsets[:, None] >> np.arange(n_cooperators)) % 2).sum(axis=1)
        first, second = self._random_players(request, sizes, n_cooperators)

        units = np.empty((*subset.shape[:2], 4, bits.shape[1]), dtype=bits.dtype)
        units[:, :, 0] = subset | (random_bits & pack(first))
        units[:, :, 2] = (cooperator_bits & ~subset) | (random_bits & pack(second))
        units[:, :, 1::2] = units[:, :, ::2] | player_bit[:, None]
        return units

    def _random_players(
        self, request: DesignRequest, sizes: IntArray, n_cooperators: int
    ) -> tuple[CoalitionArray, CoalitionArray]:
        """Draw the players that are not cooperators for both contexts of each unit, (U, M) each."""
        shape = (len(sizes), request.n_players)
        if self.complement == "none":
            absent = np.zeros(shape, dtype=bool)
            return absent, absent
        first = self._draw(request.rng, sizes, n_cooperators, shape)
        if self.antithetic:
            return first, ~first
        return first, self._draw(request.rng, n_cooperators - sizes, n_cooperators, shape)

    def _draw(
        self, rng: np.random.Generator, sizes: IntArray, n_cooperators: int, shape: tuple[int, int]
    ) -> BoolArray:
        if self.complement == "uniform":
            return rng.random(shape) < 0.5
        probability = rng.beta(sizes + 1, n_cooperators - sizes + 1)
        return rng.random(shape) < probability[:, None]

    def _shares(self, request: DesignRequest, cooperators: IntArray) -> FloatArray:
        """Return each player's share of the efficiency residual, (R, M)."""
        scores = cast(ScoreArray, request.scores)
        has_scores = cast(BoolArray, request.has_scores)
        n_rows, n_players = scores.shape[:2]
        if not self.efficient:
            return np.zeros((n_rows, n_players))
        # Interactions with cooperators are enumerated; the error comes from the other ones.
        remainder = scores.copy()
        np.put_along_axis(remainder, cooperators, 0.0, axis=2)
        random_scores = remainder.sum(axis=2) - np.einsum("rii->ri", remainder)
        total = random_scores.sum(axis=1, keepdims=True)
        has_shares = has_scores[:, None] & (total > 0)
        shares: FloatArray = random_scores / np.where(total > 0, total, 1.0)
        return np.where(has_shares, shares, 1.0 / n_players)


def _solved_by_rows(design: ShearDesign, values: ValueArray) -> Solution:
    """Return the estimates by learned interactions: rows of equal cooperators together."""
    n_rows, n_players, _ = design.cooperators.shape
    results = np.empty((3, n_rows, n_players, values.shape[2]))
    _, kinds = np.unique(design.cooperators.reshape(n_rows, -1), axis=0, return_inverse=True)
    for kind in range(kinds.max() + 1):
        rows = np.flatnonzero(kinds == kind)
        solution = design.draws_of_row(rows[0]).solution(values[rows])
        results[0][rows], results[1][rows] = solution.values, solution.standard_errors
        results[2][rows] = solution.degrees_of_freedom
    return Solution(*results)


def cooperator_count(n_players: int, n_evaluations: int) -> int:
    """Return K = log2(N / 2) for N evaluations per player, rounded down."""
    per_player = n_evaluations // n_players
    return max(1, min(n_players - 1, per_player.bit_length() - 2))


def strongest(scores: ScoreArray, n_cooperators: int) -> IntArray:
    """Return the K players with the largest score for each player, strongest first, (R, M, K).

    Of equal scores, the one of the player with the lower index comes first.
    """
    ranking = np.where(np.eye(scores.shape[1], dtype=bool), np.inf, -scores)
    return np.argsort(ranking, axis=2, kind="stable")[:, :, :n_cooperators]


def _cooperator_subsets(bits: WordArray) -> tuple[WordArray, WordArray]:
    """Return the subsets of each player's cooperators without the strongest, and all of them.

    Parameters
    ----------
    bits : array of words, (R, M, K, W)
        The cooperators, strongest first.

    Returns
    -------
    arrays of words, (R, M, P, W) and (R, M, W)
        Subsets in binary order; the weakest cooperator is the lowest bit.
    """
    subsets = np.zeros_like(bits[:, :, :1])
    for weaker in range(bits.shape[2] - 1, 0, -1):
        subsets = np.concatenate([subsets, subsets | bits[:, :, weaker : weaker + 1]], axis=2)
    return subsets, np.bitwise_or.reduce(bits, axis=2)


def stratum_weights(n_cooperators: int) -> FloatArray:
    """Return the Shapley weight of a subset of K cooperators and its complement together.

    There is one entry for each subset without the last, strongest cooperator, in binary order.
    """
    subsets = np.arange(_stratum_count(n_cooperators))
    sizes = ((subsets[:, None] >> np.arange(n_cooperators)) % 2).sum(axis=1)
    counts: FloatArray = scipy.special.comb(n_cooperators, sizes)
    return 2.0 / ((n_cooperators + 1) * counts)


def _stratum_count(n_cooperators: int) -> int:
    return int(2 ** (n_cooperators - 1))


def _draws(strata: IntArray, n_units: IntArray, n_strata: int) -> IntArray:
    """Count the units of each stratum in each row, (R, n_strata)."""
    n_base = n_strata
    row, repeat = np.nonzero(np.arange(n_base, len(strata)) < n_units[:, None])
    draws = np.ones((len(n_units), n_strata), dtype=np.intp)
    np.add.at(draws, (row, strata[n_base + repeat]), 1)
    return draws


def _contributions(design: ShearDesign, values: ValueArray) -> FloatArray:
    """Return the mean marginal contribution of each unit's two contexts, (R, U, K)."""
    rows = np.arange(len(values))[:, None, None]
    unit_values = values[rows, design.positions]  # (R, U, 4, K)
    contributions = unit_values[:, :, 1::2] - unit_values[:, :, ::2]
    return (contributions[:, :, 0] + contributions[:, :, 1]) / 2


def _added_variances(design: ShearDesign, row: int, errors: ValueErrors) -> FloatArray:
    """Return what the errors of a row's values add to variances by the spread, (1, M, K)."""
    n_units, n_players = int(design.n_units[row]), design.shares.shape[1]
    coalitions = design.table.coalitions[row, : errors.odd.shape[1]]
    positions, strata = design.positions[row, :n_units], design.strata[:n_units]
    n_strata = len(design.stratum_weights)
    of_players = np.zeros((n_players, n_units))
    of_units = design.stratum_weights[strata % n_strata] / design.draws[row, strata]
    of_players[strata // n_strata, np.arange(n_units)] = of_units
    return shared_variances(positions, of_players, design.shares[row], errors, coalitions)


def _sum_by(groups: IntArray, n_groups: int, amounts: FloatArray) -> FloatArray:
    """Sum `amounts`, (R, U, K), over the units of each group, (R, n_groups, K)."""
    n_rows, n_units, n_outputs = amounts.shape
    ends = np.arange(n_units + 1)
    member = scipy.sparse.csc_array((np.ones(n_units), groups, ends), (n_groups, n_units))
    columns = np.ascontiguousarray(amounts.transpose(1, 0, 2)).reshape(n_units, -1)
    return (member @ columns).reshape(n_groups, n_rows, n_outputs).transpose(1, 0, 2)


def _variances(
    design: ShearDesign, means: FloatArray, squares: FloatArray, rounding: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Estimate the sampling variance of each player's weighted mean, and its degrees of freedom.

    The variance within strata with several draws is the mean square of their deviations, pooled
    over the strata of a player. For strata with one draw it is estimated as in factorial
    experiments without replicates: by the interaction of all cooperators, or of all but the
    strongest if their number is odd, because a stratum contains complementary subsets. This
    interaction is the sum of the means of the strata with alternating signs, and consists almost
    entirely of noise. As there are few draws, each estimate is then shrunk towards those of the
    other players.

    Parameters
    ----------
    means : array, (R, M, P, K)
        Mean of the draws of each stratum.
    squares : array, (R, M, K)
        Sum over a player's draws of the squared deviations from these means.
    rounding : array, (R, 1, K)
        Bound on the rounding error of a contribution.

    Returns
    -------
    arrays, (R, M, K) each
    """
    if not design.is_random:
        unknown = np.full_like(squares, np.nan)
        return unknown, unknown
    n_rows, n_players, n_strata, _ = means.shape
    draws = design.draws.reshape(n_rows, n_players, n_strata, 1)
    of_repeated = (draws - 1).sum(axis=2)
    # −1 for subsets of an odd number of cooperators, else 1, in binary order.
    signs = np.ones(1)
    while len(signs) < n_strata:
        signs = np.concatenate([signs, -signs])
    alternating = (means * signs[:, None]).sum(axis=2)
    weights = design.stratum_weights[:, None] ** 2 / draws
    repeated = np.where(draws > 1, weights, 0.0).sum(axis=2)
    single = np.where(draws > 1, 0.0, weights).sum(axis=2)
    if n_strata == 1:  # there are no alternating signs
        alternating = np.where(single > 0, np.nan, alternating)
    repeated_variances = repeated * squares / np.maximum(of_repeated, 1)
    variances = repeated_variances + single * alternating**2 / (1 / draws).sum(axis=2)
    # For a sum of such variances, if all strata have the same spread (Satterthwaite, 1946).
    freedom = (repeated + single) ** 2 / (repeated**2 / np.maximum(of_repeated, 1) + single**2)
    shrunk, freedom = shrink_variances(variances, freedom, (repeated + single) * rounding**2)
    return pooled_variances(shrunk, freedom)[0], freedom
