"""Values and gradients of a game in one process.

A game that is differentiable in degrees of presence m, from 0 to 1, says in one backward pass
∂F/∂m_j of all players. At a coalition, with z = 2m − 1, that is about what a player adds,
D_j f(z) = f(z with z_j = 1) − f(z with z_j = −1): a difference of two values of the same process,
so that all its covariances are those of values. With the mean over a coalition and its complement,
it is one of the odd part, and the leading term of the curvature cancels. Where all players are
present by half, in the middle of the cube, the gradient is 2 c_j of the multilinear extension.

A network is not multilinear in its masks. So a gradient has an error of each player that all
coalitions share, which values correct and further passes do not; one of its own in the middle,
where curvature acts differently; and noise of each pass.
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
from ...interactions.indices import Index, single_players
from ...workers import map_in_threads, n_threads_within_memory
from ..pair_folds import CoalitionDraws
from ..protocol import Passes, Solution
from .design import chosen_halves, chosen_pairs
from .fitting import fitted, maximised
from .games import of_fit
from .posterior import errors_left_out
from .prior import JITTER, ODD, Prior, Values, factored
from .search import first_of_each_pair

PASS = Passes.cost(1)
"""Evaluations that a forward and backward pass counts as, for one output."""

MOST_PLAYERS = 512
"""Players whose gradients are solved."""

_LOG_COMPONENTS, _SD_COMPONENTS = math.log(5e-3), 4.0
"""Centre and standard deviation of the logarithms of the variances of larger sets and of the noise
of values. Few gradients tell these, few values do not: with centres as low as those of `Prior`,
errors are 1.2 times as large at one and two evaluations a player."""

_LOG_ERRORS, _SD_ERRORS, _SD_SHARE = math.log(0.1), 2.0, 0.8
"""Centre and standard deviation of the logarithms of the variances of noise, of the error that all
coalitions share, and of that in the middle, where that of the gradients is 1 on average; standard
deviation of the logarithms of the players' shares in them. Other centres and deviations, from half
to twice these, change the errors of 23 rows of 7 networks by less than 3 % on average."""

_EVEN_SHARE = 0.05
"""Share of the mean squared gradient of all players in the centre of each."""

_MOST_VALUES, _MOST_GRADIENTS = 80, 200
"""Values and gradients of players that hyperparameters are learned from. With twice as many, errors
are the same within 4 %, and learning takes twice as long."""

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

_EVALUATIONS_EACH, _MOST_PAIRS, _MOST_READINGS = 0.5, 8, 1024
"""Evaluations a player that gradients get, the most pairs with gradients, and the most gradients of
players: a factorisation costs the cube of their number."""

_FREEDOM = 2.0
"""Degrees of freedom of the errors, with fewer values than players: these tell little of the error
that all gradients share, and further passes nothing."""


@dataclass(frozen=True)
class Readings:
    """Odd parts of values and mean gradients of pairs of complements of one game.

    Attributes
    ----------
    signs : array, (n, M)
        A coalition of each pair: that of all players, and others.
    values : array, (n,)
        The odd parts.
    gradients : array, (g, M)
        Mean gradients of the first pairs.
    middle : array, (M,)
        The gradient where all players are present by half.
    """

    signs: FloatArray
    values: FloatArray
    gradients: FloatArray
    middle: FloatArray

    def first(self, n_values: int, n_gradients: int) -> Readings:
        """Return the first of them."""
        n_passes = max(1, min(len(self.gradients), n_gradients // self.signs.shape[1]))
        n = max(n_values, n_passes)
        return Readings(self.signs[:n], self.values[:n], self.gradients[:n_passes], self.middle)


class Joint(NamedTuple):
    """Means and variances of averages, (k,), and errors of left-out values, (n − 1,)."""

    means: FloatArray
    variances: FloatArray
    left_out: FloatArray


class Attributions(NamedTuple):
    """Attributions and standard errors of a game, (M,), degrees of freedom, weight of gradients."""

    values: FloatArray
    standard_errors: FloatArray
    freedom: float
    weight: float


class GradientPrior:
    """The prior of values and gradients, as a function of its hyperparameters.

    These are those of `Prior`; then the players' log shares in the errors of gradients, (M,), and
    the log variances of noise, of shared errors and of those in the middle.
    """

    def __init__(self, readings: Readings) -> None:
        self.readings = readings
        signs = readings.signs
        self.n_values, n_players = signs.shape
        self.n_passes = n_passes = len(readings.gradients)
        turned = np.where(np.eye(n_players, dtype=bool), -1.0, 1.0)
        flips = (signs[:n_passes, None] * turned).reshape(-1, n_players)
        squares = (readings.gradients**2).mean(axis=0)
        squares += _EVEN_SHARE * squares.mean() + 1e-300
        of_players = np.log(squares / squares.max())
        corners = np.concatenate([signs, flips])
        of_corners = Values(corners, np.zeros((len(corners), 1)), ODD, 1)
        self.prior = Prior(of_corners, of_players)
        self.centre = np.concatenate([self.prior.centre, of_players, np.full(3, _LOG_ERRORS)])
        of_errors = np.repeat([_SD_SHARE, _SD_ERRORS], [n_players, 3])
        self.sd = np.concatenate([self.prior.sd, of_errors])
        # All variances but that of the function of size, which is left out here.
        of_components = np.delete(np.arange(n_players, len(self.prior.centre)), -2)
        self.centre[of_components], self.sd[of_components] = _LOG_COMPONENTS, _SD_COMPONENTS
        self.start, noise = self.centre.copy(), len(self.prior.centre) - 1
        if self.n_values > n_players:
            self.start[noise] = self.prior.centre[noise]
        self.low, self.high = self.centre - 6 * self.sd, self.centre + 6 * self.sd
        n_of_prior = len(self.prior.centre)
        self.low[:n_of_prior], self.high[:n_of_prior] = self.prior.low, self.prior.high
        self.values = np.concatenate([readings.values, readings.gradients.ravel(), readings.middle])
        # Values are those of the first coalitions, gradients differences of two.
        n_gradients = n_passes * n_players
        of_pass, at = np.repeat(np.arange(n_passes), n_players), np.arange(n_gradients)
        rows = np.concatenate([np.arange(self.n_values), *2 * [self.n_values + at]])
        columns = np.concatenate([np.arange(self.n_values), of_pass, self.n_values + at])
        z = signs[:n_passes].ravel()
        entries = np.concatenate([np.ones(self.n_values), z, -z])
        self.map = scipy.sparse.csr_array((entries, (rows, columns)))

    def errors(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the players' shares in the errors, (M,), and variances of the three kinds."""
        n_players = self.prior.n_players
        shares = np.exp(h[-3 - n_players : -3] - h[-3 - n_players : -3].max())
        return shares / shares.sum(), 4 * np.exp(h[-3:])

    def covariance(self, h: FloatArray, powers: FloatArray | None = None) -> FloatArray:
        """Return the covariances of the values, the gradients at coalitions, and in the middle."""
        prior, n_values, n_players = self.prior, self.n_values, self.prior.n_players
        strengths, *_, noise = prior.variances(h)
        shares, (of_noise, of_shared, of_middle) = self.errors(h)
        n = self.map.shape[0]
        found = np.empty((n + n_players, n + n_players))
        found[:n, :n] = self.map @ (self.map @ prior.kernel(h, powers=powers)).T
        found[n:, n:] = np.diag(4 * strengths + of_middle * shares)
        found[:n, n:] = self.map @ (2 * strengths * prior.data.signs)
        found[n:, :n] = found[:n, n:].T
        player = np.arange(n_players)
        blocks = found[n_values:n, n_values:n].reshape(2 * (self.n_passes, n_players))
        blocks[:, player, :, player] += (of_shared * shares)[:, None, None]
        own = np.concatenate(
            [
                noise * prior.noise_shape[:n_values],
                np.tile(of_noise * shares, self.n_passes),
                np.zeros(n_players),
            ]
        )
        found.ravel()[:: len(found) + 1] += own + JITTER
        return found

    def evidence(self, h: FloatArray) -> tuple[float, FloatArray]:
        """Return the log marginal likelihood at the best scale, and its gradient."""
        prior, n_values, n_players = self.prior, self.n_values, self.prior.n_players
        powers = prior.powers_of_pairs(h)
        factor = factored(self.covariance(h, powers))
        solved = lapack.dpotrs(factor, self.values, lower=1)[0].ravel()
        n_readings, n = len(solved), self.map.shape[0]
        scale = max(self.values @ solved, 1e-300) / n_readings
        value = -n_readings / 2 * np.log(scale) - np.log(np.diagonal(factor)).sum()
        inverse = lapack.dpotri(factor, lower=1)[0]
        inverse += np.tril(inverse, -1).T
        slope = (np.outer(solved, solved) / scale - inverse) / 2
        shares, (of_noise, of_shared, of_middle) = self.errors(h)
        player = np.arange(n_players)
        blocks = slope[n_values:n, n_values:n].reshape(2 * (self.n_passes, n_players))
        same = blocks[:, player, :, player]  # (M, g, g)
        by_kind = np.array(
            [
                of_noise * np.einsum("jgg->j", same),
                of_shared * same.sum(axis=(1, 2)),
                of_middle * slope.diagonal()[n:],
            ]
        )
        of_shares = by_kind.sum(axis=0)
        across = self.map.T @ slope[:n, n:]
        of_strengths = 4 * ((across * prior.data.signs).sum(axis=0) + slope.diagonal()[n:])
        of_value_noise = slope.diagonal()[:n_values] @ prior.noise_shape[:n_values]
        slope = self.map.T @ (self.map.T @ slope[:n, :n]).T
        packed = 2 * np.triu(slope, 1)
        packed.ravel()[:: len(packed) + 1] = slope.diagonal()
        gradient = [
            prior.slopes(h, packed, powers, of_strengths),
            [prior.variances(h).noise * of_value_noise],
            shares * (of_shares - shares @ of_shares),
            by_kind @ shares,
        ]
        return float(value), np.concatenate(gradient)

    def index_covariances(self, h: FloatArray, index: Index) -> tuple[FloatArray, FloatArray]:
        """Return covariances of averages and readings, (n, k), and variances, (k,).

        The noise of values is a part of the game, and in both.
        """
        prior = self.prior
        strengths, *_, noise = prior.variances(h)
        of_corners, variances = prior.index_covariances(h, index)
        found = self.map @ of_corners
        weights = index.weights_of_part(self.readings.signs > 0, ODD)
        found[: self.n_values] += noise * prior.noise_shape[: self.n_values, None] * weights
        singles = index.of_sets(np.arange(prior.n_players)[:, None])
        variances = variances + noise * index.sums_of_squares(ODD)
        return np.concatenate([found, 2 * strengths[:, None] * singles]), variances


