"""Posterior means and variances of averages of a game, given some of its values.

The noise of the prior is a part of the game: where a coalition is evaluated, it is known, and it
counts with the weight of the value in the average. So the posterior is exact once all values are.

With many values, the process is seen through the first of them: the interactions are those that
these values can tell apart, and all other values tell more about these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.special
from scipy.linalg import lapack

from ...array_types import BoolArray, FloatArray, IntArray
from ...interactions.indices import Index
from .fitting import Fit
from .prior import Prior, factored

DENSE, SEEN = 4096, 1024
"""With more values than the first, they are seen through so many as the second. All together cost
the third power of their number: 4,096 half of seeing them through 2,048, which errs 1.2 to 1.4
times as much. Values that are seen through 1,024 err as much as through 2,048."""

LEFT_OUT = 240
"""Values that are predicted by all others, to see how large errors are."""

_DRAWS, _DRAWN_FROM = 2, 240
"""Draws of the strengths, in opposite pairs, for up to so many values. Without them, 95 % intervals
hold .89 in place of .96. Draws of the other variances, whose curvature few steps do not show, make
the intervals of smooth games several times too wide."""

SETS_AT_ONCE = 4096
"""Sets whose covariances are in memory together."""

_PRIOR_FREEDOM = 2.0
"""The size of the game counts as so many left-out values."""


class Posterior(NamedTuple):
    """Means and variances, (k, B) each, degrees of freedom, (B,), and predicted values, (m, B)."""

    means: FloatArray
    variances: FloatArray
    freedom: FloatArray
    predictions: FloatArray

    @classmethod
    def blank(cls, n_sets: int, n_outputs: int, n_others: int) -> Posterior:
        """Return that of games that are 0."""
        means, predictions = np.zeros((n_sets, n_outputs)), np.zeros((n_others, n_outputs))
        return cls(means, means.copy(), np.full(n_outputs, np.inf), predictions)

    def of_outputs(self, outputs: IntArray) -> Posterior:
        """Return those of some outputs."""
        return Posterior(*(part[..., outputs] for part in self))

    def put(self, outputs: BoolArray | IntArray, found: Posterior, scales: FloatArray) -> None:
        """Set those of some outputs, which were divided by scales."""
        self.means[:, outputs] = found.means * scales
        self.variances[:, outputs] = found.variances * scales**2
        self.freedom[outputs] = found.freedom
        self.predictions[:, outputs] = found.predictions * scales


def posterior(fit: Fit, index: Index, others: FloatArray | None = None) -> Posterior:
    """Return the posterior of averages of a game, and of its values at other coalitions.

    Parameters
    ----------
    fit : Fit
        The prior and its hyperparameters.
    index : Index
        What is wanted.
    others : array, (m, M), optional
        Other coalitions; the values that are predicted there have no noise.
    """
    found = _at(fit.prior, fit.h, index, others)
    n = len(fit.prior.data.signs)
    if n > _DRAWN_FROM or fit.inverse is None or others is not None:
        return found  # where others are predicted, their errors say more
    # Few values leave the strengths uncertain, too.
    root = fit.root()
    draws = np.random.default_rng(0).normal(size=(_DRAWS // 2, root.shape[1]))
    n_players = fit.prior.n_players
    variances = np.zeros_like(found.variances)
    for draw in (*draws, *-draws):
        h = fit.h.copy()
        h[:n_players] += root[:n_players] @ draw
        of_draw = _at(fit.prior, np.clip(h, fit.prior.low, fit.prior.high), index, None)
        spread = (of_draw.means - found.means) ** 2
        variances += (of_draw.variances + spread) / _DRAWS
    return found._replace(variances=variances)


def _at(prior: Prior, h: FloatArray, index: Index, others: FloatArray | None) -> Posterior:
    """Return the posterior at some hyperparameters."""
    process = _Process(_seen(prior), h, prior)
    ratio, freedom = process.left_out()
    blocks = [
        _of_block(prior, process, block, None if number else others)
        for number, block in enumerate(index.blocks(SETS_AT_ONCE))
    ]
    means, variances, of_errors, _ = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    variances = np.maximum(variances[:, None] * ratio, of_errors)
    return Posterior(means, variances, freedom, blocks[0][-1])


def _of_block(
    prior: Prior, process: _Process, index: Index, others: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return means, (k, B), variances, (k,), those by errors, (k, 1), and predictions, (m, B)."""
    data, seen, noise = prior.data, process.prior, process.at.noise
    weights = index.weights_of_part(data.signs > 0, data.parity)
    of_sizes = prior.noise_of_sizes(np.arange(prior.n_players + 1))
    total = index.sums_of_squares(data.parity, of_sizes)
    covariances, variances = seen.index_covariances(process.at, index)
    if seen is prior:
        shape = prior.noise_shape[:, None]
        covariances += noise * shape * weights
        means, explained = process.regressed(covariances)
        variances = variances + noise * total - explained
        of_others = np.maximum(noise * (total - (shape * weights**2).sum(axis=0)), 0.0)
        predictions = process.predicted(others)
    else:
        means, variances, predictions, of_others = process.projected(
            covariances, variances, weights, noise * total, others
        )
    of_errors = np.zeros((len(means), 1))
    if data.errors is not None:
        of_errors = process.of_errors(covariances)
    return means, np.maximum(variances, of_others), of_errors, predictions


