"""SHEAR's draws of what a regression leaves, where each draw serves all players.

SHEAR's units are divided into folds: a fold has all units of some players. For each fold, a
Gaussian-process regression is fitted to the pairs of complements of all other folds, and the fold
gives an unbiased estimate of the Shapley values of its errors, as in `cross_fitting`.

A unit of SHEAR estimates the contribution of one player. Here it counts for all: the design gives
the probability that a fold draws a pair of complements, by which the pair's error is divided
(Horvitz and Thompson, 1952). A pair that is drawn again adds nothing. The strata of a single player
together have all pairs, so that no pair of a fold has the probability 0.

The variance has the factor 1 − π of a pair that is drawn with probability π: with most coalitions
evaluated, little is left to chance. But the pairs that no fold draws are missing in all folds, so
that the folds err alike. Per pair of a fold, this covariance is π times the variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betaln, gammaln

from ...array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ...coalitions.tables import first_occurrences, pack
from ..cross_fitting import SHARED, freedom_of_sums
from ..odd_gp.estimator import OddGP
from ..protocol import Solution

_FOLDS = 5
"""Number of folds, if there are as many players. Each takes a fit; ten err as much as five."""


_NEVER_TWICE = 1e-8
"""With fewer expected draws of a pair, it is not drawn twice, up to rounding."""


@dataclass(frozen=True)
class FoldDraws:
    """The weights of the pairs that a fold draws, two for each of its units.

    Attributes
    ----------
    share : float
        The weight of the fold in the estimate.
    coefficients : array, (2 U', M)
        The weights of the errors of the pairs in the estimate of the fold.
    factors : array, (2 U',)
        The weights of the squared terms in the variance.
    """

    share: float
    coefficients: FloatArray
    factors: FloatArray

    def sums(self, errors: FloatArray) -> FloatArray:
        """Return the estimate of the errors' part, its variance and the sum of its squared terms.

        Parameters
        ----------
        errors : array, (R, 2 U', K)
            The errors of the regression.

        Returns
        -------
        array, (3, R, M, K)
        """
        n_pairs, n_players = self.coefficients.shape
        n_outputs = errors.shape[2]
        weights = self.coefficients.reshape(n_pairs // 2, 2, n_players, 1)
        factors = np.sqrt(self.factors).reshape(n_pairs // 2, 2, 1, 1)
        sums = np.empty((3, len(errors), n_players, n_outputs))
        for row, of_row in enumerate(errors):  # one by one, to bound the memory
            terms = weights * of_row.reshape(n_pairs // 2, 2, 1, n_outputs)
            squares = (factors * terms).sum(axis=1) ** 2  # (U', M, K)
            sums[:, row] = terms.sum(axis=(0, 1)), squares.sum(axis=0), (squares**2).sum(axis=0)
        return sums


@dataclass(frozen=True)
class UnitDraws:
    """The pairs of complements that some units have evaluated, two for each unit.

    Attributes
    ----------
    players : array, (U,)
        The player of each unit.
    members : array, (2 U, M)
        A coalition of each pair: of a unit's first context without the player, then with it.
    positions : array, (2 U, 2)
        Indices of the coalition and of its complement in the table.
    present, absent : arrays, (U, M)
        The cooperators that are in the first context of each unit, and those that are not.
    """

    players: IntArray
    members: CoalitionArray
    positions: IntArray
    present: CoalitionArray
    absent: CoalitionArray

    @classmethod
    def from_units(
        cls,
        players: IntArray,
        cooperators: IntArray,
        coalitions: CoalitionArray,
        positions: IntArray,
    ) -> UnitDraws:
        """Return the draws of units whose second contexts are complements of the first.

        Parameters
        ----------
        players : array, (U,)
            The player of each unit.
        cooperators : array, (M, K)
            The cooperators of each player.
        coalitions : array, (C, M)
            The table.
        positions : array, (U, 4)
            Indices in the table: two contexts, without and with the player.
        """
        n_players = coalitions.shape[1]
        cooperates = np.zeros((n_players, n_players), dtype=bool)
        np.put_along_axis(cooperates, cooperators, True, axis=1)
        of_unit, first_context = cooperates[players], coalitions[positions[:, 0]]
        # The complement of the first context with the player is the second one without it.
        pairs = positions[:, [[0, 3], [1, 2]]].reshape(-1, 2)
        present, absent = of_unit & first_context, of_unit & ~first_context
        return cls(players, coalitions[pairs[:, 0]], pairs, present, absent)

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return min(_FOLDS, int(self.members.shape[1]))

    @cached_property
    def first_equal(self) -> IntArray:
        """Return the index of the first equal pair, (2 U,); −1 for that of no and all players."""
        members = self.members
        one_of_pair = np.where(members[:, :1], ~members, members)
        indices = first_occurrences(pack(one_of_pair)[None])[0]
        return np.where(one_of_pair.any(axis=1), indices, -1)

    def draws_of_fold(self, fold: int) -> FoldDraws:
        """Return the weights of the pairs of a fold in its estimate and its variance."""
        is_of_fold = self.players % self.n_folds == fold
        share = len(range(fold, self.members.shape[1], self.n_folds)) / self.members.shape[1]
        return self._draws_of(is_of_fold, share)

    def _draws_of(self, is_of_fold: BoolArray, share: float) -> FoldDraws:
        """Return the weights of the pairs of some units, which have a share of all players."""
        is_pair_of_fold = np.repeat(is_of_fold, 2)
        members, first_equal = self.members[is_pair_of_fold], self.first_equal[is_pair_of_fold]
        sizes = members.sum(axis=1)[:, None]
        n_absent = members.shape[1] - sizes
        weights = np.where(members, 2 / np.maximum(sizes, 1), -2 / np.maximum(n_absent, 1))
        probabilities, scaled = self._inclusion(is_of_fold, members)
        is_first = np.zeros((len(members), 1), dtype=bool)
        is_first[np.unique(first_equal, return_index=True)[1]] = True
        coefficients = np.where(is_first, weights / scaled[:, None], 0.0)
        alike = SHARED / self.n_folds + (1 / share - 1) * probabilities
        return FoldDraws(share, coefficients, (1 - probabilities) * (1 + alike))

    def _inclusion(
        self, is_of_fold: BoolArray, members: CoalitionArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the probability that the units of a fold draw each pair, (n,).

        And the same times the number of coalitions of its size, which is the smaller number of
        two that are tiny and huge with many players.
        """
        n_players, sizes = members.shape[1], members.sum(axis=1)
        log_counts = gammaln(n_players + 1) - gammaln(sizes + 1) - gammaln(n_players - sizes + 1)
        logs = self._log_probabilities(is_of_fold, members)
        logs = np.logaddexp(logs, self._log_probabilities(is_of_fold, ~members))  # never both
        numbers = np.exp(logs + log_counts[:, None]).sum(axis=1)
        by_unit = np.minimum(np.exp(logs), 1.0)
        expected = by_unit.sum(axis=1)
        with np.errstate(divide="ignore"):  # a pair that a unit draws for sure
            probabilities = -np.expm1(np.log1p(-by_unit).sum(axis=1))
        distinct = np.divide(
            probabilities, expected, out=np.ones_like(expected), where=expected > _NEVER_TWICE
        )
        return probabilities, numbers * distinct

    def _log_probabilities(self, is_of_fold: BoolArray, members: CoalitionArray) -> FloatArray:
        """Return the logarithms of the probabilities of coalitions, (n, U').

        That the first context of each unit of the fold, with or without its player, is the
        coalition.
        """
        n_players = members.shape[1]
        present, absent = self.present[is_of_fold], self.absent[is_of_fold]
        players = self.players[is_of_fold]
        missing = (~members).astype(float) @ present.T + members.astype(float) @ absent.T
        sizes, n_present, n_absent = members.sum(axis=1), present.sum(axis=1), absent.sum(axis=1)
        n_random = n_players - 1 - n_present - n_absent
        n_drawn = np.clip(sizes[:, None] - n_present - members[:, players], 0, n_random)
        logs = betaln(n_present + 1 + n_drawn, n_absent + 1 + n_random - n_drawn)
        logs -= betaln(n_present + 1, n_absent + 1)
        return np.where(missing == 0, logs, -np.inf)

    def solution(self, values: ValueArray) -> Solution:
        """Return the estimates of rows that have these draws, from their values, (R, C, K)."""
        total = (values[:, 1] - values[:, 0])[:, None] / 2
        first, second = (np.take(values, self.positions[:, side], axis=1) for side in (0, 1))
        targets = (first - second) / 2  # the odd part of the games
        n_players = self.members.shape[1]
        results = np.zeros((3, len(values), n_players, values.shape[2]))
        for fold in range(self.n_folds):
            is_of_fold, others, is_known = self._pairs_of(fold)
            fit = OddGP().predict(
                self.members[others], total, targets[:, others], self.members[is_of_fold]
            )
            errors = np.where(is_known, 0.0, targets[:, is_of_fold] - fit.predictions)
            draws = self.draws_of_fold(fold)
            sums = draws.sums(errors)
            sums[0] += fit.means
            results += (draws.share ** np.array([1, 2, 4]))[:, None, None, None] * sums
        estimates, variances, fourths = results
        freedom = freedom_of_sums(variances, fourths, len(self.players))
        return Solution(estimates, np.sqrt(variances), freedom)

    def added_variances(self, odd: FloatArray) -> FloatArray:
        """Return what errors of values add to the variances of `solution`, (R, M, K).

        Estimates without bias give the error of a pair its Shapley weight, divided by the
        probability of the pair where it is drawn. The spread of what the regressions leave holds
        the errors of the pairs that a single fold draws, but for the factors of the variance.

        Parameters
        ----------
        odd : array, (R, C, K)
            The variances of the errors of the odd part of the values.
        """
        of_pairs = np.take(odd, self.positions[:, 0], axis=1)
        whole = self._draws_of(np.ones(len(self.players), dtype=bool), 1.0)
        added = (whole.coefficients**2).T @ of_pairs
        for fold in range(self.n_folds):
            is_of_fold, _, is_known = self._pairs_of(fold)
            draws = self.draws_of_fold(fold)
            in_spread = draws.coefficients**2 * draws.factors[:, None] * ~is_known
            added -= draws.share**2 * in_spread.T @ of_pairs[:, is_of_fold]
        return np.maximum(added, 0.0)

    def _pairs_of(self, fold: int) -> tuple[BoolArray, IntArray, BoolArray]:
        """Return which pairs are of a fold, (2 U,), and the indices of those of others, distinct.

        And which pairs of the fold others have drawn, too, (2 U', 1).
        """
        is_of_fold = np.repeat(self.players % self.n_folds == fold, 2)
        others = np.unique(self.first_equal[~is_of_fold])
        others = others[others >= 0]
        return is_of_fold, others, np.isin(self.first_equal[is_of_fold], [-1, *others])[:, None]
