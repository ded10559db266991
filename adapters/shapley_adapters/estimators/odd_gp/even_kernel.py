"""Gaussian-process prior of the even part of a game, with interactions of all even sizes.

The even part of a game, e(S) = (v(S) + v(N∖S)) / 2, is a sum of products of z_j = ±1 over sets T of
even size. Its coefficients have independent priors, of variance Π_{j∈T} t_j / norm for all even
sets but the empty one. The covariance of e at z and z′ has a closed form,

    Σ_T Π_{j∈T} t_j z_j z′_j = ½ [Π_j (1 + t_j z_j z′_j) + Π_j (1 − t_j z_j z′_j)] − 1.

The norm is its value at z = z′, so that the interactions have variance 1. The constant of the game
cancels, because only differences from the value of all players together are used.

The Shapley interaction index of a pair is the sum of 4 c_T / (|T| − 1) over the even sets that hold
it, and 1/(k + 1) = ∫₀¹ u^k du. So its covariances are integrals of polynomials in u, which Gauss's
rules integrate exactly.
"""

from __future__ import annotations

import numpy as np

from ...array_types import FloatArray
from ...interactions.indices import pairs_of, weights_of_members
from .attribution_covariances import integration_rule, log_integration_rule

_MOST_NODES = 64
"""Bound on the nodes of a rule. Beyond 128 players, the rest of the sum is left out."""


def even_log_norm(strengths: FloatArray) -> float:
    """Return the logarithm of Σ Π_{j∈T} t_j over even sets T of two players or more."""
    raised, lowered = (np.log1p(sign * strengths).sum() for sign in (1, -1))
    return float(raised + np.log(0.5 * (1 + np.exp(lowered - raised)) - np.exp(-raised)))


