"""The posterior of Shapley values, given values of coalitions without their complements.

With few evaluations for each player, half of them would be complements, whose only use is to cancel
the even part of the game. Here the even part is in the prior; see `values_prior`. Let R be the
covariances of the values v without the effects c of single players, and F the games in which one
player counts. Given c, the attributions φ are a linear function of c plus one of v − F c. So all
that depends on the variances W of the effects is a regression of M coefficients, with G = Fᵀ R⁻¹ F
and b = Fᵀ R⁻¹ v: its posterior has the covariances Σ = (G + W⁻¹)⁻¹ and the means Σ b.

If few players have large effects, they have most of the interactions, too. So R is computed again,
with strengths by these effects, and is kept if the evidence of all values is larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise, starmap

import numpy as np
import scipy.linalg

from ...array_types import CoalitionArray, FloatArray
from ..protocol import Operations
from .marginal_likelihood import TINY, column_by_column, whitened_by
from .sparse_main_effects import STEPS, MainEffects, main_effects
from .values_evidence import games_by_prior, variances_given_effects
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

_CONFIDENCE = 0.1
"""The power of the evidence by which models are averaged: no model is right, and the evidence of
many values would choose one for sure. Measured with 50 players and one value a player, errors are
the same; 95 % intervals hold .83 and .92 on attention and texts instead of .71 and .86."""

_MOST_TOGETHER = 2048
"""The values of larger blocks than this are taken for independent, given the single players."""


@dataclass(frozen=True)
class _Regression:
    """What the posterior needs of the coalitions and of their values, for one choice of variances.

    Attributes
    ----------
    gram : array, (M, M)
        G = Zᵀ R⁻¹ Z.
    shifts : array, (M, M)
        The covariances of the attributions with v(z), times R⁻¹ Z.
    explained : array, (M,)
        By how much the values reduce the variances of the attributions, given c.
    vectors, means : arrays, (M, B)
        Zᵀ R⁻¹ v, and the means of the attributions if c were 0.
    squares : array, (B,)
        vᵀ R⁻¹ v.
    half_log_determinant : float
        Of R.
    """

    gram: FloatArray
    shifts: FloatArray
    explained: FloatArray
    vectors: FloatArray
    means: FloatArray
    squares: FloatArray
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
        n = len(products.signs)
        n_blocks = -(-n // _MOST_TOGETHER)
        ends = [block * n // n_blocks for block in range(n_blocks + 1)]

        def block_regression(start: int, stop: int) -> _Regression:
            rows = slice(start, stop)
            part = products.subset_values(rows)
            kernel = part.kernel(prior)
            if errors is not None:
                kernel += errors.matrix(rows)
            factor = scipy.linalg.cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
            features = whitened_by(factor, part.features(factors))
            covariances = whitened_by(factor, part.covariances(prior))
            whitened = column_by_column(partial(whitened_by, factor), targets[rows])
            return cls(
                features.T @ features,
                covariances.T @ features,
                (covariances**2).sum(axis=0),
                _products(features, whitened),
                _products(covariances, whitened),
                (np.ascontiguousarray(whitened.T) ** 2).sum(axis=1),
                float(np.log(np.diagonal(factor)).sum()),
            )

        return reduce(cls.plus, starmap(block_regression, pairwise(ends)))

    def plus(self, other: _Regression) -> _Regression:
        """Return that of two independent blocks of values."""
        return _Regression(*(vars(self)[name] + vars(other)[name] for name in vars(self)))


def _products(factors: FloatArray, columns: FloatArray) -> FloatArray:
    return column_by_column(lambda block: factors.T @ block, columns)


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
    """
    if errors is None:
        return _posterior_of_games(members, targets, None, is_sparse)
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
) -> ValuesPosterior:
    """Return the posterior of games, or of one game whose values have errors."""
    products = Products.from_signs(np.where(members, 1.0, -1.0))
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
    for (prior, factors), games in games_by_prior(products, scaled, errors).items():
        regression = _Regression.from_values(products, prior, factors, scaled[:, games], errors)
        for index, game in enumerate(games):
            model = _Model.fitted(products, prior, factors, regression, index, is_sparse)
            models = [model]
            if model.has_mixture:
                models.append(model.with_strengths(scaled[:, [game]], errors))
                model = max(models, key=lambda fitted: fitted.log_evidence)
            means[:, game], variances[:, game] = _averaged(models)
            scales[game] = max(model.likely.scale, TINY)
            variances[:, game] *= model.growth_by_size(by_scale[game], errors)
    total = by_game[:, 1] - by_game[:, 0]
    means, variances = means * scale.T, variances * scale.T**2
    # The residual of efficiency is rounding, unless values are in blocks.
    sums = np.ascontiguousarray(variances.T).sum(axis=1)
    shares = np.where(sums > 0, variances / np.where(sums > 0, sums, 1.0), 1 / n_players)
    means += shares * (total - np.ascontiguousarray(means.T).sum(axis=1))
    return ValuesPosterior(means, variances, freedom, scales)


