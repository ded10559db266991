"""The estimator that explains from values of single background rows, by one Gaussian process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ...array_types import BoolArray, FloatArray, IntArray, ValueArray
from ...coalitions.tables import complements, pack, select_units, units_within
from ...errors import InvalidArgumentError
from ..protocol import Design, DesignRequest, Estimator, Operations, Solution
from ..value_errors import ValueErrors
from .background_process import (
    FIT_PARTS,
    FIT_STEPS,
    MOST_INDUCING,
    BackgroundProcess,
    Levels,
    Parts,
    parts_to_fit,
)
from .estimator import prior_shares

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
"""Multiples of it, without their whole part, are evenly spread from 0 to 1 (Weyl)."""

_LEAST_FREEDOM = 2.0
"""Least degrees of freedom of standard errors. These are the parts for each weight that is fitted:
with 24 to 143 parts of 12 players, Student's distribution with so many has its coverage."""


@dataclass(frozen=True, kw_only=True)
class DrawnValues(ValueErrors):
    """Errors of values that are means of draws, with these draws.

    Attributes
    ----------
    draws : array, (R, C, D, K)
        The values for single background rows; any numbers where they are not drawn.
    drawn : array, (R, C, D)
        Which are drawn.
    levels : sequence of Levels
        The levels of the players of each row.
    is_random : bool
        Whether the model answers at random.
    """

    draws: ValueArray
    drawn: BoolArray
    levels: Sequence[Levels]
    is_random: bool = False

    def first(self, n_coalitions: int) -> Self:
        """Return those of the first coalitions."""
        draws, drawn = self.draws[:, :n_coalitions], self.drawn[:, :n_coalitions]
        return replace(super().first(n_coalitions), draws=draws, drawn=drawn)

    def subset_rows(self, indices: IntArray | slice) -> Self:
        """Return those of some rows."""
        return replace(
            super().subset_rows(indices),
            draws=self.draws[indices],
            drawn=self.drawn[indices],
            levels=[self.levels[row] for row in np.arange(len(self.levels))[indices]],
        )

    def at_scale(self, exponents: IntArray) -> Self:
        """Return those of the values times 2 to minus these powers, (R, 1, K)."""
        own = 0 if self.exponents is None else self.exponents
        draws = np.ldexp(self.draws, (own - exponents)[:, :, None])
        return replace(super().at_scale(exponents), draws=draws)


@dataclass(frozen=True)
class BackgroundDesign(Design):
    """Pairs of complements, each for one background row.

    Attributes
    ----------
    pairs : array, (U, 2)
        The two coalitions of each, as indices into the table. A pair may come several times.
    """

    pairs: IntArray

    @property
    def sharing_units(self) -> IntArray:
        """The two coalitions of a pair."""
        return self.pairs

    def within(self, n_coalitions: int) -> BackgroundDesign:
        """Return the pairs among the first coalitions."""
        n_pairs = int(units_within(self.pairs[None], n_coalitions)[0])
        return BackgroundDesign(self.table.first(n_coalitions), self.pairs[:n_pairs])


