"""Main effects of players, of which a few may be much larger than the others.

The effects are coefficients c of a regression. With the Gram matrix G and the vector b of whitened
values, their likelihood is exp((bᵀ c − cᵀ G c / 2) / s), up to a constant, where s is the scale of
all variances. The prior of each effect is a mixture of normal distributions of mean 0, whose
variances are a grid and whose proportions are common to all players: few players with large
effects, or all alike, or anything between.

The posterior is approximated by expectation propagation (Minka, 2001). The prior of each player is
replaced by a normal function, exp((h_j c − λ_j c² / 2) / s), which gives the same mean and variance
as the mixture does beside all other players' functions. All covariances of the effects remain. The
evidence that comes with it decides between the mixture and equal variances, where it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from .kernels import Kernel, Prior
from .marginal_likelihood import Features, covariance_of, factored

_GRID = np.array([1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e5])
"""Variances of the components, over the equal variance. The largest are for one sentence among 50
that decides alone what a language model writes."""

STEPS, STEPS_AGAIN, _DAMPING = 12, 6, 0.7
"""Number of steps from equal variances, and from a mixture of a similar regression, and the share
of each step that is made. Measured with 60 to 500 players: after 6 steps from a mixture, errors are
.95 to 1.01 times those after 12 from equal variances; after 3 steps, .97 to 1.05 times."""

_LEAST_COUNT, _WITHOUT_EFFECT = 1e-3, 0.05
"""Number of players that each component has at least, and the share of players without an effect
that the proportions start from. Measured on sums of small games among a tenth of 200 players, and
on networks with pooling: errors are .85 to .93 and 1 to 1.03 times those without this share. With a
share of .2, .71 to .81 times on the first, but 95 % intervals of the second hold .85."""


@dataclass(frozen=True)
class MainEffects:
    """The posterior of the main effects.

    Attributes
    ----------
    means : array, (M,)
        Posterior means.
    factor : array, (M, M)
        The lower Cholesky factor of the inverse of the posterior covariances, for a scale of 1.
    scale : float
        The factor of all variances.
    log_evidence : float
        Of the values, up to a constant.
    weights, shifts : arrays, (M,)
        1 / λ and h of the normal functions: prior variances, for a scale of 1, and what raises a
        mean.
    proportions : array, (K,)
        Those of the components of a mixture.
    """

    means: FloatArray
    factor: FloatArray
    scale: float
    log_evidence: float
    weights: FloatArray
    shifts: FloatArray
    proportions: FloatArray

    @classmethod
    def given(
        cls, gram: FloatArray, vector: FloatArray, squares: float, n: int, weights: FloatArray
    ) -> MainEffects:
        """Return the posterior of effects with prior variances `weights`, (M,).

        The scale of all variances is the mean square of the whitened values.
        """
        factor = _factor(gram, 1 / weights)
        means = _solved(factor, vector)
        scale = max(squares - float(vector @ means), 1e-12 * squares, 1e-300) / n
        half_log_determinant = _half_log_determinant(factor) + float(np.log(weights).sum()) / 2
        evidence = -n / 2 * np.log(scale) - half_log_determinant
        shifts, proportions = np.zeros_like(weights), np.full(len(_GRID), 1 / len(_GRID))
        return cls(means, factor, scale, evidence, weights, shifts, proportions)

    @cached_property
    def variances(self) -> FloatArray:
        """Return the posterior variances, for a scale of 1, (M,)."""
        inverse, _ = scipy.linalg.lapack.dtrtri(self.factor, lower=1)
        variances: FloatArray = np.einsum("ij,ij->j", inverse, inverse)
        return variances

    @property
    def second_moments(self) -> FloatArray:
        """Return the expected squares of the effects, for a scale of 1, (M,)."""
        moments: FloatArray = self.means**2 / self.scale + self.variances
        return moments


def _factor(gram: FloatArray, precisions: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of G plus a diagonal."""
    matrix = gram.T.copy(order="F")
    matrix[np.diag_indices(len(matrix))] += precisions
    factor: FloatArray = scipy.linalg.cholesky(
        matrix, lower=True, overwrite_a=True, check_finite=False
    )
    return factor


def _solved(factor: FloatArray, vector: FloatArray) -> FloatArray:
    solved: FloatArray = scipy.linalg.cho_solve((factor, True), vector, check_finite=False)
    return solved


def _half_log_determinant(factor: FloatArray) -> float:
    return float(np.log(np.diagonal(factor)).sum())


def main_effects(
    gram: FloatArray,
    vector: FloatArray,
    squares: float,
    n: int,
    is_sparse: bool,
    start: MainEffects | None = None,
) -> list[MainEffects]:
    """Return the posterior of equal variances and, if there is one, that of a mixture.

    Parameters
    ----------
    gram, vector : arrays, (M, M) and (M,)
        G and b, where the values have variance 1.
    squares : float
        The sum of squares of the n whitened values.
    n : int
        Their number.
    is_sparse : bool
        Whether there is a mixture.
    start : MainEffects, optional
        The posterior of a mixture by a similar regression, which takes fewer steps to follow.
    """
    n_players = len(gram)
    equal = MainEffects.given(gram, vector, squares, n, np.full(n_players, 1 / n_players))
    if not is_sparse:
        return [equal]
    if start is None:
        return [equal, _mixture(gram, vector, squares, n, equal, STEPS)]
    found = _with_functions(gram, vector, squares, n, start)
    return [equal, _mixture(gram, vector, squares, n, found, STEPS_AGAIN)]


