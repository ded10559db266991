"""The estimator and the budget of a call without a time, from measured costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..estimators.exact import MAX_PLAYERS
from ..estimators.protocol import Estimator
from ..estimators.random_order import RandomOrder
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..workers.jobs import jobs_of
from .budgets import checked_budgets
from .costs import Costs, warn_of_long_call
from .expected_errors import expected_error
from .one_round import estimate_round
from .result import Estimate
from .settings import Settings

_UNNOTICED_SECONDS = 2.0
"""Our own work of a call may take this long beside any model."""

_FEW_ENTRIES = 5 * 10**5
"""Below this number of entries of the coalitions of all rows and outputs, no estimator takes that
long: with 30 players and 480 evaluations, one that learns takes 37 ms a row."""

_MOST_COALITIONS = 32
"""All coalitions cannot be cheaper than an estimate if they are more than this multiple of its
evaluations: with 13 players, our own work is then a fifth of that of an estimate."""

_MEASURED_PARTS = (8, 4)
"""Our own work is measured with the budget over these numbers, so that its growth is known."""

_CLEARLY_LESS = 0.5
"""Another candidate is taken for its own work if that is at most this part of the first one's: with
200 players and few rows, equal weights take as long as learned ones."""


def estimate_by_cost(game: Game, estimator: Estimator[Any], settings: Settings) -> Estimate:
    """Estimate all rows by the candidate that measured costs choose.

    All coalitions are evaluated where that takes no longer than the first candidate, if the user
    named no budget. Otherwise the first candidate is taken if its own work takes at most as long as
    the model, or is not noticed. Otherwise the others follow, those of less expected error first,
    and one is taken if its own work is clearly less, until one of them is as cheap as that.
    """
    candidates = _able(estimator, settings)
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
        reason = f"{named(first)}: our own work takes at most seconds"
        return replace(estimate_round(game, first, settings), choice=reason)
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
            f"{named(chosen)}: our own work takes about {work:.2g} s beside {model:.2g} s of "
            "the model"
        )
        if chosen is not first:
            reason += f"; that of {named(first)} {own:.2g} s"
    if new_budget != n_all:
        warn_of_long_call(costs, chosen, budget.limit)
    memory.is_recording = False
    result = estimate_round(game, chosen, replace(settings, budget=new_budget), memory)
    n_timing = max(0, memory.n_evaluations - int(result.evaluations.sum()))
    return replace(result, timing_evaluations=n_timing, choice=reason)


def candidates_of(estimator: Estimator[Any]) -> tuple[Estimator[Any], ...]:
    """Return the estimators among which measured costs decide, or the estimator itself."""
    return estimator.candidates or (estimator,)


def named(estimator: Estimator[Any]) -> str:
    """Return the name of a candidate, as users ask for it."""
    if isinstance(estimator, RandomOrder):
        return "randomorder"
    weights = getattr(estimator, "weights", "learned")
    return "oddgp" if weights == "learned" else f"oddgp with weights={weights!r}"


def _able(estimator: Estimator[Any], settings: Settings) -> list[Estimator[Any]]:
    """Return the candidates that estimate the interactions, if any are asked for."""
    index = settings.interactions
    return [
        candidate
        for candidate in candidates_of(estimator)
        if index is None or index in candidate.interaction_indices
    ]
