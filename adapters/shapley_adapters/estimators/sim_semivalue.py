"""The sim-semivalue: one draw of coalitions for all players, signed by membership."""

from __future__ import annotations

from dataclasses import dataclass

from ..arguments import checked_flag
from ..array_types import ValueArray
from ..coalitions.sizes import kernel_total
from .kernel_draws import CoalitionDraws, draw_by_kernel, solution_by_draws
from .protocol import DesignRequest, Estimator, Solution


@dataclass(frozen=True)
class SimSemivalue(Estimator[CoalitionDraws]):
    """Sim-semivalue, Zhang et al., 2023, Table 1 and Eq. 14.

    A coalition of s players, drawn by the Shapley kernel, adds γ (M − s) v(S) to its members and
    subtracts γ s v(S) from the other players. The estimate is unbiased. It is exactly efficient,
    because these changes sum to 0.

    Parameters
    ----------
    paired : bool
        Draw each coalition together with its complement.
    centred : bool
        Subtract from each value the straight line between v(∅) and v(N); see
        `CoalitionDraws.targets`. The paper does not.
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
        del n_players  # a draw serves all players
        return (2 if with_errors else 1) * (2 if self.paired else 1) + 2

    def memory(self, n_players: int, budget: int) -> int:
        """Return the memory of the coalitions, of which more are drawn than evaluated."""
        return 14 * budget * n_players

    def design(self, request: DesignRequest) -> CoalitionDraws:
        """Draw coalitions until the budget is spent."""
        return draw_by_kernel(request, self.paired)

    def solve(self, design: CoalitionDraws, values: ValueArray) -> Solution:
        """Average the changes of the draws."""
        n_players = design.members.shape[1]
        sizes = design.members.sum(axis=1, keepdims=True)
        # (M − s) for members and −s for other players. The coefficients of the complement are the
        # same with the opposite sign.
        coefficients = kernel_total(n_players) * (n_players * design.members - sizes)
        return solution_by_draws(design, coefficients, values, self.centred)
