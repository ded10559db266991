"""Coalitions drawn independently by the Shapley kernel, and means over them.

This is what the sim-semivalue and the unbiased form of least squares share (Zhang et al., 2023,
Table 1): both are a fixed linear function of each draw, averaged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array_types import (
    AttributionArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ValueArray,
)
from ..coalitions.sizes import kernel_mass, random_subsets
from ..coalitions.tables import pack, select_units, units_within
from .protocol import Design, DesignRequest, Solution


@dataclass(frozen=True)
class CoalitionDraws(Design):
    """Independent draws, each with its complement where they are paired.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions, shared by all rows.
    positions : array, (n, S)
        Where the coalition of each draw, and its complement where S is 2, stand in the table.
    members : array, (n, M)
        The drawn coalitions.
    """

    positions: IntArray
    members: CoalitionArray

    @property
    def is_paired(self) -> bool:
        """Whether each draw comes with its complement."""
        return bool(self.positions.shape[1] == 2)

    def within(self, n_coalitions: int) -> CoalitionDraws:
        """Return the draws that the first coalitions of the table serve."""
        n = int(units_within(self.positions[None], n_coalitions)[0])
        return CoalitionDraws(self.table.first(n_coalitions), self.positions[:n], self.members[:n])

    def targets(self, values: ValueArray, centred: bool) -> FloatArray:
        """Return what each draw says, (R, n, K): its value, or half its distance to its pair's.

        With `centred`, the value that a coalition of its size would have if only the number of
        players mattered is taken off first. That changes no expectation, since the coefficients
        of a size add up to nothing, but takes the level of the game and its slope out of the
        spread.
        """
        sizes = self.members.sum(axis=1)
        targets: FloatArray = values[:, self.positions[:, 0]]
        if self.is_paired:
            targets = (targets - values[:, self.positions[:, 1]]) / 2
        if not centred:
            return targets
        share = (sizes / self.members.shape[1])[:, None]
        rise = (values[:, 1] - values[:, 0])[:, None]
        level = (share - 0.5) * rise if self.is_paired else values[:, :1] + share * rise
        centred_targets: FloatArray = targets - level
        return centred_targets


def draw_by_kernel(request: DesignRequest, paired: bool) -> CoalitionDraws:
    """Draw coalitions by the Shapley kernel, with replacement, until the budget is spent."""
    n_players, unit_size = request.n_players, 2 if paired else 1
    # Duplicates are free, so offer more draws than the budget pays for at full price.
    n_offered = 4 * (request.budget - 2) // unit_size
    all_sizes = np.arange(1, n_players)
    sizes = request.rng.choice(all_sizes, size=n_offered, p=kernel_mass(n_players))
    members = random_subsets(sizes, n_players, request.rng)
    units = np.stack([members, ~members], axis=1) if paired else members[:, None]
    selection = select_units(request.known, pack(units)[None], request.budget)
    n = selection.n_units[0]
    return CoalitionDraws(selection.table, selection.positions[0, :n], members[:n])


def mean_of_draws(
    coefficients: FloatArray, targets: FloatArray, bias: FloatArray
) -> tuple[AttributionArray, AttributionArray]:
    """Return the mean of coefficient times target over the draws plus `bias`, and its error.

    Parameters
    ----------
    coefficients : array, (n, M)
        What one unit of a draw's target adds to each player.
    targets : array, (R, n, K)
        The targets.
    bias : array, (R, 1, K)
        What every player gets.
    """
    n = len(coefficients)
    means: FloatArray = coefficients.T @ targets / n
    if n < 2:
        return means + bias, np.full_like(means, np.nan)
    squares: FloatArray = (coefficients**2).T @ targets**2 / n
    # What rounding leaves of a variance that is nothing, is nothing.
    variances = np.where(squares - means**2 > 1e-14 * squares, squares - means**2, 0.0)
    return means + bias, np.sqrt(variances / (n - 1))


def solution_by_draws(
    draws: CoalitionDraws, coefficients: FloatArray, values: ValueArray, centred: bool
) -> Solution:
    """Return the mean over the draws, to which every player's equal share is added."""
    equal = (values[:, 1:2] - values[:, :1]) / draws.members.shape[1]  # (R, 1, K)
    means_and_errors = mean_of_draws(coefficients, draws.targets(values, centred), equal)
    return Solution(*means_and_errors, len(coefficients) - 1)
