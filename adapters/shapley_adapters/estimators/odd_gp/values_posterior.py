"""The posterior of Shapley values, given values of coalitions without their complements.

With few evaluations for each player, half of them would be complements, whose only use is to cancel
the even part of the game. Here the even part is in the prior; see `values_prior`. Let R be the
covariances of the values v without the effects c of single players, and F the games in which one
player counts. Given c, the attributions φ are a linear function of c plus one of v − F c. So all
that depends on the variances W of the effects is a regression of M coefficients, with G = Fᵀ R⁻¹ F
and b = Fᵀ R⁻¹ v: its posterior has the covariances Σ = (G + W⁻¹)⁻¹ and the means Σ b.

If few players have large effects, they have most of the interactions, too. So R is computed again,
with strengths by these effects, and with strengths that are fitted to the values; all are averaged
by the evidence of the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg

from ...array_types import BoolArray, CoalitionArray, FloatArray, IntArray
from ..protocol import Operations
from .marginal_likelihood import TINY, column_by_column, whitened_by
from .sparse_main_effects import (
    STEPS,
    STEPS_AGAIN,
    MainEffects,
    followed,
    main_effects,
    sums_of_columns,
)
from .strengths_by_energies import fitted_strengths
from .values_evidence import (
    MOST_PRIORS,
    best_of_rows,
    games_by_prior,
    operations_of_priors,
    spread_outputs,
    variances_given_effects,
)
from .values_prior import ErrorCovariances, Products, SizeFactors, Variances

_FAR_FROM_HALF, _SHRUNK = 3.0, 4.0
"""Standard deviations from the size of a half, and the number of values that the expected size of
deviations counts as."""

_OF_CHOICES = 1.15
"""By how much variances are larger because the prior is chosen by the same values. Measured on sums
of pairs and of triples with 50 and 100 players: without it, 95 % intervals hold .92 to .95."""

_FREEDOM = 0.25
"""Degrees of freedom that each value gives the scale of the variances, less what choices of the
prior use up. Measured on texts, digits and sums of small games with .25 to 6 values a player: 95 %
intervals hold .90 to .98 in the mean over games."""

_LEAST_CONFIDENCE, _PLAYERS_PER_VALUE = 0.1, 8
"""The power of the evidence by which models are averaged: no model is right, and the evidence of
many values would choose one for sure. Measured with 50 players and one value a player, errors are
the same; 95 % intervals hold .83 and .92 on attention and texts instead of .71 and .86. With fewer
values than players, the evidence counts as that of one value for so many players. Measured with 50
players: errors on contexts are .65 and .81 times those with a tenth at .25 and .5 values a player,
and .95 to 1.01 times on texts, attention and sums of small games; intervals hold .90 to .99."""

_FEW_VALUES = 1024
"""At most so many values are explained with and without factors of the sizes, which few values may
choose by chance. Measured with 50 and 200 players and .25 to 6 values of each: errors are .64 to
1.03 times those of the chosen factors alone on contexts, .88 to 1.06 times on sums of small games,
and .94 to 1.02 times on texts, attention and pooling. It takes up to 1.6 times as long.

