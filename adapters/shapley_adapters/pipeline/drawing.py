"""Draws of values, of background rows or of answers of a random model, and a run that has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, complements, end_points, size_weights
from ..conditional.refits import N_CHANGES, RefittedGame
from ..errors import BudgetError, InvalidArgumentError
from ..estimators.draws import Draws
from ..estimators.odd_gp.background_process import Levels
from ..estimators.odd_gp.background_regression import DrawnValues
from ..estimators.protocol import Design, Estimator
from ..games.drawn_values import DrawnRequest, SingleDraws
from ..games.evaluation import Evaluator
from .designs import PendingRows, RowGroup
from .run import CallBudget, Run
from .settings import Settings, budget_for, checked_budgets, estimation_cost
from .solutions import scale_exponents

_MORE_FOR_SINGLES = 2
"""Single players have so many times the background rows of other coalitions: they weigh more."""

FEWEST_OF_UNBIASED = 2
"""Draws of each coalition that an unbiased estimator needs, from which on single players are
evaluated on all background rows for it."""

FEWEST_PLAYERS = 5
"""Players from which on the process is fitted: all coalitions of fewer are evaluated."""

_HALVINGS = 60
"""Halvings of the interval of a factor that is searched: to the last bits."""

REPEATED = 4
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
    has_process : bool
        Whether one process of all background rows, `BackgroundRegression`, takes the draws and the
        levels of players.
    """

    draws: Draws
    plans: dict[int, DrawPlan]
    seed: int
    has_process: bool = False

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
        """Return the draws of coalitions, (C, D)."""
        drawn = np.zeros((len(coalitions), self.draws.n_draws), dtype=bool)
        drawn[:2] = True
        drawn[1, 1:] = not self.draws.has_one_full_value
        sizes = coalitions.sum(axis=1)
        if not self.draws.is_background:
            answers = self._n_answers(plan, rng, sizes[2:], coalitions.shape[1], units is not None)
            drawn[2:] = np.arange(self.draws.n_draws) < answers[:, None]
            return drawn
        # A coalition has the background rows of its complement, or of the others of its unit.
        are_single = np.minimum(sizes, coalitions.shape[1] - sizes) == 1
        n_most = plan.n_inner or np.inf
        counts: Sequence[int] = (plan.n_of_others, plan.n_of_others)
        if units is None:
            units, n_most = np.stack(complements(coalitions), axis=1)[1:], np.inf
            counts = plan.n_of_single, plan.n_of_others
            if plan.n_inner:  # the design decides how many coalitions there are
                n_single = int(are_single.sum())
                numbers = n_single, len(coalitions) - 2 - n_single, self.draws.n_draws
                of_each = draws_of_each(plan.n_inner, *numbers, self.draws.is_unbiased)
                counts = np.clip(of_each, 1, self.draws.n_draws).tolist()
        decks_of = {count: _decks(rng, self.draws.n_draws, count) for count in counts}
        n_spent = 0
        for unit in units:
            inner = unit[unit > 1]  # without the ends, and −1 for a missing complement
            places = inner[:, None], next(decks_of[counts[0 if are_single[inner].any() else 1]])
            n_spent += int(np.count_nonzero(~drawn[places]))
            if n_spent > n_most:
                break  # all coalitions of later units are in earlier ones
            drawn[places] = True
        return drawn

    def _n_answers(
        self,
        plan: DrawPlan,
        rng: np.random.Generator,
        sizes: IntArray,
        n_players: int,
        has_units: bool,
    ) -> IntArray:
        """Return how often a random model answers for coalitions of these sizes, (C,)."""
        n_draws, n_inner = self.draws.n_draws, len(sizes)
        if plan.n_inner and 0 < n_inner == 2**n_players - 2:
            return _allocated(sizes, plan.n_of_others, n_draws, plan.n_inner, rng)
        each, more = plan.n_of_others, np.empty(0, dtype=np.intp)
        if plan.n_inner and not has_units:  # the rest of the budget, one for each
            each = max(each, min(n_draws, plan.n_inner // max(1, n_inner)))
            more = rng.permutation(n_inner)[: max(plan.n_inner - each * n_inner, 0)]
        elif each == 1:
            starts = np.arange(0, n_inner - REPEATED + 1, REPEATED)
            more = starts + rng.integers(REPEATED, size=len(starts))
        counts = np.full(n_inner, each)
        counts[more] += 1
        return counts


def draws_of_each(
    n_in_all: int, n_single: int, n_others: int, n_draws: int, is_unbiased: bool = False
) -> tuple[int, int]:
    """Return the draws of each single player or all but one, and of each other coalition.

    Parameters
    ----------
    n_in_all : int
        The draws of all of them that a budget pays for.
    n_single, n_others : int
        The numbers of these coalitions.
    n_draws : int
        The most draws of a coalition.
    is_unbiased : bool
        Whether single players should have all draws, where the others are left enough.
    """
    each = n_in_all // max(1, n_others + _MORE_FOR_SINGLES * n_single)
    spare = n_in_all - n_single * n_draws
    can_know = is_unbiased and spare >= FEWEST_OF_UNBIASED * n_others
    if can_know or _MORE_FOR_SINGLES * each >= n_draws:
        return n_draws, spare // n_others if n_others else each
    return _MORE_FOR_SINGLES * each, each


def _allocated(
    sizes: IntArray, fewest: int, most: int, total: int, rng: np.random.Generator
) -> IntArray:
    """Return how many draws each coalition of an enumeration has, (C,), given their sizes.

    Neyman's allocation for equal noise: in proportion to the root of Σ_i w_i², the weights of its
    value in the Shapley values. Remainders are rounded up or down at random. Measured on
    conditional normal draws, the error is .78, .55 and .37 of that of equal numbers with 6, 8 and
    10 features; with the noise of each coalition known, it would be .62, .45 and .30.
    """
    n_players = int(sizes.max()) + 1
    present, absent = size_weights(n_players)
    all_sizes = np.arange(n_players + 1)
    roots = np.sqrt(all_sizes * present**2 + (n_players - all_sizes) * absent**2)[sizes]
    total = int(np.clip(total, fewest * len(sizes), most * len(sizes)))
    low, high = 0.0, most / roots.min()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_less = np.clip(middle * roots, fewest, most).sum() < total
        low, high = (middle, high) if is_less else (low, middle)
    order = rng.permutation(len(sizes))
    ends = np.minimum(np.cumsum(np.clip(low * roots, fewest, most)[order]), total)
    counts = np.empty(len(sizes), dtype=np.intp)
    counts[order] = np.diff(np.floor(ends + rng.random()), prepend=0)
    return counts


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
    limits = _limits(n_active, estimator, settings)
    n_for_ends = min(limit // (_ENDS_SHARE * max(size, 1)) for size, limit in limits.items())
    n_draws = max(n_repeats, int(np.clip(n_for_ends, _FEWEST_ENDS, _MOST_ENDS)))
    n_ends = n_draws + (1 if has_one_full_value else n_draws)
    plans = {}
    for size, limit in limits.items():
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
                f"of absent features: {settings.name} needs {minimum} coalitions. Each is "
                f"evaluated {of_each}, the empty and the full one {n_draws} times. Pass at "
                f"least {needed}{'' if once else ', or fewer repeats'}.",
                needed,
            )
        plans[size] = DrawPlan(n_coalitions, n_repeats, n_repeats, n_inner)
    draws = Draws(n_draws, is_background=False, has_one_full_value=has_one_full_value)
    return Drawing(draws, plans, settings.seed)


@dataclass
class DrawnRun(Run):
    """A run that evaluates draws, more of some values than of others.

    Attributes
    ----------
    drawing : Drawing
        The draws whose means are the values.
    """

    has_draws: ClassVar[bool] = True
    n_arrays = 6
    n_changes = 0

    drawing: Drawing = field(kw_only=True)

    def __post_init__(self) -> None:
        """Check the arguments; budgets are those of coalitions, and the game that of draws."""
        for size, plan in self.drawing.plans.items():
            settings = replace(self.settings, budget=plan.n_coalitions)
            self.budgets |= checked_budgets(np.array([size]), self.estimator, settings)
        super().__post_init__()
        draws, game = self.drawing.draws, self.game
        self.n_draws = draws.n_draws
        self.evaluated_game = SingleDraws(game, draws.n_draws, draws.is_background)
        if game.draws_values:
            self.evaluated_game = game.repeated(draws.n_draws)
        if game.has_refits:
            self.evaluated_game = RefittedGame(self.evaluated_game)
            self.n_changes, self.n_arrays = N_CHANGES, type(self).n_arrays + N_CHANGES

    def evaluated_ends(self, evaluate: Evaluator) -> tuple[ValueArray, ValueArray]:
        """Return the draws of no and of all players, (R, 2, D · K), and their means, (R, 2, K)."""
        draws, ends = self.drawing.draws, end_points(self.game.n_players)
        drawn = np.ones((1, 2, draws.n_draws), dtype=bool)
        drawn[:, 1, 1:] = not draws.has_one_full_value
        rows, table = np.arange(self.game.n_rows), CoalitionTable(ends[None], np.array([2]))
        (evaluated,) = evaluate([DrawnRequest(rows, table, drawn=drawn)])
        return evaluated, self.means_of_ends(evaluated)

    def means_of_ends(self, evaluated: ValueArray) -> ValueArray:
        """Return the means of the draws of no and of all players, (R, 2, K)."""
        return self.drawing.draws.ends(self._parts(evaluated)[0])

    def _parts(self, evaluated: ValueArray) -> tuple[ValueArray, ValueArray]:
        """Return the draws of values, (R, C, D · K), and of changes, (R, C, D, n_changes · K)."""
        shape = *evaluated.shape[:2], self.n_draws, -1
        by_draw = evaluated.reshape(shape)
        n_outputs = by_draw.shape[3] // (1 + self.n_changes)
        values, changes = np.split(by_draw, [n_outputs], axis=3)
        return values.reshape(*shape[:2], -1), changes

    def budget(self) -> CallBudget:
        """Return the most that the run takes, in evaluations and in rows of the model."""
        evaluations, model_rows = super().budget()
        n_backgrounds, is_background = self.game.n_backgrounds, self.drawing.draws.is_background
        if not is_background:
            model_rows *= self.n_draws
        for size in np.unique(self.n_active).tolist():
            limit = self.settings.limiting_rows
            if not is_background:
                limit = budget_for(size, self.estimator, self.settings).limit * n_backgrounds
            if limit is not None:
                of_size = self.n_active == size
                model_rows[of_size] = np.minimum(model_rows[of_size], limit)
        return CallBudget(evaluations, model_rows)

    def groups(
        self, rows: IntArray, ends: ValueArray, evaluate: Evaluator | None = None
    ) -> list[RowGroup]:
        """Group rows; with the draws of single players, where the others depend on these."""
        groups = super().groups(rows, ends)
        if evaluate is None:
            return groups
        draws = self.drawing.draws
        for index, group in enumerate(groups):
            plan = self.drawing.plans[group.n_players]
            if draws.is_unbiased and plan.n_of_others < plan.n_of_single == draws.n_draws:
                single = np.eye(group.n_players, dtype=bool)
                coalitions = np.unique(np.concatenate([single, ~single]), axis=0)
                groups[index], _ = self.knowing(group, coalitions, evaluate)
        if self.estimator.score_source is None or self.own_words is None:
            return groups
        return [row for group in groups for row in group.one_by_one()]  # with draws of their own

    def start(self, group: RowGroup) -> list[PendingRows]:
        """Return the rows of a group, or each row, with a design that the draws pay for."""
        pending = []
        for part in [group] if group.own_words is None else group.one_by_one():
            design = self.drawing.affordable(part, self.designs.design_for(part))
            if part.graph is not None:
                self.warnings.count_isolated(part, design)
            pending.append(self.pending(part, design, part.known_values))
        return pending

    def pending(self, group: RowGroup, design: Design, values: ValueArray) -> PendingRows:
        """Return rows with the first round of a design, and the draws of its coalitions."""
        drawn = self.drawing.drawn(group, design)
        return replace(super().pending(group, design, values), drawn=drawn)

    def with_means(self, pending: PendingRows) -> PendingRows:
        """Return rows with the means of their draws, and the errors of these."""
        draws, group, table = self.drawing.draws, pending.group, pending.design.table
        values, changes = self._parts(pending.values)
        drawn, shape = _evaluated(pending), values.shape
        by_draw = values.reshape(shape[0], shape[1] * draws.n_draws, -1)
        exponents = scale_exponents(by_draw)
        near_one = np.ldexp(by_draw, -exponents).reshape(shape)
        if self.drawing.has_process and group.n_players >= FEWEST_PLAYERS:
            # The process needs no control variates, and they take long for many coalitions.
            draws = replace(draws, has_controls=False)
        means, errors = draws.means(near_one, table, drawn)
        if not draws.has_controls:
            errors = DrawnValues(
                errors.odd,
                errors.even,
                errors.covariances,
                draws=draws.by_draw(near_one),
                drawn=np.broadcast_to(drawn, (shape[0], *drawn.shape[1:])),
                levels=list(map(self._levels, group.rows, group.players)),
                is_random=draws.is_random,
            )
        errors = replace(errors, exponents=exponents)
        counts = drawn.sum(axis=2)[..., None]
        return replace(
            pending,
            values=np.ldexp(means, exponents),
            errors=errors,
            changes=changes.sum(axis=2) / counts if self.n_changes else None,
        )

    def _levels(self, row: int, players: IntArray) -> Levels:
        """Return the levels of some players of a row, by its columns, in this order."""
        found = self.game.level_columns(int(row))
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

    def model_rows(self, pending: PendingRows, counts: IntArray) -> IntArray:
        """Return the rows of the model that the draws of each row took, (1 or R,)."""
        del counts  # draws differ in number
        draws = self.drawing.draws
        each = 1 if draws.is_background else self.game.n_backgrounds
        n_draws: IntArray = each * _evaluated(pending).sum(axis=(1, 2))
        return n_draws - (each - 1) * draws.has_one_full_value  # which is one row of the model


def _evaluated(pending: PendingRows) -> BoolArray:
    """Return which draws of rows were evaluated, (1 or R, C, D)."""
    drawn: Any = pending.drawn  # which rows of this run have
    evaluated: BoolArray = drawn[:, : pending.values.shape[1]]
    return evaluated


def can_be_random(run: Run) -> bool:
    """Return whether the budget pays for means of answers, among them many of the ends.

    With less, more coalitions are worth more: with 12 features and noise of .03 and .3 times the
    standard deviation of the values, the error is .2 to 1.0 of that of means at 30 and 60
    evaluations, .7 to 1.0 at 100, and .8 to 1.25 from 200 on.
    """
    if run.has_draws or run.estimator.needs_graph:
        return True
    limits = _limits(run.n_active[run.n_active > 0], run.estimator, run.settings)
    # The noise of the ends counts as much as that of others with the fewest answers.
    each = _FEWEST_ENDS * _ENDS_SHARE
    return all(limit >= each * size for size, limit in limits.items())


def budget_for_noise(run: Run) -> int:
    """Return the budget from which on error bars include noise, if that of a row is less; else 0.

    Of fewer values, `oddgp` has no pairs whose differences show noise. Rows that are enumerated
    have errors by further answers alone.
    """
    each = _FEWEST_ENDS * _ENDS_SHARE
    least = {n: each * n if of.enumerates_now else 2 * n + 2 for n, of in run.budgets.items()}
    missing = [needed for n, needed in least.items() if run.budgets[n].limit < needed]
    return 0 if run.has_draws else max(missing, default=0)


def _limits(n_active: IntArray, estimator: Estimator[Any], settings: Settings) -> dict[int, int]:
    """Return the most evaluations of rows by their number of active players."""
    sizes = np.unique(n_active).tolist()
    return {size: budget_for(size, estimator, settings).limit for size in sizes}


def for_random_model(run: Run) -> DrawnRun:
    """Return the run of a model that answers at random, whose values are means of answers."""
    estimator = run.estimator.values_alone or run.estimator
    if isinstance(run, DrawnRun):
        draws = replace(run.drawing.draws, is_random=True, has_one_full_value=False)
        drawing = replace(run.drawing, draws=draws)
    else:
        drawing = repeated_drawing(run.n_active, estimator, run.settings)
    return DrawnRun(run.game, estimator, run.settings, run.active, drawing=drawing)
