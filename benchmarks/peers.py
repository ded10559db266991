"""The estimators that SHEAR is compared with, on tabulated games.

They pay for a coalition once, however often it is drawn, and go on until their budget of distinct
coalitions is spent; only `averaged_small_regressions` and `shear_as_published`, which repeat what
the paper did, pay for every draw. The draws are shared by all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from coalition_games import BoolArray, FloatArray, IntArray, TabulatedGame

_N_ENDS = 2
"""The empty coalition and that of all players, which every estimator may use."""


@dataclass(frozen=True)
class Answer:
    """What an estimator says and what it spent.

    Attributes
    ----------
    values : array, (R, M)
        The attributions.
    evaluations : float
        Evaluations made for each row.
    backward_passes : float
        Backward passes made for a row, at most.
    """

    values: FloatArray
    evaluations: float
    backward_passes: float = 0.0


def pooled_regression(
    game: TabulatedGame, budget: int, rng: np.random.Generator, *, paired: bool
) -> Answer:
    """KernelSHAP (KS, and KS-Pair): one regression over all evaluations, efficiency exact."""
    n_draws = 8 * budget  # many are drawn twice
    coalitions = kernel_draws(game.n_players, n_draws, rng)
    together = np.stack([coalitions, ~coalitions], axis=1) if paired else coalitions[:, None]
    bought = together[: _affordable(together, budget - _N_ENDS)].reshape(-1, game.n_players)
    distinct, counts = np.unique(bought, axis=0, return_counts=True)
    return Answer(regression(game, distinct, counts), len(distinct) + _N_ENDS)


def averaged_small_regressions(
    game: TabulatedGame, budget: int, rng: np.random.Generator, *, paired: bool
) -> Answer:
    """KernelSHAP as in the paper's Appendix H: the mean of M regressions with N draws each.

    A regression with too few draws takes, of all solutions, the one nearest to equal shares.
    """
    n_players = game.n_players
    n_draws = (budget - _N_ENDS) // n_players
    total = np.zeros((len(game.table), n_players))
    for _ in range(n_players):
        coalitions = kernel_draws(n_players, n_draws // 2 if paired else n_draws, rng)
        if paired:
            coalitions = np.concatenate([coalitions, ~coalitions])
        total += regression(game, coalitions, np.ones(len(coalitions)))
    return Answer(total / n_players, n_players * n_draws + _N_ENDS)


def permutation_sampling(
    game: TabulatedGame, budget: int, rng: np.random.Generator, *, antithetic: bool
) -> Answer:
    """Permutation sampling (PS), or with each order its reverse (APS)."""
    n_players = game.n_players
    n_orders = 2 * budget // n_players + 2
    orders = rng.permuted(np.tile(np.arange(n_players), (n_orders, 1)), axis=1)
    if antithetic:
        orders = np.stack([orders, orders[:, ::-1]], axis=1).reshape(-1, n_players)
    joined = np.argsort(orders, axis=1)[:, None, :] < np.arange(n_players + 1)[:, None]
    inner = joined[:, 1:-1]  # the first and the last are the end points
    together = inner.reshape(n_orders, -1, n_players)
    n_bought = _affordable(together, budget - _N_ENDS)
    n_spent = len(np.unique(together[:n_bought].reshape(-1, n_players), axis=0))
    kept = slice(n_bought * (len(orders) // n_orders))
    return Answer(marginal_means(game, orders[kept]), n_spent + _N_ENDS)


def marginal_means(game: TabulatedGame, orders: IntArray) -> FloatArray:
    """Return the mean marginal contribution of each player over orders, (R, M)."""
    places = np.argsort(orders, axis=1)
    joined = places[:, None, :] < np.arange(game.n_players + 1)[:, None]
    values = game(joined.reshape(1, -1, game.n_players))
    gains = np.diff(values.reshape(len(game.table), -1, game.n_players + 1), axis=2)
    means: FloatArray = np.take_along_axis(gains, places[None], axis=2).mean(axis=1)
    return means


def shear_as_published(
    game: TabulatedGame,
    budget: int,
    rng: np.random.Generator,
    *,
    scores: FloatArray,
    antithetic: bool = True,
) -> Answer:
    """SHEAR player by player (Eq. 14), the other players by fair coins, nothing shared.

    Parameters
    ----------
    game, budget, rng
        The games, the budget for each row, the source of randomness.
    scores : array, (R, M, M)
        Cross-contributions.
    antithetic : bool
        Whether complementary subsets have complementary other players.
    """
    n_rows, n_players = scores.shape[:2]
    n_cooperators = ((budget - _N_ENDS) // n_players).bit_length() - 2
    others = np.where(np.eye(n_players, dtype=bool), -np.inf, scores)
    cooperators = np.argsort(-others, axis=2, kind="stable")[:, :, :n_cooperators]
    subsets = (np.arange(2**n_cooperators)[:, None] >> np.arange(n_cooperators)) % 2 == 1

    # In binary order, subsets n and 2^K − 1 − n are complementary: so are their complements.
    half = rng.random((1, n_players, len(subsets) // 2, n_players)) < 0.5
    other_half = rng.random(half.shape) < 0.5 if not antithetic else ~half[:, :, ::-1]
    drawn = np.concatenate([half, other_half], axis=2)
    coalitions = np.repeat(drawn, n_rows, axis=0)  # (R, M, 2^K, M)
    chosen = np.broadcast_to(cooperators[:, :, None, :], (*coalitions.shape[:3], n_cooperators))
    np.put_along_axis(coalitions, chosen, np.broadcast_to(subsets, chosen.shape), axis=3)

    own = np.eye(n_players, dtype=bool)[:, None]
    flat = (n_rows, -1, n_players)
    gains = game((coalitions | own).reshape(flat)) - game((coalitions & ~own).reshape(flat))
    sizes = subsets.sum(axis=1)
    weights = np.array([1 / ((n_cooperators + 1) * comb(n_cooperators, size)) for size in sizes])
    values = gains.reshape(n_rows, n_players, -1) @ weights
    return Answer(values, 2 * n_players * len(subsets))


def kernel_draws(n_players: int, n_draws: int, rng: np.random.Generator) -> BoolArray:
    """Draw coalitions, (n, M), by the Shapley kernel."""
    sizes = np.arange(1, n_players)
    weights = 1 / (sizes * (n_players - sizes))
    drawn = rng.choice(sizes, size=n_draws, p=weights / weights.sum())
    places = rng.random((n_draws, n_players)).argsort(axis=1)
    coalitions: BoolArray = places < drawn[:, None]
    return coalitions


def _affordable(together: BoolArray, budget: int) -> int:
    """Return how many of the sets of coalitions, (n, C, M), one after the other can be paid."""
    n_sets, n_each, n_players = together.shape
    places = (together @ (1 << np.arange(n_players))).ravel()
    _, first = np.unique(places, return_index=True)
    is_new = np.zeros(n_sets * n_each, dtype=np.intp)
    is_new[first] = 1
    spent: IntArray = is_new.reshape(n_sets, n_each).sum(axis=1).cumsum()
    return int(np.searchsorted(spent, budget, side="right"))


def regression(
    game: TabulatedGame, coalitions: BoolArray, weights: FloatArray | IntArray
) -> FloatArray:
    """Return the weighted least-squares attributions that sum to v(N) − v(∅), (R, M)."""
    n_players = game.n_players
    empty, grand = game.ends()
    shares = (grand - empty) / n_players
    # Orthonormal directions that leave the sum alone.
    basis = np.linalg.svd(np.ones((1, n_players)))[2][1:].T  # (M, M − 1)
    roots = np.sqrt(weights)[:, None]
    sizes = coalitions.sum(axis=1)
    rest = game(coalitions[None]) - empty[:, None] - sizes * shares[:, None]  # (R, C)
    solution = np.linalg.lstsq(roots * (coalitions @ basis), roots * rest.T, rcond=None)[0]
    values: FloatArray = shares[:, None] + (basis @ solution).T
    return values
