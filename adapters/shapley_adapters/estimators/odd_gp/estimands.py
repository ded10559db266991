"""What is estimated: Shapley values and interactions, as linear functions of a part of a game.

An estimand says how the coefficients of the game count in it, and hence its prior covariances with
the values. It also is a weighted sum of the game over the pairs of complements: the noise of the
prior, which is independent from pair to pair, counts with these weights.

The Shapley interaction index of a pair is the sum of 4 c_T / (|T| − 1) over the even sets that hold
it. Its Shapley–Taylor interaction is that less the sum of 4 c_T / |T| over the odd sets that hold
it. With 1/k = ∫₀¹ u^{k−1} du, their covariances are integrals of polynomials in u, which Gauss's
rules integrate exactly; see `attribution_covariances`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...array_types import FloatArray, IntArray
from ...interactions.result import (
    membership,
    pair_numbers,
    pairs_of,
    sum_of_squares,
    weights_of_members,
)
from .attribution_covariances import (
    integration_rule,
    interaction_covariances,
    log_integration_rule,
    n_nodes,
    shapley_weights,
    squared_weights,
)
from .kernels import Prior, log_norm


@dataclass(frozen=True)
class Estimand(ABC):
    """Linear functions, k in number, of the odd or the even part of games of M players."""

    n_players: int

    is_even: ClassVar[bool]

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Their number, k."""

    @abstractmethod
    def weights(self, signs: FloatArray) -> FloatArray:
        """Return the weight of the part at coalitions, (n, k), summed over pairs of complements."""

    @abstractmethod
    def squared_weights(self, jumps: bool = False) -> FloatArray | float:
        """Return the sums of the squared weights over all pairs that have noise, (k,).

        Where the game jumps, the squares count by the variance of the noise.
        """

    @abstractmethod
    def covariances(
        self, signs: FloatArray, strengths: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return covariances with values, (R, n, k), and variances, (R, k), by interactions."""

    @abstractmethod
    def maps(self, sets: IntArray) -> FloatArray:
        """Return by how much the coefficients of sets of players, (m, size), count, (m, k)."""

    def base(
        self, signs: FloatArray, prior: Prior
    ) -> tuple[FloatArray | float, FloatArray | float]:
        """Return covariances with values, (..., n, k), and variances, by the lowest sets."""
        del signs, prior
        return 0.0, 0.0

    def variance_of_noise(self, prior: Prior, least: FloatArray) -> FloatArray:
        """Return the variances by the noise of all pairs, (..., 1) or (..., k).

        Parameters
        ----------
        least : array, (..., 1)
            The least variance of the noise of a value; see `noise_of`.
        """
        by_prior: FloatArray = np.asarray(prior.noise_variance)[..., None]
        return by_prior * self.squared_weights(prior.jumps) + least * self.squared_weights()


@dataclass(frozen=True)
class ShapleyValues(Estimand):
    """The Shapley values of the players: k = M."""

    is_even: ClassVar[bool] = False

    @property
    def n_outputs(self) -> int:
        """The number of players."""
        return self.n_players

    def weights(self, signs: FloatArray) -> FloatArray:
        """Return the `shapley_weights`."""
        return shapley_weights(signs)

    def squared_weights(self, jumps: bool = False) -> float:
        """Return the sum over all pairs but that of all players, whose value is known."""
        return squared_weights(self.n_players, jumps)

    def covariances(
        self, signs: FloatArray, strengths: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the `interaction_covariances`."""
        return interaction_covariances(signs, strengths)

    def maps(self, sets: IntArray) -> FloatArray:
        """Return 2 c / |T| for the players of each set."""
        maps = np.zeros((len(sets), self.n_players))
        np.put_along_axis(maps, sets, 2 / sets.shape[1], axis=1)
        return maps

    def base(self, signs: FloatArray, prior: Prior) -> tuple[FloatArray, FloatArray | float]:
        """Return those of single players."""
        if prior.singles is None:
            return 2 * signs / self.n_players, 4 / self.n_players
        return 2 * signs * prior.singles[..., None, :], 4 * prior.singles


class _PairEstimand(Estimand):
    """Interactions of pairs by integrals, from the odd or the even sets that hold them."""

    _factor: ClassVar[float] = 4.0
    """By how much a coefficient counts, over the number of players less 1, or that number."""

    def _integrals(self, signs: FloatArray, strengths: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the covariances, (n, P), and the variances, (P,), of a game."""
        n_points, ones = n_nodes(self.n_players), np.ones((1, self.n_players))
        found = []
        for make, at in ((integration_rule, signs), (log_integration_rule, ones)):
            nodes, chances = make(n_points)
            rule = nodes, chances if self.is_even else chances * nodes
            found.append(pair_integrals(at, strengths, rule, self.is_even))
        return self._factor * found[0], self._factor**2 * found[1][0]

    def _entries(self, of_members: FloatArray, signs: FloatArray) -> FloatArray:
        """Return the entries, (n, P), of (3, M + 1) by members of a pair in S and the size of S."""
        first, second = pairs_of(self.n_players)
        members = signs > 0
        n_inside = members[:, first].astype(np.intp) + members[:, second]
        entries: FloatArray = of_members[n_inside, members.sum(axis=1)[:, None]]
        return entries


@dataclass(frozen=True)
class PairInteractions(_PairEstimand):
    """The Shapley or Banzhaf interactions of all P pairs, then their sums by player: k = P + M."""

    index: str = "shapley"

    is_even: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """The number of pairs and of players."""
        return self.n_players * (self.n_players + 1) // 2

    def weights(self, signs: FloatArray) -> FloatArray:
        """Return the weights, whose sum over all pairs of complements is 0."""
        weights = weights_of_members(self.index, self.n_players)
        return self._with_sums(self._entries(weights + weights[::-1, ::-1], signs))

    def squared_weights(self, jumps: bool = False) -> FloatArray:
        """Return the sums over all pairs of complements."""
        del jumps  # no prior of an even part does
        n_players, n_pairs = self.n_players, self.n_outputs - self.n_players
        if self.index == "banzhaf":
            of_pair = 16 * 0.5 ** (n_players - 1)
            of_player = of_pair * (n_players - 1)
        else:
            weights = weights_of_members("shapley", n_players)[0][: n_players - 1]
            # Of each size s, there are C(M − 2, s) coalitions of the other players, and this number
            # times the weight is 1 / (M − 1).
            of_pair, of_player = float(8 * weights.sum() / (n_players - 1)), 8.0
        return np.repeat([of_pair, of_player], [n_pairs, n_players])

    def covariances(
        self, signs: FloatArray, strengths: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return those of pairs, and of the sums of each player's pairs."""
        found = [self._game_covariances(signs, of_game) for of_game in strengths]
        return np.array([game[0] for game in found]), np.array([game[1] for game in found])

    def maps(self, sets: IntArray) -> FloatArray:
        """Return 4 / (|T| − 1) for the pairs in each set, which has two players."""
        maps = np.zeros((len(sets), self.n_outputs - self.n_players))
        maps[np.arange(len(sets)), pair_numbers(sets[:, 0], sets[:, 1], self.n_players)] = 4.0
        return self._with_sums(maps)

    def _game_covariances(
        self, signs: FloatArray, strengths: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        share, sums_of_others = np.exp(-log_norm(strengths, True)), strengths.sum() - strengths
        if self.index == "banzhaf":
            first, second = pairs_of(self.n_players)
            coefficients = share * strengths[first] * strengths[second]
            covariances = 4 * coefficients * signs[:, first] * signs[:, second]
            variances, of_sums = 16 * coefficients, 16 * share * strengths * sums_of_others
        else:
            covariances, variances = self._integrals(signs, strengths)
            of_sums = 16 * holding_each_player(strengths)
        return self._with_sums(covariances), np.concatenate([variances, of_sums])

    def _with_sums(self, of_pairs: FloatArray) -> FloatArray:
        """Return columns of pairs, followed by their sums by player."""
        return np.concatenate([of_pairs, of_pairs @ membership(self.n_players)], axis=1)


@dataclass(frozen=True)
class TaylorPart(_PairEstimand):
    """The part of the odd sets in the Shapley–Taylor interactions of all pairs: k = P."""

    is_even: ClassVar[bool] = False
    _factor: ClassVar[float] = -4.0

    @property
    def n_outputs(self) -> int:
        """The number of pairs."""
        return self.n_players * (self.n_players - 1) // 2

    def weights(self, signs: FloatArray) -> FloatArray:
        """Return the weights of the odd part."""
        return self._entries(self._weights_by_members, signs)

    def squared_weights(self, jumps: bool = False) -> float:
        """Return the sum over all pairs of complements but that of all players."""
        del jumps  # counted as if all coalitions had the same noise
        of_odd = self._weights_by_members
        return sum_of_squares(of_odd) / 2 - float(of_odd[2, -1] ** 2)

    def covariances(
        self, signs: FloatArray, strengths: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return those by interactions of three players or more."""
        found = [self._integrals(signs, of_game) for of_game in strengths]
        return np.array([game[0] for game in found]), np.array([game[1] for game in found])

    def maps(self, sets: IntArray) -> FloatArray:
        """Return −4 / |T| for the pairs in each set."""
        size, maps = sets.shape[1], np.zeros((len(sets), self.n_outputs))
        for first, second in zip(*np.triu_indices(size, 1), strict=True):
            pairs = pair_numbers(sets[:, first], sets[:, second], self.n_players)
            maps[np.arange(len(sets)), pairs] = self._factor / size
        return maps

    @property
    def _weights_by_members(self) -> FloatArray:
        weights = weights_of_members("shapley_taylor", self.n_players)
        of_odd: FloatArray = weights - weights[::-1, ::-1]
        return of_odd


def holding_each_player(strengths: FloatArray) -> FloatArray:
    """Return the share of the variance of the even sets that hold each player, (M,)."""
    scale = log_norm(strengths, True)
    raised, lowered = (0.5 * np.exp(np.log1p(sign * strengths).sum() - scale) for sign in (1, -1))
    shares: FloatArray = strengths * (raised / (1 + strengths) - lowered / (1 - strengths))
    return shares


def pair_integrals(
    signs: FloatArray,
    strengths: FloatArray,
    rule: tuple[FloatArray, FloatArray],
    is_even: bool,
) -> FloatArray:
    """Return the integrals over u of the even part of t_i t_j z_i z_j Π (1 + u t_l z_l), (n, P).

    Or of the odd part. The product is over the other players. It is that over all players by
    1 ± x z for both players of the pair, with x = u t, and 1 / (1 + x z) = (1 − x z) / (1 − x²). So
    four matrix products serve all pairs. The result is divided by the norm.
    """
    nodes, chances = rule
    first, second = pairs_of(signs.shape[1])
    products = nodes[:, None] * strengths  # (q, M)
    level = 0.5 * np.log1p(-(products**2)).sum(axis=1) - log_norm(strengths, is_even)
    tilt = signs @ np.arctanh(products).T  # (n, q)
    raised, lowered = 0.5 * np.exp(level + tilt), 0.5 * np.exp(level - tilt)
    of_parity, of_other = raised + lowered, raised - lowered
    if not is_even:
        of_parity, of_other = of_other, of_parity
    shares = 1 / (1 - products**2)
    of_pairs = chances[:, None] * shares[:, first] * shares[:, second]  # (q, P)
    of_first, of_second = signs[:, first], signs[:, second]
    of_both = of_pairs * products[:, first] * products[:, second]
    signs_of_pairs = of_first * of_second
    integrals: FloatArray = of_parity @ of_pairs + signs_of_pairs * (of_parity @ of_both)
    integrals -= of_first * (of_other @ (of_pairs * products[:, first]))
    integrals -= of_second * (of_other @ (of_pairs * products[:, second]))
    return integrals * signs_of_pairs * (strengths[first] * strengths[second])
