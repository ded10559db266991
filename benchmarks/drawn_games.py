"""Games of any number of players that a seed draws, with their Shapley values.

Most are sums of products of a number of each player, whose values have a closed form: with each
player present with chance p, the mean of a product is the product of the means, and the Shapley
value is the mean over p of the derivative. Those of networks converge by regression;
their standard errors are with them. Fitted models of few features are tables of all their values.
"""

from collections.abc import Callable
from math import comb

import numpy as np
from games import (
    BoolArray,
    FloatArray,
    IntArray,
    LargeGame,
    TabulatedGame,
    all_coalitions,
    attention,
    converged,
    in_blocks,
    shares_of_largest,
)
from zoo_games import MODELS

Draw = Callable[[int, np.random.Generator], LargeGame]

_NODES = 64


def drawn_game(kind: str, n_players: int, seed: int) -> LargeGame:
    """Return the game of a kind, a number of players and a seed."""
    rng = np.random.default_rng([seed, n_players, len(kind)])
    if kind in MODELS:
        game = TabulatedGame(MODELS[kind](all_coalitions(n_players), rng)[None], n_players)
        return LargeGame(lambda coalitions: game(coalitions[None])[0], game.shapley_values()[0])
    return KINDS[kind](n_players, rng)


def sum_of_products(weights: FloatArray, present: FloatArray, absent: FloatArray) -> LargeGame:
    """Return Σ_k w_k Π_j (present or absent)_kj, for weights (K,) and numbers (K, M)."""

    def values(coalitions: BoolArray) -> FloatArray:
        total = np.zeros(len(coalitions))
        for weight, with_player, without in zip(weights, present, absent, strict=True):
            total += weight * np.where(coalitions, with_player, without).prod(axis=1)
        return total

    nodes, node_weights = np.polynomial.legendre.leggauss(_NODES)
    exact = np.zeros(present.shape[1])
    for chance, share in zip((nodes + 1) / 2, node_weights / 2, strict=True):
        mixed = chance * present + (1 - chance) * absent
        for player in range(len(exact)):
            others = np.delete(mixed, player, axis=1).prod(axis=1)
            exact[player] += share * weights @ ((present - absent)[:, player] * others)
    return LargeGame(in_blocks(values, present.shape[1]), exact)


def _radial(n_players: int, rng: np.random.Generator) -> LargeGame:
    shares = rng.gamma(1.0, size=n_players)
    shares *= 1.5 / shares.sum()
    row, background = rng.normal(size=n_players), rng.normal(size=n_players) / 2
    centres = rng.normal(size=(6, n_players))
    present, absent = (np.exp(-shares * (one - centres) ** 2) for one in (row, background))
    return sum_of_products(rng.normal(size=6), present, absent)


def _rules(n_rules: int, fewest: int, most: int, spread: float) -> Draw:
    """Return rules that all of some players keep, or break; strong players are in many."""

    def draw(n_players: int, rng: np.random.Generator) -> LargeGame:
        chances = rng.gamma(spread, size=n_players) + 0.02
        present, absent = np.ones((2, n_rules, n_players))
        for rule in range(n_rules):
            size = min(n_players, int(rng.integers(fewest, most + 1)))
            members = rng.choice(n_players, size, replace=False, p=chances / chances.sum())
            keeps = rng.random(size) < 0.5
            present[rule, members], absent[rule, members] = keeps, ~keeps
        return sum_of_products(rng.normal(size=n_rules), present, absent)

    return draw


def _unanimity(n_players: int, rng: np.random.Generator) -> LargeGame:
    present, absent = np.ones((2, 20, n_players))
    for game in range(20):
        size = int(rng.integers(1, min(n_players, 10)))
        absent[game, rng.choice(n_players, size, replace=False)] = 0
    return sum_of_products(rng.normal(size=20), present, absent)


def _exponential(n_players: int, rng: np.random.Generator) -> LargeGame:
    effects = np.exp(2 / np.sqrt(n_players) * rng.normal(size=(1, n_players)))
    return sum_of_products(np.ones(1), effects, np.ones((1, n_players)))


def _pairs(n_players: int, rng: np.random.Generator) -> LargeGame:
    alone = rng.normal(size=n_players)
    together = np.triu(rng.normal(size=(n_players, n_players)), 1) / np.sqrt(n_players)

    def values(coalitions: BoolArray) -> FloatArray:
        return coalitions @ alone + ((coalitions @ together) * coalitions).sum(axis=1)

    return LargeGame(values, alone + (together + together.T).sum(axis=1) / 2)