Strengths are fitted to so many values, too. Errors are then .49 to .95 times those without on sums
of small games of few players, .86 to .97 times on contexts, .89 to .98 times on attention, and .96
to 1 times on pooling, texts and other sums. It takes 1.1 to 2 times as long."""

_SIMILAR = 0.6
"""The least cosine of the second moments of effects of outputs that share strengths. Measured with
60 and 200 players, on outputs that are sums of the same games, and on outputs of different games:
errors are .91 to 1.03 times those with strengths and priors of their own, .99 in the mean."""

_VERY_SIMILAR = 0.9
"""The same for strengths that are fitted to the values. Measured with 60 players and three values
of each, on 12 to 30 outputs that depend on eight players each: errors are .9 to .95 times those of
strengths for each, and 1.2 to 1.4 times with .6; on mixtures of the same games .95 and .7."""

_MOST_APART = 30
"""Rows of at most so many outputs have variances of effects for each. More outputs share them where
similar players matter: a thousand must not take a thousand times as long. Measured with 60 players,
three values of each, and 60 outputs that depend on eight players of their own: the error is 1.8
times that of variances for each; of outputs that are mixtures of the same games, at most 1.05."""

_CLUSTERINGS = 8
"""Number of times that outputs are grouped anew by the means of the groups."""

_MOST_DIVERGENCE = 1.2
"""Bound on the relative entropy of an output's second moments to the mean of its group, in nats.
Measured with 100 players and two values each, on 300 outputs: .2 to .9 on random networks, where
errors are .81 to .96 times those with priors of their own; .5 to 1.9 on mixtures of subjects, .94
times; 1 to 3.3 on outputs that each depend on ten players of their own, 1.8 times if all share."""

_MOST_TOGETHER = 2048
"""The values of larger blocks than this are taken for independent, given the single players."""


@dataclass(frozen=True)
class _NormalEquations:
    """Those of a regression of whitened values on the effects of single players.

    Attributes
    ----------
    gram : array, (M, M)
        G = Fᵀ R⁻¹ F.
    vectors : array, (M, B)
        Fᵀ R⁻¹ v.
    squares : array, (B,)
        vᵀ R⁻¹ v.
    n : int
        The number of values.
    """

    gram: FloatArray
    vectors: FloatArray
    squares: FloatArray
    n: int

    @classmethod
    def from_whitened(cls, features: FloatArray, values: FloatArray) -> _NormalEquations:
        """Return those of L⁻¹ F and L⁻¹ v, with R = L Lᵀ."""
        vectors = _products(features, values)
        return cls(features.T @ features, vectors, sums_of_columns(values**2), len(values))

    def added(self, other: _NormalEquations) -> _NormalEquations:
        """Return those of both parts of the values, in the memory of the first."""
        return _NormalEquations(
            *(_added(vars(self)[name], vars(other)[name]) for name in vars(self))
        )

    def of_games(self, games: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, int]:
        """Return G, b, squares and n of some games."""
        return self.gram, self.vectors[:, games], self.squares[games], self.n


@dataclass(frozen=True)
class _Regression:
    """What the posterior needs of the coalitions and of their values, for one choice of variances.

    Attributes
    ----------
    of_halves, of_all : _NormalEquations
        Of the values of about half of the players, and of all values.
    shifts : array, (M, M)
        The covariances of the attributions with v(z), times R⁻¹ F.
    explained : array, (M,)
        By how much the values reduce the variances of the attributions, given c.
    means : array, (M, B)
        The means of the attributions if c were 0.
    half_log_determinant : float
        Of R.
    """

    of_halves: _NormalEquations
    of_all: _NormalEquations
    shifts: FloatArray
    explained: FloatArray
    means: FloatArray
    half_log_determinant: float

    @classmethod
    def from_values(
        cls,
        products: Products,
        prior: Variances,
        factors: SizeFactors,
        targets: FloatArray,
        errors: ErrorCovariances | None = None,
    ) -> _Regression:
        """Return it for values, (n, B), which may have errors."""
        n, n_players = products.members.shape
        n_blocks = -(-n // _MOST_TOGETHER)
        ends = [block * n // n_blocks for block in range(n_blocks + 1)]
        sums = 2 * products.members.sum(axis=1) - n_players
        is_half = np.abs(sums) <= _FAR_FROM_HALF * np.sqrt(n_players)
        is_half[:2] = True  # the values of none and of all are known

        def block_regression(start: int, stop: int) -> _Regression:
            order = np.argsort(~is_half[start:stop], kind="stable")
            n_halves = int(is_half[start:stop].sum())
            part = products.subset_values(start + order)
            kernel = part.kernel(prior)
            if errors is not None:
                kernel += errors.matrix(slice(start, stop))[np.ix_(order, order)]
            factor = scipy.linalg.cholesky(
                kernel.T, lower=True, overwrite_a=True, check_finite=False
            )
            features = whitened_by(factor, part.features(factors), overwrite=True)
            covariances = whitened_by(factor, part.covariances(prior), overwrite=True)
            values = column_by_column(partial(whitened_by, factor), targets[start + order])
            half_log_determinant = float(np.log(np.diagonal(factor)).sum())
            del kernel, factor, part  # of thousands of players, they take as much as all results
            of_halves, of_others = (
                _NormalEquations.from_whitened(features[rows], values[rows])
                for rows in (slice(0, n_halves), slice(n_halves, None))
            )
            return cls(
                of_halves,
                of_others.added(of_halves),
                covariances.T @ features,
                np.einsum("ni,ni->i", covariances, covariances),
                _products(covariances, values),
                half_log_determinant,
            )

        found = block_regression(*ends[:2])
        for start, stop in pairwise(ends[1:]):  # functools.reduce would keep two former blocks
            found = found.added(block_regression(start, stop))
        return found

    def added(self, other: _Regression) -> _Regression:
        """Return that of two independent blocks of values, in the memory of the first."""
        equations = self.of_halves.added(other.of_halves), self.of_all.added(other.of_all)
        others = (_added(vars(self)[name], vars(other)[name]) for name in list(vars(self))[2:])
        return _Regression(*equations, *others)

    def given_effects(
        self, products: Products, prior: Variances, factors: SizeFactors
    ) -> tuple[FloatArray, FloatArray]:
        """Return what c adds to φ, (M, M), and the variances of φ given c and the values, (M,)."""
        variances = np.maximum(products.variances(prior) - self.explained, 0.0)
        own, other = factors.attributions(len(variances))
        return (own - other) * np.eye(len(variances)) + other - self.shifts, variances

    def attributions(
        self, found: MainEffects, games: IntArray, slopes: FloatArray, remaining: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the evidence, (K,), and means and variances of the attributions, (M, K).

        φ = 2 c + T (v − Z c) + what remains, where T holds covariances with v times R⁻¹.

        Parameters
        ----------
        found : MainEffects
            The posterior of c.
        games : array, (K,)
            Which of the games these are.
        slopes, remaining : arrays, (M, M) and (M,)
            Those of `given_effects`.
        """
        means = slopes @ found.means + self.means[:, games]
        of_effects = whitened_by(found.factor, slopes.T)
        variances = np.einsum("ij,ij->j", of_effects, of_effects) + remaining
        log_evidence = found.log_evidence - self.half_log_determinant
        return log_evidence, means, variances[:, None] * found.scale

    def growth_by_size(self, weights: FloatArray, games: IntArray) -> FloatArray:
        """Return by how much coalitions of other sizes than halves deviate more than is expected.

        All sizes count alike in the attributions, and most values are of halves, which the prior is
        chosen by. So the other sizes are predicted from the halves.
        """
        all_energy, halves_energy = (
            MainEffects.given(*equations.of_games(games), weights).scale * equations.n
            for equations in (self.of_all, self.of_halves)
        )
        n_others = self.of_all.n - self.of_halves.n
        mean = np.maximum(all_energy / self.of_all.n, TINY)
        ratios = ((all_energy - halves_energy) / mean + _SHRUNK) / (n_others + _SHRUNK)
        return _OF_CHOICES * np.maximum(1.0, ratios)


