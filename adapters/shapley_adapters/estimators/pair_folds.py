"""Draws of coalitions and their complements: of the regression, or stratified by size, in folds.

In folds, pairs are drawn without replacement, size by size; small sizes are evaluated completely.
Given all other pairs, a fold is a random sample of the remaining pairs of each size.

The sim-semivalue and unbiased least squares use draws of the regression (Zhang et al., 2023, Table
1): both are means of a fixed linear function of each draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ..arguments import checked_flag
from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..coalitions.tables import (
    capped_shares,
    distinct_subsets,
    kernel_mass,
    random_subsets,
    randomly_rounded,
)
from .protocol import DesignRequest, Estimator, Solution
from .units import UnitDesign, select_within_budget
from .value_errors import ValueErrors

FOLDS = 8
"""Number of folds. Each takes a fit; twice as many hardly lower the error."""

_WORTH_COMPLETING = 0.7
"""If at least this share of the pairs of a size would be evaluated, all of them are."""


@dataclass(frozen=True)
class CoalitionDraws(UnitDesign):
    """Independent draws, each with its complement if they are paired: S is 2, else 1.

    Attributes
    ----------
    members : array, (n, M)
        The drawn coalitions.
    """

    members: CoalitionArray

    unit_fields: ClassVar[tuple[str, ...]] = ("positions", "members")

    @property
    def is_paired(self) -> bool:
        """Whether each coalition is drawn with its complement."""
        return bool(self.positions.shape[1] == 2)

    def targets(self, values: ValueArray, centred: bool) -> FloatArray:
        """Return the target of each draw, (R, n, K).

        It is the value of the coalition, or for pairs half the difference of the two values. With
        `centred`, the straight line from v(∅) to v(N), as a function of the coalition size, is
        subtracted from the values. The expectation does not change, because the coefficients of a
        size sum to 0. The variance is smaller, because it no longer includes the level and the
        slope of the game.
        """
        sizes = self.members.sum(axis=1)
        targets: FloatArray = np.take(values, self.positions[:, 0], axis=1)
        if self.is_paired:
            targets = (targets - np.take(values, self.positions[:, 1], axis=1)) / 2
        if not centred:
            return targets
        share = (sizes / self.members.shape[1])[:, None]
        total = (values[:, 1] - values[:, 0])[:, None]
        line = (share - 0.5) * total if self.is_paired else values[:, :1] + share * total
        return targets - line


def select_draws(request: DesignRequest, members: CoalitionArray, paired: bool) -> CoalitionDraws:
    """Return the first draws within the budget, with the complements of `members` if `paired`."""
    units = np.stack([members, ~members], axis=1) if paired else members[:, None]
    design = select_within_budget(request, units)
    return CoalitionDraws(design.table, design.positions, members[: len(design.positions)])


@dataclass(frozen=True)
class KernelDraws(Estimator[CoalitionDraws]):
    """Base of the means of a linear function of coalitions drawn by the Shapley kernel."""

    is_unbiased = True

    paired: bool = True
    centred: bool = True

    def __post_init__(self) -> None:
        checked_flag("paired", self.paired)
        checked_flag("centred", self.centred)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one draw, or of two for errors, and the empty and full coalition."""
        del n_players  # a draw serves all players
        return (2 if with_errors else 1) * (2 if self.paired else 1) + 2

    def memory(self, n_players: int, budget: int) -> int:
        """Return the memory of the coalitions, of which more are drawn than evaluated."""
        return 14 * budget * n_players

    def design(self, request: DesignRequest) -> CoalitionDraws:
        """Draw coalitions with replacement until the budget is spent."""
        n_players, unit_size = request.n_players, 2 if self.paired else 1
        # Duplicates are free, so offer more draws than the budget covers without duplicates.
        n_offered = 4 * (request.budget - 2) // unit_size
        all_sizes = np.arange(1, n_players)
        sizes = request.rng.choice(all_sizes, size=n_offered, p=kernel_mass(n_players))
        members = random_subsets(sizes, n_players, request.rng)
        return select_draws(request, members, self.paired)

    def solve(self, design: CoalitionDraws, values: ValueArray) -> Solution:
        """Return the mean over the draws plus each player's equal share of v(N) − v(∅)."""
        n, n_players = design.members.shape
        coefficients = self._coefficients(design.members)
        targets = design.targets(values, self.centred)
        means = coefficients.T @ targets / n
        errors = np.full_like(means, np.nan)
        if n > 1:
            squares = (coefficients**2).T @ targets**2 / n
            # Smaller differences are rounding errors of a variance of 0.
            is_above = squares - means**2 > 1e-14 * squares
            errors = np.sqrt(np.where(is_above, squares - means**2, 0.0) / (n - 1))
        equal = (values[:, 1:2] - values[:, :1]) / n_players  # (R, 1, K)
        return Solution(means + equal, errors, n - 1)

    def solve_with_errors(
        self, design: CoalitionDraws, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Return the means; add the errors that draws of one coalition, or of one pair, share."""
        solution = super().solve_with_errors(design, values, errors)
        of_values = errors.odd if self.paired else errors.variances
        drawn = design.positions.min(axis=1)  # of a coalition and its complement, if paired
        others = np.bincount(drawn)[drawn] - 1.0
        weights = self._coefficients(design.members) / len(drawn)
        added = (weights**2 * others[:, None]).T @ of_values[:, design.positions[:, 0]]
        return solution.with_variances(added)

    def _coefficients(self, members: CoalitionArray) -> FloatArray:
        """Return the factor of the target of each draw for each player, (n, M)."""
        raise NotImplementedError


@dataclass(frozen=True)
class FoldedDraws(CoalitionDraws):
    """Different pairs of complements: those of complete sizes, then blocks of random ones.

    Attributes
    ----------
    blocks : array, (n,)
        The block of each pair; −1 for pairs that are in no fold.
    expected : array, (B, S)
        Expected number of pairs of size 1, …, S in each block.
    """

    blocks: IntArray
    expected: FloatArray

    unit_fields: ClassVar[tuple[str, ...]] = ("positions", "members", "blocks")

    def within(self, n_coalitions: int) -> Self:
        """Return the design of the pairs that are among the first coalitions.

        The pairs of an incomplete block are used by the regressions, but are in no fold.
        """
        smaller = super().within(n_coalitions)
        n_blocks = _complete_blocks(self.blocks, len(smaller.blocks), len(self.expected))
        blocks = np.where(smaller.blocks < n_blocks, smaller.blocks, -1)
        return replace(smaller, blocks=blocks, expected=self.expected[:n_blocks])

    @property
    def fewest_coalitions(self) -> int:
        """Those of two complete blocks, which standard errors need."""
        in_two_blocks = (self.blocks >= 0) & (self.blocks < 2)
        if len(self.expected) < 2 or not in_two_blocks.any():
            return int(self.table.counts.max())
        last = int(np.flatnonzero(in_two_blocks)[-1])
        return int(self.positions[: last + 1].max()) + 1

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return min(FOLDS, len(self.expected))

    @property
    def sizes(self) -> IntArray:
        """The size of the smaller coalition of each pair, less 1, (n,)."""
        return self.members.sum(axis=1) - 1

    @property
    def coefficients(self) -> FloatArray:
        """The weights of the pairs in the Shapley values, times the pairs of their size, (n, M).

        Half of that for pairs of halves, of which there are half as many.
        """
        n_players = self.members.shape[1]
        inside = (self.sizes + 1.0)[:, None]
        is_half = 2 * inside == n_players
        weights = np.where(self.members, 2 / inside, -2 / (n_players - inside))
        return np.where(is_half, 0.5 * weights, weights)

    def folds(self) -> list[Fold]:
        """Return the folds, and how much each of their pairs counts."""
        n_pairs, n_sizes = pair_counts(self.members.shape[1]), self.expected.shape[1]
        fold_of_block = np.arange(len(self.expected)) % max(1, self.n_folds)
        folds = []
        for fold in range(self.n_folds):
            expected = self.expected[fold_of_block == fold]
            is_in_fold = (self.blocks >= 0) & np.append(fold_of_block == fold, False)[self.blocks]
            indices, other_indices = np.flatnonzero(is_in_fold), np.flatnonzero(~is_in_fold)
            # A number that may be 0 is replaced by its expectation.
            counts = np.bincount(self.sizes[indices], minlength=n_sizes)
            least = np.floor(expected + 1e-9).sum(axis=0)
            numbers = np.where(least >= 1, counts, expected.sum(axis=0))
            other_counts = np.bincount(self.sizes[other_indices], minlength=n_sizes)
            # If the fold has all remaining pairs of a size, their number is certain.
            numbers = np.where(other_counts + counts == n_pairs, counts, numbers)
            remaining_shares = 1 - other_counts / n_pairs  # of the pairs of each size
            sizes = self.sizes[indices]
            folds.append(Fold(indices, other_indices, remaining_shares[sizes] / numbers[sizes]))
        return folds


@dataclass(frozen=True)
class Fold:
    """Indices of the pairs of a fold, (m,), and of all other pairs, and the factors of the fold."""

    indices: IntArray
    other_indices: IntArray
    factors: FloatArray


def pair_counts(n_players: int) -> FloatArray:
    """Return the number of pairs whose smaller coalition has 1, …, ⌊M/2⌋ players.

    A number that is too large for a float is infinite.
    """
    counts = [math.comb(n_players, size) for size in range(1, n_players // 2 + 1)]
    if n_players % 2 == 0:
        counts[-1] //= 2
    return np.array([count if count < 1e300 else np.inf for count in counts], dtype=float)


def draw_folds(request: DesignRequest) -> FoldedDraws:
    """Draw pairs until the budget is spent."""
    n_known = len(request.known)
    n_pairs = max(1, (request.budget - n_known) // 2)
    n_planned = min(n_pairs, max(1, (request.planned - n_known) // 2))
    shares, is_complete = _plan(request.n_players, n_planned)
    counts = pair_counts(request.n_players)
    n_listed = int(counts[is_complete].sum())
    n_first, drawn_shares = n_planned - n_listed, np.where(is_complete, 0.0, shares)
    # Each block has at least one pair of each size.
    n_blocks = min(FOLDS, n_first, *counts[~is_complete].tolist())
    cycle = _expected_numbers(drawn_shares, n_first, int(n_blocks))
    numbers = _repeated(cycle, counts, n_pairs - n_listed)
    members, blocks = _pairs(request, is_complete, numbers)
    draws = select_draws(request, members, paired=True)
    n = len(draws.members)
    n_complete = _complete_blocks(blocks, n, len(numbers))
    blocks = np.where(blocks < n_complete, blocks, -1)[:n]
    return FoldedDraws(draws.table, draws.positions, draws.members, blocks, numbers[:n_complete])


def _complete_blocks(blocks: IntArray, n: int, n_blocks: int) -> int:
    """Return how many of the blocks the first n pairs complete."""
    missing = blocks[n:]
    return int(missing[missing >= 0].min(initial=n_blocks))


def _plan(n_players: int, n_pairs: int) -> tuple[FloatArray, BoolArray]:
    """Return how many pairs of each size to evaluate, and which sizes are complete, (S,).

    All sizes have the same number, as for regressions (Musco and Witter, Leverage SHAP). Sizes of
    about half of the players count less in the Shapley values, but the errors of a regression are
    larger there.
    """
    counts = pair_counts(n_players)
    proportions = np.ones(len(counts))
    if n_players % 2 == 0:
        proportions[-1] = 0.5
    is_complete = np.zeros(len(counts), dtype=bool)
    while True:
        n_left = n_pairs - counts[is_complete].sum()
        shares = np.where(is_complete, counts, 0.0)
        is_open = ~is_complete
        shares[is_open] = capped_shares(proportions[is_open], counts[is_open], n_left)
        missing = counts - shares
        # The missing pairs of a size are taken from the other sizes: less than half of theirs.
        n_of_others = n_left - np.where(is_open, shares, 0.0)
        is_worth = is_open & (shares >= _WORTH_COMPLETING * counts) & (2 * missing < n_of_others)
        if not is_worth.any():
            return shares, is_complete
        is_complete[np.argmax(is_worth)] = True


def _expected_numbers(shares: FloatArray, n_pairs: int, n_blocks: int) -> FloatArray:
    """Return the expected numbers of pairs of each size in blocks of n pairs in all, (B, S).

    A size with at least one pair for each block has whole numbers. The other sizes share the
    remaining pairs, of which each block has the same number, or one more.
    """
    is_often = shares >= n_blocks
    while True:
        whole_numbers = np.where(is_often, np.floor(shares), 0.0)
        n_remaining = n_pairs - whole_numbers.sum()
        is_rare = (shares > 0) & ~is_often
        if not is_rare.any() or n_remaining >= n_blocks:
            break
        # Too few pairs remain: the size with the fewest pairs joins the sizes that share them.
        is_often[np.argmin(np.where(is_often, shares, np.inf))] = False
    if not is_rare.any():
        rounded_up = np.argsort(whole_numbers - shares, kind="stable")[: round(n_remaining)]
        whole_numbers[rounded_up] += 1
    steps = np.arange(n_blocks + 1)[:, None]
    ends = np.floor((steps * whole_numbers + np.arange(len(shares))) / n_blocks)
    numbers: FloatArray = np.diff(ends, axis=0)
    if is_rare.any():
        lengths = np.diff(np.floor(steps[:, 0] * n_remaining / n_blocks))
        numbers += np.outer(lengths, np.where(is_rare, shares, 0.0) / shares[is_rare].sum())
    return numbers


def _repeated(cycle: FloatArray, counts: FloatArray, n_pairs: int) -> FloatArray:
    """Return the numbers of repeated cycles, enough to spend n pairs or to complete all sizes."""
    n_cycles = -(-n_pairs // round(cycle.sum()))
    while True:
        numbers = _completing(np.tile(cycle, (n_cycles, 1)), counts)
        n_drawn = numbers[np.isfinite(numbers)].sum()
        if n_drawn >= n_pairs - 1e-6 or n_cycles == 1 or not numbers[-1].any():
            return numbers
        n_cycles *= 2


def _completing(numbers: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the numbers, infinite where a block takes all remaining pairs of a size, 0 after that.

    A block takes all of them if the numbers, rounded up, may be more than the remaining pairs.
    """
    n_remaining = counts - np.cumsum(np.ceil(numbers - 1e-9), axis=0)
    is_over = (n_remaining < 0) & (numbers > 0)
    is_first = is_over & (np.cumsum(is_over, axis=0) == 1)
    return np.where(is_first, np.inf, np.where(is_over, 0.0, numbers))


def _pairs(
    request: DesignRequest, is_complete: BoolArray, numbers: FloatArray
) -> tuple[CoalitionArray, IntArray]:
    """Return one coalition of each pair, (n, M), and the blocks of these pairs, (n,)."""
    n_players, rng = request.n_players, request.rng
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    n_drawn = np.array([randomly_rounded(expected, rng) for expected in finite])
    counts = pair_counts(n_players)
    members, blocks = [], []
    for size in range(1, len(counts) + 1):
        of_size = np.repeat(np.arange(len(n_drawn)), n_drawn[:, size - 1])
        last = np.flatnonzero(np.isinf(numbers[:, size - 1]))
        if is_complete[size - 1] or len(last):
            n_remaining = int(counts[size - 1]) - len(of_size)
            of_size = np.append(of_size, np.full(n_remaining, last[0] if len(last) else -1))
        members.append(distinct_subsets(len(of_size), size, n_players, True, rng))
        blocks.append(of_size)
    of_pairs = np.concatenate(blocks)
    order = np.argsort(of_pairs, kind="stable")
    return np.concatenate(members)[order], of_pairs[order]
