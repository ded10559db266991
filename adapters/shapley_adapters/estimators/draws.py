"""Values that are means of draws: of background rows, or of the answers of a random model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array_types import BoolArray, CoalitionArray, FloatArray, ValueArray
from ..coalitions.tables import CoalitionTable, complements
from .background_means import DrawnUnits, background_means
from .random_answers import repeated_means
from .value_errors import ValueErrors


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
        by_draw = self.by_draw(drawn_values)
        n_rows, n_coalitions = by_draw.shape[:2]
        if self.has_one_full_value:
            drawn = drawn.copy()
            drawn[:, 1] = True
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

    def by_draw(self, drawn_values: ValueArray) -> ValueArray:
        """Return values, (R, C, D · K), as (R, C, D, K); one full value counts in all draws."""
        by_draw = drawn_values.reshape(*drawn_values.shape[:2], self.n_draws, -1)
        if self.has_one_full_value:
            by_draw = by_draw.copy()
            by_draw[:, 1] = by_draw[:, 1, :1]
        return by_draw

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
        units = DrawnUnits(games, coalitions, drawn, first, second)
        freedom = np.inf
        if self.is_background:
            found = background_means(
                units,
                np.full(n_draws, 1.0) if self.weights is None else self.weights,
                is_unbiased=self.is_unbiased,
                is_random=self.is_random,
                has_controls=self.has_controls,
            )
        else:
            found, freedom = repeated_means(units)
        mean, odd, even, covariances = (
            array.reshape(n_rows, n_outputs, n_coalitions).transpose(0, 2, 1) for array in found
        )
        return mean, ValueErrors(odd, even, covariances, freedom)
