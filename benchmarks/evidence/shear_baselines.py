"""The estimators of the SHEAR paper's figures, with its own accounts: N · M draws for each row.

A coalition that is drawn twice counts twice, and nothing is shared between players, as in the
authors' code. The draws of the others are shared by all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
from games import BoolArray, FloatArray, TabulatedGame

Estimate = Callable[[TabulatedGame, int, np.random.Generator], FloatArray]
"""A game, N, and the source of randomness to attributions, (R, M)."""


def shear(scores: FloatArray, *, antithetic: bool = True) -> Estimate:
    """Return SHEAR player by player (Eq. 14), the other players by fair coins, nothing shared.

    Parameters
    ----------
    scores : array, (R, M, M)
        Cross-contributions.
    antithetic : bool
        Whether complementary subsets have complementary other players, or draws of their own.
    """

    def estimate(game: TabulatedGame, per_player: int, rng: np.random.Generator) -> FloatArray:
        n_rows, n_players = scores.shape[:2]
        n_cooperators = per_player.bit_length() - 2
        others = np.where(np.eye(n_players, dtype=bool), -np.inf, scores)
        cooperators = np.argsort(-others, axis=2, kind="stable")[:, :, :n_cooperators]
        subsets = (np.arange(2**n_cooperators)[:, None] >> np.arange(n_cooperators)) % 2 == 1

        # In binary order, subsets n and 2^K − 1 − n are complementary: so are their complements.
        half = rng.random((1, n_players, len(subsets) // 2, n_players)) < 0.5
        other_half = ~half[:, :, ::-1] if antithetic else rng.random(half.shape) < 0.5
        drawn = np.concatenate([half, other_half], axis=2)
        coalitions = np.repeat(drawn, n_rows, axis=0)  # (R, M, 2^K, M)
        chosen = np.broadcast_to(cooperators[:, :, None, :], (*coalitions.shape[:3], n_cooperators))
        np.put_along_axis(coalitions, chosen, np.broadcast_to(subsets, chosen.shape), axis=3)

        own = np.eye(n_players, dtype=bool)[:, None]
        flat = (n_rows, -1, n_players)
        gains = game((coalitions | own).reshape(flat)) - game((coalitions & ~own).reshape(flat))
        sizes = subsets.sum(axis=1)
        weights = [1 / ((n_cooperators + 1) * comb(n_cooperators, size)) for size in sizes]
        values: FloatArray = gains.reshape(n_rows, n_players, -1) @ np.array(weights)
        return values

    return estimate


def shear_random_cooperators(
    game: TabulatedGame, per_player: int, rng: np.random.Generator
) -> FloatArray:
    """Return SHEAR's values with cooperators that are drawn at random."""
    scores = rng.random((len(game.table), game.n_players, game.n_players))
    return shear(scores)(game, per_player, rng)


def kernel_shap(*, paired: bool) -> Estimate:
    """Return KernelSHAP as in Appendix H: the mean of M regressions on N draws each.

    A regression with too few draws takes, of all solutions, the one nearest to equal shares.
    """

    def estimate(game: TabulatedGame, per_player: int, rng: np.random.Generator) -> FloatArray:
        n_players = game.n_players
        total = np.zeros((len(game.table), n_players))
        for _ in range(n_players):
            coalitions = _kernel_draws(n_players, per_player // 2 if paired else per_player, rng)
            if paired:
                coalitions = np.concatenate([coalitions, ~coalitions])
            total += _regression(game, coalitions)
        return total / n_players

    return estimate


def kernel_shap_welford(
    game: TabulatedGame, per_player: int, rng: np.random.Generator
) -> FloatArray:
    """Return KS-WF: one regression on N · M draws; the paper computes its matrices as means."""
    return _regression(game, _kernel_draws(game.n_players, per_player * game.n_players, rng))


def _kernel_draws(n_players: int, n_draws: int, rng: np.random.Generator) -> BoolArray:
    """Draw coalitions, (n, M), by the Shapley kernel."""
    sizes = np.arange(1, n_players)
    weights = 1 / (sizes * (n_players - sizes))
    drawn = rng.choice(sizes, size=n_draws, p=weights / weights.sum())
    places = rng.random((n_draws, n_players)).argsort(axis=1)
    coalitions: BoolArray = places < drawn[:, None]
    return coalitions


def _regression(game: TabulatedGame, coalitions: BoolArray) -> FloatArray:
    """Return the least-squares attributions that sum to v(N) − v(∅), (R, M)."""
    n_players = game.n_players
    empty, grand = game.ends()
    shares = (grand - empty) / n_players
    # Orthonormal directions that leave the sum alone.
    basis = np.linalg.svd(np.ones((1, n_players)))[2][1:].T  # (M, M − 1)
    sizes = coalitions.sum(axis=1)
    rest = game(coalitions[None]) - empty[:, None] - sizes * shares[:, None]  # (R, C)
    solution = np.linalg.lstsq(coalitions @ basis, rest.T, rcond=None)[0]
    values: FloatArray = shares[:, None] + (basis @ solution).T
    return values


def permutations(n_pairs_missing: int | None) -> Estimate:
    """Return permutation sampling with N orders for each row.

    Parameters
    ----------
    n_pairs_missing : int or None
        How many pairs of an order and its reverse are two orders without their reverses: 0 is
        antithetic sampling, 1 is the authors' code, None has no reverses at all.
    """

    def estimate(game: TabulatedGame, per_player: int, rng: np.random.Generator) -> FloatArray:
        n_players = game.n_players
        n_paired = 0 if n_pairs_missing is None else per_player - 2 * n_pairs_missing
        drawn = per_player - n_paired // 2
        orders = rng.permuted(np.tile(np.arange(n_players), (drawn, 1)), axis=1)
        orders = np.concatenate([orders, orders[: n_paired // 2, ::-1]])
        places = np.argsort(orders, axis=1)
        joined = places[:, None, :] < np.arange(n_players + 1)[:, None]
        values = game(joined.reshape(1, -1, n_players))
        gains = np.diff(values.reshape(len(game.table), -1, n_players + 1), axis=2)
        means: FloatArray = np.take_along_axis(gains, places[None], axis=2).mean(axis=1)
        return means

    return estimate