def errors_left_out(fit: Fit) -> FloatArray:
    """Return the errors of values that all others predict, (m, B)."""
    return _Process(_seen(fit.prior), fit.h, fit.prior).errors_left_out()[0]


def n_seen(n_values: int) -> int:
    """Return through how many of the values all are seen."""
    return n_values if n_values <= DENSE else SEEN


def _seen(prior: Prior) -> Prior:
    """Return the prior of the values that all are seen through."""
    return prior.first(n_seen(len(prior.data.signs)))


class _Projection(NamedTuple):
    """Many values, seen through the first of them, n.

    Factors of the covariance of the first and of the precision, (n, n), the means of their
    interactions and these in the values, (n, B), the variances of noise that are known, (N,), and
    the noise of all values, (N, B).
    """

    factor: FloatArray
    of_precision: FloatArray
    mean: FloatArray
    alpha: FloatArray
    known: FloatArray
    noise: FloatArray


@dataclass
class _Process:
    """The process at some hyperparameters, given values: all of the prior, or the first of many."""

    prior: Prior
    h: FloatArray
    whole: Prior

    def __post_init__(self) -> None:
        self.at = self.prior.variances(self.h)
        self.factor = factored(self.prior.covariance(self.at))
        self.whitened = lapack.dtrtrs(self.factor, self.prior.data.values, lower=1)[0]

    def regressed(self, covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means, (k, B), and the explained variances, (k,)."""
        loadings = lapack.dtrtrs(self.factor, covariances, lower=1)[0]
        return loadings.T @ self.whitened, (loadings**2).sum(axis=0)

    def predicted(self, others: FloatArray | None) -> FloatArray:
        """Return the values at other coalitions, (m, B), without noise."""
        if others is None:
            return np.zeros((0, self.whitened.shape[1]))
        alpha = lapack.dtrtrs(self.factor, self.whitened, lower=1, trans=1)[0]
        return self.prior.kernel(self.at, others).T @ alpha

    def of_errors(self, covariances: FloatArray) -> FloatArray:
        """Return what the errors of the values alone add to the variances, (k, 1)."""
        weights = lapack.dpotrs(self.factor, covariances, lower=1)[0]
        errors = self.prior.data.errors * np.exp(self.h[-1])
        return (weights * (errors @ weights)).sum(axis=0)[:, None]

    def errors_left_out(self) -> tuple[FloatArray, FloatArray]:
        """Return errors of values that all others predict, (m, B), and their precision, (m,)."""
        m = min(max(len(self.factor) - 1, 1), LEFT_OUT)
        inverse = lapack.dtrtri(self.factor[-m:, -m:], lower=1)[0]
        precision = (inverse**2).sum(axis=0)
        return (inverse.T @ self.whitened[-m:]) / precision[:, None], precision

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Return the scale of the variances, (B,), and its degrees of freedom, (B,).

        The squared errors of values that all others predict, over their variances. Values of the
        same size count as one, in proportion to what is unknown of the size.
        """
        data = self.prior.data
        n, n_players = data.signs.shape
        errors, precision = self.errors_left_out()
        m = len(errors)
        size = (data.signs[-m:] > 0).sum(axis=1)
        size = np.minimum(size, n_players - size)
        kinds, which, count = np.unique(size, return_inverse=True, return_counts=True)
        known = count / scipy.special.comb(n_players, kinds)
        weights = (np.clip(1 - known, 1e-9, 1) / np.maximum(kinds, 1) / count)[which]
        weights /= weights.sum()
        freedom = float(1 / (weights @ weights))
        if data.errors is None:
            of_others = data.values[min(data.n_known, n - 1) :]
            scale = np.maximum((of_others**2).mean(axis=0), 1e-12)
        else:
            scale = np.full(1, np.exp(self.h[-2]))
        ratio = freedom * (weights @ errors**2) / (weights @ (1 / precision)) / scale
        ratio = (ratio + _PRIOR_FREEDOM) / (freedom + _PRIOR_FREEDOM)
        fitted = n / max(n - n_players / 2, n / 3)
        return scale * ratio * fitted, np.full(len(scale), max(freedom, _PRIOR_FREEDOM))

    @cached_property
    def projection(self) -> _Projection:
        """The interactions that the first values tell apart, given all values."""
        data, noise, n_seen = self.whole.data, self.at.noise, len(self.factor)
        of_rounding = self.prior.covariance(self.at)
        of_rounding[np.diag_indices(n_seen)] -= noise * self.prior.noise_shape
        errors = np.zeros(len(data.signs))
        if data.errors is not None:
            of_rounding -= data.errors[:n_seen, :n_seen] * self.at.of_errors
            errors = np.diag(data.errors) * self.at.of_errors
        factor = factored(of_rounding)
        of_game = noise * self.whole.noise_shape
        spread = np.sqrt(of_game + errors + 1e-9)
        precision, sums = np.eye(n_seen), np.zeros((n_seen, data.values.shape[1]))
        parts = np.array_split(np.arange(len(data.signs)), -(-len(data.signs) // n_seen))
        for part in parts:
            across = self.prior.kernel(self.at, data.signs[part])
            scaled = lapack.dtrtrs(factor, across, lower=1)[0] / spread[part]
            precision += scaled @ scaled.T
            sums += scaled @ (data.values[part] / spread[part, None])
        of_precision = factored(precision)
        mean = lapack.dpotrs(of_precision, sums, lower=1)[0]
        alpha = lapack.dtrtrs(factor, mean, lower=1, trans=1)[0]
        shares = of_game / spread**2
        residuals = [  # the noise of a value is what the interactions leave
            data.values[part] - self.prior.kernel(self.at, data.signs[part]).T @ alpha
            for part in parts
        ]
        left = shares[:, None] * np.concatenate(residuals)
        return _Projection(factor, of_precision, mean, alpha, of_game * shares, left)

    def projected(
        self,
        covariances: FloatArray,
        variances: FloatArray,
        weights: FloatArray,
        of_noise: FloatArray,
        others: FloatArray | None,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return means, variances, predictions, and the variances by values that are unknown."""
        found = self.projection
        loadings = lapack.dtrtrs(found.factor, covariances, lower=1)[0]
        left = lapack.dtrtrs(found.of_precision, loadings, lower=1)[0]
        means = loadings.T @ found.mean + weights.T @ found.noise
        of_others = np.maximum(of_noise - (found.known[:, None] * weights**2).sum(axis=0), 0.0)
        variances = variances - (loadings**2).sum(axis=0) + (left**2).sum(axis=0) + of_others
        predictions = np.zeros((0, means.shape[1]))
        if others is not None:
            predictions = self.prior.kernel(self.at, others).T @ found.alpha
        return means, variances, predictions, of_others
