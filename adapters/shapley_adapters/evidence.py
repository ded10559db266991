"""How well priors of an odd game explain its values: their marginal likelihood."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .array_types import FloatArray
from .odd_kernels import OddKernels, Ratios

JITTER = 1e-10
"""Added to every variance, of a kernel of variance 1, so that factorisations succeed."""

CENTRES = np.log([1e-2, 0.2, 3e-3])
SPREADS = np.array([3.0, 1.0, 2.5])
"""Prior of the logarithms of the ratios: weak, and wide enough for additive games."""

GRID = tuple(
    Ratios(third, fifth, noise)
    for third in (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
    for fifth in (0.1, 0.5)
    for noise in (1e-7, 1e-4, 1e-2, 1e-1)
)
"""Where learning starts: the best of these with equal weights."""


def log_prior(ratios: Ratios) -> float:
    """Return the logarithm of the prior density of the ratios, up to a constant."""
    return -0.5 * float((((ratios.logarithms() - CENTRES) / SPREADS) ** 2).sum())


def factor_of(
    kernels: OddKernels, ratios: Ratios, features: FloatArray | None = None
) -> FloatArray:
    """Return the lower Cholesky factor of the covariance of the values, (n, n).

    The first of them, of all players together, is without noise. `features`, (n, k), have
    coefficients of variance 1 beside what the kernels say.
    """
    matrix = kernels.combined(ratios)
    jitter = JITTER
    if features is not None and features.shape[1]:
        matrix += features @ features.T
        jitter *= 1.0 + float(features[0] @ features[0])  # products of signs: alike in all rows
    places = np.arange(len(matrix))
    matrix[places, places] += ratios.noise_variance * (places > 0) + jitter
    # The transpose of a symmetric matrix in C order is itself, in the order LAPACK can overwrite.
    factor: FloatArray = scipy.linalg.cholesky(
        matrix.T, lower=True, overwrite_a=True, check_finite=False
    )
    return factor


def whitened_by(factor: FloatArray, columns: FloatArray) -> FloatArray:
    """Return L⁻¹ times `columns`, (n, B)."""
    whitened: FloatArray = scipy.linalg.solve_triangular(
        factor, columns, lower=True, check_finite=False
    )
    return whitened


def log_evidence(factor: FloatArray, whitened: FloatArray) -> FloatArray:
    """Return the log marginal likelihood with the best scale, (B,), up to a constant.

    Parameters
    ----------
    factor : array, (n, n)
        Lower Cholesky factor of the covariance.
    whitened : array, (n, B)
        The targets, whitened by it.
    """
    n = len(factor)
    scale = (whitened**2).sum(axis=0) / n
    evidence: FloatArray = -0.5 * n * np.log(scale) - np.log(np.diag(factor)).sum()
    return evidence


def best_of_grid(signs: FloatArray, targets: FloatArray) -> list[Ratios]:
    """Return the ratios of the grid that suit each of the targets, (n, B), with equal weights."""
    kernels = OddKernels.at(signs, np.ones(signs.shape[1]))
    scores = []
    for ratios in GRID:
        factor = factor_of(kernels, ratios)
        scores.append(log_evidence(factor, whitened_by(factor, targets)) + log_prior(ratios))
    return [GRID[best] for best in np.argmax(scores, axis=0)]
