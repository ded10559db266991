"""Means of values over a background, from a part of its rows for each coalition.

Background rows differ much more in the main effects of the players than in interactions. So main
effects of each background row are control variates: with A_b(S) = Σ_i z_i δ_ib for the odd part of
the game v_b of row b, z_i = ±1 for the players in S and all others, and K rows evaluated of B,

    v̂(S) = mean over K of [v_b(S) − A_b(S)] + mean over B of A_b(S).

The δ_ib come from ridge regressions, one for each background row. Where means have to be unbiased,
they come from coalitions alone that are evaluated on the whole background. The variance of the
residuals among the K rows, with the factor 1 − K / B of sampling without replacement, is the
variance of the value.

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
        signs: FloatArray = np.where(self.coalitions[self.first], 1.0, -1.0)
        return signs

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

_STEPS = 4
"""Steps between the main effects of background rows and the means of coalitions. More change
little."""

_NUMBERS = 2**22
"""Numbers of the regressors that are in memory at a time."""

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
    # The covariance has the larger number of degrees of freedom: it may not exceed variances.
    even_freedom = (counts - 1.0)[None]
    errors = (
        remaining * _variances((one * other).sum(axis=2), of_pair, shares, is_part)
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
    variances: FloatArray = spread * (shares**2).sum(axis=1)
    return variances


def _ridge_effects(
    odd: FloatArray,
    signs: FloatArray,
    drawn: BoolArray,
    shares: FloatArray,
    population: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return how much the main effects of each background row differ from their means, (G, M, D).

    And the squared residuals of each unit that this leaves, over squared errors, (G, U).

    Each background row has a ridge regression of its own. Its targets are the odd parts, less the
    means over the rows that the same coalition was drawn with, which depend on the effects: both
    are improved in turn. The penalty of each game has the least squared residuals left out.
    """
    blocks = np.array_split(np.arange(drawn.shape[1]), -(-drawn.size * signs.shape[1] // _NUMBERS))

    def regressors(block: IntArray) -> FloatArray:
        of_block: FloatArray = drawn.T[block, :, None] * signs  # (D', U, M)
        return of_block

    energies, axes = np.linalg.eigh(
        np.concatenate([regressors(block).swapaxes(1, 2) @ signs for block in blocks])
    )

    def step(effects: FloatArray, penalties: FloatArray) -> FloatArray:
        controls = signs @ effects
        means = ((odd - controls) * drawn * shares).sum(axis=2) + controls @ population
        residuals = (odd - means[..., None]) * drawn  # (G, U, D)
        sums = (signs.T @ residuals).transpose(2, 1, 0)  # (D, M, G)
        scaled = (axes.swapaxes(1, 2) @ sums) / (energies[..., None] + penalties)
        new = (axes @ scaled).transpose(2, 1, 0)  # (G, M, D)
        centred: FloatArray = new - (new @ population)[..., None]
        return centred

    start = np.zeros((len(odd), signs.shape[1], drawn.shape[1]))
    squares = np.zeros((len(_PENALTIES), *drawn.shape))  # leverages at each penalty
    for block in blocks:
        rotated = (regressors(block) @ axes[block]) ** 2
        for index, penalty in enumerate(_PENALTIES):
            weights = 1 / (energies[block] + penalty)
            squares[index, :, block] = (rotated @ weights[..., None])[..., 0]
    has_others = drawn.sum(axis=1) > 1  # a residual beside none is 0
    has_others[0] = False  # the ends
    losses, kept = [], []
    for penalty, leverages in zip(_PENALTIES, squares, strict=True):
        effects = step(start, np.full(len(odd), penalty))
        left = np.maximum(1 - leverages, _LEAST_LEFT)
        # Other rows are predicted with the errors of their effects, too.
        shrunk = left**2 / (2 - left)
        kept.append((shrunk * drawn).sum(axis=1) / np.maximum(drawn.sum(axis=1), 1))
        controls = signs @ effects
        means = ((odd - controls) * drawn * shares).sum(axis=2, keepdims=True)
        of_others = np.maximum(1 - shares, _LEAST_LEFT)  # the others' share of the mean
        left_out = ((odd - controls - means) * drawn / (left * of_others))[:, has_others]
        losses.append((left_out**2).sum(axis=(1, 2)))
    best = np.argmin(losses, axis=0)
    penalties = np.array(_PENALTIES)[best]
    effects = start
    for _ in range(_STEPS):
        effects = step(effects, penalties)
    return effects, np.array(kept)[best]
