"""Values and gradients of a game in one process.

A game that is differentiable in degrees of presence m, from 0 to 1, says in one backward pass
∂F/∂m_j of all players. With z = 2m − 1 between −1 and 1, f(z) = Σ_T c_T Π_{j∈T} z_j is the game's
multilinear extension, and 2 ∂f/∂z_j what a player adds there: at a coalition, D_j f(z) =
f(z with z_j = 1) − f(z with z_j = −1). The mean over z and −z is one of the odd part, half of the
difference one of the even part, which tells interactions of pairs. The kernel of `Prior` is a sum
of products over the players, so that its derivatives are, too.

On the path on which all players are present by the same degree, z = (s, …, s), the average of
2 ∂f/∂z_j is the Shapley value: these readings are what integrated gradients sum up. But a network
is not multilinear in its masks. On the path, a gradient has three errors of each player, beside
noise: a curve of mean zero, because slopes of what a player adds alone have the right mean there;
an offset, the error of integrated gradients, which further passes there do not reduce; and one
inside the path, where many players are present by part. Values and gradients at coalitions correct
these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # which loads its submodules where they are used
from scipy.linalg import lapack

from ...array_types import CoalitionArray, FloatArray, ValueArray
from ...errors import BudgetError
from ...interactions.indices import Index
from ...workers import map_in_threads
from ..pair_folds import CoalitionDraws
from ..protocol import Passes
from .design import chosen_halves, chosen_pairs
from .fitting import fitted, maximised
from .games import differences, of_fit
from .posterior import SETS_AT_ONCE, Posterior, errors_left_out
from .prior import EVEN, JITTER, ODD, TINY, Prior, Values, Variances, factored
from .search import first_of_each_pair

PASS = Passes.cost(1)
"""Evaluations that a forward and backward pass counts as, for one output."""

MOST_PLAYERS = 512
"""Players whose gradients are solved."""

_LOG_COMPONENTS, _SD_COMPONENTS = math.log(5e-3), 4.0
"""Centre and standard deviation of the logarithms of the variances of larger sets and of the noise
of values; in an even part, of that noise alone. Few gradients tell these, few values do not: with
centres as low as those of `Prior`, errors are 1.2 times as large at one and two evaluations a
player."""

_LOG_ERRORS, _SD_ERRORS = np.log([0.1, 0.1, 0.007, 0.007]), np.array([2.0, 2.0, 1.0, 2.0])
_SD_SHARE = 0.8
"""Centres and standard deviations of the logarithms of the variances of noise, curves, offsets and
errors inside the path, where that of the gradients is 1 on average; and standard deviation of the
logarithms of the players' shares in them. With centres of .04 or .02 for the first or the last,
errors of 32 rows of 8 networks change by less than 3 % on average. Offsets that are less certain to
be small take what single players explain: errors are 1.1 times as large at half an evaluation a
player, of smooth networks three times."""

_LOG_ERRORS_OF_EVEN = np.log([0.1, 1.0])
"""Centres of those of noise and of curves in the even part: with .1 or .4 for the latter, errors
are up to 1.07 times as large at one evaluation a player."""

_DEGREES, _FADING = np.array([2, 4, 6, 8]), 0.25
"""Degrees of the Legendre polynomials of curves, and the variance of each over the one before."""

_NODES = np.array(np.polynomial.legendre.leggauss(40))[:, 20:]
"""Points of the path, and weights, by which the readings there are averaged."""

_EVEN_SHARE = 0.05
"""Share of the mean squared gradient of all players in the centre of each."""

_MOST_VALUES, _MOST_GRADIENTS = 80, 400
"""Values and gradients of players that hyperparameters are learned from. With twice as many values,
errors are the same within 4 %; with 250 gradients, a network of 100 features errs 1.6 times as much
up to one evaluation each. From 134 features on, only those of the ends and the middle fit in."""

_STEPS = 12
"""Steps of learning. With more values than players, they start from as little noise as with values
alone: from its centre, some end where all is noise, with 1.0 to 1.2 times the errors at four and
more evaluations a player; with fewer values, starts from little noise err up to 1.1 times as much.
"""

_MATRICES = 16
"""Matrices of all readings that are in memory while a game is solved."""

_VALUES_OF_SCALE = 15.0
"""The gradients count as so many left-out values for the scale of the errors."""

_TOWARDS_GRADIENTS = 2
"""Left-out values a player, which say that the process with gradients is right, before any other
does: few more values than players tell little of their own errors."""

_ROUNDING = 1e-10
"""Share of the size of values that single players may leave in an odd part without larger sets."""

_OF_SINGLE_PLAYERS, _OF_PAIRS, MOST_READINGS = (0.5, 8), (4.0, 256), 1024
"""Evaluations a player that gradients get, and the most points with gradients, for single players
and for their pairs, of which each point says a sum for each player; and the most gradients of
players: a factorisation costs the cube of their number. Nine networks with 12 to 16 players, errors
of pairs over those by values alone, with 2, 3, 4 and 6 evaluations a player for gradients: .83,
.66, .62 and .62 at 4 in all, .79, .68, .61 and .48 at 8, .96, .86, .79 and .69 at 12; but Shapley
values err more, 1.2 times as much at 8 with 2 and 2.1 times with 6."""

_FREEDOM = 2.0
"""Degrees of freedom of the errors, with fewer values than players: these tell little of the
offsets of gradients, and further passes nothing."""


@dataclass(frozen=True)
class Readings:
    """Odd or even parts of values and gradients of one game.

    Attributes
    ----------
    signs : array, (n, M)
        A coalition of each pair of complements: that of all players, and others.
    values : array, (n,)
        The parts of the values.
    points : array, (g, M)
        Where gradients are, between −1 and 1: with all players, in the middle, and elsewhere.
    gradients : array, (g, M)
        Their means over each point and its opposite; of an even part, half of their differences.
    parity : {1, 0}
        Whether these are odd parts or even ones.
    """

    signs: FloatArray
    values: FloatArray
    points: FloatArray
    gradients: FloatArray
    parity: int = ODD

    def first(self, n_values: int, n_gradients: int) -> Readings:
        """Return the first of them; the gradients of two points at least."""
        n = max(2, n_gradients // self.signs.shape[1])
        values = self.signs[:n_values], self.values[:n_values]
        return Readings(*values, self.points[:n], self.gradients[:n], self.parity)


class Joint(NamedTuple):
    """Means and variances of averages, (k,), and errors of left-out values, (n − 1,)."""

    means: FloatArray
    variances: FloatArray
    left_out: FloatArray


class Average(NamedTuple):
    """Averages of a game and their variances, (k,), and degrees of freedom."""

    means: FloatArray
    variances: FloatArray
    freedom: float


def errors_of_gradients(points: FloatArray, parity: int = ODD) -> FloatArray:
    """Return the covariances of noise, of curves, of offsets and of errors inside, (4, g, g, M).

    Of gradients of the even part at coalitions, those of noise and of curves, (2, g, g, M): where
    a player alone is not linear, slopes differ where it is present and where it is not.
    """
    if parity == EVEN:
        noise = np.eye(len(points))[..., None].repeat(points.shape[1], axis=2)
        return np.array([noise, points[:, None] * points])
    degrees = np.abs(points).mean(axis=1)
    on_path = np.array(np.ptp(points, axis=1) == 0, dtype=float)
    polynomials = scipy.special.eval_legendre(_DEGREES, degrees[:, None]) * on_path[:, None]
    of_curves = (polynomials * _FADING ** np.arange(len(_DEGREES))) @ polynomials.T
    inside = (1 - degrees**2) * on_path
    others = [np.outer(part, part) for part in (on_path, inside)]
    return np.array([np.eye(len(points)), (1 - _FADING) * of_curves, *others])[..., None]


class GradientPrior:
    """The prior of values and gradients, as a function of its hyperparameters.

    These are those of `Prior`; then the players' log shares in the errors of gradients, (M,), and
    the log variances of the kinds of these: four, or two of an even part.
    """

    def __init__(self, readings: Readings) -> None:
        self.readings = readings
        self.n_values, n_players = readings.signs.shape
        squares = (readings.gradients**2).mean(axis=0)
        squares += _EVEN_SHARE * squares.mean() + TINY
        of_players = np.log(squares / squares.max())
        of_values = Values(readings.signs, readings.values[:, None], readings.parity, 1)
        self.prior = Prior(of_values, of_players)
        self.kinds = errors_of_gradients(readings.points, readings.parity)
        n = len(self.kinds)
        of_errors = _LOG_ERRORS if readings.parity == ODD else _LOG_ERRORS_OF_EVEN
        self.centre = np.concatenate([self.prior.centre, of_players, of_errors])
        self.sd = np.concatenate([self.prior.sd, np.full(n_players, _SD_SHARE), _SD_ERRORS[:n]])
        # All variances but that of the function of size, which is left out here.
        of_components = np.delete(np.arange(n_players, len(self.prior.centre)), -2)
        if readings.parity == EVEN:
            of_components = of_components[-1:]
        self.centre[of_components], self.sd[of_components] = _LOG_COMPONENTS, _SD_COMPONENTS
        self.start, noise = self.centre.copy(), len(self.prior.centre) - 1
        if self.n_values > n_players:
            self.start[noise] = self.prior.centre[noise]
        self.low, self.high = self.centre - 6 * self.sd, self.centre + 6 * self.sd
        n_of_prior = len(self.prior.centre)
        self.low[:n_of_prior], self.high[:n_of_prior] = self.prior.low, self.prior.high
        self.values = np.concatenate([readings.values, readings.gradients.ravel()])

    def errors(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the players' shares in the errors, (M,), and the variances of each kind."""
        n_kinds, n_players = len(self.kinds), self.prior.n_players
        shares = np.exp(h[-n_kinds - n_players : -n_kinds])
        return shares / shares.sum(), 4 * np.exp(h[-n_kinds:])

    def _factors(
        self, at: Variances, one: FloatArray, other: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return w Π_j (1 + τ_j x_j x′_j) and τ / (1 + τ x x′): (2 C, p, q) and (2 C, p, q, M)."""
        _, tau, weights = self.prior.products(at)
        factors = 1 + tau[:, None, None] * (one[:, None] * other)
        return weights[:, None, None] * factors.prod(axis=-1), tau[:, None, None] / factors

    def between(self, at: Variances, one: FloatArray, other: FloatArray) -> FloatArray:
        """Return covariances of gradients at points, (p, M) and (q, M), (p, q, M, M)."""
        products, ratios = self._factors(at, one, other)
        left, right = products[..., None] * other * ratios, one[:, None] * ratios
        found: FloatArray = left.transpose(1, 2, 3, 0) @ right.transpose(1, 2, 0, 3)
        player, alone = np.arange(one.shape[1]), self.prior.products(at)[0]
        found[:, :, player, player] = np.einsum("lpq,lpqj->pqj", products, ratios) + alone
        return 4 * found

    def with_values(self, at: Variances) -> FloatArray:
        """Return the covariances of values and gradients, (n, g, M)."""
        signs, alone = self.readings.signs, self.prior.products(at)[0]
        products, ratios = self._factors(at, signs, self.readings.points)
        found = np.einsum("lng,lngj->ngj", products, ratios) + alone
        return 2 * signs[:, None] * found

    def covariance(self, h: FloatArray, powers: FloatArray | None = None) -> FloatArray:
        """Return the covariances of the values and the gradients, in turn."""
        prior, n, points = self.prior, self.n_values, self.readings.points
        at, player = prior.variances(h), np.arange(prior.n_players)
        found = np.empty(2 * (n + points.size,))
        found[:n, :n] = prior.kernel(at, powers=powers)
        found[:n, n:] = self.with_values(at).reshape(n, -1)
        found[n:, :n] = found[:n, n:].T
        blocks = self.between(at, points, points)
        shares, of_kinds = self.errors(h)
        blocks[:, :, player, player] += np.tensordot(of_kinds, self.kinds, 1) * shares
        found[n:, n:] = blocks.transpose(0, 2, 1, 3).reshape(2 * (points.size,))
        diagonal = found.ravel()[:: len(found) + 1]
        diagonal += JITTER
        diagonal[:n] += at.noise * prior.noise_shape
        return found

    def evidence(self, h: FloatArray) -> tuple[float, FloatArray]:
        """Return the log marginal likelihood at the best scale, and its gradient."""
        prior, n, n_players = self.prior, self.n_values, self.prior.n_players
        at = prior.variances(h)
        powers = prior.powers_of_pairs(at)
        factor = factored(self.covariance(h, powers))
        solved = lapack.dpotrs(factor, self.values, lower=1)[0].ravel()
        scale = max(self.values @ solved, TINY) / len(solved)
        value = -len(solved) / 2 * np.log(scale) - np.log(np.diagonal(factor)).sum()
        inverse = lapack.dpotri(factor, lower=1)[0]
        inverse += np.tril(inverse, -1).T
        slope = (np.outer(solved, solved) / scale - inverse) / 2
        points, signs, player = self.readings.points, self.readings.signs, np.arange(n_players)
        blocks = slope[n:, n:].reshape(2 * points.shape).transpose(0, 2, 1, 3).copy()
        own = blocks[:, :, player, player]  # (g, g, M)
        shares, of_kinds = self.errors(h)
        by_kind = of_kinds[:, None] * (self.kinds * own).sum(axis=(1, 2))
        of_shares = by_kind.sum(axis=0)
        # What the kernel's terms are multiplied by: of two gradients, and of a value and one.
        blocks[:, :, player, player] = 0
        products, ratios = self._factors(at, points, points)
        across = points * (blocks @ (points[:, None] * ratios)[..., None])[..., 0]
        of_values = 4 * signs[:, None] * slope[:n, n:].reshape(n, *points.shape)
        terms = [
            (points, products, ratios, 4 * (across + own), 4 * (2 * across + own)),
            (signs, *self._factors(at, signs, points), of_values, of_values),
        ]
        tau = prior.products(at)[1]
        of_tau, of_weights = np.zeros(tau.shape), np.zeros(len(tau))
        for one, products, ratios, factors, of_ratios in terms:
            inverse = ratios / tau[:, None, None]
            of_products = products * (factors * ratios).sum(axis=-1)
            of_weights += of_products.sum(axis=(1, 2))
            both = one[:, None] * points * inverse
            of_tau += np.einsum("lpq,lpqj->lj", of_products, both)
            of_tau += np.einsum("lpq,lpqj->lj", products, of_ratios * inverse**2)
        of_alone = 4 * own.sum(axis=(0, 1)) + of_values.sum(axis=(0, 1))
        of_strengths, of_components = prior.slopes_of_products(at, of_alone, of_tau, of_weights)
        slope = slope[:n, :n]
        of_noise = at.noise * (slope.diagonal() @ prior.noise_shape)
        packed = 2 * np.triu(slope, 1) + np.diag(slope.diagonal())
        of_prior = prior.slopes(at, packed, powers, of_strengths)
        of_prior[n_players : n_players + len(of_components)] += of_components
        of_shares = shares * (of_shares - shares @ of_shares)
        return float(value), np.concatenate([of_prior, [of_noise], of_shares, by_kind @ shares])

    def index_covariances(self, h: FloatArray, index: Index) -> tuple[FloatArray, FloatArray]:
        """Return covariances of averages and readings, (n, k), and variances, (k,).

        The noise of values, which is a part of the game, is in them. Shapley values are means of
        gradients on the path. For pairs, gradients are differences of values at coalitions.
        """
        prior, readings = self.prior, self.readings
        at, parity = prior.variances(h), readings.parity
        of_values, variances = prior.index_covariances(at, index)
        weights = index.weights_of_part(readings.signs > 0, parity)
        of_values += at.noise * prior.noise_shape[:, None] * weights
        variances = variances + at.noise * index.sums_of_squares(parity)
        of_point = self._with_path if index.parts[0].size == 1 else self._with_index
        of_points = [of_point(at, point, index) for point in readings.points]  # bounds the memory
        return np.concatenate([of_values, *of_points]), variances

    def _with_path(self, at: Variances, point: FloatArray, index: Index) -> FloatArray:
        """Return the covariances of gradients at a point and of means on the path, (M, M)."""
        degrees, shares = _NODES
        path = np.repeat(degrees[:, None], index.n_players, axis=1)
        found: FloatArray = np.tensordot(shares, self.between(at, path, point[None]), 1)[0].T
        return found

    def _with_index(self, at: Variances, point: FloatArray, index: Index) -> FloatArray:
        """Return the covariances of gradients at a coalition and of averages of pairs, (M, k)."""
        if not point.any():  # in the middle, where sets of two or more are flat
            return np.zeros((index.n_players, index.n_sets))
        flipped = point * (1 - 2 * np.eye(index.n_players))
        signs = np.concatenate([point[None], flipped])
        data = Values(signs, np.zeros((len(signs), 1)), self.readings.parity, 1)
        covariances = Prior(data).index_covariances(at, index)[0]
        return point[:, None] * (covariances[0] - covariances[1:])


def joint_posterior(readings: Readings, index: Index) -> Joint:
    """Return the posterior of averages of a game, given its values and gradients.

    The scale of errors is that of left-out values and gradients; for pairs, at least that of the
    evidence: gradients of the two players of a pair predict each other, so that those left out tell
    of noise alone. With ten players and 1.5 to 4.5 evaluations of each, 95 % intervals of eight
    games of pairs hold .18 to .55 by these and .73 to .92 by the evidence; of a transformer with 16
    players and six of each, .92 by these and .84 by the evidence.
    """
    first = GradientPrior(readings.first(_MOST_VALUES, _MOST_GRADIENTS))
    h = first.start
    if len(readings.points) > 1:  # which one does not tell
        h = maximised(first, h, _STEPS).h
    prior, n_values, parity = GradientPrior(readings), len(readings.values), readings.parity
    factor, noise = factored(prior.covariance(h)), prior.prior.variances(h).noise
    whitened = lapack.dtrtrs(factor, prior.values, lower=1)[0]
    means, variances = [], []
    for block in index.blocks(SETS_AT_ONCE):
        covariances, of_block = prior.index_covariances(h, block)
        loadings = lapack.dtrtrs(factor, covariances, lower=1)[0]
        weights = block.weights_of_part(readings.signs > 0, parity)
        unknown = block.sums_of_squares(parity) - (weights[1:] ** 2).sum(axis=0)
        means.append(loadings.T @ whitened)
        of_block = of_block - (loadings**2).sum(axis=0)
        variances.append(np.maximum(of_block, noise * np.maximum(unknown, 0)))
    inverse = lapack.dtrtri(factor, lower=1)[0]
    precision, alpha = (inverse**2).sum(axis=0), inverse.T @ whitened
    surprises = alpha**2 / precision
    surprise = surprises[1:n_values].sum() + _VALUES_OF_SCALE * surprises[n_values:].mean()
    scale = surprise / (n_values - 1 + _VALUES_OF_SCALE)
    if index.parts[0].size > 1:
        scale = max(scale, (whitened**2).mean())
    left_out = (alpha / precision)[1:n_values]
    return Joint(np.concatenate(means), scale * np.concatenate(variances), left_out)


def solved(readings: Readings, index: Index) -> Average:
    """Return averages of one game by its values and gradients.

    From more values than players on, those of the process without gradients are mixed in, by the
    errors of both at left-out values. Of an even part, the ends alone do not tell pairs from
    curves, so that their gradients do not count beside values.
    """
    n_values, n_players = readings.signs.shape
    parity, zeros = readings.parity, np.zeros(index.n_sets)
    parts = readings.values, readings.gradients
    size = np.array([np.sqrt((part**2).mean()) for part in parts]).max()
    if not size:
        return Average(zeros, zeros, np.inf)
    values, gradients = (part / size for part in parts)
    scaled = Readings(readings.signs, values, readings.points, gradients, parity)
    freedom = float(len(gradients)) if n_values > n_players else _FREEDOM
    if parity == ODD and is_of_pairs(scaled):
        counts = index.of_sets(np.arange(n_players)[:, None])
        return Average(readings.gradients[1] / 2 @ counts, zeros, np.inf)
    fit, are_ends = None, parity == EVEN and len(gradients) < 2
    if (n_values > n_players or are_ends) and values.any():
        fit = fitted(Prior(Values(readings.signs, values[:, None], parity, 1)))
        alone, left_out = of_fit(fit, index, None), errors_left_out(fit)[:, 0]
        if are_ends or not alone.variances.any():  # few terms explain the values
            of_values = alone.means[:, 0] * size, alone.variances[:, 0] * size**2
            return Average(*of_values, float(alone.freedom[0]))
    joint = joint_posterior(scaled, index)
    means, errors = joint.means, np.sqrt(joint.variances)
    if fit is not None:
        of_joint = joint.left_out[-len(left_out) :]
        left_out = left_out[-len(of_joint) :]
        gain = of_joint - left_out
        ridge = _TOWARDS_GRADIENTS * n_players * (of_joint**2).mean()
        best = (ridge - gain @ left_out) / np.maximum(gain @ gain + ridge, TINY)
        weight = float(np.clip(best, 0, 1))
        means = weight * means + (1 - weight) * alone.means[:, 0]
        errors = weight * errors + (1 - weight) * np.sqrt(alone.variances[:, 0])
    return Average(means * size, (errors * size) ** 2, freedom)


def is_of_pairs(readings: Readings) -> bool:
    """Return whether the odd part has single players alone, which the middle then tells exactly."""
    middle = readings.gradients[1]
    left = np.abs(readings.values - readings.signs @ middle / 2).max()
    of_gradients = np.abs(readings.gradients - middle).max()
    return bool(max(left, of_gradients) <= _ROUNDING)


def operations(n_players: int, budget: int) -> float:
    """Return those of a game, beside these of values alone.

    Measured with 8 to 500 players and 1 to 32 evaluations of each: at most 1.5 times more or less.
    """
    n_passes, n_values = _sizes(n_players, budget)
    n_values += n_passes
    n_learned = min(n_passes + 1, max(2, _MOST_GRADIENTS // n_players))
    learned = min(n_values, _MOST_VALUES) + n_learned * n_players
    readings = n_values + (1 + n_passes) * n_players
    return 1e8 + 1e4 * learned**2 + 200.0 * readings**2 + 0.2 * readings**3


def _sizes(
    n_players: int,
    budget: int,
    n_outputs: int = 1,
    planned: int | None = None,
    for_pairs: bool = False,
) -> tuple[int, int]:
    """Return how many pairs have gradients, and how many only values, beside the middle.

    Gradients get half an evaluation a player, for pairs four, or all where that is more, which is
    `planned` where a tolerance may end the row earlier.
    """
    each, planned = Passes.cost(n_outputs), planned or budget
    of_gradients, most_passes = _OF_PAIRS if for_pairs else _OF_SINGLE_PLAYERS
    n_passes = round((of_gradients * n_players - each) / (2 * each))
    most = most_passes, MOST_READINGS // n_players, (planned - each) // (2 * each)
    n_passes = max(1, min(n_passes, *most))
    return n_passes, (budget - each * (2 * n_passes + 1)) // 2


class Plan(NamedTuple):
    """Where gradients are, (g, M), from −1 to 1, and which coalitions have only values, (n, M).

    Beside the opposite of each. The middle has a gradient, too. A pass counts as `each`.
    """

    points: FloatArray
    with_values: CoalitionArray
    each: int = PASS

    @property
    def degrees(self) -> FloatArray:
        """Degrees of presence of all passes, (p, M): pairs in turn, then the middle."""
        both = np.stack([self.points, -self.points], axis=1).reshape(-1, self.points.shape[1])
        return (1 + np.concatenate([both, np.zeros((1, both.shape[1]))])) / 2

    @property
    def n_evaluations(self) -> int:
        """Evaluations that the plan takes."""
        return self.each * (2 * len(self.points) + 1) + 2 * len(self.with_values)


def plan_for(
    n_players: int,
    budget: int,
    rng: np.random.Generator,
    n_outputs: int = 1,
    planned: int | None = None,
    for_pairs: bool = False,
) -> Plan:
    """Return the readings that a budget pays for: the ends, the middle, then further pairs.

    Their gradients are on the path and at halves in turn; at halves alone where values are enough
    for single players, which tell as much as the path does of small and large coalitions, and where
    interactions of pairs are wanted.
    """
    fewest = Passes.fewest_evaluations(n_outputs)
    if budget < fewest:
        raise BudgetError(f"needs at least {fewest} evaluations for gradients.", fewest)
    n_passes, n_values = _sizes(n_players, budget, n_outputs, planned, for_pairs)
    n_on_path = n_passes // 2
    are_enough = n_values + n_passes - n_on_path > n_players  # with those of passes
    if are_enough or for_pairs:
        n_on_path = 0
    n_halves = n_passes - 1 - n_on_path
    everyone = np.ones((1, n_players), dtype=bool)
    n_rows = n_halves + n_values
    rows = chosen_halves(n_players, n_rows, rng)
    if are_enough:
        rows = np.concatenate([rows[:n_halves], chosen_pairs(n_players, n_rows, rng)])
    rows = np.concatenate([everyone, rows])
    rows = rows[first_of_each_pair(rows)]
    points = np.where(rows[: 1 + n_halves], 1.0, -1.0)
    on_path = np.repeat(degrees_of_path(n_on_path)[:, None], n_players, axis=1)
    points = np.insert(points, np.arange(1, n_on_path + 1), on_path, axis=0)
    with_values = rows[1 + n_halves :][:n_values]
    return Plan(points, with_values, Passes.cost(n_outputs))


def degrees_of_path(n: int) -> FloatArray:
    """Return Lobatto's nodes between the middle and the end of the path, (n,)."""
    nodes = np.polynomial.legendre.Legendre.basis(2 * n + 2).deriv().roots().real
    return np.sort(nodes)[n + 1 :]


def solution_of_rows(
    passes: Passes, draws: CoalitionDraws, values: ValueArray, index: Index, parity: int = ODD
) -> Posterior:
    """Return averages of all rows and outputs, (R, k, K), by passes and by values, (R, C, K)."""
    n_rows, *_, n_outputs = passes.slopes.shape
    order = np.arange(len(passes.degrees) // 2)
    if parity == ODD:  # with the middle second, where the even part is flat
        order = np.insert(order[1:], 0, [0, -1])
    points = 2 * passes.degrees[::2] - 1
    at_coalitions = np.flatnonzero((np.abs(points) == 1).all(axis=1))
    signs = np.concatenate([points[at_coalitions], np.where(draws.members, 1.0, -1.0)])
    n_readings = len(signs) + points.size
    of_pairs = values[:, draws.positions]  # (R, n, 2, K)
    sign = -1 if parity == ODD else 1

    def solve(game: int) -> Average:
        row, output = divmod(game, n_outputs)
        at_passes = passes.values[row, :-1, output].reshape(-1, 2)[at_coalitions]
        both = np.concatenate([at_passes, of_pairs[row, :, :, output]])
        slopes = passes.slopes[row, ..., output]
        gradients = np.concatenate([(slopes[:-1:2] - sign * slopes[1::2]) / 2, slopes[-1:]])
        parts = (both[:, 0] + sign * both[:, 1]) / 2
        if parity == EVEN:
            parts = differences(parts[None, :, None])[0, :, 0]
        return solved(Readings(signs, parts, points[order], gradients[order], parity), index)

    found = map_in_threads(solve, range(n_rows * n_outputs), _MATRICES * 8 * n_readings**2)
    freedom = np.array([one.freedom for one in found]).reshape(n_rows, n_outputs)
    means, variances = (
        np.array(of_games).reshape(n_rows, n_outputs, -1).swapaxes(1, 2)
        for of_games in list(zip(*found, strict=True))[:2]
    )
    return Posterior(means, variances, freedom, means[:, :0])