def _added(own: Any, more: Any) -> Any:
    """Return a sum, which takes no further memory if these are arrays."""
    own += more
    return own


def _products(factors: FloatArray, columns: FloatArray) -> FloatArray:
    return column_by_column(lambda block: factors.T @ block, columns)


@dataclass(frozen=True)
class _Fit:
    """What is kept of the posterior of some games by one prior.

    Attributes
    ----------
    games : array, (K,)
        Which games these are.
    choices : list
        The evidence, means and variances by equal variances of single players, and by a mixture.
    growth : array, (K,)
        See `_Regression.growth_by_size`.
    effects : MainEffects
        The effects of single players by the last choice, without their factor.
    moments : array, (M, K)
        Second moments of the effects by the more likely choice.
    scale : array, (K,)
        The factor of all variances by it.
    has_mixture : array of bool, (K,)
        Whether a mixture is more likely than equal variances.
    """

    games: IntArray
    choices: list[tuple[FloatArray, FloatArray, FloatArray]]
    growth: FloatArray
    effects: MainEffects
    moments: FloatArray
    scale: FloatArray
    has_mixture: BoolArray

    @cached_property
    def evidence(self) -> FloatArray:
        """Return that of the more likely choice, (K,)."""
        evidence: FloatArray = np.max([of_choice for of_choice, _, _ in self.choices], axis=0)
        return evidence

    @classmethod
    def from_effects(
        cls,
        regression: _Regression,
        effects: list[MainEffects],
        games: IntArray,
        given: tuple[FloatArray, FloatArray],
    ) -> _Fit:
        """Return it for choices of the variances of single players; see `given_effects`."""
        is_last = effects[-1].log_evidence > effects[0].log_evidence

        def likelier(arrays: list[FloatArray]) -> FloatArray:
            return np.where(is_last, arrays[-1], arrays[0])

        last = effects[-1]
        moments = likelier([found.second_moments for found in effects])
        return cls(
            games,
            [regression.attributions(found, games, *given) for found in effects],
            likelier([regression.growth_by_size(found.weights, games) for found in effects]),
            replace(last, factor=np.empty((0, 0))),
            moments,
            likelier([found.scale for found in effects]),
            is_last,
        )


