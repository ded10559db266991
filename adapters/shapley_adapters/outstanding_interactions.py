"""Interactions of three players that stand out from what a prior of odd games expects of them.

Learned weights say how strongly each player takes part in interactions. Models such as trees have
few strong ones among the players that take part, and these get variances of their own here, one
after the other, as the marginal likelihood gains most (Tipping and Faul, Fast Marginal Likelihood
Maximisation for Sparse Bayesian Models, 2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import scipy.linalg
import scipy.special

from .array_types import FloatArray, IntArray
from .evidence import factor_of, log_evidence, whitened_by
from .odd_kernels import OddKernels, Ratios

_LEAST_GAIN = 3.0
"""What the log evidence has to gain by a variance of its own."""

_FALSE_SHARE = 0.3
"""How many of those that stand out may be expected to do so by chance (Benjamini and Hochberg,
Controlling the False Discovery Rate, 1995)."""

_CANDIDATES = 600
"""Interactions that are looked at closely: those that have found the most energy."""

_LOOKS = 2
"""How often candidates are found, the second time beside those that stand out already."""

_SHARES = (1.0, 0.5, 0.25, 0.1)
"""What may be left of the variance of all other interactions."""

_CLOSE = 0.3
"""Change of the logarithm of a variance that is not worth another step."""

_MOST = 1e4
"""Bound on a variance, where that of degree 1 is 1: a game may be nothing but one interaction."""

_TINY = 1e-12

_STEPS = 400
"""Bound on the steps of one look, each of which gives or changes one variance."""


@dataclass(frozen=True)
class Outstanding:
    """Interactions with variances of their own.

    Attributes
    ----------
    players : array, (k, 3)
        The players of each.
    variances : array, (k,)
        What each has beyond the prior's variance of its coefficient; that of degree 1 sums to 1.
    """

    players: IntArray
    variances: FloatArray

    @classmethod
    def none(cls) -> Outstanding:
        """Return that nothing stands out."""
        return cls(np.empty((0, 3), dtype=np.intp), np.empty(0))

    def features(self, signs: FloatArray) -> FloatArray:
        """Return the products of the players' signs, (n, k), times their standard deviations."""
        features: FloatArray = _products(signs, self.players) * np.sqrt(self.variances)
        return features

    def attributions(self, n_players: int) -> FloatArray:
        """Return what each standard deviation adds to the Shapley values, (k, M)."""
        of_players = np.zeros((len(self.players), n_players))
        np.put_along_axis(of_players, self.players, 2 / 3, axis=1)
        scaled: FloatArray = of_players * np.sqrt(self.variances)[:, None]
        return scaled


def find_outstanding(
    kernels: OddKernels, targets: FloatArray, ratios: Ratios
) -> tuple[Outstanding, Ratios]:
    """Return what stands out, and the ratios of what is left.

    Parameters
    ----------
    kernels : OddKernels
        Between the coalitions, that of all players first, at learned weights.
    targets : array, (n,)
        The values of the coalitions.
    ratios : Ratios
        What was learned besides.
    """
    found, signs, weights = Outstanding.none(), kernels.signs, kernels.weights
    players = _watched(weights, len(signs))
    if len(players) < 3:
        return found, ratios
    triples = players[_all_triples(len(players))]
    expected = weights[triples].prod(axis=1)
    for _ in range(_LOOKS):
        factor = factor_of(kernels, ratios)
        whitened = whitened_by(factor, np.column_stack([targets, found.features(signs)]))
        values, known = whitened[:, 0], whitened[:, 1:]
        unexplained = scipy.linalg.solve_triangular(
            factor, _without(values, known), lower=True, trans=1, check_finite=False
        )
        energies = expected * _forms(signs[:, players], unexplained) ** 2
        most = np.argpartition(-energies, min(_CANDIDATES, len(energies) - 1))[:_CANDIDATES]
        candidates = np.unique(np.concatenate([triples[most], found.players]), axis=0)
        features = whitened_by(factor, _products(signs, candidates))
        variances = _variances_of_their_own(features, values, len(triples))
        if not variances.any():
            return found, ratios
        found = Outstanding(candidates[variances > 0], variances[variances > 0])
        ratios = _with_less_of_others(kernels, ratios, targets, found)
    return found, ratios


@lru_cache(maxsize=4)
def _all_triples(n_players: int) -> IntArray:
    """Return all sets of three players, (k, 3)."""
    return np.array(list(combinations(range(n_players), 3)))


def _watched(weights: FloatArray, n: int) -> IntArray:
    """Return the players of the largest weights, so few that looking at all triples is cheap."""
    most = min(len(weights), int((4 * n * n) ** (1 / 3)))
    return np.sort(np.argsort(-weights, kind="stable")[:most])


def _products(signs: FloatArray, triples: IntArray) -> FloatArray:
    """Return the products of the signs of three players, (n, k)."""
    products: FloatArray = signs[:, triples].prod(axis=2)
    return products


