"""The estimators of the SHEAR paper's figures, with its own accounts: N · M draws for each row.

A coalition that is drawn twice counts twice, and nothing is shared between players, as in the
authors' code.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from coalition_games import FloatArray, IntArray, TabulatedGame
from peers import (
    averaged_small_regressions,
    kernel_draws,
    marginal_means,
    regression,
    shear_as_published,
)

Estimate = Callable[[TabulatedGame, int, np.random.Generator], FloatArray]
"""A game, N, and the source of randomness to attributions, (R, M)."""


def shear(scores: FloatArray) -> Estimate:
    """Return SHEAR with these cross-contributions, (R, M, M)."""

    def estimate(game: TabulatedGame, per_player: int, rng: np.random.Generator) -> FloatArray:
        budget = per_player * game.n_players + 2
        return shear_as_published(game, budget, rng, scores=scores).values

    return estimate


def shear_unpaired(scores: FloatArray) -> Estimate:
    """Return SHEAR without antithetic draws: the other players are drawn for each subset anew."""

    def estimate(game: TabulatedGame, per_player: int, rng: np.random.Generator) -> FloatArray:
        budget = per_player * game.n_players + 2
        return shear_as_published(game, budget, rng, scores=scores, antithetic=False).values

    return estimate


def shear_random_cooperators(
    game: TabulatedGame, per_player: int, rng: np.random.Generator
) -> FloatArray:
    """Return SHEAR's values with cooperators that are drawn at random."""
    scores = rng.random((len(game.table), game.n_players, game.n_players))
    return shear(scores)(game, per_player, rng)


def kernel_shap(*, paired: bool) -> Estimate:
    """Return KernelSHAP as in Appendix H: the mean of M regressions on N draws each."""

    def estimate(game: TabulatedGame, per_player: int, rng: np.random.Generator) -> FloatArray:
        budget = per_player * game.n_players + 2
        return averaged_small_regressions(game, budget, rng, paired=paired).values

    return estimate


def kernel_shap_welford(
    game: TabulatedGame, per_player: int, rng: np.random.Generator
) -> FloatArray:
    """Return KS-WF: one regression on N · M draws; the paper computes its matrices as means."""
    coalitions = kernel_draws(game.n_players, per_player * game.n_players, rng)
    return regression(game, coalitions, np.ones(len(coalitions)))


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
        orders = _orders(per_player - n_paired // 2, n_players, rng)
        orders = np.concatenate([orders, orders[: n_paired // 2, ::-1]])
        return marginal_means(game, orders)

    return estimate


def _orders(n: int, n_players: int, rng: np.random.Generator) -> IntArray:
    orders: IntArray = rng.permuted(np.tile(np.arange(n_players), (n, 1)), axis=1)
    return orders