def even_kernel(
    signs: FloatArray, other_signs: FloatArray, strengths: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the kernel of even sets between coalitions, (n, m), and the sum over odd sets.

    Both are divided by the norm.
    """
    scale = even_log_norm(strengths)
    half = 0.5 * np.exp(0.5 * np.log1p(-(strengths**2)).sum() - scale)
    raised = np.exp((signs * np.arctanh(strengths)) @ other_signs.T)
    lowered = half / raised
    raised *= half
    return raised + lowered - np.exp(-scale), raised - lowered


def sizes_of_even_sets(strengths: FloatArray) -> tuple[float, float]:
    """Return the mean and the variance of |T| over even sets, each weighted by Π_{j∈T} t_j."""
    scale, first, second = even_log_norm(strengths), 0.0, 0.0
    for sign in (1, -1):
        product = 0.5 * np.exp(np.log1p(sign * strengths).sum() - scale)
        rates = sign * strengths / (1 + sign * strengths)
        first += product * rates.sum()
        second += product * (rates.sum() ** 2 - (rates**2).sum())
    return float(first), float(max(second + first - first**2, 0.0))


def pair_covariances(index: str, signs: FloatArray, strengths: FloatArray) -> FloatArray:
    """Return the prior covariances of interactions with the values at coalitions, (n, P)."""
    n_players = signs.shape[1]
    if index == "banzhaf":
        first, second = pairs_of(n_players)
        of_pairs = 4 * np.exp(-even_log_norm(strengths)) * strengths[first] * strengths[second]
        covariances: FloatArray = of_pairs * signs[:, first] * signs[:, second]
        return covariances
    rule = integration_rule(n_nodes(n_players))
    return 4 * pair_integrals(signs, strengths, even_log_norm(strengths), rule)


def pair_variances(index: str, strengths: FloatArray) -> FloatArray:
    """Return the prior variances of the interactions, (P,)."""
    n_players = len(strengths)
    ones, rule = np.ones((1, n_players)), log_integration_rule(n_nodes(n_players))
    if index == "banzhaf":
        variances = 4 * pair_covariances(index, ones, strengths)
    else:
        variances = 16 * pair_integrals(ones, strengths, even_log_norm(strengths), rule)
    of_pairs: FloatArray = variances[0]
    return of_pairs


def row_sum_variances(index: str, strengths: FloatArray) -> FloatArray:
    """Return the prior variances of the sums of each player's interactions, (M,)."""
    if index == "banzhaf":
        sums_of_others = strengths.sum() - strengths
        of_pairs: FloatArray = 16 * np.exp(-even_log_norm(strengths)) * strengths * sums_of_others
        return of_pairs
    return 16 * holding_each_player(strengths)


def holding_each_player(strengths: FloatArray) -> FloatArray:
    """Return the share of the variance of the sets that hold each player, (M,)."""
    scale = even_log_norm(strengths)
    raised, lowered = (0.5 * np.exp(np.log1p(sign * strengths).sum() - scale) for sign in (1, -1))
    shares: FloatArray = strengths * (raised / (1 + strengths) - lowered / (1 - strengths))
    return shares


def pair_weights(index: str, signs: FloatArray) -> FloatArray:
    """Return the weight of e at each coalition in the interaction of each pair, (n, P).

    An interaction is the sum of these times e over one coalition of each pair of complements.
    """
    n_players = signs.shape[1]
    weights = weights_of_members(index, n_players)
    return entries_of_pairs(weights + weights[::-1, ::-1], signs)  # of S and of its complement


def entries_of_pairs(of_members: FloatArray, signs: FloatArray) -> FloatArray:
    """Return the entries, (n, P), of (3, M + 1) by members of a pair in S and by the size of S."""
    first, second = pairs_of(signs.shape[1])
    members = signs > 0
    n_inside = members[:, first].astype(np.intp) + members[:, second]
    entries: FloatArray = of_members[n_inside, members.sum(axis=1)[:, None]]
    return entries


def squared_pair_weights(index: str, n_players: int) -> tuple[float, float]:
    """Return the sums of the squares of weights over all pairs of complements.

    The first is that of an interaction, the second that of the sum of a player's interactions.
    """
    if index == "banzhaf":
        of_pair = 16 * 0.5 ** (n_players - 1)
        return of_pair, of_pair * (n_players - 1)
    weights = weights_of_members("shapley", n_players)[0][: n_players - 1]
    # Of each size s, there are C(M − 2, s) coalitions of the other players, and this number times
    # the weight is 1 / (M − 1).
    return float(8 * weights.sum() / (n_players - 1)), 8.0


def n_nodes(n_players: int) -> int:
    """Return the nodes of a rule that is exact for all sets, or the bound on their number."""
    return min(_MOST_NODES, -(-n_players // 2))


def pair_integrals(
    signs: FloatArray,
    strengths: FloatArray,
    log_norm: float,
    rule: tuple[FloatArray, FloatArray],
    is_odd: bool = False,
) -> FloatArray:
    """Return the integrals over u of the even part of t_i t_j z_i z_j Π (1 + u t_l z_l), (n, P).

    Or of the odd part. The product is over the other players. It is that over all players by
    1 ± x z for both players of the pair, with x = u t, and 1 / (1 + x z) = (1 − x z) / (1 − x²). So
    four matrix products serve all pairs. The result is divided by the norm.
    """
    nodes, chances = rule
    first, second = pairs_of(signs.shape[1])
    products = nodes[:, None] * strengths  # (q, M)
    level = 0.5 * np.log1p(-(products**2)).sum(axis=1) - log_norm
    tilt = signs @ np.arctanh(products).T  # (n, q)
    raised, lowered = 0.5 * np.exp(level + tilt), 0.5 * np.exp(level - tilt)
    of_parity, of_other = raised + lowered, raised - lowered
    if is_odd:
        of_parity, of_other = of_other, of_parity
    shares = 1 / (1 - products**2)
    of_pairs = chances[:, None] * shares[:, first] * shares[:, second]  # (q, P)
    of_first, of_second = signs[:, first], signs[:, second]
    of_both, signs_of_pairs = (
        of_pairs * products[:, first] * products[:, second],
        of_first * of_second,
    )
    integrals: FloatArray = of_parity @ of_pairs + signs_of_pairs * (of_parity @ of_both)
    integrals -= of_first * (of_other @ (of_pairs * products[:, first]))
    integrals -= of_second * (of_other @ (of_pairs * products[:, second]))
    return integrals * signs_of_pairs * (strengths[first] * strengths[second])
