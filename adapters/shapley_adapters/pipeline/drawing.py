"""Which draws of a value are evaluated: rows of a background, or answers of a random model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..array_types import BoolArray, CoalitionArray, IntArray
from ..coalitions.tables import CoalitionTable
from ..errors import BudgetError, InvalidArgumentError
from ..estimators.protocol import Design, Estimator
from ..estimators.random_order import RandomOrder
from ..estimators.value_errors import Draws, complements
from ..games.drawn_values import BackgroundGame, DrawnRequest, SingleDraws, n_backgrounds_of
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
    n_of_units : int
        The most draws of all units together; 0 without units.
    """

    n_coalitions: int
    n_of_single: int
    n_of_others: int
    n_of_units: int = 0


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
    """

    draws: Draws
    plans: dict[int, DrawPlan]
    seed: int

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
        if not plan.n_of_units or units is None:
            return design
        unit_size = int((units > 1).sum(axis=1).max())
        n_units = max(1, plan.n_of_units // (unit_size * plan.n_of_others))
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
        if not self.draws.is_background:
            drawn[2:, : plan.n_of_others] = True
            if plan.n_of_others == 1:
                starts = np.arange(2, len(coalitions) - _REPEATED + 1, _REPEATED)
                drawn[starts + rng.integers(_REPEATED, size=len(starts)), 1] = True
            return drawn
        drawn[1, 1:] = not self.draws.has_one_full_value
        if units is not None:
            decks = _decks(rng, n_draws, plan.n_of_others)
            for unit in units:
                drawn[unit[unit > 1, None], next(decks)] = True
            return drawn
        first, second = complements(coalitions)
        sizes = coalitions[first].sum(axis=1)
        are_single = np.minimum(sizes, coalitions.shape[1] - sizes) <= 1
        counts = plan.n_of_single, plan.n_of_others
        decks_of = {count: _decks(rng, n_draws, count) for count in counts}
        for unit in range(1, len(first)):
            of_unit = next(decks_of[counts[0] if are_single[unit] else counts[1]])
            drawn[first[unit], of_unit] = True
            if second[unit] >= 0:
                drawn[second[unit], of_unit] = True
        return drawn


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
    needs_all = estimator.needs_graph or estimator.score_source is not None
    if n_backgrounds == 1 or needs_all or not isinstance(game, BackgroundGame):
        return None, on_whole_background(n_backgrounds, settings, estimator, sizes), estimator
    has_one_full_value = bool(getattr(game, "has_one_full_value", False))
    of_ends = n_backgrounds + (1 if has_one_full_value else n_backgrounds)
    least = of_ends + _ENOUGH_FOR_SINGLES * game.n_players * n_backgrounds
    must_be_unbiased = estimator.is_unbiased
    has_orders = estimator.has_orders_for_few_rows and settings.interactions is None
    if has_orders and (settings.max_model_rows or least) < least and n_backgrounds >= _MANY:
        estimator = RandomOrder(antithetic=False)
    plans = {
        size: _background_plan(size, n_backgrounds, of_ends, limits[size], estimator, settings)
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
    return Drawing(draws, plans, settings.seed), whole, estimator


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
    return replace(settings, budget=budget, max_model_rows=None)


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


def can_repeat(estimator: Estimator[Any]) -> bool:
    """Whether means of answers can take the place of values.

    Methods on graphs have no errors for them, and differences of values choose cooperators before
    there are means.
    """
    source = estimator.score_source
    return not (estimator.needs_graph or (isinstance(source, str) and source == "difference"))


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
        n_of_each = n_repeats
        if n_coalitions >= n_all:
            affordable = int((limit - 2 * n_draws) // max(1, n_all - 2))
            n_coalitions, n_of_each = n_all, max(n_repeats, min(_MOST_ENDS, affordable))
        minimum = min(n_all, estimation_cost(size, estimator, settings))
        if n_coalitions < minimum:
            needed = int(np.ceil(2 * n_draws + (minimum - 2) * share))
            raise BudgetError(
                f"{settings.budget_name}={limit} is too small for a random model: "
                f"{settings.name} needs {minimum} coalitions, of which each is evaluated "
                f"{n_repeats} times, and those of no and of all players {n_draws} times. Pass at "
                f"least {needed}, or fewer repeats.",
                needed,
            )
        n_draws = max(n_draws, n_of_each)
        plans[size] = DrawPlan(n_coalitions, n_of_each, n_of_each)
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
