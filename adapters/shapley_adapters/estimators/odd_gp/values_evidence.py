"""The prior of values without complements that explains the first values best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from ...array_types import FloatArray, IntArray
from .marginal_likelihood import TINY, column_by_column, whitened_by
from .values_prior import ErrorCovariances, Products, SizeFactors, Variances

_TILTS, _CURVATURES = (-1.0, -0.5, 0.5, 1.0), (-0.3, 1.0, 4.0)
"""How effects of single players may change with the size of the coalition; see `SizeFactors`."""

_CHOSEN_FROM, _FACTORS_FROM = 256, 512
"""The variances are chosen by the first values, at most so many, and the factors of the sizes, of
which there are fewer, by more. Measured with 50, 200 and 500 players and 400 to 1,200 values:
errors are .98 to 1.05 times those with 1,024 for the factors, in .6 to 1 times the time."""

_MUCH_BETTER, MOST_PRIORS = 5.0, 10
"""An output has a prior of its own if that raises its log evidence by more than the first, and the
row has at most so many outputs. Of more outputs, groups share priors."""

_MOST_OUTPUTS = 100
"""Priors that more outputs of a row share are chosen by at most so many, at equal distances.
Measured with 600 outputs of 200 players, one and four values of each, on mixtures of sparse and of
dense sums: errors are .97 to 1.01 times those of a choice by all outputs."""


def spread_outputs(n_outputs: int) -> IntArray:
    """Return the outputs, at most a hundred, that speak for all outputs that share a prior."""
    step = -(-n_outputs // _MOST_OUTPUTS)
    return np.arange(0, n_outputs, step)


def games_by_prior(
    products: Products, targets: FloatArray, errors: ErrorCovariances | None, n_outputs: int
) -> dict[tuple[Variances, SizeFactors], IntArray]:
    """Return the games, by the prior that explains their first values best.

    The outputs of a row, whose values are next to each other, share a prior unless another one is
    much better.
    The variances are chosen first, then the tilt, then the curvature.
    """
    chosen = spread_outputs(n_outputs)
    if len(chosen) < n_outputs:
        all_games = np.arange(targets.shape[1]).reshape(-1, n_outputs)
        of_chosen = targets[:, all_games[:, chosen].ravel()]
        by_prior = games_by_prior(products, of_chosen, errors, len(chosen))
        return {
            prior: all_games[np.unique(games // len(chosen))].ravel()
            for prior, games in by_prior.items()
        }
    weights = np.full(products.members.shape[1], 1 / products.members.shape[1])
    evidence = _Evidence.from_values(products, targets, errors, weights, _FACTORS_FROM, n_outputs)
    found = {}
    all_variances = [(prior, SizeFactors()) for prior in Variances.candidates()]
    games = np.arange(targets.shape[1])
    of_first = evidence.best_of(all_variances, games, _CHOSEN_FROM)
    for prior, flat, of_prior in of_first:
        tilted = [(prior, SizeFactors(tilt)) for tilt in _TILTS]
        for _, tilt, of_tilt in evidence.best_of([(prior, flat), *tilted], of_prior):
            curved = [(prior, SizeFactors(tilt.tilt, curvature)) for curvature in _CURVATURES]
            for _, factors, of_factors in evidence.best_of([(prior, tilt), *curved], of_tilt):
                found[prior, factors] = of_factors
    return found


def operations_of_priors(n_values: int) -> float:
    """Return those of the factors by which a prior is chosen."""
    n_variances, n_factors = len(list(Variances.candidates())), len(_TILTS) + len(_CURVATURES)
    of_factors = n_factors * min(n_values, _FACTORS_FROM) ** 3
    return (n_variances * min(n_values, _CHOSEN_FROM) ** 3 + of_factors) / 3


def variances_given_effects(
    products: Products,
    targets: FloatArray,
    errors: ErrorCovariances | None,
    factors: SizeFactors,
    weights: FloatArray,
) -> Iterator[tuple[Variances, IntArray]]:
    """Yield the variances that explain the first values of outputs of a row, (n, K), best.

    And the outputs that have them. Single players have the variances `weights`, (M,).
    """
    n_outputs, chosen = targets.shape[1], spread_outputs(targets.shape[1])
    targets = targets[:, chosen]
    evidence = _Evidence.from_values(products, targets, errors, weights, _CHOSEN_FROM, len(chosen))
    candidates = [(prior, factors) for prior in Variances.candidates()]
    for prior, _, outputs in evidence.best_of(candidates, np.arange(len(chosen))):
        yield prior, outputs if len(chosen) == n_outputs else np.arange(n_outputs)


@dataclass(frozen=True)
class _Evidence:
    """The first values of some games, (n, B), and the kernels of the parts of their prior.

    Those of interactions of 2, 3 and more players, (3, n, n), and of single players, (n, n), where
    their effects do not change with the size of the coalition.
    """

    products: Products
    targets: FloatArray
    errors: ErrorCovariances | None
    shares: FloatArray
    of_singles: FloatArray
    n_outputs: int

    @classmethod
    def from_values(
        cls,
        products: Products,
        targets: FloatArray,
        errors: ErrorCovariances | None,
        weights: FloatArray,
        most: int,
        n_outputs: int,
    ) -> _Evidence:
        """Return that of at most so many values, where single players have variances (M,)."""
        part = products.subset_values(slice(0, most))
        weighted: FloatArray = part.signs * np.sqrt(weights)
        of_singles = weighted @ weighted.T
        return cls(part, targets[:most], errors, part.shares(), of_singles, n_outputs)

    def best_of(
        self,
        candidates: list[tuple[Variances, SizeFactors]],
        games: IntArray,
        most: int = _FACTORS_FROM,
    ) -> Iterator[tuple[Variances, SizeFactors, IntArray]]:
        """Yield the candidates that explain at most so many values of some games best."""
        values = self.targets[:most][:, games]
        n, scores, of_others, before = len(values), [], np.empty(0), None
        first = slice(0, n)
        part, shares = self.products.subset_values(first), self.shares[:, first, first]
        of_singles = self.of_singles[first, first]
        for prior, factors in candidates:
            if prior is not before:
                of_others, before = part.kernel(prior, shares), prior
                if self.errors is not None:
                    of_others += self.errors.matrix(first)
            of_sizes = part.size_factors(factors)
            kernel = np.outer(of_sizes, of_sizes)
            kernel *= of_singles
            kernel += of_others
            factor = scipy.linalg.cholesky(
                kernel.T, lower=True, overwrite_a=True, check_finite=False
            )
            whitened = column_by_column(partial(whitened_by, factor), values)
            squares = (np.ascontiguousarray(whitened.T) ** 2).sum(axis=1)
            scores.append(
                -n / 2 * np.log(np.maximum(squares, TINY)) - np.log(np.diagonal(factor)).sum()
            )
        best = _best_of_outputs(np.array(scores), games // self.n_outputs)
        for index in np.unique(best).tolist():
            yield *candidates[index], games[best == index]


def best_of_rows(scores: FloatArray, rows: IntArray) -> IntArray:
    """Return the candidate that is best for all games of a row together, for each game, (B,).

    Parameters
    ----------
    scores : array, (C, B)
        Those of the candidates.
    rows : array, (B,)
        The row of each game, in ascending order.
    """
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    of_rows = np.argmax(np.add.reduceat(scores, starts, axis=1), axis=0)
    best: IntArray = of_rows[np.searchsorted(rows[starts], rows)]
    return best


def _best_of_outputs(scores: FloatArray, rows: IntArray) -> IntArray:
    """Return the best candidate of the row, or of the game, for each game, (B,).

    A game has its own where that is much better and the row has few games.
    """
    common, own = best_of_rows(scores, rows), np.argmax(scores, axis=0)
    gains = np.take_along_axis(scores, np.array([own, common]), axis=0)
    are_few = np.bincount(rows)[rows] <= MOST_PRIORS
    best: IntArray = np.where((gains[0] - gains[1] > _MUCH_BETTER) & are_few, own, common)
    return best
