"""Values of coalitions for criteria, computed in full batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import CoalitionArray, FloatArray, ValueArray
from ..coalitions.tables import CoalitionTable
from ..errors import InvalidArgumentError
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from .attribution_arrays import checked_attributions


def attributions_of_game(attributions: Any, game: Game) -> tuple[FloatArray, bool]:
    """Return the attributions of a game's players as (R, K, M), and whether they had no axis K.

    Raises
    ------
    InvalidArgumentError
        If they are not those of the game's rows and players.
    """
    values = checked_attributions("attributions", attributions)
    is_single = values.ndim == 2
    outputs = values[:, None] if is_single else values
    if outputs.ndim != 3 or (len(outputs), outputs.shape[2]) != (game.n_rows, game.n_players):
        raise InvalidArgumentError(
            f"attributions have shape {values.shape}; the model is explained for {game.n_rows} "
            f"rows and {game.n_players} features, so that ({game.n_rows}, {game.n_players}) is "
            "needed, or outputs between these two."
        )
    return outputs, is_single


def shared_values(game: Game, coalitions: CoalitionArray, n_outputs: int) -> ValueArray:
    """Return the values, (R, C, K), of coalitions, (C, M), that all rows share."""
    table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))
    return _checked(_evaluated(game, table), n_outputs)


def own_values(game: Game, coalitions: CoalitionArray) -> ValueArray:
    """Return the values, (R, K, C), of coalitions, (R, K, C, M), of each row and output."""
    n_rows, n_outputs, n_coalitions, n_players = coalitions.shape
    of_rows = coalitions.reshape(n_rows, n_outputs * n_coalitions, n_players)
    table = CoalitionTable(of_rows, np.full(n_rows, of_rows.shape[1]))
    values = _checked(_evaluated(game, table), n_outputs)
    by_output = values.reshape(n_rows, n_outputs, n_coalitions, n_outputs)
    of_own_output: ValueArray = np.einsum("rkck->rkc", by_output)
    return of_own_output


def _evaluated(game: Game, table: CoalitionTable) -> ValueArray:
    (values,) = Evaluator(game)([Request(np.arange(game.n_rows), table)])
    return values


def _checked(values: ValueArray, n_outputs: int) -> ValueArray:
    if values.shape[2] != n_outputs:
        raise InvalidArgumentError(
            f"attributions are of {n_outputs} outputs, but the model has {values.shape[2]}. Pass "
            "the attributions of all outputs, or a model that returns the explained one."
        )
    return values
