"""Posteriors of Shapley values and of interactions, given values and a prior.

The interactions of the prior do not explain each value exactly. The residual, the noise of the
prior, is independent from pair to pair. It is a part of the game: where a coalition is evaluated,
the residual is known. It counts in what is estimated with the weight of its pair of complements.
Let D be the variances of the noise and B the weights. The noise adds D B to the covariances of the
values and the estimands. It adds the sum of D B² over all pairs to the variances of the estimands.
So the posterior is exact once all pairs are evaluated, for any prior.

Coalitions of one and two players determine the Shapley values of games whose interactions have at
most three players, and interactions of pairs if no more players interact, so that nothing else is
needed to be exact. Where all of them are evaluated, the posterior is averaged over priors of such
games and the fitted one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import comb

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from ...coalitions.tables import smaller_sizes
from .attribution_covariances import left_of_other_pairs
from .estimands import Estimand
from .kernels import Kernel, Prior, UpperKernel, bounded_strengths
from .left_out_values import SizeWeights, last_block, last_rows
from .marginal_likelihood import (
    Features,
    column_by_column,
    covariance_of,
    factored,
    half_log_determinants,
    log_evidence,
    n_known,
    noise_of,
)
from .sparse_interactions import SparseInteractions

_TRIPLES_LEVEL, _TRIPLES_NOISE, _TRIPLES_LOG_CHANCE = 0.1, (1.0, 0.03, 0.001), -1.0
"""Priors whose interactions are almost all of three players: the sum of the strengths, factors of
the noise, and the logarithm of their probability over that of the fitted prior. The level was
measured on fitted models of 9 to 13 features: at .3, errors are up to 1.3 times as large; at .03,
they are as large, but the norm is so small that the last bits of values change the ninth digit of
the solution."""

_LEAST_NOISE = 1e-9
"""Below it, the rounding of such a kernel is more than the noise: it is divided by a small norm."""

_MORE_NOISE = 30.0
"""Factor of the noise in another prior to average over, as likely as the fitted one. Few values
hardly tell noise from interactions, and a fit takes the noise that the prior expects. Measured with
6 to 10 players on conditional games, whose interactions have all sizes, and on fitted models: the
errors are equal, and 1 to 5 % more values lie in their 95 % intervals, most where intervals were
too short."""

_ERROR_FACTORS = (0.3, 1.0, 3.0)
"""Factors of estimated variances of errors to average over. Measured on random models with 8 and 12
players: five factors from 1/4 to 4 give the same."""

_MOST_SHARE = 0.999
"""Bound on the share of errors of values in a variance: degrees of freedom stay numbers."""

_FEWEST_PLAYERS = 5
"""With fewer players, the complements of two are two players, or one."""


@dataclass(frozen=True)
class PriorChoice:
    """A prior of a stack of games, to average over.

    Attributes
    ----------
    kernel : Kernel or UpperKernel
        Between all coalitions, at the strengths of the prior.
    prior : Prior
        The strengths, the variance of interactions, and the noise.
    log_chance : float
        The logarithm of its probability, over that of the fitted prior.
    errors : array, (R, n), optional
        Estimated variances of the errors of the values, with `error_freedom` degrees of freedom,
        where the prior has others.
    """

    kernel: Kernel | UpperKernel
    prior: Prior
    log_chance: float = 0.0
    errors: FloatArray | None = None
    error_freedom: float = np.inf

    def log_chances(self, spread: FloatArray) -> FloatArray | float:
        """Return the logarithm of its probability where whitened values have a mean square."""
        if self.errors is None or self.prior.errors is None:
            return self.log_chance
        expected, errors = self.errors.sum(axis=1), self.prior.errors.sum(axis=1)
        ratios = errors[:, None] * spread[:, 0] / np.where(expected > 0, expected, 1.0)[:, None]
        ratios = np.where(ratios > 0, ratios, 1.0)  # values without a spread say nothing
        chances: FloatArray = np.log(ratios) + 1 / ratios - 1
        return self.log_chance - self.error_freedom / 2 * chances


def choices_around(kernel: Kernel, fitted: Prior) -> list[PriorChoice]:
    """Return the fitted prior, with its kernel, one of more noise, and those of smooth games."""
    choices = [
        PriorChoice(kernel, replace(fitted, noise=factor * fitted.noise))
        for factor in (1.0, _MORE_NOISE)
    ]
    if has_all_twos(kernel.signs):
        shares = fitted.strengths / fitted.strengths.sum(axis=-1, keepdims=True)
        strengths = bounded_strengths(_TRIPLES_LEVEL * shares)
        of_triples = Kernel.at(kernel.signs, strengths, is_even=fitted.is_even)
        for factor in _TRIPLES_NOISE:
            noise = np.maximum(factor * fitted.noise, _LEAST_NOISE)
            prior = fitted.with_numbers(strengths, fitted.interactions, noise)
            choices.append(PriorChoice(of_triples, prior, _TRIPLES_LOG_CHANCE))
    return choices


def with_error_sizes(
    choices: list[PriorChoice], errors: FloatArray | None, freedom: float
) -> list[PriorChoice]:
    """Return the choices with smaller and larger errors each, where these are estimated.

    Variances of errors, (R, n), from few answers are uncertain. The values tell, too, how large
    they are.
    """
    if errors is None or np.isinf(freedom):
        return choices
    return [
        replace(
            choice,
            prior=replace(choice.prior, errors=factor * choice.prior.errors),
            errors=errors,
            error_freedom=freedom,
        )
        for choice in choices
        for factor in _ERROR_FACTORS
        if choice.prior.errors is not None
    ]


def has_all_twos(signs: FloatArray) -> bool:
    """Return whether all coalitions of two players, or their complements, are among the signs."""
    n_players = signs.shape[1]
    n_twos = np.count_nonzero(smaller_sizes(signs > 0) == 2)
    return bool(n_players >= _FEWEST_PLAYERS and n_twos == comb(n_players, 2))


@dataclass(frozen=True)
class Posterior:
    """Means and variances of the estimand, (..., k, B) each, for B targets.

    `predictions`, (..., m, B), are the means of the values of other coalitions; `freedom`,
    (..., 1, B), are the degrees of freedom of the variances.
    """

    means: FloatArray
    variances: FloatArray
    predictions: FloatArray
    freedom: FloatArray

    @classmethod
    def stack(cls, of_games: Sequence[Posterior]) -> Posterior:
        """Return the posteriors of several stacks as those of one."""
        return cls(*map(np.concatenate, zip(*(game.arrays for game in of_games), strict=True)))

    @classmethod
    def unknown(cls, n_outputs: int, n_others: int, n_games: int) -> Posterior:
        """Return arrays to be filled, with infinite degrees of freedom."""
        means, variances = np.zeros((2, n_outputs, n_games))
        predictions = np.zeros((n_others, n_games))
        return cls(means, variances, predictions, np.full((1, n_games), np.inf))

    @property
    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The four arrays, in the order of the constructor."""
        return self.means, self.variances, self.predictions, self.freedom


