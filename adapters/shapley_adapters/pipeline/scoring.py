"""Scores per row: how much each pair of players cooperates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..array_types import CoalitionArray, IntArray, ScoreArray, ValueArray
from ..coalitions.tables import pack
from ..cooperators.choices import DERIVATIVES, LEARNED
from ..cooperators.scores import (
    Scores,
    difference_coalitions,
    difference_scores,
    scores_before_evaluation,
)
from ..games.game import Game
from .designs import RowGroup


@dataclass(frozen=True)
class Scoring:
    """Computes the scores of a group of rows.

    Attributes
    ----------
    cooperators : str or array
        The source of the scores, as in `Shear`.
    budget : int
        The evaluations for each row.
    minimum_budget : int
        The evaluations that the estimate needs without the scores.
    seed : int
        Seed of the random scores.
    count : callable
        Counts scores that are unreliable.
    know : callable
        Takes a group and coalitions. Returns the group that knows them, too, and the values of all
        coalitions that it then knows, (R, n, K).
    """

    cooperators: str | ScoreArray
    budget: int
    minimum_budget: int
    seed: int
    count: Callable[[Scores], object]
    know: Callable[[RowGroup, CoalitionArray], tuple[RowGroup, ValueArray]]

    def scored(self, group: RowGroup, game: Game, batch_size: int | None) -> list[RowGroup]:
        """Return the group with scores; two groups where the source differs between the rows."""
        computed = scores_before_evaluation(
            game,
            group.rows,
            self.cooperators,
            batch_size,
            self._differences_fit(group.n_players),
        )
        self.count(computed)
        row = np.arange(len(computed.values))[:, None, None]
        scores = computed.values[row, group.players[:, :, None], group.players[:, None, :]]
        parts = []
        is_missing = computed.sources == ""
        if not is_missing.all():
            has_scores = ~is_missing
            rows = group.subset_rows(has_scores)
            passes = computed.backward_passes[has_scores]
            parts.append(rows.scored(scores[has_scores], computed.sources[has_scores], passes))
        if is_missing.any():
            passes = computed.backward_passes[is_missing]
            parts.append(self._without_derivatives(group.subset_rows(is_missing), passes))
        return parts

    def _without_derivatives(self, group: RowGroup, passes: IntArray) -> RowGroup:
        """Score by differences of values if the user chose them or they are cheap, else at random.

        No scores where the user chose derivatives alone.
        """
        if isinstance(self.cooperators, str) and self.cooperators == DERIVATIVES:
            shape = (len(group.rows), group.n_players, group.n_players)
            return group.scored(np.zeros(shape), "", passes)
        if not self._differences_fit(group.n_players):
            is_learned = isinstance(self.cooperators, str) and self.cooperators == LEARNED
            source = LEARNED if is_learned else "random"
            return group.scored(self._random_scores(group), source, passes)
        coalitions = difference_coalitions(group.n_players)
        group, values = self.know(group, coalitions)
        positions = {key.tobytes(): index for index, key in enumerate(pack(group.known))}
        indices = [positions[key.tobytes()] for key in pack(coalitions)]
        scores = difference_scores(values[:, 1], values[:, indices], group.n_players)
        return group.scored(scores, "difference", passes)

    def _differences_fit(self, n_players: int) -> bool:
        cost = n_players * (n_players + 1) // 2
        if isinstance(self.cooperators, str) and self.cooperators == "auto":
            return 2 * (cost + 1) <= self.budget and self.minimum_budget + cost <= self.budget
        return isinstance(self.cooperators, str) and self.cooperators == "difference"

    def _random_scores(self, group: RowGroup) -> ScoreArray:
        shape = (group.n_players, group.n_players)
        # Not the stream of the coalitions.
        if group.own_words is None:
            scores = group.generator(self.seed, 1).random(shape)
            return np.broadcast_to(scores, (len(group.rows), *shape))
        return np.stack([row.generator(self.seed, 1).random(shape) for row in group.one_by_one()])
