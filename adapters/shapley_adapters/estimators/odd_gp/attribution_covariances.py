"""Prior covariances of the Shapley values of an odd game, by integrals over one number.

The Shapley value of player i is the sum of 2 c_T / |T| over the odd sets T that hold i. Since
1/k = ∫₀¹ u^{k−1} du and 1/k² = ∫₀¹ −ln(u) u^{k−1} du, sums over all sets become integrals of

    t_i z_i {½ [Π_{j≠i} (1 + u t_j z_j) + Π_{j≠i} (1 − u t_j z_j)] − 1},

a polynomial in u of degree below M, which Gauss's rules of M/2 nodes integrate exactly.

A Shapley value is also a weighted sum of the game over the pairs S of complements. The weights
follow from the sizes of the coalitions. They are needed for the noise of the prior, which is
independent from pair to pair and is a part of the game as well.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.special

from ...array_types import FloatArray
from .kernels import FEWEST_PLAYERS, evenness_of_sizes, log_norm

_MOST_NODES = 64
"""Bound on the nodes of a rule. Beyond 128 players, the rest of the sum is left out."""


def interaction_covariances(
    signs: FloatArray, strengths: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the prior covariances of the Shapley values that interactions make.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, as 1 and −1.
    strengths : array, (..., M)
        Those of the players.

    Returns
    -------
    array, (..., n, M)
        Covariances with the values at `signs`, of interactions of variance 1.
    array, (..., M)
        Variances.
    """
    n_players = signs.shape[1]
    if n_players < FEWEST_PLAYERS:
        shape = strengths.shape[:-1]
        return np.zeros((*shape, *signs.shape)), np.zeros((*shape, n_players))
    n_points = n_nodes(n_players)
    covariances = _integrals(signs, strengths, *integration_rule(n_points))
    variances = 2 * _integrals(np.ones((1, n_players)), strengths, *log_integration_rule(n_points))
    return covariances, variances[..., 0, :]


def _integrals(
    signs: FloatArray, strengths: FloatArray, nodes: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return twice the integrals of the polynomials of all players at `signs`, (..., n, M).

    With x = u t_i, a product over the others is that over all divided by 1 ± x z_i, and
    1 / (1 + x z) = (1 − x z) / (1 − x²): two matrix products serve all players.
    """
    scale = log_norm(strengths)[..., None, None]
    products = nodes[:, None] * strengths[..., None, :]  # (..., q, M)
    level = 0.5 * np.log1p(-(products**2)).sum(axis=-1)[..., None, :] - scale
    tilt = signs @ np.arctanh(products).swapaxes(-1, -2)  # (..., n, q)
    raised, lowered = np.exp(level + tilt), np.exp(level - tilt)
    of_even = weights[:, None] / (1 - products**2)
    integrals: FloatArray = (raised + lowered) @ of_even
    integrals -= 2 * np.exp(-scale)
    integrals *= signs
    integrals -= (raised - lowered) @ (of_even * products)
    integrals *= strengths[..., None, :]
    return integrals


def n_nodes(n_players: int) -> int:
    """Return the nodes of a rule that is exact for all sets, or the bound on their number."""
    return min(_MOST_NODES, -(-n_players // 2))


@lru_cache(maxsize=64)
def integration_rule(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of Gauss and Legendre's rule on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    on_unit: FloatArray = (nodes + 1) / 2
    return on_unit, weights / 2


@lru_cache(maxsize=64)
def log_integration_rule(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of Gauss's rule on (0, 1) for the density −ln u.

    This is the density of a product of two uniform numbers, so that the rule for products of nodes
    of Legendre's is exact as well; Stieltjes' recurrence makes a rule of few nodes of it.
    """
    single_nodes, chances = integration_rule(n_nodes)
    points, masses = (
        np.outer(single_nodes, single_nodes).ravel(),
        np.outer(chances, chances).ravel(),
    )
    before, now = np.zeros_like(points), np.ones_like(points)
    diagonal: list[float] = []
    beside = [0.0]
    for _ in range(n_nodes):
        diagonal.append(float(masses @ (points * now * now)))
        following = (points - diagonal[-1]) * now - beside[-1] * before
        beside.append(float(np.sqrt(masses @ following**2)))
        before, now = now, following / beside[-1]
    jacobi = np.diag(diagonal) + np.diag(beside[1:-1], 1) + np.diag(beside[1:-1], -1)
    nodes, vectors = np.linalg.eigh(jacobi)
    return nodes, vectors[0] ** 2


def shapley_weights(signs: FloatArray) -> FloatArray:
    """Return the weight of each pair of complements in each Shapley value, (n, M).

    φ is the sum of these times y over one coalition of each pair, that of all players included:
    2 (s − 1)! (M − s)! / M! for the members of a coalition of s players, −2 s! (M − s − 1)! / M!
    for the others.
    """
    n_players = signs.shape[1]
    orders = np.array([-np.inf, *-_log_orders(n_players)])
    of_members, of_others = 2 * np.exp(orders), -2 * np.exp(np.roll(orders, -1))
    sizes = (signs > 0).sum(axis=1)
    weights: FloatArray = np.where(signs > 0, of_members[sizes, None], of_others[sizes, None])
    return weights


def squared_weights(n_players: int, jumps: bool = False) -> float:
    """Return the sum of the squares of a player's weights over all pairs but that of all players.

    Each size of coalitions that hold the player, s < M, adds (2 (s − 1)! (M − s)! / M!)² for each
    of C(M − 1, s − 1) coalitions, times the variance of their noise where the game jumps.
    """
    # Of the two coalitions of a pair, just one holds the player.
    logarithms = -_log_orders(n_players)[:-1]
    of_sizes = evenness_of_sizes(np.arange(1, n_players), n_players) if jumps else 1.0
    return float(4 / n_players * (of_sizes * np.exp(logarithms)).sum())


def left_of_other_pairs(
    of_all: FloatArray | float, weights: FloatArray, noise: FloatArray, n_known: int = 1
) -> FloatArray:
    """Return the variances by the noise of pairs of complements not evaluated, (..., k).

    Parameters
    ----------
    of_all : float or array, (..., 1) or (..., k)
        The variances by the noise of all pairs that have any.
    weights : array, (n, k)
        The weights of the evaluated coalitions in what is estimated.
    noise : array, (..., n)
        The variances of their noise.
    n_known : int
        The number of first coalitions that have no noise.
    """
    of_evaluated = (noise[..., n_known:, None] * weights[n_known:] ** 2).sum(axis=-2)
    left: FloatArray = np.maximum(of_all - of_evaluated, 0.0)
    return left


def _log_orders(n_players: int) -> FloatArray:
    """Return the logarithm of M! / ((s − 1)! (M − s)!) for s = 1 to M."""
    s = np.arange(1.0, n_players + 1)
    gammaln = scipy.special.gammaln
    logarithms: FloatArray = gammaln(n_players + 1.0) - gammaln(s) - gammaln(n_players - s + 1)
    return logarithms
