"""Estimates by values and gradients of a model: all passes, then all values, then the equations.

A call of its own, because gradients are none of the values that rounds know. It has no rounds, no
workers and one output; `_check` names what needs values alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from tqdm.auto import tqdm

from ..array_types import BoolArray, FloatArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import BudgetError, DerivativeError, InvalidArgumentError, row_number
from ..estimators.odd_gp.estimator import OddGP, prior_shares
from ..estimators.odd_gp.gradients import (
    FEWEST,
    MOST_PLAYERS,
    PASS,
    Attributions,
    Plan,
    Readings,
    bytes_of_solution,
    plan_for,
    solved,
)
from ..games.evaluation import Evaluator, Request
from ..games.game import Game, SomeRows
from ..workers import map_in_threads, n_threads_within_memory, n_workers_for, one_blas_thread
from .one_round import BY_MEAN_SPEED, estimate_round
from .repetition import Repetition
from .result import Estimate, Seconds, blank_estimate
from .settings import Settings, default_budget


@dataclass(frozen=True)
class _Group:
    """Rows with as many active players, and what is evaluated of each.

    Attributes
    ----------
    rows, players : array, (R,) and (R, m)
        The rows of the game, and their active players.
    plan : Plan
        The coalitions.
    of_passes, slopes : arrays, (R, p) and (R, p, M)
        Values and gradients of all passes: coalitions and complements in turn, then the middle.
    values : array, (R, n, 1)
        Values of the other coalitions and complements in turn.
    """

    rows: IntArray
    players: IntArray
    plan: Plan
    of_passes: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    slopes: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    values: ValueArray = field(default_factory=lambda: np.zeros((0, 0, 1)))

    def degrees(self, n_players: int) -> FloatArray:
        """Return the degrees of presence of all passes but those of the ends, (R, n, M)."""
        pairs = self.plan.with_gradients[1:]
        both = np.stack([pairs, ~pairs], axis=1).reshape(-1, pairs.shape[1])
        degrees = np.concatenate([both, np.full((1, pairs.shape[1]), 0.5)])
        found = np.zeros((len(self.rows), len(degrees), n_players))
        np.put_along_axis(found, self.players[:, None], degrees[None], axis=2)
        return found

    def request(self, n_players: int) -> Request:
        """Return the request for the values of all pairs without gradients."""
        pairs = self.plan.with_values
        both = np.stack([pairs, ~pairs], axis=1).reshape(1, -1, pairs.shape[1])
        table = CoalitionTable(both, np.array([both.shape[1]]))
        return Request(self.rows, table, self.players, n_players)

    def readings(self, row: int) -> Readings:
        """Return the odd parts and mean gradients of a row."""
        slopes = self.slopes[row][:, self.players[row]]
        values = np.concatenate([self.of_passes[row, :-1], self.values[row].ravel()])
        coalitions = np.concatenate([self.plan.with_gradients, self.plan.with_values])
        return Readings(
            np.where(coalitions, 1.0, -1.0),
            (values[::2] - values[1::2]) / 2,
            slopes[:-1].reshape(-1, 2, slopes.shape[1]).mean(axis=1),
            slopes[-1],
        )


def estimate_by_gradients(game: Game, estimator: OddGP, settings: Settings) -> Estimate:
    """Estimate all rows by values and gradients, at most `settings.budget` evaluations for each.

    Rows of which all coalitions fit into the budget are enumerated. Rows whose gradients at the
    ends are zero or not finite are estimated by values alone, if gradients may be left out.

    Raises
    ------
    InvalidArgumentError, BudgetError
        If the call asks for what needs values alone, or the budget is too small.
    DerivativeError
        If the model has no gradients.
    """
    started, alone = perf_counter(), replace(estimator, gradients=False)
    active = game.active_players()
    sizes = active.sum(axis=1)
    _check(game, estimator, settings, int(sizes.max(initial=0)))
    budgets = np.array([settings.budget or default_budget(size) for size in sizes.tolist()])
    is_drawn = sizes > np.log2(budgets)
    if not is_drawn.any():
        return estimate_round(game, alone, settings)
    if budgets[is_drawn].min() < FEWEST:
        raise BudgetError(
            f"{settings.budget_text(settings.budget)} is too small: gradients need at least "
            f"{FEWEST} evaluations for each row, {PASS} of them for a forward and backward pass.",
            FEWEST,
        )
    drawn = np.flatnonzero(is_drawn)
    plans = {
        size: plan_for(size, int(budgets[sizes == size][0]), [settings.seed, size])
        for size in np.unique(sizes[drawn]).tolist()
    }
    is_required = estimator.gradients != "auto"
    ends, groups, is_good, n_checked = _evaluated(game, settings, drawn, active, plans, is_required)
    of_model = perf_counter() - started
    result = blank_estimate(ends, game.n_players, settings.seed, type(estimator).__name__)
    for group in groups:
        _solve(group, result, game.n_backgrounds)
    for rows, spent in ((np.flatnonzero(~is_drawn), 0), (drawn[~is_good], 2 * PASS)):
        if len(rows):
            budget = settings.budget and settings.budget - spent
            part = estimate_round(SomeRows(game, rows), alone, replace(settings, budget=budget))
            for place, row in enumerate(rows.tolist()):
                result.set_rows(row, row + 1, part.subset_rows([place]))
            result.evaluations[rows] += spent
            result.model_rows[rows] += spent // PASS * game.n_backgrounds
    n_bad = int((~is_good).sum())
    choice = f"values alone for {n_bad} rows, whose gradients are zero or not finite"
    return replace(
        result,
        budget=settings.budget,
        check_evaluations=n_checked,
        rounding=game.rounding,
        seconds=Seconds(of_model, perf_counter() - started - of_model),
        choice=choice if n_bad else "",
    )


def _evaluated(
    game: Game,
    settings: Settings,
    drawn: IntArray,
    active: BoolArray,
    plans: Mapping[int, Plan],
    is_required: bool,
) -> tuple[ValueArray, list[_Group], BoolArray, int]:
    """Return values of ends, (rows of the game, 2, 1), groups, which rows have gradients, checks.

    The gradients at the ends come first, and say whether there are any. Values of the first row are
    evaluated without gradients, too: these may be those of another function.

    Raises
    ------
    DerivativeError
        If they are, or a row has no gradients and they are required.
    """
    n_players, delay, sizes = game.n_players, settings.progress_delay, active.sum(axis=1)
    name = {"desc": settings.name, "unit": " evaluations", "delay": delay or 0}
    total = sum(plans[size].n_evaluations for size in sizes[drawn].tolist())
    with tqdm(total=total, disable=delay is None, **name, **BY_MEAN_SPEED) as bar:
        evaluate = Evaluator(game, settings.batch_size, bar.update, is_timed=True)
        of_ends = np.tile(end_points(n_players)[None, ::-1].astype(float), (len(drawn), 1, 1))
        first = _passes(game, drawn, of_ends, settings)
        is_good = _are_usable(drawn, first[1], is_required)
        bar.update(2 * PASS * len(drawn))
        ends = np.zeros((game.n_rows, 2, 1))
        ends[drawn] = first[0][:, ::-1, None]
        good = drawn[is_good]
        quiet = Evaluator(SomeRows(game, good), settings.batch_size)
        noise = Repetition.from_first_row(quiet, active[good], ends[good], settings)
        if (differs := noise.difference) is not None:
            raise DerivativeError(
                f"The model returned {differs.first[0]:.6g} and {differs.second[0]:.6g} for the "
                "same input. It is random, its rows influence each other, or a link comes after "
                "its gradients. Pass gradients=False."
            )
        groups = []
        for size in np.unique(sizes[drawn[is_good]]).tolist():
            of_size = np.flatnonzero(is_good & (sizes[drawn] == size))
            rows = drawn[of_size]
            group = _Group(rows, np.nonzero(active[rows])[1].reshape(-1, size), plans[size])
            further = _passes(game, rows, group.degrees(n_players), settings)
            bar.update(PASS * further[0].size)
            both = zip(first, further, strict=True)
            values, slopes = (np.concatenate([one[of_size], more], axis=1) for one, more in both)
            _are_usable(rows, slopes, is_required=True)
            groups.append(replace(group, of_passes=values, slopes=slopes))
        of_pairs = evaluate([group.request(n_players) for group in groups])
        bar.total = bar.n
    groups = [replace(one, values=of) for one, of in zip(groups, of_pairs, strict=True)]
    return ends, groups, is_good, noise.n_evaluations


@one_blas_thread()
def _solve(group: _Group, result: Estimate, n_backgrounds: int) -> None:
    """Write the attributions of the rows of a group into the result."""
    rows, plan = group.rows, group.plan

    def solve(row: int) -> Attributions:
        return solved(group.readings(row))

    of_rows = map_in_threads(
        solve, range(len(rows)), n_threads_within_memory(bytes_of_solution(plan))
    )
    for row, players, found in zip(rows, group.players, of_rows, strict=True):
        result.values[row, players, 0] = found.values
        result.standard_errors[row, players, 0] = found.standard_errors
        result.degrees_of_freedom[row, players, 0] = found.freedom
    result.evaluations[rows] = plan.n_evaluations
    result.backward_passes[rows] = plan.n_passes
    result.model_rows[rows] = (plan.n_passes + 2 * len(plan.with_values)) * n_backgrounds
    shares = prior_shares(result.values[rows], result.standard_errors[rows])
    result.prior_shares[rows] = shares


def _passes(
    game: Game, rows: IntArray, degrees: FloatArray, settings: Settings
) -> tuple[FloatArray, FloatArray]:
    """Return values, (R, n), and gradients, (R, n, M), at degrees of presence, (R, n, M)."""
    from ..cooperators.derivatives_torch import values_and_slopes

    n_rows, n, n_players = degrees.shape
    flat = degrees.reshape(-1, n_players)
    values, slopes = values_and_slopes(game, np.repeat(rows, n), flat, settings.batch_size)
    return values.reshape(n_rows, n), slopes.reshape(degrees.shape)


def _are_usable(rows: IntArray, slopes: FloatArray, is_required: bool) -> BoolArray:
    """Return of which rows the gradients, (R, n, M), are finite and not zero everywhere.

    Raises
    ------
    DerivativeError
        If those of a row are not, and they are required.
    """
    are_finite = np.isfinite(slopes).reshape(len(rows), -1).all(axis=1)
    are = np.logical_and(are_finite, slopes.any(axis=(1, 2)))
    if is_required and not are.all():
        bad = int(np.argmin(are))
        kind = "zero everywhere" if np.isfinite(slopes[bad]).all() else "not finite"
        raise DerivativeError(
            f"The gradients of row {row_number(rows[bad])} are {kind}: the model detaches, rounds "
            "or compares its inputs, or has no slope there. Pass gradients=False."
        )
    return are


def _check(game: Game, estimator: OddGP, settings: Settings, most_players: int) -> None:
    """Refuse calls that need values alone, before anything is evaluated."""
    needs_values = {
        "weights": estimator.weights != "learned",
        "cooperators": estimator.cooperators is not None,
        "unbiased": estimator.unbiased,
        "tolerance": settings.tolerance is not None,
        "max_seconds": settings.max_seconds is not None,
        "interactions": settings.interactions is not None,
        "trace": settings.trace,
        "graph": settings.graph is not None,
        "independent_rows": settings.independent_rows,
        "n_repeats": settings.n_repeats > 1,
        "max_model_rows": settings.max_model_rows is not None,
        "n_jobs": n_workers_for(settings.n_jobs, game.n_rows) > 1,
        "random values": game.draws_values or game.answers_at_random,
        "additive parts": game.additive_part is not None,
        "training": settings.is_for_training,
        f"more than {MOST_PLAYERS} features": most_players > MOST_PLAYERS,
    }
    for argument, is_so in needs_values.items():
        if is_so:
            raise InvalidArgumentError(
                f"gradients={estimator.gradients!r} cannot be used with {argument}. Leave out "
                "one of them."
            )
    if game.derivative_obstacle is not None:
        raise DerivativeError(f"There are no gradients: {game.derivative_obstacle}.")
