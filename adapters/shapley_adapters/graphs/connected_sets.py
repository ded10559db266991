"""Enumeration of connected sets of nodes, and their weights in the Myerson value.

A set is a whole number: node j is in the set if bit j is 1. The sets are within a small subgraph,
so that the numbers are short for large graphs too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special

from ..array_types import BoolArray, FloatArray, IntArray
from .player_graph import PlayerGraph


@dataclass(frozen=True)
class Subgraph:
    """A subgraph, whose nodes are numbered from 0.

    Attributes
    ----------
    nodes : array, (n,)
        The player of each node.
    neighbour_sets : sequence of int
        The set of neighbours of each node, within the subgraph.
    """

    nodes: IntArray
    neighbour_sets: Sequence[int]


def subgraph_of(graph: PlayerGraph, nodes: IntArray) -> Subgraph:
    """Return the subgraph with the given nodes."""
    inside, neighbour_lists = nodes.tolist(), graph.neighbour_lists
    bit = {node: 1 << index for index, node in enumerate(inside)}
    neighbour_sets = [
        sum([bit[neighbour] for neighbour in neighbour_lists[node] if neighbour in bit])
        for node in inside
    ]
    return Subgraph(nodes, neighbour_sets)


def connected_sets(
    neighbour_sets: Sequence[int], root: int = 0, allowed: int = -1, largest: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield each connected set that contains `root`, and its boundary, once.

    A set is extended by one node of its boundary at a time. After a node has been tried, it is
    excluded from the further extensions, so that each set is reached in one way only and no list
    of earlier sets is needed. The time per set is proportional to its boundary. The memory is that
    of one chain of sets.

    Parameters
    ----------
    neighbour_sets : sequence of int
        The set of neighbours of each node.
    root : int
        The node.
    allowed : int
        The nodes that the sets may contain; all by default. Other nodes may be in boundaries.
    largest : int, optional
        The largest size of a set.

    Yields
    ------
    members, boundary : int
        The set, and its neighbours outside the set.
    """
    start = 1 << root
    # The set, its size, all neighbours of its members, nodes that may be added, excluded nodes.
    stack = [(start, 1, neighbour_sets[root], neighbour_sets[root] & allowed & ~start, start)]
    while stack:
        members, size, neighbours, candidates, excluded = stack.pop()
        yield members, neighbours & ~members
        if size == largest:
            continue
        while candidates:
            node = candidates & -candidates
            candidates ^= node
            excluded |= node
            node_neighbours = neighbour_sets[node.bit_length() - 1]
            next_candidates = candidates | (node_neighbours & allowed & ~excluded)
            stack.append(
                (members | node, size + 1, neighbours | node_neighbours, next_candidates, excluded)
            )


def all_connected_sets(
    graph: PlayerGraph, largest: int | None = None
) -> Iterator[tuple[Subgraph, Iterator[tuple[int, int]]]]:
    """Yield all connected sets of up to `largest` nodes, grouped by their smallest member.

    Yields
    ------
    subgraph : Subgraph
        The subgraph with the nodes of the sets and of their boundaries.
    sets : iterator of pairs of int
        The sets whose smallest member is the first node of the subgraph, and their boundaries.
    """
    components = np.split(
        np.argsort(graph.components, kind="stable"), np.cumsum(np.bincount(graph.components))[:-1]
    )
    for node in range(graph.n_players):
        if largest is None:
            component = components[graph.components[node]]
            nodes = np.concatenate([[node], component[component != node]])
        else:
            nodes = graph.neighbourhood(node, largest)
        subgraph = subgraph_of(graph, nodes)
        allowed = sum(
            1 << index for index, other_node in enumerate(nodes.tolist()) if other_node >= node
        )
        yield subgraph, connected_sets(subgraph.neighbour_sets, 0, allowed, largest)


def n_sets_at_least(subgraph: Subgraph, is_active: BoolArray, is_rooted: bool) -> int:
    """Return a lower bound on the number of different coalitions of a subgraph's connected sets.

    It is the number of sets that are connected within one spanning tree. They are not listed: the
    number of sets with a node as their root is the product, over its children, of one plus the
    number for the child. Inactive nodes are in no coalition, so that sets that differ only in
    inactive nodes count once.

    Parameters
    ----------
    subgraph : Subgraph
        A connected subgraph, with nodes in order of their distance from the first one.
    is_active : array, (n,)
        Which of its nodes are active.
    is_rooted : bool
        Whether only the sets that contain the first node count.
    """
    n_below = [1] * len(subgraph.nodes)  # sets whose node closest to the first is this one
    for node in range(len(subgraph.nodes) - 1, 0, -1):
        nearer = subgraph.neighbour_sets[node] & ((1 << node) - 1)
        parent = (nearer & -nearer).bit_length() - 1
        n_below[parent] *= n_below[node] + int(is_active[node])
    if is_rooted:
        return n_below[0]
    return sum(n for n, counts in zip(n_below, is_active.tolist(), strict=True) if counts)


def component_around(neighbour_sets: Sequence[int], node: int, members: int) -> int:
    """Return the connected component of a set, `members`, that contains a node of it."""
    component = shell = 1 << node
    while shell:
        neighbours = 0
        while shell:
            lowest = shell & -shell
            shell ^= lowest
            neighbours |= neighbour_sets[lowest.bit_length() - 1]
            if not members & ~(component | neighbours):
                return members  # often true, because a hub is a neighbour of many nodes
        shell = neighbours & members & ~component
        component |= shell
    return component


def as_numbers(rows: BoolArray) -> list[int]:
    """Convert rows of flags, (n, n_nodes), to sets."""
    table = np.packbits(rows, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in table]


def members_of(members: int) -> Iterator[int]:
    """Yield the nodes of a set, in order."""
    while members:
        lowest = members & -members
        members ^= lowest
        yield lowest.bit_length() - 1


def components_of(neighbour_sets: Sequence[int], members: int) -> Iterator[int]:
    """Yield the connected components of a set."""
    while members:
        component, shell = 0, members & -members
        while shell:
            component |= shell
            neighbours = 0
            while shell:
                lowest = shell & -shell
                shell ^= lowest
                neighbours |= neighbour_sets[lowest.bit_length() - 1]
            shell = neighbours & members & ~component
        yield component
        members &= ~component


def as_rows(sets: Sequence[int], n_nodes: int) -> BoolArray:
    """Convert sets to rows of flags, (n, n_nodes)."""
    n_bytes = max(1, -(-n_nodes // 8))
    together = b"".join(members.to_bytes(n_bytes, "little") for members in sets)
    table = np.frombuffer(together, dtype=np.uint8).reshape(-1, n_bytes)
    return np.unpackbits(table, axis=1, count=n_nodes, bitorder="little").view(bool)


def set_weights(sizes: IntArray, n_next: IntArray) -> FloatArray:
    """Return (u − 1)! b! / (u + b)! for sets of u nodes with b nodes in their boundaries.

    It is the probability that in a random order a given member is the last one of the set, and the
    whole boundary comes after it, so that the member completes the set as a component.
    """
    return 1.0 / (sizes * scipy.special.comb(sizes + n_next, n_next))


def boundary_weights(sizes: IntArray, n_next: IntArray) -> FloatArray:
    """Return u! (b − 1)! / (u + b)!, the probability that a given boundary node extends the set.

    That is: all members come first, then this node before the rest of the boundary. It is 0 if
    there is no boundary.
    """
    with np.errstate(divide="ignore"):
        weights = 1.0 / (n_next * scipy.special.comb(sizes + n_next, n_next))
    return np.where(n_next > 0, weights, 0.0)
