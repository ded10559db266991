"""Pairs that interact more strongly than the fitted prior of the even part expects.

As `sparse_triples` does for the odd part, this module gives each of them a separate variance, one
after the other, by the gain of the marginal likelihood. Models such as trees have few strong
interactions among the players that take part in any.

A posterior comes close to games of pairs, but its noise keeps it about 1e-5 from them. Where there
are more values than pairs, least squares shows whether pairs leave any remainder.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from ...interactions.indices import pairs_of
from .even_kernel import EvenPrior, covariance_of_differences, even_kernel
from .marginal_likelihood import log_evidence, whitened_by
from .variances_of_features import variances_of_their_own

_ROUNDING = 1e-12
"""A remainder below this, relative to the values, is rounding."""

_SPARE_SHARE, _FEWEST_SPARE = 0.1, 4
"""Number of values that must remain to check the interactions: a share of all, and a minimum."""

_LEAST_SPREAD = 1e-8
"""Bound on the smallest entry on the diagonal of the triangular factor, over the largest."""


class PairRegression:
    """Least squares of the differences from the first value on the products of two signs.

    Parameters
    ----------
    signs : array, (n + 1, M)
        The coalitions, that of all players first.
    """

    def __init__(self, signs: FloatArray) -> None:
        self.signs = signs

    def interactions(
        self, differences: FloatArray, rounding: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return interactions and their variances, (P,) each; None if pairs leave a remainder.

        `rounding` is that of the values of the game, which may be much larger than the differences.
        """
        if self._factors is None:
            return None
        basis, triangle = self._factors
        along = basis.T @ differences
        remainder = differences - basis @ along
        size = np.sqrt((differences**2).mean())
        if np.sqrt((remainder**2).mean()) > max(_ROUNDING * size, rounding):
            return None
        values = 4 * scipy.linalg.solve_triangular(triangle, along, check_finite=False)
        of_values = np.finfo(float).eps * max(size, np.abs(values).max())
        return values, np.full(len(values), (4 * max(of_values, rounding)) ** 2)

    @cached_property
    def _factors(self) -> tuple[FloatArray, FloatArray] | None:
        """The factors of the regression; None if the values do not determine it with some spare."""
        n, n_players = len(self.signs) - 1, self.signs.shape[1]
        n_pairs = n_players * (n_players - 1) // 2
        if n - n_pairs < max(_FEWEST_SPARE, _SPARE_SHARE * n):
            return None
        features = differences_of_pairs(self.signs)
        basis, triangle = scipy.linalg.qr(features, mode="economic", check_finite=False)
        diagonal = np.abs(np.diag(triangle))
        is_determined = diagonal.min() > _LEAST_SPREAD * diagonal.max()
        return (basis, triangle) if is_determined else None


_CANDIDATES = 600
"""Number of candidates: the pairs with the most energy in the values."""

_SHARES = (1.0, 0.5, 0.25, 0.1)
"""Factors to try for the variance of all other interactions."""


def differences_of_pairs(signs: FloatArray) -> FloatArray:
    """Return the products of two signs less those of the first coalition, (n, P)."""
    first, second = pairs_of(signs.shape[1])
    products = signs[:, first] * signs[:, second]
    differences: FloatArray = products[1:] - products[:1]
    return differences


def with_sparse_pairs(
    signs: FloatArray, features: FloatArray, differences: FloatArray, prior: EvenPrior
) -> EvenPrior:
    """Return the prior with separate variances of some pairs, and less variance of the others.

    Parameters
    ----------
    signs : array, (n + 1, M)
        The coalitions, that of all players first.
    features : array, (n, P)
        Their `differences_of_pairs`.
    differences : array, (n,)
        The values of the game.
    prior : EvenPrior
        The fitted prior.
    """
    kernel, _ = even_kernel(signs, signs, prior.strengths)
    covariance = covariance_of_differences(kernel, prior.noise)
    factor = scipy.linalg.cholesky(covariance, lower=True, check_finite=False)
    values = whitened_by(factor, differences)
    whitened = whitened_by(factor, features)
    candidates = np.arange(features.shape[1])
    if len(candidates) > _CANDIDATES:
        energies = (values @ whitened) ** 2 / (whitened**2).sum(axis=0)
        largest = np.argpartition(-energies, _CANDIDATES - 1)[:_CANDIDATES]
        candidates = np.sort(largest)
    of_candidates = np.ascontiguousarray(whitened[:, candidates].T)[None]
    variances = np.zeros(features.shape[1])
    variances[candidates] = variances_of_their_own(of_candidates, values[None], len(variances))[0]
    if not variances.any():
        return prior
    own_features = features[:, variances > 0] * np.sqrt(variances[variances > 0])
    of_own = own_features @ own_features.T
    sparse = replace(prior, of_pairs=variances)
    shared = [replace(sparse, share=share) for share in _SHARES]
    scores = [_log_evidence(kernel, of_own, differences, choice) for choice in shared]
    return shared[int(np.argmax(scores))]


def _log_evidence(
    kernel: FloatArray, of_own: FloatArray, differences: FloatArray, prior: EvenPrior
) -> float:
    covariance = covariance_of_differences(prior.share * kernel, prior.noise) + of_own
    factor = scipy.linalg.cholesky(covariance, lower=True, check_finite=False)
    whitened = whitened_by(factor, differences)[:, None]
    return float(log_evidence(np.log(np.diag(factor)).sum(), whitened)[0])
