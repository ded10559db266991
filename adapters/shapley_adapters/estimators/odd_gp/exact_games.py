"""Exact Shapley values of games that few terms explain without remainder.

A remainder of rounding says that the features are the terms of the game. Then least squares give
its exact Shapley values, which no posterior does, because its prior shrinks.

Rules, trees of few features and minima of few numbers are sums of few products of signs. A
posterior comes close to such games, but its noise and its jitter prevent an exact result. If the
error of the posterior is small, its largest coefficients are fitted by least squares. If there are
fewer coefficients than values, and the remainder is rounding only, then these are the coefficients
of the game. They give its exact Shapley values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import scipy.linalg

from ...array_types import BoolArray, FloatArray, IntArray
from .estimands import PairInteractions
from .factors import FactorCache, coalitions_key, sorted_players
from .kernels import FEWEST_PLAYERS, Kernel, Prior, log_norm
from .marginal_likelihood import Features, column_by_column, covariance_of, mean_squares
from .posterior import Posterior
from .sparse_interactions import SparseInteractions, all_sets, all_triples, sums_of_triples

_ROUNDING = 1e-12
"""A remainder below this, relative to the values, is rounding."""

_LEAST_SPREAD = 1e-10
"""Bound on the linear independence of the features: the smallest entry on the diagonal of the
triangular factor, over the largest. Below it, the coefficients are not determined."""

_SPARE_FOR_TOGETHER = 4
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
    if n > n_players + _SPARE_FOR_TOGETHER:
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


def exact_if_of_pairs(
    estimand: PairInteractions, signs: FloatArray, values: FloatArray, posterior: Posterior
) -> Posterior:
    """Return the posterior of interactions, exact for games whose even part consists of pairs.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions.
    values : array, (R, n, K)
        The even part of the games.
    posterior : Posterior
        Means and variances, (R, k, K).
    """
    n, n_pairs = len(signs), estimand.n_outputs - estimand.n_players
    deviations = np.sqrt(posterior.variances[:, :n_pairs]).sum(axis=1)
    are_close = deviations <= _RELATIVE_ERROR * np.abs(posterior.means[:, :n_pairs]).sum(axis=1)
    if n - 1 - n_pairs < max(_SPARE_FOR_TERMS, _SPARE_SHARE * n) or not are_close.any():
        return posterior
    pairs = all_sets(estimand.n_players, 2)
    features = np.concatenate([np.ones((n, 1)), _features(signs, pairs)], axis=1)
    maps = np.concatenate([np.zeros((1, estimand.n_outputs)), estimand.maps(pairs)])
    terms, means, variances = (
        Terms.from_features(features, maps),
        posterior.means.copy(),
        posterior.variances.copy(),
    )
    for row, output in np.argwhere(are_close).tolist():
        fit = terms.fit(np.ascontiguousarray(values[row, :, output])[:, None])
        if fit.is_exact[0]:
            means[row, :, output] = fit.means[:, 0]
            variances[row, :, output] = fit.variances[:, 0]
    return replace(posterior, means=means, variances=variances)


_RELATIVE_ERROR = 1e-2
"""Bound on the posterior standard deviations over the Shapley values. Above it, no least-squares
fit is tried."""

_LEAST_COEFFICIENTS = (1e-3, 1e-6)
"""Bounds on the coefficients of larger sets, over the largest one. They are tried in this order."""

_SPARE_SHARE = 0.1
"""Share of the values that must remain to check that a game consists of pairs."""

_SPARE_FOR_TERMS = 4
"""Number of values that must remain to check the coefficients, at least. As many remain as there
are coefficients of larger sets: the sets are chosen by the same values, and two choices of k sets
can be told apart by 2 k values only."""

_PLAYERS_OF_TRIPLES, _PLAYERS_OF_ALL_SIZES = 24, 8
"""Sets of three are tried among this number of players of the largest strengths, larger sets among
fewer players."""

_NEAR_ROUNDING = 1e-6
"""A remainder above this, relative to the values, is not rounding, even if the coefficients are
those of the normal equations, whose errors are larger. Most fits stop here."""

_LEAST_PIVOT = 1e-4
"""Bound on the pivots of the normal equations. Below it, they are too inaccurate to decide."""

_DEPENDENT_PIVOT = 1e-6
"""Pivots below this are rounding: the products of signs are linearly dependent."""


def with_exact_games(
    kernel: Kernel,
    targets: FloatArray,
    prior: Prior,
    sparse: list[SparseInteractions],
    posterior: Posterior,
) -> Posterior:
    """Return the posterior, exact for the games of a stack that few coefficients explain.

    Parameters
    ----------
    kernel : Kernel
        Between the coalitions, that of all players first, at fitted strengths, (R, M).
    targets : array, (R, n)
        The values of the coalitions.
    prior : Prior
        The fitted prior.
    sparse : list of SparseInteractions
        Interactions with variances of their own, of each game.
    posterior : Posterior
        Means and variances, (R, M, 1).
    """
    if kernel.signs.shape[1] < FEWEST_PLAYERS:
        return posterior
    means, variances = posterior.means.copy(), posterior.variances.copy()
    deviations = np.sqrt(variances[:, :, 0]).sum(axis=1)
    is_close = deviations < _RELATIVE_ERROR * np.abs(means[:, :, 0]).sum(axis=1)
    products = ProductsOfSigns(kernel.signs)
    for game in np.flatnonzero(is_close).tolist():
        coefficients = _posterior_coefficients(
            kernel.subset_games([game]),
            targets[game],
            prior.subset_games([game]),
            sparse[game],
            products,
        )
        exact = _exact_values(kernel.signs, targets[game], coefficients)
        if exact is not None:
            means[game, :, 0], variances[game, :, 0] = exact
    return replace(posterior, means=means, variances=variances)


Coefficients = list[tuple[IntArray, FloatArray]]
"""Sets of each size, (k, size), with their coefficients, (k,)."""


class ProductsOfSigns:
    """Products of the signs of sets of players; those of the last sets of each size are kept.

    Games of few players have the same sets of three: all.

    Parameters
    ----------
    signs : array, (n, M)
        The signs.
    """

    def __init__(self, signs: FloatArray) -> None:
        self._signs = signs
        self._kept: dict[int, tuple[IntArray, FloatArray]] = {}

    def sums(self, players: IntArray, size: int, values: FloatArray) -> FloatArray:
        """Return the inner products with values, (n,), for each set of some players, (k,)."""
        if size == 3 and len(players) < self._signs.shape[1]:
            of_players = np.ascontiguousarray(self._signs.T[players])
            of_triples: FloatArray = sums_of_triples(of_players[None], values[None])[0]
            return of_triples
        sets = players[_sets(len(players), size)]
        kept, products = self._kept.get(size, (None, None))
        if kept is None or products is None or not np.array_equal(kept, sets):
            products = _features(self._signs, sets).T
            self._kept[size] = sets, products
        inner: FloatArray = products @ values
        return inner


def _posterior_coefficients(
    kernel: Kernel,
    target: FloatArray,
    prior: Prior,
    sparse: SparseInteractions,
    products: ProductsOfSigns,
) -> Coefficients:
    """Return the posterior means of the coefficients of larger sets of a stack of one game."""
    features = Features([sparse.features(kernel.signs)])
    covariance = covariance_of(kernel, prior, features)[0]
    factor = scipy.linalg.cho_factor(covariance, lower=True, check_finite=False)
    solved = scipy.linalg.cho_solve(factor, target, check_finite=False)
    strengths = prior.strengths[0]
    scale = np.exp(-log_norm(strengths)) * prior.interactions[0]
    coefficients = []
    for size in range(3, _PLAYERS_OF_ALL_SIZES + 1, 2):
        players = _strongest(strengths, size)
        if len(players) < size:
            break
        sets = players[_sets(len(players), size)]
        values = scale * strengths[sets].prod(axis=1) * products.sums(players, size, solved)
        if size == 3 and len(sparse.players):
            sums = _features(kernel.signs, sparse.players).T @ solved
            sets = np.concatenate([sets, sparse.players])
            values = np.concatenate([values, sparse.variances * sums])
        coefficients.append((sets, values))
    return coefficients


def _strongest(strengths: FloatArray, size: int) -> IntArray:
    """Return the players of the largest strengths, in order, whose sets of a size are tried."""
    n_players = _PLAYERS_OF_TRIPLES if size == 3 else _PLAYERS_OF_ALL_SIZES
    players: IntArray = np.sort(np.argsort(-strengths, kind="stable")[:n_players])
    return players


@lru_cache(maxsize=16)
def _sets(n_players: int, size: int) -> IntArray:
    """Return all sets of a size, (k, size), of the first players."""
    if size == 3:
        return all_triples(n_players)
    sets = list(combinations(range(n_players), size))
    return np.array(sets, dtype=np.intp).reshape(-1, size)


def _features(signs: FloatArray, sets: IntArray) -> FloatArray:
    """Return the products of the signs, (n, M), of sets, (k, size): an array, (n, k)."""
    of_players = np.ascontiguousarray(signs.T)
    products = of_players[sets[:, 0]]
    for players in sets.T[1:]:
        products *= of_players[players]
    return products.T


def _exact_values(
    signs: FloatArray, target: FloatArray, coefficients: Coefficients
) -> tuple[FloatArray, FloatArray] | None:
    """Return Shapley values and variances, (M,) each, if few coefficients leave no remainder."""
    n, n_players = signs.shape
    n_spare = n - n_players
    limit = min(n_spare // 2, n_spare - _SPARE_FOR_TERMS)
    sizes = np.concatenate([np.abs(values) for _, values in coefficients])
    order = np.argsort(-sizes, kind="stable")
    n_terms = 0
    for least in _LEAST_COEFFICIENTS:
        n_before, n_terms = n_terms, int(np.count_nonzero(sizes > least * sizes.max()))
        if n_before < n_terms <= limit:
            sets = _largest_sets(coefficients, order[:n_terms])
            exact = _fitted(signs, target, sets, coefficients)
            if exact is not None:
                return exact
    return None


def _largest_sets(coefficients: Coefficients, indices: IntArray) -> list[IntArray]:
    """Return the sets of each size whose coefficients have these indices, each set once."""
    largest, start = [], 0
    for sets, _ in coefficients:
        of_size = indices[(indices >= start) & (indices < start + len(sets))] - start
        start += len(sets)
        if len(of_size):
            largest.append(np.unique(sets[of_size], axis=0))
    return largest


def _fitted(
    signs: FloatArray, target: FloatArray, sets: list[IntArray], coefficients: Coefficients
) -> tuple[FloatArray, FloatArray] | None:
    """Return Shapley values and variances by least squares, if the remainder is rounding.

    Where other sets explain the values as well, the values are the mean over all explanations.
    """
    found = _explained(signs, target, sets)
    if found is None:
        return None
    fits = [found]
    for others in _alike(signs, found[0].basis, sets, coefficients):
        fit = _explained(signs, target, others)
        fits += [] if fit is None else [fit]
    means = np.array([fit.means[:, 0] for _, fit in fits])
    return means.mean(axis=0), found[1].variances[:, 0] + means.var(axis=0)


def _explained(
    signs: FloatArray, target: FloatArray, sets: list[IntArray]
) -> tuple[Terms, ExactFit] | None:
    """Return single players and larger sets as terms, and the fit, if its remainder is rounding."""
    n_players = signs.shape[1]
    all_sets = [np.arange(n_players)[:, None], *sets]
    features = np.concatenate([_features(signs, of_size) for of_size in all_sets], axis=1)
    if _leaves_remainder(features, target):
        return None
    maps = np.concatenate([_maps(n_players, of_size) for of_size in all_sets])
    terms = Terms.from_features(features, maps)
    fit = terms.fit(target[:, None])
    return (terms, fit) if fit.is_exact[0] else None


def _alike(
    signs: FloatArray, basis: FloatArray, sets: list[IntArray], coefficients: Coefficients
) -> Iterator[list[IntArray]]:
    """Yield the sets with one replaced by another one that is a combination of the terms.

    With six players, two sets of three may have the same products of signs, but for single players,
    at all of 15 pairs. Then no value says which of them interacts.
    """
    chosen = [tuple(one) for of_size in sets for one in of_size.tolist()]
    for candidates, _ in coefficients:
        features = _features(signs, candidates)
        remainder = mean_squares(features - basis @ (basis.T @ features))
        explained = set(map(tuple, candidates[remainder < _DEPENDENT_PIVOT**2].tolist()))
        for other in sorted(explained.difference(chosen)):
            for index in range(len(chosen)):
                replaced = [*chosen[:index], other, *chosen[index + 1 :]]
                yield [np.array(one)[None] for one in sorted(replaced)]


def _leaves_remainder(features: FloatArray, target: FloatArray) -> bool:
    """Return whether the normal equations already say that the features are no exact explanation.

    They leave a remainder, or are linearly dependent, so that the coefficients are not determined.
    The normal equations take a fraction of the time of an orthogonal basis.
    """
    gram = features.T @ features  # products of signs: these sums are exact
    factor, info = scipy.linalg.lapack.dpotrf(gram, lower=1, overwrite_a=1)
    least_pivot = 0.0 if info else np.diag(factor).min() / np.sqrt(len(target))
    if least_pivot < _DEPENDENT_PIVOT:
        return True
    if least_pivot < _LEAST_PIVOT:
        return False
    coefficients, _ = scipy.linalg.lapack.dpotrs(factor, features.T @ target, lower=1)
    remainder = target - features @ coefficients
    return bool(remainder @ remainder > _NEAR_ROUNDING**2 * (target @ target))


def _maps(n_players: int, sets: IntArray) -> FloatArray:
    """Return by how much the coefficient of each set, (k, size), counts for each player, (k, M)."""
    maps = np.zeros((len(sets), n_players))
    np.put_along_axis(maps, sets, 2 / sets.shape[1], axis=1)
    return maps