@dataclass(frozen=True)
class ValuesPosterior:
    """Means and variances of the attributions, (M, B) each.

    `freedom`, (B,), are degrees of freedom. `scales`, (B,), are the variances of the values of each
    game over those of its prior.
    """

    means: FloatArray
    variances: FloatArray
    freedom: FloatArray
    scales: FloatArray


def posterior_of_values(
    members: CoalitionArray,
    targets: FloatArray,
    errors: ErrorCovariances | None = None,
    is_sparse: bool = True,
    n_outputs: int = 1,
) -> ValuesPosterior:
    """Return the posterior of the Shapley values.

    Parameters
    ----------
    members : array, (n, M)
        Distinct coalitions, the empty one first, then that of all players.
    targets : array, (n, B)
        Their values, for each row and output.
    errors : ErrorCovariances, optional
        Those of the errors of the values, for each row and output.
    is_sparse : bool
        Whether players may have variances of their own, where values say so.
    n_outputs : int
        So many games after each other are the outputs of a row. They share the variances of
        interactions, and strengths where these are similar, unless values have errors. More than
        30 outputs share the variances of effects, too, where similar players matter.
    """
    if errors is None:
        return _posterior_of_games(members, targets, None, is_sparse, n_outputs)
    solved = []
    for game in range(targets.shape[1]):
        own, of_game = targets[:, game : game + 1], errors.subset_games(np.array([game]))
        scales = _posterior_of_games(members, own, of_game, is_sparse).scales
        # All variances of the prior are scaled, but those of the errors are known.
        of_prior = of_game.divided_by(scales[:, None])
        solved.append(_posterior_of_games(members, own, of_prior, is_sparse))
    arrays = zip(*(vars(of_game).values() for of_game in solved), strict=True)
    return ValuesPosterior(*(np.concatenate(of_all, axis=-1) for of_all in arrays))


