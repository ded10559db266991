"""Means of values over a background, from a part of its rows for each coalition.

Background rows differ much more in the main effects of the players than in interactions. So main
effects of each background row are control variates: with A_b(S) = Σ_i z_i δ_ib for the odd part of
the game v_b of row b, z_i = ±1 for the players in S and all others, and K rows evaluated of B,

    v̂(S) = mean over K of [v_b(S) − A_b(S)] + mean over B of A_b(S).

The δ_ib come from ridge regressions, one for each background row, fitted together with the means.
Where means have to be unbiased, they come from coalitions alone that are evaluated on the whole
background. The variance of the residuals among the K rows, with the factor 1 − K / B of sampling
without replacement, is the variance of the value.

A coalition and its complement are evaluated on the same rows. Their half sum and their half
difference, the even and the odd part of the game, have errors of their own size: interactions of
two players are even, and differ much between background rows. Shapley values need the odd part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray

POOLED = 10.0
"""A variance from few draws is shrunk to the mean variance, which counts as so many draws."""


@dataclass(frozen=True)
class DrawnUnits:
    """Coalitions with their complements, where these are in the table.

    Attributes
    ----------
    games : array, (G, C, D)
        The values of each game, one for each row and output.
    coalitions : array, (C, M)
    drawn_coalitions : array, (C, D)
    first, second : arrays, (U,)
        The coalition of each unit, and its complement or −1. That of all players comes first.
    """

    games: FloatArray
    coalitions: CoalitionArray
    drawn_coalitions: BoolArray
    first: IntArray
    second: IntArray

    @property
    def drawn(self) -> BoolArray:
        """The draws of each unit, (U, D)."""
        return self.drawn_coalitions[self.first]

    @property
    def signs(self) -> FloatArray:
        """1 for the members of the first coalition of each unit, −1 for others, (U, M)."""
        return np.where(self.coalitions[self.first], 1.0, -1.0)

    def parts(self) -> tuple[FloatArray, FloatArray]:
        """Return the odd and the even part of each unit and draw, (G, U, D).

        Where the complement is missing, the even part is that of the ends.
        """
        one, other = self.games[:, self.first], self.games[:, self.second]
        even = np.where(
            (self.second < 0)[:, None], (one[:, :1] + other[:, :1]) / 2, (one + other) / 2
        )
        return one - even, even

    def arranged(
        self,
        odd: FloatArray,
        even: FloatArray,
        odd_errors: FloatArray,
        even_errors: FloatArray,
        covariances: FloatArray,
    ) -> tuple[FloatArray, ...]:
        """Return values and errors of the parts of units, (G, U), for coalitions, (G, C).

        Where the complement is missing, all of the error is in the odd part of the unit.
        """
        values, errors = np.zeros(self.games.shape[:2]), np.zeros((3, *self.games.shape[:2]))
        is_paired = self.second >= 0
        paired = self.second[is_paired]
        values[:, self.first] = even + odd
        values[:, paired] = (even - odd)[:, is_paired]
        alone = odd_errors / 2
        of_parts = np.array([odd_errors, even_errors, covariances])
        of_units = np.where(is_paired, of_parts, np.array([alone, alone, np.zeros_like(alone)]))
        errors[..., self.first] = of_units
        errors[..., paired] = of_units[..., is_paired]
        errors[2][:, paired] *= -1
        return values, *errors


_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""Penalties of the ridge regressions, among which leave-one-out residuals choose for each row."""

_TO_CHOOSE, _TO_SOLVE = (8, 1e-4), (32, 1e-8)
"""Steps of conjugate gradients at most, and the squared residual, over that of no effects, at which
they end: for the choice of a penalty, and at that penalty."""

_FIXED_POINT = 20
"""Steps of the fixed point of leverages. More change little."""

_LEAST_LEFT = 0.001
"""Least share of an error that a regression leaves as residual."""


def background_means(
    units: DrawnUnits,
    weights: FloatArray,
    *,
    is_unbiased: bool,
    is_random: bool,
    has_controls: bool,
) -> tuple[FloatArray, ...]:
    """Return means over the background, the variances of both parts and their covariance.

    Those of coalitions, (G, C) each. The weights are those of background rows, (D,); for the flags,
    see `Draws`.
    """
    shares = units.drawn * weights
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)  # (U, D)
    population = weights / weights.sum()
    odd, even = units.parts()
    effects = (odd[:, 0] - (odd[:, 0] @ population)[:, None])[:, None]  # (G, 1, D)
    effects = np.broadcast_to(
        effects / units.signs.shape[1], (len(odd), units.signs.shape[1], len(weights))
    )
    counts = units.drawn.sum(axis=1)
    freedom = (counts - 1.0)[None]
    used = counts == len(weights) if is_unbiased else counts > 0
    if has_controls and used[1:].any():  # the first are the ends
        effects, kept = _ridge_effects(
            odd[:, used], units.signs[used], units.drawn[used], shares[used], population
        )
        if not is_unbiased:
            freedom = freedom * kept
    controls = units.signs @ effects  # (G, U, D)
    residuals = (odd - controls) * units.drawn
    left = (residuals * shares).sum(axis=2)
    odd_means = left + controls @ population
    is_part = (counts < len(weights)) | is_random
    of_odd = (residuals - left[..., None]) * units.drawn
    base = even[:, :1]  # of all background rows
    differences = (even - base) * units.drawn
    even_left = (differences * shares).sum(axis=2)
    even_means = even_left + base @ population
    of_even = (differences - even_left[..., None]) * units.drawn
    remaining = np.maximum(1 - units.drawn @ population, float(is_random))
    in_squares = population * len(weights)  # rows of hardly any weight may be far off
    # The covariance has the larger number of degrees of freedom: it may not exceed variances.
    even_freedom = (counts - 1.0)[None]
    errors = (
        remaining * _variances((one * other) @ in_squares, of_pair, shares, is_part)
        for one, other, of_pair in (
            (of_odd, of_odd, freedom),
            (of_even, of_even, even_freedom),
            (of_odd, of_even, even_freedom),
        )
    )
    return units.arranged(odd_means, even_means, *errors)


