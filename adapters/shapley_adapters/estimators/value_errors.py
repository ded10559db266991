"""Values that are means of draws: of background rows, or of the answers of a random model.

A coalition's value is a mean over some draws. Where the draws are rows of a finite background, the
mean over all of them is wanted, and background rows differ much more in the main effects of the
players than in interactions. So main effects of each background row are control variates: with
A_b(S) = Σ_i z_i δ_ib for the odd part of the game v_b of row b, z_i = ±1 for the players in S and
all others, and K rows evaluated of B,

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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, pack, size_weights

if TYPE_CHECKING:
    from typing_extensions import Self

SparseMatrix: TypeAlias = Any
"""A sparse matrix of SciPy, in rows."""

_PENALTIES = (0.1, 1.0, 10.0)
"""Penalties of the ridge regressions, among which leave-one-out residuals choose for each row."""

_STEPS = 4
"""Steps between the main effects of background rows and the means of coalitions. More change
little."""

_POOLED = 10.0
"""A variance from few draws is shrunk to the mean variance, which counts as so many draws."""

_NUMBERS = 2**22
"""Numbers of the regressors that are in memory at a time."""

_SHARE_OF_FREEDOM = 0.5
"""Degrees of freedom of the variances of a random model's answers, for each answer beyond the first
of a coalition, or for each label. Where noise depends on the coalition, squares differ more than
those of equal noise: measured on noise that grows with the coalition, .3 to .5."""

_LEAST_RATIO = 0.1
"""Least variance of an answer over the mean variance, by a regression that may go below 0."""

_LEAST_FREEDOM = 0.3
"""Least degrees of freedom of the residuals of a coalition that has several draws."""

_LEAST_LEFT = 0.05
"""Least share of a residual that a regression leaves, for the residual of one left out."""


@dataclass(frozen=True)
class ValueErrors:
    """Variances of the errors of values.

    Attributes
    ----------
    odd, even : arrays, (R, C, K)
        Those of the half difference and of the half sum of a coalition's value and that of its
        complement. Half of the variance of the value each where the two are independent.
    covariances : array, (R, C, K), optional
        Covariances of the two; for the complement, they have the other sign. 0 where None.
    freedom : float
        Degrees of freedom of the variances, of random models; infinite for background rows.
    """

    odd: FloatArray
    even: FloatArray
    covariances: FloatArray | None = None
    freedom: float = np.inf

    @property
    def variances(self) -> FloatArray:
        """Variances of the values, (R, C, K)."""
        parts = self.odd + self.even
        return parts if self.covariances is None else parts + 2 * self.covariances

    def first(self, n_coalitions: int) -> Self:
        """Return those of the first coalitions."""
        return self._changed(lambda part: part[:, :n_coalitions])

    def subset_rows(self, indices: IntArray | slice) -> Self:
        """Return those of some rows."""
        return self._changed(lambda part: part[indices])

    def times(self, factors: FloatArray) -> Self:
        """Return the variances of values times factors, (R, 1, K)."""
        return self._changed(lambda part: part * factors**2)

    def _changed(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        """Return the same with each array changed."""
        covariances = self.covariances
        return replace(
            self,
            odd=change(self.odd),
            even=change(self.even),
            covariances=None if covariances is None else change(covariances),
        )

    def sum_variances(self, weights: SparseMatrix, coalitions: CoalitionArray) -> FloatArray:
        """Return the variances of weighted sums of the values, (R, n, K).

        Those of coalitions and complements with weights a and a' have the variances
        a² var v + a'² var v' + 2 a a' cov(v, v'). All others are independent.

        Parameters
        ----------
        weights : sparse matrix, (n, C)
            The weight of each value in each sum.
        coalitions : array, (C, M)
            The coalitions of the values, those of no and of all players first.
        """
        first, second = complements(coalitions)
        one, other = first[second >= 0], second[second >= 0]
        shared = weights[:, one].multiply(weights[:, other])
        of_pairs = 2 * (self.even - self.odd)[:, one]
        return weighted_sums(weights.power(2), self.variances) + weighted_sums(shared, of_pairs)

    def beside_spread(
        self,
        units: SparseMatrix,
        sums: SparseMatrix,
        certain: SparseMatrix,
        coalitions: CoalitionArray,
    ) -> FloatArray:
        """Return the variances of sums that the spread between units does not show, (R, n, K).

        The spread holds the errors that each unit has by itself. The error of a value that enters
        several units moves all of them alike.

        Parameters
        ----------
        units : sparse matrix, (U, C)
            The weight of each value in each unit.
        sums : sparse matrix, (n, U)
            The weight of each unit in each sum.
        certain : sparse matrix, (n, C)
            The weight of each value in each sum beside the units.
        coalitions : array, (C, M)
            The coalitions of the values, those of no and of all players first.
        """
        own = weighted_sums(sums.power(2), self.sum_variances(units, coalitions))
        whole = self.sum_variances((sums @ units + certain).tocsr(), coalitions)
        return np.maximum(whole - own, 0.0)

    def of_ends(self, n_players: int) -> FloatArray:
        """Return what the errors of the first two values add to the variances, (R, 1, K).

        The players share v(N) − v(∅), twice the odd part of all players.
        """
        return 4 * self.odd[:, :1] / n_players**2

    def enumeration_variances(self, coalitions: CoalitionArray) -> FloatArray:
        """Return the variances of the Shapley values from all coalitions, (R, M, K).

        A coalition and its complement have opposite weights w in φ_i, so that φ_i is the sum of
        2 w times the odd parts of all pairs, of which the coalitions hold each twice.
        """
        present, absent = size_weights(coalitions.shape[1])
        sizes = coalitions.sum(axis=1)
        weights = np.where(coalitions, present[sizes][:, None], absent[sizes][:, None])
        variances: FloatArray = 2 * (weights**2).T @ self.odd
        return variances


def weighted_sums(weights: SparseMatrix, values: FloatArray) -> FloatArray:
    """Return the sums of values, (R, C, K), with the weights of a sparse matrix, (n, C)."""
    n_rows, n_coalitions, n_outputs = values.shape
    flat = values.transpose(1, 0, 2).reshape(n_coalitions, n_rows * n_outputs)
    sums: FloatArray = (weights @ flat).reshape(-1, n_rows, n_outputs).transpose(1, 0, 2)
    return np.ascontiguousarray(sums)


@dataclass(frozen=True)
class Draws:
    """Which draws each coalition has, and how they are averaged.

    Attributes
    ----------
    n_draws : int
        D, the background rows, or the most evaluations of a coalition.
    is_background : bool
        Whether the draws are background rows, of which all together are wanted.
    weights : array, (D,), or None
        Weight of each background row, 1 in all; None for equal weights.
    is_unbiased : bool
        Whether the control variates depend on no random draws, so that means stay unbiased: they
        are those of coalitions evaluated on the whole background.
    is_random : bool
        Whether the model answers at random, so that even all background rows leave an error.
    has_one_full_value : bool
        Whether only the first draw of the value of all players is given: no background row counts.
    has_controls : bool
        Whether main effects of background rows are control variates.
    """

    n_draws: int
    is_background: bool
    weights: FloatArray | None = None
    is_unbiased: bool = False
    is_random: bool = False
    has_one_full_value: bool = False
    has_controls: bool = True

    def means(
        self, drawn_values: ValueArray, table: CoalitionTable, drawn: BoolArray
    ) -> tuple[ValueArray, ValueErrors]:
        """Return the means, (R, C, K), and the variances of their errors.

        Parameters
        ----------
        drawn_values : array, (R, C, D · K)
            The values of all draws; those that are not drawn may be any number.
        table : CoalitionTable
            Their coalitions, those of no and of all players first, which have all draws.
        drawn : array, (1 or R, C, D)
            Which are drawn.
        """
        n_rows, n_coalitions, n_numbers = drawn_values.shape
        n_outputs = n_numbers // self.n_draws
        by_draw = drawn_values.reshape(n_rows, n_coalitions, self.n_draws, n_outputs)
        if self.has_one_full_value:  # it counts as the same in all draws
            by_draw, drawn = by_draw.copy(), drawn.copy()
            by_draw[:, 1], drawn[:, 1] = by_draw[:, 1, :1], True
        coalitions = table.coalitions[:, :n_coalitions]
        if len(coalitions) == 1:
            return self._shared(by_draw, coalitions[0], drawn[0])
        parts = [
            self._shared(by_draw[row : row + 1], coalitions[row], drawn[row])
            for row in range(n_rows)
        ]
        means = np.concatenate([mean for mean, _ in parts])
        arrays = [(errors.odd, errors.even, errors.covariances) for _, errors in parts]
        freedom = min(errors.freedom for _, errors in parts)
        odd, even, covariances = map(np.concatenate, zip(*arrays, strict=True))
        return means, ValueErrors(odd, even, covariances, freedom)

    def ends(self, drawn_values: ValueArray) -> ValueArray:
        """Return the means of coalitions that have all draws, (R, C, K), of (R, C, D · K)."""
        by_draw = drawn_values.reshape(*drawn_values.shape[:2], self.n_draws, -1)
        means: FloatArray = np.average(by_draw, axis=2, weights=self.weights)
        if self.has_one_full_value:
            means[:, 1] = by_draw[:, 1, 0]
        return means

    def _shared(
        self, values: ValueArray, coalitions: CoalitionArray, drawn: BoolArray
    ) -> tuple[ValueArray, ValueErrors]:
        """Return means and errors for coalitions, (C, M), that all rows share."""
        n_rows, n_coalitions, n_draws, n_outputs = values.shape
        if self.is_background and drawn.all() and not self.is_random:
            means = self.ends(values.reshape(n_rows, n_coalitions, -1))
            return means, ValueErrors(*np.zeros((3, *means.shape)))
        games = values.transpose(0, 3, 1, 2).reshape(-1, n_coalitions, n_draws)  # (G, C, D)
        first, second = complements(coalitions, drawn if self.is_background else None)
        of_units = _Units(games, coalitions, drawn, first, second)
        freedom = np.inf
        if self.is_background:
            found = self._background(of_units)
        else:
            found, freedom = _repeated(of_units)
        mean, odd, even, covariances = (
            array.reshape(n_rows, n_outputs, n_coalitions).transpose(0, 2, 1) for array in found
        )
        return mean, ValueErrors(odd, even, covariances, freedom)

    def _background(self, units: _Units) -> tuple[FloatArray, ...]:
        """Return means over the background, the variances of both parts and their covariance."""
        weights = self.weights if self.weights is not None else np.full(self.n_draws, 1.0)
        shares = units.drawn * weights
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)  # (U, D)
        population = weights / weights.sum()
        odd, even = units.parts()
        effects = (odd[:, 0] - (odd[:, 0] @ population)[:, None])[:, None]  # (G, 1, D)
        effects = np.broadcast_to(
            effects / units.signs.shape[1], (len(odd), units.signs.shape[1], self.n_draws)
        )
        counts = units.drawn.sum(axis=1)
        freedom = (counts - 1.0)[None]
        used = counts == self.n_draws if self.is_unbiased else counts > 0
        if self.has_controls and used[1:].any():  # the first are the ends
            effects, spent = _ridge_effects(
                odd[:, used], units.signs[used], units.drawn[used], shares[used], population
            )
            if not self.is_unbiased:
                freedom = np.maximum(freedom - spent, _LEAST_FREEDOM * (counts > 1))
        controls = units.signs @ effects  # (G, U, D)
        residuals = (odd - controls) * units.drawn
        left = (residuals * shares).sum(axis=2)
        odd_means = left + controls @ population
        is_part = (counts < self.n_draws) | self.is_random
        of_odd = (residuals - left[..., None]) * units.drawn
        base = even[:, :1]  # of all background rows
        differences = (even - base) * units.drawn
        even_left = (differences * shares).sum(axis=2)
        even_means = even_left + base @ population
        of_even = (differences - even_left[..., None]) * units.drawn
        remaining = np.maximum(1 - units.drawn @ population, float(self.is_random))
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


@dataclass(frozen=True)
class _Units:
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


def _repeated(units: _Units) -> tuple[tuple[FloatArray, ...], float]:
    """Return the means of independent draws, the variances of both parts and their covariance.

    And the degrees of freedom of these. Answers are most of all equal by chance where they are one
    of two labels. Their variance then follows from the chance of each, which all answers tell.
    """
    drawn = units.drawn_coalitions
    shares = drawn / np.maximum(drawn.sum(axis=1, keepdims=True), 1)
    means = (units.games * shares).sum(axis=2)
    around = (units.games - means[..., None]) * drawn
    freedom = np.maximum(drawn.sum(axis=1) - 1.0, 0.0)
    spread = (around**2).sum(axis=2)  # (G, C)
    expected = _variances_by_players(spread, freedom, units.coalitions)
    n_known = np.full(len(units.games), freedom[2:].sum())
    for game, answers in enumerate(units.games):
        low, high = answers[drawn].min(), answers[drawn].max()
        if low < high and np.isin(answers[drawn], (low, high)).all():
            n_known[game] = drawn[2:].sum()
            chances = _chances(drawn, (means[game] - low) / (high - low), units.coalitions)
            expected[game] = (high - low) ** 2 * chances * (1 - chances)
    pooled = np.where(np.arange(len(freedom)) < 2, 1.0, _POOLED)  # the ends have many answers
    each = (spread + pooled * expected) / (freedom + pooled)
    variances = each * (shares**2).sum(axis=1)
    of_first, of_second = variances[:, units.first], variances[:, units.second]
    is_paired = units.second >= 0
    odd = np.where(is_paired, (of_first + of_second) / 4, of_first)
    one, other = means[:, units.first], means[:, units.second]
    even = np.where(is_paired, (one + other) / 2, 0.0)
    known = max(1.0, _SHARE_OF_FREEDOM * float(n_known.min()))
    covariances = (of_first - of_second) / 4
    return units.arranged(one - even, even, odd, odd, covariances), known


def complements(
    coalitions: CoalitionArray, drawn: BoolArray | None = None
) -> tuple[IntArray, IntArray]:
    """Return the indices of one coalition of each pair of complements, and of the other or −1.

    With draws, (C, D), the two of a pair have the same.

    Those of coalitions, (C, M), of which that of no player is the first, that of all the second.
    The pair of these two comes first, with all players as the first of it.
    """
    positions = {key.tobytes(): index for index, key in enumerate(pack(coalitions))}
    others = np.array([positions.get(key.tobytes(), -1) for key in pack(~coalitions)])
    if drawn is not None:
        others[(drawn != drawn[others]).any(axis=1)] = -1
    others[:2] = 1, 0
    indices = np.arange(len(others))
    first = np.flatnonzero((others < 0) | (others > indices))
    first = np.concatenate([[1], first[first > 1]])
    return first, others[first]


def _variances_by_players(
    squares: FloatArray, freedom: FloatArray, coalitions: CoalitionArray
) -> FloatArray:
    """Return the variance of an answer that is expected for each coalition, (G, C).

    Noise may grow with the players that are present: a ridge regression of the sums of squares,
    (G, C), over the mean variance. The square of a normal error has a relative variance of 2, which
    is the penalty if each of M players may change the variance by its M-th part.
    """
    is_inner = np.arange(len(freedom)) >= 2  # the ends have many answers, and are unlike others
    if freedom[is_inner].any():
        freedom = freedom * is_inner
    mean = (squares * (freedom > 0)).sum(axis=1, keepdims=True) / max(1.0, float(freedom.sum()))
    relative = np.divide(squares, mean, out=np.zeros_like(squares), where=mean > 0)
    ratios = relative / np.where(freedom > 0, freedom, 1.0)
    expected: FloatArray = mean * np.maximum(
        1 + main_effects(ratios - 1, freedom, coalitions), _LEAST_RATIO
    )
    return expected


def _chances(drawn: BoolArray, shares: FloatArray, coalitions: CoalitionArray) -> FloatArray:
    """Return the chance of the larger of two answers that is expected for each coalition, (C,).

    Answers that are equal by chance do not make it 0 or 1: each player takes one answer of those
    that tell the chances, to which half an answer of both kinds is added.

    Parameters
    ----------
    drawn : array, (C, D)
        The answers of each coalition.
    shares : array, (C,)
        The share of the larger one among them.
    """
    counts = drawn.sum(axis=1).astype(float)
    inner = counts * (np.arange(len(counts)) >= 2)
    mean = float(inner @ shares / max(1.0, inner.sum()))
    found = mean + main_effects((shares - mean)[None], inner, coalitions)[0]
    number = inner.sum() / (coalitions.shape[1] + 1)
    chances: FloatArray = (number * np.clip(found, 0.0, 1.0) + 0.5) / (number + 1)
    return chances


def most_surprising(values: ValueArray, coalitions: CoalitionArray, counts: IntArray) -> IntArray:
    """Return the inner coalitions of each row, those first whose values differ most from a fit.

    Parameters
    ----------
    values : array, (R, C, K)
    coalitions : array, (R, C, M)
    counts : array, (R,)
        How many first coalitions each row has.

    Returns
    -------
    array, (R, C')
    """
    order = []
    for of_row, members, count in zip(values, coalitions, counts, strict=True):
        inner = of_row[2:count].T  # (K, C − 2)
        inner = inner / max(float(np.abs(inner).max(initial=0.0)), 1e-300)  # squares overflow
        around = inner - inner.mean(axis=1, keepdims=True)
        left = around - main_effects(around, np.ones(inner.shape[1]), members[2:count])
        sizes = np.sqrt((around**2).mean(axis=1, keepdims=True))
        relative = np.divide(np.abs(left), sizes, out=np.zeros_like(left), where=sizes > 0)
        order.append(2 + np.argsort(-relative.sum(axis=0), kind="stable"))
    n_least = min(map(len, order))
    return np.array([of_row[:n_least] for of_row in order])


def main_effects(
    targets: FloatArray, weights: FloatArray, coalitions: CoalitionArray
) -> FloatArray:
    """Return a ridge regression of targets, (G, C), with weights, (C,), on the players present.

    The penalty is for targets with a variance of 2 where their expectation is 1.
    """
    signs = np.where(coalitions, 1.0, -1.0)
    n_players = signs.shape[1]
    weighted = signs * weights[:, None]
    moments = weighted.T @ signs + 2.0 * n_players * np.eye(n_players)
    fitted: FloatArray = (signs @ np.linalg.solve(moments, weighted.T @ targets.T)).T
    return fitted


def _variances(
    squares: FloatArray, freedom: FloatArray, shares: FloatArray, are_pooled: BoolArray
) -> FloatArray:
    """Return the variances of means, (G, U), from the sums of squared residuals, (G, U).

    Where a unit has few degrees of freedom, (1 or G, U), the spread of those pooled counts, too.
    """
    of_pooled = (squares[:, are_pooled]).sum(axis=1, keepdims=True)
    total = (freedom * are_pooled).sum(axis=1, keepdims=True)
    pooled = of_pooled / np.where(total > 0, total, 1.0)
    spread = (squares + _POOLED * pooled) / (freedom + _POOLED)
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

    And the degrees of freedom that this takes from the residuals of each unit, (G, U).

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
        residuals = _residuals(odd, signs @ effects, drawn, shares, population)
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
    losses, spent = [], []
    for penalty, leverages in zip(_PENALTIES, squares, strict=True):
        effects = step(start, np.full(len(odd), penalty))
        # More than the leverages: effects have errors, too, beyond what they take from residuals.
        spent.append((leverages * (2 - leverages) * drawn).sum(axis=1))
        left = np.maximum(1 - leverages - shares, _LEAST_LEFT)
        controls = signs @ effects
        means = ((odd - controls) * drawn * shares).sum(axis=2, keepdims=True)
        left_out = (odd - controls - means) * drawn / left
        losses.append((left_out[:, 1:] ** 2).sum(axis=(1, 2)))
    best = np.argmin(losses, axis=0)
    penalties = np.array(_PENALTIES)[best]
    effects = start
    for _ in range(_STEPS):
        effects = step(effects, penalties)
    return effects, np.array(spent)[best]


def _residuals(
    odd: FloatArray,
    controls: FloatArray,
    drawn: BoolArray,
    shares: FloatArray,
    population: FloatArray,
) -> FloatArray:
    """Return the odd parts less the means over the background, where they are drawn, (G, U, D)."""
    means = ((odd - controls) * drawn * shares).sum(axis=2) + controls @ population
    residuals: FloatArray = (odd - means[..., None]) * drawn
    return residuals
