"""Posteriors of all rows and outputs, each row by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.linalg

from ...array_types import BoolArray, DistanceArray, FloatArray
from ...interactions.indices import Index, all_sets
from ...workers import map_in_threads
from .fitting import Fit, alike, fitted, fitted_alike, is_of_pairs, likeliest
from .posterior import DENSE, SETS_AT_ONCE, Posterior, posterior
from .prior import EVEN, ODD, Prior, Values, products_of

_MATRICES = 12
"""Matrices of a row that are in memory at once."""

_BLOCK = 64
"""Games that share factors where all players are alike."""

_ROUNDING = 1e-11
"""Share of the size of values that least squares may leave where a game is exact."""

_SURPLUS = 2
"""More values than terms that show that few terms explain a game."""


class Games(NamedTuple):
    """Values of rows and outputs that share coalitions.

    Attributes
    ----------
    signs : array, (n, M)
        The coalitions.
    values : array, (R, n, K)
        Their values.
    parity : {1, 0, None}
        Whether they are those of the odd part, of the even part, or of whole games.
    n_known : int
        How many of the first values have no noise.
    errors : callable, optional
        Returns the covariances of the errors of a row and output, (n, n).
    error_freedom : float
        Their degrees of freedom.
    centres : array, (R, M), optional
        Prior means of the log strengths.
    distances : array of arrays, (R,), optional
        The distances between the players of each row on its graph.
    """

    signs: FloatArray
    values: FloatArray
    parity: int | None
    n_known: int
    errors: Callable[[int, int], FloatArray] | None = None
    error_freedom: float = np.inf
    centres: FloatArray | None = None
    distances: DistanceArray | None = None

    def of(self, row: int, outputs: slice) -> Values:
        """Return the values of some outputs of a row, and their errors if it is one."""
        errors = None if self.errors is None else self.errors(row, outputs.start)
        values = np.ascontiguousarray(self.values[row][:, outputs])
        return Values(self.signs, values, self.parity, self.n_known, errors, self.error_freedom)


def posteriors(
    games: Games, index: Index, learned_from: int, others: FloatArray | None = None
) -> Posterior:
    """Return the posteriors of all rows and outputs: means and variances (R, k, K).

    Parameters
    ----------
    games : Games
        The values.
    index : Index
        What is wanted.
    learned_from : int
        From how many values strengths are learned at most; 0 where they are equal.
    others : array, (m, M), optional
        Other coalitions, whose values are predicted.
    """
    if not learned_from and games.errors is None:
        return _alike(games, index, others)
    n_rows, n, n_outputs = games.values.shape
    n_columns = max(n, min(index.n_sets, SETS_AT_ONCE))

    def solve(row: int) -> list[Posterior]:
        step = n_outputs if games.errors is None else 1
        parts = [slice(first, first + step) for first in range(0, n_outputs, step)]
        return [_solved(games, row, part, index, learned_from, others) for part in parts]

    n_bytes = 8 * _MATRICES * min(n, DENSE) * n_columns
    found = map_in_threads(solve, range(n_rows), n_bytes)
    arrays = [[np.concatenate(part, axis=-1) for part in zip(*row, strict=True)] for row in found]
    return Posterior(*(np.array(part) for part in zip(*arrays, strict=True)))


def _alike(games: Games, index: Index, others: FloatArray | None) -> Posterior:
    """Return the posteriors in which all players are alike: rows share factors."""
    n_rows, n, n_outputs = games.values.shape
    values = games.values.transpose(1, 0, 2).reshape(n, -1)
    sizes = np.sqrt((np.ascontiguousarray(values.T) ** 2).mean(axis=1))
    found = Posterior.blank(index.n_sets, len(sizes), 0 if others is None else len(others))
    kept = np.flatnonzero(sizes > 0)
    for start in range(0, len(kept), _BLOCK):
        columns = kept[start : start + _BLOCK]
        # Always as many columns, so that a row has the same bits in any company.
        block = np.zeros((n, _BLOCK))
        block[:, : len(columns)] = values[:, columns] / sizes[columns]
        data = Values(games.signs, block, games.parity, games.n_known)
        for are_labels in np.unique(data.are_labels[: len(columns)]).tolist():
            prior = Prior(data, are_labels=are_labels)
            choice = alike(prior)
            best = likeliest(prior, choice)[: len(columns)]
            best[data.are_labels[: len(columns)] != are_labels] = -1
            for which in np.unique(best[best >= 0]):
                fit = Fit(prior, choice[which], prior.sparse.players)
                places = np.flatnonzero(best == which)
                of_places = of_fit(fit, index, others).of_outputs(places)
                found.put(columns[places], of_places, sizes[columns[places]])
    return Posterior(
        *(
            np.ascontiguousarray(
                np.moveaxis(part.reshape(*part.shape[:-1], n_rows, n_outputs), -2, 0)
            )
            for part in found
        )
    )


def are_of_pairs(games: Games) -> BoolArray:
    """Return of which games pairs of players explain most of the even part, (R,).

    Outputs without an even part say nothing.
    """

    def look(row: int) -> bool:
        data = games.of(row, slice(None))
        sizes = np.sqrt((data.values**2).mean(axis=0))
        values = data.values[:, sizes > 0] / sizes[sizes > 0]
        return values.size > 0 and is_of_pairs(replace(data, values=values))

    n_bytes = 8 * _MATRICES * len(games.signs) ** 2
    return np.array(map_in_threads(look, range(len(games.values)), n_bytes), dtype=bool)


def _solved(
    games: Games,
    row: int,
    outputs: slice,
    index: Index,
    learned_from: int,
    others: FloatArray | None,
) -> Posterior:
    """Return the posterior of some outputs of a row."""
    data = games.of(row, outputs)
    sizes = np.sqrt((data.values**2).mean(axis=0))
    blank = Posterior.blank(index.n_sets, len(sizes), 0 if others is None else len(others))
    is_something = sizes > 0
    if not is_something.any():
        return blank
    scales = sizes[is_something]
    errors = None if data.errors is None else data.errors / scales[0] ** 2
    data = replace(data, values=data.values[:, is_something] / scales, errors=errors)
    centres = None if games.centres is None else games.centres[row]
    prior = Prior(data, centres, are_labels=bool(data.are_labels.all()))
    distances = None if games.distances is None else games.distances[row]
    fit = fitted(prior, distances, learned_from) if learned_from else fitted_alike(prior)
    blank.put(is_something, of_fit(fit, index, others), scales)
    return blank


def of_fit(fit: Fit, index: Index, others: FloatArray | None) -> Posterior:
    """Return the posterior of a fit, exact where few terms explain the values."""
    found = posterior(fit, index, others)
    if fit.prior.data.errors is None and fit.prior.data.parity is not None:
        return _exact_of_few_terms(fit, index, found, others)
    return found


def differences(evens: FloatArray) -> FloatArray:
    """Return the even parts, (R, n, K), less the first of each game; 0 where that is rounding."""
    differences = evens - evens[:, :1]
    squares = (differences[:, 1:] ** 2).sum(axis=1, keepdims=True)
    sizes = np.sqrt(squares / max(1, evens.shape[1] - 1))
    rounding = 2 * np.finfo(float).eps * np.abs(evens).max(axis=1, keepdims=True)
    return np.where(sizes > rounding, differences, 0.0)


def _exact_of_few_terms(
    fit: Fit, index: Index, found: Posterior, others: FloatArray | None
) -> Posterior:
    """Return exact averages of the outputs that few sets explain, and exact predictions.

    These are single players and sparse sets, or, in an even part, all pairs if there are few.
    """
    data = fit.prior.data
    n, n_players = data.signs.shape
    terms, n_levels = [fit.found], int(data.parity == EVEN)
    if data.parity == ODD:
        terms = [np.arange(n_players)[:, None], *terms]
    elif n > n_players * (n_players - 1) // 2 + _SURPLUS:
        terms = [all_sets(n_players, 2)]

    def columns_of(signs: FloatArray) -> FloatArray:
        level = np.ones((len(signs), n_levels))
        return np.concatenate([level, *(products_of(signs, sets) for sets in terms)], axis=1)

    columns = columns_of(data.signs)
    if n < columns.shape[1] + _SURPLUS:
        return found
    coefficients, _, rank, _ = scipy.linalg.lstsq(columns, data.values, lapack_driver="gelsy")
    if rank < columns.shape[1]:
        return found
    left = np.abs(data.values - columns @ coefficients).max(axis=0)
    is_exact = left <= _ROUNDING * np.abs(data.values).max(axis=0)
    if not is_exact.any():
        return found
    counts = np.concatenate([index.of_sets(sets) for sets in terms])
    exact = counts.T @ coefficients[n_levels:]
    means = np.where(is_exact, exact, found.means)
    is_sure = is_exact
    if fit.prior.are_labels:  # what explains those that were evaluated may not explain others
        is_sure = is_exact & (data.n_sizes > 1) & (not len(fit.found))
    variances = np.where(is_sure, 0.0, found.variances)
    freedom = np.where(is_sure, np.inf, found.freedom)
    predictions = found.predictions
    if others is not None:
        predictions = np.where(is_sure, columns_of(others) @ coefficients, predictions)
    return Posterior(means, variances, freedom, predictions)