def _maximum(n_players: int, rng: np.random.Generator) -> LargeGame:
    numbers = rng.uniform(size=n_players)
    exact = shares_of_largest(numbers)
    return LargeGame(lambda coalitions: (coalitions * numbers).max(axis=1), exact)


def _relu_sums(n_players: int, rng: np.random.Generator) -> LargeGame:
    inner = rng.normal(size=(n_players, 8)) * rng.gamma(1.0, size=(n_players, 1))
    inner /= np.sqrt((inner**2).sum(axis=0))
    offsets, outer = 0.3 * rng.normal(size=8), rng.normal(size=8)
    return converged(
        lambda coalitions: np.maximum(np.where(coalitions, 1, -1) @ inner + offsets, 0) @ outer,
        n_players,
    )


def _network(n_players: int, rng: np.random.Generator) -> LargeGame:
    inner = rng.normal(size=(n_players, 24)) * 3 / np.sqrt(n_players)
    middle = rng.normal(size=(24, 24)) * 1.5 / np.sqrt(24)
    row, background = rng.normal(size=n_players), rng.normal(size=(8, n_players))
    offsets, outer = rng.normal(size=(2, 24))

    def output(inputs: FloatArray) -> FloatArray:
        return np.tanh(np.tanh(inputs @ inner + offsets) @ middle) @ outer

    return converged(
        lambda present: np.mean(
            [output(np.where(present, row, one)) for one in background], axis=0
        ),
        n_players,
    )


def _pooled_text(n_players: int, rng: np.random.Generator) -> LargeGame:
    words = rng.normal(size=(n_players, 12)) * rng.gamma(1.0, size=(n_players, 1))
    inner = 3 / np.sqrt(12) * rng.normal(size=(12, 16))
    offsets, outer = 0.3 * rng.normal(size=16), rng.normal(size=16)

    def values(coalitions: BoolArray) -> FloatArray:
        mean = coalitions @ words / np.maximum(coalitions.sum(axis=1, keepdims=True), 1)
        return np.tanh(2 * mean @ inner + offsets) @ outer

    return converged(values, n_players)


def _vote(n_players: int, rng: np.random.Generator) -> LargeGame:
    shares = rng.integers(1, 20, size=n_players)
    return LargeGame(
        lambda coalitions: (coalitions @ shares > shares.sum() / 2).astype(float),
        values_of_vote(shares),
    )


def values_of_vote(shares: IntArray) -> FloatArray:
    """Return the Shapley values of a vote, by counting the coalitions of each size and share."""
    n_players, total = len(shares), int(shares.sum())
    values = np.zeros(n_players)
    for player, own in enumerate(shares):
        counts = np.zeros((n_players, total + 1))
        counts[0, 0] = 1.0
        for other in np.delete(shares, player):
            counts[1:, other:] += counts[:-1, : total + 1 - other].copy()
        in_favour = np.arange(total + 1)
        is_decided = (2 * in_favour <= total) & (2 * (in_favour + own) > total)
        weights = [1 / (n_players * comb(n_players - 1, size)) for size in range(n_players)]
        values[player] = weights @ counts[:, is_decided].sum(axis=1)
    return values


def _label_of_network(n_players: int, rng: np.random.Generator) -> LargeGame:
    inner = rng.normal(size=(n_players, 16)) * rng.gamma(1.0, size=(n_players, 1))
    row, other = rng.normal(size=(2, n_players))
    outer = rng.normal(size=16)

    def outputs(coalitions: BoolArray) -> FloatArray:
        return np.tanh(np.where(coalitions, row, other) @ inner / 2) @ outer

    ends = outputs(np.array([[False], [True]]).repeat(n_players, axis=1))
    return converged(lambda coalitions: (outputs(coalitions) > ends.mean()) * 1.0, n_players)


def _sigmoid(n_players: int, rng: np.random.Generator) -> LargeGame:
    effects = rng.normal(size=n_players) * rng.gamma(1.0, size=n_players) * 9 / np.sqrt(n_players)
    return converged(
        lambda coalitions: 1 / (1 + np.exp(-np.where(coalitions, 0.5, -0.5) @ effects)), n_players
    )


KINDS: dict[str, Draw] = {
    "radial": _radial,
    "rules": _rules(60, 1, 5, 0.5),
    "large rules": _rules(300, 3, 8, 1.0),
    "unanimity": _unanimity,
    "pairs": _pairs,
    "exponential": _exponential,
    "maximum": _maximum,
    "ReLU sums": _relu_sums,
    "network": _network,
    "pooled text": _pooled_text,
    "pooled attention": lambda n_players, rng: attention(n_players, int(rng.integers(2**31))),
    "vote": _vote,
    "sigmoid": _sigmoid,
    "label": _label_of_network,
}
