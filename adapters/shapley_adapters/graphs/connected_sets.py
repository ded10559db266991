"""Connected sets of nodes, each of them once.

Sets are bits of whole numbers: node j is in the set where bit j is 1. These are sets within a small
part of the graph, so that the numbers stay short however large the graph is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..array_types import BoolArray, IntArray
from .player_graph import PlayerGraph


@dataclass(frozen=True)
class Part:
    """Some nodes of a graph, numbered anew from 0.

    Attributes
    ----------
    nodes : array, (n,)
        Which players they are.
    links : sequence of int
        The set of neighbours of each, among them.
    """

    nodes: IntArray
    links: Sequence[int]

    @property
    def everyone(self) -> int:
        """The set of all its nodes."""
        return (1 << len(self.nodes)) - 1


def part_of(graph: PlayerGraph, nodes: IntArray) -> Part:
    """Return the part of a graph that the given nodes make."""
    inside, near = nodes.tolist(), graph.neighbour_lists
    bit = {node: 1 << place for place, node in enumerate(inside)}
    links = [sum([bit[other] for other in near[node] if other in bit]) for node in inside]
    return Part(nodes, links)


def connected_sets(
    links: Sequence[int], root: int = 0, allowed: int = -1, largest: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield each connected set that contains `root`, and its boundary, once.

    A set is extended by one node of its boundary at a time. Whoever was passed over on the way is
    left out of all that follows, which makes each set come up by one way only: nothing that was
    seen has to be remembered. Time for a set is that of going through its boundary; memory is that
    of one chain of sets, whatever their number.

    Parameters
    ----------
    links : sequence of int
        The set of neighbours of each node.
    root : int
        The node.
    allowed : int
        The set of nodes that may belong to the sets; all by default. Others may be in boundaries.
    largest : int, optional
        The largest size of a set.

    Yields
    ------
    members, boundary : int
        The set, and the nodes outside it that are next to it.
    """
    start = 1 << root
    # The set, its size, all neighbours of its members, who may still be added, and who may not.
    stack = [(start, 1, links[root], links[root] & allowed & ~start, start)]
    while stack:
        members, size, reached, candidates, passed = stack.pop()
        yield members, reached & ~members
        if size == largest:
            continue
        while candidates:
            chosen = candidates & -candidates
            candidates ^= chosen
            passed |= chosen
            beyond = links[chosen.bit_length() - 1]
            more = candidates | (beyond & allowed & ~passed)
            stack.append((members | chosen, size + 1, reached | beyond, more, passed))


def all_connected_sets(
    graph: PlayerGraph, largest: int | None = None
) -> Iterator[tuple[Part, Iterator[tuple[int, int]]]]:
    """Yield all connected sets of up to `largest` nodes, those of each smallest member together.

    Yields
    ------
    part : Part
        The nodes that the sets and their boundaries are made of.
    sets : iterator of pairs of int
        The sets whose smallest member is the first node of the part, and their boundaries.
    """
    components = np.split(
        np.argsort(graph.components, kind="stable"), np.cumsum(np.bincount(graph.components))[:-1]
    )
    for node in range(graph.n_players):
        if largest is None:
            others = components[graph.components[node]]
            nodes = np.concatenate([[node], others[others != node]])
        else:
            nodes = graph.neighbourhood(node, largest)
        part = part_of(graph, nodes)
        allowed = sum(1 << place for place, other in enumerate(nodes.tolist()) if other >= node)
        yield part, connected_sets(part.links, 0, allowed, largest)


def n_sets_at_least(part: Part, is_active: BoolArray, is_rooted: bool) -> int:
    """Return a lower bound on how many different coalitions the connected sets of a part make.

    It counts the sets that are connected within one spanning tree, without listing them: as many
    as the product, over the children of a node, of one more than the sets below each child. Nodes
    that are not active are in no coalition, so that sets that differ in them alone count once.

    Parameters
    ----------
    part : Part
        A connected part. Its nodes are in order of their distance from the first one.
    is_active : array, (n,)
        Which of its nodes are in coalitions.
    is_rooted : bool
        Whether only the sets that contain the first node count, or all of them.
    """
    n_below = [1] * len(part.nodes)  # sets whose node closest to the first is this one
    for node in range(len(part.nodes) - 1, 0, -1):
        nearer = part.links[node] & ((1 << node) - 1)
        parent = (nearer & -nearer).bit_length() - 1
        n_below[parent] *= n_below[node] + int(is_active[node])
    if is_rooted:
        return n_below[0]
    return sum(n for n, counts in zip(n_below, is_active.tolist(), strict=True) if counts)


def component_around(links: Sequence[int], node: int, members: int) -> int:
    """Return the connected component of a set, `members`, that contains a node of it."""
    component = shell = 1 << node
    while shell:
        reached = 0
        while shell:
            lowest = shell & -shell
            shell ^= lowest
            reached |= links[lowest.bit_length() - 1]
            if not members & ~(component | reached):
                return members  # as it often is, for everyone is next to a hub
        shell = reached & members & ~component
        component |= shell
    return component


def as_numbers(rows: BoolArray) -> list[int]:
    """Return rows of flags, (n, n_nodes), as sets."""
    table = np.packbits(rows, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in table]


def members_of(one: int) -> Iterator[int]:
    """Yield the nodes of a set, in order."""
    while one:
        lowest = one & -one
        one ^= lowest
        yield lowest.bit_length() - 1


def components_of(links: Sequence[int], members: int) -> Iterator[int]:
    """Yield the connected components of a set."""
    while members:
        component, shell = 0, members & -members
        while shell:
            component |= shell
            reached = 0
            while shell:
                lowest = shell & -shell
                shell ^= lowest
                reached |= links[lowest.bit_length() - 1]
            shell = reached & members & ~component
        yield component
        members &= ~component


def as_rows(sets: Sequence[int], n_nodes: int) -> BoolArray:
    """Return sets as rows of flags, (n, n_nodes)."""
    n_bytes = max(1, -(-n_nodes // 8))
    together = b"".join(members.to_bytes(n_bytes, "little") for members in sets)
    table = np.frombuffer(together, dtype=np.uint8).reshape(-1, n_bytes)
    return np.unpackbits(table, axis=1, count=n_nodes, bitorder="little").view(bool)
