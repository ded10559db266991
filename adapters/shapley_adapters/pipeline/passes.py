"""Forward and backward passes of the model, for estimators that use its gradients."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array_types import BoolArray, FloatArray, IntArray
from ..errors import DerivativeError, InvalidArgumentError, row_number
from ..estimators.protocol import Estimator, Passes
from ..games.evaluation import Evaluator
from ..games.game import NO_MODULE, Game
from .designs import PendingRows, RowGroup
from .repetition import ROUNDINGS
from .settings import Settings

if TYPE_CHECKING:
    from .run import Run


def usable(game: Game, estimator: Estimator[Any], settings: Settings) -> Estimator[Any]:
    """Return the estimator of a call, which uses values alone where gradients may not be of use."""
    if estimator.values_alone is None:
        return estimator
    # In training mode, values may be random.
    has_obstacle = game.is_in_training_mode or game.derivative_obstacle is not None
    return estimator.values_alone if has_obstacle or _needs_values(game, settings) else estimator


def obstacle_to_gradients(run: Run, estimator: Estimator[Any]) -> str:
    """Return what of the game was in the way of gradients; "" if nothing was, or none were wanted.

    That a model is none of torch is no news.
    """
    asked, game = (estimator.candidates or (estimator,))[0], run.game
    budgets = {n: of.limit for n, of in run.budgets.items() if n and not of.enumerates_now}
    are_wanted = any(asked.uses_gradients(*of_size) for of_size in budgets.items())
    if asked.values_alone is None or not are_wanted or _needs_values(game, run.settings):
        return ""
    in_the_way = "the model is in training mode" if game.is_in_training_mode else None
    in_the_way = in_the_way or game.derivative_obstacle
    return "" if in_the_way in (None, NO_MODULE) else str(in_the_way)


def refuse_what_needs_values(game: Game, settings: Settings) -> None:
    """Refuse calls for which gradients say nothing, before anything is evaluated."""
    if name := _needs_values(game, settings, are_required=True):
        raise InvalidArgumentError(f"gradients cannot be used with {name}. Leave out one of them.")
    if game.derivative_obstacle is not None:
        raise DerivativeError(f"There are no gradients: {game.derivative_obstacle}.")


def _needs_values(game: Game, settings: Settings, are_required: bool = False) -> str:
    """Return what gradients say nothing for; "" if there is nothing.

    For pairs, they say less than values in some networks, so that they have to be required.
    """
    wanted = settings.interactions
    needs_values = {
        "semivalues": wanted is not None and wanted.are_semivalues,
        "interactions of sets": wanted is not None and not (wanted.are_pairs and are_required),
        "graph": settings.graph is not None,
        "repeats": settings.n_repeats > 1,
        "max_model_rows": settings.saves_rows
        or any(limit is not None for limit in (settings.max_model_rows, settings.limiting_rows)),
        "random values": game.draws_values or game.answers_at_random,
        "training": settings.is_for_training,
        "a link": game.has_link,
    }
    return next(filter(needs_values.get, needs_values), "")


def passes_at_ends(
    run: Run, rows: IntArray, evaluate: Evaluator
) -> tuple[Passes, BoolArray, BoolArray, str | None]:
    """Return the passes of some rows at the values of all players and of none; which are of use.

    Also which players, (R, M), may change values nevertheless, because they have no slope there,
    and why no backward pass was run; None if all were.

    Raises
    ------
    DerivativeError
        If gradients are of no use and required, or the model fails where they are wanted.
    """
    ends = np.array([1.0, 0.0])[:, None].repeat(run.game.n_players, axis=1)
    degrees = np.tile(ends, (len(rows), 1, 1))
    is_required = run.estimator.values_alone is None
    values, slopes, obstacle = _evaluated(run, rows, degrees, evaluate, is_required)
    are_finite = np.isfinite(values).all(axis=(1, 2))
    if not are_finite.all():  # inputs may be infinite where their values are not
        raise DerivativeError(
            f"The values of row {row_number(rows[int(np.argmin(are_finite))])} are not finite "
            "where they are differentiated, between absent and present inputs. Pass "
            "gradients=False."
        )
    are_usable = _are_usable(rows, slopes, is_required)
    are_flat = run.active[rows] & ~slopes.any(axis=(1, 3)) & are_usable[:, None]
    return Passes(ends, values, slopes), are_usable, are_flat, obstacle


def with_flat_players(run: Run, group: RowGroup, evaluate: Evaluator) -> list[RowGroup]:
    """Return rows with the values of the players who have no slope, and those of all others.

    A column of categories changes the values, and has no slope anywhere: such rows have gradients
    no more. A token that a network leaves out changes nothing.

    Raises
    ------
    DerivativeError
        If these players change the values of a row, and gradients are required.
    """
    are_flat = run.are_flat[group.rows[0], group.players[0]]
    if not are_flat.any():
        return [group]
    fewest = Passes.fewest_evaluations(group.known_values.shape[2]) + 2
    if run.budgets[group.n_players].limit < fewest:
        change_little = np.zeros(len(group.rows), dtype=bool)
    else:
        group, values = run.knowing(group, np.stack([are_flat, ~are_flat]), evaluate)
        changes = np.abs(values[:, 2:] - values[:, :2]).max(axis=(1, 2))
        rounding = ROUNDINGS * max(run.game.rounding, np.finfo(float).eps)
        change_little = changes <= rounding * np.abs(values).max(axis=(1, 2))
    if run.estimator.values_alone is None and not change_little.all():
        bad = row_number(group.rows[int(np.argmin(change_little))])
        raise DerivativeError(
            f"Some features of row {bad} ({are_flat.sum()}) have no gradients, and may change its "
            "value: the model detaches, rounds or compares them. Pass gradients=False."
        )
    run.has_gradients[group.rows] = change_little
    return [
        replace(group.subset_rows(change_little == has_gradients), has_gradients=has_gradients)
        for has_gradients in np.unique(change_little).tolist()
    ]


def with_passes(
    run: Run, pending: PendingRows, known: Passes, evaluate: Evaluator
) -> list[PendingRows]:
    """Return rows with the gradients that their design asks for; `known` are those of all rows.

    Rows whose further gradients are not finite have a design of values alone, for what is left.

    Raises
    ------
    DerivativeError
        If the gradients of a row are not finite, and required.
    """
    design, group, wanted = pending.design, pending.group, pending.design.passes
    if wanted is None:
        return [pending]
    rows, players, n_passes = group.rows, group.players, len(wanted.degrees)
    degrees = np.zeros((len(rows), n_passes - 2, run.game.n_players))
    np.put_along_axis(degrees, players[:, None], wanted.degrees[None, 2:], axis=2)
    further = _evaluated(run, rows, degrees, evaluate)[:2]
    both = zip((known.values[rows], known.slopes[rows]), further, strict=True)
    values, slopes = (np.concatenate(parts, axis=1) for parts in both)
    slopes = np.take_along_axis(slopes, players[:, None, :, None], axis=2)
    are_usable = _are_usable(rows, slopes, run.estimator.values_alone is None)
    group = group.with_passes(n_passes)
    design = replace(design, passes=Passes(wanted.degrees, values, slopes))
    # The values of the first row have said whether the model is random.
    found = replace(pending, group=group, design=design, is_checked=True)
    if are_usable.all():
        return [found]
    run.has_gradients[rows] &= are_usable
    of_bad = replace(group.subset_rows(np.flatnonzero(~are_usable)), has_gradients=False)
    alone = run.start(of_bad)
    return [found.subset_rows(np.flatnonzero(are_usable)), *alone] if are_usable.any() else alone


def _are_usable(rows: IntArray, slopes: FloatArray, is_required: bool) -> BoolArray:
    """Return of which rows the gradients, (R, p, M, K), are finite and not zero everywhere.

    Raises
    ------
    DerivativeError
        If those of a row are not, and they are required.
    """
    are_finite = np.isfinite(slopes).all(axis=(1, 2, 3))
    are_usable = np.logical_and(are_finite, slopes.any(axis=(1, 2, 3)))
    if is_required and not are_usable.all():
        bad = int(np.argmin(are_usable))
        kind = "not finite: an input or baseline is not, or the model is infinitely steep"
        if np.isfinite(slopes[bad]).all():
            kind = "zero everywhere: the model detaches, rounds or compares its inputs"
        raise DerivativeError(
            f"The gradients of row {row_number(rows[bad])} are {kind}. Pass gradients=False."
        )
    return are_usable


def _evaluated(
    run: Run,
    rows: IntArray,
    degrees: FloatArray,
    evaluate: Evaluator,
    is_required: bool = True,
) -> tuple[FloatArray, FloatArray, str | None]:
    """Return values, (R, n, K), and slopes, (R, n, M, K), at degrees of presence, (R, n, M).

    Also why there are none, if they are not required.
    """
    # Imported here, so that models without derivatives do not load torch.
    from ..cooperators.derivatives_torch import values_and_slopes

    n_rows, n, n_players = degrees.shape
    started, flat = perf_counter(), degrees.reshape(-1, n_players)
    values, slopes, obstacle = values_and_slopes(
        run.game, np.repeat(rows, n), flat, run.settings.batch_size, is_required
    )
    evaluate.spent[0] += perf_counter() - started
    n_evaluations = n_rows * n * (1 if obstacle else Passes.cost(values.shape[1]))
    if evaluate.memory is not None:
        evaluate.memory.n_evaluations += n_evaluations
    if evaluate.on_progress is not None:
        evaluate.on_progress(n_evaluations)
    return values.reshape(n_rows, n, -1), slopes.reshape(*degrees.shape, -1), obstacle