def _mixture(
    gram: FloatArray, vector: FloatArray, squares: float, n: int, found: MainEffects, steps: int
) -> MainEffects:
    """Return the posterior of a mixture, by expectation propagation from what was found before."""
    variances = _GRID / len(gram)
    for _ in range(steps):
        beside = _BesideOthers.from_effects(found, variances)
        new, new_shifts = beside.normal_functions(variances)
        proportions = beside.shares.sum(axis=0) + _LEAST_COUNT
        proportions[0] += _WITHOUT_EFFECT * len(gram)
        changed = replace(
            found,
            weights=found.weights ** (1 - _DAMPING) * new**-_DAMPING,
            shifts=found.shifts + _DAMPING * (new_shifts - found.shifts),
            proportions=proportions / proportions.sum(),
        )
        found = _with_functions(gram, vector, squares, n, changed)
    evidence = _BesideOthers.from_effects(found, variances).log_evidence(found)
    evidence -= _half_log_determinant(found.factor)
    evidence += (float(found.means @ (vector + found.shifts)) - squares) / found.scale / 2
    return replace(found, log_evidence=evidence - n / 2 * (np.log(found.scale) - 1))


def _with_functions(
    gram: FloatArray, vector: FloatArray, squares: float, n: int, found: MainEffects
) -> MainEffects:
    """Return the posterior by the normal functions of other effects, and its scale."""
    factor = _factor(gram, 1 / found.weights)
    means = _solved(factor, vector + found.shifts)
    residual = squares - 2 * float(vector @ means) + float(means @ (gram @ means))
    new = replace(found, means=means, factor=factor)
    n_used = len(means) - float((new.variances / new.weights).sum())
    scale = max(residual + found.scale * n_used, 1e-10 * squares, 1e-300) / n
    return replace(new, scale=scale)


def with_sparse_singles(
    kernel: Kernel, targets: FloatArray, prior: Prior, features: Features
) -> tuple[Prior, FloatArray]:
    """Return the prior of games of which few single players may matter, and expected effects.

    Where a mixture explains the odd part better than equal variances do, its normal functions are
    the prior of the effects of single players: with their variances, and with these means, (R, M).

    Parameters
    ----------
    kernel : Kernel
        Between the coalitions, that of all players first, at the strengths of the prior.
    targets : array, (R, n)
        The odd part of the games at the coalitions.
    prior : Prior
        That of a stack of games, whose single players are alike.
    features : Features
        Those of sparse interactions.
    """
    (n_games, n), n_players = targets.shape, kernel.signs.shape[1]
    singles, centres = np.full((n_games, n_players), 1 / n_players), np.zeros((n_games, n_players))
    of_others = replace(prior, singles=np.zeros_like(singles))
    signs = np.broadcast_to(kernel.signs, (n_games, n, n_players))
    columns = np.concatenate([signs, targets[:, :, None]], axis=2)
    _, whitened = factored(covariance_of(kernel, of_others, features), columns)
    for game, of_game in enumerate(whitened):
        own, values = np.ascontiguousarray(of_game[:, :-1]), np.ascontiguousarray(of_game[:, -1])
        equal, mixture = main_effects(
            own.T @ own, own.T @ values, float(values @ values), n, is_sparse=True
        )
        if mixture.log_evidence > equal.log_evidence:
            singles[game], centres[game] = mixture.weights, mixture.weights * mixture.shifts
    return replace(prior, singles=singles), centres


@dataclass(frozen=True)
class _BesideOthers:
    """The mixture of each player, given the values and the normal functions of all others.

    Attributes
    ----------
    means, variances : arrays, (M,)
        Of its effect without its mixture; variances are for a scale of 1.
    shares : array, (M, K)
        Probabilities of the components.
    log_sums : array, (M,)
        The logarithm of the sum of their likelihoods.
    scale : float
        The factor of all variances.
    """

    means: FloatArray
    variances: FloatArray
    shares: FloatArray
    log_sums: FloatArray
    scale: float

    @classmethod
    def from_effects(cls, found: MainEffects, components: FloatArray) -> _BesideOthers:
        """Take each player's own function, exp((h c − λ c² / 2) / s), out of the posterior."""
        own = found.variances
        variances = 1 / np.maximum(1 / own - 1 / found.weights, 1e-9 / own)
        means = variances * (found.means / own - found.shifts)
        totals = variances[:, None] + components
        logs = np.log(found.proportions) - np.log(totals) / 2
        logs -= means[:, None] ** 2 / totals / found.scale / 2
        largest = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - largest)
        sums = shares.sum(axis=1, keepdims=True)
        log_sums = (largest + np.log(sums))[:, 0]
        return cls(means, variances, shares / sums, log_sums, found.scale)

    def normal_functions(self, components: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return λ and h, (M,) each, with the mean and the variance that the mixtures give."""
        shrunk = components / (self.variances[:, None] + components)
        of_components = shrunk * self.means[:, None]
        means = (self.shares * of_components).sum(axis=1)
        deviations = (of_components - means[:, None]) ** 2 / self.scale
        variances = (self.shares * (shrunk * self.variances[:, None] + deviations)).sum(axis=1)
        # An effect that is either large or none may vary more than without its mixture. No normal
        # function does that. The expected variance of its components is the limit.
        least, most = 1 / (self.shares @ components), 1 / components[0]
        precisions = np.clip(1 / variances - 1 / self.variances, least, most)
        shifts = means * (precisions + 1 / self.variances) - self.means / self.variances
        return precisions, shifts

    def log_evidence(self, found: MainEffects) -> float:
        """Return the sum of the logarithms of what mixtures explain over what functions do."""
        without, precisions = 1 / self.variances, 1 / found.weights
        energies = without * self.means**2
        energies -= (without * self.means + found.shifts) ** 2 / (without + precisions)
        logs = self.log_sums + np.log1p(precisions * self.variances) / 2 + energies / self.scale / 2
        return float(logs.sum())
