"""Forward and backward passes of the model, for estimators that use its gradients."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np

from ..array_types import BoolArray, FloatArray, IntArray
from ..errors import DerivativeError, InvalidArgumentError, row_number
from ..estimators.protocol import Passes
from ..games.evaluation import Evaluator
from ..games.game import Game
from .settings import Settings


def refuse_what_needs_values(game: Game, settings: Settings) -> None:
    """Refuse calls to whose values gradients do not belong, before anything is evaluated."""
    needs_values = {
        "interactions": settings.interactions is not None,
        "graph": settings.graph is not None,
        "repeats": settings.n_repeats > 1,
        "max_model_rows": settings.limiting_rows is not None,
        "random values": game.draws_values or game.answers_at_random,
        "training": settings.is_for_training,
    }
    for name in filter(needs_values.get, needs_values):
        raise InvalidArgumentError(f"gradients cannot be used with {name}. Leave out one of them.")
    if game.derivative_obstacle is not None:
        raise DerivativeError(f"There are no gradients: {game.derivative_obstacle}.")


def passes_at_ends(game: Game, rows: IntArray, settings: Settings, evaluate: Evaluator) -> Passes:
    """Return the passes of some rows at the values of all players and of none."""
    ends = np.array([1.0, 0.0])[:, None].repeat(game.n_players, axis=1)
    degrees = np.tile(ends, (len(rows), 1, 1))
    return Passes(ends, *_evaluated(game, rows, degrees, settings, evaluate))


def further_passes(
    known: Passes,
    wanted: Passes,
    game: Game,
    rows: IntArray,
    players: IntArray,
    settings: Settings,
    evaluate: Evaluator,
) -> Passes:
    """Return all passes that a design wants of the players, (R, m), of some rows.

    Raises
    ------
    DerivativeError
        If the gradients of a row are not finite.
    """
    degrees = np.zeros((len(rows), len(wanted.degrees) - 2, game.n_players))
    np.put_along_axis(degrees, players[:, None], wanted.degrees[None, 2:], axis=2)
    values, slopes = _evaluated(game, rows, degrees, settings, evaluate)
    slopes = np.concatenate([known.slopes, slopes], axis=1)
    slopes = np.take_along_axis(slopes, players[:, None, :, None], axis=2)
    refuse_useless(rows, slopes, are_usable(slopes))
    return replace(wanted, values=np.concatenate([known.values, values], axis=1), slopes=slopes)


def are_usable(slopes: FloatArray) -> BoolArray:
    """Return of which rows the gradients, (R, p, M, K), are finite and not zero everywhere."""
    are_finite = np.isfinite(slopes).all(axis=(1, 2, 3))
    return np.logical_and(are_finite, slopes.any(axis=(1, 2, 3)))


def refuse_useless(rows: IntArray, slopes: FloatArray, are_of_use: BoolArray) -> None:
    """Refuse rows whose gradients, (R, p, M, K), are not of use.

    Raises
    ------
    DerivativeError
        If there is one.
    """
    if not are_of_use.all():
        bad = int(np.argmin(are_of_use))
        kind = "zero everywhere" if np.isfinite(slopes[bad]).all() else "not finite"
        raise DerivativeError(
            f"The gradients of row {row_number(rows[bad])} are {kind}: the model detaches, rounds "
            "or compares its inputs, or has no slope there. Pass gradients=False."
        )


def _evaluated(
    game: Game, rows: IntArray, degrees: FloatArray, settings: Settings, evaluate: Evaluator
) -> tuple[FloatArray, FloatArray]:
    """Return values, (R, n, K), and slopes, (R, n, M, K), at degrees of presence, (R, n, M)."""
    # Imported here, so that models without derivatives do not load torch.
    from ..cooperators.derivatives_torch import values_and_slopes

    n_rows, n, n_players = degrees.shape
    started, flat = perf_counter(), degrees.reshape(-1, n_players)
    values, slopes = values_and_slopes(game, np.repeat(rows, n), flat, settings.batch_size)
    evaluate.spent[0] += perf_counter() - started
    if evaluate.on_progress is not None:
        evaluate.on_progress(n_rows * n * Passes.cost(values.shape[1]))
    return values.reshape(n_rows, n, -1), slopes.reshape(*degrees.shape, -1)