@dataclass(frozen=True)
class BackgroundRegression(Estimator[BackgroundDesign]):
    """The posterior of the Shapley values, given values of single background rows.

    Each pair of complements is evaluated for one background row, all of these in turn. Sizes of
    coalitions are equally likely, and a coalition may be drawn again. The estimate is the mean of a
    posterior, so that it is not unbiased. Efficiency holds exactly.

    Parameters
    ----------
    n_pairs, n_backgrounds : int
        The pairs to draw, and the background rows.
    """

    has_units: ClassVar[bool] = True

    n_pairs: int
    n_backgrounds: int

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one pair, and of the values of no and of all players."""
        del n_players, with_errors
        return 4

    def memory(self, n_players: int, budget: int) -> int:
        """Return the bytes of the covariances, and of those that the fit needs."""
        del budget
        n_inducing = min(self.n_pairs, MOST_INDUCING)
        return 8 * (8 * n_inducing**2 + n_players * 2**17)

    def operations(self, n_players: int, budget: int, n_outputs: int = 1) -> Operations:
        """Return those of the covariances, of the kernels and of the fit.

        Measured with 12 to 90 players and 10 to 1,000 background rows, from half a second on: at
        most twice more or less.
        """
        del budget
        n_parts = self.n_pairs + self.n_backgrounds
        covariances = 0.27 * n_parts * min(n_parts, MOST_INDUCING) ** 2
        kernels = 440.0 * n_parts * self.n_backgrounds * n_players
        fit = 130.0 * FIT_STEPS * min(n_parts, FIT_PARTS) ** 2 * n_players
        return Operations(0.0, n_outputs * (covariances + kernels + fit))

    def design(self, request: DesignRequest) -> BackgroundDesign:
        """Draw pairs; those beyond the budget of different coalitions are left out."""
        n_players, rng = request.n_players, request.rng
        sizes = rng.integers(1, n_players, size=self.n_pairs)
        ranks = rng.permuted(np.tile(np.arange(n_players), (self.n_pairs, 1)), axis=1)
        coalitions = ranks < sizes[:, None]
        keys = pack(np.stack([coalitions, ~coalitions], axis=1))
        # Of few players, some coalitions come often; the first different ones stay.
        _, first, of_pair = np.unique(
            keys.min(axis=1), axis=0, return_index=True, return_inverse=True
        )
        n_affordable = (request.budget - len(request.known)) // 2
        of_pair = of_pair.ravel()  # NumPy 2.0 returns a column
        is_kept = np.argsort(np.argsort(first))[of_pair] < n_affordable
        selection = select_units(request.known, keys[is_kept][None], request.budget)
        pairs = selection.positions[0, : selection.n_units[0]]
        return BackgroundDesign(selection.table, pairs.reshape(-1, 2))

    def solve(self, design: BackgroundDesign, values: ValueArray) -> Solution:
        """Refuse means: the background row of each value has to be known."""
        raise InvalidArgumentError(
            "BackgroundRegression needs the values of single background rows."
        )

    def solve_with_errors(
        self, design: BackgroundDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Compute posterior means and standard deviations from the draws in `errors`."""
        if not isinstance(errors, DrawnValues):
            return self.solve(design, values)
        n_rows, _, n_outputs = values.shape
        shape = n_rows, design.table.coalitions.shape[2], n_outputs
        means, standard_errors = np.zeros(shape), np.zeros(shape)
        freedom = np.zeros((n_rows, 1, 1))
        for row in range(n_rows):
            table = design.table.coalitions[min(row, len(design.table.coalitions) - 1)]
            means[row], standard_errors[row], n_parts = _posterior(
                table,
                errors.draws[row],
                errors.drawn[row],
                errors.levels[row],
                errors.is_random,
            )
            freedom[row] = max(_LEAST_FREEDOM, n_parts / shape[1])
        gaps = (values[:, 1] - values[:, 0])[:, None] - means.sum(axis=1, keepdims=True)
        means += gaps / shape[1]
        shares = prior_shares(means, standard_errors)
        solution = Solution(means, standard_errors, freedom, shares)
        return solution.with_variances(errors.variances_of_ends(shape[1]))


def _posterior(
    coalitions: BoolArray,
    draws: ValueArray,
    drawn: BoolArray,
    levels: Levels,
    is_random: bool,
) -> tuple[FloatArray, FloatArray, int]:
    """Return the attributions of a row, their standard errors, (M, K), and the number of parts."""
    n_backgrounds = drawn.shape[1]
    first, second = complements(coalitions)
    is_pair = (second >= 0) & (first > 1)  # no half of one, and not the ends
    first, second = first[is_pair], second[is_pair]
    of_pair, backgrounds = np.nonzero(drawn[first])
    # Draws of a pair are side by side, and single players have many. Hyperparameters are fitted to
    # the first parts, so these are evenly spread over all: otherwise the noise was up to a quarter
    # of what it is, and intervals were too narrow.
    order = np.argsort(np.arange(len(of_pair)) * _GOLDEN % 1.0)
    of_pair, backgrounds = of_pair[order], backgrounds[order]
    ends = (draws[1] - draws[0]) / 2  # (D, K)
    others = (draws[first[of_pair], backgrounds] - draws[second[of_pair], backgrounds]) / 2
    odd = np.concatenate([ends, others])
    parts = Parts(
        np.concatenate(
            [np.ones((n_backgrounds, levels.n_players), dtype=bool), coalitions[first[of_pair]]]
        ),
        np.concatenate([np.arange(n_backgrounds), backgrounds]),
        np.arange(len(odd)) < (0 if is_random else n_backgrounds),
    )
    fitted = parts_to_fit(len(odd), n_backgrounds)
    means, errors = np.zeros((2, levels.n_players, odd.shape[1]))
    for output, values in enumerate(odd.T):  # each by itself, as if it were the only one
        scale = np.sqrt((values[n_backgrounds:] ** 2).mean()) if len(others) else 0.0
        scale = scale or np.sqrt((values**2).mean()) or 1.0
        process, targets = BackgroundProcess(levels), values / scale
        process.fit(parts.subset(fitted), targets[fitted])
        mean, variances = process.attributions(parts, targets, fitted[-1] + 1)
        means[:, output], errors[:, output] = scale * mean, scale * np.sqrt(variances)
    return means, errors, len(odd)
