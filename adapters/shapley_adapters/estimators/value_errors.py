"""Errors of means over draws; and errors of coalitions' values, with what they leave in sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np

from ..array_types import CoalitionArray, FloatArray, IntArray
from ..coalitions.tables import complements, size_weights


def mean_and_error(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean over axis 1 and its standard error; NaN if there are too few draws."""
    n = draws.shape[1]
    unknown = np.full((len(draws), *draws.shape[2:]), np.nan)
    mean = draws.mean(axis=1) if n else unknown
    return mean, draws.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else unknown


_PRIOR_DRAWS = 4.0
"""The mean variance of all players counts as that of so many draws, as measured on votes, maxima,
bankruptcies, airports, paths, networks and trees with 11 players."""


def pooled_variances(
    variances: FloatArray, freedom: FloatArray | float
) -> tuple[FloatArray, FloatArray | float]:
    """Return variances, (R, M, K), that few draws do not make 0, and their degrees of freedom.

    A player whose contribution was the same in all of a few draws may still have another one, as in
    votes. The variance of each player is therefore averaged with the mean over all players, which
    is that of some draws more. Where all players have none, as in additive games, it stays 0.

    Parameters
    ----------
    variances : array, (R, M, K)
        The variance of a draw of each player.
    freedom : array or float
        Their degrees of freedom.
    """
    mean = variances.mean(axis=1, keepdims=True)
    pooled = (freedom * variances + _PRIOR_DRAWS * mean) / (freedom + _PRIOR_DRAWS)
    return pooled, freedom + 1


def pooled_mean_and_error(draws: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return means over axis 1, standard errors of pooled variances, and degrees of freedom.

    The errors are NaN if there are too few draws.
    """
    mean, error = mean_and_error(draws)
    n = draws.shape[1]
    if n < 2:
        return mean, error, n - 1
    variances, freedom = pooled_variances(n * error**2, n - 1)
    return mean, np.sqrt(variances / n), float(freedom)


SparseMatrix: TypeAlias = Any
"""A sparse matrix of SciPy, in rows."""


@dataclass(frozen=True)
class ValueErrors:
    """Variances of the errors of values.

    Attributes
    ----------
    odd, even : arrays, (R, C, K)
        Those of the half difference and of the half sum of a coalition's value and that of its
        complement. Half of the variance of the value each where the two are independent.
    covariances : array, (R, C, K)
        Covariances of the two; for the complement, they have the other sign.
    freedom : float
        Degrees of freedom of the variances, of random models; infinite for background rows.
    exponents : array, (R, 1, K), optional
        Where squares of values are no numbers, the variances are those of the values times 2 to
        minus these powers.
    """

    odd: FloatArray
    even: FloatArray
    covariances: FloatArray
    freedom: float = np.inf
    exponents: IntArray | None = None

    @property
    def variances(self) -> FloatArray:
        """Variances of the values, (R, C, K)."""
        return self.odd + self.even + 2 * self.covariances

    def first(self, n_coalitions: int) -> Self:
        """Return those of the first coalitions."""
        return self._changed(lambda part: part[:, :n_coalitions])

    def subset_rows(self, indices: IntArray | slice) -> Self:
        """Return those of some rows."""
        exponents = None if self.exponents is None else self.exponents[indices]
        return replace(self._changed(lambda part: part[indices]), exponents=exponents)

    def at_scale(self, exponents: IntArray) -> Self:
        """Return the variances of the values times 2 to minus these powers, (R, 1, K)."""
        own = 0 if self.exponents is None else self.exponents
        changed = self._changed(lambda part: np.ldexp(part, 2 * (own - exponents)))
        return replace(changed, exponents=None)

    def in_units_of_values(self, errors: FloatArray) -> FloatArray:
        """Return standard errors, (R, n, K), that come from these variances."""
        return errors if self.exponents is None else np.ldexp(errors, self.exponents)

    def _changed(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        """Return the same with each array changed."""
        odd, even, covariances = map(change, (self.odd, self.even, self.covariances))
        return replace(self, odd=odd, even=even, covariances=covariances)

    def sum_variances(self, weights: SparseMatrix, coalitions: CoalitionArray) -> FloatArray:
        """Return the variances of weighted sums of the values, (R, n, K).

        Those of coalitions and complements with weights a and a' have the variances
        a² var v + a'² var v' + 2 a a' cov(v, v'). All others are independent.

        Parameters
        ----------
        weights : sparse matrix, (n, C)
            The weight of each value in each sum.
        coalitions : array, (C, M)
            The coalitions of the values, those of no and of all players first.
        """
        first, second = complements(coalitions)
        one, other = first[second >= 0], second[second >= 0]
        shared = weights[:, one].multiply(weights[:, other])
        of_pairs = 2 * (self.even - self.odd)[:, one]
        return weighted_sums(weights.power(2), self.variances) + weighted_sums(shared, of_pairs)

    def beside_spread(
        self,
        units: SparseMatrix,
        sums: SparseMatrix,
        certain: SparseMatrix,
        coalitions: CoalitionArray,
    ) -> FloatArray:
        """Return the variances of sums that the spread between units does not show, (R, n, K).

        The spread holds the errors that each unit has by itself. The error of a value that enters
        several units moves all of them alike.

        Parameters
        ----------
        units : sparse matrix, (U, C)
            The weight of each value in each unit.
        sums : sparse matrix, (n, U)
            The weight of each unit in each sum.
        certain : sparse matrix, (n, C)
            The weight of each value in each sum beside the units.
        coalitions : array, (C, M)
            The coalitions of the values, those of no and of all players first.
        """
        own = weighted_sums(sums.power(2), self.sum_variances(units, coalitions))
        whole = self.sum_variances((sums @ units + certain).tocsr(), coalitions)
        return np.maximum(whole - own, 0.0)

    def variances_of_ends(self, n_players: int) -> FloatArray:
        """Return what the errors of the first two values add to the variances, (R, 1, K).

        The players share v(N) − v(∅), twice the odd part of all players.
        """
        return 4 * self.odd[:, :1] / n_players**2

    def enumeration_variances(self, coalitions: CoalitionArray) -> FloatArray:
        """Return the variances of the Shapley values from all coalitions, (R, M, K).

        A coalition and its complement have opposite weights w in φ_i, so that φ_i is the sum of
        2 w times the odd parts of all pairs, of which the coalitions hold each twice.
        """
        present, absent = size_weights(coalitions.shape[1])
        sizes = coalitions.sum(axis=1)
        weights = np.where(coalitions, present[sizes][:, None], absent[sizes][:, None])
        return 2 * (weights**2).T @ self.odd


def weighted_sums(weights: SparseMatrix, values: FloatArray) -> FloatArray:
    """Return the sums of values, (R, C, K), with the weights of a sparse matrix, (n, C)."""
    n_rows, n_coalitions, n_outputs = values.shape
    flat = values.transpose(1, 0, 2).reshape(n_coalitions, n_rows * n_outputs)
    sums: FloatArray = (weights @ flat).reshape(-1, n_rows, n_outputs).transpose(1, 0, 2)
    return np.ascontiguousarray(sums)
