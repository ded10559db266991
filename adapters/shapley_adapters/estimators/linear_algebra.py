"""Weighted least squares, with or without a fixed sum of the coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ..array_types import FloatArray, IntArray
from ..errors import SingularSystemError


@dataclass(frozen=True)
class ConstrainedFit:
    """The solution operator of one regression, which can be applied to several targets.

    Attributes
    ----------
    design : array, (n, M)
        The regressors.
    operator : array, (M, n)
        Maps the residuals of the equal split to the deviations from the equal split.
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


def fit_with_fixed_sum(design: FloatArray, weights: FloatArray) -> ConstrainedFit:
    """Prepare the regression on `design`, (n, M), with `weights`, (n,), and a fixed sum.

    The constraint is eliminated, not penalised: the coefficients are the equal split plus a vector
    that is orthogonal to the ones vector. `helmert` returns an orthonormal basis of these vectors.

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
    if n_players == 1:  # the sum determines the coefficient; older SciPy raises errors
        return ConstrainedFit(design, np.zeros((1, len(design))), np.zeros(len(design)))
    reduced = scipy.linalg.solve_triangular(triangle, orthogonal.T * roots)
    return ConstrainedFit(design, basis @ reduced, (orthogonal**2).sum(axis=1))


@dataclass(frozen=True)
class SparseFit:
    """A regression with few regressors per equation, which can be solved for several targets.

    Attributes
    ----------
    moments : sparse matrix, (M, n)
        The regressors times the weights, transposed.
    factor : array, (bands, M)
        The Cholesky factor of the normal equations, in an order that makes its band narrow.
    order : array, (M,)
        This order.
    scale : array, (M,)
        The scale by which equations and coefficients are divided, for a unit diagonal.
    """

    moments: scipy.sparse.csr_matrix
    factor: FloatArray
    order: IntArray
    scale: FloatArray

    def coefficients(self, targets: FloatArray, totals: FloatArray | None = None) -> FloatArray:
        """Return the coefficients, (R, M, K), of `targets`, (R, n, K); `totals` are their sums."""
        n_rows, n, n_outputs = targets.shape
        flat = targets.transpose(1, 0, 2).reshape(n, n_rows * n_outputs)
        solution = self._solve(self.moments @ flat).reshape(-1, n_rows, n_outputs)
        coefficients: FloatArray = solution.transpose(1, 0, 2)
        if totals is None:
            return coefficients
        # The direction of the constrained solution from the unconstrained one.
        direction = self._solve(np.ones((len(self.order), 1)))
        missing = totals[:, None] - coefficients.sum(axis=1, keepdims=True)
        constrained: FloatArray = coefficients + direction / direction.sum() * missing
        return constrained

    def _solve(self, right: FloatArray) -> FloatArray:
        """Solve the normal equations for the right sides, (M, B)."""
        ordered = (right / self.scale[:, None])[self.order]
        solution = np.empty_like(ordered)
        solution[self.order] = scipy.linalg.cho_solve_banded((self.factor, False), ordered)
        return solution / self.scale[:, None]


def fit_sparse(design: scipy.sparse.csr_matrix, weights: FloatArray) -> SparseFit:
    """Prepare the regression on a sparse design, (n, M), with `weights`, (n,).

    It uses the normal equations. They are well-conditioned if each coefficient has an equation with
    this regressor alone and with no less weight than others, such as that of a single player. Their
    entries are 0 for players that have no set in common. The order of Cuthill and McKee moves these
    zeros outside a band.

    Raises
    ------
    SingularSystemError
        If the regressors do not determine all coefficients.
    """
    moments = (design.T @ scipy.sparse.diags(weights)).tocsr()
    normal = (moments @ design).tocsr()
    scale = np.sqrt(normal.diagonal())
    scale[scale == 0] = 1.0
    order = reverse_cuthill_mckee(normal, symmetric_mode=True).astype(np.intp)
    unit = scipy.sparse.diags(1 / scale)
    ordered = (unit @ normal @ unit).tocsr()[order][:, order].tocoo()
    n_players, width = len(scale), int(np.abs(ordered.row - ordered.col).max(initial=0))
    bands = np.zeros((width + 1, n_players))
    is_upper = ordered.row <= ordered.col
    row, column = ordered.row[is_upper], ordered.col[is_upper]
    bands[width + row - column, column] = ordered.data[is_upper]
    try:
        factor: FloatArray = scipy.linalg.cholesky_banded(bands)
        is_regular = factor[-1].min() ** 2 > n_players * np.finfo(float).eps
    except scipy.linalg.LinAlgError:
        is_regular = False
    if not is_regular:
        rank = np.linalg.matrix_rank(ordered.toarray(), hermitian=True)
        raise SingularSystemError(
            f"{design.shape[0]} equations determine {rank} of the attributions of {n_players} "
            "players."
        )
    return SparseFit(moments, factor, order, scale)
