"""The interface of estimators: a design for a budget, and a solution for its values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from ..array_types import (
    AttributionArray,
    BoolArray,
    CoalitionArray,
    DistanceArray,
    FloatArray,
    IntArray,
    ScoreArray,
    ValueArray,
)
from ..coalitions.tables import CoalitionTable
from ..constructors import default
from ..errors import InvalidArgumentError
from ..interactions.result import InteractionRequest, SetSolution
from .value_errors import ValueErrors


@dataclass(frozen=True)
class GraphView:
    """The M players of a design as nodes of the graph, or leaves of the tree, of all players.

    The other nodes are null players. They are in no coalition, because they change no value, but
    paths lead through them: a graph without them would separate neighbours. Estimators on graphs
    therefore solve for all nodes of the graph, not for the M players alone.

    Attributes
    ----------
    graph : PlayerGraph or PlayerTree
        The graph, or the hierarchy.
    players : array, (M,)
        The node of each of the M players.
    """

    graph: Any
    players: IntArray


@dataclass(frozen=True)
class DesignRequest:
    """Everything that a design may depend on.

    Attributes
    ----------
    n_players : int
        M, at least 2.
    budget : int
        The largest number of distinct coalitions per row; less than 2^M.
    planned : int
        The number of these that a row is expected to need: `budget`, or less if a tolerance may
        end the row earlier. Decisions before the first draw are made for this number. It is at
        least the estimator's minimum.
    rng : numpy.random.Generator
        Source of all random choices.
    known : array, (n, M)
        Coalitions that are already evaluated and count towards the budget: the empty one, that of
        all players, then any others. They are the first of the design's table, in this order.
    scores : array, (R, M, M), or None
        Cross-contributions of the players of each row, for estimators that need them.
    has_scores : array, (R,), or None
        Whether the scores of a row come from its values or derivatives, not from random numbers.
    graph_view : GraphView, optional
        The players in the graph, for estimators that need one.
    distances : array of arrays, (R,), optional
        The distances between the players of each row on its graph, (M, M), for estimators that can
        use them.
    budget_is_default : bool
        Whether the user gave no budget, so that an estimator of fixed cost may exceed it.
    needs_errors : bool
        Whether standard errors are needed.
    interactions : InteractionRequest, optional
        Interactions, or the semivalues, that are needed.
    must_draw : bool
        Whether the estimator has drawn for these players and this budget before, because
        enumeration was too expensive. It need not try that again.
    n_outputs : int
        K, the number of outputs.
    has_gradients : bool
        Whether gradients of the model are of use.
    """

    n_players: int
    budget: int
    planned: int
    rng: np.random.Generator
    known: CoalitionArray
    scores: ScoreArray | None = None
    has_scores: BoolArray | None = None
    graph_view: GraphView | None = None
    distances: DistanceArray | None = None
    budget_is_default: bool = False
    needs_errors: bool = False
    interactions: InteractionRequest | None = None
    must_draw: bool = False
    n_outputs: int = 1
    has_gradients: bool = False

    @property
    def required_graph_view(self) -> GraphView:
        """The players in the graph, for estimators that need one."""
        if self.graph_view is None:
            raise InvalidArgumentError("graph is missing.")
        return self.graph_view


@dataclass(frozen=True)
class Passes:
    """Degrees of presence at which gradients of the model are wanted, and what they are.

    A forward pass counts as one evaluation, the backward pass of an output as two.

    Attributes
    ----------
    degrees : array, (p, M)
        The degrees, 0 to 1. The first two are those of all players and of none.
    values, slopes : arrays, (R, p, K) and (R, p, M, K)
        The values of each row there, and their derivatives; empty before they are computed.
    """

    degrees: FloatArray
    values: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 1)))
    slopes: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0, 1)))

    @staticmethod
    def cost(n_outputs: int) -> int:
        """Return the evaluations that a pass counts as."""
        return 1 + 2 * n_outputs

    @classmethod
    def fewest_evaluations(cls, n_outputs: int) -> int:
        """Return the evaluations from which on gradients are used: three passes, and another."""
        return 3 * cls.cost(n_outputs) + 1

    def subset_rows(self, indices: IntArray) -> Passes:
        """Return those of some of the rows, given by their indices."""
        return Passes(self.degrees, self.values[indices], self.slopes[indices])

    def at_scale(self, exponents: IntArray) -> Passes:
        """Return those of the values times 2 to minus these powers, (R, 1, K)."""
        values, slopes = np.ldexp(self.values, -exponents), self.slopes
        return Passes(self.degrees, values, np.ldexp(slopes, -exponents[:, None]))


@dataclass(frozen=True)
class Design:
    """The coalitions to evaluate; estimators add the data that they need to solve.

    The coalitions are in the order in which they are evaluated, so that the first of them are a
    smaller design. Designs inherit from this class; by default all rows share a design.

    Attributes
    ----------
    table : CoalitionTable
        The distinct coalitions, the known ones first.
    order : int
        The order of the neighbourhoods or sets in the graph; −1 for designs without an order.
    shortfall : str, optional
        Why the design leaves out all neighbours in the graph, if it does.
    passes : Passes, optional
        Where gradients of the model are wanted, by estimators that use them.
    """

    table: CoalitionTable
    order: int = field(default=-1, kw_only=True)
    shortfall: str | None = field(default=None, kw_only=True)
    passes: Passes | None = field(default=None, kw_only=True)

    is_whole: ClassVar[bool] = False
    """Whether no part of the design is a smaller design, so that it is evaluated at once.

    A whole design is the same for all random streams.
    """

    @default
    def fewest_coalitions(self) -> int:
        """The fewest first coalitions that make a design, beside the estimator's minimum."""
        return 0

    @default
    def sharing_units(self) -> IntArray | None:
        """Coalitions that share draws of their values, (U, S), as indices into the table.

        The differences between their values are then free of what the draws have in common. None:
        each coalition has draws of its own, with its complement.
        """
        return None

    @default
    def n_before_choice(self) -> int:
        """The number of first coalitions whose values say which others a row needs; 0 if none do.

        `Estimator.chosen_designs` then returns the designs of the rows.
        """
        return 0

    def within(self, n_coalitions: int) -> Self:
        """Return the smaller design of the first coalitions of each row."""
        raise NotImplementedError

    def subset_rows(self, indices: IntArray) -> Self:
        """Return the design of some of the rows, given by their indices."""
        del indices  # all rows share the design
        return self