@dataclass
class _Average:
    """Scores, means and variances of the choices so far, and what their scale depends on.

    The scale depends on the factors and the whitened values of the best choice of each game.
    """

    scores: list[FloatArray] = field(default_factory=list)
    means: list[FloatArray] = field(default_factory=list)
    variances: list[FloatArray] = field(default_factory=list)
    of_errors: list[FloatArray] = field(default_factory=list)
    factors: FloatArray = field(init=False)
    whitened: FloatArray = field(init=False)

    def add(
        self,
        score: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        factors: FloatArray,
        whitened: FloatArray,
        of_errors: FloatArray | None = None,
    ) -> None:
        """Add a choice, with variances (R, k, 1) for values whose whitened squares are 1.

        `of_errors` is the part of the variances that errors of the values leave.

        The factors of its covariances, and the values whitened by them, are copied for the values
        that are predicted by all others.
        """
        if self.scores:
            is_better = (score > np.max(self.scores, axis=0))[:, 0]
            self.factors[is_better] = last_block(factors)[is_better]
            self.whitened[is_better] = whitened[is_better]
        else:
            self.factors = last_block(factors).copy(order="K")
            self.whitened = whitened.copy(order="K")
        self.scores.append(score)
        self.means.append(mean)
        self.variances.append(variance * _spread(whitened))
        if of_errors is not None:
            self.of_errors.append(of_errors * _spread(whitened))

    def scale_and_freedom(self, weights: SizeWeights) -> tuple[FloatArray, FloatArray]:
        """Return the factor of the variances, and their freedom, (R, 1, B), by the best choice."""
        whitened = self.whitened
        return weights.scale_and_freedom(self.factors, last_rows(whitened), _spread(whitened))

    def posterior(self) -> Posterior:
        """Return the mean and the variance of the mixture, before their scale."""
        return mixture(self.scores, self.means, self.variances)


