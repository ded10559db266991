"""How well priors of a part of a game explain its values: their marginal likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from .factors import LowerFactors
from .kernels import Kernel, Prior, UpperKernel, evenness_of_sizes

JITTER = 1e-10
"""Added to every variance, of a kernel of variance 1, so that factorisations succeed."""

_LEVEL, LEVEL_SPREAD = np.log(2.0), 1.0
"""Prior of the logarithm of the level of the strengths, times the number of players."""

CENTRES, SPREADS = np.log([1e-2, 3e-3]), np.array([3.0, 2.5])
"""Prior of the logarithms of the variance of interactions and of the noise relative to it: weak,
and wide enough for additive games."""

STRENGTH_SPREAD = 1.0
"""Prior standard deviation of the logarithm of a player's strength, around the level."""

TINY = 1e-300
"""Added to the energies of values, which may be 0."""

WIDTH = 24
"""The columns of a block. All blocks have as many, because BLAS rounds products of more columns
differently; and OpenBLAS solves the last eight of 32 columns by another kernel than the first 24.
For smaller blocks, calls take longer than operations."""


@dataclass(frozen=True)
class Features:
    """Features that are added to a kernel; their coefficients have variance 1.

    Attributes
    ----------
    columns : list of arrays, (n, k)
        Products of signs times standard deviations, of each game of a stack. Games have numbers of
        their own: BLAS rounds products of more columns differently, even if these are zeros.
    """

    columns: list[FloatArray]

    @cached_property
    def covariance(self) -> FloatArray:
        """Their covariance of the values, (R, n, n)."""
        return np.array([own @ own.T for own in self.columns])

    @property
    def variance(self) -> FloatArray:
        """The entry on its diagonal, (R, 1), which is the same for all values."""
        return np.array([(own[:1] ** 2).sum(axis=1) for own in self.columns])


def log_level_centre(n_players: int) -> float:
    """Return where the logarithm of the level of the strengths is expected."""
    return float(_LEVEL - np.log(n_players))


def log_prior(prior: Prior) -> FloatArray:
    """Return the logarithm of the density of the level, the interactions and the noise, (...).

    Up to a constant.
    """
    level = np.log(prior.strengths).mean(axis=-1)
    off = (level - log_level_centre(prior.strengths.shape[-1])) / LEVEL_SPREAD
    ratios = (np.log([prior.interactions, prior.noise]).T - CENTRES) / SPREADS
    density: FloatArray = -0.5 * (off**2 + (ratios**2).sum(axis=-1))
    return density


def n_known(prior: Prior) -> int:
    """Return how many of the first values have no noise.

    That of all players together has none in the odd part, where it is efficiency. In the even part,
    it is a value like the others: only differences from it count.
    """
    return 0 if prior.is_even else 1


def noise_of(
    prior: Prior, signs: FloatArray, features: Features | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the variances of the noise of values, (..., n), and the least of them, (..., 1).

    The first value of an odd part, that of all players together, has the least variance: jitter
    only. Features that are added to the kernel raise it. `signs`, (n, M), are the coalitions.
    """
    noise = np.asarray(prior.noise_variance)[..., None] * (np.arange(len(signs)) >= n_known(prior))
    if prior.jumps:
        noise = noise * evenness_of_sizes((signs > 0).sum(axis=1), signs.shape[1])
    least = JITTER * np.ones_like(noise[..., :1])
    if features is not None:
        least = least * (1.0 + features.variance)
    return noise + least, least


def covariance_of(
    kernel: Kernel | UpperKernel,
    prior: Prior,
    features: Features | None = None,
    out: FloatArray | None = None,
) -> FloatArray:
    """Return the covariance of the values, (..., n, n), with noise and errors; written to `out`.

    That of an `UpperKernel` is for `factored` only.
    """
    if isinstance(kernel, UpperKernel):
        matrix = kernel.combined(prior, out, None if features is None else features.columns)
    else:
        matrix = kernel.combined(prior, out)
        if features is not None:
            matrix += features.covariance
    noise, _ = noise_of(prior, kernel.signs, features)
    diagonal = np.arange(matrix.shape[-1])
    matrix[..., diagonal, diagonal] += noise
    if prior.errors is not None:
        matrix[..., diagonal, diagonal] += prior.errors[..., : len(diagonal)]
    return matrix


def whiten(covariances: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Whiten columns by covariances L Lᵀ, of one game or of each game of a stack.

    Parameters
    ----------
    covariances : array, (..., n, n)
        Those of a stack are overwritten.
    columns : array, (..., n, k)

    Returns
    -------
    array, (...)
        Half the logarithms of the determinants of the covariances.
    array, (..., n, k)
        L⁻¹ times the columns.
    """
    factors, whitened = factored(covariances, columns)
    return half_log_determinants(factors), whitened


def half_log_determinants(factors: FloatArray) -> FloatArray:
    """Return half the logarithms of the determinants of L Lᵀ, (...), given L, (..., n, n)."""
    halves: FloatArray = np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1)
    return halves


def factored(covariances: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the factors L of covariances L Lᵀ, (..., n, n), and L⁻¹ times the columns.

    The covariances of a stack are overwritten. Their entries below the diagonals are not read, and
    the entries of their factors above the diagonals have no meaning.
    """
    if covariances.ndim > 2:
        return _factored_stack(covariances, columns)
    factor = scipy.linalg.cholesky(covariances, lower=True, check_finite=False)
    return factor, column_by_column(lambda block: whitened_by(factor, block), columns)


def _factored_stack(covariances: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Factor the covariances of a stack, whose memory is overwritten."""
    factors = LowerFactors.from_covariances(covariances)
    whitened = factors.whitened(columns.swapaxes(1, 2))
    return factors.transposed.swapaxes(1, 2), whitened.swapaxes(1, 2)


def whitened_by(factor: FloatArray, columns: FloatArray, overwrite: bool = False) -> FloatArray:
    """Return L⁻¹ times `columns`, (n, B), whose memory may be overwritten."""
    # SciPy's function for this takes twice as long for few columns.
    whitened, info = scipy.linalg.lapack.dtrtrs(factor, columns, lower=1, overwrite_b=overwrite)
    if info:
        raise np.linalg.LinAlgError("The factor of a covariance is singular.")
    solution: FloatArray = whitened
    return solution


def column_by_column(
    compute: Callable[[FloatArray], FloatArray], columns: FloatArray
) -> FloatArray:
    """Return the result of a linear operation for each column of (n, B), independent of the others.

    BLAS rounds a product differently if a matrix has more columns. Hence all blocks have the same
    number of columns, and the last block ends with zeros. Each column of the result is contiguous.
    """
    blocks = []
    for start in range(0, columns.shape[1], WIDTH):
        part = columns[:, start : start + WIDTH]
        block = np.zeros((len(columns), WIDTH), order="F")
        block[:, : part.shape[1]] = part
        blocks.append(np.asfortranarray(compute(block)).T[: part.shape[1]])
    return np.concatenate(blocks).T


def mean_squares(columns: FloatArray) -> FloatArray:
    """Return the mean squares of columns, (B,).

    Each sum runs over contiguous memory, so that its order is the same as for one column alone.
    """
    squares: FloatArray = (np.ascontiguousarray(columns.T) ** 2).mean(axis=1)
    return squares


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
    scale = (whitened**2).sum(axis=-2) / n + TINY
    evidence: FloatArray = -0.5 * n * np.log(scale) - np.asarray(half_log_determinants)[..., None]
    return evidence
