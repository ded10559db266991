"""Semivalues and interactions of sets of players, as one family of averages.

All of them average the effect that the players of a set A have together, the discrete derivative
Δ_A v(S) = Σ_{B⊆A} (−1)^{|A|−|B|} v(S ∪ B), over the coalitions S of the other players. Let each
other player be in S with the same chance, and draw this chance from a Beta distribution:

    Shapley value, Shapley interaction       Beta(1, 1)
    Banzhaf value, Banzhaf interaction       the chance is a half: Beta(∞, ∞)
    Shapley–Taylor interaction, its order k  Beta(1, k)
    faithful Shapley interaction, order k    Beta(k, k)
    Beta-Shapley value                       Beta(β, α)

With v(z) = Σ_T c_T Π_{j∈T} z_j over z = ±1, and x = 2 · chance − 1 as the mean of each z_j,

    f_A = 2^|A| Σ_{T⊇A} c_T E[x^{|T|−|A|}].

So a family is a distribution of x. A rule with few nodes integrates all covariances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy.special

from ...array_types import BoolArray, FloatArray, IntArray

_NODES = 48
"""Nodes of Gauss's rule for x: exact for games of up to 95 players. With more, the integrands are
smooth: 96 nodes change no digit that was looked at, with 500 players."""


class Rule(NamedTuple):
    """Nodes r ≥ 0, (Q,), and weights of even and of odd powers of x, (Q,) each."""

    nodes: FloatArray
    even: FloatArray
    odd: FloatArray


@lru_cache(maxsize=64)
def _rule(first: float, second: float) -> Rule:
    """Return the rule for x where the chance has a Beta distribution."""
    if math.isinf(first):
        return Rule(np.zeros(1), np.ones(1), np.zeros(1))
    nodes, weights = scipy.special.roots_jacobi(_NODES, second - 1, first - 1)
    weights = weights / weights.sum()
    positive = nodes > 0
    if first == second:  # odd powers of x have mean 0
        return Rule(nodes[positive], 2 * weights[positive], np.zeros(positive.sum()))
    return Rule(np.abs(nodes), weights, weights * np.sign(nodes))


@dataclass(frozen=True)
class Index:
    """An average of the effects of sets of players.

    Attributes
    ----------
    sets : array, (k, s)
        The players of each set A.
    n_players : int
        M.
    first, second : float
        The Beta distribution of the chance.
    """

    sets: IntArray
    n_players: int
    first: float = 1.0
    second: float = 1.0

    @property
    def order(self) -> int:
        """The number of players in each set, s."""
        return int(self.sets.shape[1])

    @cached_property
    def rule(self) -> Rule:
        """The nodes and weights for x."""
        return _rule(self.first, self.second)

    def moments(self, degrees: IntArray) -> FloatArray:
        """Return E[x^d] for each degree."""
        nodes, even, odd = self.rule
        powers = nodes ** np.asarray(degrees)[..., None]
        is_even = (np.asarray(degrees) % 2 == 0)[..., None]
        moments: FloatArray = (powers * np.where(is_even, even, odd)).sum(axis=-1)
        return moments

    def of_sets(self, others: IntArray) -> FloatArray:
        """Return by how much the coefficients of sets T, (m, t), count, (m, k)."""
        held = (others[:, None, :, None] == self.sets[None, :, None, :]).any(axis=2).all(axis=2)
        size = others.shape[1]
        factor = 2.0**self.order * self.moments(np.array(max(size - self.order, 0)))
        return np.where(held, factor, 0.0)

    def weights_of_values(self, members: BoolArray) -> FloatArray:
        """Return the weight of the value of each coalition, (n, M), in each average, (n, k)."""
        inside = members[:, self.sets].sum(axis=2)
        weights: FloatArray = self._by_members[inside, members.sum(axis=1)[:, None]]
        return weights

    def weights_of_part(self, members: BoolArray, parity: int | None) -> FloatArray:
        """Return the weight of the odd or even part of the game at each coalition; None: of all."""
        weights = self.weights_of_values(members)
        if parity is None:
            return weights
        of_complements = self.weights_of_values(~members)
        return weights - of_complements if parity else weights + of_complements

    @cached_property
    def _by_members(self) -> FloatArray:
        """The weights by the number of players of A in S, and by the size of S: (s + 1, M + 1)."""
        order, n_others = self.order, self.n_players - self.order
        sizes = np.arange(n_others + 1)
        if math.isinf(self.first):
            chances = np.full(n_others + 1, 0.5**n_others)
        else:
            log = scipy.special.betaln(sizes + self.first, n_others - sizes + self.second)
            chances = np.exp(log - scipy.special.betaln(self.first, self.second))
        weights = np.zeros((order + 1, self.n_players + 1))
        for inside in range(order + 1):
            weights[inside, inside : inside + n_others + 1] = (-1) ** (order - inside) * chances
        return weights

    def sum_of_squares(self, parity: int | None, of_sizes: FloatArray | None = None) -> float:
        """Return the sum of squared weights of all values, or of all odd or even parts.

        The part of a coalition and its complement counts once, with the difference or the sum of
        their weights. The empty coalition and that of all players are left out: they are known.
        With `of_sizes`, (M + 1,), those of a size count by a factor.
        """
        weights, order = self._by_members, self.order
        n_others = self.n_players - order
        if parity is not None:
            weights = weights + (-1) ** parity * weights[::-1, ::-1]
        inside, sizes = np.nonzero(weights)
        is_other = (sizes > 0) & (sizes < self.n_players)
        inside, sizes = inside[is_other], sizes[is_other]
        log = np.log(scipy.special.comb(order, inside)) + 2 * np.log(np.abs(weights[inside, sizes]))
        log += scipy.special.gammaln(n_others + 1) - scipy.special.gammaln(sizes - inside + 1)
        log -= scipy.special.gammaln(n_others - sizes + inside + 1)
        factors = 1.0 if of_sizes is None else of_sizes[sizes]
        return float((factors * np.exp(log)).sum()) * (1.0 if parity is None else 0.5)

    def covariances(self, signs: FloatArray, tau: FloatArray, parity: int) -> FloatArray:
        """Return covariances with values, (n, k), of sets T ⊇ A of a parity with Var c_T = Π τ_j.

        Sets of one player are left out. The sum over T of Π_{j∈T} τ_j z_j x^{|T|−s} is a product
        over the players. Of those of A, whose factors 1 + x τ z it lacks, 1 / (1 + x τ z) is
        (1 − x τ z) / (1 − x² τ²): sums over the subsets of A, each of them a product of matrices.
        """
        return self._sums(signs, tau, parity, *self.rule)

    def variances(self, tau: FloatArray, parity: int) -> FloatArray:
        """Return the variances, (k,), for the same coefficients."""
        nodes, even, odd = self.rule
        if self.order == self.first == self.second == 1:  # E[x^d]² is the integral of −log x x^d
            squared = Rule(nodes, -np.log(nodes) * even, odd)
        else:
            squared = Rule(*(np.outer(part, part).ravel() for part in (nodes, even, odd)))
        factor = 2.0**self.order
        present = np.ones((1, self.n_players))
        variances: FloatArray = factor * self._sums(present, tau, parity, *squared)[0]
        return variances

    def _sums(
        self,
        signs: FloatArray,
        tau: FloatArray,
        parity: int,
        nodes: FloatArray,
        even: FloatArray,
        odd: FloatArray,
    ) -> FloatArray:
        order = self.order
        has_even_rest = (order - parity) % 2 == 0  # of the sets T without A
        weights = even if has_even_rest else odd
        if not weights.any():
            return np.zeros((len(signs), len(self.sets)))
        scaled = nodes[:, None] * tau  # (Q, M)
        tilt = signs @ np.arctanh(scaled).T  # (n, Q)
        raised = np.exp(tilt)
        lowered = 1 / raised
        scale = 0.5 * np.exp(0.5 * np.log1p(-(scaled**2)).sum(axis=1)) * weights
        parts = (raised + lowered) * scale, (raised - lowered) * scale  # even and odd in x
        left = (1 / (1 - scaled**2))[:, self.sets].prod(axis=2)  # (Q, k)
        found = np.zeros((len(signs), len(self.sets)))
        for size in range(order + 1):
            # A factor −x τ z of A changes the parity of the rest.
            part = parts[(size + (not has_even_rest)) % 2]
            for chosen in combinations(range(order), size):
                of_set = self.sets[:, list(chosen)]
                factors = left * scaled[:, of_set].prod(axis=2)
                found += (-1) ** size * signs[:, of_set].prod(axis=2) * (part @ factors)
        if order == 1 and has_even_rest:
            found -= weights.sum()  # the player alone
        own = tau[self.sets].prod(axis=1) * signs[:, self.sets].prod(axis=2)
        found *= 2.0**order * own
        return found


def single_players(n_players: int, first: float = 1.0, second: float = 1.0) -> Index:
    """Return the semivalues of all players; Shapley values by default."""
    return Index(np.arange(n_players)[:, None], n_players, first, second)


def all_sets(n_players: int, order: int, first: float = 1.0, second: float = 1.0) -> Index:
    """Return the interactions of all sets of `order` players."""
    sets = np.array(list(combinations(range(n_players), order)), dtype=np.intp)
    return Index(sets.reshape(-1, order), n_players, first, second)