def _posterior_of_games(
    members: CoalitionArray,
    targets: FloatArray,
    errors: ErrorCovariances | None,
    is_sparse: bool,
    n_outputs: int = 1,
) -> ValuesPosterior:
    """Return the posterior of games, or of one game whose values have errors."""
    products = Products(members, np.ones(members.shape[1]))
    n_players, n_games = members.shape[1], targets.shape[1]
    by_game = np.ascontiguousarray(targets.T)
    centred = by_game - by_game.mean(axis=1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=1, keepdims=True))
    scale[scale == 0] = 1.0
    by_scale = centred / scale
    scaled = by_scale.T
    if errors is not None:
        errors = errors.divided_by(scale**2)
    means, variances = np.zeros((2, n_players, n_games))
    freedom, scales = np.full(n_games, _FREEDOM * len(members)), np.ones(n_games)
    by_prior = games_by_prior(products, scaled, errors, n_outputs)
    confidence = max(_LEAST_CONFIDENCE, min(1.0, n_players / (_PLAYERS_PER_VALUE * len(members))))
    for (prior, factors), games in by_prior.items():
        rows = games // n_outputs
        given = _Games(products, scaled[:, games], errors, rows, n_outputs, is_sparse)
        for own, of_games in _by_games(_fits(given, prior, factors)):
            means[:, games[own]], found, scales[games[own]] = _averaged(of_games, confidence)
            variances[:, games[own]] = found
    total = by_game[:, 1] - by_game[:, 0]
    means, variances = means * scale.T, variances * scale.T**2
    # The residual of efficiency is rounding, unless values are in blocks.
    sums = np.ascontiguousarray(variances.T).sum(axis=1)
    shares = np.where(sums > 0, variances / np.where(sums > 0, sums, 1.0), 1 / n_players)
    means += shares * (total - np.ascontiguousarray(means.T).sum(axis=1))
    return ValuesPosterior(means, variances, freedom, scales)


@dataclass(frozen=True)
class _Games:
    """The values of games that share a prior.

    Attributes
    ----------
    products : Products
        Those of the coalitions, with equal strengths.
    values : array, (n, B)
        The values.
    errors : ErrorCovariances, optional
        Of the errors of the values.
    rows : array, (B,)
        The row of each game, in ascending order.
    n_outputs : int
        The outputs of a row.
    is_sparse : bool
        Whether players may have variances of their own.
    """

    products: Products
    values: FloatArray
    errors: ErrorCovariances | None
    rows: IntArray
    n_outputs: int
    is_sparse: bool


def _fits(given: _Games, prior: Variances, factors: SizeFactors) -> list[_Fit]:
    """Return the fits of games that are averaged.

    They are by equal strengths and by those of the effects. Few values have both with and without
    factors of the sizes, and strengths that are fitted to them, by what is likelier for the row.
    """
    are_few = len(given.values) <= _FEW_VALUES
    tried = list(dict.fromkeys([factors, SizeFactors()] if are_few else [factors]))
    evidence = np.full((len(tried), len(given.rows)), -np.inf)
    found, starts = [], []
    for own_evidence, of_sizes in zip(evidence, tried, strict=True):
        equal = _fits_by_equal_strengths(given, prior, of_sizes)
        fits = [*equal, *_fits_by_strengths(given, of_sizes, equal)]
        for fit in fits:
            own_evidence[fit.games] = np.maximum(own_evidence[fit.games], fit.evidence)
        found += fits
        starts.append(equal)
    if not are_few:
        return found
    likelier = best_of_rows(evidence, given.rows)
    for index, (of_sizes, equal) in enumerate(zip(tried, starts, strict=True)):
        chosen = [
            replace(fit, has_mixture=fit.has_mixture & (likelier[fit.games] == index))
            for fit in equal
        ]
        found += _fits_by_strengths(given, of_sizes, chosen, prior)
    return found


def _fits_by_equal_strengths(given: _Games, prior: Variances, factors: SizeFactors) -> list[_Fit]:
    """Return the fits of games in which all players interact alike."""
    regression = _Regression.from_values(given.products, prior, factors, given.values, given.errors)
    slopes = regression.given_effects(given.products, prior, factors)
    return [
        _Fit.from_effects(
            regression,
            main_effects(*regression.of_all.of_games(own), given.is_sparse, start),
            own,
            slopes,
        )
        for own, start in _clusters(regression.of_all, given)
    ]


