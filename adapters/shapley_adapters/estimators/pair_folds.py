"""Random pairs of complements, stratified by size, in folds.

Pairs are drawn without replacement, size by size; small sizes are evaluated completely. Given all
other pairs, a fold is a random sample of what they leave of each size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray
from ..coalitions.sizes import capped_shares, distinct_subsets, randomly_rounded
from .kernel_draws import CoalitionDraws, select_draws
from .protocol import DesignRequest

if TYPE_CHECKING:
    from typing_extensions import Self

_FOLDS = 8
"""Number of folds. Each takes a fit; twice as many hardly lower the error."""

_WORTH_COMPLETING = 0.7
"""Share of the pairs of a size from which on all of them are evaluated."""


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

        Those of a block that is not complete tell about the game, but are in no fold.
        """
        smaller = super().within(n_coalitions)
        n_blocks = _complete_blocks(self.blocks, len(smaller.blocks), len(self.expected))
        blocks = np.where(smaller.blocks < n_blocks, smaller.blocks, -1)
        return replace(smaller, blocks=blocks, expected=self.expected[:n_blocks])

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return min(_FOLDS, len(self.expected))

    @property
    def sizes(self) -> IntArray:
        """The size of the smaller coalition of each pair, less 1, (n,)."""
        sizes: IntArray = self.members.sum(axis=1) - 1
        return sizes

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
            own = fold_of_block == fold
            is_held = (self.blocks >= 0) & np.append(own, False)[self.blocks]
            held, others = np.flatnonzero(is_held), np.flatnonzero(~is_held)
            # A number that may be 0 is replaced by its expectation.
            counts = np.bincount(self.sizes[held], minlength=n_sizes)
            least = np.floor(self.expected[own] + 1e-9).sum(axis=0)
            numbers = np.where(least >= 1, counts, self.expected[own].sum(axis=0))
            known = np.bincount(self.sizes[others], minlength=n_sizes)
            # Where the fold holds all that the others leave, its number is certain.
            numbers = np.where(known + counts == n_pairs, counts, numbers)
            left = 1 - known / n_pairs  # the share of the pairs of each size
            sizes = self.sizes[held]
            folds.append(Fold(held, others, left[sizes] / numbers[sizes]))
        return folds


@dataclass(frozen=True)
class Fold:
    """The pairs of a fold, all other pairs, and the factor of each pair of the fold, (m,)."""

    held: IntArray
    others: IntArray
    factors: FloatArray


def pair_counts(n_players: int) -> FloatArray:
    """Return the number of pairs whose smaller coalition has 1, …, ⌊M/2⌋ players.

    Beyond what a number can be, infinite.
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
    n_first, drawn = n_planned - n_listed, np.where(is_complete, 0.0, shares)
    # A pair of each size for each block, at least.
    n_blocks = min(_FOLDS, n_first, *counts[~is_complete].tolist())
    cycle = _expected_numbers(drawn, n_first, int(n_blocks))
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

    All sizes alike, as for regressions (Musco and Witter, Leverage SHAP): sizes of about half of
    the players count less in the Shapley values, but the errors of a regression are larger there.
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
        # The other sizes pay for what is missing, at most half of what they have.
        others = n_left - np.where(is_open, shares, 0.0)
        is_worth = is_open & (shares >= _WORTH_COMPLETING * counts) & (2 * missing < others)
        if not is_worth.any():
            return shares, is_complete
        is_complete[np.argmax(is_worth)] = True


def _expected_numbers(shares: FloatArray, n_pairs: int, n_blocks: int) -> FloatArray:
    """Return the expected numbers of pairs of each size in blocks of n pairs in all, (B, S).

    Whole numbers of the sizes that have a pair for each block. The others share the rest, of which
    each block has the same number, or one more.
    """
    is_often = shares >= n_blocks
    while True:
        whole = np.where(is_often, np.floor(shares), 0.0)
        rest = n_pairs - whole.sum()
        is_rare = (shares > 0) & ~is_often
        if not is_rare.any() or rest >= n_blocks:
            break
        # The size of fewest pairs helps out.
        is_often[np.argmin(np.where(is_often, shares, np.inf))] = False
    if not is_rare.any():
        most = np.argsort(whole - shares, kind="stable")[: round(rest)]
        whole[most] += 1
    steps = np.arange(n_blocks + 1)[:, None]
    ends = np.floor((steps * whole + np.arange(len(shares))) / n_blocks)
    numbers: FloatArray = np.diff(ends, axis=0)
    if is_rare.any():
        lengths = np.diff(np.floor(steps[:, 0] * rest / n_blocks))
        numbers += np.outer(lengths, np.where(is_rare, shares, 0.0) / shares[is_rare].sum())
    return numbers


def _repeated(cycle: FloatArray, counts: FloatArray, n_pairs: int) -> FloatArray:
    """Return the numbers of so many cycles as spend n pairs, or complete all sizes."""
    n_cycles = -(-n_pairs // round(cycle.sum()))
    while True:
        numbers = _completing(np.tile(cycle, (n_cycles, 1)), counts)
        n_drawn = numbers[np.isfinite(numbers)].sum()
        if n_drawn >= n_pairs - 1e-6 or n_cycles == 1 or not numbers[-1].any():
            return numbers
        n_cycles *= 2


def _completing(numbers: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the numbers, infinite where a block takes all that is left of a size, 0 after that.

    That is when the numbers, rounded up, may be more than what is left.
    """
    left = counts - np.cumsum(np.ceil(numbers - 1e-9), axis=0)
    is_over = (left < 0) & (numbers > 0)
    is_first = is_over & (np.cumsum(is_over, axis=0) == 1)
    completing: FloatArray = np.where(is_first, np.inf, np.where(is_over, 0.0, numbers))
    return completing


def _pairs(
    request: DesignRequest, is_complete: BoolArray, numbers: FloatArray
) -> tuple[CoalitionArray, IntArray]:
    """Return one coalition of each pair, (n, M), and the blocks of these pairs, (n,)."""
    n_players, rng = request.n_players, request.rng
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    drawn = np.array([randomly_rounded(expected, rng) for expected in finite])
    counts = pair_counts(n_players)
    members, blocks = [], []
    for size in range(1, len(counts) + 1):
        of_size = np.repeat(np.arange(len(drawn)), drawn[:, size - 1])
        last = np.flatnonzero(np.isinf(numbers[:, size - 1]))
        if is_complete[size - 1] or len(last):
            rest = int(counts[size - 1]) - len(of_size)
            of_size = np.append(of_size, np.full(rest, last[0] if len(last) else -1))
        members.append(distinct_subsets(len(of_size), size, n_players, True, rng))
        blocks.append(of_size)
    of_pairs = np.concatenate(blocks)
    order = np.argsort(of_pairs, kind="stable")
    return np.concatenate(members)[order], of_pairs[order]
