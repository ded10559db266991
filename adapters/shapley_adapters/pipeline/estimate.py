"""From a game to attributions: with a budget, within a time, or by what errs least for its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from ..errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError, first_row
from ..estimators.exact import MAX_PLAYERS
from ..estimators.protocol import Estimator
from ..estimators.random_order import RandomOrder
from ..games.game import Game
from ..games.value_memory import TimeIsUp
from .background_plans import on_whole_background
from .costs import CLASS, Costs, Plan, expected_error, named, warn_of_long_call
from .drawing import budget_for_noise
from .one_round import estimate_round, run_of
from .passes import obstacle_to_gradients, usable
from .result import Estimate, Seconds
from .run import CallBudget, Run
from .run_warnings import SmallBudget
from .settings import Settings, checked_budgets
from .solutions import check_interactions

_OWN_SECONDS = 0.016
"""Our own work on a row may take this long, or as long as the model; 20 ms with what is not
counted. Learned weights take .02 with 13 players and 208 evaluations, .04 with 30 and 480, and .12
with 60 and 960."""

_MORE = 4
"""A cheaper estimator has the time that it saves for more evaluations: at most so many times those
of the default budget."""

_MOST_COALITIONS = 32
"""All coalitions cannot be cheaper than an estimate if they are more than this multiple of its
evaluations: with 13 players, our own work is then a fifth of that of an estimate."""

_FEW_BACKGROUNDS = 10
"""With more background rows, the default budget is halved. With as many rows of the model, parts of
the background for more coalitions have .9 to 2.5 times the errors: measured with 11 to 80 players
and 30 to 100 background rows."""

_FIRST_SHARE, _PLANNED_SHARE = 0.1, 0.85
"""Shares of a limited time that the first round is planned for, and of what is left that a further
one is planned for; the rest is for costs that vary."""

_GROWTH, _WORTHWHILE = 32, 1.3
"""A further round has at most and at least this multiple of the evaluations of the last one."""


NO_BUDGET_OF_NETWORKS = (
    "budget_of() is for methods that evaluate coalitions of each row, such as OddGP: a network is "
    "trained first."
)


def estimate(game: Game, estimator: Estimator[Any], settings: Settings) -> Estimate:
    """Estimate the Shapley values of all rows of `game`.

    A row's result does not depend on the other rows, on their order, on the batch size or on the
    number of workers: all rows share one set of random draws or, with `independent_rows`, each has
    its own. Players that cannot change the value of a row are left out first. Where the budget pays
    for all coalitions of the others, all are evaluated and the result is exact; estimators on
    graphs decide for themselves.

    With `max_seconds`, or an estimator that chooses among several, costs are forecast first. The
    rest is the estimate with the budget and the estimator that were chosen, so that the same ones
    and the same seed give the same numbers again.

    Some values are computed once more (`repetition.Repetition`, `Run`): a warning says where they
    differ, because the model is not deterministic.

    Raises
    ------
    InvalidArgumentError
        If the graphs do not fit the rows or their players.
    BudgetError
        If the budget is too small for the estimator, or the time too short.
    WorkerError
        If the model fails in a worker.
    """
    if not isinstance(game, Game):
        raise InvalidArgumentTypeError(
            f"game must be of a subclass of shapley_adapters.Game; got {type(game).__name__}. "
            "Let the class inherit from Game, which has defaults for what it does not say."
        )
    started, used = perf_counter(), game.usage  # of a remote model
    if used is not None:  # whose limits and counts are those of one process
        settings = replace(settings, n_jobs=1)
    if estimator.candidates or settings.max_seconds is not None:
        result, run = _estimate_by_costs(game, estimator, settings, started)
    else:
        result, run = estimate_round(game, estimator, settings)
    settings = run.settings
    # The warning of a small budget is about the rows with most players.
    for n_players, budget in sorted(run.budgets.items(), reverse=True):
        of_size = (run.n_active == n_players) & ~run.has_gradients
        useful = 0 if settings.is_for_training else run.estimator.useful_budget(n_players)
        if of_size.any() and not budget.enumerates_now and budget.limit < useful:
            total, n_rows = float(result.prior_shares[of_size].sum()), int(of_size.sum())
            run.warnings.small_budget = SmallBudget(n_players, budget.limit, useful, n_rows, total)
            break
    run.warnings.warn(game.n_rows, settings)
    if not settings.is_for_training:
        if run.noise.difference is not None:
            least = budget_for_noise(run)
            run.noise.difference.warn(f"{settings.budget_name}={least}" if least else "")
        why = run.why_values_alone or obstacle_to_gradients(run, estimator)
        n_useless = int((run.asks_gradients & ~run.has_gradients).sum())
        if n_useless and not why:
            why = f"gradients are zero for some feature, or not finite (rows: {n_useless})"
        choice = "; ".join(filter(None, [result.choice, why and f"values alone: {why}"]))
        result = replace(
            result,
            budget=settings.budget,
            choice=choice,
            check_evaluations=run.noise.n_evaluations,
            rounding=game.rounding,
            errors_cancel=settings.independent_rows
            and not game.draws_values  # all rows share the draws without any player
            and run.estimator.is_unbiased
            and run.warnings.small_budget is None,
        )
    if used is not None and game.usage is not None:
        result = replace(result, usage=game.usage - used)
    return result if settings.interactions is None else result.with_semivalues()


def _estimate_by_costs(
    game: Game, estimator: Estimator[Any], settings: Settings, started: float
) -> tuple[Estimate, Run]:
    """Return the estimate of a call that `started` then, by what costs allow, and its run."""
    # A part of the user's rows must be explained as all others are, whatever the clock says.
    may_choose = first_row() is None and not settings.is_for_training
    # Those with gradients count where these may be of use.
    candidates = [usable(game, one, settings) for one in estimator.candidates or (estimator,)]
    if settings.interactions is not None:  # the errors to expect are those of Shapley values
        candidates = candidates[:1]
    if settings.max_seconds is not None:
        settings = on_whole_background(game.n_backgrounds, settings, estimator)
        return _estimate_until(game, estimator, candidates, settings, started)
    if may_choose and settings.max_model_rows is None:
        return _estimate_best(game, candidates, settings)
    if not settings.is_for_training and settings.max_model_rows is None:
        settings = _saving_rows(game, settings)
    return estimate_round(game, candidates[0], settings)


def budget_of(game: Game, estimator: Estimator[Any], settings: Settings) -> CallBudget:
    """Return the most that a call takes for each row, without evaluating the game.

    Where one of several is chosen, it is that of the first candidate.
    """
    if estimator.candidates and settings.max_model_rows is None:
        settings = _saving_rows(game, settings)
    return run_of(game, (estimator.candidates or (estimator,))[0], settings).budget()


def _saving_rows(game: Game, settings: Settings) -> Settings:
    """Return the settings of the call, whose default budget is halved for many background rows."""
    is_default = settings.budget is None and settings.tolerance is None
    saves = is_default and game.n_backgrounds > _FEW_BACKGROUNDS and settings.n_repeats == 1
    return replace(settings, saves_rows=True) if saves else settings


def _estimate_best(
    game: Game, candidates: Sequence[Estimator[Any]], settings: Settings
) -> tuple[Estimate, Run]:
    """Estimate all rows by the candidate that errs least for what it costs.

    That is the first one, if its own work takes at most as long as the model, or `_OWN_SECONDS` a
    row. Otherwise it is the candidate and the budget of least expected error within the time that
    the first one would be allowed. All coalitions are evaluated where that takes no longer, if the
    user named no budget.
    """
    started = perf_counter()
    first, settings = candidates[0], _saving_rows(game, settings)
    costs = Costs(game, settings, game.active_players())
    n_players = costs.n_players
    if not costs.n_rows_of:
        return estimate_round(game, first, settings)
    budget = checked_budgets(costs.sizes, first, settings)[n_players]
    if budget.enumerates_now:
        reason = f"all 2^{n_players} coalitions, which the budget pays for"
        result, run = estimate_round(game, first, settings)
        return replace(result, choice=reason), run
    may_enumerate = (
        settings.budget is None
        and settings.tolerance is None
        and n_players <= MAX_PLAYERS
        and 2**n_players <= _MOST_COALITIONS * budget.limit
    )
    is_halved = settings.saves_rows and len(costs.sizes) == 1  # a call by this budget repeats it
    chosen, new_budget = Plan(first, budget.limit), budget.limit if is_halved else settings.budget
    costs.memory.is_recording = False  # values of other batches may differ in the last bit
    costs.measure_model(2)  # which says how many outputs there are
    costs.unnoticed = _OWN_SECONDS * game.n_rows / costs.n_workers
    own = costs.own_seconds(chosen)
    of_first = named(first)
    reason = f"{of_first}: its overhead is about {own:.2g} s"
    if may_enumerate or own > costs.unnoticed:
        costs.measure_model(game.n_rows * budget.limit)
        times = np.maximum([costs.of_row, costs.of_call], 1e-9)
        costs.of_row, costs.of_call = CLASS ** np.round(np.log(times) / np.log(CLASS))
        model, own = costs.model_seconds(chosen), costs.own_seconds(chosen)
        everything = Plan(first, 2**n_players)
        if may_enumerate and costs.seconds(everything) <= model + own:
            chosen, new_budget = everything, everything.budget
            reason = (
                f"all 2^{n_players} coalitions, which take about {costs.seconds(everything):.2g} s;"
                f" {of_first} would take {model + own:.2g} s"
            )
        elif not costs.is_cheap(chosen):
            most = _MORE * budget.limit if settings.budget is None else settings.budget
            limits = [most if isinstance(one, RandomOrder) else budget.limit for one in candidates]
            allowed = model + max(costs.unnoticed, model / 2)  # as the first one would be
            chosen = costs.best_plan(candidates, allowed, limits) or Plan(candidates[-1], limits[0])
            new_budget = chosen.budget
            reason = (
                f"{named(chosen.estimator)}: its overhead is about "
                f"{costs.own_seconds(chosen):.2g} s for {chosen.budget:,} evaluations per row; "
                f"{of_first} with {budget.limit:,} would have {own:.2g} s"
            )
    is_long = new_budget != 2**n_players and warn_of_long_call(costs, chosen)
    choosing = perf_counter() - started
    final = replace(settings, budget=new_budget)
    # With a memory, the round makes no forecast of its own.
    memory = costs.memory if is_long or costs.memory.n_evaluations else None
    result, run = estimate_round(game, chosen.estimator, final, memory)
    return _with_choice(result, costs, reason, choosing), run


def _estimate_until(
    game: Game,
    estimator: Estimator[Any],
    candidates: Sequence[Estimator[Any]],
    settings: Settings,
    started: float,
) -> tuple[Estimate, Run]:
    """Estimate all rows in some seconds from `started` on, by the best candidate.

    Rounds with larger and larger budgets, until the next one would pass the time. Each has the
    candidate and the budget of least expected error that fit into it, by the work of the rounds
    before. Values stay known from one round to the next.

    Raises
    ------
    BudgetError
        If not even the smallest budget fits into the time.
    """
    limit = settings.max_seconds or 0.0

    def left() -> float:
        return limit - (perf_counter() - started)

    if estimator.needs_graph:
        raise InvalidArgumentError(
            f"max_seconds={limit:g} cannot be used with {settings.name}: the cost of estimators on "
            f"graphs depends on the graph. Pass {settings.budget_name} instead."
        )
    costs = Costs(game, settings, game.active_players())
    candidates = _able_candidates(candidates, settings, costs)
    if not costs.n_rows_of:  # no player can change any value
        return estimate_round(game, candidates[0], replace(settings, budget=1))
    most = settings.budget or 2 ** min(costs.n_players, 50)
    costs.measure_model(game.n_rows * min(most, 2**costs.n_players), left())
    least = [min(costs.least_budget(candidate), most) for candidate in candidates]
    choosing = perf_counter() - started
    cheapest = min(map(Plan, candidates, least), key=costs.seconds)
    if costs.seconds(cheapest) > left():
        needed = 1.1 * (costs.seconds(cheapest) + perf_counter() - started)
        raise BudgetError(
            f"max_seconds={limit:g} is too short: {settings.name} needs at least "
            f"{cheapest.budget} evaluations for each of {game.n_rows} rows, which take about "
            f"{needed:.2g} seconds. Pass max_seconds={float(f'{1.2 * needed:.1e}'):g} or more, or "
            "fewer rows.",
            cheapest.budget,
        )
    plan = costs.best_plan(candidates, _FIRST_SHARE * left(), [most] * len(candidates)) or cheapest
    last: list[tuple[Plan, Estimate, Run]] = []
    while not last or last[0][0] is not plan:
        quiet = replace(settings, budget=plan.budget)
        if plan.budget == settings.budget:  # the time pays for it: messages name this limit
            quiet = replace(quiet, max_seconds=None)
        if last and costs.n_workers == 1:
            own = costs.own_seconds(plan) / game.n_rows  # that of the rows of the last block
            costs.memory.ends_at = started + limit - own
        began = perf_counter()
        try:
            result, run = estimate_round(game, plan.estimator, quiet, costs.memory)
        except TimeIsUp:
            break
        last, spent = [(plan, result, run)], result.seconds.own
        if costs.n_workers > 1:
            spent = perf_counter() - began - costs.model_seconds(plan)
        costs.slowness.pop(type(plan.estimator), None)
        costs.slowness[type(plan.estimator)] = max(spent, 1e-6) / costs.own_seconds(plan)
        error = expected_error(plan.estimator, costs.n_players, plan.budget)
        after = costs.best_plan(
            candidates,
            _PLANNED_SHARE * left(),
            [min(most, _GROWTH * plan.budget)] * len(candidates),
        )
        if (
            not result.enumerated.all()
            and after is not None
            and after.budget >= _WORTHWHILE * plan.budget
            and expected_error(after.estimator, costs.n_players, after.budget) < error
        ):
            plan = after
    costs.memory.ends_at = np.inf
    ((plan, result, run),) = last  # the first round is not ended by the time
    reason = f"{plan.budget:,} evaluations per row fit into max_seconds={limit:g}"
    if estimator.candidates:
        reason = f"{named(plan.estimator)}: {reason}"
    return _with_choice(result, costs, reason, choosing), run


def _able_candidates(
    candidates: Sequence[Estimator[Any]], settings: Settings, costs: Costs
) -> list[Estimator[Any]]:
    """Return the estimators that can answer a call; refuse one that no time suffices for."""
    able: list[Estimator[Any]] = []
    for candidate in candidates:
        budget = settings.budget or costs.least_budget(candidate)
        quiet = replace(settings, max_seconds=None, budget=budget)
        try:
            budgets = checked_budgets(costs.sizes, candidate, quiet)
            check_interactions(candidate, quiet, budgets.values(), costs.active.shape)
        except (BudgetError, InvalidArgumentError):
            if not able:
                raise
            continue
        able.append(candidate)
    return able


def _with_choice(result: Estimate, costs: Costs, reason: str, choosing: float) -> Estimate:
    """Return a result with what was chosen, and what that took."""
    n_timing = max(0, costs.memory.n_evaluations - int(result.evaluations.sum()))
    return replace(
        result,
        timing_evaluations=n_timing if costs.memory.n_evaluations else 0,
        choice=reason,
        seconds=Seconds(result.seconds.model, result.seconds.own, choosing),
    )
