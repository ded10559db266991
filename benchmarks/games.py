"""Games by tables and by models, as the core takes them, and large ones with their Shapley values.

The large ones have 50 to 2,000 players: sums of small games, a network with pooling over words, and
attention. Each is drawn by a seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

import shapley_adapters as core

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
Values = Callable[[BoolArray], FloatArray]

_BATCH = 1024
"""Coalitions in one call of the model."""


def all_coalitions(n_players: int) -> BoolArray:
    """Return all coalitions, (2^M, M); bit j of the index is player j."""
    return (np.arange(2**n_players)[:, None] >> np.arange(n_players)) % 2 == 1


@dataclass(frozen=True)
class TabulatedGame:
    """One game for each explained row, by the values of all its coalitions.

    Attributes
    ----------
    table : array, (R, 2^M)
        The values; bit j of the place tells whether player j is present.
    n_players : int
        M.
    """

    table: FloatArray
    n_players: int

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """Look up the values, (R, C), of coalitions, (R, C, M) or (1, C, M)."""
        places = coalitions @ (1 << np.arange(self.n_players))
        places = np.broadcast_to(places, (len(self.table), places.shape[1]))
        return np.take_along_axis(self.table, places, axis=1)

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the values of the empty coalition and of all players, (R,) each."""
        return self.table[:, 0], self.table[:, -1]

    def shapley_values(self) -> FloatArray:
        """Return the exact values, (R, M), by their definition."""
        n = self.n_players
        places = np.arange(2**n)
        sizes = all_coalitions(n).sum(axis=1)
        values = np.empty((len(self.table), n))
        for player in range(n):
            without = places[(places >> player) % 2 == 0]
            weights = np.array([1 / (n * comb(n - 1, size)) for size in sizes[without]])
            steps = self.table[:, without | 1 << player] - self.table[:, without]
            values[:, player] = steps @ weights
        return values


