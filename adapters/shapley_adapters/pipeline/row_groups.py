"""Rows that can be treated alike, and the rounds of their evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..array_types import BoolArray, CoalitionArray, IntArray, ScoreArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..estimators.exact import full_design
from ..estimators.protocol import Design
from ..games.evaluation import Request
from ..graphs.player_graph import PlayerGraph

GROWTH = 1.25
"""Factor from the end of a round to the end of the next. At most a fifth of the evaluations of a
row come after it could have stopped."""


@dataclass(frozen=True)
class RowGroup:
    """Some rows of a game, seen as games of their m active players.

    They have as many active players and the same known coalitions.

    Attributes
    ----------
    rows : array, (R,)
        The rows of the game.
    players : array, (R, m)
        The active players of each row, in the order of the coalitions' columns.
    n_players, n_game_players : int
        The number of active players, m, and of players of the game.
    known : array, (n, m)
        The coalitions evaluated so far.
    known_values : array, (R, n, K)
        Their values.
    scores, sources, backward_passes : arrays, (R, m, m), (R,) and (R,), or None
        How much the players of each row cooperate, the source of these scores, and the backward
        passes that they needed.
    graph : PlayerGraph, optional
        The graph of all players of the game. All rows of a group have the same graph and the same
        active players.
    own_words : array, (R, 4), or None
        Part of the seed of each row's random draws, where rows have draws of their own.
    """

    rows: IntArray
    players: IntArray
    n_players: int
    n_game_players: int
    known: CoalitionArray
    known_values: ValueArray
    scores: ScoreArray | None = None
    sources: npt.NDArray[np.str_] | None = None
    backward_passes: IntArray | None = None
    graph: PlayerGraph | None = None
    own_words: npt.NDArray[np.uint32] | None = None

    def request(self, table: CoalitionTable) -> Request:
        """Return the request for the values of coalitions of the active players."""
        all_players = np.tile(np.arange(self.n_game_players), (len(self.rows), 1))
        if np.array_equal(self.players, all_players):
            return Request(self.rows, table)
        return Request(self.rows, table, self.players, self.n_game_players)

    def subset_rows(self, keep: BoolArray | IntArray) -> RowGroup:
        """Return the group of some of its rows, given by their indices or by a mask."""
        return replace(
            self,
            rows=self.rows[keep],
            players=self.players[keep],
            known_values=self.known_values[keep],
            scores=None if self.scores is None else self.scores[keep],
            sources=None if self.sources is None else self.sources[keep],
            backward_passes=None if self.backward_passes is None else self.backward_passes[keep],
            own_words=None if self.own_words is None else self.own_words[keep],
        )

    def one_by_one(self) -> list[RowGroup]:
        """Return each row as a group."""
        return [self.subset_rows(np.array([index])) for index in range(len(self.rows))]

    def generator(self, seed: int, *purpose: int) -> np.random.Generator:
        """Return the random stream of the group, or of its only row.

        Each number of players has its own stream, so that the other rows have no influence.
        """
        words = () if self.own_words is None else tuple(self.own_words[0].tolist())
        key = (self.n_players, *purpose, *words)
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))

    def relabelled(self, seed: int) -> RowGroup:
        """Return the group with the players of each row in a random order, drawn for the row."""
        orders = [row.generator(seed, 2).permutation(self.n_players) for row in self.one_by_one()]
        players = np.take_along_axis(self.players, np.array(orders), axis=1)
        return replace(self, players=players, own_words=None)

    def knowing(self, coalitions: CoalitionArray, values: ValueArray) -> RowGroup:
        """Return the group with more coalitions evaluated."""
        return replace(
            self,
            known=np.concatenate([self.known, coalitions]),
            known_values=np.concatenate([self.known_values, values], axis=1),
        )

    def scored(
        self, scores: ScoreArray, sources: npt.NDArray[np.str_] | str, passes: IntArray
    ) -> RowGroup:
        """Return the group with the scores of its active players."""
        row_sources = np.broadcast_to(np.asarray(sources, dtype="U10"), self.rows.shape)
        return replace(self, scores=scores, sources=row_sources, backward_passes=passes)


def group_rows(rows: IntArray, active: BoolArray, ends: ValueArray) -> list[RowGroup]:
    """Group `rows` by their number of active players; rows without any are left out."""
    n_active = active.sum(axis=1)
    groups = []
    for n_players in np.unique(n_active[n_active > 0]).tolist():
        of_group = n_active == n_players
        players = np.nonzero(active[of_group])[1].reshape(-1, n_players)
        known, values = end_points(n_players), ends[of_group]
        group = RowGroup(rows[of_group], players, n_players, active.shape[1], known, values)
        groups.append(group)
    return groups


def group_rows_on_graphs(
    rows: IntArray, active: BoolArray, ends: ValueArray, graphs: Sequence[PlayerGraph]
) -> list[RowGroup]:
    """Group `rows` by their graph and their active players; rows without any are left out."""
    indices_of: dict[tuple[PlayerGraph, bytes], list[int]] = {}
    for index, graph in enumerate(graphs):
        if active[index].any():
            indices_of.setdefault((graph, active[index].tobytes()), []).append(index)
    groups = []
    for (graph, _), indices in indices_of.items():
        group = group_rows(rows[indices], active[indices], ends[indices])[0]
        groups.append(replace(group, graph=graph))
    return groups


@dataclass(frozen=True)
class PendingRows:
    """Rows of a group with the part of their design that has been evaluated.

    Attributes
    ----------
    group : RowGroup
        The rows.
    design : Design
        All coalitions that may be evaluated for them.
    values : array, (R, n, K)
        The values of the design's first coalitions.
    round_end : int
        The number of coalitions that are evaluated by the end of the present round.
    """

    group: RowGroup
    design: Design
    values: ValueArray
    round_end: int

    def request(self) -> Request:
        """Return the coalitions that the round still has to evaluate."""
        return self.group.request(self.design.table.part(self.values.shape[1], self.round_end))

    def subset_rows(self, indices: IntArray) -> PendingRows:
        """Return some of the rows, given by their indices."""
        return replace(
            self,
            group=self.group.subset_rows(indices),
            design=self.design.subset_rows(indices),
            values=self.values[indices],
        )

    def next_round(self) -> PendingRows:
        """Return the rows with a later end of the round."""
        return replace(self, round_end=int(np.ceil(GROWTH * self.round_end)))

    def enumerated(self) -> list[PendingRows]:
        """Return each row by itself, with the design of all coalitions."""
        rows = []
        for index in range(len(self.group.rows)):
            row = self.subset_rows(np.array([index]))
            table = row.design.table
            n_known = int(table.counts[0])
            full = full_design(self.group.n_players, table.coalitions[0, :n_known])
            n_all = int(full.table.counts[0])
            rows.append(PendingRows(row.group, full, row.values[:, :n_known], n_all))
        return rows
