"""From a game to attributions, by the settings or by measured costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import first_row
from ..estimators.exact import MAX_PLAYERS
from ..estimators.protocol import Estimator
from ..games.drawn_values import n_backgrounds_of
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..workers.worker_processes import jobs_of
from .background_plans import on_whole_background
from .costs import Costs, expected_error, named, warn_of_long_call
from .deadline import estimate_until, refuse_graphs
from .one_round import estimate_round, run_of
from .result import Estimate
from .run import CallBudget
from .settings import Settings, checked_budgets

_UNNOTICED_SECONDS = 2.0
"""Our own work of a call may take this long beside any model."""

_FEW_ENTRIES = 5 * 10**5
"""Below this number of entries of the coalitions of all rows and outputs, no estimator takes that
long: with 30 players and 480 evaluations, one that learns takes 37 ms a row."""

_MOST_COALITIONS = 32
"""All coalitions cannot be cheaper than an estimate if they are more than this multiple of its
evaluations: with 13 players, our own work is then a fifth of that of an estimate."""

_FEW_BACKGROUNDS = 10
"""With more background rows, the default evaluates a part of them."""

_MEASURED_PARTS = (8, 4)
"""Our own work is measured with the budget over these numbers, so that its growth is known."""

_CLEARLY_LESS = 0.5
"""Another candidate is taken for its own work if that is at most this part of the first one's: with
200 players and few rows, equal weights take as long as learned ones."""


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

    With `max_seconds`, or an estimator that chooses among several, costs are measured first. The
    rest is the estimate with the budget and the estimator that were chosen, so that the same ones
    and the same seed give the same numbers again.

    In the end two values of one row are computed once more, if a budget has evaluations left or
    the user gave none; a warning says where they differ, because the model is not deterministic.

    Raises
    ------
    InvalidArgumentError
        If the graphs do not fit the rows or their players.
    BudgetError
        If the budget is too small for the estimator, or the time too short.
    WorkerError
        If the model fails in a worker.
    """
    used = getattr(game, "usage", None)  # of a remote model
    if used is not None:  # whose limits and counts are those of one process
        settings = replace(settings, n_jobs=1)
    # A part of the user's rows must be explained as all others are, whatever the clock says.
    may_choose = first_row() is None and not settings.is_for_training
    if settings.max_seconds is not None:
        refuse_graphs(estimator, settings)
        settings = on_whole_background(n_backgrounds_of(game), settings, estimator)
        result = estimate_until(game, estimator, settings)
    elif not estimator.candidates:
        result = estimate_round(game, estimator, settings)
    elif may_choose and settings.max_model_rows is None:
        result = estimate_by_cost(game, estimator, settings)
    else:
        if not settings.is_for_training and settings.max_model_rows is None:
            settings = _saving_rows(game, settings)
        result = estimate_round(game, estimator.candidates[0], settings)
    if used is not None:
        result = replace(result, usage=getattr(game, "usage", used) - used)
    return result.with_semivalues()


def budget_of(game: Game, estimator: Estimator[Any], settings: Settings) -> CallBudget:
    """Return the most that a call takes for each row, without evaluating the game.

    Where costs are measured, it is that of the first candidate.
    """
    if estimator.candidates:
        if settings.max_model_rows is None:
            settings = _saving_rows(game, settings)
        estimator = estimator.candidates[0]
    return run_of(game, estimator, settings).budget()


def _saving_rows(game: Game, settings: Settings) -> Settings:
    """Return the settings by which the default saves rows of the model."""
    is_default = settings.budget is None and settings.tolerance is None
    saves = is_default and n_backgrounds_of(game) > _FEW_BACKGROUNDS and settings.n_repeats == 1
    return replace(settings, saves_rows=True) if saves else settings


def estimate_by_cost(game: Game, estimator: Estimator[Any], settings: Settings) -> Estimate:
    """Estimate all rows by the candidate that measured costs choose.

    All coalitions are evaluated where that takes no longer than the first candidate, if the user
    named no budget. Otherwise the first candidate is taken if its own work takes at most as long as
    the model, or is not noticed. Otherwise the others follow, those of less expected error first,
    and one is taken if its own work is clearly less, until one of them is as cheap as that.
    """
    request = settings.interactions
    candidates = [
        candidate
        for candidate in estimator.candidates
        if request is None or candidate.has_interactions(request)
    ]
    first = candidates[0]
    memory, active = ValueMemory(), game.active_players()
    n_workers = jobs_of(settings.n_jobs, game.n_rows).n_workers
    costs = Costs(game, settings, active, memory, n_workers)
    n_players = costs.n_players
    if not costs.n_rows_of:
        return estimate_round(game, first, settings)
    budget = checked_budgets(costs.sizes, first, settings)[n_players]
    if budget.enumerates_now:
        reason = f"all 2^{n_players} coalitions, which the budget pays for"
        return replace(estimate_round(game, first, settings), choice=reason)
    n_all = 2**n_players
    may_enumerate = (
        settings.budget is None
        and settings.tolerance is None
        and n_players <= MAX_PLAYERS
        and n_all <= _MOST_COALITIONS * budget.limit
    )
    is_small = game.n_rows * n_players * budget.limit <= _FEW_ENTRIES
    if is_small and not may_enumerate:
        reason = f"{named(first)}: its own computation takes at most {_UNNOTICED_SECONDS:g} s"
        saving = _saving_rows(game, settings)
        return replace(estimate_round(game, first, saving), choice=reason)
    chosen, new_budget, reason = first, settings.budget, ""
    for part in _MEASURED_PARTS:
        measured = max(budget.minimum, budget.limit // part)
        costs.measure(first, measured, n_rows=1)
    model, own = costs.model_seconds(first, budget.limit), costs.own_seconds(first, budget.limit)
    if may_enumerate and costs.seconds(first, n_all) <= model + own:
        new_budget = n_all
        reason = (
            f"all 2^{n_players} coalitions, which take about {costs.seconds(first, n_all):.2g} s; "
            f"{named(first)} would take {model + own:.2g} s"
        )
    else:
        work = own
        others = sorted(
            candidates[1:], key=lambda other: expected_error(other, n_players, budget.limit)
        )
        for candidate in others:
            if work <= max(_UNNOTICED_SECONDS, model):
                break
            costs.measure(candidate, max(candidate.minimum_budget(n_players), measured))
            less = costs.own_seconds(candidate, budget.limit)
            if less <= _CLEARLY_LESS * work:
                chosen, work = candidate, less
        reason = (
            f"{named(chosen)}: its own computation takes about {work:.2g} s, the model "
            f"{model:.2g} s"
        )
        if chosen is not first:
            reason += f"; the computation of {named(first)} would take {own:.2g} s"
    if new_budget != n_all:
        warn_of_long_call(costs, chosen, budget.limit)
    memory.is_recording = False
    final = _saving_rows(game, replace(settings, budget=new_budget))
    result = estimate_round(game, chosen, final, memory)
    n_timing = max(0, memory.n_evaluations - int(result.evaluations.sum()))
    return replace(result, timing_evaluations=n_timing, choice=reason)