def mixture(
    scores: list[FloatArray], means: list[FloatArray], variances: list[FloatArray]
) -> Posterior:
    """Return the mean and the variance of the mixture of choices, weighted by their scores.

    The means, (..., k + m, B), of the estimand come first, followed by predictions without
    variances; scores are logarithms, (..., B).
    """
    chances = np.exp(np.array(scores) - np.max(scores, axis=0))
    chances = (chances / _sum_of_choices(chances))[..., None, :]  # (G, ..., 1, B)
    n_outputs = variances[0].shape[-2]
    all_means = _sum_of_choices(chances * means)
    mean, predictions = all_means[..., :n_outputs, :], all_means[..., n_outputs:, :]
    spread = (np.array(means)[..., :n_outputs, :] - mean) ** 2
    variance = _sum_of_choices(chances * (np.array(variances) + spread))
    return Posterior(mean, variance, predictions, np.full_like(variance[..., :1, :], np.inf))


def _sum_of_choices(terms: FloatArray) -> FloatArray:
    """Return the sum over the first axis, one term after another.

    For a single number per choice, NumPy's sum would add eight terms at a time, so that the result
    of a row would depend on how many rows are solved with it.
    """
    return np.asarray(np.cumsum(terms, axis=0)[-1])


def posterior(
    estimand: Estimand,
    signs: FloatArray,
    targets: FloatArray,
    choices: Iterable[PriorChoice],
    n_fitted: float,
    sparse: list[SparseInteractions],
    other_signs: FloatArray | None = None,
) -> Posterior:
    """Return the posterior, averaged over the choices of the prior by their evidence.

    It is that of each game of a stack, whose arrays have R first.

    Parameters
    ----------
    estimand : Estimand
        What is estimated.
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (R, n, B)
        Their values.
    choices : iterable of PriorChoice
        The priors to average over.
    n_fitted : float
        Degrees of freedom of the fitted hyperparameters.
    sparse : list of SparseInteractions
        The interactions with separate variances, for each game.
    other_signs : array, (m, M), optional
        Other coalitions, whose values are predicted.
    """
    n, n_players = signs.shape
    other_signs = np.empty((0, n_players)) if other_signs is None else other_signs
    weights = estimand.weights(signs)
    features = [own.features(signs) for own in sparse]
    maps = [own.maps(estimand) for own in sparse]
    of_others = [own.features(other_signs) for own in sparse]
    of_features = Features(features)
    of_sparse = np.array([own @ of_game for own, of_game in zip(features, maps, strict=True)])
    own_variance = np.array([(of_game**2).sum(axis=0) for of_game in maps])
    sparse_with_others = np.array(
        [own @ other.T for own, other in zip(features, of_others, strict=True)]
    )
    average = _Average()
    memory: FloatArray | None = None
    for choice in choices:
        prior, is_even = choice.prior, choice.prior.is_even
        covariances, variances = estimand.covariances(signs, prior.strengths)
        base, base_variance = estimand.base(signs, prior)
        a = np.asarray(prior.interactions)[..., None]
        common = a[..., None] * covariances + base + of_sparse
        kernel = Kernel.at(signs, prior.strengths, other_signs, is_even)
        # Where single players have variances of their own, nothing is predicted.
        with_others = kernel.combined(replace(prior, singles=None)) + sparse_with_others
        noise, least = noise_of(prior, signs, of_features)
        all_columns = np.concatenate(
            [targets, common + noise[..., None] * weights, with_others], axis=-1
        )
        memory = covariance_of(choice.kernel, prior, of_features, memory)
        factors, columns = factored(memory, all_columns)
        whitened, loadings = np.split(columns, [targets.shape[-1]], axis=-1)
        of_noise = estimand.variance_of_noise(prior, least)
        variance = base_variance + a * variances + own_variance + of_noise
        known = n_known(prior)
        variance = variance + least * (weights[:known] ** 2).sum(axis=0)
        explained = (loadings[..., : estimand.n_outputs] ** 2).sum(axis=-2)
        # What is left may be rounding, but the noise of the other pairs is always left.
        always = left_of_other_pairs(of_noise, weights, noise, known)
        unexplained = np.maximum(variance - explained, always)
        score = log_evidence(half_log_determinants(factors), whitened)
        score = score + choice.log_chances(_spread(whitened))
        mean = products(loadings, whitened)
        of_errors = None
        if prior.errors is not None:
            of_errors = _left_by_errors(factors, loadings[..., : estimand.n_outputs], prior.errors)
        average.add(score, mean, unexplained[..., None], factors, whitened, of_errors)
    found = average.posterior()
    if len(other_signs):  # variances are not needed
        return found
    scale, freedom = average.scale_and_freedom(SizeWeights.from_signs(signs))
    scale *= growth_by_fit(n, n_fitted)
    variances = found.variances * scale
    if average.of_errors:  # their size is known, and does not fall with that of the residuals
        of_errors = mixture(average.scores, average.of_errors, average.of_errors).means
        variances += of_errors * np.maximum(1 - scale, 0.0)
        # The scale is no part of them: Welch and Satterthwaite's degrees of freedom of a sum.
        total = variances.sum(axis=-2, keepdims=True)
        shares = of_errors.sum(axis=-2, keepdims=True) / np.where(total > 0, total, 1.0)
        freedom = freedom / (1 - np.clip(shares, 0.0, _MOST_SHARE)) ** 2
    return replace(found, variances=variances, freedom=freedom)


