"""C-Shapley by regression of the values of small connected sets on their members."""

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
from ..protocol import DesignRequest, Estimator, GraphView, Solution, WholeDesign
from ..value_errors import ValueErrors
from .linear_design import LinearDesignBuilder, TooManyCoalitionsError
from .order_selection import MAX_COALITIONS, checked_order, enumerate_within_budget, with_shortfall

_PROBES = 512
"""Values whose weights are computed at a time, to bound the memory."""

SHAPES = ("auto", "connected", "squares")
KERNELS = ("shapley", "equal")
CONTEXTS = ("removed", "kept")


@dataclass(frozen=True)
class ConnectedRegressionDesign(WholeDesign):
    """The equations.

    Attributes
    ----------
    positions : array, (n,)
        Index of the coalition of each equation in the table.
    members : array, (n, M)
        The players of each equation.
    weights : array, (n,)
        The weight of each equation.
    view : GraphView
        The players in the graph.
    """

    positions: IntArray
    members: CoalitionArray
    weights: FloatArray
    view: GraphView

    @cached_property
    def fit(self) -> SparseFit:
        """The regression without its targets."""
        # Much faster than np.nonzero in two dimensions.
        player = np.flatnonzero(self.members) % self.members.shape[1]
        ends = np.concatenate([[0], np.cumsum(self.members.sum(axis=1))])
        ones = np.ones(len(player))
        design = scipy.sparse.csr_matrix((ones, player, ends), shape=self.members.shape)
        return fit_sparse(design, self.weights)


@dataclass(frozen=True)
class ConnectedRegression(Estimator[Any]):
    """The regression on small connected sets U; `c_shapley` describes its options.

    Chen et al., 2019, 4.3.2, on any graph: weighted least squares of v(U) − v(∅), or with
    `context="kept"` of v(N) − v(N∖U), on the members of U. The solution is (XᵀWX)⁻¹XᵀWF; the paper
    prints it without W on the right side. The Shapley kernel gives a set of u of d players the
    weight (d − 1) / (C(d, u) u (d − u)). The method is deterministic and has no standard errors.
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
        """Return the cost of the single players, the empty and the full coalition."""
        del with_errors
        return n_players + 2

    def design(self, request: DesignRequest) -> ConnectedRegressionDesign:
        """List the sets."""
        view = request.required_graph_view
        squares = self._takes_squares(view)
        largest = max(view.graph.shape or (1,)) if squares else view.graph.n_players

        def enumerate_all(order: int, limit: int) -> ConnectedRegressionDesign:
            builder = LinearDesignBuilder(view, request.known, limit)
            sets = list(_squares(order, builder) if squares else _connected(order, builder))
            sizes = np.concatenate([members.sum(axis=1) for _, members in sets])
            players = np.concatenate(
                [builder.coalitions(nodes, rows, False) for nodes, rows in sets]
            )
            n_nodes = int((builder.is_active | (view.graph.degrees > 0)).sum())
            has_equation = players.any(axis=1)
            if self.kernel == "shapley" and n_nodes > 1:  # all players have infinite weight
                has_equation &= sizes < n_nodes
            sizes, players = sizes[has_equation], players[has_equation]
            weights = _kernel(sizes, n_nodes) if self.kernel == "shapley" else np.ones(len(sizes))
            coalitions = players if self.context == "removed" else ~players
            words = np.concatenate([pack(request.known), pack(coalitions)])
            first = first_occurrences(words[None])[0]
            is_new = first == np.arange(len(words))
            if is_new.sum() > limit:
                raise TooManyCoalitionsError(int(is_new.sum()))
            distinct = unpack(words[is_new], players.shape[1])
            table = CoalitionTable(distinct[None], is_new.sum()[None])
            positions = (np.cumsum(is_new) - 1)[first[len(request.known) :]]
            return ConnectedRegressionDesign(table, positions, players, weights, view, order=order)

        design = enumerate_within_budget(
            self.order, enumerate_all, request, 1, lambda order: order >= largest
        )
        if squares:
            n_sets = sum(len(of_side) for of_side in boxes(view.graph.shape or (), 2))
        else:
            n_sets = view.graph.n_players + len(view.graph.edges)
        return with_shortfall(self.order, design, 1, f"up to {n_sets + 2} evaluations")

    def solve(self, design: ConnectedRegressionDesign, values: ValueArray) -> Solution:
        """Solve the regression; the attributions of null players are 0."""
        empty, grand = values[:, :1], values[:, 1:2]
        coalition_values = np.take(values, design.positions, axis=1)
        if self.context == "removed":
            targets = coalition_values - empty
        else:
            targets = grand - coalition_values
        totals = (grand - empty)[:, 0] if self.efficient else None
        coefficients = design.fit.coefficients(targets, totals)
        n_nodes = design.view.graph.n_players
        attributions = np.zeros((len(values), n_nodes, values.shape[2]))
        attributions[:, design.view.players] = coefficients
        return Solution(attributions, np.zeros_like(attributions))

    def solve_with_errors(
        self, design: ConnectedRegressionDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Solve the regression; the errors of values are its only errors."""
        weights = scipy.sparse.vstack(
            [self._weights(design, start) for start in range(0, values.shape[1], _PROBES)],
            format="csr",
        ).T.tocsr()
        added = errors.sum_variances(weights, design.table.coalitions[0])
        return self.solve(design, values).with_variances(added)

    def _weights(self, design: ConnectedRegressionDesign, start: int) -> scipy.sparse.csr_matrix:
        """Return the weights of some values in the attributions: those of 1 among zeros."""
        n_coalitions = int(design.table.counts[0])
        probes = np.eye(min(_PROBES, n_coalitions - start), n_coalitions, start)
        return scipy.sparse.csr_matrix(self.solve(design, probes[..., None]).values[..., 0])

    def _takes_squares(self, view: GraphView) -> bool:
        has_squares = view.graph.shape is not None
        if self.shapes == "squares" and not has_squares:
            raise InvalidArgumentError(
                "shapes='squares' needs a grid, and graph is not a grid; use shapes='connected'."
            )
        return has_squares and self.shapes != "connected"


