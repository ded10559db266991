"""Marginal contributions of the players in random orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arguments import checked_flag
from ..array_types import AttributionArray, ValueArray
from ..interactions.result import InteractionRequest, SetSolution
from .order_designs import (
    OrdersDesign,
    draw_orders,
    solve_orders,
    solve_orders_with_errors,
    solve_semivalues,
)
from .protocol import Declaration, DesignRequest, Estimator, Solution
from .value_errors import ValueErrors


@dataclass(frozen=True)
class RandomOrder(Estimator[OrdersDesign]):
    """Shapley values by permutation sampling: random orders of the features and their reverses.

    Unbiased; attributions sum exactly to the difference of the outputs with all features and with
    none. A pair of orders of M features costs 2 (M − 1) evaluations. Pairs make quadratic models
    exact. The counterpart of shap's permutation explainer and of captum's `ShapleyValueSampling`,
    for all rows at once, with a budget and standard errors. Fewer than 2 M evaluations, 4 at least,
    pay for an order of blocks of features, which share the contribution of their block equally.
    This is biased towards equal attributions, and a warning says how much.

    Parameters
    ----------
    antithetic : bool
        Whether each order comes with its reverse.
    """

    declaration: ClassVar[Declaration | None] = Declaration("random order")
    has_units: ClassVar[bool] = True
    is_drawn_by_labels = True  # with random labels, a fixed order is a random order
    is_unbiased = True

    antithetic: bool = True

    def __post_init__(self) -> None:
        checked_flag("antithetic", self.antithetic)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of an order of two blocks, and the empty and full coalition.

        Errors need a third block or, without reverse orders, two orders of all players.
        """
        if with_errors:
            return 6 if self.antithetic else 2 * n_players
        return 4 if self.antithetic else 3

    def useful_budget(self, n_players: int) -> int:
        """Return the cost of one order of all players, and of its reverse."""
        return (n_players - 1) * (2 if self.antithetic else 1) + 2

    def first_check(self, n_players: int) -> int:
        """Return four times the cost of two orders: fewer have chance errors that are far off."""
        return 8 * self.useful_budget(n_players) - 8

    def design(self, request: DesignRequest) -> OrdersDesign:
        """Draw orders until the budget is spent; an order of blocks only if it pays for no other.

        Blocks would bias the mean of several orders.
        """
        return draw_orders(request, self.antithetic, most_orders=0)

    def solve(self, design: OrdersDesign, values: ValueArray) -> Solution:
        """Average the marginal contributions; errors from the spread between units, pooled."""
        return solve_orders(design, values)

    def solve_with_errors(
        self, design: OrdersDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Average the marginal contributions; add the errors that orders have in common."""
        return solve_orders_with_errors(design, values, errors)

    def has_interactions(self, request: InteractionRequest) -> bool:
        """Return whether they are semivalues, which weigh the positions in an order."""
        return request.are_semivalues

    def interaction_budget(self, n_players: int) -> int:
        """Return the cost of two orders of all players, which standard errors need."""
        return 2 * self.useful_budget(n_players) - 2

    def interactions(
        self,
        design: OrdersDesign,
        values: ValueArray,
        errors: AttributionArray,
        request: InteractionRequest,
        value_errors: ValueErrors | None = None,
    ) -> SetSolution:
        """Average the weighted marginal contributions; the spread holds the errors of values."""
        del value_errors
        shares = request.index(errors.shape[1]).shares_of_sizes
        solution = solve_semivalues(design, values, shares)
        return SetSolution(solution.values, solution.standard_errors, errors)
