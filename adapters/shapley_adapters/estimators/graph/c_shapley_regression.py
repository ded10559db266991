"""C-Shapley by regression: the values of small connected sets on who is in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
import scipy.special

from ...arguments import checked_choice, checked_flag
from ...array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ...coalitions.tables import CoalitionTable, first_occurrences, pack, unpack
from ...errors import InvalidArgumentError
from ...graphs.connected_sets import all_connected_sets, as_rows
from ...graphs.player_graph import boxes
from ..linear_algebra import SparseFit, fit_sparse
from ..protocol import (
    Design,
    DesignRequest,
    Estimator,
    GraphView,
    Solution,
    WholeDesign,
)
from .linear_design import Terms, TooManyCoalitionsError
from .order_selection import (
    MOST_COALITIONS,
    affordable,
    checked_order,
    reason_for_first,
)

SHAPES = ("auto", "connected", "squares")
KERNELS = ("shapley", "equal")
CONTEXTS = ("removed", "kept")


@dataclass(frozen=True)
class ConnectedRegressionDesign(WholeDesign):
    """The equations.

    Attributes
    ----------
    positions : array, (n,)
        Where the coalition of each equation stands in the table.
    members : array, (n, M)
        The players of each equation.
    weights : array, (n,)
        What it counts.
    view : GraphView
        The players in the graph.
    """

    positions: IntArray
    members: CoalitionArray
    weights: FloatArray
    view: GraphView

    @cached_property
    def fit(self) -> SparseFit:
        """The regression, prepared."""
        # Much faster than asking for the nonzero entries in two dimensions.
        player = np.flatnonzero(self.members) % self.members.shape[1]
        ends = np.concatenate([[0], np.cumsum(self.members.sum(axis=1))])
        ones = np.ones(len(player))
        design = scipy.sparse.csr_matrix((ones, player, ends), shape=self.members.shape)
        return fit_sparse(design, self.weights)


@dataclass(frozen=True)
class ConnectedRegression(Estimator[Any]):
    """The regression variant of C-Shapley, Chen et al., 2019, 4.3.2, on any graph.

    Weighted least squares of v(U) − v(∅) on who is in U, over small connected sets U. The printed
    solution lacks the weights on its right side; here it is (XᵀWX)⁻¹XᵀWF. Deterministic, without
    standard errors.

    Parameters
    ----------
    order : int or "auto"
        The largest size of the sets, or side of the squares; the largest that the budget pays for.
    shapes : {"auto", "connected", "squares"}
        All connected sets of at most so many players, which are the runs of a line; or the squares
        (cubes) of a grid, as the paper has it. By default squares on grids, and connected sets on
        other graphs.
    kernel : {"shapley", "equal"}
        The weights of the sets: those of the Shapley kernel, (d − 1) / (C(d, u) u (d − u)) of a set
        of u of d players, which fall so fast with u that among hundreds of players single ones all
        but decide; or equal ones.
    efficient : bool
        Whether the attributions are made to sum to v(N) − v(∅), by the constrained regression.
    context : {"removed", "kept"}
        Whether v(U) − v(∅) is explained, or what is lost without U, v(N) − v(N∖U).
    """

    needs_graph: ClassVar[bool] = True

    order: int | str = "auto"
    shapes: str = "auto"
    kernel: str = "shapley"
    efficient: bool = False
    context: str = "removed"

    def __post_init__(self) -> None:
        checked_order(self.order, minimum=1)
        checked_choice("shapes", self.shapes, SHAPES)
        checked_choice("kernel", self.kernel, KERNELS)
        checked_flag("efficient", self.efficient)
        checked_choice("context", self.context, CONTEXTS)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of single players and the end points."""
        del with_errors
        return n_players + 2

    def design(self, request: DesignRequest) -> ConnectedRegressionDesign:
        """List the sets."""
        view = request.required_graph_view
        squares = self._takes_squares(view)
        largest = max(view.graph.shape or (1,)) if squares else view.graph.n_players

        def make(order: int, most: int) -> ConnectedRegressionDesign:
            terms = Terms(view, request.known, most)
            found = _squares(order, terms) if squares else _connected(order, terms)
            return self._equations(order, list(found), view, terms)

        return affordable(self.order, make, request, 1, lambda order: order >= largest)

    def solve(self, design: ConnectedRegressionDesign, values: ValueArray) -> Solution:
        """Solve the regression; null players get nothing."""
        empty, grand = values[:, :1], values[:, 1:2]
        found = values[:, design.positions]
        targets = found - empty if self.context == "removed" else grand - found
        totals = (grand - empty)[:, 0] if self.efficient else None
        solved = design.fit.coefficients(targets, totals)
        n_nodes = design.view.graph.n_players
        attributions = np.zeros((len(values), n_nodes, values.shape[2]))
        attributions[:, design.view.players] = solved
        return Solution(attributions, np.zeros_like(attributions))

    def shortfall(self, design: Design, request: DesignRequest) -> str | None:
        """Return why "auto" came down to sets of one player."""
        view = request.required_graph_view
        if self._takes_squares(view):
            n_sets = sum(len(of_side) for of_side in boxes(view.graph.shape or (), 2))
        else:
            n_sets = view.graph.n_players + len(view.graph.edges)
        return reason_for_first(self.order, design, 1, f"up to {n_sets + 2} evaluations")

    def _takes_squares(self, view: GraphView) -> bool:
        has_squares = view.graph.shape is not None
        if self.shapes == "squares" and not has_squares:
            raise InvalidArgumentError(
                "shapes='squares' needs a grid, and graph is none; leave shapes='connected'."
            )
        return has_squares and self.shapes != "connected"

    def _equations(
        self, order: int, found: list[tuple[IntArray, BoolArray]], view: GraphView, terms: Terms
    ) -> ConnectedRegressionDesign:
        sizes = np.concatenate([members.sum(axis=1) for _, members in found])
        players = np.concatenate([terms.coalitions(nodes, rows, False) for nodes, rows in found])
        n_there = int((terms.is_active | (view.graph.degrees > 0)).sum())
        is_of_use = players.any(axis=1)
        if self.kernel == "shapley" and n_there > 1:  # whose weight of everyone is infinite
            is_of_use &= sizes < n_there
        sizes, players = sizes[is_of_use], players[is_of_use]
        weights = _kernel(sizes, n_there) if self.kernel == "shapley" else np.ones(len(sizes))
        paid = players if self.context == "removed" else ~players
        words = np.concatenate([pack(terms.known), pack(paid)])
        first = first_occurrences(words[None])[0]
        is_new = first == np.arange(len(words))
        if is_new.sum() > terms.most:
            raise TooManyCoalitionsError(int(is_new.sum()))
        table = CoalitionTable(unpack(words[is_new], players.shape[1])[None], is_new.sum()[None])
        positions = (np.cumsum(is_new) - 1)[first[len(terms.known) :]]
        return ConnectedRegressionDesign(table, positions, players, weights, view, order=order)


