"""Variances of single features, given one after the other as the marginal likelihood gains most.

Tipping and Faul, Fast Marginal Likelihood Maximisation for Sparse Bayesian Models, 2003.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from ...array_types import BoolArray, FloatArray, IntArray

_LEAST_GAIN = 3.0
"""What the log evidence has to gain by a variance of its own."""

_FALSE_SHARE = 0.3
"""How many of those that stand out may be expected to do so by chance (Benjamini and Hochberg,
Controlling the False Discovery Rate, 1995)."""

_CLOSE = 0.3
"""Change of the logarithm of a variance that is not worth another step."""

_MOST = 1e4
"""Bound on a variance, where that of degree 1 is 1: a game may be nothing but one interaction."""

_TINY = 1e-12

_STEPS = 400
"""Bound on the steps of one look, each of which gives or changes one variance."""


def variances_of_their_own(features: FloatArray, values: FloatArray, n_tried: int) -> FloatArray:
    """Return the variances, (R, k), that explain whitened values best; most are 0.

    Each step gives the feature that gains most its best variance, or corrects one. With s = fᵀK⁻¹f
    and r = (fᵀK⁻¹y)² / (s σ²), K without the feature's own variance, the best is (r − 1) / s, which
    gains (r − 1 − ln r) / 2. Were K all there is, r would be the square of a standard normal
    number. The games of the stack take their steps together, until each has no step to take.

    Parameters
    ----------
    features : array, (R, k, n)
        The candidates, whitened.
    values : array, (R, n)
        The values, whitened.
    n_tried : int
        Number of features that the candidates were chosen from.
    """
    variances = np.zeros(features.shape[:2])
    search = _Search.of(features, values)
    for _ in range(_STEPS):
        places, best = search.next_step(n_tried)
        is_open = places >= 0
        if not is_open.all():
            variances[search.steps.games[~is_open]] = search.variances[~is_open]
            search.keep(is_open)
            places, best = places[is_open], best[is_open]
        if not len(places):
            break
        search.take(places, best)
    variances[search.steps.games] = search.variances
    return variances


@dataclass
class _Search:
    """Variances so far, and what they leave, for the games that still take steps.

    Attributes
    ----------
    found : array, (r, k)
        FᵀK⁻¹y.
    energy, least_energy, per_energy : arrays, (r,)
        yᵀK⁻¹y, its bound, and the scale σ² per unit of it.
    variances : array, (r, k)
        The candidates' own.
    steps : Steps
        What happened to FᵀK⁻¹F.
    """

    found: FloatArray
    energy: FloatArray
    least_energy: FloatArray
    per_energy: FloatArray
    variances: FloatArray
    steps: Steps

    @classmethod
    def of(cls, features: FloatArray, values: FloatArray) -> _Search:
        found = (features @ values[:, :, None])[:, :, 0]
        n = values.shape[1]
        energy = (values**2).sum(axis=1)
        # Half of the values leave little but interactions in the others: these tell their scale.
        later = values[:, n // 2 :]
        share = (later**2).sum(axis=1) / (later.shape[1] * energy)
        per_energy = np.maximum(1 / n, share)
        steps = Steps(features)
        return cls(found, energy, _TINY * energy, per_energy, np.zeros_like(found), steps)

    def next_step(self, n_tried: int) -> tuple[IntArray, FloatArray]:
        """Return which feature gets which variance next in each game; −1 for none."""
        scale = (self.energy * self.per_energy)[:, None]
        games = np.arange(len(scale))
        # Take out of each feature's sums what its own variance did to them.
        others = np.maximum(1.0 - self.variances * self.steps.own, _TINY)
        sums, squares = self.steps.own / others, (self.found / others) ** 2
        surprise = np.maximum(squares / (sums * scale), 1.0)
        best = np.minimum((surprise - 1.0) / sums, _MOST)
        is_given = self.variances > 0
        # The gain grows with the surprise.
        places = np.argmax(np.where(is_given, 0.0, surprise), axis=1)
        most = np.where(is_given.all(axis=1), 1.0, surprise[games, places])
        gains = (most - 1.0 - np.log(most)) / 2
        by_chance = 2 * scipy.special.ndtr(-np.sqrt(most)) * n_tried
        so_many = np.count_nonzero(is_given, axis=1) + 1
        is_nothing = (gains <= _LEAST_GAIN) | (by_chance > _FALSE_SHARE * so_many)
        for game in np.flatnonzero(is_nothing).tolist():
            places[game] = self._changed_most(game, best[game])
        return places, best[games, places]

    def _changed_most(self, game: int, best: FloatArray) -> int:
        """Return which of the given variances is farthest from its best, −1 where all are close."""
        given = np.flatnonzero(self.variances[game])
        if not len(given):
            return -1
        changes = np.abs(np.log((best[given] + _TINY) / (self.variances[game, given] + _TINY)))
        place = int(np.argmax(changes))
        return int(given[place]) if changes[place] > _CLOSE else -1

    def take(self, places: IntArray, best: FloatArray) -> None:
        """Give the features at these places their best variances."""
        games = np.arange(len(places))
        found = self.found[games, places]
        added = best - self.variances[games, places]
        left = found / (1.0 + added * self.steps.own[games, places])
        shared, factors = self.steps.take(places, added)
        self.variances[games, places] = best
        self.energy = np.maximum(self.energy - factors * found**2, self.least_energy)
        self.found -= (factors * found)[:, None] * shared
        self.found[games, places] = left

    def keep(self, is_open: BoolArray) -> None:
        """Go on with some of the games."""
        for name in ("found", "energy", "least_energy", "per_energy", "variances"):
            setattr(self, name, getattr(self, name)[is_open])
        self.steps.keep(is_open)


class Steps:
    """What steps did to FᵀK⁻¹F, of which rows are made as they are asked for.

    Attributes
    ----------
    own : array, (r, k)
        Its diagonals. Where a game has no noise, a step leaves so little of it that differences of
        sums would not tell; the step's own place is known without them.
    games : array, (r,)
        Which games of the stack still take steps.

    Parameters
    ----------
    features : array, (R, k, n)
        F before any step, whitened.
    """

    def __init__(self, features: FloatArray) -> None:
        n_games, n_features, _ = features.shape
        self.features, self.n = features, 0
        self.own = np.einsum("rkn,rkn->rk", features, features)
        self.games = np.arange(n_games)
        self.rows = np.empty((n_games, _STEPS, n_features))
        self.factors = np.empty((n_games, _STEPS))

    def take(self, places: IntArray, added: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Add to the variance of one feature of each game.

        Returns
        -------
        array, (r, k)
            Its row fᵀK⁻¹F before.
        array, (r,)
            By which factor of the row's outer product with itself FᵀK⁻¹F falls.
        """
        places_of_games = np.arange(len(places))
        own = self.own[places_of_games, places]
        shared = np.empty_like(self.own)
        for row, (game, place) in enumerate(zip(self.games, places, strict=True)):
            before = self.factors[game, : self.n] * self.rows[game, : self.n, place]
            np.matmul(self.features[game], self.features[game, place], out=shared[row])
            shared[row] -= before @ self.rows[game, : self.n]
            self.rows[game, self.n] = shared[row]
        self.rows[self.games, self.n, places] = shared[places_of_games, places] = own
        factors = added / (1.0 + added * own)
        self.factors[self.games, self.n] = factors
        self.own = np.maximum(self.own - factors[:, None] * shared**2, _TINY)
        self.own[places_of_games, places] = own / (1.0 + added * own)
        self.n += 1
        return shared, factors

    def keep(self, is_open: BoolArray) -> None:
        """Go on with some of the games."""
        self.own, self.games = self.own[is_open], self.games[is_open]