@dataclass(frozen=True)
class ModelGame:
    """One game for each explained row, by running the model.

    Attributes
    ----------
    predict : callable
        The model: inputs (B, D) to outputs (B,).
    rows : array, (R, D)
        What is explained.
    reference : array, (1, D)
        Values of absent columns.
    player_of_column : array, (D,)
        The player that each column belongs to.
    """

    predict: Callable[[npt.NDArray[Any]], FloatArray]
    rows: npt.NDArray[Any]
    reference: npt.NDArray[Any]
    player_of_column: IntArray

    @property
    def n_players(self) -> int:
        """M, the number of players."""
        return int(self.player_of_column.max()) + 1

    def of_row(self, row: int, coalitions: BoolArray) -> FloatArray:
        """Return the values, (C,), of coalitions, (C, M), of one row."""
        of_row = partial(self.of_pairs, np.array([row]))
        return in_blocks(of_row, _MOST_NUMBERS // _BATCH)(coalitions)

    def of_pairs(self, rows: IntArray, coalitions: BoolArray) -> FloatArray:
        """Return the values, (P,), of rows, (P,) or (1,), and coalitions, (P, M), in one batch."""
        present = np.take(coalitions, self.player_of_column, axis=1)
        return self.predict(np.where(present, self.rows[rows], self.reference))

    def tabulated(self) -> TabulatedGame:
        """Return the games by the values of all coalitions."""
        present = all_coalitions(self.n_players)[:, self.player_of_column]  # (2^M, D)
        table = [self.predict(np.where(present, row, self.reference)) for row in self.rows]
        return TabulatedGame(np.array(table, dtype=np.float64), self.n_players)


@dataclass(frozen=True)
class CoreGame(core.Game):
    """A function of rows and coalitions as the core takes games; all players are active.

    Attributes
    ----------
    values_of : callable
        Rows, (P,), and a coalition of each, (P, M), to values, (P,).
    n_players, n_rows : int
        M and R.
    evaluations_per_batch : int
        Evaluations in one call.
    """

    values_of: Callable[[IntArray, BoolArray], FloatArray]
    n_players: int
    n_rows: int
    evaluations_per_batch: int = 1024

    def __call__(self, rows: IntArray, coalitions: BoolArray) -> FloatArray:
        """Return the values, (P, 1)."""
        return self.values_of(rows, coalitions)[:, None]


def core_game(games: TabulatedGame) -> CoreGame:
    """Return tabulated games as the core takes them."""
    powers, table = 1 << np.arange(games.n_players), games.table
    return CoreGame(lambda rows, some: table[rows, some @ powers], games.n_players, len(table))


def joined(values_of: Sequence[Values], n_players: int, per_batch: int = 1024) -> CoreGame:
    """Return games of one row each, coalitions to values, as the core takes them."""

    def values(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        found = np.empty(len(rows))
        for row in np.unique(rows):
            found[rows == row] = values_of[row](coalitions[rows == row])
        return found

    return CoreGame(values, n_players, len(values_of), per_batch)


def relative_error(found: Any, exact: FloatArray) -> float:
    """Return Σ |φ̂ − φ| / Σ |φ|."""
    return float(np.abs(found - exact).sum() / np.abs(exact).sum())


def share_inside(
    found: core.Estimate, exact: FloatArray, confidence: float = 0.95, slack: Any = 1e-9
) -> float:
    """Return the share of exact values, (R, M), in intervals, up to rounding."""
    lower, upper = (bound[:, :, 0] for bound in found.interval(confidence))
    return float(((lower - slack <= exact) & (exact <= upper + slack)).mean())


_MOST_MEMBERS = 10
_MOST_NUMBERS = 2**22
"""Numbers in the largest array of a game."""

_N_BATCHES = 20
_PAIRS_PER_PLAYER = 1000


@dataclass(frozen=True)
class LargeGame:
    """A game with its Shapley values.

    Attributes
    ----------
    values : callable
        Coalitions, (C, M), to values, (C,).
    exact : array, (M,)
        Its Shapley values.
    standard_errors : array, (M,)
        Their standard errors, where they are estimates themselves.
    """

    values: Values
    exact: FloatArray
    standard_errors: FloatArray = field(default_factory=lambda: np.zeros(1))

    @property
    def n_players(self) -> int:
        """M, the number of players."""
        return len(self.exact)


def taken_and_given(game: LargeGame, values: FloatArray) -> FloatArray:
    """Return what the first ten players take from all, and what they give to none, on average."""
    order = np.argsort(-values)[:10]
    first = np.zeros((10, game.n_players), dtype=bool)
    for n_first in range(10):
        first[n_first:, order[n_first]] = True
    ends = game.values(np.repeat([[True], [False]], game.n_players, axis=1))
    return np.array([ends[0] - game.values(~first).mean(), game.values(first).mean() - ends[1]])


def in_blocks(values: Values, numbers_per_coalition: int) -> Values:
    """Return a game that takes its coalitions in blocks, so that its arrays stay small."""
    size = max(1, _MOST_NUMBERS // numbers_per_coalition)

    def of_all(coalitions: BoolArray) -> FloatArray:
        starts = range(0, len(coalitions), size)
        return np.concatenate([values(coalitions[start : start + size]) for start in starts])

    return of_all


def kernel_draws(n_players: int, n_draws: int, rng: np.random.Generator) -> BoolArray:
    """Draw coalitions, (n, M), by the Shapley kernel."""
    sizes = np.arange(1, n_players)
    kernel = 1 / (sizes * (n_players - sizes))
    drawn = rng.choice(sizes, n_draws, p=kernel / kernel.sum())
    return rng.random((n_draws, n_players)).argsort(axis=1) < drawn[:, None]


def converged(values: Values, n_players: int) -> LargeGame:
    """Return a game with its Shapley values by regression, and their standard errors.

    Pairs of complements by the Shapley kernel, 2,000 evaluations a player (Covert and Lee, 2021).
    The standard errors are by leaving out each of 20 batches of pairs.
    """
    rng = np.random.default_rng(2026)
    full, empty = values(np.array([[True], [False]]).repeat(n_players, axis=1))
    n_pairs = -(-_PAIRS_PER_PLAYER * n_players // _N_BATCHES)
    batches = []
    for _ in range(_N_BATCHES):
        present = kernel_draws(n_players, n_pairs, rng)
        halves = (values(present) - values(~present)) / 2
        signs = present - 0.5
        batches.append((signs.T @ signs, signs.T @ halves))
    grams, products = (np.array(numbers) for numbers in zip(*batches, strict=True))

    def solved(gram: FloatArray, product: FloatArray) -> FloatArray:
        both = np.linalg.solve(gram, np.stack([product, np.ones(n_players)], axis=1))
        gap = full - empty - both[:, 0].sum()
        return np.asarray(both[:, 0] + both[:, 1] * gap / both[:, 1].sum())

    gram, product = grams.sum(axis=0), products.sum(axis=0)
    left_out = [solved(gram - g, product - p) for g, p in batches]
    spread = np.sqrt((_N_BATCHES - 1) * np.var(left_out, axis=0))
    return LargeGame(values, solved(gram, product), spread)


def sub_games(n_players: int, seed: int, share: float = 1.0) -> LargeGame:
    """Return a sum of small games that overlap; `share` of the players are in any of them.

    Each has 2 to 10 members: a tanh network, a vote, the largest member, or a product. Their sizes
    spread as a lognormal.
    """
    rng = np.random.default_rng(seed)
    involved = rng.permutation(n_players)[: max(_MOST_MEMBERS, round(share * n_players))]
    exact = np.zeros(n_players)
    members, tables = [], []
    for _ in range(len(involved)):
        n_members = int(rng.integers(2, _MOST_MEMBERS + 1))
        chosen = rng.choice(involved, n_members, replace=False)
        table = _small_table(n_members, rng) * rng.lognormal(sigma=1.0)
        exact[chosen] += TabulatedGame(table[None], n_members).shapley_values()[0]
        members.append(chosen)
        tables.append(table)

    def values(coalitions: BoolArray) -> FloatArray:
        total = np.zeros(len(coalitions))
        columns = np.ascontiguousarray(coalitions.T).astype(np.intp)
        for chosen, table in zip(members, tables, strict=True):
            places = np.zeros(len(coalitions), dtype=np.intp)
            for bit, player in enumerate(chosen):
                places += columns[player] << bit
            total += table[places]
        return total

    return LargeGame(in_blocks(values, n_players), exact)


def _small_table(n_members: int, rng: np.random.Generator) -> FloatArray:
    """Return the values of all coalitions of a small game, (2^k,)."""
    present = all_coalitions(n_members).astype(int)
    weights = rng.normal(size=n_members)
    kinds: list[Callable[[], Any]] = [
        lambda: np.tanh(present @ weights + rng.normal()),
        lambda: present @ np.abs(weights) > 0.5 * np.abs(weights).sum(),
        lambda: (present * np.abs(weights)).max(axis=1),
        lambda: np.prod(np.where(present, 1 + 0.5 * weights, 1.0), axis=1),
    ]
    return np.asarray(kinds[rng.integers(4)]() * rng.choice((-1.0, 1.0)))


def pooling_network(n_players: int, seed: int, n_filters: int = 16) -> LargeGame:
    """Return a network of words: a weight for each, filters pooled by their maximum, neighbours.

    Words are heavy-tailed, so that a few matter. The largest of a filter's activations among the
    words that are present is a game whose values have a closed form (Littlechild and Owen, 1973):
    each step between sorted activations is shared by all words that reach it. A filter of two
    words gives half of its weight to each.
    """
    rng = np.random.default_rng(seed)
    main = 0.3 * rng.standard_t(2, size=n_players)
    neighbours = 0.3 * rng.standard_t(2, size=n_players - 1)
    # A filter answers to a quarter of the words, of 4 to 64.
    n_reached = min(64, max(4, n_players // 4))
    reached = np.array([rng.permutation(n_players)[:n_reached] for _ in range(n_filters)])
    activations = rng.lognormal(sigma=1.0, size=reached.shape)
    heads = rng.normal(size=n_filters)

    def values(coalitions: BoolArray) -> FloatArray:
        total = coalitions @ main + (coalitions[:, 1:] & coalitions[:, :-1]) @ neighbours
        for chosen, strengths, head in zip(reached, activations, heads, strict=True):
            total += head * (coalitions[:, chosen] * strengths).max(axis=1)
        return np.asarray(total)

    exact = main.copy()
    exact[1:] += neighbours / 2
    exact[:-1] += neighbours / 2
    for chosen, strengths, head in zip(reached, activations, heads, strict=True):
        exact[chosen] += head * shares_of_largest(strengths)
    return LargeGame(in_blocks(values, n_players), exact)


def shares_of_largest(numbers: FloatArray) -> FloatArray:
    """Return the Shapley values of the largest number of the players that are present."""
    order, exact = np.argsort(numbers), np.empty(len(numbers))
    steps = np.diff(numbers[order], prepend=0.0) / np.arange(len(numbers), 0, -1)
    exact[order] = np.cumsum(steps)
    return exact


def attention(n_players: int, seed: int, n_heads: int = 4) -> LargeGame:
    """Return attention of one query over the players, by softmax, with one more fixed token.

    A head answers with the mean of the values y of the tokens that are present, weighted by w, the
    exponentials of their scores: Σ w y / (c + Σ w), where c is the weight of the fixed token.
    """
    rng = np.random.default_rng(seed)
    weights = np.exp(1.5 * rng.normal(size=(n_heads, n_players)))
    answers = rng.normal(size=(n_heads, n_players)) + rng.normal(size=(n_heads, 1))
    fixed = 0.1 * weights.sum(axis=1)
    heads = rng.normal(size=n_heads)

    def values(coalitions: BoolArray) -> FloatArray:
        present = coalitions.astype(float)
        attended = present @ (weights * answers).T / (fixed + present @ weights.T)
        return np.asarray(attended @ heads)

    exact = sum(
        head * attention_values(w, y, c)
        for head, w, y, c in zip(heads, weights, answers, fixed, strict=True)
    )
    return LargeGame(in_blocks(values, n_players), np.asarray(exact))


def attention_values(weights: FloatArray, answers: FloatArray, fixed: float) -> FloatArray:
    """Return the Shapley values of Σ w y / (c + Σ w), sums over the players that are present.

    With 1 / s = ∫ exp(−t s) dt, the game is an integral over t of products over the players. Where
    each is present with probability p, a product's expectation is the product of q = 1 − p +
    p exp(−t w); the Shapley value is the integral over p of what a player adds to expectations
    (Owen, 1972). Both integrals are sums here, whose error is below 1e-12 of the values.
    """
    total = weights.sum()
    # p is spread evenly in log(c + p W), in which the integrand is smooth.
    nodes, p_weights = np.polynomial.legendre.leggauss(40)
    span = np.log1p(total / fixed)
    grown = np.exp(span * (nodes + 1) / 2)
    # t is spread evenly in its logarithm: the trapezoidal rule converges exponentially.
    log_t = np.arange(-32.0, 6.0, 0.25)
    found = np.zeros(len(weights))
    for p, p_weight in zip((grown - 1) * fixed / total, p_weights * grown, strict=True):
        t = np.exp(log_t) / (fixed + p * total)
        stays = np.exp(-t[:, None] * weights)  # (T, M)
        q = 1 - p + p * stays
        added = weights * answers * p * stays / q
        others = added.sum(axis=1, keepdims=True) - added
        scale = 0.25 * t * np.exp(-t * fixed + np.log(q).sum(axis=1))
        gain = (stays * weights * answers - (1 - stays) * others) / q
        found += p_weight * span / 2 * fixed / total * (scale @ gain)
    return found