def _clusters(
    equations: _NormalEquations, given: _Games
) -> Iterator[tuple[IntArray, MainEffects | None]]:
    """Yield games that share the variances of their effects, and effects to start from.

    Of a few outputs, each has its own. Of many outputs of a row, those with similar second moments
    share them.
    """
    if given.n_outputs <= _MOST_APART:
        for game in range(len(given.rows)):
            yield np.array([game]), None
        return
    for row in np.unique(given.rows):
        games = np.flatnonzero(given.rows == row)
        if not given.is_sparse:
            yield games, None
            continue
        chosen = spread_outputs(given.n_outputs)
        whole = main_effects(*equations.of_games(games[chosen]), given.is_sparse)[-1]
        if len(chosen) < given.n_outputs:
            whole = followed(*equations.of_games(games), whole)
        for part in similar_outputs(whole.second_moments):
            yield games[part], whole.subset_games(part)


def _fits_by_strengths(
    given: _Games, factors: SizeFactors, fits: list[_Fit], start_prior: Variances | None = None
) -> Iterator[_Fit]:
    """Yield the fits of games of which few players matter, by strengths of their own.

    These are the moments of their effects or, with a prior to start from, fitted to the values.
    """
    products, values, errors = given.products, given.values, given.errors
    least = _SIMILAR if start_prior is None else _VERY_SIMILAR
    for alike in _alike(fits, given.rows, least):
        games = np.sort(np.concatenate([fit.games[fit.has_mixture] for fit in alike]))
        moments = [fit.moments[:, fit.has_mixture].T for fit in alike]
        weights = np.mean(np.concatenate(moments), axis=0)
        if start_prior is None:
            own = products.with_strengths(weights)
            of_alike = own, values[:, games], errors, factors, weights
            by_prior = list(variances_given_effects(*of_alike))
        else:
            weights, fitted = fitted_strengths(
                products, values[:, games], errors, start_prior, factors, weights
            )
            own = products.with_strengths(weights)
            by_prior = [(fitted, np.arange(len(games)))]
        for prior, at in by_prior:
            chosen = games[at]
            regression = _Regression.from_values(own, prior, factors, values[:, chosen], errors)
            slopes = regression.given_effects(own, prior, factors)
            for fit in alike:
                is_in = np.isin(fit.games, chosen) & fit.has_mixture
                if not is_in.any():
                    continue
                places = np.searchsorted(chosen, fit.games[is_in])
                start = fit.effects.subset_games(np.flatnonzero(is_in))
                effects = main_effects(*regression.of_all.of_games(places), True, start)
                of_fit = _Fit.from_effects(regression, effects, places, slopes)
                yield replace(of_fit, games=fit.games[is_in])


def _alike(fits: Sequence[_Fit], rows: IntArray, least: float) -> Iterator[list[_Fit]]:
    """Yield the fits of games of which few players matter, and which share strengths.

    These are outputs of the same row; cosines of the moments of their effects are above the least.
    """
    left = [fit for fit in fits if fit.has_mixture.any()]
    while left:
        moments = np.array([fit.moments[:, fit.has_mixture].mean(axis=1) for fit in left])
        sizes = np.sqrt((moments**2).sum(axis=1))
        are_alike = (moments * moments[0]).sum(axis=1) > least * sizes * sizes[0]
        are_alike &= np.array([rows[fit.games[0]] == rows[left[0].games[0]] for fit in left])
        yield [fit for fit, is_alike in zip(left, are_alike, strict=True) if is_alike]
        left = [fit for fit, is_alike in zip(left, are_alike, strict=True) if not is_alike]