@dataclass(frozen=True)
class WholeDesign(Design):
    """A design that all rows share, and of which no part is a smaller design."""

    is_whole: ClassVar[bool] = True

    def within(self, _: int) -> Self:
        """Return the design itself."""
        return self


@dataclass(frozen=True)
class Solution:
    """Attributions and their standard errors, (R, M, K) each; NaN if an error is unknown.

    Estimators on graphs return them for all nodes. The degrees of freedom of the standard errors
    have a shape that NumPy broadcasts to (R, M, K). Estimators with a prior also return its share
    in the variance of the attributions over the players, (R,). `Hierarchy` returns the union of
    each player whose value it shares, by its first player, (R, M), and the errors of the values of
    these unions, (R, M, K).
    """

    values: AttributionArray
    standard_errors: AttributionArray
    degrees_of_freedom: FloatArray | float = np.inf
    prior_shares: FloatArray | None = None
    unions: IntArray | None = None
    union_errors: AttributionArray | None = None

    def subset_rows(self, indices: IntArray) -> Solution:
        """Return the solution of some of the rows, given by their indices."""
        freedom = np.broadcast_to(self.degrees_of_freedom, self.values.shape)
        return Solution(
            self.values[indices],
            self.standard_errors[indices],
            freedom[indices],
            None if self.prior_shares is None else self.prior_shares[indices],
            None if self.unions is None else self.unions[indices],
            None if self.union_errors is None else self.union_errors[indices],
        )

    def with_variances(self, added: FloatArray) -> Solution:
        """Return the same with variances, (R, M, K), added to those of the attributions."""
        return replace(self, standard_errors=np.sqrt(self.standard_errors**2 + added))