def joint_posterior(readings: Readings, index: Index) -> Joint:
    """Return the posterior of averages of a game, given its values and gradients."""
    first = GradientPrior(readings.first(_MOST_VALUES, _MOST_GRADIENTS))
    h, _ = maximised(first, first.start, _STEPS)
    prior, of_values = GradientPrior(readings), slice(0, len(readings.values))
    factor = factored(prior.covariance(h))
    covariances, variances = prior.index_covariances(h, index)
    right = np.concatenate([covariances, prior.values[:, None]], axis=1)
    whitened = lapack.dtrtrs(factor, right, lower=1)[0]
    loadings, values = whitened[:, :-1], whitened[:, -1]
    weights = index.weights_of_part(readings.signs > 0, ODD)
    unknown = index.sums_of_squares(ODD) - (weights[1:] ** 2).sum(axis=0)
    least = prior.prior.variances(h).noise * np.maximum(unknown, 0)
    variances = np.maximum(variances - (loadings**2).sum(axis=0), least)
    inverse = lapack.dtrtri(factor, lower=1)[0]
    precision, alpha = (inverse**2).sum(axis=0), inverse.T @ values
    surprises = alpha**2 / precision
    of_gradients = surprises[len(readings.values) :].mean()
    surprise = surprises[of_values][1:].sum() + _VALUES_OF_SCALE * of_gradients
    variances *= surprise / (len(readings.values) - 1 + _VALUES_OF_SCALE)
    return Joint(loadings.T @ values, variances, (alpha / precision)[of_values][1:])


