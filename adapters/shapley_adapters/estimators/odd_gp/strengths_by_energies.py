"""How strongly each player takes part in a game, by the energies of the sets that hold it.

Where the marginal likelihood of the strengths is stationary, the sets that hold a player have as
much energy in the values as the prior expects, and so have all sets of a size (MacKay, Bayesian
Interpolation, 1992). Each step closes the gaps, for all players and sizes at once. The prior is
that of `values_prior`, with sets of at most five players, and with variances of single players in
proportion to the strengths: players whose effects cancel are found by their interactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from ...array_types import FloatArray
from .marginal_likelihood import TINY
from .prior_fitting import log_moves
from .values_prior import (
    CONSTANT,
    ErrorCovariances,
    Products,
    SizeFactors,
    Variances,
    limited_strengths,
    sums_over_sets,
)

_MOST_VALUES = 512
"""The strengths are fitted to the first values, at most so many."""

_MOST_MEMBERS = 5
"""Number of players of the largest sets. Errors are .98 to 1.01 times those with seven."""

_OVERRELAXATION = (2.0, 1.5, 1.5, 1.0)
"""Each step goes so many times as far as the fixed point of each player, because all move together.
With eight steps, errors are .9 to 1 times these on sparse games of 50 players, and equal on others;
it takes twice as long."""

_SPREAD, _LIMIT = 2.0, 3.0
"""Prior standard deviation of the logarithms of strengths and of variances, and the bound on a step
of a strength."""

_LEAST_STRENGTH, _LARGEST_SHARE = 0.005, 0.3
"""As in `values_prior`, but wider: players at a bound move no more."""

_LEAST_START, _LEAST_VARIANCE, _LARGEST_VARIANCE, _VARIANCE_LIMIT = 0.1, 0.002, 20.0, 1.5
"""Bounds on the variances of interactions, over that of single players: at the start, in the end,
and of the step of a logarithm."""

_NOISE = 1e-6
"""Share of the variance that is added to the diagonal, against rounding."""


def fitted_strengths(
    products: Products,
    values: FloatArray,
    errors: ErrorCovariances | None,
    prior: Variances,
    factors: SizeFactors,
    start: FloatArray,
) -> tuple[FloatArray, Variances]:
    """Return variances of single players, (M,), of sum 1, and those of interactions.

    Parameters
    ----------
    products : Products
        Those of the coalitions; their strengths do not matter.
    values : array, (n, K)
        The values of games that share strengths.
    errors : ErrorCovariances, optional
        Of the errors of the values.
    prior : Variances
        The start, and the variance of the function of the size.
    factors : SizeFactors
        How effects of single players change with the size.
    start : array, (M,)
        Variances of single players to start from, in any unit.
    """
    first = slice(0, _MOST_VALUES)
    part, values = products.subset_values(first), values[first]
    singles = part.size_factors(factors)
    centre = np.log(np.maximum([prior.pairs, prior.triples, prior.larger], _LEAST_START))
    logs, strengths = centre, _limited(start)
    for overrelaxation in _OVERRELAXATION:
        energies = _Energies.from_prior(part, strengths, np.exp(logs), singles)
        rest = np.full((len(values), len(values)), CONSTANT)
        if prior.sizes:
            functions = Products(part.members, strengths).functions_of_size()
            rest += prior.sizes * functions @ functions.T
        if errors is not None:
            rest += errors.matrix(first)
        expected, observed = energies.expected_and_observed(rest, values)
        log_strengths = np.log(strengths)
        offsets = np.append(log_strengths - log_strengths.mean(), [0.0, *(logs - centre)])
        spreads, steps = np.full(len(offsets), _SPREAD), np.ones(len(offsets))
        steps[: len(start)] = overrelaxation
        moves = log_moves(expected, observed, offsets, spreads, steps)
        moves_of_players, moves_of_sizes = np.split(moves, [len(start)])
        strengths = _limited(strengths * np.exp(np.clip(moves_of_players, -_LIMIT, _LIMIT)))
        moves_of_sizes = np.clip(moves_of_sizes, -_VARIANCE_LIMIT, _VARIANCE_LIMIT)
        logs = logs + moves_of_sizes[1:] - moves_of_sizes[0]
        logs = np.clip(logs, np.log(_LEAST_VARIANCE), np.log(_LARGEST_VARIANCE))
    pairs, triples, larger = np.exp(logs).tolist()
    return strengths / len(start), Variances(pairs, triples, larger, prior.sizes)


def _limited(variances: FloatArray) -> FloatArray:
    return limited_strengths(variances, _LEAST_STRENGTH, _LARGEST_SHARE)


@dataclass(frozen=True)
class _Energies:
    """The covariances of values that sets of one to five players have.

    Attributes
    ----------
    signs : array, (n, M)
        1 for members, −1 for other players.
    strengths : array, (M,)
        Those of the players, of mean 1.
    shares : array, (6,)
        The variance of sets of 0, 1, … players, over the sum of the products of their strengths;
        0 for none and for one player.
    sums : list of arrays, (n, n)
        The sums over sets of 0, 1, … players of products of strengths and signs.
    singles : array, (n, n)
        The covariances of the effects of a player of strength 1, over its signs.
    """

    signs: FloatArray
    strengths: FloatArray
    shares: FloatArray
    sums: list[FloatArray]
    singles: FloatArray

    @classmethod
    def from_prior(
        cls, part: Products, strengths: FloatArray, variances: FloatArray, sizes: FloatArray
    ) -> _Energies:
        """Return those for variances of two, three and more players, (3,), and factors, (n,)."""
        signs, orders = part.signs, range(1, _MOST_MEMBERS + 1)
        powers = [(strengths**k).sum() for k in orders]
        norms = sums_over_sets(powers)
        powers[::2] = [(signs * strengths**k) @ signs.T for k in orders[::2]]
        larger = variances[2] / (_MOST_MEMBERS - 3)
        of_sizes = [0.0, 0.0, variances[0], variances[1], *[larger] * (_MOST_MEMBERS - 3)]
        shares = np.array(of_sizes) / norms
        singles = np.outer(sizes, sizes) / len(strengths)
        return cls(signs, strengths, shares, sums_over_sets(powers), singles)

    @cached_property
    def of_sizes(self) -> list[FloatArray]:
        """Return the covariances by one, two, three and more players, (n, n) each."""
        single = self.singles * self.sums[1]
        pairs, triples, *larger = (
            share * part for share, part in zip(self.shares[2:], self.sums[2:], strict=True)
        )
        return [single, pairs, triples, sum(larger, start=np.zeros_like(single))]

    def expected_and_observed(
        self, rest: FloatArray, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the energies of the sets with each player, and of those of each size, (M + 4,).

        Half of their difference is the derivative of the log marginal likelihood.

        Parameters
        ----------
        rest : array, (n, n)
            All other covariances of the values; it is overwritten.
        values : array, (n, K)
            The values.
        """
        n = len(values)
        for of_size in self.of_sizes:
            rest += of_size
        rest[np.diag_indices(n)] += _NOISE * np.trace(rest) / n
        factor = scipy.linalg.cho_factor(rest, lower=True, check_finite=False)
        inverse = scipy.linalg.cho_solve(factor, np.eye(n), check_finite=False)
        solved = inverse @ values
        scale = np.maximum((values * solved).sum(axis=0) / n, TINY)
        outer = (solved / scale) @ solved.T / len(scale)
        return self._of(inverse), self._of(outer)

    def _of(self, matrix: FloatArray) -> FloatArray:
        """Return Σ G ∘ A for each player and each size, where A are the covariances of its sets.

        The sum over sets with player i is s z_i z′_i times that over sets of others, which is
        Σ_m (−s z_i z′_i)^m e_{d − m}, with the sums e over sets of all players.
        """
        of_players = np.zeros_like(self.strengths)
        for m in range(_MOST_MEMBERS):
            others = [
                self.shares[size] * self.sums[size - 1 - m]
                for size in range(max(2, m + 1), _MOST_MEMBERS + 1)
            ]
            weighted = matrix * sum(others, start=self.singles if m == 0 else 0.0)
            if m % 2:
                of_players -= self.strengths ** (m + 1) * weighted.sum()
            else:
                forms = np.einsum("nj,nj->j", self.signs, weighted @ self.signs)
                of_players += self.strengths ** (m + 1) * forms
        of_sizes = [(matrix * of_size).sum() for of_size in self.of_sizes]
        energies: FloatArray = np.maximum(np.append(of_players, of_sizes), TINY)
        return energies
