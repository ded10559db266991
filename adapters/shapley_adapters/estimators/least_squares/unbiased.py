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

    Only the right-hand side is estimated: E[1_S v(S)] by the mean over draws, while E[1_S 1_Sᵀ]
    is known. Unbiased and efficient, but of larger variance than the regression of the draws
    themselves, whose errors in matrix and right-hand side cancel in part. Draw by draw the same as
    the sim-semivalue.

    Parameters
    ----------
    paired : bool
        Draw each coalition together with its complement.
    centred : bool
        Count values from the straight line between v(∅) and v(N); see `CoalitionDraws.targets`.
    """

    paired: bool = True
    centred: bool = True

    def __post_init__(self) -> None:
        checked_flag("paired", self.paired)
        checked_flag("centred", self.centred)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one draw and the end points; of two draws for errors."""
        del n_players  # the matrix is known, however few draws there are
        return (2 if with_errors else 1) * (2 if self.paired else 1) + 2

    def memory(self, n_players: int, budget: int) -> int:
        """Return what the coalitions take, of which more are drawn than the budget pays for."""
        return 14 * budget * n_players

    def design(self, request: DesignRequest) -> CoalitionDraws:
        """Draw coalitions until the budget is spent."""
        return draw_by_kernel(request, self.paired)

    def solve(self, design: CoalitionDraws, values: ValueArray) -> Solution:
        """Solve the normal equations for the mean of the draws."""
        # A draw's right-hand side is 1_S times its target. A pair's is the mean of two, which the
        # solution takes like 1_S times half the difference: it annuls constants, so that the
        # complement counts like −1_S.
        coefficients = design.members @ _constrained_inverse(design.members.shape[1])
        return solution_by_draws(design, coefficients, values, self.centred)


def _constrained_inverse(n_players: int) -> FloatArray:
    """Return A⁻¹ − A⁻¹ 1 1ᵀ A⁻¹ / (1ᵀ A⁻¹ 1) of Eq. 32, with A = E[1_S 1_Sᵀ].

    It maps the right-hand side to the deviations from the equal split. Draws are symmetric in the
    players and in S and N∖S: A has 1/2 on the diagonal and the chance that two players are both
    drawn elsewhere.
    """
    sizes = np.arange(1, n_players)
    both = kernel_mass(n_players) @ (sizes * (sizes - 1)) / (n_players * (n_players - 1))
    matrix = np.full((n_players, n_players), both) + (0.5 - both) * np.eye(n_players)
    inverse = np.linalg.inv(matrix)
    of_ones = inverse.sum(axis=1)
    constrained: FloatArray = inverse - np.outer(of_ones, of_ones) / of_ones.sum()
    return constrained