def _forms(signs: FloatArray, values: FloatArray) -> FloatArray:
    """Return the products with `values` of those of all triples, in the order of combinations."""
    forms = []
    for first in range(signs.shape[1] - 2):
        others = signs[:, first + 1 :]
        pairs = (others * (signs[:, first] * values)[:, None]).T @ others
        forms.append(pairs[np.triu_indices(len(pairs), 1)])
    return np.concatenate(forms)


def _without(values: FloatArray, features: FloatArray) -> FloatArray:
    """Return (I + F Fᵀ)⁻¹ times the values, for few features F."""
    inner = np.eye(features.shape[1]) + features.T @ features
    left: FloatArray = values - features @ np.linalg.solve(inner, features.T @ values)
    return left


def _variances_of_their_own(features: FloatArray, values: FloatArray, n_tried: int) -> FloatArray:
    """Return the variances, (k,), that explain whitened values best; most are 0.

    Each step gives the feature that gains most its best variance, or corrects one. With s = fᵀK⁻¹f
    and r = (fᵀK⁻¹y)² / (s σ²), K without the feature's own variance, the best is (r − 1) / s, which
    gains (r − 1 − ln r) / 2. Were K all there is, r would be the square of a standard normal
    number.

    Parameters
    ----------
    features : array, (n, k)
        The candidates, whitened.
    values : array, (n,)
        The values, whitened.
    n_tried : int
        Number of features that the candidates were chosen from.
    """
    found, energy = features.T @ values, float(values @ values)
    least_energy = _TINY * energy
    # Half of the values leave little but interactions in the others: these tell their scale.
    later = values[len(values) // 2 :]
    per_energy = max(1 / len(values), float(later @ later) / (len(later) * energy))
    variances = np.zeros(len(found))
    steps = _Steps(features)
    for _ in range(_STEPS):
        scale = energy * per_energy
        # Take out of each feature's sums what its own variance did to them.
        others = np.maximum(1.0 - variances * steps.own, _TINY)
        sums, squares = steps.own / others, (found / others) ** 2
        surprise = np.maximum(squares / (sums * scale), 1.0)
        best = np.minimum((surprise - 1.0) / sums, _MOST)
        gains = np.where(variances > 0, 0.0, (surprise - 1.0 - np.log(surprise)) / 2)
        place = int(np.argmax(gains))
        by_chance = 2 * scipy.special.ndtr(-np.sqrt(surprise[place])) * n_tried
        so_many = np.count_nonzero(variances) + 1
        if gains[place] <= _LEAST_GAIN or by_chance > _FALSE_SHARE * so_many:
            changes = np.abs(np.log((best + _TINY) / (variances + _TINY))) * (variances > 0)
            place = int(np.argmax(changes))
            if changes[place] <= _CLOSE:
                break
        added = best[place] - variances[place]
        left = found[place] / (1.0 + added * steps.own[place])
        shared, factor = steps.take(place, added)
        variances[place] = best[place]
        energy = max(energy - factor * found[place] ** 2, least_energy)
        found = found - factor * found[place] * shared
        found[place] = left
    return variances


class _Steps:
    """What steps did to FᵀK⁻¹F, of which rows are made as they are asked for.

    Attributes
    ----------
    own : array, (k,)
        Its diagonal. Where a game has no noise, a step leaves so little of it that differences of
        sums would not tell; the step's own place is known without them.

    Parameters
    ----------
    features : array, (n, k)
        F before any step, whitened.
    """

    def __init__(self, features: FloatArray) -> None:
        self.features, self.n = features, 0
        self.own = (features**2).sum(axis=0)
        self.rows = np.empty((_STEPS, features.shape[1]))
        self.factors = np.empty(_STEPS)

    def take(self, place: int, added: float) -> tuple[FloatArray, float]:
        """Add to the variance of one feature.

        Returns
        -------
        array, (k,)
            Its row fᵀK⁻¹F before.
        float
            By which factor of the row's outer product with itself FᵀK⁻¹F falls.
        """
        own = self.own[place]
        before = self.factors[: self.n] * self.rows[: self.n, place]
        row = self.features[:, place] @ self.features - before @ self.rows[: self.n]
        row[place] = own
        factor = added / (1.0 + added * own)
        self.own = np.maximum(self.own - factor * row**2, _TINY)
        self.own[place] = own / (1.0 + added * own)
        self.rows[self.n], self.factors[self.n] = row, factor
        self.n += 1
        return row, factor


def _with_less_of_others(
    kernels: OddKernels, ratios: Ratios, targets: FloatArray, outstanding: Outstanding
) -> Ratios:
    """Return the ratios with the share of degrees 3 and 5 that explains the values best.

    The prior was learned when what stands out was among them. The noise stays as it is.
    """
    features = outstanding.features(kernels.signs)
    scores, choices = [], []
    for share in _SHARES:
        choice = Ratios(ratios.third * share, ratios.fifth, ratios.noise / share)
        factor = factor_of(kernels, choice, features)
        scores.append(float(log_evidence(factor, whitened_by(factor, targets[:, None]))[0]))
        choices.append(choice)
    return choices[int(np.argmax(scores))]