def _left_by_errors(factors: FloatArray, loadings: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the variances, (..., k, 1), that errors of values, (..., n), leave in the means."""
    solved = [
        scipy.linalg.solve_triangular(factor, of_game, trans="T", lower=True, check_finite=False)
        for factor, of_game in zip(
            factors.reshape(-1, *factors.shape[-2:]),
            loadings.reshape(-1, *loadings.shape[-2:]),
            strict=True,
        )
    ]
    weights = np.reshape(solved, loadings.shape)
    variances: FloatArray = (weights**2 * errors[..., None]).sum(axis=-2)[..., None]
    return variances


def growth_by_fit(n: int, n_fitted: float) -> float:
    """Return by how much variances grow because fitted hyperparameters make residuals smaller."""
    return n / max(n - n_fitted, n / 3)


def products(loadings: FloatArray, whitened: FloatArray) -> FloatArray:
    """Return loadingsᵀ times whitened columns, of one game or of each game of a stack."""
    if loadings.ndim > 2:
        return loadings.swapaxes(-1, -2) @ whitened
    return column_by_column(lambda block: loadings.T @ block, whitened)


def _spread(whitened: FloatArray) -> FloatArray:
    """Return the mean square of whitened values, (..., 1, B), without the known first one.

    It is 0 without other values, as for a fold that has the only pair.
    """
    others = whitened[..., 1:, :]
    spread: FloatArray = (others**2).sum(axis=-2, keepdims=True) / max(1, others.shape[-2])
    return spread