def _connected(order: int, builder: LinearDesignBuilder) -> Iterator[tuple[IntArray, BoolArray]]:
    """Yield some nodes, and the connected sets of up to `order` of them as rows of flags."""
    view, n_sets = builder.view, 0
    # Sets that differ only in null players are the same coalition. Without null players, each set
    # is another coalition.
    has_nulls = len(view.players) < view.graph.n_players
    limit = min(8 * builder.limit, MAX_COALITIONS) if has_nulls else builder.limit
    for part, pairs in all_connected_sets(view.graph, order):
        sets = builder.list_sets((inside for inside, _ in pairs), limit - n_sets, len(part.nodes))
        n_sets += len(sets)
        builder.check_memory(n_sets, 0)
        yield part.nodes, as_rows(sets, len(part.nodes))


def _squares(order: int, builder: LinearDesignBuilder) -> Iterator[tuple[IntArray, BoolArray]]:
    """Yield all nodes, and the squares of each side up to `order` as rows of flags."""
    graph, n_sets = builder.view.graph, 0
    nodes = np.arange(graph.n_players)
    for squares in boxes(graph.shape or (), order):
        n_sets += len(squares)
        builder.check_memory(n_sets, 0)
        members = np.zeros((len(squares), len(nodes)), dtype=bool)
        np.put_along_axis(members, squares, True, axis=1)
        yield nodes, members


def _kernel(sizes: IntArray, n_players: int) -> FloatArray:
    """Return the Shapley kernel's weights, scaled so that single players have weight 1.

    The computation is in logarithms, because the numbers of coalitions overflow.
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
    return np.exp(logs - of_singles)
