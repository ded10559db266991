"""The seconds of a call as a function of its budget, from measured costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .measured_growth import MeasuredGrowth
from .row_groups import GROWTH


@dataclass
class CallCosts:
    """The measured seconds of the parts of a call.

    Attributes
    ----------
    n_rows_of : dict of int to int
        The number of rows with a certain number of active players.
    exponent : float
        With this power of the budget, the time of designs and solutions grows at most.
    has_tolerance : bool
        Whether rows stop at a tolerance, so that they are solved after each round.
    has_own_designs : bool
        Whether each row has a design of its own.
    evaluation : float
        Seconds of an evaluation.
    enumeration : float
        Seconds of our own work for each coalition and player of an enumeration.
    scores : float
        Seconds of the scores of a row.
    designs, solutions : MeasuredGrowth
        Seconds of a design, and of the solution of a row.
    """

    n_rows_of: Mapping[int, int]
    exponent: float
    has_tolerance: bool
    has_own_designs: bool
    evaluation: float = 0.0
    enumeration: float = 0.0
    scores: float = 0.0
    designs: MeasuredGrowth = field(init=False)
    solutions: MeasuredGrowth = field(init=False)

    def __post_init__(self) -> None:
        self.designs, self.solutions = MeasuredGrowth(self.exponent), MeasuredGrowth(self.exponent)

    def seconds(self, budget: int) -> float:
        """Return the seconds of a call with a budget."""
        n_evaluations: int = 2 + sum(  # two of them check that the model is deterministic
            n_rows * min(1 << n_players, budget) for n_players, n_rows in self.n_rows_of.items()
        )
        return n_evaluations * self.evaluation + self.work(budget)

    def work(self, budget: int) -> float:
        """Return the seconds of our own work in a call with a budget."""
        return sum(
            self._work_of_rows(n_players, n_rows, budget)
            for n_players, n_rows in self.n_rows_of.items()
        )

    def _work_of_rows(self, n_players: int, n_rows: int, budget: int) -> float:
        n_drawn, seconds = budget, 0.0
        if 1 << n_players <= budget:
            seconds = n_rows * self.enumeration * n_players * (1 << n_players)
            if not self.has_tolerance:
                return seconds
            n_drawn = 1 << (n_players - 1)  # beyond, all coalitions are evaluated
        n_solutions = 1 / (1 - GROWTH**-self.exponent) if self.has_tolerance else 1.0
        n_designs = n_rows if self.has_own_designs else 1
        of_row = n_solutions * self.solutions.at(n_drawn) + self.scores
        return seconds + n_designs * self.designs.at(n_drawn) + n_rows * of_row