def solved(readings: Readings) -> Attributions:
    """Return the attributions of one game by its values and gradients.

    From more values than players on, those of the process without gradients are mixed in, by the
    errors of both at left-out values.
    """
    n_values, n_players = readings.signs.shape
    parts = readings.values, readings.gradients, readings.middle
    size = np.array([np.sqrt((part**2).mean()) for part in parts]).max()
    if not size:
        return Attributions(np.zeros(n_players), np.zeros(n_players), np.inf, 1.0)
    values, gradients, middle = (part / size for part in parts)
    scaled, index = Readings(readings.signs, values, gradients, middle), single_players(n_players)
    freedom = 1.0 + len(gradients) if n_values > n_players else _FREEDOM
    if is_of_pairs(scaled):
        return Attributions(middle * size, np.zeros(n_players), np.inf, 1.0)
    fit = None
    if n_values > n_players and values.any():
        fit = fitted(Prior(Values(readings.signs, values[:, None], ODD, 1)))
        alone, left_out = of_fit(fit, index, None), errors_left_out(fit)[:, 0]
        if not alone.variances.any():  # few terms explain the values
            exact, freedom = alone.means[:, 0] * size, float(alone.freedom[0])
            return Attributions(exact, np.zeros(n_players), freedom, 0.0)
    joint = joint_posterior(scaled, index)
    means, errors, weight = joint.means, np.sqrt(joint.variances), 1.0
    if fit is not None:
        of_joint = joint.left_out[-len(left_out) :]
        left_out = left_out[-len(of_joint) :]
        gain = of_joint - left_out
        ridge = _TOWARDS_GRADIENTS * n_players * (of_joint**2).mean()
        best = (ridge - gain @ left_out) / np.maximum(gain @ gain + ridge, 1e-300)
        weight = float(np.clip(best, 0, 1))
        means = weight * means + (1 - weight) * alone.means[:, 0]
        errors = weight * errors + (1 - weight) * np.sqrt(alone.variances[:, 0])
    variances = errors**2
    gap, total = 2 * values[0] - means.sum(), variances.sum()
    means = means + gap * (variances / total if total else 1 / n_players)
    return Attributions(means * size, errors * size, freedom, weight)