@dataclass(frozen=True)
class Operations:
    """An estimator's own work, as about so many operations of which a core does 1e10 in a second.

    Attributes
    ----------
    once : float
        Those that all rows share.
    per_row : float
        Those of each row.
    """

    once: float
    per_row: float


ERRORS_OF_ORDERS = (
    (0.078, 0.053, 0.032, 0.020, 0.014, 0.010, 0.007),
    (0.083, 0.054, 0.036, 0.023, 0.015, 0.010, 0.0068),
    (0.12, 0.080, 0.058, 0.039, 0.028, 0.017, 0.013),
    (0.097, 0.066, 0.048, 0.030, 0.021, 0.015, 0.011),
    (0.13, 0.091, 0.062, 0.044, 0.032, 0.024, 0.017),
)
"""The errors of random orders, as in `Declaration.errors`.

Sums of absolute errors relative to those of the attributions: geometric means over boosted trees
and sums of waves of four features, whose seeds no benchmark uses. Where all coalitions or too much
time would be needed, the fall of the numbers before goes on more slowly. Only the order of the
numbers matters, and how fast they fall."""


@dataclass(frozen=True)
class Declaration:
    """What the hosts need to know to build a class of an estimator, beside options and docstring.

    Attributes
    ----------
    name : str
        The name in messages. Without spaces and hyphens, it is the algorithm's name in shap.
    structure : {"graph", "distances", "hierarchy", "causes"}, optional
        What users pass about the relations of players; `"distances"` is a graph that they may omit.
    is_random : bool
        Whether coalitions are drawn.
    made_by : callable, optional
        The function that chooses between several classes. The options and the docstring are then
        those of the function.
    errors : tuple of tuples
        Errors to expect, by which `Best` chooses: for 8, 13, 30, 60 and 200 players, those with
        2.3, 4, 8, 16, 32, 64 and 128 evaluations per player. By default those of random orders.
    """

    name: str = ""
    structure: str | None = None
    is_random: bool = True
    made_by: Callable[..., Any] | None = None
    errors: tuple[tuple[float, ...], ...] = ERRORS_OF_ORDERS


DesignT = TypeVar("DesignT", bound=Design)


