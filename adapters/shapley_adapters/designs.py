"""What every estimator is: a design for a budget, and a solution for its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from .array_types import (
    AttributionArray,
    BoolArray,
    CoalitionArray,
    IntArray,
    ScoreArray,
    ValueArray,
)
from .coalition_sets import CoalitionTable


@dataclass(frozen=True)
class DesignRequest:
    """All that a design may depend on.

    Attributes
    ----------
    n_players : int
        M, at least 2.
    budget : int
        Distinct coalitions that each row may have; less than 2^M.
    planned : int
        How many of them the row is expected to need: `budget`, or less where a tolerance may stop
        it early. What has to be decided before anything is drawn is decided for this number; it
        is at least the estimator's minimum.
    rng : numpy.random.Generator
        Source of all random choices.
    known : array, (n, M)
        Coalitions evaluated already and paid from the budget: the empty one, that of all players,
        then any others. They open the design's table in this order.
    scores : array, (R, M, M), or None
        Cross-contributions of the players of each row, for estimators that ask for them.
    informed : array, (R,), or None
        Where the scores say something about the row, rather than being random numbers.
    """

    n_players: int
    budget: int
    planned: int
    rng: np.random.Generator
    known: CoalitionArray
    scores: ScoreArray | None = None
    informed: BoolArray | None = None


class Design(Protocol):
    """The coalitions to evaluate; estimators add what they need to solve.

    They stand in the order in which they are to be evaluated, so that the first of them make a
    smaller design.
    """

    @property
    def table(self) -> CoalitionTable:
        """The distinct coalitions, the known ones first."""

    def within(self, n_coalitions: int) -> Design:
        """Return the design that the first coalitions of each row make."""

    def of_rows(self, places: IntArray) -> Design:
        """Return the design of some of the rows, given by their places."""


@dataclass(frozen=True)
class Solution:
    """Attributions and their standard errors, (R, M, K) each; NaN where there is none to tell."""

    values: AttributionArray
    standard_errors: AttributionArray


DesignT = TypeVar("DesignT", bound=Design)


class Estimator(Protocol[DesignT]):
    """The two phases of an estimator; between them stands the evaluation."""

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the evaluations needed for M players where not all 2^M are affordable.

        With `with_errors`, those needed to estimate standard errors, too.
        """

    def design(self, request: DesignRequest) -> DesignT:
        """Choose the coalitions to evaluate."""

    def solve(self, design: DesignT, values: ValueArray) -> Solution:
        """Turn the values, (R, C, K), of the design's coalitions into attributions."""