def is_of_pairs(readings: Readings) -> bool:
    """Return whether the odd part has single players alone, which the middle then tells exactly."""
    expected = readings.signs @ readings.middle / 2
    left = np.abs(readings.values - expected).max()
    of_gradients = np.abs(readings.gradients - readings.middle).max()
    return bool(max(left, of_gradients) <= _ROUNDING)


def operations(n_players: int, budget: int) -> float:
    """Return those of a game, beside these of values alone.

    Measured with 8 to 500 players and 1 to 32 evaluations of each: at most 1.5 times more or less.
    """
    n_passes, n_values = _sizes(n_players, budget)
    n_values += n_passes
    n_learned = min(n_passes, max(1, _MOST_GRADIENTS // n_players))
    learned = min(n_values, _MOST_VALUES) + (1 + n_learned) * n_players
    readings = n_values + (1 + n_passes) * n_players
    return 1e8 + 1e4 * learned**2 + 200.0 * readings**2 + 0.2 * readings**3


def _sizes(
    n_players: int, budget: int, n_outputs: int = 1, planned: int | None = None
) -> tuple[int, int]:
    """Return how many pairs have gradients, and how many only values, beside the middle.

    Gradients get half an evaluation a player, or all where that is more, which is `planned` where a
    tolerance may end the row earlier.
    """
    each, planned = Passes.cost(n_outputs), planned or budget
    n_passes = round((_EVALUATIONS_EACH * n_players - each) / (2 * each))
    most = _MOST_PAIRS, _MOST_READINGS // n_players, (planned - each) // (2 * each)
    n_passes = max(1, min(n_passes, *most))
    return n_passes, (budget - each * (2 * n_passes + 1)) // 2


class Plan(NamedTuple):
    """Which coalitions have gradients, (g, M), and which only values, (n, M), beside complements.

    The middle has a gradient, too. A pass counts as `each` evaluations.
    """

    with_gradients: CoalitionArray
    with_values: CoalitionArray
    each: int = PASS

    @property
    def degrees(self) -> FloatArray:
        """Degrees of presence of all passes, (p, M): pairs in turn, then the middle."""
        pairs = self.with_gradients
        both = np.stack([pairs, ~pairs], axis=1).reshape(-1, pairs.shape[1])
        return np.concatenate([both, np.full((1, pairs.shape[1]), 0.5)])

    @property
    def n_evaluations(self) -> int:
        """Evaluations that the plan takes."""
        return self.each * (2 * len(self.with_gradients) + 1) + 2 * len(self.with_values)


def plan_for(
    n_players: int,
    budget: int,
    rng: np.random.Generator,
    n_outputs: int = 1,
    planned: int | None = None,
) -> Plan:
    """Return the readings that a budget pays for: the ends, the middle, then further pairs."""
    fewest = Passes.fewest_evaluations(n_outputs)
    if budget < fewest:
        raise BudgetError(f"needs at least {fewest} evaluations for gradients.", fewest)
    n_passes, n_values = _sizes(n_players, budget, n_outputs, planned)
    everyone = np.ones((1, n_players), dtype=bool)
    halves = chosen_halves(n_players, n_passes + n_values, rng)
    rows = np.concatenate([everyone, halves[: n_passes - 1]])
    if n_values >= n_players:
        rows = np.concatenate([rows, chosen_pairs(n_players, n_values + n_passes, rng)])
    else:
        rows = np.concatenate([rows, halves[n_passes - 1 :]])
    rows = rows[first_of_each_pair(rows)]
    with_values = rows[n_passes : n_passes + n_values]
    return Plan(rows[:n_passes], with_values, Passes.cost(n_outputs))


def solution_of_rows(passes: Passes, draws: CoalitionDraws, values: ValueArray) -> Solution:
    """Return the attributions of all rows and outputs, by passes and by values, (R, C, K)."""
    n_rows, _, n_players, n_outputs = passes.slopes.shape
    coalitions = np.concatenate([passes.degrees[:-1:2] > 0.5, draws.members])
    n_readings = len(coalitions) + n_players * (len(passes.degrees) // 2)
    of_pairs = values[:, draws.positions]  # (R, n, 2, K)

    def solve(game: int) -> Attributions:
        row, output = divmod(game, n_outputs)
        at_passes = passes.values[row, :-1, output].reshape(-1, 2)
        both = np.concatenate([at_passes, of_pairs[row, :, :, output]])
        slopes = np.ascontiguousarray(passes.slopes[row, ..., output])
        of_coalitions = slopes[:-1].reshape(-1, 2, n_players).mean(axis=1)
        odds = (both[:, 0] - both[:, 1]) / 2
        signs = np.where(coalitions, 1.0, -1.0)
        return solved(Readings(signs, odds, of_coalitions, slopes[-1]))

    n_threads = n_threads_within_memory(_MATRICES * 8 * n_readings**2)
    found = map_in_threads(solve, range(n_rows * n_outputs), n_threads)
    freedom = np.array([one.freedom for one in found]).reshape(n_rows, 1, n_outputs)
    means, errors = (
        np.array(of_games).reshape(n_rows, n_outputs, n_players).swapaxes(1, 2)
        for of_games in list(zip(*found, strict=True))[:2]
    )
    return Solution(means, errors, freedom)
