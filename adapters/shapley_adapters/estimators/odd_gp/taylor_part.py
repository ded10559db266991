"""The part of the odd sets of a game in Shapley–Taylor interactions of pairs.

The Shapley–Taylor interaction of a pair is its Shapley interaction, which the even part gives,
less the sum of 4 c_T / |T| over the odd sets that hold the pair. The posterior of that sum is taken
under the fitted prior of the odd part. The main effect of a player is v(i) − v(∅): where the pair
of a single player and its complement is evaluated, the interactions of the player have a known sum.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ...array_types import AttributionArray, BoolArray, CoalitionArray, FloatArray, IntArray
from ...interactions.indices import membership, pairs_of, sum_of_squares, weights_of_members
from ...interactions.result import PairSolution
from .attribution_covariances import integration_rule, log_integration_rule
from .even_kernel import entries_of_pairs, n_nodes, pair_integrals
from .kernels import FEWEST_PLAYERS, OddKernel, Prior, log_norm
from .marginal_likelihood import covariance_of, noise_of, whitened_by
from .prior_fitting import around_centres, fit_priors, strength_prior
from .prior_grid import best_of_grid

_LEARNED_FROM, _MOST_VALUES = 240, 2048
"""Number of pairs of complements that the prior is learned from, and that are given at most."""


def with_odd_part(
    solution: PairSolution,
    members: CoalitionArray,
    values: FloatArray,
    attributions: AttributionArray,
    errors: AttributionArray,
) -> PairSolution:
    """Return Shapley–Taylor interactions, from those of the even part.

    Parameters
    ----------
    solution : PairSolution
        The Shapley interactions, and errors of the main effects by the even part alone.
    members : array, (n, M)
        One coalition of each pair of complements.
    values : array, (R, n + 1, K)
        The odd part of each game, at all players together first.
    attributions, errors : arrays, (R, M, K)
        The Shapley values and their standard errors.
    """
    n_players = members.shape[1]
    if n_players < FEWEST_PLAYERS:
        return solution
    n_rows, _, n_outputs = values.shape
    means, variances = np.zeros((2, *solution.values.shape))
    maps = _OddMaps(members[:_MOST_VALUES])
    for row, output in np.ndindex(n_rows, n_outputs):
        game = np.ascontiguousarray(values[row, : _MOST_VALUES + 1, output])
        means[row, :, output], variances[row, :, output] = maps.posterior(game)
    is_single, singles = _singles(members)
    main_effects = values[:, :1] + np.take(values, 1 + singles, axis=1)  # of the odd part
    excess = 2 * (attributions - main_effects) - _sums_of_players(means, n_players)
    excess[:, ~is_single] = 0.0
    odd_errors = errors + _sums_of_players(np.sqrt(variances), n_players) / 2
    odd_errors[:, is_single] = 0.0
    return PairSolution(
        solution.values + means + _spread(excess),
        np.sqrt(solution.standard_errors**2 + variances),
        np.sqrt(solution.main_errors**2 + odd_errors**2),
    )


def _singles(members: CoalitionArray) -> tuple[BoolArray, IntArray]:
    """Return which players are evaluated alone, (M,), and the numbers of these coalitions.

    One coalition of each pair is a member here; of a single player, it is the player itself.
    """
    is_alone = members.sum(axis=1) == 1
    alone = np.flatnonzero(is_alone)
    numbers = np.zeros(members.shape[1], dtype=np.intp)
    numbers[members[alone].argmax(axis=1)] = alone
    is_single = np.asarray(members[alone].any(axis=0))
    return is_single, numbers


def _sums_of_players(of_pairs: FloatArray, n_players: int) -> FloatArray:
    """Return the sums over the pairs of each player, (R, M, K), of (R, P, K)."""
    sums: FloatArray = membership(n_players).T @ of_pairs
    return sums


def _spread(excess: FloatArray) -> FloatArray:
    """Return the least changes of interactions, (R, P, K), with these sums by player, (R, M, K)."""
    n_players = excess.shape[1]
    total = excess.sum(axis=1, keepdims=True) / (2 * n_players - 2)
    of_players = (excess - total) / (n_players - 2)
    first, second = pairs_of(n_players)
    spread: FloatArray = of_players[:, first] + of_players[:, second]
    return spread


class _OddMaps:
    """How the odd part at the evaluated coalitions counts in the interactions.

    Parameters
    ----------
    members : array, (n, M)
        One coalition of each pair of complements.
    """

    def __init__(self, members: CoalitionArray) -> None:
        n_players = members.shape[1]
        with_all = np.concatenate([np.ones((1, n_players), dtype=bool), members])
        self.signs = np.where(with_all, 1.0, -1.0)
        weights = weights_of_members("shapley_taylor", n_players)
        of_odd = weights - weights[::-1, ::-1]
        self.weights = entries_of_pairs(of_odd, self.signs)
        # Of the pairs of complements, all but that of all players have noise.
        self.squares = sum_of_squares(of_odd) / 2 - float(of_odd[2, -1] ** 2)

    def posterior(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means and the variances of the odd part's share, (P,) each, of a game."""
        size = float(np.sqrt((values**2).mean()))
        if size == 0:
            return np.zeros(self.weights.shape[1]), np.zeros(self.weights.shape[1])
        scaled = values / size
        prior = self._fitted(scaled[: _LEARNED_FROM + 1])
        kernel = OddKernel.at(self.signs, prior.strengths)
        covariance = covariance_of(kernel, prior)
        noise, _ = noise_of(prior, self.signs[: len(scaled)])
        common = prior.interactions * self._covariances(prior.strengths)
        common += noise[:, None] * self.weights
        factor = scipy.linalg.cholesky(covariance, lower=True, check_finite=False)
        whitened, loadings = whitened_by(factor, scaled), whitened_by(factor, common)
        variances = prior.interactions * self._variances(prior.strengths)
        variances += prior.noise_variance * self.squares
        remaining = np.maximum(variances - (loadings**2).sum(axis=0), 0.0)
        scale = (whitened[len(whitened) // 2 :] ** 2).mean()
        return loadings.T @ whitened * size, remaining * scale * size**2

    def _fitted(self, values: FloatArray) -> Prior:
        signs = self.signs[: len(values)]
        starts = Prior.stack(best_of_grid(signs, values[:, None]))
        expectation = strength_prior(None, starts.strengths.shape)
        start = around_centres(starts, expectation)
        return fit_priors(signs, values[None], start, expectation).subset_games(0)

    def _covariances(self, strengths: FloatArray) -> FloatArray:
        """Return the covariances of the shares with the values, (n, P)."""
        nodes, chances = integration_rule(n_nodes(len(strengths)))
        rule = nodes, chances * nodes
        scale = float(log_norm(strengths))
        return -4 * pair_integrals(self.signs, strengths, scale, rule, is_odd=True)

    def _variances(self, strengths: FloatArray) -> FloatArray:
        """Return the prior variances of the shares, (P,)."""
        nodes, chances = log_integration_rule(n_nodes(len(strengths)))
        rule = nodes, chances * nodes
        ones, scale = np.ones((1, len(strengths))), float(log_norm(strengths))
        variances: FloatArray = 16 * pair_integrals(ones, strengths, scale, rule, is_odd=True)[0]
        return variances
