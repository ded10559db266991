"""The prior of a game: variances of its interactions, and the likelihood of values.

With z = 1 for the members of a coalition and −1 for the others, v(z) = Σ_T c_T Π_{j∈T} z_j. The
prior of the coefficients c_T is normal. It has few components, all of them with the same strengths
u of the players, Σ u = 1:

* single players, Var c_j = u_j, the scale of everything else;
* all larger odd sets, and all even sets of two or more, Var c_T ∝ Π_{j∈T} tanh(ℓ u_j), at fixed
  levels ℓ: sets of about three players, of some more, of very many. With x = ℓ Σ_j u_j z_j z′_j,
  the kernels are sinh(x) and cosh(x) less their lowest sets: one exponential makes all of them;
* a function of how many players are present, which saturates in many games: polynomials in the mean
  of z, Σ_k a_k T_k(t), T_k those of Chebyshev, Var a_k ∝ k⁻³;
* sparse sets with variances of their own, which trees have; see `sparse_sets`;
* noise: the values of single coalitions, which are a part of the game, too.

Strengths and variances have log-normal priors. The centres of these matter more than anything else:
interactions and noise are centred far below where they mostly end, so that few values are explained
by single players.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from ...array_types import BoolArray, FloatArray, IntArray
from ...interactions.indices import Index

ODD, EVEN = 1, 0

_LEVEL, _FACTOR = 0.1, 12
"""The levels are .1, 1.2 and 14.4: each kernel is a power of the one before."""

_AT_ONCE = 2**15
"""Covariances that are computed together, so that all their powers are in the cache."""

_N_ODD, _N_EVEN = 3, 2
"""Levels of odd and of even sets. One level in place of three: errors of 1.11 (networks 1.28)."""

_LOG_ODD, _LOG_EVEN = np.log([1.25e-4, 5e-5, 2.5e-5]), np.log([0.3, 0.02])
_LOG_NOISE = math.log(1.25e-5)
"""Centres of the logarithms of the variances of larger sets and of noise, where that of single
players is 1 in all. With centres 400 times higher, smooth games err five times as much at two
evaluations a player."""

_SD_STRENGTH, _SD_VARIANCE = 1.6, 6.0
"""Standard deviations of the logarithms of strengths and of variances."""

_FEWEST_OF_LABELS, _OF_EACH, _DIGITS = 4, 10.0, 9
"""More values than the first are labels if they have one size, or so many of each on average, up to
digits."""

_LOG_OF_SIZE, _DEGREES = math.log(0.01), np.arange(1, 25)
"""Logarithm of the variance of the function of how many players are present, from which a fit
starts, and the degrees of its polynomials."""

_LOG_NOISE_OF_LABELS, _SD_NOISE_OF_LABELS, _UNEVEN = 1.0, 1.5, 2.0
"""Centre and standard deviation of the logarithm of the noise of labels, many of which jump where
about half of the players are present: the power of 4 s (M − s) / M² that its variance has at size
s. It is 0 where that is likelier: largest outputs of networks then err .4 to .7 times as much, and
votes with quotas above .8 .7 times."""

_SD_OF_LABELS = 0.8
"""Standard deviation of the log strengths of labels, which tell players apart less than others."""

_CONSTANT, JITTER, TINY = 100.0, 1e-9, 1e-300
"""Variance of the level of values that have no complements, and of rounding; and what is divided by
in place of 0."""

_EQUAL = 0.01
"""Share of the strengths in equal parts: a player without effect on some values may have one on
others."""

_LOWEST, _HIGHEST, _WIDEST = -25.0, 4.0, 6.0
"""Bounds of the logarithms of variances, and of strengths in standard deviations."""


class Variances(NamedTuple):
    """What hyperparameters stand for.

    Strengths u, (M,), and variances: of the components, (C,), of the function of size, of the
    noise. Of each component tanh(ℓ u), (C, M), Π cosh(ℓ u), and the variance at z = z′, (C,). By
    what the covariances of errors are multiplied, where values have errors.
    """

    strengths: FloatArray
    components: FloatArray
    of_size: float
    noise: float
    tau: FloatArray
    scale: FloatArray
    total: FloatArray
    of_errors: float

    @property
    def shares(self) -> FloatArray:
        """What Π_j (1 + τ_j z_j z′_j) is multiplied by in each component, (C,)."""
        return self.components * self.scale / self.total


@dataclass(frozen=True)
class SparseSets:
    """Sets of players, (m, t), whose coefficients have variances of their own, (m,)."""

    players: IntArray
    variances: FloatArray

    @classmethod
    def none(cls, size: int) -> SparseSets:
        """Return no sets of a size."""
        return cls(np.zeros((0, size), dtype=np.intp), np.zeros(0))

    def joined(self, other: SparseSets) -> SparseSets:
        """Return these sets and others; where a set is in both, its variances add up."""
        return SparseSets(
            np.concatenate([self.players, other.players]),
            np.concatenate([self.variances, other.variances]),
        )

    def columns(self, signs: FloatArray) -> FloatArray:
        """Return the products of the signs of each set, (n, m)."""
        return products_of(signs, self.players)


def products_of(signs: FloatArray, sets: IntArray) -> FloatArray:
    """Return the products of the signs, (n, m), of the players of sets, (m, t)."""
    product = signs[:, sets[:, 0]]
    for column in sets.T[1:]:
        product = product * signs[:, column]
    return product


@dataclass(frozen=True)
class Values:
    """Values of games that share coalitions: of whole games, or of their odd or even parts.

    Attributes
    ----------
    signs : array, (n, M)
        The coalitions.
    values : array, (n, B)
        The values of B outputs of a game.
    parity : {1, 0, None}
        Whether they are those of the odd part, of the even part, or of the whole game.
    n_known : int
        How many of the first values have no noise: those of no and of all players.
    errors : array, (n, n), optional
        Covariances of the errors of the values, of a single output.
    error_freedom : float
        Degrees of freedom of these, infinite where they are known.
    """

    signs: FloatArray
    values: FloatArray
    parity: int | None
    n_known: int
    errors: FloatArray | None = None
    error_freedom: float = math.inf

    def first(self, n: int) -> Values:
        """Return the first values."""
        errors = None if self.errors is None else self.errors[:n, :n]
        return replace(self, signs=self.signs[:n], values=self.values[:n], errors=errors)

    @property
    def are_labels(self) -> BoolArray:
        """Whether each output has few values only, as a class or a vote has, (B,)."""
        if self.errors is not None or len(self.values) <= _FEWEST_OF_LABELS:
            return np.zeros(self.values.shape[1], dtype=bool)
        return self.n_sizes <= max(1.0, len(self.values) / _OF_EACH)

    @property
    def n_sizes(self) -> IntArray:
        """How many sizes the values of each output have that are not 0, (B,): a class has one."""
        sizes = np.round(np.abs(self.values), _DIGITS)
        return np.array([len(np.unique(of_output[of_output > 0])) for of_output in sizes.T])

    @property
    def n_independent(self) -> float:
        """How many of the outputs count as independent: 1 if all are proportional."""
        gram = self.values.T @ self.values
        size = np.sqrt(np.diag(gram))
        correlation = gram / np.maximum(np.outer(size, size), TINY)
        return float(len(gram) ** 2 / np.maximum((correlation**2).sum(), 1.0))


@dataclass
class Prior:
    """The prior of some values, as a function of its hyperparameters.

    A vector of hyperparameters holds the log strengths, (M,), the log variances of the components,
    of the function of size and of the noise; where values have errors, the log scale of the game,
    and the log factor of the errors.

    Attributes
    ----------
    data : Values
        The values.
    centres : array, (M,), optional
        Prior means of the log strengths.
    sparse : SparseSets
        The sets with variances of their own.
    are_labels : bool
        Whether the values are labels.
    is_uneven : bool
        Whether the noise of labels depends on the size of a coalition.
    has_function_of_size : bool
        Whether the variance of that function is learned, or there is none.
    n_values : int
        How many values there are, n.
    """

    data: Values
    centres: FloatArray | None = None
    sparse: SparseSets = field(default_factory=lambda: SparseSets.none(3))
    are_labels: bool = False
    is_uneven: bool = True
    has_function_of_size: bool = False
    n_values: int = field(init=False)

    def __post_init__(self) -> None:
        data = self.data
        self.n_values, n_players = data.signs.shape
        has_odd, has_even = data.parity != EVEN, data.parity != ODD
        if not len(self.sparse.players):
            self.sparse = SparseSets.none(2 if data.parity == EVEN else 3)
        self.parities = np.repeat([ODD, EVEN], [_N_ODD * has_odd, _N_EVEN * has_even])
        self._at = np.concatenate([np.arange(_N_ODD * has_odd), np.arange(_N_EVEN * has_even)])
        self._levels = _LEVEL * float(_FACTOR) ** self._at
        # Of exp(x) and of exp(−x) in sinh(x) and in cosh(x).
        self._signs = np.where(self.parities == ODD, -0.5, 0.5)
        # Of all sets at z = z′, and its slope in the level.
        self._of_all = np.exp(self._levels) / 2 + self._signs * np.exp(-self._levels)
        self._slope_of_all = np.exp(self._levels) / 2 - self._signs * np.exp(-self._levels)
        self.noise_shape = self.noise_of_sizes((data.signs > 0).sum(axis=1))
        self.noise_shape[: data.n_known] = 0.0
        strengths = np.zeros(n_players) if self.centres is None else self.centres
        of_components = np.concatenate(
            [_LOG_ODD[: _N_ODD * has_odd], _LOG_EVEN[: _N_EVEN * has_even]]
        )
        log_noise = _LOG_NOISE_OF_LABELS if self.are_labels else _LOG_NOISE
        of_size = _LOG_OF_SIZE if self.has_function_of_size else _LOWEST
        centre = [strengths, of_components, np.array([of_size, log_noise])]
        sd = [
            np.full(n_players, _SD_OF_LABELS if self.are_labels else _SD_STRENGTH),
            np.full(len(of_components) + 2, _SD_VARIANCE),
        ]
        sd[-1][-1] = _SD_NOISE_OF_LABELS if self.are_labels else _SD_VARIANCE
        if data.errors is not None:
            size = max(float((data.values**2).mean()), TINY)
            centre.append(np.array([math.log(size), 0.0]))
            sd.append(np.array([_SD_VARIANCE, math.sqrt(2 / data.error_freedom) + 1e-6]))
        self.centre, self.sd = np.concatenate(centre), np.concatenate(sd)
        self.low, self.high = self.centre - _WIDEST * self.sd, self.centre + _WIDEST * self.sd
        of_variances = slice(n_players, n_players + len(of_components) + 2)
        self.low[of_variances], self.high[of_variances] = _LOWEST, _HIGHEST
        if self.has_function_of_size:
            self._polynomials = polynomials(data.signs.mean(axis=1), data.parity)
        else:
            self.high[n_players + len(of_components)] = _LOWEST
        self._columns = self.sparse.columns(data.signs)
        self._weight = data.n_independent / data.values.shape[1]

    def noise_of_sizes(self, sizes: IntArray) -> FloatArray:
        """Return the variance of the noise by the size of a coalition, (n,), 1 at most."""
        power = _UNEVEN * (self.are_labels and self.is_uneven)
        return (4 * sizes * (self.n_players - sizes) / self.n_players**2) ** power

    @property
    def n_players(self) -> int:
        """M."""
        return int(self.data.signs.shape[1])

    def first(self, n: int) -> Prior:
        """Return the prior of the first n values."""
        if n >= self.n_values:
            return self
        return replace(self, data=self.data.first(n))

    def variances(self, h: FloatArray) -> Variances:
        """Return what the hyperparameters stand for."""
        n_players, n_components = self.n_players, len(self._levels)
        shares = np.exp(h[:n_players] - h[:n_players].max())
        shares /= shares.sum()
        strengths = (1 - _EQUAL) * shares + _EQUAL / n_players
        *components, of_size, noise = np.exp(h[n_players : n_players + n_components + 2])
        tilt = self._levels[:, None] * strengths
        tau, scale = np.tanh(tilt), np.cosh(tilt).prod(axis=1)
        lowest = scale * np.where(self.parities == ODD, tau.sum(axis=1), 1.0)
        total = np.maximum(self._of_all - lowest, TINY)
        of_errors = 0.0 if self.data.errors is None else math.exp(h[-1] - h[-2])
        found = strengths, np.array(components), float(of_size), float(noise), tau, scale, total
        return Variances(*found, of_errors)

    def products(self, at: Variances) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the kernel of odd or even sets at points x, x′ between coalitions, as products.

        Σ_j a_j x_j x′_j + Σ_l w_l Π_j (1 + τ_lj x_j x′_j): a, (M,), τ, (2 C, M), and w, (2 C,).
        Each component comes with its mirror image of −τ, which cancels the sets of the other parity
        by −w or w. A constant is left out.
        """
        tau, weights = at.tau, at.shares
        both = np.concatenate([tau, -tau])
        if self.data.parity == EVEN:
            return np.zeros(self.n_players), both, np.concatenate([weights, weights]) / 2
        alone = at.strengths - weights @ tau
        return alone, both, np.concatenate([weights, -weights]) / 2

    def slopes_of_products(
        self, at: Variances, of_alone: FloatArray, of_tau: FloatArray, of_weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return derivatives in the strengths, (M,), and in the log variances, (C,).

        Given those in a, in τ and in log |w| of `products`.
        """
        tau, weights = at.tau, at.shares
        of_alone = of_alone * (self.data.parity != EVEN)
        of_tau = np.subtract(*np.split(of_tau, 2)) - weights[:, None] * of_alone
        of_weights = np.add(*np.split(of_weights, 2)) - weights * (tau @ of_alone)
        moved = tau - self._slope_of_total(at) / at.total[:, None]
        of_kernels = (1 - tau**2) * of_tau + of_weights[:, None] * moved
        return of_alone + self._levels @ of_kernels, of_weights

    def _slope_of_total(self, at: Variances) -> FloatArray:
        """Return derivatives of `Variances.total` in the strengths, over the level, (C, M)."""
        tau = at.tau
        of_odd = tau * tau.sum(axis=1, keepdims=True) + 1 - tau**2
        of_lowest = np.where((self.parities == ODD)[:, None], of_odd, tau)
        return self._slope_of_all[:, None] - at.scale[:, None] * of_lowest

    def _powers(self, product: FloatArray) -> FloatArray:
        """Return exp(x), then exp(−x), of each level, (2 L, p), by x of the lowest level, (p,)."""
        n_levels = int(self._at.max()) + 1
        powers = np.empty((2 * n_levels, len(product)))
        np.exp(product, out=powers[0])
        for level in range(1, n_levels):
            np.multiply(powers[level - 1], powers[level - 1], out=powers[level])
            powers[level] *= powers[level - 1]
            powers[level] *= powers[level]
            powers[level] *= powers[level]
        np.divide(1.0, powers[:n_levels], out=powers[n_levels:])
        return powers

    def _of_powers(self, shares: FloatArray, signs: FloatArray) -> FloatArray:
        """Return the factors of `_powers`, (2 L,), in sums over components of a share of each."""
        n_levels = int(self._at.max()) + 1
        raised = np.bincount(self._at, 0.5 * shares, n_levels)
        return np.concatenate([raised, np.bincount(self._at, signs * shares, n_levels)])

    def covariance(self, at: Variances, powers: FloatArray | None = None) -> FloatArray:
        """Return the covariances of the values, (n, n), in units of the scale of the game.

        Powers may be given, of each pair of values once: the part below the diagonal is then not
        filled in.
        """
        covariance, n = self.kernel(at, powers=powers), self.n_values
        covariance.ravel()[:: n + 1] += at.noise * self.noise_shape + JITTER
        if self.data.errors is not None:
            covariance += self.data.errors * at.of_errors
        return covariance

    def kernel(
        self,
        at: Variances,
        others: FloatArray | None = None,
        powers: FloatArray | None = None,
    ) -> FloatArray:
        """Return the covariances with other coalitions, or of the values, without any noise.

        Powers as in `covariance`.
        """
        signs, n = self.data.signs, self.n_values
        with_signs = signs if others is None else others
        are_odd = self.parities == ODD
        mixed = self._of_powers(at.components / at.total, self._signs)
        if powers is None:
            covariance = (signs * (_LEVEL * at.strengths)) @ with_signs.T
            n_parts = 1 + covariance.size // _AT_ONCE
            for part in np.array_split(covariance.reshape(-1), n_parts):
                part[:] = mixed @ self._powers(part)
        else:
            covariance = np.zeros((n, n))
            covariance.ravel()[_pairs(n)] = mixed @ powers
        # Less the lowest sets, which have variances of their own.
        if self.data.parity != EVEN:
            alone = at.strengths - (at.shares * are_odd) @ at.tau
            covariance += (signs * alone) @ with_signs.T
        if self.data.parity != ODD:
            covariance += _CONSTANT - at.shares[~are_odd].sum()
        if len(self.sparse.players):
            columns = self._columns if others is None else self.sparse.columns(with_signs)
            covariance += (self._columns * self.sparse.variances) @ columns.T
        if self.has_function_of_size:
            of_others = self._polynomials
            if others is not None:
                of_others = polynomials(others.mean(axis=1), self.data.parity)
            covariance += (at.of_size * self._polynomials) @ of_others.T
        return covariance

    def evidence(self, h: FloatArray) -> tuple[float, FloatArray]:
        """Return the log marginal likelihood and its gradient.

        At the best scale of the game, if its values have no errors.
        """
        data, n, at = self.data, self.n_values, self.variances(h)
        powers = self.powers_of_pairs(at)
        factor = factored(self.covariance(at, powers))
        solved = lapack.dpotrs(factor, data.values, lower=1)[0]
        squares = np.maximum((data.values * solved).sum(axis=0), TINY)
        has_errors = data.errors is not None
        scales = np.full(len(squares), math.exp(h[-2])) if has_errors else squares / n
        weight = self._weight
        value = -weight * n / 2 * np.log(scales).sum() - weight * (squares / scales).sum() / 2
        value -= weight * len(squares) * np.log(np.diagonal(factor)).sum()
        # The derivative in the covariance: twice the part above the diagonal, and 0 below, which
        # leaves sums of products with symmetric matrices as they are.
        slope = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
        root, beta = solved * np.sqrt(weight / scales), -weight * len(squares)
        slope = blas.dsyrk(1.0, root, beta, slope, lower=1, overwrite_c=1).T
        slope.ravel()[:: n + 1] /= 2
        of_noise = at.noise * (slope.diagonal() @ self.noise_shape)
        of_factor = np.vdot(slope, data.errors) * at.of_errors if has_errors else 0.0
        gradient = [self.slopes(at, slope, powers), np.array([of_noise])]
        if has_errors:
            of_scale = weight * (squares / scales - n).sum() / 2 - of_factor
            gradient.append(np.array([of_scale, of_factor]))
        return float(value), np.concatenate(gradient)

    def powers_of_pairs(self, at: Variances) -> FloatArray:
        """Return the powers of each pair of values once, for `covariance` and `slopes`."""
        signs = self.data.signs
        tilted = signs * (_LEVEL * at.strengths)
        return self._powers((tilted @ signs.T).ravel()[_pairs(len(signs))])

    def slopes(
        self,
        at: Variances,
        slope: FloatArray,
        powers: FloatArray,
        of_strengths: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Return derivatives in the log strengths and variances but that of noise, (M + C + 1,).

        Parameters
        ----------
        at : Variances
            What the hyperparameters stand for.
        slope : array, (n, n)
            Derivative in the kernel of the values: twice the part above the diagonal, and 0 below.
            It is overwritten.
        powers : array
            The powers of each pair of values.
        of_strengths : array, (M,)
            Derivative in the strengths where it does not come from the kernel.
        """
        data, signs, tau = self.data, self.data.signs, at.tau
        of_function = 0.0
        if self.has_function_of_size:
            of_function = at.of_size * float(np.vdot(self._polynomials, slope @ self._polynomials))
        places = _pairs(len(signs))
        of_pairs = slope.ravel()[places]
        # Sums of it times z_j z'_j, (M,).
        of_linear = np.einsum("nj,nj->j", signs, slope @ signs) * (data.parity != EVEN)
        of_constant = of_pairs.sum() if data.parity != ODD else 0.0
        levels, shares = self._levels, at.components / at.total
        dots = powers @ of_pairs
        n_levels = len(dots) // 2
        gains = 0.5 * dots[self._at] + self._signs * dots[n_levels + self._at]
        scale, are_odd = at.scale[:, None], (self.parities == ODD)[:, None]
        together = tau @ of_linear
        gains -= scale[:, 0] * np.where(are_odd[:, 0], together, of_constant)
        moved = -scale * np.where(
            are_odd, tau * together[:, None] + (1 - tau**2) * of_linear, tau * of_constant
        )
        moved -= (gains / at.total)[:, None] * self._slope_of_total(at)
        of_kernels = (shares * levels) @ moved
        of_strengths = of_strengths + of_linear + of_kernels
        slope.ravel()[places] = of_pairs * (self._of_powers(shares * levels, -self._signs) @ powers)
        of_strengths += np.einsum("nj,nj->j", signs, slope @ signs)
        own = at.strengths - _EQUAL / self.n_players
        of_own = own * (of_strengths - own @ of_strengths / (1 - _EQUAL))
        return np.concatenate([of_own, shares * gains, [of_function]])

    def index_covariances(self, at: Variances, index: Index) -> tuple[FloatArray, FloatArray]:
        """Return the covariances of averages and values, (n, k), and variances, (k,).

        Those of the noise are not in them.
        """
        signs = self.data.signs
        covariances, variances = np.zeros((len(signs), index.n_sets)), np.zeros(index.n_sets)
        if self.data.parity != EVEN:
            first = 0
            for part in index.parts:
                columns = slice(first, first := first + len(part.sets))
                if part.size == 1:  # single players, which the components lack
                    player, weight = part.sets[:, 0], part.by_degree[0]
                    covariances[:, columns] = weight * signs[:, player] * at.strengths[player]
                    variances[columns] = weight**2 * at.strengths[player]
        for parity in np.unique(self.parities).tolist():
            of = self.parities == parity
            covariances += index.covariances(signs, at.tau[of], at.shares[of], parity)
            variances += index.variances(at.tau[of], at.shares[of], parity)
        if len(self.sparse.players):
            counts = index.of_sets(self.sparse.players)
            covariances += (self._columns * self.sparse.variances) @ counts
            variances += self.sparse.variances @ counts**2
        if self.has_function_of_size:
            means = np.linspace(-1, 1, self.n_players + 1)
            of_index = index.of_functions_of_size(polynomials(means, self.data.parity))
            covariances += (at.of_size * self._polynomials) @ of_index.T
            variances += at.of_size * (of_index**2).sum(axis=1)
        return covariances, variances


def polynomials(means: FloatArray, parity: int | None) -> FloatArray:
    """Return T_k k^(−3/2) at means of z, (n, K), for all degrees k, or those of a parity."""
    degrees = _DEGREES if parity is None else _DEGREES[parity == _DEGREES % 2]
    found: FloatArray = np.cos(np.arccos(np.clip(means, -1, 1))[:, None] * degrees)
    return found / degrees**1.5


@lru_cache(maxsize=8)
def _pairs(n: int) -> IntArray:
    """Return the places of pairs i ≤ j in a matrix, (p,)."""
    one, other = np.triu_indices(n)
    return one * n + other


def factored(covariance: FloatArray) -> FloatArray:
    """Return the lower factor, with as much rounding on the diagonal as that takes."""
    for more in (0.0, 1e-9, 1e-7, 1e-5, 1e-3):
        raised = covariance
        if more:
            raised = covariance + more * np.diag(np.diag(covariance))
        # The transpose is the same matrix, in the order that LAPACK takes without a copy.
        found: tuple[FloatArray, int] = lapack.dpotrf(raised.T, lower=1, clean=1)
        if not found[1]:
            return found[0]
    raise np.linalg.LinAlgError("The covariance of the values is not positive definite.")
