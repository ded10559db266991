"""Variances of single features, chosen one after the other to raise the marginal likelihood most.

Tipping and Faul, Fast Marginal Likelihood Maximisation for Sparse Bayesian Models, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from ...array_types import BoolArray, FloatArray, IntArray

_LEAST_GAIN = 2.0
"""A feature gets a separate variance only if the log evidence gains more than this."""

_FALSE_SHARE = 0.6
"""Largest share of the chosen features that may be expected by chance (Benjamini and Hochberg,
Controlling the False Discovery Rate, 1995)."""

_CLOSE = 0.3
"""A variance is not corrected if its logarithm would change by at most this much."""

_MOST = 1e4
"""Bound on a variance, where that of degree 1 is 1. A game may consist of one interaction only."""

_TINY = 1e-12

_STEPS = 400
"""Bound on the steps of one search. Each step sets or corrects one variance."""


def variances_of_their_own(features: FloatArray, values: FloatArray, n_tried: int) -> FloatArray:
    """Return the variances, (R, k), that explain whitened values best; most are 0.

    Each step sets the best variance of the feature that gains most, or corrects one variance. Let
    s = fᵀK⁻¹f and r = (fᵀK⁻¹y)² / (s σ²), with K without the variance of the feature f. The best
    variance is (r − 1) / s, and the log evidence gains (r − 1 − ln r) / 2. If K were the full
    covariance, r would be the square of a standard normal number. The games of the stack take
    their steps together, until no game has a step to take.

    Parameters
    ----------
    features : array, (R, k, n)
        The candidates, whitened. The array is overwritten when games are finished.
    values : array, (R, n)
        The values, whitened.
    n_tried : int
        Number of features that the candidates were chosen from.
    """
    variances = np.zeros(features.shape[:2])
    search = _Search.from_features(features, values)
    for _ in range(_STEPS):
        indices, best = search.next_step(n_tried)
        is_open = indices >= 0
        if not is_open.all():
            variances[search.steps.games[~is_open]] = search.variances[~is_open]
            order = search.keep(is_open)
            indices, best = indices[order], best[order]
        if not len(indices):
            break
        search.take(indices, best)
    variances[search.steps.games] = search.variances
    return variances


@dataclass
class _Search:
    """Variances so far, and the state of the search, for the games that still take steps.

    Attributes
    ----------
    projections : array, (r, k)
        FᵀK⁻¹y.
    energy, least_energy, per_energy : arrays, (r,)
        yᵀK⁻¹y, its bound, and the scale σ² per unit of it.
    variances : array, (r, k)
        The variances of the candidates.
    n_given : array, (r,)
        The number of variances that are not 0.
    steps : Steps
        The changes of FᵀK⁻¹F by the steps so far.
    """

    projections: FloatArray
    energy: FloatArray
    least_energy: FloatArray
    per_energy: FloatArray
    variances: FloatArray
    n_given: IntArray
    steps: Steps

    @classmethod
    def from_features(cls, features: FloatArray, values: FloatArray) -> _Search:
        projections = (features @ values[:, :, None])[:, :, 0]
        n = values.shape[1]
        # The first values may be 0 although later ones are not.
        energy = np.maximum((values**2).sum(axis=1), _TINY)
        # Given the first half of the values, mostly interactions remain in the second half. Their
        # scale is estimated there.
        later = values[:, n // 2 :]
        share = (later**2).sum(axis=1) / (later.shape[1] * energy)
        per_energy = np.maximum(1 / n, share)
        return cls(
            projections=projections,
            energy=energy,
            least_energy=_TINY * energy,
            per_energy=per_energy,
            variances=np.zeros_like(projections),
            n_given=np.zeros(len(values), dtype=np.intp),
            steps=Steps(features),
        )

    def next_step(self, n_tried: int) -> tuple[IntArray, FloatArray]:
        """Return the index of the next feature in each game, −1 for none, and its new variance."""
        scale, diagonals = self.energy * self.per_energy, self.steps.diagonals
        games, positives = np.arange(len(scale)), np.flatnonzero(self.variances)
        surprise = self.projections * self.projections
        surprise /= diagonals * scale[:, None]
        np.put(surprise, positives, 0.0)
        # The gain grows with the surprise.
        indices = np.argmax(surprise, axis=1)
        largest = np.maximum(surprise[games, indices], 1.0)
        best = np.minimum((largest - 1.0) / diagonals[games, indices], _MOST)
        gains = (largest - 1.0 - np.log(largest)) / 2
        by_chance = 2 * scipy.special.ndtr(-np.sqrt(largest)) * n_tried
        so_many = self.n_given + 1
        is_nothing = (gains <= _LEAST_GAIN) | (by_chance > _FALSE_SHARE * so_many)
        if is_nothing.any():
            changed, corrected = self._most_changed(positives, scale)
            indices = np.where(is_nothing, changed, indices)
            best = np.where(is_nothing, corrected, best)
        return indices, best

    def _most_changed(self, positives: IntArray, scale: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the index of the variance of each game that is farthest from its best, and this.

        The index is −1 if all variances are close to their best.

        Parameters
        ----------
        positives : array
            Indices of the variances that are not 0, in the flattened array.
        scale : array, (r,)
            The scale σ² of each game.
        """
        games, changes = np.arange(len(scale)), np.zeros_like(self.variances)
        variances = np.take(self.variances, positives)
        diagonals = np.take(self.steps.diagonals, positives)
        # Remove the effect of each feature's variance from its sums.
        remaining = np.maximum(1.0 - variances * diagonals, _TINY)
        sums, squares = (
            diagonals / remaining,
            (np.take(self.projections, positives) / remaining) ** 2,
        )
        surprise = np.maximum(squares / (sums * scale[positives // changes.shape[1]]), 1.0)
        best = np.minimum((surprise - 1.0) / sums, _MOST)
        np.put(changes, positives, np.abs(np.log((best + _TINY) / (variances + _TINY))))
        indices = np.argmax(changes, axis=1)
        best_of_all = np.zeros_like(changes)
        np.put(best_of_all, positives, best)
        is_far = changes[games, indices] > _CLOSE
        return np.where(is_far, indices, -1), best_of_all[games, indices]

    def take(self, indices: IntArray, best: FloatArray) -> None:
        """Set the best variances of the features with these indices."""
        games = np.arange(len(indices))
        projections, before = self.projections[games, indices], self.variances[games, indices]
        added = best - before
        projection = projections / (1.0 + added * self.steps.diagonals[games, indices])
        shared, factors = self.steps.take(indices, added)
        self.variances[games, indices] = best
        self.n_given += (best > 0).astype(np.intp) - (before > 0)
        self.energy = np.maximum(self.energy - factors * projections**2, self.least_energy)
        self.projections -= (factors * projections)[:, None] * shared
        self.projections[games, indices] = projection

    def keep(self, is_open: BoolArray) -> IntArray:
        """Go on with some of the games, and return their old indices in the new order."""
        order = self.steps.keep(is_open)
        for name in ("projections", "energy", "least_energy", "per_energy", "variances", "n_given"):
            setattr(self, name, getattr(self, name)[order])
        return order


class Steps:
    """The matrix FᵀK⁻¹F after the steps so far. Only the rows that are needed are computed.

    Attributes
    ----------
    diagonals : array, (r, k)
        The diagonals of FᵀK⁻¹F. If a game has no noise, a step makes the entry of its feature very
        small, and a difference of sums would be rounding. So this entry is computed by a formula
        of its own.
    games : array, (r,)
        Which games of the stack still take steps.

    Parameters
    ----------
    features : array, (R, k, n)
        F before any step, whitened. Overwritten by `keep`.
    """

    def __init__(self, features: FloatArray) -> None:
        n_games, n_features, _ = features.shape
        self.features, self.n = features, 0
        self.diagonals = np.einsum("rkn,rkn->rk", features, features)
        self.games = np.arange(n_games)
        self.rows = np.empty((n_games, _STEPS, n_features))
        self.factors = np.empty((n_games, _STEPS))
        self.kept: list[dict[int, FloatArray]] = [{} for _ in range(n_games)]

    def take(self, indices: IntArray, added: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Add to the variance of one feature of each game.

        Returns
        -------
        array, (r, k)
            Its row fᵀK⁻¹F before.
        array, (r,)
            FᵀK⁻¹F falls by this factor times the outer product of the row with itself.
        """
        n_games, n = len(indices), self.n
        games = np.arange(n_games)
        diagonals = self.diagonals[games, indices]
        rows = self.rows[:n_games, :n]
        shared = self._products(indices)
        before = self.factors[:n_games, :n] * rows[games, :, indices]
        shared -= (before[:, None] @ rows)[:, 0]
        shared[games, indices] = diagonals
        self.rows[:n_games, n] = shared
        factors = self.factors[:n_games, n] = added / (1.0 + added * diagonals)
        less = shared * shared
        less *= factors[:, None]
        self.diagonals -= less
        np.maximum(self.diagonals, _TINY, out=self.diagonals)
        self.diagonals[games, indices] = diagonals / (1.0 + added * diagonals)
        self.n += 1
        return shared, factors

    def _products(self, indices: IntArray) -> FloatArray:
        """Return the products of a feature of each game with all its features, (r, k).

        Half of the steps correct a variance, for which the products are those of an earlier step.
        """
        products = np.empty((len(indices), self.features.shape[1]))
        for game, index in enumerate(indices.tolist()):
            kept = self.kept[game]
            if index not in kept:
                features = self.features[game]
                kept[index] = features @ features[index]
            products[game] = kept[index]
        return products

    def keep(self, is_open: BoolArray) -> IntArray:
        """Go on with some of the games, and return their old indices in the new order.

        The last games move to the indices of finished games, so that few features are copied.
        """
        n_open = np.count_nonzero(is_open)
        order, gaps = np.arange(n_open), np.flatnonzero(~is_open[:n_open])
        order[gaps] = last = n_open + np.flatnonzero(is_open[n_open:])
        self.features[gaps] = self.features[last]
        self.rows[gaps, : self.n] = self.rows[last, : self.n]
        self.kept = [self.kept[index] for index in order.tolist()]
        self.factors[gaps, : self.n] = self.factors[last, : self.n]
        self.diagonals, self.games = self.diagonals[order], self.games[order]
        return order
