"""KernelSHAP with the exact matrix of its normal equations, which makes it unbiased."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arguments import checked_flag
from ...array_types import FloatArray, ValueArray
from ...coalitions.sizes import kernel_mass
from ..kernel_draws import CoalitionDraws, draw_by_kernel, solution_by_draws
from ..protocol import DesignRequest, Estimator, Solution


@dataclass(frozen=True)
class UnbiasedLeastSquares(Estimator[CoalitionDraws]):
    """Least squares with its matrix in expectation, Zhang et al., 2023, Eq. 30–32.

    Only the right-hand side E[1_S v(S)] is estimated, by the mean over draws; the matrix
    E[1_S 1_Sᵀ] is known. The estimate is unbiased and efficient. Its variance is larger than that
    of the regression on the draws, where the errors of matrix and right-hand side cancel in part.
    It equals the sim-semivalue for the same draws.

    Parameters
    ----------
    paired : bool
        Draw each coalition together with its complement.
    centred : bool
        Subtract from each value the straight line between v(∅) and v(N); see
        `CoalitionDraws.targets`.
    """

    paired: bool = True
    centred: bool = True

    def __post_init__(self) -> None:
        checked_flag("paired", self.paired)
        checked_flag("centred", self.centred)

    @property
    def is_unbiased(self) -> bool:
        """Yes: see the class."""
        return True

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one draw, or of two for errors, and the empty and full coalition."""
        del n_players  # the matrix does not depend on the draws
        return (2 if with_errors else 1) * (2 if self.paired else 1) + 2

    def memory(self, n_players: int, budget: int) -> int:
        """Return the memory of the coalitions, of which more are drawn than evaluated."""
        return 14 * budget * n_players

    def design(self, request: DesignRequest) -> CoalitionDraws:
        """Draw coalitions until the budget is spent."""
        return draw_by_kernel(request, self.paired)

    def solve(self, design: CoalitionDraws, values: ValueArray) -> Solution:
        """Solve the normal equations for the mean of the draws."""
        # The right-hand side of a draw is 1_S times its target. For a pair it is the mean of two
        # right-hand sides. The inverse maps constants to 0, so the complement 1 − 1_S is mapped
        # like −1_S, and the target of a pair is half the difference of its values.
        coefficients = design.members @ _constrained_inverse(design.members.shape[1])
        return solution_by_draws(design, coefficients, values, self.centred)


def _constrained_inverse(n_players: int) -> FloatArray:
    """Return A⁻¹ − A⁻¹ 1 1ᵀ A⁻¹ / (1ᵀ A⁻¹ 1) of Eq. 32, with A = E[1_S 1_Sᵀ].

    It maps the right-hand side to the deviations from the equal split. The distribution is
    symmetric in the players, and in S and N∖S. Therefore the diagonal of A is 1/2, and all other
    entries are the probability that a draw contains two given players.
    """
    sizes = np.arange(1, n_players)
    joint = kernel_mass(n_players) @ (sizes * (sizes - 1)) / (n_players * (n_players - 1))
    matrix = np.full((n_players, n_players), joint) + (0.5 - joint) * np.eye(n_players)
    inverse = np.linalg.inv(matrix)
    of_ones = inverse.sum(axis=1)
    constrained: FloatArray = inverse - np.outer(of_ones, of_ones) / of_ones.sum()
    return constrained
