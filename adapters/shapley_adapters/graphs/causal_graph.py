"""Causes and effects among features, from a user's order or graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..array_types import BoolArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError

if TYPE_CHECKING:
    import networkx as nx

CausalOrder: TypeAlias = Sequence[object]
"""Features, or lists of features whose order is not known, causes before effects."""

CausalEdges: TypeAlias = "nx.DiGraph | Sequence[tuple[Any, Any]]"
"""Edges from causes to effects. A tuple of features is one node: their order is not known."""


@dataclass(frozen=True)
class CausalGraph:
    """A causal chain graph: components of features, and the components that are their causes.

    Attributes
    ----------
    components : tuple of tuples of int
        The features of each component, causes before effects. Each feature is in one of them.
    causes : tuple of tuples of int
        The components that are direct causes of each component: earlier ones.
    is_split : bool
        Whether each of D features is two players that follow each other: feature i is the player i,
        then the player D + i.
    """

    components: tuple[tuple[int, ...], ...]
    causes: tuple[tuple[int, ...], ...]
    is_split: bool = False

    @property
    def n_features(self) -> int:
        """The number of features, D."""
        return sum(map(len, self.components))

    @property
    def n_players(self) -> int:
        """The number of features, or of players that these are split into."""
        return self.n_features * (2 if self.is_split else 1)

    def members(self, components: Sequence[int]) -> BoolArray:
        """Return which features are in some of the components, (D,)."""
        chosen = np.zeros(self.n_features, dtype=bool)
        for component in components:
            chosen[list(self.components[component])] = True
        return chosen

    @cached_property
    def precedes(self) -> BoolArray:
        """Whether feature i is a cause of feature j, direct or not, (D, D)."""
        precedes = np.zeros((self.n_features, self.n_features), dtype=bool)
        for own, causes in zip(self.components, self.causes, strict=True):
            direct = self.members(causes)
            precedes[:, own] = (direct | precedes[:, direct].any(axis=1))[:, None]
        return precedes

    @classmethod
    def from_order(
        cls, order: CausalOrder, n_features: int, names: Sequence[Any] | None = None
    ) -> CausalGraph:
        """Return the graph in which all earlier entries of an order are causes of the later ones.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If the order does not hold each feature once.
        """
        if isinstance(order, str) or not isinstance(order, (Sequence, np.ndarray)):
            raise InvalidArgumentTypeError(
                "order must be a list of features, or of lists of features whose order is not "
                f"known, causes before effects; got {type(order).__name__}."
            )
        reader = _Reader("order", n_features, names)
        components = [reader.component(entry) for entry in order]
        lacking = reader.unread()
        if lacking:
            shown = lacking if names is None else [names[index] for index in lacking]
            raise InvalidArgumentError(
                f"order lacks the features {shown[:5]}. Each feature has a place: put those "
                "without causes first."
            )
        return cls(tuple(components), tuple(tuple(range(place)) for place in range(len(order))))

    @classmethod
    def from_edges(
        cls, graph: CausalEdges, n_features: int, names: Sequence[Any] | None = None
    ) -> CausalGraph:
        """Return the graph of edges from causes to effects; other features have no causes.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If the edges are not pairs of features, or lead back to where they came from.
        """
        given: Any = graph
        if hasattr(given, "is_directed"):  # a graph of networkx, without importing it
            if not given.is_directed():
                raise InvalidArgumentError(
                    "graph has edges without direction. Pass a networkx.DiGraph from causes to "
                    "effects, in which features whose order is not known are one node, a tuple."
                )
            nodes, edges = list(given.nodes), list(given.edges())
        else:
            nodes, edges = [], _checked_edges(graph)
        reader = _Reader("graph", n_features, names)
        named = dict.fromkeys([*nodes, *(node for edge in edges for node in edge)])
        component_of = {node: reader.component(node) for node in named}
        everyone = [*component_of.values(), *((index,) for index in reader.unread())]
        causes_of: dict[tuple[int, ...], set[tuple[int, ...]]] = {c: set() for c in everyone}
        name_of = {component: node for node, component in component_of.items()}
        for cause, effect in edges:
            causes_of[component_of[effect]].add(component_of[cause])
        try:
            components = tuple(TopologicalSorter(causes_of).static_order())
        except CycleError as error:
            cycle = " → ".join(repr(name_of[component]) for component in error.args[1])
            raise InvalidArgumentError(
                f"graph has a cycle: {cycle}. Causes must not follow from their effects. Make "
                "features that influence each other one node, a tuple of them."
            ) from None
        place = {component: index for index, component in enumerate(components)}
        causes = (tuple(sorted(place[cause] for cause in causes_of[c])) for c in components)
        return cls(components, tuple(causes))


def read_causal_graph(
    order: CausalOrder | None,
    graph: CausalEdges | None,
    n_features: int,
    names: Sequence[Any] | None = None,
) -> CausalGraph:
    """Return the graph of the arguments `order` and `graph`, of which one is given."""
    if order is not None and graph is None:
        return CausalGraph.from_order(order, n_features, names)
    if graph is not None and order is None:
        return CausalGraph.from_edges(graph, n_features, names)
    raise InvalidArgumentError(
        f"order and graph are {'missing' if order is None else 'both given'}. Pass one of them: "
        "order=, a list of features and lists of features, causes before effects; or graph=, edges "
        "from causes to effects."
    )


def _checked_edges(graph: object) -> list[tuple[Any, Any]]:
    if isinstance(graph, (str, bytes)) or not isinstance(graph, Iterable):
        raise InvalidArgumentTypeError(
            "graph must be a networkx.DiGraph or a list of edges (cause, effect); got "
            f"{type(graph).__name__}."
        )
    edges = list(graph)
    for edge in edges:
        if isinstance(edge, (str, bytes)) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise InvalidArgumentError(
                f"graph holds {edge!r}; each edge is a pair (cause, effect) of features, or of "
                "tuples of features whose order is not known."
            )
    return [(_hashable(cause), _hashable(effect)) for cause, effect in edges]


def _hashable(node: Any) -> Any:
    return tuple(node) if isinstance(node, (list, set)) else node


@dataclass
class _Reader:
    """Finds the features that a user names, each once."""

    argument: str
    n_features: int
    names: Sequence[Any] | None

    def __post_init__(self) -> None:
        self._numbers = {
            name: index for index, name in enumerate(() if self.names is None else self.names)
        }
        self._is_read = np.zeros(self.n_features, dtype=bool)

    def component(self, entry: Any) -> tuple[int, ...]:
        """Return the features of a list of them, or a single one."""
        is_list = isinstance(entry, (list, tuple, set, frozenset)) and not self._is_name(entry)
        return tuple(self._feature(feature) for feature in (entry if is_list else [entry]))

    def unread(self) -> list[int]:
        """Return the features that were not named."""
        return np.flatnonzero(~self._is_read).tolist()

    def _is_name(self, entry: Any) -> bool:
        try:
            return entry in self._numbers
        except TypeError:  # it cannot be hashed
            return False

    def _feature(self, feature: Any) -> int:
        index = self._numbers[feature] if self._is_name(feature) else feature
        is_number = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
        if not is_number or not 0 <= index < self.n_features:
            known = f"the indices from 0 to {self.n_features - 1}"
            if self.names is not None:
                known = f"{', '.join(repr(name) for name in self.names[:5])}, … or {known}"
            raise InvalidArgumentError(
                f"{self.argument} holds {feature!r}, which is no feature. Features are {known}."
            )
        if self._is_read[index]:
            raise InvalidArgumentError(
                f"{self.argument} holds {feature!r} twice, so that it would be its own cause. Put "
                "features whose order is not known together, in one list of an order, or in one "
                "tuple that is a node of a graph."
            )
        self._is_read[index] = True
        return int(index)
