"""Which draws of a value are evaluated: rows of a background, or answers of a random model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable
from ..errors import BudgetError, InvalidArgumentError
from ..estimators.odd_gp.background_process import Levels
from ..estimators.odd_gp.background_regression import BackgroundRegression, DrawnValues
from ..estimators.protocol import Design, Estimator
from ..estimators.random_order import RandomOrder
from ..estimators.value_errors import Draws, ValueErrors, complements
from ..games.drawn_values import (
    BackgroundGame,
    DrawnRequest,
    LevelledGame,
    SingleDraws,
    n_backgrounds_of,
)
from ..games.game import Game
from .designs import RowGroup
from .settings import RowBudget, Settings, budget_for, checked_budgets, estimation_cost

_FEWEST_OF_MANY, _SHARE, _FEWEST = 25, 0.25, 5
"""While coalitions can be added, each has a quarter of the background rows, 5 to 25. Measured on
five fitted models with 12 features and 100 background rows: 3 to 50 differ little."""

_FEWEST_PER_PLAYER = 4
"""Coalitions per player, of which single players and their complements are two, that are drawn
before each has more background rows than `_FEWEST`. Measured as above."""

_MORE_FOR_SINGLES = 2
"""Single players have so many times the background rows of other coalitions: they weigh more."""

_ENOUGH_FOR_SINGLES, _MANY = 2.2, 20
"""Rows of the model per player and background row from which on single players and complements are
evaluated on all rows; with fewer, and this many background rows, random orders err less."""

_FEWEST_PLAYERS, _MOST_PLAYERS, _FEWEST_BACKGROUNDS, _MOST_COLUMNS = 5, 100, 5, 500
"""Players, background rows and columns for which one process of all background rows is fitted. All
coalitions of fewer players are evaluated; more players or columns take much memory or time."""

_MOST_OF_PROCESS, _MOST_MODEL_ROWS = 8, 20_000
"""Rows of the model up to which it is: per player and background row, and in all. With more rows,
coalitions on many background rows err less; at 16,000, the process takes about 3 seconds. Measured
on five fitted models with 12, 30 and 60 features."""

_MORE_BY_DEFAULT, _MORE_WITH_UNITS = 4, 16
"""Coalitions at most, over those of the default budget, where only rows of the model are limited:
all draws of a coalition are in memory. Units have one draw each, and gain most by more of them."""

_FEWEST_OF_UNBIASED = 2
"""Draws of each coalition that an unbiased estimator needs, from which on single players are
evaluated on all background rows for it."""

_ENDS_SHARE, _FEWEST_ENDS, _MOST_ENDS = 3, 4, 16
"""Evaluations of the values of no and of all players of a random model: the budget over so many
times the players, about where their noise counts as much as that of the others; and bounds. The
last one holds for all coalitions of an enumeration, too."""

_REPEATED = 4
"""Where each coalition of a random model is evaluated once, one of so many is evaluated twice, so
that their noise is known."""


@dataclass(frozen=True)
class DrawPlan:
    """The draws of rows with a number of players.

    Attributes
    ----------
    n_coalitions : int
        The coalitions, with those of no and of all players, which have all draws.
    n_of_single, n_of_others : int
        The draws of single players and their complements, and of the others.
    n_inner : int
        The most draws of all coalitions but those of no and of all players, where the design says
        how many coalitions there are: units, or neighbourhoods in a graph. 0 for others.
    """

    n_coalitions: int
    n_of_single: int
    n_of_others: int
    n_inner: int = 0


@dataclass(frozen=True)
class GameLevels:
    """The levels of the players of a game, by its columns."""

    game: LevelledGame

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


@dataclass(frozen=True)
class Drawing:
    """The draws of all rows of a run.

    Attributes
    ----------
    draws : Draws
        How draws become values with errors.
    plans : dict of int to DrawPlan
        The plan for each number of active players.
    seed : int
        Seed of the draws.
    levels : GameLevels, optional
        The levels of some players of a row, for `BackgroundRegression`.
    """

    draws: Draws
    plans: dict[int, DrawPlan]
    seed: int
    levels: GameLevels | None = None

    def means(
        self, group: RowGroup, values: ValueArray, table: CoalitionTable, drawn: BoolArray
    ) -> tuple[ValueArray, ValueErrors]:
        """Return the values of a group's coalitions, (R, C, K), and their errors.

        Those of `Draws.means`, with the draws where the estimator needs them.
        """
        if self.levels is None or group.n_players < _FEWEST_PLAYERS:
            return self.draws.means(values, table, drawn)
        # The process needs no control variates, and they take long for many coalitions.
        means, errors = replace(self.draws, has_controls=False).means(values, table, drawn)
        by_draw = values.reshape(*values.shape[:2], self.draws.n_draws, -1)
        if self.draws.has_one_full_value:
            by_draw = by_draw.copy()
            by_draw[:, 1] = by_draw[:, 1, :1]
        levels = [
            self.levels.levels(int(row), players)
            for row, players in zip(group.rows, group.players, strict=True)
        ]
        with_draws = DrawnValues(
            errors.odd,
            errors.even,
            errors.covariances,
            draws=by_draw,
            drawn=np.broadcast_to(drawn, (len(values), *drawn.shape[1:])),
            levels=levels,
            is_random=self.draws.is_random,
        )
        return means, with_draws

    def game(self, game: Game) -> SingleDraws:
        """Return the game of single draws."""
        return SingleDraws(game, self.draws.n_draws, self.draws.is_background)

    def ends_request(self, rows: IntArray, coalitions: CoalitionArray) -> DrawnRequest:
        """Return the request of the values of no and of all players, whose coalitions are given."""
        table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))
        drawn = np.ones((1, len(coalitions), self.draws.n_draws), dtype=bool)
        drawn[:, 1, 1:] = not self.draws.has_one_full_value
        return DrawnRequest(rows, table, drawn=drawn)

    def knows_singles(self, n_players: int) -> bool:
        """Whether single players are evaluated first, with all draws, for unbiased estimates."""
        plan = self.plans[n_players]
        is_sampled = plan.n_of_others < plan.n_of_single
        return self.draws.is_unbiased and is_sampled and plan.n_of_single == self.draws.n_draws

    def affordable(self, group: RowGroup, design: Design) -> Design:
        """Return the first units of a design that the draws pay for; a design without is kept.

        Units that share a coalition have draws of it each.
        """
        plan, units = self.plans[group.n_players], design.sharing_units
        if not plan.n_inner or units is None:
            return design
        unit_size = int((units > 1).sum(axis=1).max())
        n_units = max(1, plan.n_inner // (unit_size * plan.n_of_others))
        # All background rows equally often: they differ more than units do.
        n_whole = min(n_units, len(units)) * plan.n_of_others // self.draws.n_draws
        if n_whole and getattr(design, "levels", None) is None:  # levels need two units each
            n_units = n_whole * self.draws.n_draws // plan.n_of_others
        if n_units >= len(units):
            return design
        return design.within(int(units[:n_units].max()) + 1)

    def drawn(self, group: RowGroup, design: Design) -> BoolArray:
        """Return the draws of the coalitions of a group's design, (1 or R, C, D).

        Those of the first coalitions do not depend on the others.
        """
        plan, units = self.plans[group.n_players], design.sharing_units
        return np.array(
            [
                self._drawn_of_one(plan, group.generator(self.seed, 3), coalitions, units)
                for coalitions in design.table.coalitions
            ]
        )

    def _drawn_of_one(
        self,
        plan: DrawPlan,
        rng: np.random.Generator,
        coalitions: CoalitionArray,
        units: IntArray | None,
    ) -> BoolArray:
        """Return the draws of coalitions, (C, D).

        A coalition has those of its complement, or of the others of its unit.
        """
        n_draws = self.draws.n_draws
        drawn = np.zeros((len(coalitions), n_draws), dtype=bool)
        drawn[:2] = True
        sizes = coalitions.sum(axis=1)
        are_single = np.minimum(sizes, coalitions.shape[1] - sizes) == 1
        counts = plan.n_of_single, plan.n_of_others
        if units is None and plan.n_inner:
            counts = self._counts(plan, int(are_single.sum()), len(coalitions) - 2)
        if not self.draws.is_background:
            drawn[2:, : counts[1]] = True
            if counts[1] == 1:
                starts = np.arange(2, len(coalitions) - _REPEATED + 1, _REPEATED)
                drawn[starts + rng.integers(_REPEATED, size=len(starts)), 1] = True
            return drawn
        drawn[1, 1:] = not self.draws.has_one_full_value
        if units is not None:
            decks = _decks(rng, n_draws, plan.n_of_others)
            n_spent = 0
            for unit in units:
                places = unit[unit > 1, None], next(decks)
                n_spent += int(np.count_nonzero(~drawn[places]))
                if plan.n_inner and n_spent > plan.n_inner:
                    break  # all coalitions of later units are in earlier ones
                drawn[places] = True
            return drawn
        first, second = complements(coalitions)
        decks_of = {count: _decks(rng, n_draws, count) for count in counts}
        for unit in range(1, len(first)):
            of_unit = next(decks_of[counts[0] if are_single[first[unit]] else counts[1]])
            drawn[first[unit], of_unit] = True
            if second[unit] >= 0:
                drawn[second[unit], of_unit] = True
        return drawn

    def _counts(self, plan: DrawPlan, n_single: int, n_inner: int) -> tuple[int, int]:
        """Return the draws of each single player and of others that a plan pays for.

        The design decides how many coalitions there are: of single players or all but one, and in
        all, but those of no and of all players.
        """
        n_draws, n_others = self.draws.n_draws, n_inner - n_single
        if not self.draws.is_background:
            each = max(plan.n_of_others, min(n_draws, plan.n_inner // max(1, n_inner)))
            return each, each
        each = plan.n_inner // max(1, n_others + _MORE_FOR_SINGLES * n_single)
        spare = plan.n_inner - n_single * n_draws
        can_know = self.draws.is_unbiased and spare >= _FEWEST_OF_UNBIASED * n_others
        if can_know or _MORE_FOR_SINGLES * each >= n_draws:
            return n_draws, min(n_draws, spare // max(1, n_others))
        return max(1, _MORE_FOR_SINGLES * each), max(1, each)


def _decks(rng: np.random.Generator, n_draws: int, count: int) -> Iterator[IntArray]:
    """Yield `count` of the draws at a time, so that all are drawn about equally often."""
    deck = rng.permutation(n_draws)
    while True:
        if len(deck) < count:
            new = rng.permutation(n_draws)
            is_left = np.isin(new, deck)
            deck = np.concatenate([deck, new[~is_left], new[is_left]])
        yield deck[:count]
        deck = deck[count:]


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
    sizes, n_backgrounds = np.unique(n_active).tolist(), n_backgrounds_of(game)
    limits = {size: settings.model_rows(size, n_backgrounds) for size in sizes}
    whole = replace(settings, max_model_rows=None)
    if all(limit is None for limit in limits.values()):
        return None, whole, estimator
    if n_backgrounds == 1 or not isinstance(game, BackgroundGame):
        return None, on_whole_background(n_backgrounds, settings, estimator, sizes), estimator
    has_one_full_value = bool(getattr(game, "has_one_full_value", False))
    of_ends = n_backgrounds + (1 if has_one_full_value else n_backgrounds)
    least = of_ends + _ENOUGH_FOR_SINGLES * game.n_players * n_backgrounds
    must_be_unbiased = estimator.is_unbiased
    has_orders = estimator.has_orders_for_few_rows and settings.interactions is None
    levels = _levels_of_process(game, estimator, settings, sizes)
    if levels is not None and settings.max_model_rows is not None:
        estimator = BackgroundRegression(max(0, settings.max_model_rows - of_ends) // 2)
    elif has_orders and (settings.max_model_rows or least) < least and n_backgrounds >= _MANY:
        estimator = RandomOrder(antithetic=False)
    plan_of = _background_plan
    if estimator.needs_graph:
        plan_of = _plan_on_graph
    elif isinstance(estimator, BackgroundRegression):
        plan_of = _plan_of_process
    plans = {
        size: plan_of(size, n_backgrounds, of_ends, limits[size], estimator, settings)
        for size in sizes
    }
    if (
        all(plan.n_of_others >= n_backgrounds for plan in plans.values())
        and not settings.saves_rows
    ):
        return None, on_whole_background(n_backgrounds, settings, estimator, sizes), estimator
    if game.sampling_obstacle and settings.saves_rows:
        return None, whole, estimator
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
        has_one_full_value=has_one_full_value,
    )
    if estimator.needs_graph:
        whole = _with_coalitions(whole, settings, max(p.n_coalitions for p in plans.values()))
    return Drawing(draws, plans, settings.seed, levels), whole, estimator


def _levels_of_process(
    game: BackgroundGame, estimator: Estimator[Any], settings: Settings, sizes: Sequence[int]
) -> GameLevels | None:
    """Return the levels of players for one process of all background rows; None if it has none.

    It takes over from estimators that are posterior means themselves, where the budget pays for a
    small part of the background.
    """
    n_backgrounds, limit = game.n_backgrounds, settings.max_model_rows
    if not (estimator.has_process and isinstance(game, LevelledGame) and limit is not None):
        return None
    fits = _FEWEST_PLAYERS <= game.n_players <= _MOST_PLAYERS and limit <= _MOST_MODEL_ROWS
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


def _plan_of_process(
    n_players: int,
    n_backgrounds: int,
    of_ends: int,
    limit: int | None,
    estimator: Estimator[Any],
    settings: Settings,
) -> DrawPlan:
    """Return one draw for each pair of complements, in pairs as many as the budget pays for."""
    if n_players < _FEWEST_PLAYERS or limit is None:
        return _background_plan(n_players, n_backgrounds, of_ends, limit, estimator, settings)
    if limit < of_ends + 2:
        raise _too_small(settings, n_backgrounds, of_ends + 2)
    n_most = min(settings.budget or 2**n_players, 2**n_players - 2)
    return DrawPlan(min(n_most, 2 + limit - of_ends), 1, 1)


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
    return _with_coalitions(settings, settings, budget)


def _with_coalitions(changed: Settings, settings: Settings, budget: int) -> Settings:
    """Return settings with the coalitions that a budget in rows of the model pays for."""
    name = f"With max_model_rows={settings.max_model_rows}, {settings.budget_name}"
    return replace(changed, budget=budget, max_model_rows=None, budget_name=name)


def _plan_on_graph(
    n_players: int,
    n_backgrounds: int,
    of_ends: int,
    limit: int | None,
    estimator: Estimator[Any],
    settings: Settings,
) -> DrawPlan:
    """Return how many coalitions a design on a graph may have, and the draws of all of them.

    Its coalitions are those of an order of neighbourhoods. Each has as many background rows as the
    budget pays for: at least one, or a few where the order is the largest that fits.
    """
    n_all = budget_for(n_players, estimator, settings).limit
    if limit is None:
        return DrawPlan(n_all, n_backgrounds, n_backgrounds)
    finds_order = getattr(estimator, "order", None) == "auto"
    if settings.budget is None:
        n_all *= _MORE_BY_DEFAULT if finds_order else _MORE_WITH_UNITS
    if n_all * n_backgrounds <= limit:
        return DrawPlan(n_all, n_backgrounds, n_backgrounds)
    n_inner = limit - of_ends
    if n_inner < 1:
        raise _too_small(settings, n_backgrounds, of_ends + 1)
    fewest = int(np.clip(_SHARE * n_backgrounds, _FEWEST, _FEWEST_OF_MANY)) if finds_order else 1
    n_coalitions = 2 + n_inner // fewest
    return DrawPlan(min(n_all, n_coalitions), 1, 1, n_inner)


def _background_plan(
    n_players: int,
    n_backgrounds: int,
    of_ends: int,
    limit: int | None,
    estimator: Estimator[Any],
    settings: Settings,
) -> DrawPlan:
    """Return how many coalitions, and how many background rows each, the budget pays for."""
    n_all = min(budget_for(n_players, estimator, settings).limit, 2**n_players)
    if limit is None:
        return DrawPlan(n_all, n_backgrounds, n_backgrounds)
    if settings.budget is None and not settings.saves_rows:
        more = _MORE_WITH_UNITS if estimator.has_units else _MORE_BY_DEFAULT
        n_all = min(more * n_all, 2**n_players)
    on_all = DrawPlan(min(n_all, limit // n_backgrounds), n_backgrounds, n_backgrounds)
    if n_all * n_backgrounds <= limit:
        return on_all
    minimum = min(n_all, estimation_cost(n_players, estimator, settings))
    left = limit - of_ends
    if left < minimum - 2:
        raise _too_small(settings, n_backgrounds, of_ends + minimum - 2)
    if estimator.has_units:
        n_of_each = -(-left // (n_all - 2))
        n_inner = max(left // n_of_each, minimum - 2)
        plan = DrawPlan(2 + n_inner, n_of_each, n_of_each, left)
        return on_all if plan.n_of_others >= n_backgrounds else plan
    # The noise of background rows falls with the root of their number, what few coalitions leave
    # much faster with these: the fewer rows, the fewer coalitions are enough.
    share = min(1.0, np.sqrt(n_backgrounds / _FEWEST_OF_MANY) / 2)
    enough = int(share * estimator.enough_coalitions(n_players))
    n_most = min(n_all, max(enough, minimum) if enough else n_all) - 2
    n_fewest = min(max(_FEWEST_PER_PLAYER * n_players, minimum - 2), n_most)
    target = int(np.clip(_SHARE * n_backgrounds, _FEWEST, _FEWEST_OF_MANY))
    n_single, spare = 2 * n_players, left - 2 * n_players * n_backgrounds
    if estimator.is_unbiased and n_most > n_single and spare >= _FEWEST_OF_UNBIASED * minimum:
        # The values of single players on all background rows are no random numbers.
        n_fewest = max(minimum - 2, min(n_fewest, spare // _FEWEST))
        n_inner = int(np.clip(spare // target, n_fewest, n_most - n_single))
        plan = DrawPlan(2 + n_single + n_inner, n_backgrounds, spare // n_inner)
    else:
        n_inner = int(np.clip(left // target, n_fewest, n_most))
        n_single = min(n_single, n_inner)
        n_of_others = left // (n_inner + (_MORE_FOR_SINGLES - 1) * n_single)
        if n_of_others < 1:  # fewer rows than coalitions and one more for each single player
            return DrawPlan(2 + min(left, n_inner), 1, 1)
        n_of_single = min(n_backgrounds, _MORE_FOR_SINGLES * n_of_others)
        if n_of_single == n_backgrounds and n_inner > n_single:
            n_of_others = (left - n_single * n_backgrounds) // (n_inner - n_single)
        plan = DrawPlan(2 + n_inner, n_of_single, n_of_others)
    return on_all if plan.n_of_others >= n_backgrounds else plan


def _too_small(settings: Settings, n_backgrounds: int, minimum: int) -> BudgetError:
    """Return the error for a budget of model rows that does not pay for an estimate."""
    return BudgetError(
        f"max_model_rows={settings.max_model_rows} is too small: {settings.name} needs at least "
        f"{minimum} rows of the model for each explained row. The value of no player takes "
        f"{n_backgrounds}, as many as the background has. Pass more, or a smaller background.",
        minimum,
    )


def repeated_drawing(n_active: IntArray, estimator: Estimator[Any], settings: Settings) -> Drawing:
    """Return the answers of a random model: `n_repeats` for each coalition.

    With one, the values of no and of all players have more, and every fourth coalition has two. A
    row that is enumerated has as many as its budget pays for.
    """
    n_repeats = settings.n_repeats
    sizes = np.unique(n_active).tolist()
    limits = [budget_for(size, estimator, settings).limit for size in sizes]
    of_ends = [limit // (_ENDS_SHARE * size) for size, limit in zip(sizes, limits, strict=True)]
    n_draws = max(n_repeats, int(np.clip(min(of_ends), _FEWEST_ENDS, _MOST_ENDS)))
    plans = {}
    for size, limit in zip(sizes, limits, strict=True):
        n_all = 2**size
        share = n_repeats if n_repeats > 1 else 1 + 1 / _REPEATED
        n_coalitions = int(2 + (limit - 2 * n_draws) / share)
        n_of_each, n_inner = n_repeats, 0
        if estimator.needs_graph:
            n_coalitions, n_inner = max(n_coalitions, 2), limit - 2 * n_draws
        elif n_coalitions >= n_all:
            affordable = int((limit - 2 * n_draws) // max(1, n_all - 2))
            n_coalitions, n_of_each = n_all, max(n_repeats, min(_MOST_ENDS, affordable))
        minimum = min(n_all, estimation_cost(size, estimator, settings))
        if n_coalitions < minimum and not estimator.needs_graph:  # these are checked by design
            needed = int(np.ceil(2 * n_draws + (minimum - 2) * share))
            raise BudgetError(
                f"{settings.budget_name}={limit} is too small for a random model: "
                f"{settings.name} needs {minimum} coalitions, of which each is evaluated "
                f"{n_repeats} times, and those of no and of all players {n_draws} times. Pass at "
                f"least {needed}, or fewer repeats.",
                needed,
            )
        n_draws = max(n_draws, n_of_each)
        plans[size] = DrawPlan(n_coalitions, n_of_each, n_of_each, n_inner)
    return Drawing(Draws(n_draws, is_background=False), plans, settings.seed)


def budgets_of_plans(
    drawing: Drawing, estimator: Estimator[Any], settings: Settings
) -> dict[int, RowBudget]:
    """Return the budget of coalitions for each number of active players."""
    return {
        size: checked_budgets(
            np.array([size]), estimator, replace(settings, budget=plan.n_coalitions)
        )[size]
        for size, plan in drawing.plans.items()
    }
