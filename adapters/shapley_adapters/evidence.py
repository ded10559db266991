"""Learning the prior of an odd game from its values, by their marginal likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

from .array_types import FloatArray
from .odd_kernels import OddKernels

JITTER = 1e-10
"""Added to every variance, of a kernel of variance 1, so that factorisations succeed."""

_CENTRES = np.log([1e-2, 0.2, 1e-2])
_SPREADS = np.array([3.0, 1.0, 2.0])
"""Prior of the logarithms of the ratios: weak, and wide enough for additive games."""

_WEIGHT_SPREAD = 1.0
"""Prior standard deviation of the logarithm of a player's weight."""

_STEPS = 12
"""Steps of L-BFGS; errors stop falling after about eight."""


@dataclass(frozen=True)
class Ratios:
    """What the variances of the parts of an odd game are, relative to that of degree 1.

    Attributes
    ----------
    third : float
        Variance of degree 3 over that of degree 1.
    fifth : float
        Variance of degree 5 over that of degree 3.
    noise : float
        Variance of what no degree explains over that of degree 3.
    """

    third: float
    fifth: float
    noise: float

    def combine(self, parts: tuple[FloatArray, ...] | list[FloatArray]) -> FloatArray:
        """Add up what belongs to the degrees 1, 3 and 5."""
        first, third, fifth = parts
        combined: FloatArray = first + self.third * (third + self.fifth * fifth)
        return combined

    def covariance(self, kernels: OddKernels) -> FloatArray:
        """Return the covariance of the values, (n, n); the first of them is without noise."""
        matrix = self.combine(kernels.matrices())
        places = np.arange(len(matrix))
        matrix[places, places] += self.third * self.noise * (places > 0) + JITTER
        return matrix

    def log_prior(self) -> float:
        """Return the logarithm of the prior density, up to a constant."""
        return -0.5 * float((((self.logarithms() - _CENTRES) / _SPREADS) ** 2).sum())

    def logarithms(self) -> FloatArray:
        """Return the three as the optimiser sees them."""
        return np.log([self.third, self.fifth, self.noise])


GRID = tuple(
    Ratios(third, fifth, noise)
    for third in (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
    for fifth in (0.1, 0.5)
    for noise in (1e-7, 1e-4, 1e-2, 1e-1)
)
"""Where learning starts: the best of these with equal weights."""


def log_evidence(factor: FloatArray, targets: FloatArray) -> FloatArray:
    """Return the log marginal likelihood of targets, (n, B), with the best scale, up to a constant.

    Parameters
    ----------
    factor : array, (n, n)
        Lower Cholesky factor of the covariance.
    """
    n = len(factor)
    whitened = scipy.linalg.solve_triangular(factor, targets, lower=True)
    scale = (whitened**2).sum(axis=0) / n
    evidence: FloatArray = -0.5 * n * np.log(scale) - np.log(np.diag(factor)).sum()
    return evidence


def best_of_grid(signs: FloatArray, targets: FloatArray) -> list[Ratios]:
    """Return the ratios of the grid that suit each of the targets, (n, B), with equal weights."""
    kernels = OddKernels.at(signs, np.ones(signs.shape[1]))
    scores = []
    for ratios in GRID:
        factor = scipy.linalg.cholesky(ratios.covariance(kernels), lower=True)
        scores.append(log_evidence(factor, targets) + ratios.log_prior())
    return [GRID[best] for best in np.argmax(scores, axis=0)]


def learned(signs: FloatArray, target: FloatArray, start: Ratios) -> tuple[FloatArray, Ratios]:
    """Return the weights of the players, (M,), and the ratios that explain `target`, (n,), best.

    Maximises the marginal likelihood times the prior from equal weights and `start`.
    """
    n_players = signs.shape[1]
    first = np.concatenate([np.zeros(n_players), start.logarithms()])
    found = scipy.optimize.minimize(
        _objective,
        first,
        args=(signs, target),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-6.0, 6.0)] * n_players + [(-25.0, 3.0), (-6.0, 2.0), (-16.0, 6.0)],
        options={"maxiter": _STEPS},
    )
    logarithms = found.x[:n_players]
    third, fifth, noise = np.exp(found.x[n_players:])
    return np.exp(logarithms - logarithms.mean()), Ratios(third, fifth, noise)


def _objective(
    parameters: FloatArray, signs: FloatArray, target: FloatArray
) -> tuple[float, FloatArray]:
    """Return minus the log posterior density of the hyperparameters, and its gradient."""
    n, n_players = signs.shape
    log_weights, log_ratios = parameters[:n_players], parameters[n_players:]
    third, fifth, noise = np.exp(log_ratios)
    kernels = OddKernels.at(signs, np.exp(log_weights))
    _, of_third, of_fifth = kernels.matrices()
    factor = scipy.linalg.cholesky(Ratios(third, fifth, noise).covariance(kernels), lower=True)
    inverse = scipy.linalg.cho_solve((factor, True), np.eye(n))
    solved = inverse @ target
    energy = float(target @ solved)

    # Half the derivative of the negative log evidence by the covariance.
    sensitivity = 0.5 * (inverse - n / energy * np.outer(solved, solved))
    to_third, to_fifth = (sensitivity * of_third).sum(), (sensitivity * of_fifth).sum()
    to_noise = third * noise * np.trace(sensitivity[1:, 1:])
    by_third, by_fifth = kernels.weight_gradients(sensitivity)
    gradient = np.concatenate(
        [
            third * (by_third + fifth * by_fifth) + log_weights / _WEIGHT_SPREAD**2,
            np.array(
                [
                    third * (to_third + fifth * to_fifth) + to_noise,
                    third * fifth * to_fifth,
                    to_noise,
                ]
            )
            + (log_ratios - _CENTRES) / _SPREADS**2,
        ]
    )
    value = 0.5 * n * math.log(energy / n) + float(np.log(np.diag(factor)).sum())
    value += 0.5 * float((log_weights**2).sum()) / _WEIGHT_SPREAD**2
    value += 0.5 * float((((log_ratios - _CENTRES) / _SPREADS) ** 2).sum())
    return value, gradient
