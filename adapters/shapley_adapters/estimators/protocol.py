"""What every estimator is: a design for a budget, and a solution for its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ..array_types import (
    AttributionArray,
    BoolArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ScoreArray,
    ValueArray,
)
from ..coalitions.tables import CoalitionTable
from ..errors import InvalidArgumentError
from ..graphs.player_graph import PlayerGraph

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class GraphPlace:
    """Where the M players of a design stand in the graph of all players of the game.

    The other nodes are null players. They have no place in a coalition, because they change no
    value, but paths lead through them: leaving them out of the graph would take neighbours apart.
    Estimators on graphs therefore solve for all nodes of the graph, not for the M players alone.

    Attributes
    ----------
    graph : PlayerGraph
        The graph.
    players : array, (M,)
        Which node each of the M players is.
    """

    graph: PlayerGraph
    players: IntArray


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
    place : GraphPlace, optional
        Where the players stand in a graph, for estimators that ask for one.
    budget_is_default : bool
        Whether nobody has named the budget, so that an estimator of fixed cost may exceed it.
    needs_errors : bool
        Whether standard errors are wanted.
    must_draw : bool
        Whether the estimator has drawn for these players and this budget before, because
        enumeration was too expensive. It need not try that again.
    """

    n_players: int
    budget: int
    planned: int
    rng: np.random.Generator
    known: CoalitionArray
    scores: ScoreArray | None = None
    informed: BoolArray | None = None
    place: GraphPlace | None = None
    budget_is_default: bool = False
    needs_errors: bool = False
    must_draw: bool = False

    @property
    def on_graph(self) -> GraphPlace:
        """Where the players stand, for estimators that need it."""
        if self.place is None:
            raise InvalidArgumentError("graph is missing.")
        return self.place


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
class WholeDesign:
    """A design that all rows share, and of which no part is a smaller design: evaluated whole."""

    table: CoalitionTable

    def within(self, _: int) -> Self:
        """Return the design itself."""
        return self

    def of_rows(self, _: IntArray) -> Self:
        """Return the design itself: all rows share it."""
        return self


@dataclass(frozen=True)
class Solution:
    """Attributions and their standard errors, (R, M, K) each; NaN where there is none to tell.

    Those of an estimator on a graph are of all its nodes. The standard errors' degrees of freedom
    are of a shape that NumPy extends to theirs.
    """

    values: AttributionArray
    standard_errors: AttributionArray
    degrees_of_freedom: FloatArray | float = np.inf


@dataclass(frozen=True)
class PlannedDesign:
    """A design, and why it leaves out all neighbours of the players; None if it does not."""

    design: Design
    shortfall: str | None = None


DesignT = TypeVar("DesignT", bound=Design)


class Estimator(Protocol[DesignT]):
    """The two phases of an estimator; between them stands the evaluation.

    Estimators inherit from it what they do not ask for.
    """

    @property
    def score_source(self) -> str | ScoreArray | None:
        """How the players' scores are computed that a design asks for; None if it asks for none."""
        return None

    @property
    def is_drawn_by_labels(self) -> bool:
        """Whether labelling the players of one design anew is as good as drawing another design.

        Rows that have draws of their own then share a design, which is faster.
        """
        return False

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the evaluations needed for M players where not all 2^M are affordable.

        With `with_errors`, those needed to estimate standard errors, too.
        """
        raise NotImplementedError

    def useful_budget(self, n_players: int) -> int:
        """Return the evaluations below which the attributions say little; 0 if there are none."""
        del n_players
        return 0

    def memory(self, n_players: int, budget: int) -> int:
        """Return about how many bytes the design and the solution of a row take at most."""
        return 6 * budget * n_players

    def design(self, request: DesignRequest) -> DesignT:
        """Choose the coalitions to evaluate."""
        raise NotImplementedError

    def solve(self, design: DesignT, values: ValueArray) -> Solution:
        """Turn the values, (R, C, K), of the design's coalitions into attributions."""
        raise NotImplementedError


class OnGraph(Estimator[Any]):
    """Marks the estimators that need a graph, because what they estimate depends on it.

    Enumeration of all coalitions does not take their place, as it does for estimators of the
    Shapley value.
    """

    def shortfall(self, design: Design, request: DesignRequest) -> str | None:
        """Return why a design leaves out all neighbours of the players; None if it does not."""
        del design, request
        return None