def similar_outputs(moments: FloatArray) -> list[IntArray]:
    """Return groups of outputs, as indices, by the second moments of their effects, (M, K).

    All cosines with the first of a group are large, unless that takes too many groups. Outputs of
    which other players matter than those of their group are alone.
    """
    shares = moments / moments.sum(axis=0)
    units = moments / np.sqrt((moments**2).sum(axis=0))
    leaders, nearest = [0], units[:, 0] @ units
    while len(leaders) < MOST_PRIORS and nearest.min() < _SIMILAR:
        leaders.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, units[:, leaders[-1]] @ units)
    centres = units[:, leaders]
    for _ in range(_CLUSTERINGS):
        group = (centres.T @ units).argmax(axis=0)
        centres = units @ (group[:, None] == np.arange(len(leaders)))
        centres /= np.maximum(np.sqrt((centres**2).sum(axis=0)), TINY)
    found = []
    for index in np.unique(group):
        own = np.flatnonzero(group == index)
        ratios = shares[:, own] / shares[:, own].mean(axis=1, keepdims=True)
        is_like = (shares[:, own] * np.log(ratios)).sum(axis=0) < _MOST_DIVERGENCE
        found += [own[is_like]] * bool(is_like.any())
        found += [own[[place]] for place in np.flatnonzero(~is_like)]
    return found


def _by_games(
    fits: Iterable[_Fit],
) -> Iterator[tuple[IntArray, list[tuple[_Fit, IntArray]]]]:
    """Yield games that have the same fits, and these with the places of the games in them."""
    of_game: dict[int, list[tuple[int, int]]] = {}
    all_fits = list(fits)
    for index, fit in enumerate(all_fits):
        for place, game in enumerate(fit.games.tolist()):
            of_game.setdefault(game, []).append((index, place))
    together: dict[tuple[int, ...], list[int]] = {}
    for game, found in of_game.items():
        together.setdefault(tuple(index for index, _ in found), []).append(game)
    for indices, games in together.items():
        places = np.array([[place for _, place in of_game[game]] for game in games]).T
        yield np.array(games), [(all_fits[i], at) for i, at in zip(indices, places, strict=True)]


def _averaged(
    fits: list[tuple[_Fit, IntArray]], confidence: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return means and variances of the attributions, (M, K), over models by their evidence.

    And the scale of the likeliest one, (K,). `confidence` is the power of the evidence.
    """
    choices = [
        (evidence[at], means[:, at], variances[:, at])
        for fit, at in fits
        for evidence, means, variances in fit.choices
    ]
    logs, means, variances = (np.array(part) for part in zip(*choices, strict=True))
    chances = np.exp(confidence * (logs - logs.max(axis=0)))
    chances = (chances / chances.sum(axis=0))[:, None]
    mean = (chances * means).sum(axis=0)
    variance = (chances * (variances + (means - mean) ** 2)).sum(axis=0)
    best = np.argmax([fit.evidence[at] for fit, at in fits], axis=0)
    growth, scale = (
        np.choose(best, [vars(fit)[name][at] for fit, at in fits]) for name in ("growth", "scale")
    )
    return mean, variance * growth, np.maximum(scale, TINY)


def memory_of_values(n_players: int, n_values: int) -> int:
    """Return the bytes of the matrices of a block of values, and of those of the players."""
    n_block = min(n_values, _MOST_TOGETHER)
    return 8 * (3 * n_block**2 + 4 * n_block * n_players + 6 * n_players**2)


def operations_of_values(n_players: int, n_values: int) -> Operations:
    """Return those of factors and products of blocks, and of a factor of players in each step.

    Rows choose priors. Those of which few players matter have blocks of their own, by other
    strengths; few values have them by two kinds of factors of the sizes. Measured with 200 players
    and one to eight values of each: 1,000 outputs take .4 to 1.8 times as long as ten.
    """
    n_block = min(n_values, _MOST_TOGETHER)
    once = n_values * (n_block**2 / 3 + 2 * n_block * n_players + 2 * n_players**2)
    steps = (STEPS + STEPS_AGAIN) * 2 / 3 * n_players**3
    if n_values <= _FEW_VALUES:
        once, steps = 2 * once, 2 * steps
    once += operations_of_priors(n_values)
    return Operations(once, once + steps, MOST_PRIORS)