def _variances(
    squares: FloatArray, freedom: FloatArray, shares: FloatArray, are_pooled: BoolArray
) -> FloatArray:
    """Return the variances of means, (G, U), from the sums of squared residuals, (G, U).

    Where a unit has few degrees of freedom, (1 or G, U), the spread of those pooled counts, too.
    """
    of_pooled = (squares[:, are_pooled]).sum(axis=1, keepdims=True)
    total = (freedom * are_pooled).sum(axis=1, keepdims=True)
    pooled = of_pooled / np.where(total > 0, total, 1.0)
    spread = (squares + POOLED * pooled) / (freedom + POOLED)
    return spread * (shares**2).sum(axis=1)


def _ridge_effects(
    odd: FloatArray,
    signs: FloatArray,
    drawn: BoolArray,
    shares: FloatArray,
    population: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return how much the main effects of each background row differ from their means, (G, M, D).

    And the squared residuals of each unit that this leaves, over squared errors, (G, U).

    Least squares of the odd parts on main effects of each background row, with a penalty, and on a
    mean of each coalition over the rows that it was drawn with. The penalty of each game has the
    least squared residuals left out.
    """
    regression = _Regression(odd, signs, drawn, shares, population)
    has_others = drawn.sum(axis=1) > 1  # a residual beside none is 0
    has_others[0] = False  # the ends
    of_others = np.maximum(1 - shares, _LEAST_LEFT)  # the others' share of the mean
    losses, kept = [], []
    for penalty in _PENALTIES:
        left = np.maximum(1 - regression.leverages(penalty), _LEAST_LEFT)
        # Other rows are predicted with the errors of their effects, too.
        kept.append(left**2 / (2 - left))
        effects = regression.solved(np.full(len(odd), penalty), *_TO_CHOOSE)
        left_out = regression.within(odd - signs @ effects) / (left[:, None] * of_others)
        losses.append((left_out[:, has_others] ** 2 @ population).sum(axis=1))
    best = np.argmin(losses, axis=0)
    return regression.solved(np.array(_PENALTIES)[best], *_TO_SOLVE), np.array(kept)[best]


class _Regression:
    """A ridge regression for each background row, with means of coalitions that all rows share.

    Units are drawn with some of the rows, each. So what the normal equations of a row are is nearly
    a multiple of what they are for all rows together, in whose axes conjugate gradients need few
    steps.
    """

    def __init__(
        self,
        odd: FloatArray,
        signs: FloatArray,
        drawn: BoolArray,
        shares: FloatArray,
        population: FloatArray,
    ) -> None:
        self.drawn, self.shares, self.population = drawn, shares, population
        self.weights = (drawn * (1 - shares)).mean(axis=1)  # less what the means take
        energies, self.axes = np.linalg.eigh((signs * self.weights[:, None]).T @ signs)
        self.energies = np.maximum(energies, 0.0)
        self.rotated = signs @ self.axes
        self.squares = self.rotated**2
        self.target = self.rotated.T @ self.within(odd)

    def within(self, values: FloatArray) -> FloatArray:
        """Return values less the means of their units, (G, U, D), 0 where nothing is drawn."""
        values = values * self.drawn
        return values - self.drawn * (values * self.shares).sum(axis=2, keepdims=True)

    def solved(self, penalties: FloatArray, n_steps: int, tolerance: float) -> FloatArray:
        """Return the effects, (G, M, D), at a penalty of each game, (G,)."""
        penalties = penalties[:, None, None]
        scales = 1 / (self.energies[:, None] + penalties)

        def product(one: FloatArray, other: FloatArray) -> FloatArray:
            return ((one * other) @ self.population).sum(axis=1)[:, None, None]

        effects, left = np.zeros_like(self.target), self.target
        step = scales * left
        size = product(left, step)
        enough = tolerance * size
        for _ in range(n_steps):
            if (size <= enough).all():
                break
            moved = self.rotated.T @ self.within(self.rotated @ step) + penalties * step
            # A game whose equations are solved stays as it is, whatever the others need.
            length = np.where(size > enough, size / np.maximum(product(step, moved), 1e-300), 0.0)
            effects, left = effects + length * step, left - length * moved
            scaled = scales * left
            before, size = size, product(left, scaled)
            step = scaled + size / np.maximum(before, 1e-300) * step
        effects = self.axes @ effects
        return effects - (effects @ self.population)[..., None]

    def leverages(self, penalty: float) -> FloatArray:
        """Return the leverages of units in the regression of a row that they are drawn with, (U,).

        The inverse of normal equations of random rows is on average that of their mean, less a
        share that the rows themselves take: a fixed point of one number. What the means of few
        rows take is not in it: the other way round, intervals are too narrow.
        """
        taken = 0.0
        for _ in range(_FIXED_POINT):
            others = self.squares @ (1 / (self.energies / (1 + taken) + penalty))
            taken = float(self.weights @ others / np.maximum(self.weights.sum(), 1e-300))
        return others / (1 + others)
