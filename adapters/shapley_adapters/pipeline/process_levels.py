"""One process of all background rows: the games that it is fitted to, and what it takes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..array_types import BoolArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable
from ..errors import InvalidArgumentError
from ..estimators.draws import Draws
from ..estimators.odd_gp.background_process import Levels
from ..estimators.odd_gp.background_regression import DrawnValues
from ..estimators.protocol import Estimator
from ..games.game import Game
from .designs import RowGroup
from .settings import Settings

FEWEST_PLAYERS = 5
"""Players from which on the process is fitted: all coalitions of fewer are evaluated."""

_MOST_PLAYERS, _FEWEST_BACKGROUNDS, _MOST_COLUMNS = 100, 5, 500
"""Players, background rows and columns for which it is; more take much memory or time."""

_MOST_OF_PROCESS, _MOST_MODEL_ROWS = 8, 20_000
"""Rows of the model up to which it is: per player and background row, and in all. With more rows,
coalitions on many background rows err less; at 16,000, the process takes about 3 seconds. Measured
on five fitted models with 12, 30 and 60 features."""


@dataclass(frozen=True)
class GameLevels:
    """The levels of the players of a game, by its columns."""

    game: Game

    def means(
        self,
        draws: Draws,
        group: RowGroup,
        values: ValueArray,
        table: CoalitionTable,
        drawn: BoolArray,
    ) -> tuple[ValueArray, DrawnValues]:
        """Return those of `Draws.means`, with the draws and the levels of their players."""
        # The process needs no control variates, and they take long for many coalitions.
        means, errors = replace(draws, has_controls=False).means(values, table, drawn)
        found = DrawnValues(
            errors.odd,
            errors.even,
            errors.covariances,
            draws=draws.by_draw(values),
            drawn=np.broadcast_to(drawn, (len(values), *drawn.shape[1:])),
            levels=[
                self.levels(int(row), players)
                for row, players in zip(group.rows, group.players, strict=True)
            ],
            is_random=draws.is_random,
        )
        return means, found

    def levels(self, row: int, players: IntArray) -> Levels:
        """Return those of some players of a row, in this order."""
        found = self.game.level_columns(row)
        if found is None:
            raise InvalidArgumentError(
                f"max_model_rows needs rows of one kind, and row {row} has no columns, unlike row "
                "0. Pass max_evals instead."
            )
        columns, owners = found
        order = np.argsort(players)
        is_active = np.isin(owners, players)
        of_players = order[np.searchsorted(players[order], owners[is_active])]
        weights, n_backgrounds = self.game.background_weights, self.game.n_backgrounds
        of_backgrounds = np.full(n_backgrounds, 1 / n_backgrounds) if weights is None else weights
        return Levels.from_columns(columns[:, is_active], of_players, of_backgrounds)


def levels_of_process(
    game: Game, estimator: Estimator[Any], settings: Settings, sizes: Sequence[int]
) -> GameLevels | None:
    """Return the levels of players for one process of all background rows; None if it has none.

    It takes over from estimators that are posterior means themselves, where the budget pays for a
    small part of the background.
    """
    n_backgrounds, limit = game.n_backgrounds, settings.max_model_rows
    if not estimator.has_process or limit is None:
        return None
    fits = FEWEST_PLAYERS <= game.n_players <= _MOST_PLAYERS and limit <= _MOST_MODEL_ROWS
    if settings.interactions is not None or not fits:
        return None
    n_all = 2 ** max(sizes)
    n_most = min(settings.budget or n_all, n_all, _MOST_OF_PROCESS * game.n_players)
    if limit >= n_most * n_backgrounds:
        return None
    columns = game.level_columns(0) if n_backgrounds >= _FEWEST_BACKGROUNDS else None
    if columns is None or len(columns[1]) > _MOST_COLUMNS:
        return None
    return GameLevels(game)