def _averaged(models: Sequence[_Model]) -> tuple[FloatArray, FloatArray]:
    """Return the means and variances of the attributions, (M,), over models by their evidence."""
    choices = [choice for model in models for choice in model.attributions()]
    logs, means, variances = (np.array(part) for part in zip(*choices, strict=True))
    chances = np.exp(_CONFIDENCE * (logs - logs.max()))
    chances = (chances / chances.sum())[:, None]
    mean = (chances * means).sum(axis=0)
    return mean, (chances * (variances + (means - mean) ** 2)).sum(axis=0)


def memory_of_values(n_players: int, n_values: int) -> int:
    """Return the bytes of the matrices of a block of values, and of those of the players."""
    n_block = min(n_values, _MOST_TOGETHER)
    return 8 * (6 * n_block**2 + 4 * n_block * n_players + 8 * n_players**2)


def operations_of_values(n_players: int, n_values: int) -> Operations:
    """Return those of factors and products of blocks, and of a factor of players in each step.

    Rows of which few players matter have blocks of their own, by other strengths.
    """
    n_block = min(n_values, _MOST_TOGETHER)
    once = n_values * (n_block**2 / 3 + 2 * n_block * n_players + 2 * n_players**2)
    return Operations(once, once + 2.0 * STEPS * n_players**3)


@dataclass(frozen=True)
class _Model:
    """The posterior of one game by one prior.

    Attributes
    ----------
    products, prior, factors
        The prior, but for the variances of single players.
    regression : _Regression
        What it says of several games.
    index : int
        Which of them this is.
    effects : list of MainEffects
        The posteriors of the effects of single players: by equal variances, and by a mixture.
    """

    products: Products
    prior: Variances
    factors: SizeFactors
    regression: _Regression
    index: int
    effects: list[MainEffects]

    @classmethod
    def fitted(
        cls,
        products: Products,
        prior: Variances,
        factors: SizeFactors,
        regression: _Regression,
        index: int,
        is_sparse: bool,
    ) -> _Model:
        """Return the model with the main effects of a game."""
        vector = np.ascontiguousarray(regression.vectors[:, index])
        squares = float(regression.squares[index])
        found = main_effects(regression.gram, vector, squares, len(products.signs), is_sparse)
        return cls(products, prior, factors, regression, index, found)

    @property
    def likely(self) -> MainEffects:
        """The more likely of the posteriors of the effects."""
        return max(self.effects, key=lambda found: found.log_evidence)

    @property
    def has_mixture(self) -> bool:
        """Whether a mixture is more likely than equal variances."""
        return self.likely is not self.effects[0]

    @property
    def log_evidence(self) -> float:
        """Of the values, up to a constant."""
        return self.likely.log_evidence - self.regression.half_log_determinant

    def with_strengths(self, values: FloatArray, errors: ErrorCovariances | None) -> _Model:
        """Return the model where players with large effects have most of the interactions.

        `values`, (n, 1), are those of the game.
        """
        weights = self.likely.second_moments
        own = self.products.with_strengths(weights)
        prior = variances_given_effects(own, values, errors, self.factors, weights)
        regression = _Regression.from_values(own, prior, self.factors, values, errors)
        return self.fitted(own, prior, self.factors, regression, 0, is_sparse=True)

    def attributions(self) -> Iterator[tuple[float, FloatArray, FloatArray]]:
        """Yield the evidence, and means and variances of the attributions, (M,), by each choice.

        φ = 2 c + T (v − Z c) + what remains, where T holds covariances with v times R⁻¹.
        """
        regression = self.regression
        remaining = np.maximum(self.products.variances(self.prior) - regression.explained, 0.0)
        own, other = self.factors.attributions(len(remaining))
        slopes = (own - other) * np.eye(len(remaining)) + other - regression.shifts
        for found in self.effects:
            means = slopes @ found.means + regression.means[:, self.index]
            of_effects = np.einsum("ij,ij->i", slopes @ found.covariances, slopes)
            variances = found.scale * (of_effects + remaining)
            yield found.log_evidence - regression.half_log_determinant, means, variances

    def growth_by_size(self, values: FloatArray, errors: ErrorCovariances | None) -> float:
        """Return by how much coalitions of other sizes than halves deviate more than is expected.

        All sizes count alike in the attributions, and most values are of halves, which the prior is
        chosen by. So the other sizes are predicted from the halves.
        """
        first = slice(0, _MOST_TOGETHER)
        part, n_players = self.products.subset_values(first), self.products.signs.shape[1]
        distances = np.abs(part.signs.sum(axis=1)) / np.sqrt(n_players)
        distances[:2] = 0.0  # the values of none and of all are known
        order = np.argsort(distances > _FAR_FROM_HALF, kind="stable")
        n_others = int((distances > _FAR_FROM_HALF).sum())
        features = part.features(self.factors)
        kernel = part.kernel(self.prior) + (features * self.likely.weights) @ features.T
        if errors is not None:
            kernel += errors.matrix(slice(0, len(kernel)))
        kernel = kernel[np.ix_(order, order)]
        factor = scipy.linalg.cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
        squares = whitened_by(factor, values[first][order, None])[:, 0] ** 2
        others, mean = squares[len(squares) - n_others :], max(float(squares.mean()), TINY)
        ratio = (others.sum() / mean + _SHRUNK) / (n_others + _SHRUNK)
        return _OF_CHOICES * float(max(1.0, ratio))