class Estimator(Protocol[DesignT]):
    """The two phases of an estimator: it chooses coalitions, and turns their values into results.

    Estimators inherit from this class. It has defaults for the members that they do not need.
    """

    declaration: ClassVar[Declaration | None] = None
    """What the hosts need to build their classes. Those of this package have one."""

    needs_graph: ClassVar[bool] = False
    """Whether the estimate depends on a graph of the players.

    Enumeration of all coalitions does not replace such an estimator, as it replaces the estimators
    of the Shapley value.
    """

    @default
    def can_use_graph(self) -> bool:
        """Whether a graph of the players, which it does not need, makes the estimate better."""
        return False

    has_unions: ClassVar[bool] = False
    """Whether solutions have `unions`, and designs that leave a choice can be solved."""

    has_units: ClassVar[bool] = False
    """Whether designs have `sharing_units`. One draw for each unit is then enough."""

    has_orders_for_few_rows: ClassVar[bool] = False
    """Whether random orders, each on one background row, are better than this estimator where the
    rows of the model do not pay for single players on the whole background."""

    @default
    def has_process(self) -> bool:
        """Whether one process of the games of all background rows may take its place.

        Where rows of the model are few, and where background rows have levels.
        """
        return False

    def uses_gradients(self, n_players: int, budget: int) -> bool:
        """Return whether designs have `passes`; refuse options that need values alone."""
        del n_players, budget
        return False

    @default
    def values_alone(self) -> Estimator[Any] | None:
        """What takes its place where the model has no gradients; None if these are required."""
        return None

    @default
    def linear(self) -> Estimator[Any] | None:
        """What takes its place for many games of one design; None if it learns nothing of each."""
        return None

    candidates: ClassVar[tuple[Estimator[Any], ...]] = ()
    """The estimators among which costs decide; the first where they are not forecast.

    All but `Best` have none, and are taken themselves.
    """

    @default
    def is_drawn_by_labels(self) -> bool:
        """Whether a new labelling of the players of one design is as good as another design.

        Rows with independent random draws then share a design, which is faster.
        """
        return False

    @default
    def is_unbiased(self) -> bool:
        """Whether errors have mean 0 over the draws, for any game and any useful budget.

        The errors of rows with independent random draws then cancel in means over rows.
        """
        return False

    @default
    def score_source(self) -> str | ScoreArray | None:
        """How the players' scores are computed, for designs that need scores; None for others."""
        return None

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the evaluations needed for M players if the budget is less than 2^M.

        With `with_errors`, those needed to estimate standard errors, too.
        """
        raise NotImplementedError

    def useful_budget(self, n_players: int) -> int:
        """Return the evaluations below which attributions are far off; 0 if there is no bound."""
        del n_players
        return 0

    def first_check(self, n_players: int) -> int:
        """Return the evaluations before which a tolerance ends no row, beside four minima."""
        del n_players
        return 0

    def enough_coalitions(self, n_players: int) -> int:
        """Return after how many coalitions more draws of each are worth more; 0 if there is none.

        Draws are background rows; see `max_model_rows`.
        """
        del n_players
        return 0

    def memory(self, n_players: int, budget: int) -> int:
        """Return about how many bytes the design and the solution of a row need at most."""
        return 6 * budget * n_players

    def operations(self, n_players: int, budget: int, n_outputs: int = 1) -> Operations:
        """Return about how many operations the design and the solution of a row take."""
        return Operations(2e7, 1e6 + 15.0 * budget * n_players * (n_outputs + 2))

    def design(self, request: DesignRequest) -> DesignT:
        """Choose the coalitions to evaluate."""
        raise NotImplementedError

    def chosen_designs(self, design: DesignT, values: ValueArray) -> list[tuple[IntArray, DesignT]]:
        """Return the designs that rows need, given the values of their first coalitions.

        Parameters
        ----------
        design : Design
            A design with `n_before_choice`.
        values : array, (R, C, K)
            The values of so many first coalitions. The new designs begin with these.

        Returns
        -------
        list of tuples
            The indices of some rows, and their design, which leaves no further choice.
        """
        del design, values
        raise InvalidArgumentError(f"{type(self).__name__} has no designs that leave a choice.")

    def solve(self, design: DesignT, values: ValueArray) -> Solution:
        """Compute the attributions from the values, (R, C, K), of the design's coalitions."""
        raise NotImplementedError

    def solve_with_errors(
        self, design: DesignT, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Compute the attributions from values with errors.

        The spread of draws of coalitions, from which most estimators compute standard errors,
        holds the errors of their values. Those of the values of no and of all players come from
        here: a player has its share, 1 / M, of their difference.
        """
        solution = self.solve(design, values)
        n_players = design.table.coalitions.shape[2]
        return solution.with_variances(errors.variances_of_ends(n_players))

    def interaction_budget(self, n_players: int) -> int:
        """Return the evaluations that the interactions of M players need."""
        del n_players
        return 0

    def has_interactions(self, request: InteractionRequest) -> bool:
        """Return whether `interactions` can estimate these."""
        del request
        return False

    def interaction_memory(self, n_players: int, budget: int, request: InteractionRequest) -> int:
        """Return about how many bytes the interactions of a row need, beyond `memory`."""
        del n_players, budget, request
        return 0

    def interactions(
        self,
        design: DesignT,
        values: ValueArray,
        errors: AttributionArray,
        request: InteractionRequest,
        value_errors: ValueErrors | None = None,
    ) -> SetSolution:
        """Compute the interactions of sets of players from the values of the design.

        Parameters
        ----------
        design : Design
            The design.
        values : array, (R, C, K)
            The values of its coalitions.
        errors : array, (R, M, K)
            The standard errors of the attributions.
        request : InteractionRequest
            The interactions, of which `has_interactions` is true.
        value_errors : ValueErrors, optional
            The errors of the values.
        """
        del design, values, errors, value_errors
        raise InvalidArgumentError(f"{type(self).__name__} cannot estimate {request}.")
