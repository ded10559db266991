"""Games that linear functions of few features explain without remainder.

A remainder of rounding says that the features are the terms of the game. Then least squares give
its exact Shapley values, which no posterior does, because its prior shrinks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ...array_types import BoolArray, FloatArray, IntArray
from .factor_cache import FactorCache, coalitions_key, sorted_players
from .marginal_likelihood import column_by_column, mean_squares

_ROUNDING = 1e-12
"""A remainder below this, relative to the values, is rounding."""

_LEAST_SPREAD = 1e-10
"""Bound on the linear independence of the features: the smallest entry on the diagonal of the
triangular factor, over the largest. Below it, the coefficients are not determined."""

_FEWEST_SPARE = 4
"""Number of values that must remain to show that players interact only all together."""


@dataclass(frozen=True)
class ExactFit:
    """The Shapley values of those of B games that few features explain.

    Attributes
    ----------
    is_exact : array, (B,)
        Whether the features explain the game without remainder.
    means, variances : arrays, (M, B)
        The Shapley values of these games, and their variances by rounding; 0 for other games.
    """

    is_exact: BoolArray
    means: FloatArray
    variances: FloatArray

    @classmethod
    def none(cls, n_players: int, n_games: int) -> ExactFit:
        """Return the fit of games that are not explained."""
        return cls(np.zeros(n_games, dtype=bool), *np.zeros((2, n_players, n_games)))

    def or_else(self, other: ExactFit) -> ExactFit:
        """Return this fit, and another one for games that it does not explain."""
        return ExactFit(
            self.is_exact | other.is_exact,
            np.where(self.is_exact, self.means, other.means),
            np.where(self.is_exact, self.variances, other.variances),
        )

    def reordered(self, order: IntArray) -> ExactFit:
        """Return the fit with the players in another order."""
        return replace(self, means=self.means[order], variances=self.variances[order])


@dataclass(frozen=True)
class Terms:
    """The terms of a game: features of coalitions, and how they count in Shapley values.

    Attributes
    ----------
    basis : array, (n, k)
        An orthonormal basis of the features; k is 0 if their coefficients are not determined.
    weights : array, (k, M)
        The Shapley values of a game that is a column of the basis.
    """

    basis: FloatArray
    weights: FloatArray

    @classmethod
    def from_features(cls, features: FloatArray, maps: FloatArray) -> Terms:
        """Return features, (n, k), whose coefficients count for the players by maps, (k, M)."""
        basis, triangle = scipy.linalg.qr(features, mode="economic", check_finite=False)
        diagonal = np.abs(np.diag(triangle))
        if diagonal.min() < _LEAST_SPREAD * diagonal.max():
            return cls(basis[:, :0], maps[:0])
        return cls(
            basis, scipy.linalg.solve_triangular(triangle, maps, trans="T", check_finite=False)
        )

    def fit(self, targets: FloatArray) -> ExactFit:
        """Return the Shapley values of the games, (n, B), that the features explain."""
        fit = ExactFit.none(self.weights.shape[1], targets.shape[1])
        along = column_by_column(lambda block: self.basis.T @ block, targets)
        remainder = targets - column_by_column(lambda block: self.basis @ block, along)
        sizes = mean_squares(remainder)
        fit.is_exact[:] = sizes <= _ROUNDING**2 * mean_squares(targets)
        if fit.is_exact.any():
            means = column_by_column(lambda block: self.weights.T @ block, along)
            rounding = (4 * np.finfo(float).eps * np.abs(targets).max(axis=0)) ** 2
            variances = sizes * (self.weights**2).sum(axis=0)[:, None] + rounding
            fit.means[:] = np.where(fit.is_exact, means, 0.0)
            fit.variances[:] = np.where(fit.is_exact, variances, 0.0)
        return fit


def additive_games(signs: FloatArray, targets: FloatArray) -> ExactFit:
    """Return the Shapley values of games in which no players interact, or only all of them.

    One value more than there are players suggests that a game is additive: those of single players
    and of all players together are enough. Interactions may cancel in few values. Minima and
    products of all players differ from additive games at the coalition of all players only. What
    other values leave there counts for all alike.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (n, B)
        Their values.
    """
    n, n_players = signs.shape
    fit = sums_of_players(signs, targets)
    if n > n_players + _FEWEST_SPARE:
        fit = fit.or_else(_sums_of_players(signs, targets, has_together=True))
    return fit


def sums_of_players(signs: FloatArray, targets: FloatArray) -> ExactFit:
    """Return the Shapley values of games in which no players interact; see `additive_games`."""
    n, n_players = signs.shape
    if n <= n_players:
        return ExactFit.none(n_players, targets.shape[1])
    return _sums_of_players(signs, targets, has_together=False)


def _sums_of_players(signs: FloatArray, targets: FloatArray, has_together: bool) -> ExactFit:
    """Return the fit of games by single players, and by all together, if it is there."""
    players = sorted_players(signs)
    fit = _terms(signs[:, players], has_together).fit(targets)
    return fit.reordered(np.argsort(players))


def _terms(signs: FloatArray, has_together: bool) -> Terms:
    """Return the features of single players, and that of all players together, if it is there.

    They are kept for later calls.
    """
    n, n_players = signs.shape
    features, maps = signs, 2 * np.eye(n_players)
    if has_together:
        features = np.hstack([signs, np.eye(n, 1)])
        maps = np.vstack([maps, np.full((1, n_players), 2 / n_players)])
    key = coalitions_key(signs), has_together
    return _cache.get(key, lambda: Terms.from_features(features, maps))


_cache: FactorCache[Terms] = FactorCache()
