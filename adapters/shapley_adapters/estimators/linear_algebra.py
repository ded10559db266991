"""Weighted least squares, with or without a fixed sum of the coefficients, and ridges around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ..array_types import AttributionArray, BoolArray, FloatArray, IntArray
from ..errors import SingularSystemError

_STRENGTHS = (0.0, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Ridges, as multiples of the mean squared singular value of the equations. Ten cover what the
draws of any game can tell apart; the best of ten is within some per cent of the best of all."""

_DOUBT = 1.0
"""The draws must predict each other better than the fit without them by this number over theirs, as
measured on networks, votes, rules, maxima and trees with 11 players."""


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
        return equal + self.operator @ unexplained


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
    reduced = scipy.linalg.solve_triangular(triangle, orthogonal.T * roots)
    return ConstrainedFit(design, basis @ reduced, (orthogonal**2).sum(axis=1))


@dataclass(frozen=True)
class RidgeFit:
    """Ridge regressions around the fit to some equations that are always included.

    With as many equations as players, a regression follows the noise of the few that were drawn,
    whose weights are those of all other sizes. The ridge shrinks it towards the fit without them.

    Attributes
    ----------
    left, right : array, (n, M − 1) and (M, M − 1)
        Singular vectors of the weighted equations; those on the right sum to 0.
    squares : array, (M − 1,)
        Squared singular values.
    roots : array, (n,)
        Square roots of the weights.
    is_drawn : array, (n,)
        Whether an equation was drawn.
    """

    left: FloatArray
    right: FloatArray
    squares: FloatArray
    roots: FloatArray
    is_drawn: BoolArray

    @classmethod
    def from_equations(
        cls, design: FloatArray, weights: FloatArray, is_drawn: BoolArray
    ) -> RidgeFit:
        """Decompose weighted equations, (n, M), for coefficients of a fixed sum."""
        basis, roots = scipy.linalg.helmert(design.shape[1]).T, np.sqrt(weights)
        left, values, right = np.linalg.svd(roots[:, None] * (design @ basis), full_matrices=False)
        return cls(left, basis @ right.T, values**2, roots, is_drawn)

    def corrections(self, residuals: FloatArray) -> AttributionArray:
        """Return what to add to the coefficients, (R, M, K), given their residuals, (R, n, K).

        The ridge of each row and output has the least squared error at drawn equations that are
        left out of its fit.
        """
        weighted = self.roots[:, None] * residuals
        rotated = self.left.T @ weighted  # (R, M − 1, K)
        best: FloatArray = np.full((len(residuals), 1, residuals.shape[2]), np.inf)
        chosen: AttributionArray = np.zeros((len(residuals), len(self.right), residuals.shape[2]))
        for strength in (np.inf, *_STRENGTHS[::-1]):
            kept = self.squares / (self.squares + strength * self.squares.mean())
            if np.isinf(strength):
                kept = np.zeros(len(self.squares))
            slack = 1 - (self.left**2) @ kept
            if (slack[self.is_drawn] < 1e-9).any():
                continue  # a left-out equation would leave the coefficients undetermined
            left_out = (weighted - self.left @ (kept[:, None] * rotated)) / slack[:, None]
            error = (left_out[:, self.is_drawn] ** 2).sum(axis=1, keepdims=True)
            scaled = kept / np.sqrt(self.squares)
            if np.isinf(strength):  # few draws must say clearly that they know more
                best = error / (1 + _DOUBT / self.is_drawn.sum())
                continue
            better = error < best
            chosen = np.where(better, self.right @ (scaled[:, None] * rotated), chosen)
            best = np.where(better, error, best)
        return chosen


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
        return coefficients + direction / direction.sum() * missing

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
