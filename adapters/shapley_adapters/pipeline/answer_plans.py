"""How many answers of a random model a budget pays for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import IntArray
from ..errors import BudgetError
from ..estimators.draws import Draws
from ..estimators.protocol import Estimator
from .drawing import REPEATED, Drawing, DrawPlan
from .settings import Settings, budget_for, estimation_cost

_ENDS_SHARE, _FEWEST_ENDS, _MOST_ENDS = 3, 4, 16
"""Evaluations of the values of no and of all players of a random model: the budget over so many
times the players, about where their noise counts as much as that of the others; and bounds. The
last one holds for all coalitions of an enumeration, too."""


def repeated_drawing(
    n_active: IntArray,
    estimator: Estimator[Any],
    settings: Settings,
    has_one_full_value: bool = False,
) -> Drawing:
    """Return the answers of a random model: `n_repeats` for each coalition.

    With one, the values of no and of all players have more, and every fourth coalition has two. A
    row that is enumerated has as many as its budget pays for. Where only absent features are random
    (`has_one_full_value`), all players together are evaluated once.
    """
    n_repeats = settings.n_repeats
    sizes = np.unique(n_active).tolist()
    limits = [budget_for(size, estimator, settings).limit for size in sizes]
    n_for_ends = [limit // (_ENDS_SHARE * size) for size, limit in zip(sizes, limits, strict=True)]
    n_draws = max(n_repeats, int(np.clip(min(n_for_ends), _FEWEST_ENDS, _MOST_ENDS)))
    n_ends = n_draws + (1 if has_one_full_value else n_draws)
    plans = {}
    for size, limit in zip(sizes, limits, strict=True):
        n_all = 2**size
        share = n_repeats if n_repeats > 1 else 1 + 1 / REPEATED
        n_coalitions = int(2 + (limit - n_ends) / share)
        n_inner = 0
        if estimator.needs_graph:
            n_coalitions, n_inner = max(n_coalitions, 2), limit - n_ends
        elif n_coalitions >= n_all:
            n_coalitions, n_inner = n_all, limit - n_ends
        minimum = min(n_all, estimation_cost(size, estimator, settings))
        if n_coalitions < minimum and not estimator.needs_graph:  # these are checked by design
            needed = int(np.ceil(n_ends + (minimum - 2) * share))
            once = n_repeats == 1
            of_each = "once, some twice" if once else f"{n_repeats} times"
            raise BudgetError(
                f"{settings.budget_text(limit)} is too small for a random model, or for draws "
                f"of absent features: {settings.name} needs {minimum} coalitions, of which each is "
                f"evaluated {of_each}, and those of no and of all players {n_draws} times. Pass at "
                f"least {needed}{'' if once else ', or fewer repeats'}.",
                needed,
            )
        plans[size] = DrawPlan(n_coalitions, n_repeats, n_repeats, n_inner)
    draws = Draws(n_draws, is_background=False, has_one_full_value=has_one_full_value)
    return Drawing(draws, plans, settings.seed)
