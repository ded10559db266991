"""How well priors of an odd game explain its values: their marginal likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from .kernels import OddKernels, Ratios

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

_SMALL = 16
"""Up to so many rows, triangular matrices are inverted as any others are."""


_WIDTH = 8
"""The columns of a block; as many as the usual kernels of BLAS compute together."""


def log_prior(ratios: Ratios) -> Any:
    """Return the logarithm of the prior density of the ratios, (...), up to a constant."""
    offsets = (ratios.logarithms().T - CENTRES) / SPREADS
    return -0.5 * (offsets**2).sum(axis=-1)


def covariance_of(
    kernels: OddKernels, ratios: Ratios, of_features: FloatArray | None = None
) -> FloatArray:
    """Return the covariance of the values, (..., n, n).

    The first of them, of all players together, is without noise.

    Parameters
    ----------
    of_features : array, (..., n, n), optional
        What features whose coefficients have a variance of 1 add, beside what the kernels say. They
        are products of signs, and thus alike on the diagonal.
    """
    matrix = kernels.combined(ratios)
    variance = np.array(1.0)
    if of_features is not None:
        matrix += of_features
        variance = 1.0 + of_features[..., 0, 0]
    places = np.arange(matrix.shape[-1])
    noise = np.asarray(ratios.noise_variance)[..., None] * (places > 0)
    matrix[..., places, places] += noise + JITTER * variance[..., None]
    return matrix


def whiten(covariances: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Whiten columns by covariances L Lᵀ, of one game or of each game of a stack.

    Parameters
    ----------
    covariances : array, (..., n, n)
    columns : array, (..., n, k)
        Few, for a stack.

    Returns
    -------
    array, (...)
        Half the logarithms of the determinants of the covariances.
    array, (..., n, k)
        L⁻¹ times the columns.
    """
    if covariances.ndim > 2:
        return _whiten_stack(covariances, columns)
    factor = scipy.linalg.cholesky(covariances, lower=True, check_finite=False)
    return np.log(np.diag(factor)).sum(), whitened_by(factor, columns)


def _whiten_stack(covariances: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Whiten by the factors of larger matrices, [[K, C], [Cᵀ, cI]].

    Their last rows are (L⁻¹C)ᵀ for any large number c. NumPy factors a whole stack in one
    operation, beside which other threads run; it has no such operation for triangular equations.
    """
    n_games, n, n_columns = columns.shape
    both = np.empty((n_games, n + n_columns, n + n_columns))
    both[:, :n, :n], both[:, n:, :n] = covariances, columns.swapaxes(1, 2)
    # No eigenvalue of K is below JITTER, so that this leaves the larger matrix positive definite.
    large = 1.0 + 2.0 / JITTER * (columns**2).sum(axis=(1, 2))
    both[:, n:, n:] = large[:, None, None] * np.eye(n_columns)
    factors = np.linalg.cholesky(both)  # it reads the lower triangles only
    half = np.log(np.diagonal(factors, axis1=1, axis2=2)[:, :n]).sum(axis=1)
    return half, factors[:, n:, :n].swapaxes(1, 2)


def inverse_factors(covariances: FloatArray) -> FloatArray:
    """Return L⁻¹ for each of the covariances L Lᵀ, (R, n, n)."""
    return _inverses_of_lower(np.asarray(np.linalg.cholesky(covariances), dtype=np.float64))


def _inverses_of_lower(factors: FloatArray) -> FloatArray:
    """Return the inverses of lower triangular matrices, (R, n, n), by halves."""
    n = factors.shape[-1]
    if n <= _SMALL:
        return np.asarray(np.linalg.inv(factors), dtype=np.float64)
    half = n // 2
    inverses = np.zeros_like(factors)
    first = inverses[:, :half, :half] = _inverses_of_lower(factors[:, :half, :half])
    second = inverses[:, half:, half:] = _inverses_of_lower(factors[:, half:, half:])
    inverses[:, half:, :half] = -second @ (factors[:, half:, :half] @ first)
    return inverses


def whitened_by(factor: FloatArray, columns: FloatArray) -> FloatArray:
    """Return L⁻¹ times `columns`, (n, B)."""
    return column_by_column(
        lambda block: scipy.linalg.solve_triangular(factor, block, lower=True, check_finite=False),
        columns,
    )


def column_by_column(
    compute: Callable[[FloatArray], FloatArray], columns: FloatArray
) -> FloatArray:
    """Return what a linear operation makes of each column of (n, B), whichever the others are.

    BLAS rounds a product in another way if a matrix has more columns. Hence all blocks of columns
    have the same number, and the last one ends with zeros. Each column of the result is contiguous.
    """
    blocks = []
    for start in range(0, columns.shape[1], _WIDTH):
        some = columns[:, start : start + _WIDTH]
        block = np.zeros((len(columns), _WIDTH), order="F")
        block[:, : some.shape[1]] = some
        blocks.append(np.asfortranarray(compute(block)).T[: some.shape[1]])
    return np.concatenate(blocks).T


def log_evidence(half_log_determinants: FloatArray, whitened: FloatArray) -> FloatArray:
    """Return the log marginal likelihood with the best scale, (..., B), up to a constant.

    Parameters
    ----------
    half_log_determinants : array, (...)
        Half the logarithms of the determinants of the covariances.
    whitened : array, (..., n, B)
        The targets, whitened by these.
    """
    n = whitened.shape[-2]
    scale = (whitened**2).sum(axis=-2) / n
    evidence: FloatArray = -0.5 * n * np.log(scale) - np.asarray(half_log_determinants)[..., None]
    return evidence


def best_of_grid(signs: FloatArray, targets: FloatArray) -> list[Ratios]:
    """Return the ratios of the grid that suit each of the targets, (n, B), with equal weights."""
    kernels = OddKernels.at(signs, np.ones(signs.shape[1]))
    scores = []
    for ratios in GRID:
        evidence = log_evidence(*whiten(covariance_of(kernels, ratios), targets))
        scores.append(evidence + log_prior(ratios))
    return [GRID[best] for best in np.argmax(scores, axis=0)]
