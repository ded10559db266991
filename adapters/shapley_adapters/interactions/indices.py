"""Semivalues and interactions of sets of players, by the weight of each number of players.

With m_T the Möbius coefficients of a game, v(S) = Σ_{T⊆S} m_T, every index of the field is a sum
over the sets T that contain the players of A, with weights that depend on the sizes a and t:

    f_A = Σ_{T⊇A} u_t m_T.

Their textbook weights are the only thing that differs between the indices; see `_WEIGHTS`. With
z = 1 for the members of a coalition and −1 for others, v = Σ_T c_T Π_{j∈T} z_j, so that

    f_A = Σ_{T⊇A} w_t c_T,    w_{a+d} = 2^a Σ_j C(d, j) 2^j (−1)^{d−j} u_{a+j},

which is computed in whole numbers, because the terms cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, pairwise

import numpy as np
import scipy.special

from ..array_types import BoolArray, FloatArray, IntArray

_DEGREES = 64
"""Players of T beside those of A whose weights are kept. Those of larger sets are below rounding:
the largest level of the prior is 14.4, and 14.4^64 / 64! is 1e-15."""

_BERNOULLI = tuple(Fraction(*parts) for parts in ((1, 1), (-1, 2), (1, 6), (0, 1), (-1, 30)))

Weights = Callable[[int, int, int], Fraction]
"""The weight of m_T by the sizes of A and T, and the highest order."""


def _is_own(size: int, of_set: int, order: int) -> Fraction:
    del order
    return Fraction(of_set == size)


def _shapley(size: int, of_set: int, order: int) -> Fraction:
    del order
    return Fraction(1, of_set - size + 1)


def _n_shapley(size: int, of_set: int, order: int) -> Fraction:
    """Shapley interactions of A and of its supersets up to the order, by Bernoulli numbers."""
    rest = of_set - size
    terms = range(min(order - size, rest) + 1)
    return sum(
        (_BERNOULLI[j] * Fraction(math.comb(rest, j), rest - j + 1) for j in terms), Fraction(0)
    )


def _taylor(size: int, of_set: int, order: int) -> Fraction:
    return Fraction(1, math.comb(of_set, size)) if size == order else _is_own(size, of_set, order)


def _banzhaf(size: int, of_set: int, order: int) -> Fraction:
    del order
    return Fraction(1, 2 ** (of_set - size))


def _faithful_shapley(size: int, of_set: int, order: int) -> Fraction:
    if of_set <= order:
        return _is_own(size, of_set, order)
    sign = -1 if (order - size) % 2 else 1
    factor = Fraction(sign * size * math.comb(order, size), order + size)
    shares = Fraction(math.comb(of_set - 1, order), math.comb(of_set + order - 1, order + size))
    return factor * shares


def _faithful_banzhaf(size: int, of_set: int, order: int) -> Fraction:
    if of_set <= order:
        return _is_own(size, of_set, order)
    counts = math.comb(of_set - size - 1, order - size) * (-1) ** (order - size)
    return Fraction(counts, 2 ** (of_set - size))


_WEIGHTS: dict[str, Weights] = {  # by the names of shapiq
    "SII": _shapley,
    "k-SII": _n_shapley,
    "STII": _taylor,
    "FSII": _faithful_shapley,
    "BII": _banzhaf,
    "FBII": _faithful_banzhaf,
    "Moebius": _is_own,
}

_BETA: dict[str, Callable[[int], tuple[float, float]]] = {
    "SII": lambda order: (1.0, 1.0),
    "k-SII": lambda order: (1.0, 1.0),
    "STII": lambda order: (1.0, float(order)),
    "FSII": lambda order: (float(order), float(order)),
    "BII": lambda order: (math.inf, math.inf),
    "FBII": lambda order: (math.inf, math.inf),
}
"""Of sets of the highest order, these are averages of discrete derivatives over the coalitions of
the other players: each is present with the same chance, drawn from a Beta distribution."""

_OF_ALL_SIZES = "SII", "BII"
"""Indices that are so for smaller sets, too."""


@dataclass(frozen=True)
class Family:
    """An index up to an order, or a semivalue by its Beta distribution or its weights of sizes.

    Attributes
    ----------
    name : str
        A name of shapiq, "beta" or "sizes".
    order : int
        The highest number of players in a set.
    parameters : tuple of float
        Of "beta": those of the chance that another player is present. Of "sizes": the share of
        coalitions of 0, …, M − 1 other players in a semivalue.
    """

    name: str
    order: int
    parameters: tuple[float, ...] = ()

    def beta(self, size: int) -> tuple[float, float] | None:
        """Return the Beta distribution of sets of a size, if the index has one there."""
        if self.name == "beta":
            return self.parameters[0], self.parameters[1]
        if self.name in _BETA and (size == self.order or self.name in _OF_ALL_SIZES):
            return _BETA[self.name](self.order)
        return None

    def weights(self, size: int, n: int) -> list[Fraction]:
        """Return the weights u of sets of `size`, …, `size` + n − 1 players."""
        if self.name == "beta":
            first, second = map(Fraction, self.parameters)
            found = [Fraction(1)]
            for done in range(n - 1):
                found.append(found[-1] * (first + done) / (first + second + done))
            return found
        if self.name == "sizes":
            return _of_sizes(self.parameters, n)
        of_sets = _WEIGHTS[self.name]
        return [of_sets(size, size + more, self.order) for more in range(n)]


def _of_sizes(shares: tuple[float, ...], n: int) -> list[Fraction]:
    """Return the chances that 0, …, n − 1 given players are among the others of a coalition."""
    n_others = len(shares) - 1
    exact = [Fraction(share) for share in shares]
    return [
        sum(
            (
                share * Fraction(math.comb(n_others - d, size - d), math.comb(n_others, size))
                for size, share in enumerate(exact)
                if size >= d
            ),
            Fraction(0),
        )
        for d in range(n)
    ]


@lru_cache(maxsize=256)
def _by_degree(family: Family, size: int, n_players: int) -> FloatArray:
    """Return the weights w of sets T by their players beside A, (at most 64,)."""
    n = min(n_players - size + 1, _DEGREES)
    whole, common = _whole(family.weights(size, n))
    found = [
        2**size * sum(math.comb(d, j) * 2**j * (-1) ** (d - j) * whole[j] for j in range(d + 1))
        for d in range(n)
    ]
    return np.array([float(Fraction(weight, common)) for weight in found])


@lru_cache(maxsize=256)
def _by_members(family: Family, size: int, n_players: int) -> FloatArray:
    """Return the weights of values by the players of A in S, and the size of S, (a + 1, M + 1)."""
    n_others, beta = n_players - size, family.beta(size)
    others = np.arange(n_others + 1)
    if beta is None:
        chances = _differences(family.weights(size, n_others + 1))
    elif math.isinf(beta[0]):
        chances = np.full(n_others + 1, 0.5**n_others)
    else:
        log = scipy.special.betaln(others + beta[0], n_others - others + beta[1])
        chances = np.exp(log - scipy.special.betaln(*beta))
    weights = np.zeros((size + 1, n_players + 1))
    for inside in range(size + 1):
        weights[inside, inside : inside + n_others + 1] = (-1) ** (size - inside) * chances
    return weights


@lru_cache(maxsize=256)
def _sums_of_sizes(family: Family, size: int, n_players: int) -> FloatArray:
    """Return the sum of the weights of values by the size of S, (M + 1,)."""
    weights = _by_members(family, size, n_players)
    inside, sizes = np.nonzero(weights)
    found = weights[inside, sizes]
    log = np.log(np.abs(found)) + _log_counts(size, n_players, inside, sizes)
    return np.bincount(sizes, np.sign(found) * np.exp(log), n_players + 1).astype(float)


def _log_counts(size: int, n_players: int, inside: IntArray, sizes: IntArray) -> FloatArray:
    """Return the logarithms of how many S of each size hold so many of the players of a set."""
    n_others, others = n_players - size, sizes - inside
    log: FloatArray = np.log(scipy.special.comb(size, inside))
    log += scipy.special.gammaln(n_others + 1) - scipy.special.gammaln(others + 1)
    log -= scipy.special.gammaln(n_others - others + 1)
    return log


def _differences(weights: list[Fraction]) -> FloatArray:
    """Return Σ_i (−1)^i C(n − o, i) u_{o+i} for each number o of others, n in all."""
    whole, common = _whole(weights)
    found = []
    while whole:  # each difference is that of one more player
        found.append(whole[-1])
        whole = [one - following for one, following in pairwise(whole)]
    return np.array([float(Fraction(value, common)) for value in reversed(found)])


def _whole(weights: list[Fraction]) -> tuple[list[int], int]:
    """Return whole numbers and the denominator that they have in common."""
    common = math.lcm(*(weight.denominator for weight in weights))
    return [int(weight * common) for weight in weights], common


@dataclass(frozen=True)
class IndexOfSize:
    """An index of sets of players of one size.

    Attributes
    ----------
    sets : array, (k, a)
        The players of each set A.
    n_players : int
        M.
    family : Family
        The index.
    """

    sets: IntArray
    n_players: int
    family: Family

    @cached_property
    def size(self) -> int:
        """The number of players in each set, a."""
        return int(self.sets.shape[1])

    @cached_property
    def by_degree(self) -> FloatArray:
        """The weights w of coefficients c_T by the players of T beside A."""
        return _by_degree(self.family, self.size, self.n_players)

    @cached_property
    def by_members(self) -> FloatArray:
        """The weights of values by the players of A in S, and by the size of S, (a + 1, M + 1)."""
        return _by_members(self.family, self.size, self.n_players)

    def has_parity(self, parity: int) -> bool:
        """Return whether sets T of a parity count."""
        return bool(self.by_degree[(parity - self.size) % 2 :: 2].any())

    def of_sets(self, others: IntArray) -> FloatArray:
        """Return by how much the coefficients of sets T, (m, t), count, (m, k)."""
        held = (others[:, None, :, None] == self.sets[None, :, None, :]).any(axis=2).all(axis=2)
        more = others.shape[1] - self.size
        return np.where(held, self.by_degree[more] if more >= 0 else 0.0, 0.0)

    def sums(
        self,
        signs: FloatArray,
        tau: FloatArray,
        shares: FloatArray,
        parity: int,
        by_degree: FloatArray,
    ) -> FloatArray:
        """Return covariances with values, (n, k), of sets T ⊇ A of a parity, weighted by degree.

        Var c_T = Σ_l share_l Π_{j∈T} τ_lj over the components l, of strengths (L, M). Sets of one
        player are left out. The sum over T of Π_{j∈T} τ_j z_j r^{|T|−a} is a product over the
        players. Of those of A, whose factors 1 + r τ z it lacks, 1 / (1 + r τ z) is
        (1 − r τ z) / (1 − r² τ²): sums over the subsets of A, each of them a product of matrices.
        At the points r of a circle, sums give each degree the weight that it has.
        """
        size = self.size
        is_odd_rest = (parity - size) % 2  # of the sets T without A
        degrees = np.arange(is_odd_rest, len(by_degree), 2)
        weights = by_degree[degrees]
        found = np.zeros((len(signs), len(self.sets)))
        if not weights.any():
            return found
        # A quarter of the circle: by symmetry, sums over all of it are those of as many degrees as
        # it has points, odd ones and even ones apart. None is at 1, where a factor may be 0.
        n_nodes = -(-len(by_degree) // 4)
        quarter = np.exp(1j * np.pi * (np.arange(n_nodes) + 0.5) / (2 * n_nodes))
        of_nodes = (quarter.conj()[:, None] ** degrees) @ weights / n_nodes
        nodes = np.tile(quarter, len(tau))
        strengths = np.repeat(tau, n_nodes, axis=0)  # (L Q, M)
        scaled = nodes[:, None] * strengths
        along = np.arctanh(scaled).T
        # By products of real matrices: the first exponential after one of complex matrices may take
        # 17 times as long (OpenBLAS leaves registers in a state in which libm is slow).
        raised = np.exp((signs @ along.real) + 1j * (signs @ along.imag))  # (n, L Q)
        lowered = 1 / raised
        scale = 0.5 * np.exp(0.5 * np.log1p(-(scaled**2)).sum(axis=1))
        scale *= np.outer(shares, of_nodes).ravel()
        # Even and odd in r; real parts of products, as products of real matrices.
        parts = [
            np.concatenate([part.real, -part.imag], axis=1)
            for part in ((raised + lowered) * scale, (raised - lowered) * scale)
        ]
        left = strengths[:, self.sets].prod(axis=2) / (1 - scaled**2)[:, self.sets].prod(axis=2)
        of_players = [signs[:, players] for players in self.sets.T]
        for n_chosen in range(size + 1):
            # A factor −r τ z of A changes the parity of the rest.
            part = parts[(n_chosen + is_odd_rest) % 2]
            for chosen in combinations(range(size), n_chosen):
                factors = left * scaled[:, self.sets[:, list(chosen)]].prod(axis=2)
                product = part @ np.concatenate([factors.real, factors.imag])
                for place in range(size):
                    if place not in chosen:
                        product *= of_players[place]
                found += (-1) ** n_chosen * product
        if size == 1 and not is_odd_rest:  # the player alone
            player = self.sets[:, 0]
            found -= by_degree[0] * signs[:, player] * (shares @ tau)[player]
        return found


@dataclass(frozen=True)
class Index:
    """An index of sets of players of some sizes, one size after the other."""

    parts: tuple[IndexOfSize, ...]

    @property
    def shares_of_sizes(self) -> FloatArray:
        """The share of coalitions of 0, …, M − 1 other players in a semivalue, (M,)."""
        sizes = np.arange(1, self.n_players + 1)
        weights = self.parts[0].by_members[1, 1:]
        log = _log_counts(1, self.n_players, np.ones_like(sizes), sizes)
        positive = weights > 0
        logs = log + np.log(np.where(positive, weights, 1.0))
        return np.where(positive, np.exp(logs), 0.0)

    @cached_property
    def n_sets(self) -> int:
        """The number of sets, k."""
        return sum(len(part.sets) for part in self.parts)

    @cached_property
    def n_players(self) -> int:
        """M."""
        return self.parts[0].n_players

    def has_parity(self, parity: int) -> bool:
        """Return whether sets T of a parity count."""
        return any(part.has_parity(parity) for part in self.parts)

    def of_sets(self, others: IntArray) -> FloatArray:
        """Return by how much the coefficients of sets T, (m, t), count, (m, k)."""
        return np.concatenate([part.of_sets(others) for part in self.parts], axis=1)

    def weights_of_part(self, members: BoolArray, parity: int | None) -> FloatArray:
        """Return the weights of coalitions, (n, M), in each average, (n, k): those of their values.

        With a parity, those of the odd or even part of the game, which a coalition and its
        complement share.
        """
        sizes, of_parts = members.sum(axis=1)[:, None], []
        for part in self.parts:
            weights = part.by_members
            if parity is not None:
                weights = weights + (-1) ** parity * weights[::-1, ::-1]
            of_parts.append(weights[members[:, part.sets].sum(axis=2), sizes])
        return np.concatenate(of_parts, axis=1)

    def sums_of_squares(self, parity: int | None, of_sizes: FloatArray | None = None) -> FloatArray:
        """Return the sum of squared weights of all values, or of all odd or even parts, (k,).

        The part of a coalition and its complement counts once, with the difference or the sum of
        their weights. The empty coalition and that of all players are left out: they are known.
        With `of_sizes`, (M + 1,), those of a size count by a factor.
        """
        sums = []
        for part in self.parts:
            weights = part.by_members
            if parity is not None:
                weights = weights + (-1) ** parity * weights[::-1, ::-1]
            inside, sizes = np.nonzero(weights)
            is_other = (sizes > 0) & (sizes < self.n_players)
            inside, sizes = inside[is_other], sizes[is_other]
            log = 2 * np.log(np.abs(weights[inside, sizes]))
            log += _log_counts(part.size, self.n_players, inside, sizes)
            factors = 1.0 if of_sizes is None else of_sizes[sizes]
            total = float((factors * np.exp(log)).sum()) * (1.0 if parity is None else 0.5)
            sums.append(np.full(len(part.sets), total))
        return np.concatenate(sums)

    def of_functions_of_size(self, functions: FloatArray) -> FloatArray:
        """Return the index, (k, K), of games that are functions of the size alone, (M + 1, K)."""
        of_parts = [
            _sums_of_sizes(part.family, part.size, part.n_players) @ functions
            for part in self.parts
        ]
        return np.repeat(of_parts, [len(part.sets) for part in self.parts], axis=0)

    def covariances(
        self, signs: FloatArray, tau: FloatArray, shares: FloatArray, parity: int
    ) -> FloatArray:
        """Return covariances with values, (n, k); see `IndexOfSize.sums`."""
        of_parts = [part.sums(signs, tau, shares, parity, part.by_degree) for part in self.parts]
        return np.concatenate(of_parts, axis=1)

    def variances(self, tau: FloatArray, shares: FloatArray, parity: int) -> FloatArray:
        """Return the variances, (k,), for the same coefficients."""
        present = np.ones((1, self.n_players))
        of_parts = [
            part.sums(present, tau, shares, parity, part.by_degree**2)[0] for part in self.parts
        ]
        return np.concatenate(of_parts)

    def blocks(self, most: int) -> list[Index]:
        """Return indices of at most so many sets, one after the other."""
        if len(self.parts) == 1 and self.n_sets <= most:
            return [self]
        return [
            Index((IndexOfSize(part.sets[start : start + most], part.n_players, part.family),))
            for part in self.parts
            for start in range(0, len(part.sets), most)
        ]


SHAPLEY = Family("SII", 1)
"""Shapley values."""


@lru_cache(maxsize=64)
def single_players(n_players: int, family: Family = SHAPLEY) -> Index:
    """Return the semivalues of all players; Shapley values by default."""
    return index_of(family, (1,), n_players)


def index_of(family: Family, sizes: tuple[int, ...], n_players: int) -> Index:
    """Return an index of all sets of some sizes; there are none of more than all players."""
    return Index(
        tuple(
            IndexOfSize(all_sets(n_players, size), n_players, family)
            for size in sizes
            if size <= n_players
        )
    )


def all_sets(n_players: int, size: int) -> IntArray:
    """Return all sets of a size, (k, size), in lexicographic order."""
    sets = np.array(list(combinations(range(n_players), size)), dtype=np.intp)
    return sets.reshape(-1, size)
