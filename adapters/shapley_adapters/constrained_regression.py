"""Weighted least squares, with and without a given sum of the coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse

from .array_types import FloatArray
from .errors import SingularSystemError


@dataclass(frozen=True)
class ConstrainedFit:
    """The solution operator of one regression, to be applied to any number of targets.

    Attributes
    ----------
    design : array, (n, M)
        The regressors.
    operator : array, (M, n)
        Maps what the equal split leaves of the target to the deviation from the equal split.
    leverages : array, (n,)
        Diagonal of the hat matrix.
    """

    design: FloatArray
    operator: FloatArray
    leverages: FloatArray

    def coefficients(self, targets: FloatArray, totals: FloatArray) -> FloatArray:
        """Return the coefficients, (R, M, K), of `targets`, (R, n, K), that sum to `totals`."""
        equal = totals[:, None] / self.design.shape[1]  # (R, 1, K)
        unexplained = targets - self.design.sum(axis=1)[:, None] * equal
        coefficients: FloatArray = equal + self.operator @ unexplained
        return coefficients

    def residuals(self, targets: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Return what the fit leaves of `targets`, (R, n, K)."""
        return targets - self.design @ coefficients


def fit_with_fixed_sum(design: FloatArray, weights: FloatArray) -> ConstrainedFit:
    """Prepare the regression on `design`, (n, M), with `weights`, (n,), and a fixed sum.

    The constraint is eliminated, not penalised: coefficients are the equal split plus a vector in
    the space orthogonal to the ones vector, of which `helmert` gives an orthonormal basis.

    Raises
    ------
    SingularSystemError
        If the regressors do not determine all coefficients.
    """
    n_players = design.shape[1]
    basis = scipy.linalg.helmert(n_players).T  # (M, M − 1)
    roots = np.sqrt(weights)
    orthogonal, triangle = np.linalg.qr(roots[:, None] * (design @ basis))
    diagonal = np.abs(np.diag(triangle))
    tolerance = diagonal.max(initial=0.0) * max(design.shape) * np.finfo(float).eps
    n_determined = int((diagonal > tolerance).sum())
    if n_determined < n_players - 1:
        raise SingularSystemError(
            f"{len(design)} equations determine {n_determined} of the {n_players - 1} differences "
            f"between {n_players} players."
        )
    if n_players == 1:  # the sum leaves nothing to solve for, which older SciPy refuses
        return ConstrainedFit(design, np.zeros((1, len(design))), np.zeros(len(design)))
    reduced = scipy.linalg.solve_triangular(triangle, orthogonal.T * roots)
    return ConstrainedFit(design, basis @ reduced, (orthogonal**2).sum(axis=1))


@dataclass(frozen=True)
class SparseFit:
    """A regression of few regressors an equation, to be solved for any number of targets.

    Attributes
    ----------
    moments : sparse matrix, (M, n)
        The regressors times the weights, transposed.
    factor : tuple
        The Cholesky factor of the normal equations, scaled.
    scale : array, (M,)
        By what the coefficients are divided in the end.
    towards_sum : array, (M,)
        How the coefficients move where only their sum is to change, by 1.
    """

    moments: scipy.sparse.csr_matrix
    factor: tuple[FloatArray, bool]
    scale: FloatArray
    towards_sum: FloatArray

    def coefficients(self, targets: FloatArray, totals: FloatArray | None = None) -> FloatArray:
        """Return the coefficients, (R, M, K), of `targets`, (R, n, K); of given sums, (R, K)."""
        n_rows, n, n_outputs = targets.shape
        flat = targets.transpose(1, 0, 2).reshape(n, n_rows * n_outputs)
        solved = scipy.linalg.cho_solve(self.factor, self.moments @ flat) / self.scale[:, None]
        coefficients: FloatArray = solved.reshape(-1, n_rows, n_outputs).transpose(1, 0, 2)
        if totals is None:
            return coefficients
        missing = totals[:, None] - coefficients.sum(axis=1, keepdims=True)
        moved: FloatArray = coefficients + self.towards_sum[:, None] * missing
        return moved


def fit_sparse(design: scipy.sparse.csr_matrix, weights: FloatArray) -> SparseFit:
    """Prepare the regression on a sparse design, (n, M), with `weights`, (n,).

    By the normal equations, which are well-conditioned where each coefficient has an equation of
    its own that counts no less than others, as that of a single player does.

    Raises
    ------
    SingularSystemError
        If the regressors do not determine all coefficients.
    """
    moments = (design.T @ scipy.sparse.diags(weights)).tocsr()
    normal = (moments @ design).toarray()
    scale = np.sqrt(np.diag(normal))
    scale[scale == 0] = 1.0
    normal /= scale
    normal /= scale[:, None]
    factor = _cholesky(normal, design.shape[0])
    ones = scipy.linalg.cho_solve(factor, 1 / scale) / scale
    rescaled = (scipy.sparse.diags(1 / scale) @ moments).tocsr()
    return SparseFit(rescaled, factor, scale, ones / ones.sum())


def _cholesky(normal: FloatArray, n_equations: int) -> tuple[FloatArray, bool]:
    """Factorise normal equations of unit diagonal, unless they are singular."""
    tolerance = len(normal) * np.finfo(float).eps
    try:
        factor: tuple[FloatArray, bool] = scipy.linalg.cho_factor(normal)
        norm = np.abs(normal).sum(axis=0).max()
        is_regular = scipy.linalg.lapack.dpocon(factor[0], norm)[0] > tolerance
    except scipy.linalg.LinAlgError:
        is_regular = False
    if is_regular:
        return factor
    eigenvalues = scipy.linalg.eigvalsh(normal)
    n_determined = int((eigenvalues > tolerance * eigenvalues[-1]).sum())
    raise SingularSystemError(
        f"{n_equations} equations determine {n_determined} of the attributions of {len(normal)} "
        "players."
    )
