"""Coalitions that are drawn independently by the Shapley kernel, and means over them.

The sim-semivalue and unbiased least squares use them (Zhang et al., 2023, Table 1): both are means
of a fixed linear function of each draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..array_types import (
    AttributionArray,
    CoalitionArray,
    FloatArray,
    ValueArray,
)
from ..coalitions.tables import kernel_mass, random_subsets
from .protocol import DesignRequest, Solution
from .units import UnitDesign, select_within_budget


@dataclass(frozen=True)
class CoalitionDraws(UnitDesign):
    """Independent draws, each with its complement if they are paired: S is 2, else 1.

    Attributes
    ----------
    members : array, (n, M)
        The drawn coalitions.
    """

    members: CoalitionArray

    unit_fields: ClassVar[tuple[str, ...]] = ("positions", "members")

    @property
    def is_paired(self) -> bool:
        """Whether each coalition is drawn with its complement."""
        return bool(self.positions.shape[1] == 2)

    def targets(self, values: ValueArray, centred: bool) -> FloatArray:
        """Return the target of each draw, (R, n, K).

        It is the value of the coalition, or for pairs half the difference of the two values. With
        `centred`, the straight line from v(∅) to v(N), as a function of the coalition size, is
        subtracted from the values. The expectation does not change, because the coefficients of a
        size sum to 0. The variance is smaller, because it no longer includes the level and the
        slope of the game.
        """
        sizes = self.members.sum(axis=1)
        targets: FloatArray = np.take(values, self.positions[:, 0], axis=1)
        if self.is_paired:
            targets = (targets - np.take(values, self.positions[:, 1], axis=1)) / 2
        if not centred:
            return targets
        share = (sizes / self.members.shape[1])[:, None]
        total = (values[:, 1] - values[:, 0])[:, None]
        line = (share - 0.5) * total if self.is_paired else values[:, :1] + share * total
        centred_targets: FloatArray = targets - line
        return centred_targets


def draw_by_kernel(request: DesignRequest, paired: bool) -> CoalitionDraws:
    """Draw coalitions by the Shapley kernel, with replacement, until the budget is spent."""
    n_players, unit_size = request.n_players, 2 if paired else 1
    # Duplicates are free, so offer more draws than the budget covers without duplicates.
    n_offered = 4 * (request.budget - 2) // unit_size
    all_sizes = np.arange(1, n_players)
    sizes = request.rng.choice(all_sizes, size=n_offered, p=kernel_mass(n_players))
    members = random_subsets(sizes, n_players, request.rng)
    return select_draws(request, members, paired)


def select_draws(request: DesignRequest, members: CoalitionArray, paired: bool) -> CoalitionDraws:
    """Return the first draws within the budget, with the complements of `members` if `paired`."""
    units = np.stack([members, ~members], axis=1) if paired else members[:, None]
    design = select_within_budget(request, units)
    return CoalitionDraws(design.table, design.positions, members[: len(design.positions)])


def mean_of_draws(
    coefficients: FloatArray, targets: FloatArray, bias: FloatArray
) -> tuple[AttributionArray, AttributionArray]:
    """Return the mean over draws of coefficient times target, plus `bias`, and its error.

    Parameters
    ----------
    coefficients : array, (n, M)
        The factor of a draw's target for each player.
    targets : array, (R, n, K)
        The targets.
    bias : array, (R, 1, K)
        The constant that is added to every player.
    """
    n = len(coefficients)
    means: FloatArray = coefficients.T @ targets / n
    if n < 2:
        return means + bias, np.full_like(means, np.nan)
    squares: FloatArray = (coefficients**2).T @ targets**2 / n
    # Smaller differences are rounding errors of a variance of 0.
    variances = np.where(squares - means**2 > 1e-14 * squares, squares - means**2, 0.0)
    return means + bias, np.sqrt(variances / (n - 1))


def solution_by_draws(
    draws: CoalitionDraws, coefficients: FloatArray, values: ValueArray, centred: bool
) -> Solution:
    """Return the mean over the draws plus each player's equal share of v(N) − v(∅)."""
    equal = (values[:, 1:2] - values[:, :1]) / draws.members.shape[1]  # (R, 1, K)
    means_and_errors = mean_of_draws(coefficients, draws.targets(values, centred), equal)
    return Solution(*means_and_errors, len(coefficients) - 1)
