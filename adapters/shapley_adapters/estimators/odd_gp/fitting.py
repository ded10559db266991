"""The hyperparameters with the most posterior probability, and how uncertain they are."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import scipy  # which loads its submodules where they are used
from scipy.linalg import lapack

from ...array_types import FloatArray, IntArray
from .local_interactions import with_near_sets
from .prior import TINY, Prior, Values, factored
from .sparse_sets import find_sparse_sets

_FEW, LEARNED_FROM, SEARCHED = 120, 480, 800
"""Values that the first and the second fit see, and those of the search of sparse sets, at most. A
step costs the cube of their number. Fits to 1,000 values have .96 of the errors at 64 evaluations a
player and take twice as long."""

QUICKLY_FROM, SEARCHED_EACH = 60, 4
"""Values that both fits see where little time is left; the search sees four times as many. With 13
to 120 players and 16 evaluations of each, errors are 1.3 to 1.9 times those of all values, and .2
to .9 those of random orders; all work takes 80 to 20 % of the time."""

_FIRST_STEPS, _STEPS, _WORTH_MORE = 10, 2, 0.04
"""Steps of the first fit, and of that to more values, with sparse sets; and the gain of the log
likelihood by a step, for each value, from which on another step follows, up to three times as many.
Without further steps, some games of few triples are not exact, and errors at 32 evaluations a
player are 1.03 times as large. With 7 first steps, errors are 1.01 times as large."""

_GAINED = 1e-3
"""Share of the log likelihood, below which a fit stops."""

_IN_FAVOUR = 5.0
"""Gain of the log likelihood by a function of how many players are present, or by the same noise of
labels at all sizes, from which on it is kept. With 3, one in sixty games of all sizes keeps the
former by chance, with intervals that are too short. Games that saturate gain far more."""

_AMOUNTS, _OF_OTHERS = np.log([1e-3, 0.03, 0.3, 3.0]), np.log(0.03)
_NOISES = np.log([0.03, 1.0])
"""Logarithms of variances among which equal strengths choose, for many rows at once: that of the
largest component, and those of the others and of the noise over it."""

_LOG_DOMINANT = 2.5
"""Logarithm of how much larger the variance of sets of about two players is than that of larger
even sets, where the former explain most. Measured on 15 kinds of games with 10 and 13 players."""


class HasEvidence(Protocol):
    """A log marginal likelihood, with its gradient, and normal priors of its hyperparameters."""

    centre: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    n_values: int

    def evidence(self, h: FloatArray) -> tuple[float, FloatArray]:
        """Return the log marginal likelihood and its gradient."""


class Maximum(NamedTuple):
    """Hyperparameters, their log marginal likelihood, and covariances, as L-BFGS sees these.

    The latter in standard deviations of the prior.
    """

    h: FloatArray
    evidence: float
    inverse: scipy.optimize.LbfgsInvHessProduct


class Fit(NamedTuple):
    """The prior of all values, its hyperparameters, and the sparse sets that the values showed.

    Those that are near on a graph are not among the latter, (m, t). Where hyperparameters were
    learned, `inverse` has their covariances, in standard deviations, as L-BFGS sees them.
    """

    prior: Prior
    h: FloatArray
    found: IntArray
    inverse: scipy.optimize.LbfgsInvHessProduct | None = None

    def root(self) -> FloatArray:
        """Return a root of the covariances of the hyperparameters.

        In the inverse's own coordinates, because eigenvectors of equal values may be any.
        """
        if self.inverse is None:
            return np.zeros((len(self.h), 0))
        inverse = self.inverse.todense()
        values, vectors = np.linalg.eigh((inverse + inverse.T) / 2)
        root: FloatArray = (vectors * np.sqrt(np.clip(values, 0, 1))) @ vectors.T
        return self.prior.sd[:, None] * root


def fitted(
    prior: Prior, distances: FloatArray | None = None, learned_from: int = LEARNED_FROM
) -> Fit:
    """Return the fit to so many first values of a prior: to fewer first, then sparse sets.

    With distances between the players on a graph, (M, M), sets of near players may come before.
    Last comes a function of how many players are present, if values are in favour; not for labels,
    whose noise may depend on that.
    """
    n_first = min(_FEW, learned_from)
    best = maximised(prior.first(n_first), None, _FIRST_STEPS)
    if prior.are_labels:  # which may jump at any size, too
        flat = replace(prior, is_uneven=False)
        other = maximised(flat.first(n_first), None, _FIRST_STEPS)
        if other.evidence > best.evidence + _IN_FAVOUR:
            prior, best = flat, other
    if distances is not None and prior.data.parity is not None:
        prior, h = with_near_sets(prior, best.h, distances)
        best = best._replace(h=h)
    found = prior.sparse.players[:0]
    is_class = prior.are_labels and max(prior.data.n_sizes) <= 1
    if prior.data.parity is not None and prior.n_values > prior.n_players + 2 and not is_class:
        sparse = find_sparse_sets(prior.first(min(SEARCHED, SEARCHED_EACH * learned_from)), best.h)
        prior, found = replace(prior, sparse=prior.sparse.joined(sparse)), sparse.players
    if min(prior.n_values, learned_from) > _FEW or len(prior.sparse.players):
        best = maximised(prior.first(learned_from), best.h, _STEPS)
    # With one size beside the ends, such a function would explain the value of all players alone.
    if not prior.are_labels and len(np.unique(prior.data.signs.sum(axis=1))) > 2:
        with_it = replace(prior, has_function_of_size=True)
        first, place = with_it.first(learned_from), prior.n_players + len(prior.parities)
        # From the variance of its centre, and the others as they are.
        start = np.where(with_it.centre > prior.centre, with_it.centre, best.h)
        if first.evidence(start)[1][place] > 0:  # a larger one is more likely
            other = maximised(first, start, _STEPS)
            if other.evidence > best.evidence + _IN_FAVOUR:
                prior, best = with_it, other
    return Fit(prior, best.h, found, best.inverse)


def alike(prior: Prior) -> list[FloatArray]:
    """Return hyperparameters in which all players are alike: more or less of each component."""
    first = prior.n_players
    of_size = first + len(prior.parities)
    found = []
    for amount, level, of_noise in itertools.product(
        _AMOUNTS, range(first, of_size), _NOISES[: 1 if prior.are_labels else None]
    ):
        h = prior.centre.copy()
        h[first:of_size] = amount + _OF_OTHERS
        h[level] = amount
        if not prior.are_labels:
            h[of_size + 1] = amount + of_noise
        found.append(h)
    return found


def likeliest(prior: Prior, choice: list[FloatArray]) -> IntArray:
    """Return which of some hyperparameters explain the values of each output best, (B,)."""
    first = prior.first(_FEW)
    evidence = []
    for h in choice:
        factor = factored(first.covariance(first.variances(h)))
        whitened = lapack.dtrtrs(factor, first.data.values, lower=1)[0]
        squares = np.maximum((whitened**2).sum(axis=0), TINY)
        evidence.append(-len(factor) / 2 * np.log(squares) - np.log(np.diag(factor)).sum())
    return np.argmax(evidence, axis=0)


def fitted_alike(prior: Prior) -> Fit:
    """Return the fit in which all players are alike, to few values with errors."""
    first = replace(prior).first(_FEW)  # a new one, whose bounds change
    strengths = slice(0, prior.n_players)
    first.low[strengths] = first.high[strengths] = first.centre[strengths]
    best = maximised(first, None, _FIRST_STEPS)
    return Fit(prior, best.h, prior.sparse.players, best.inverse)


def is_of_pairs(data: Values) -> bool:
    """Return whether sets of about two players explain most of the even part of a game."""
    prior = Prior(data)
    h = maximised(prior.first(_FEW), None, _STEPS).h  # with more, hardly another answer
    pairs, larger = h[prior.n_players : prior.n_players + 2]
    return bool(pairs - larger > _LOG_DOMINANT)


def maximised(prior: HasEvidence, start: FloatArray | None, n_steps: int) -> Maximum:
    """Return the best hyperparameters, after so many steps, or more while these gain much."""
    centre, sd, losses = prior.centre, prior.sd, list[float]()

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        value, slope = prior.evidence(centre + sd * x)
        return float(x @ x / 2 - value), x - slope * sd

    def end(intermediate_result: scipy.optimize.OptimizeResult) -> None:  # SciPy asks for the name
        losses.append(float(intermediate_result.fun))
        if len(losses) >= n_steps and losses[-2] - losses[-1] < _WORTH_MORE * prior.n_values:
            raise StopIteration

    x = np.zeros(len(centre)) if start is None else (start - centre) / sd
    bounds = scipy.optimize.Bounds((prior.low - centre) / sd, (prior.high - centre) / sd)
    options = {"maxiter": 3 * n_steps, "maxcor": 20, "ftol": _GAINED}
    found = scipy.optimize.minimize(
        loss, x, jac=True, method="L-BFGS-B", bounds=bounds, callback=end, options=options
    )
    evidence = float(found.x @ found.x / 2 - found.fun)
    return Maximum(centre + sd * found.x, evidence, found.hess_inv)
