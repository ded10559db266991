"""C-Shapley: marginal contributions to connected sets within a neighbourhood."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import ClassVar

import numpy as np

from ...arguments import checked_choice
from ...array_types import BoolArray, FloatArray, IntArray
from ...errors import InvalidArgumentError
from ...graphs.connected_sets import (
    Subgraph,
    as_numbers,
    as_rows,
    component_around,
    components_of,
    connected_sets,
    n_sets_at_least,
    set_weights,
    subgraph_of,
)
from ..protocol import Declaration, DesignRequest, GraphView
from .c_shapley_regression import ConnectedRegression
from .linear_design import (
    LinearDesign,
    LinearDesignBuilder,
    LinearEstimator,
    TooManyCoalitionsError,
)
from .neighbourhood_draws import (
    NeighbourhoodDraws,
    NeighbourhoodSampler,
    Samples,
    approximate_minimum,
    check_minimum,
)
from .order_selection import (
    MAX_COALITIONS,
    checked_order,
    enumerate_or_draw,
    enumerate_within_budget,
    with_shortfall,
)

VARIANTS = ("sum", "regression")

_OF_SUM = {"weighting": "myerson", "marginals": "removal"}
_OF_REGRESSION = {"shapes": "auto", "kernel": "shapley", "efficient": False}

WEIGHTINGS = ("myerson", "paper")

CONTEXTS = ("removed", "kept")

MARGINALS = ("removal", "components")


def c_shapley(
    order: int | str = "auto",
    variant: str = "sum",
    context: str = "removed",
    *,
    weighting: str = "myerson",
    marginals: str = "removal",
    shapes: str = "auto",
    kernel: str = "shapley",
    efficient: bool = False,
) -> CShapley | ConnectedRegression:
    """C-Shapley values: marginal contributions to connected sets of features on a graph.

    For features with neighbours, such as words, pixels or atoms, if features that are far apart
    hardly interact. The value of feature i is a weighted sum of v(U) − v(U∖i) over the connected
    sets U around i, within `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019,
    Definition 2). On a text these sets are the n-grams around a word. Attributions do not sum to
    the difference of the outputs. The cost depends on order and graph: about k² + 2k evaluations
    per word for order k on a text. Without a budget, a given order may need up to 65,536
    evaluations per row. If the order costs more than the budget, random orders of the large
    neighbourhoods are drawn. A feature then gets its marginal contribution to its component when it
    arrives. This is unbiased for the C-Shapley value of that order, and has standard errors.
    Everything else is exact, with standard errors of 0. For the regression and for
    `weighting="paper"`, nothing is drawn. `last_estimate.orders` holds the order used.

    Parameters
    ----------
    order : int or "auto"
        The largest distance of considered features, in edges; for the regression, the largest size
        of the sets. By default the largest order that the budget allows. For the sum it is at least
        1; if order 1 costs more, random orders are drawn. If the budget allows no neighbours at
        all, each feature is taken by itself, with a warning.
    variant : {"sum", "regression"}
        The sum of Definition 2, or the regression of v(U) − v(∅) on the members of U, over small
        connected sets U (4.3.2).
    context : {"removed", "kept"}
        Whether features outside the neighbourhood are absent, as in the paper, or present, as in
        the authors' code. For the regression, whether its target is v(U) − v(∅) or v(N) − v(N∖U).
    weighting : {"myerson", "paper"}
        The weight of a set of u features with b neighbours. "myerson" is (u − 1)! b! / (u + b)!,
        with which additive models are exact. "paper" is 2 / (u (u + 1) (u + 2)), the same for
        b = 2; with it, sets cannot be drawn at random.
    marginals : {"removal", "components"}
        The contribution of a feature to U: v(U) − v(U∖i), or v(U) less the sum of the values of the
        components of U∖i, as in the Myerson value. The latter takes fewer evaluations.
    shapes : {"auto", "connected", "squares"}
        The sets of the regression: all connected sets of up to `order` features, or the squares
        with sides up to `order`. "auto": squares on grids, and connected sets on other graphs.
    kernel : {"shapley", "equal"}
        The weights of the regression: those of the Shapley kernel, or equal ones. With hundreds of
        features, the kernel gives almost all weight to single features.
    efficient : bool
        Whether the regression is made to sum to the difference of the outputs with all features and
        with none.

    Raises
    ------
    InvalidArgumentError
        If an option of the other variant is given.
    """
    checked_choice("variant", variant, VARIANTS)
    # Both are built, so that each checks its options.
    sum_over_sets = CShapley(order if variant == "sum" else "auto", weighting, context, marginals)
    regression = ConnectedRegression(
        order if variant == "regression" else "auto", shapes, kernel, efficient, context
    )
    options = {
        "weighting": weighting,
        "marginals": marginals,
        "shapes": shapes,
        "kernel": kernel,
        "efficient": efficient,
    }
    foreign = _OF_REGRESSION if variant == "sum" else _OF_SUM
    for name, default in foreign.items():
        if options[name] != default:
            required_variant = "regression" if variant == "sum" else "sum"
            raise InvalidArgumentError(
                f"{name}={options[name]!r} is an option of variant={required_variant!r}; "
                f"leave it out, or change variant={variant!r}."
            )
    return sum_over_sets if variant == "sum" else regression


@dataclass(frozen=True)
class CShapley(LinearEstimator):
    """The sum over connected sets; `c_shapley` describes its options.

    φ_i = Σ_U c(U) (v(U) − v(U∖i)) over the connected sets U ∋ i within k edges of i. Not
    efficient: an approximation of the Shapley value of games in which players that are far apart,
    or apart in the coalition, do not interact. There it is exact.

    If the order costs more than the budget, the sets of small neighbourhoods are listed. For each
    of the other neighbourhoods, random orders of its players and their reverses are drawn. When i
    arrives, U is the component of i among the players that have arrived. The probability of a set
    is its weight c(U), so the draws are unbiased for the C-Shapley value of that order. Listed
    neighbourhoods are exact, with standard errors of 0; the others have standard errors from the
    draws. With `marginals="components"`, it is the Myerson value if the order covers the graph.
    """

    declaration: ClassVar[Declaration | None] = Declaration("C-Shapley", "graph", made_by=c_shapley)

    order: int | str = "auto"
    weighting: str = "myerson"
    context: str = "removed"
    marginals: str = "removal"

    def __post_init__(self) -> None:
        checked_order(self.order)
        checked_choice("weighting", self.weighting, WEIGHTINGS)
        checked_choice("context", self.context, CONTEXTS)
        checked_choice("marginals", self.marginals, MARGINALS)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of order 0: single players and the end points."""
        del with_errors
        return n_players + 2

    def design(self, request: DesignRequest) -> LinearDesign | NeighbourhoodDraws:
        """List the connected sets of each neighbourhood, or draw some if they are too many."""
        view = request.required_graph_view

        def enumerate_all(order: int, limit: int) -> LinearDesign | NeighbourhoodDraws:
            return self._enumerate(order, view, LinearDesignBuilder(view, request.known, limit))

        def draw(order: int) -> LinearDesign | NeighbourhoodDraws:
            return self._draw(order, view, request)

        covers = view.graph.is_covered
        needed = approximate_minimum(len(self._owners(view)), request.needs_errors)
        design: LinearDesign | NeighbourhoodDraws
        if self.weighting == "paper":
            design = enumerate_within_budget(self.order, enumerate_all, request, 0, covers)
            needed = f"more than {request.budget} evaluations, with weighting='myerson' {needed}"
        else:
            design = enumerate_or_draw(self.order, enumerate_all, draw, request, covers)
        return with_shortfall(self.order, design, 0, needed)

    def _enumerate(self, order: int, view: GraphView, builder: LinearDesignBuilder) -> LinearDesign:
        # Sets that differ only in null players are the same coalition.
        n_allowed = min(8 * builder.limit, sys.maxsize - 1)
        owners = self._owners(view)
        hub = owners[np.argmax(view.graph.degrees[owners])]
        _check_number(subgraph_of(view.graph, view.graph.neighbourhood(int(hub), order)), builder)
        for owner in owners.tolist():
            part = subgraph_of(view.graph, view.graph.neighbourhood(owner, order))
            if not builder.is_active[part.nodes].any():
                continue
            _check_number(part, builder)
            sets = builder.list_sets(
                connected_sets(part.neighbour_sets), n_allowed, len(part.nodes)
            )
            n_allowed -= len(sets)
            self._add(builder, part, sets)
        builder.count()
        return builder.design(order)

    def _draw(self, order: int, view: GraphView, request: DesignRequest) -> NeighbourhoodDraws:
        check_minimum(order, request.n_players, request)
        # A neighbourhood within an equal share of the budget is enumerated: draws cost no less.
        builder = LinearDesignBuilder(view, request.known, MAX_COALITIONS)
        neighbourhoods = [view.graph.neighbourhood(i, order) for i in self._owners(view).tolist()]
        parts = [
            subgraph_of(view.graph, nodes)
            for nodes in neighbourhoods
            if builder.is_active[nodes].any()
        ]
        share = max(4, (request.budget - 2) // len(parts))
        random_parts = {}
        for part in parts:
            sets: list[tuple[int, int]] = []
            if n_sets_at_least(part, builder.is_active[part.nodes], is_rooted=True) <= share:
                sets = list(islice(connected_sets(part.neighbour_sets), share))
            if 0 < 2 * len(sets) <= share:  # each set is evaluated without the owner, too
                self._add(builder, part, sets)
            else:
                random_parts[int(part.nodes[0])] = part
        sampler = NeighbourhoodSampler(
            order,
            {owner: part.nodes for owner, part in random_parts.items()},
            builder.design(order),
            builder,
            self.context == "kept",
        )

        def sample(owner: int, _: IntArray, ranks: IntArray) -> Samples:
            return self._components_on_arrival(random_parts[owner], ranks)

        return sampler.draw(sample, request)

    def _owners(self, view: GraphView) -> IntArray:
        """Return the nodes whose attribution may differ from 0."""
        # A null player changes no value of a set, but without it the set may be disconnected.
        if self.marginals == "removal":
            return view.players
        return np.arange(view.graph.n_players, dtype=np.intp)

    def _components_on_arrival(self, part: Subgraph, ranks: IntArray) -> Samples:
        """Return the component of the part's first node when it arrives, in orders and reverses.

        In a random order of the neighbourhood, this component is U with probability
        (u − 1)! b! / (u + b)!, the weight of U. The mean contribution of the node is therefore
        unbiased.
        """
        owner_rank = ranks[:, :1]
        is_present = np.stack([ranks <= owner_rank, ranks >= owner_rank], axis=1)
        present_sets = as_numbers(is_present.reshape(-1, ranks.shape[1]))
        sets = [component_around(part.neighbour_sets, 0, nodes) for nodes in present_sets]
        members, shares, of_set = self._marginals(part, sets, np.full(len(sets), 0.5))
        by_set = np.argsort(of_set, kind="stable")
        return Samples(members[by_set], shares[by_set], of_set[by_set] // 2)

    def _add(
        self, builder: LinearDesignBuilder, part: Subgraph, sets: list[tuple[int, int]]
    ) -> None:
        """Add the marginal contributions of the part's first node."""
        members = as_rows([inside for inside, _ in sets], len(part.nodes))
        sizes = members.sum(axis=1)
        if self.weighting == "myerson":
            weights = set_weights(sizes, np.array([boundary.bit_count() for _, boundary in sets]))
        else:
            weights = 2 / (sizes * (sizes + 1.0) * (sizes + 2.0))
        subsets, shares, _ = self._marginals(part, [inside for inside, _ in sets], weights)
        coalitions = builder.coalitions(part.nodes, subsets, self.context == "kept")
        builder.add(coalitions, shares[:, None], part.nodes[:1])

    def _marginals(
        self, part: Subgraph, sets: Sequence[int], weights: FloatArray
    ) -> tuple[BoolArray, FloatArray, IntArray]:
        """Return the contributions of the part's first node to sets, as shares of values.

        Returns
        -------
        members : array, (n, L)
            Sets of nodes of the part.
        shares : array, (n,)
            The factor of the value of each.
        of_set : array, (n,)
            The index of the set whose contribution each belongs to.
        """
        members, indices = as_rows(sets, len(part.nodes)), np.arange(len(sets))
        if self.marginals == "removal":
            without = members.copy()
            without[:, 0] = False
            pieces, piece_shares, of_piece = without, -weights, indices
            empty_shares = np.zeros(len(sets))
        else:
            split_sets = [list(components_of(part.neighbour_sets, nodes & ~1)) for nodes in sets]
            counts = np.array([len(components) for components in split_sets], dtype=np.intp)
            pieces = as_rows(list(chain.from_iterable(split_sets)), len(part.nodes))
            piece_shares, of_piece = -np.repeat(weights, counts), np.repeat(indices, counts)
            empty_shares = weights * (counts - 1)
        has_share = empty_shares != 0
        empty_sets = np.zeros((int(has_share.sum()), len(part.nodes)), dtype=bool)
        return (
            np.concatenate([members, pieces, empty_sets]),
            np.concatenate([weights, piece_shares, empty_shares[has_share]]),
            np.concatenate([indices, of_piece, indices[has_share]]),
        )


def _check_number(part: Subgraph, builder: LinearDesignBuilder) -> None:
    """Refuse a neighbourhood that has too many sets, before listing them."""
    n_sets = n_sets_at_least(part, builder.is_active[part.nodes], is_rooted=True)
    if n_sets > builder.limit:
        raise TooManyCoalitionsError(n_sets)
