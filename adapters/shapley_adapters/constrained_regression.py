"""Weighted least squares whose coefficients have a given sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

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
