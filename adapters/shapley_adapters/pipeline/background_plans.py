"""How many coalitions, and background rows of each, a budget in rows of the model pays for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..array_types import IntArray
from ..errors import BudgetError, InvalidArgumentError
from ..estimators.draws import Draws
from ..estimators.odd_gp.background_regression import BackgroundRegression
from ..estimators.protocol import Estimator
from ..estimators.random_order import RandomOrder
from ..games.game import Game
from .drawing import FEWEST_OF_UNBIASED, FEWEST_PLAYERS, Drawing, DrawPlan, draws_of_each
from .settings import Settings, budget_for, estimation_cost

_FEWEST_OF_MANY, _SHARE, _FEWEST = 25, 0.25, 5
"""While coalitions can be added, each has a quarter of the background rows, 5 to 25. Measured on
five fitted models with 12 features and 100 background rows: 3 to 50 differ little."""

_FEWEST_PER_PLAYER = 4
"""Coalitions per player, of which single players and their complements are two, that are drawn
before each has more background rows than `_FEWEST`. Measured as above."""

_ENOUGH_FOR_SINGLES, _MANY = 2.2, 20
"""Rows of the model per player and background row from which on single players and complements are
evaluated on all rows; with fewer, and this many background rows, random orders err less."""

_MORE_BY_DEFAULT, _MORE_WITH_UNITS = 4, 16
"""Coalitions at most, over those of the default budget, where only rows of the model are limited:
all draws of a coalition are in memory. Units have one draw each, and gain most by more of them."""


_MOST_PLAYERS, _FEWEST_BACKGROUNDS, _MOST_COLUMNS = 100, 5, 500
"""Players, background rows and columns for which it is; more take much memory or time."""

_MOST_OF_PROCESS, _MOST_MODEL_ROWS = 8, 20_000
"""Rows of the model up to which it is: per player and background row, and in all. With more rows,
coalitions on many background rows err less; at 16,000, the process takes about 2 seconds. Measured
on five fitted models with 12, 30 and 60 features."""


def background_drawing(
    game: Game, n_active: IntArray, estimator: Estimator[Any], settings: Settings
) -> tuple[Drawing | None, Settings, Estimator[Any]]:
    """Return the draws of background rows for `max_model_rows`, and the settings without it.

    None where all coalitions are evaluated on all background rows. The estimator may be another
    one: random orders, each on one background row, where the budget does not pay for two rows of
    the model for each player and background row.

    Raises
    ------
    BudgetError
        If the budget does not pay for the values of no and of all players.
    InvalidArgumentError
        If the mean over a part of the background would be another value.
    """
    sizes, n_backgrounds = np.unique(n_active).tolist(), game.n_backgrounds
    limit = settings.max_model_rows or 0
    whole = replace(settings, max_model_rows=None, limiting_rows=limit)
    if n_backgrounds == 1 or game.draws_values or not game.has_single_outputs:
        return None, on_whole_background(n_backgrounds, settings, estimator, sizes), estimator
    n_for_ends = n_backgrounds + (1 if game.has_one_full_value else n_backgrounds)
    least = n_for_ends + _ENOUGH_FOR_SINGLES * game.n_players * n_backgrounds
    must_be_unbiased = estimator.is_unbiased
    has_orders = estimator.has_orders_for_few_rows and settings.interactions is None
    has_process = _has_process(game, estimator, settings, sizes)
    if has_process:
        n_pairs = max(0, limit - n_for_ends) // 2
        estimator = BackgroundRegression(n_pairs, n_backgrounds)
    elif has_orders and limit < least and n_backgrounds >= _MANY:
        estimator = RandomOrder(antithetic=False)
    planner = _Planner(n_backgrounds, n_for_ends, estimator, settings)
    plans = {size: planner.plan(size) for size in sizes}
    if all(plan.n_of_others >= n_backgrounds for plan in plans.values()):
        return None, on_whole_background(n_backgrounds, settings, estimator, sizes), estimator
    if game.sampling_obstacle:
        raise InvalidArgumentError(
            f"max_model_rows={settings.max_model_rows} pays for a part of the {n_backgrounds} "
            f"background rows, and {game.sampling_obstacle}"
        )
    draws = Draws(
        n_backgrounds,
        True,
        game.background_weights,
        must_be_unbiased,
        has_one_full_value=game.has_one_full_value,
    )
    if estimator.needs_graph:
        whole = replace(whole, budget=max(plan.n_coalitions for plan in plans.values()))
    return Drawing(draws, plans, settings.seed, has_process), whole, estimator


def on_whole_background(
    n_backgrounds: int, settings: Settings, estimator: Estimator[Any], sizes: Sequence[int] = ()
) -> Settings:
    """Return the settings with the budget in rows of the model as one in coalitions.

    It is refused where it does not pay for an estimate of one of these numbers of players.
    """
    limit = settings.max_model_rows
    if limit is None:
        return settings
    budget = limit // n_backgrounds
    if settings.budget is not None:
        budget = min(budget, settings.budget)
    for size in sizes:
        minimum = min(2**size, estimation_cost(size, estimator, settings))
        if budget < minimum and not estimator.needs_graph:
            raise _too_small(settings, n_backgrounds, minimum * n_backgrounds)
    return replace(settings, budget=budget, max_model_rows=None, limiting_rows=limit)


@dataclass(frozen=True)
class _Planner:
    """What the draws of rows depend on, beside their number of players.

    Attributes
    ----------
    n_backgrounds, n_for_ends : int
        The background rows, and the rows of the model for the values of no and of all players.
    estimator : Estimator
    settings : Settings
    """

    n_backgrounds: int
    n_for_ends: int
    estimator: Estimator[Any]
    settings: Settings

    def plan(self, n_players: int) -> DrawPlan:
        """Return how many coalitions a design may have, and the background rows of each."""
        settings, estimator, n_backgrounds = self.settings, self.estimator, self.n_backgrounds
        limit = settings.max_model_rows or 0
        # While coalitions can be added, each has some background rows.
        some_rows = int(np.clip(_SHARE * n_backgrounds, _FEWEST, _FEWEST_OF_MANY))
        finds_order = getattr(estimator, "order", None) == "auto"  # of neighbourhoods in a graph
        n_all = budget_for(n_players, estimator, settings).limit
        if settings.budget is None:
            has_few = estimator.has_units or (estimator.needs_graph and not finds_order)
            n_all *= _MORE_WITH_UNITS if has_few else _MORE_BY_DEFAULT
        n_all = n_all if estimator.needs_graph else min(n_all, 2**n_players)
        left = limit - self.n_for_ends
        if isinstance(estimator, BackgroundRegression) and n_players >= FEWEST_PLAYERS:
            # One draw for each pair of complements, in pairs as many as the budget pays for.
            self._check(left, 2)
            n_most = min(settings.budget or 2**n_players, 2**n_players - 2)
            return DrawPlan(min(n_most, 2 + left), 1, 1)
        if n_all * n_backgrounds <= limit:
            return DrawPlan(n_all, n_backgrounds, n_backgrounds)
        if estimator.needs_graph:
            # The order of neighbourhoods decides how many coalitions there are. Each has as many
            # background rows as the budget pays for: at least two, which differ, or a few where
            # fewer coalitions will do: those of a smaller order, or of unions that are not split.
            # Errors of all coalitions of a hierarchy come from these rows alone.
            self._check(left, 2)
            can_be_fewer = finds_order or estimator.has_unions
            fewest = min(n_backgrounds, some_rows) if can_be_fewer else 2
            return DrawPlan(min(n_all, 2 + left // fewest), 1, 1, left)
        plan = self._plan_of_part(n_players, n_all, left, some_rows)
        if plan.n_of_others < n_backgrounds:
            return plan
        return DrawPlan(min(n_all, limit // n_backgrounds), n_backgrounds, n_backgrounds)

    def _plan_of_part(self, n_players: int, n_all: int, left: int, some_rows: int) -> DrawPlan:
        """Return the plan of a budget that does not pay for all of the coalitions and rows.

        `left` are the rows of the model but those of no and of all players.
        """
        n_backgrounds, estimator = self.n_backgrounds, self.estimator
        minimum = min(n_all, estimation_cost(n_players, estimator, self.settings))
        self._check(left, minimum - 2)
        if estimator.has_units:
            n_of_each = -(-left // (n_all - 2))
            n_inner = max(left // n_of_each, minimum - 2)
            if self.settings.tolerance is not None:  # units end in no enumeration: it has no units
                n_inner = min(n_inner, 2**n_players - 3)
            return DrawPlan(2 + n_inner, n_of_each, n_of_each, left)
        # The noise of background rows falls with the root of their number, what few coalitions
        # leave much faster with these: the fewer rows, the fewer coalitions are enough.
        share = min(1.0, np.sqrt(n_backgrounds / _FEWEST_OF_MANY) / 2)
        enough = int(share * estimator.enough_coalitions(n_players))
        n_most = min(n_all, max(enough, minimum) if enough else n_all) - 2
        n_fewest = min(max(_FEWEST_PER_PLAYER * n_players, minimum - 2), n_most)
        n_single, spare = 2 * n_players, left - 2 * n_players * n_backgrounds
        if estimator.is_unbiased and n_most > n_single and spare >= FEWEST_OF_UNBIASED * minimum:
            # The values of single players on all background rows are no random numbers.
            n_fewest = max(minimum - 2, min(n_fewest, spare // _FEWEST))
            n_inner = int(np.clip(spare // some_rows, n_fewest, n_most - n_single))
            return DrawPlan(2 + n_single + n_inner, n_backgrounds, spare // n_inner)
        n_inner = int(np.clip(left // some_rows, n_fewest, n_most))
        n_single = min(n_single, n_inner)
        of_each = draws_of_each(left, n_single, n_inner - n_single, n_backgrounds)
        if of_each[1] < 1:  # fewer rows than coalitions and one more for each single player
            return DrawPlan(2 + min(left, n_inner), 1, 1)
        return DrawPlan(2 + n_inner, *of_each)

    def _check(self, left: int, needed: int) -> None:
        """Refuse a budget that leaves fewer rows of the model than are needed beside the ends."""
        if left < needed:
            raise _too_small(self.settings, self.n_backgrounds, self.n_for_ends + needed)


def _too_small(settings: Settings, n_backgrounds: int, minimum: int) -> BudgetError:
    """Return the error for a budget of model rows that does not pay for an estimate."""
    return BudgetError(
        f"max_model_rows={settings.max_model_rows} is too small: {settings.name} needs at least "
        f"{minimum} rows of the model for each explained row. The value of no player takes "
        f"{n_backgrounds}, as many as the background has. Pass more, or a smaller background.",
        minimum,
    )


def _has_process(
    game: Game, estimator: Estimator[Any], settings: Settings, sizes: Sequence[int]
) -> bool:
    """Return whether one process of all background rows takes over from the estimator.

    It does from those that are posterior means themselves, where the budget pays for a small part
    of the background.
    """
    n_backgrounds, limit = game.n_backgrounds, settings.max_model_rows
    if not estimator.has_process or limit is None:
        return False
    fits = FEWEST_PLAYERS <= game.n_players <= _MOST_PLAYERS and limit <= _MOST_MODEL_ROWS
    if settings.interactions is not None or not fits:
        return False
    n_all = 2 ** max(sizes)
    n_most = min(settings.budget or n_all, n_all, _MOST_OF_PROCESS * game.n_players)
    if limit >= n_most * n_backgrounds or n_backgrounds < _FEWEST_BACKGROUNDS:
        return False
    columns = game.level_columns(0)
    return columns is not None and len(columns[1]) <= _MOST_COLUMNS
