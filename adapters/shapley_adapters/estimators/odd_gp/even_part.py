"""Interactions of pairs as the posterior of the even part of a game, given its values.

The values of a coalition and its complement give the odd part of the game by their difference, and
the even part by their sum. The Shapley values come from the odd part, the interactions of pairs
from the even part: no further evaluation is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ...array_types import AttributionArray, CoalitionArray, FloatArray, ValueArray
from ...interactions.indices import membership
from ...interactions.result import PairSolution
from ...threads.row_threads import map_in_threads, n_threads_within_memory
from .even_kernel import (
    EvenPrior,
    best_even_priors,
    choices_of_equal_strengths,
    covariance_of_differences,
    even_choices,
    even_kernel,
    fitted_prior,
    pair_covariances,
    pair_variances,
    pair_weights,
    row_sum_variances,
    squared_pair_weights,
)
from .marginal_likelihood import log_evidence, whitened_by
from .sparse_pairs import PairRegression, differences_of_pairs, with_sparse_pairs

_LEARNED_FROM = 240
"""Number of pairs of complements that the prior is learned from: the first, most informative."""

_MOST_SEARCHED = 1024
"""Number of pairs of complements in the search for pairs of players that stand out, at most."""

_MOST_VALUES = 2048
"""Number of pairs of complements that the posterior is given: the first, if there are more."""

_SHARED_MATRICES, _MATRICES = 4, 8
"""Number of matrices, (n, P), that all games share, and that each game needs at once."""

_RELATIVE_ERROR = 1e-2
"""Bound on the posterior standard deviations over the interactions. Above it, it is not tried
whether the game consists of pairs."""

_LEAST_CHANCE = 1e-3
"""Choices of the prior that are less likely than the likeliest one by this factor are left out."""

_SHARE_LEARNED = 1.5
"""Degrees of freedom that each learned strength uses up in the scale of the errors. More than 1,
because there are several priors to choose from. Measured with 12 players on networks, trees and
neighbours: with 1, 91 to 98 % of the interactions lie in 95 % intervals; with 1.5, 93 to 99 %."""

_SHARE_OF_PAIR = 3.0
"""The same for each pair with a separate variance, which is chosen among all pairs. Measured on
boosted trees with 30 players at 16 evaluations per player: 85 % of the interactions lie in 95 %
intervals with 0, 90 % with 1.5, and 93 % with 3."""


@dataclass(frozen=True)
class EvenPosterior:
    """Means and variances of interactions, (P,) each, and variances of their sums by player, (M,).

    The sums are those of all interactions of a player.
    """

    means: FloatArray
    variances: FloatArray
    sum_variances: FloatArray

    def scaled(self, scale: float) -> EvenPosterior:
        """Return the posterior of the game times a number."""
        square = scale**2
        return EvenPosterior(
            self.means * scale, self.variances * square, self.sum_variances * square
        )


def even_memory(n_players: int, n_coalitions: int) -> int:
    """Return the bytes that the interactions of a game need, from so many values."""
    n_pairs = n_players * (n_players - 1) // 2
    of_matrix = 8 * n_pairs * min(n_coalitions, _MOST_VALUES)
    return (_SHARED_MATRICES + _MATRICES) * of_matrix + 8 * n_pairs * n_players


def even_pair_solution(
    index: str,
    members: CoalitionArray,
    values: ValueArray,
    weights: str,
    log_weights: FloatArray | None,
    errors: AttributionArray,
) -> PairSolution:
    """Return the interactions of all rows and outputs, and their standard errors.

    Parameters
    ----------
    index, members, weights
        As in `even_posteriors`.
    values : array, (R, n + 1, K)
        The even part of each game, at all players together first.
    log_weights : array, (R, M), or None
        Prior means of the logarithms of the strengths.
    errors : array, (R, M, K)
        Standard errors of the attributions, which the odd part gives independently.
    """
    n_rows, _, n_outputs = values.shape
    # Contiguous, so that sums have the same order for one row alone.
    of_games = np.ascontiguousarray(values.swapaxes(1, 2)).reshape(n_rows * n_outputs, -1)
    centres = None if log_weights is None else np.repeat(log_weights, n_outputs, axis=0)
    games = even_posteriors(index, members, of_games, weights, centres)

    def stacked(arrays: list[FloatArray]) -> FloatArray:
        return np.array(arrays).reshape(n_rows, n_outputs, -1).swapaxes(1, 2)

    sums = stacked([game.sum_variances for game in games])
    return PairSolution(
        values=stacked([game.means for game in games]),
        standard_errors=np.sqrt(stacked([game.variances for game in games])),
        main_errors=np.sqrt(errors**2 + sums / 4),
    )


def even_posteriors(
    index: str,
    members: CoalitionArray,
    values: FloatArray,
    weights: str,
    log_weights: FloatArray | None,
) -> list[EvenPosterior]:
    """Return the posterior of each game.

    Parameters
    ----------
    index : str
        The index of interaction.
    members : array, (n, M)
        One coalition of each pair of complements.
    values : array, (B, n + 1)
        The even part of each game at all players together, and at these coalitions.
    weights : {"learned", "equal"}
        Whether each player has its own strength.
    log_weights : array, (B, M), or None
        Prior means of the logarithms of the strengths.
    """
    n_players = members.shape[1]
    with_all = np.concatenate([np.ones((1, n_players), dtype=bool), members])[: _MOST_VALUES + 1]
    signs = np.where(with_all, 1.0, -1.0)
    differences = values[:, 1 : len(signs)] - values[:, :1]
    sizes = np.sqrt((differences**2).mean(axis=1))
    rounding = 2 * np.finfo(float).eps * np.abs(values).max(axis=1)
    is_something = sizes > rounding  # the differences of an additive game are rounding
    scales = np.where(is_something, sizes, 1.0)
    rounding = rounding / scales
    differences = differences / scales[:, None]
    first_values = slice(0, _LEARNED_FROM)
    starts = best_even_priors(signs[: _LEARNED_FROM + 1], differences[:, first_values])
    pairs = _PairMaps.from_signs(index, signs)

    def solve(game: int) -> EvenPosterior:
        centres = np.zeros(n_players) if log_weights is None else log_weights[game]
        target = differences[game]
        if weights == "equal":
            choices = list(choices_of_equal_strengths(starts[game]))
            return pairs.posterior(target, choices, 0.0, rounding[game])
        first = signs[: _LEARNED_FROM + 1]
        fitted = fitted_prior(first, target[first_values], starts[game], centres)
        if len(signs) - 1 > n_players:  # fewer values do not even determine single players
            searched = slice(0, _MOST_SEARCHED)
            fitted = with_sparse_pairs(
                signs[: _MOST_SEARCHED + 1], pairs.features[searched], target[searched], fitted
            )
        choices = list(even_choices(starts[game], fitted, centres))
        n_own = 0 if fitted.of_pairs is None else np.count_nonzero(fitted.of_pairs)
        n_fitted = _SHARE_LEARNED * n_players + _SHARE_OF_PAIR * n_own
        return pairs.posterior(target, choices, n_fitted, rounding[game])

    games = np.flatnonzero(is_something).tolist()
    n_pairs = n_players * (n_players - 1) // 2
    n_threads = n_threads_within_memory(8 * _MATRICES * n_pairs * len(signs))
    solved = dict(zip(games, map_in_threads(solve, games, n_threads), strict=True))
    constant = EvenPosterior(np.zeros(n_pairs), np.zeros(n_pairs), np.zeros(n_players))
    return [
        solved[game].scaled(scale) if game in solved else constant
        for game, scale in enumerate(scales.tolist())
    ]


@dataclass(frozen=True)
class _PairMaps:
    """How the values at the evaluated coalitions count in the interactions of all pairs.

    Attributes
    ----------
    index : str
        The index of interaction.
    signs : array, (n + 1, M)
        The coalitions, that of all players first.
    weights : array, (n, P)
        The weight of each difference from the first value in the interactions, which the noise of
        a coalition has.
    members : array, (P, M)
        1 for the players of a pair.
    features : array, (n, P)
        The products of the signs of a pair, less those of the first coalition.
    regression : PairRegression
        Finds games of pairs alone.
    """

    index: str
    signs: FloatArray
    weights: FloatArray
    members: FloatArray
    features: FloatArray
    regression: PairRegression

    @classmethod
    def from_signs(cls, index: str, signs: FloatArray) -> _PairMaps:
        members = membership(signs.shape[1])
        weights = pair_weights(index, signs)
        regression = PairRegression(signs)
        features = differences_of_pairs(signs)
        return cls(index, signs, weights[1:] - weights[:1], members, features, regression)

    def posterior(
        self,
        differences: FloatArray,
        choices: Sequence[EvenPrior],
        n_fitted: float,
        rounding: float,
    ) -> EvenPosterior:
        """Return the posterior of a game, (n,), averaged over priors by their evidence."""
        factors, scores = [], []
        for prior in choices:
            kernel, _ = even_kernel(self.signs, self.signs, prior.strengths)
            covariance = covariance_of_differences(prior.share * kernel, prior.noise)
            if prior.of_pairs is not None:
                is_own = prior.of_pairs > 0
                own_features = self.features[:, is_own] * np.sqrt(prior.of_pairs[is_own])
                covariance += own_features @ own_features.T
            factor = scipy.linalg.cholesky(covariance, lower=True, check_finite=False)
            whitened = whitened_by(factor, differences)
            half = np.log(np.diag(factor)).sum()
            scores.append(float(log_evidence(half, whitened[:, None])[0]) + prior.log_density)
            factors.append((factor, whitened))
        chances = np.exp(np.array(scores) - max(scores))
        chances *= chances >= _LEAST_CHANCE
        chances /= chances.sum()
        likely = np.flatnonzero(chances).tolist()
        of_choices = [self._under(choices[number], *factors[number], n_fitted) for number in likely]
        posterior = _mixture(chances[likely], of_choices)
        return self._exact_if_of_pairs(differences, posterior, rounding)

    def _exact_if_of_pairs(
        self, differences: FloatArray, posterior: EvenPosterior, rounding: float
    ) -> EvenPosterior:
        """Return the posterior, exact for games whose even part consists of pairs alone."""
        deviations = np.sqrt(posterior.variances)
        if deviations.sum() > _RELATIVE_ERROR * np.abs(posterior.means).sum():
            return posterior
        exact = self.regression.interactions(differences, rounding)
        if exact is None:
            return posterior
        means, variances = exact
        return EvenPosterior(means, variances, np.full_like(posterior.sum_variances, variances[0]))

    def _under(
        self, prior: EvenPrior, factor: FloatArray, whitened: FloatArray, n_fitted: float
    ) -> EvenPosterior:
        """Return the posterior under one prior, from whitened differences, (n,)."""
        strengths, share = prior.strengths, prior.share
        covariances = pair_covariances(self.index, self.signs, strengths)
        common = share * (covariances[1:] - covariances[:1]) + prior.noise * self.weights
        of_noise, of_sums = squared_pair_weights(self.index, self.signs.shape[1])
        variances = share * pair_variances(self.index, strengths) + prior.noise * of_noise
        sum_variances = share * row_sum_variances(self.index, strengths) + prior.noise * of_sums
        if prior.of_pairs is not None:
            common += 4 * prior.of_pairs * self.features
            variances = variances + 16 * prior.of_pairs
            sum_variances = sum_variances + 16 * prior.of_pairs @ self.members
        loadings = whitened_by(factor, common)
        of_players = loadings @ self.members
        scale = _scale_of_errors(whitened, n_fitted)
        return EvenPosterior(
            loadings.T @ whitened,
            np.maximum(variances - (loadings**2).sum(axis=0), 0.0) * scale,
            np.maximum(sum_variances - (of_players**2).sum(axis=0), 0.0) * scale,
        )


def _scale_of_errors(whitened: FloatArray, n_fitted: float) -> float:
    """Return the factor of posterior variances that fits the observed errors of predictions.

    A whitened value is the error of its prediction from the values before it, in units of the
    expected one. Those of the later half count, corrected for the fitted degrees of freedom.
    """
    n = len(whitened)
    return float((whitened[n // 2 :] ** 2).mean() * n / max(n - n_fitted, n / 3))


def _mixture(chances: FloatArray, posteriors: Sequence[EvenPosterior]) -> EvenPosterior:
    """Return means and variances of a mixture; the sums of all choices have about one mean."""
    all_means = np.array([posterior.means for posterior in posteriors])
    means = chances @ all_means
    spread = chances @ (all_means - means) ** 2
    variances = chances @ np.array([posterior.variances for posterior in posteriors])
    sum_variances = chances @ np.array([posterior.sum_variances for posterior in posteriors])
    return EvenPosterior(means, variances + spread, sum_variances)