def _connected(order: int, terms: Terms) -> Iterator[tuple[IntArray, BoolArray]]:
    """Yield the connected sets of up to `order` nodes, as rows of flags among some nodes."""
    view, n_sets = terms.view, 0
    # Sets that differ in null players alone are one coalition; without these, all sets differ.
    has_nulls = len(view.players) < view.graph.n_players
    most = min(8 * terms.most, MOST_COALITIONS) if has_nulls else terms.most
    for part, found in all_connected_sets(view.graph, order):
        sets = terms.listed((members for members, _ in found), most - n_sets, len(part.nodes))
        n_sets += len(sets)
        terms.check_memory(n_sets, 0)
        yield part.nodes, as_rows(sets, len(part.nodes))


def _squares(order: int, terms: Terms) -> Iterator[tuple[IntArray, BoolArray]]:
    """Yield the squares with sides of up to `order`, those of one side together."""
    graph, n_sets = terms.view.graph, 0
    everyone = np.arange(graph.n_players)
    for places in boxes(graph.shape or (), order):
        n_sets += len(places)
        terms.check_memory(n_sets, 0)
        members = np.zeros((len(places), len(everyone)), dtype=bool)
        np.put_along_axis(members, places, True, axis=1)
        yield everyone, members


def _kernel(sizes: IntArray, n_players: int) -> FloatArray:
    """Return the Shapley kernel's weights, those of single players scaled to 1.

    In logarithms, because the numbers of coalitions overflow.
    """
    if n_players == 1:
        return np.ones(len(sizes))
    log_counts = (
        scipy.special.gammaln(n_players + 1)
        - scipy.special.gammaln(sizes + 1)
        - scipy.special.gammaln(n_players - sizes + 1)
    )
    logs = -log_counts - np.log(sizes) - np.log(n_players - sizes)
    of_singles = -np.log(n_players) - np.log(n_players - 1)
    weights: FloatArray = np.exp(logs - of_singles)
    return weights
