"""Trees whose leaves are the players, and whose inner nodes are unions of players."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..array_types import FloatArray, IntArray
from ..errors import InvalidArgumentError


@dataclass(frozen=True)
class Unions:
    """The unions of some players of a tree, numbered from the top.

    The union of all players has the number 0. The parts of a union have numbers in succession,
    larger than its own, sorted by their first players. A union has at least two parts; single
    players have none.

    Attributes
    ----------
    order : array, (m,)
        The players in an order in which those of each union follow each other.
    starts, stops : arrays, (n,)
        Where the players of each union are in this order.
    first_parts, n_parts : arrays, (n,)
        The number of the first part of each union, and how many parts it has.
    """

    order: IntArray
    starts: IntArray
    stops: IntArray
    first_parts: IntArray
    n_parts: IntArray

    @property
    def sizes(self) -> IntArray:
        """The number of players of each union."""
        return self.stops - self.starts

    @cached_property
    def parents(self) -> IntArray:
        """The union of which each is a part; 0 for that of all players."""
        parents = np.zeros(len(self.starts), dtype=np.intp)
        parents[1:] = np.repeat(np.arange(len(parents)), self.n_parts)
        return parents

    @cached_property
    def levels(self) -> list[tuple[IntArray, IntArray]]:
        """From the top: the parts at each depth, (p,), after the unions that they are parts of."""
        levels, parts = [], self.parts(0)
        while len(parts):
            levels.append((self.parents[parts], parts))
            wholes = parts[self.n_parts[parts] > 0]
            parts = np.concatenate([self.parts(union) for union in wholes.tolist()] or [wholes])
        return levels

    def parts(self, union: int) -> IntArray:
        """Return the numbers of the parts of a union."""
        first = int(self.first_parts[union])
        return np.arange(first, first + int(self.n_parts[union]))

    def players(self, union: int) -> IntArray:
        """Return the players of a union."""
        return self.order[self.starts[union] : self.stops[union]]


@dataclass(frozen=True, eq=False)
class PlayerTree:
    """A tree whose leaves are the players 0, …, M − 1, such as words in sentences in paragraphs.

    Make one with `from_nested`, `from_linkage` or `from_labels`. Trees with the same nodes are
    equal, and can be keys of a dictionary.

    Attributes
    ----------
    n_players : int
        The number of players, M.
    parents : array, (nodes,)
        The parent of each node. The players are the first nodes, each parent has a larger number
        than its children, and the last node is the root, whose parent is −1.
    linkage : array, (M − 1, 4), optional
        The linkage that the tree was made from.
    """

    n_players: int
    parents: IntArray
    linkage: FloatArray | None = None

    @classmethod
    def from_linkage(cls, linkage: npt.ArrayLike) -> PlayerTree:
        """Return the tree of a linkage of SciPy, or of the `clustering` of a masker of shap.

        Parameters
        ----------
        linkage : array, (M − 1, 4)
            Row i joins the nodes in its first two columns to the node M + i.

        Raises
        ------
        InvalidArgumentError
            If it is not a linkage.

        Examples
        --------
        >>> from scipy.cluster.hierarchy import linkage
        >>> from shapley_adapters import PlayerTree
        >>> PlayerTree.from_linkage(linkage([[0.0], [0.1], [5.0]])).nested()
        [[0, 1], 2]
        """
        table = np.asarray(linkage, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != 4:
            raise InvalidArgumentError(
                "hierarchy, as a linkage of SciPy, must have four columns, of which the first two "
                f"are the joined nodes; got an array of shape {table.shape}."
            )
        n_players = len(table) + 1
        pairs = table[:, :2]
        limits = n_players + np.arange(len(table))[:, None]
        if not ((pairs == np.round(pairs)) & (pairs >= 0) & (pairs < limits)).all():
            raise InvalidArgumentError(
                "hierarchy, as a linkage of SciPy, joins nodes that do not exist yet. A row may "
                f"join the {n_players} players and the nodes of the rows before it."
            )
        joined = pairs.astype(np.intp)
        twice = np.flatnonzero(np.bincount(joined.ravel(), minlength=2 * n_players - 1) > 1)
        if len(twice):
            raise InvalidArgumentError(f"hierarchy, as a linkage, joins node {twice[0]} twice.")
        parents = np.full(2 * n_players - 1, -1)
        parents[joined] = limits
        return cls(n_players, parents, table)

    @classmethod
    def from_labels(cls, levels: Sequence[npt.ArrayLike]) -> PlayerTree:
        """Return the tree of nested partitions, such as coarse and fine segments of an image.

        Parameters
        ----------
        levels : sequence of arrays of int, (M,) each
            The label of each player's union, the coarsest partition first.

        Raises
        ------
        InvalidArgumentError
            If a union of a level is in two unions of the level before it.
        """
        arrays = [np.asarray(labels) for labels in levels]
        groups = np.zeros(len(arrays[0]), dtype=np.intp)
        parents_of_levels = []
        for level, labels in enumerate(arrays):
            _, own = np.unique(labels, return_inverse=True)
            both, first, inverse = np.unique(
                groups * (own.max() + 1) + own, return_index=True, return_inverse=True
            )
            if len(both) > own.max() + 1:
                shared = labels[first][np.bincount(own[first])[own[first]] > 1][0]
                raise InvalidArgumentError(
                    f"hierarchy has partitions that are not nested: segment {shared} of level "
                    f"{level} lies in several segments of level {level - 1}. Pass the coarsest "
                    "level first, and give segments of different parents different numbers."
                )
            parents_of_levels.append(groups[first])
            groups = inverse.reshape(-1)
        parents_of_levels.append(groups)
        sizes = [len(parents) for parents in parents_of_levels[::-1]]  # from the players up
        offsets = np.cumsum(sizes)
        upward = zip(parents_of_levels[::-1], offsets, strict=True)
        parents = [of_level + offset for of_level, offset in upward]
        return cls(len(groups), np.concatenate([*parents, [-1]]))

    @classmethod
    def from_nested(
        cls, nested: object, n_players: int, names: Sequence[object] | None = None
    ) -> PlayerTree:
        """Return the tree of nested lists of players, such as `[[0, 1], [2, [3, 4]]]`.

        Parameters
        ----------
        nested : list, tuple or mapping
            Unions: lists of players and of unions. A mapping is a list of its values.
        n_players : int
            The number of players, M.
        names : sequence, optional
            Names of the players, which may stand for their numbers.

        Raises
        ------
        InvalidArgumentError
            If a player is unknown, missing, or in two places.

        Examples
        --------
        >>> from shapley_adapters import PlayerTree
        >>> PlayerTree.from_nested([[0, 1], [2, [3, 4]]], 5).n_nodes
        9
        """
        numbers = {name: player for player, name in enumerate(names or ())}
        parents, waiting = [-1], [(nested, 0)]  # unions alone, from the top
        union_of_players = np.full(n_players, -1)
        while waiting:
            union, number = waiting.pop()
            parts = list(union.values()) if isinstance(union, Mapping) else list(union)  # type: ignore[call-overload]
            if not parts:
                raise InvalidArgumentError("hierarchy has an empty union; leave it out.")
            for part in parts:
                if isinstance(part, (list, tuple, set, frozenset, range, Mapping, np.ndarray)):
                    parents.append(number)
                    waiting.append((part, len(parents) - 1))
                    continue
                player = _player(part, numbers, n_players)
                if union_of_players[player] >= 0:
                    raise InvalidArgumentError(
                        f"hierarchy has player {part!r} in two places; each player belongs to one "
                        "union."
                    )
                union_of_players[player] = number
        missing = np.flatnonzero(union_of_players < 0)
        if len(missing):
            some = [(names[player] if names else player) for player in missing[:5].tolist()]
            raise InvalidArgumentError(
                f"hierarchy leaves out {len(missing)} of the {n_players} players, such as {some}. "
                "Each player must be in one union, or alone at the top."
            )
        last = n_players + len(parents) - 1  # unions are numbered from the top; turn them round
        upward = np.concatenate([union_of_players, np.array(parents)[::-1]])
        return cls(n_players, np.where(upward < 0, -1, last - upward))

    @property
    def n_nodes(self) -> int:
        """The number of players and unions."""
        return len(self.parents)

    def nested(self) -> list[object]:
        """Return the tree as nested lists of players; unions of one part are left out."""
        unions = self.all_unions
        lists: list[object] = [None] * len(unions.starts)
        for union in range(len(lists) - 1, -1, -1):
            parts = unions.parts(union)
            lists[union] = (
                [lists[part] for part in parts] if len(parts) else int(unions.players(union)[0])
            )
        top = lists[0]
        return top if isinstance(top, list) else [top]

    @cached_property
    def all_unions(self) -> Unions:
        """The unions of all players."""
        return self.unions(np.arange(self.n_players))

    def unions(self, players: IntArray) -> Unions:
        """Return the unions of some players, which get numbers in their order.

        Unions of which no player, or all players but those of one part, are left out are none.
        """
        n_players, n_nodes = self.n_players, self.n_nodes
        numbers = np.full(n_nodes, -1)
        numbers[players] = np.arange(len(players))
        sizes = (numbers >= 0).astype(int).tolist()
        parts: list[list[int]] = [[] for _ in range(n_nodes)]
        smallest = list(range(n_nodes))  # player of each node, by which parts are sorted
        top = 0
        for node, parent in enumerate(self.parents.tolist()):
            own = parts[node]
            if own:
                own.sort(key=smallest.__getitem__)
                smallest[node], sizes[node] = smallest[own[0]], sum(sizes[part] for part in own)
            if sizes[node]:
                top = own[0] if len(own) == 1 else node
                if parent >= 0:
                    parts[parent].append(top)
        nodes, starts, first, count = [top], [0], [], []
        for node, start_of_node in zip(nodes, starts, strict=True):  # both grow
            first.append(len(nodes))
            count.append(len(parts[node]))
            nodes += parts[node]
            start = start_of_node
            for part in parts[node]:
                starts.append(start)
                start += sizes[part]
        kept, begin = np.array(nodes), np.array(starts)
        is_player = kept < n_players
        order = np.empty(len(players), dtype=np.intp)
        order[begin[is_player]] = numbers[kept[is_player]]
        return Unions(order, begin, begin + np.array(sizes)[kept], np.array(first), np.array(count))

    def embedded(self, players: IntArray, n_players: int) -> PlayerTree:
        """Return the tree of `n_players` in which player i is `players[i]`, the others at the top.

        Rows with fewer players than others, such as short texts, have such trees.
        """
        if n_players == self.n_players and (players == np.arange(n_players)).all():
            return self
        shift = n_players - self.n_players
        parents = np.full(self.n_nodes + shift, self.n_nodes - 1 + shift)
        parents[players] = self.parents[: self.n_players] + shift
        parents[n_players:] = self.parents[self.n_players :] + shift
        parents[-1] = -1
        return PlayerTree(n_players, parents)

    def to_linkage(self, n_players: int) -> FloatArray:
        """Return the tree of the first n players as a linkage of SciPy, (n − 1, 4).

        Of more than two parts, neighbours are joined first. The distance of a union is its share of
        all players.
        """
        if self.linkage is not None and n_players == self.n_players:
            return self.linkage
        unions = self.unions(np.arange(n_players))
        rows: list[tuple[float, ...]] = []
        node_of = np.empty(len(unions.starts), dtype=np.intp)
        sizes = [1] * n_players
        for union in range(len(node_of) - 1, -1, -1):
            parts = node_of[unions.parts(union)].tolist() or [int(unions.players(union)[0])]
            while len(parts) > 1:
                pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
                parts = []
                for pair in pairs:
                    if len(pair) == 2:
                        sizes.append(sizes[pair[0]] + sizes[pair[1]])
                        rows.append((*pair, sizes[-1] / n_players, sizes[-1]))
                    parts.append(len(sizes) - 1 if len(pair) == 2 else pair[0])
            node_of[union] = parts[0]
        return np.array(rows, dtype=np.float64).reshape(-1, 4)

    def __eq__(self, other: object) -> bool:
        """Compare the nodes."""
        return isinstance(other, PlayerTree) and self._content == other._content

    def __hash__(self) -> int:
        """Return the hash of the nodes."""
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[int, bytes]:
        return self.n_players, self.parents.tobytes()


def _player(part: object, numbers: Mapping[object, int], n_players: int) -> int:
    """Return the number of a player that a nested list names."""
    if part in numbers:
        return numbers[part]
    is_number = isinstance(part, (int, np.integer)) and not isinstance(part, bool)
    if is_number and 0 <= int(part) < n_players:  # type: ignore[call-overload]
        return int(part)  # type: ignore[call-overload]
    known = f"numbers from 0 to {n_players - 1}" + (" or names" if numbers else "")
    raise InvalidArgumentError(f"hierarchy has an unknown player, {part!r}; players are {known}.")
