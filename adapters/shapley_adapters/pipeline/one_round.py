"""From a game and a budget to attributions: estimate the rows, check the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from ..array_types import BoolArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import first_row, warn_user
from ..estimators.protocol import Estimator
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from ..games.value_memory import ValueMemory
from ..remote import Usage
from ..workers import n_workers_for
from .background_plans import background_drawing
from .costs import Costs, Plan, warn_of_long_call
from .drawing import repeated_drawing
from .parallel_rows import estimate_in_workers, raise_with_row
from .result import Estimate, Seconds, blank_estimate
from .run import Run, largest_magnitude
from .settings import MANY_ENTRIES, Settings

# tqdm's default smoothing weighs the last steps most: after a pause, in which an estimator solves
# its equations, it stated 17 times the remaining time, and between pauses half of it. With the
# default of miniters, one large step hides the small ones after it.
BY_MEAN_SPEED: Mapping[str, Any] = {"smoothing": 0.0, "miniters": 1}

_DIFFERENCE = 2.0**-8
"""Share of the largest value by which repeated values may differ. Many models compute with reduced
precision inside, and then differ that much between batches of different sizes."""

_NOISE = 2.0**-16
"""Share of the largest value by which two values of the same call differ, if a model is random."""

_CHECKED_BY_DEFAULT, _MOST_PAIRS = 400, 8
"""Evaluations of a row by default, for `_CHECKED_SHARE`, and the most pairs that are compared: one
shows noise, but labels may be equal by chance."""

_CHECKED_SHARE = 0.02
"""Share of the evaluations of a call that look for random answers at most."""

_TIMES_ALONE = 3
"""Evaluations of a row alone that tell answers at random from rows that influence each other: two
answers are often equal by chance."""

_ROUNDINGS = 8
"""Rounding errors of the output by which they may differ, where that is more."""


def run_of(
    game: Game, estimator: Estimator[Any], settings: Settings, memory: ValueMemory | None = None
) -> Run:
    """Return the run of a call; all is checked that can be without an evaluation."""
    active = game.active_players()
    n_active = active.sum(axis=1)
    drawing, settings, estimator = background_drawing(game, n_active, estimator, settings)
    if drawing is None and (settings.n_repeats > 1 or game.is_random):
        has_draws = game.only_absence_is_random and settings.n_repeats == 1
        drawing = repeated_drawing(n_active, estimator, settings, has_draws)
    memory = memory if drawing is None else None  # it has values, not draws
    return Run(game, estimator, settings, active, memory=memory, drawing=drawing)


def estimate_round(
    game: Game,
    estimator: Estimator[Any],
    settings: Settings,
    memory: ValueMemory | None = None,
) -> Estimate:
    """Estimate all rows with a budget for each, which does not depend on the time.

    Values in `memory` are not computed again.
    """
    return unchecked_round(game, estimator, settings, memory)[1]()


def unchecked_round(
    game: Game,
    estimator: Estimator[Any],
    settings: Settings,
    memory: ValueMemory | None = None,
) -> tuple[Estimate, Callable[[], Estimate]]:
    """Return the estimate, and a function that looks at it, warns, and returns it.

    A further round may take its place, whose warnings are others.
    """
    started = perf_counter()
    run = run_of(game, estimator, settings, memory)
    estimator, settings, memory = run.estimator, run.settings, run.memory
    n_workers = n_workers_for(settings.n_jobs, game.n_rows)
    is_counted = not estimator.needs_graph and run.drawing is None
    total = int(run.most_evaluations().sum()) if is_counted else None
    delay = settings.progress_delay
    with tqdm(
        total=total,
        desc=settings.name,
        unit=" evaluations",
        delay=delay or 0,
        disable=delay is None,
        **BY_MEAN_SPEED,
    ) as bar:
        used = game.usage
        advance = bar.update if used is None else partial(_advance, bar, game, used)
        evaluate = Evaluator(
            run.evaluated_game, settings.batch_size, advance, is_timed=True, memory=memory
        )
        if n_workers > 1:  # an error says which row it is, before the workers and in them
            name_row = partial(raise_with_row, game, n_draws=run.n_draws)
            evaluate = replace(evaluate, on_error=name_row)
        (drawn_ends,) = evaluate([run.ends_request()])
        ends = run.means_of_ends(drawn_ends)  # (R, 2, K)
        seconds = evaluate.spent[0] / max(1, 2 * game.n_rows)
        noise = Repetition.from_first_row(game, run.active, ends, settings)
        if noise.is_random:
            run = run.for_random_model()
            evaluate = replace(evaluate, game=run.evaluated_game, memory=None)
            (drawn_ends,) = evaluate([run.ends_request()])
            ends = run.means_of_ends(drawn_ends)
        run.n_repeated = noise.n_repeated if run.drawing is None else 0
        run.largest = largest_magnitude(ends)
        budget = run.budgets[max(run.budgets)]
        entries = game.n_rows * budget.n_players * budget.limit * ends.shape[2]
        is_whole = memory is None and first_row() is None and not settings.is_for_training
        if (
            entries > MANY_ENTRIES
            and run.drawing is None
            and is_whole
            and not (estimator.needs_graph or budget.enumerates_now)
        ):
            costs = Costs(game, settings, run.active, n_outputs=ends.shape[2])
            warn_of_long_call(costs, Plan(estimator, budget.limit))
        result = blank_estimate(
            ends,
            game.n_players,
            settings.seed,
            type(estimator).__name__,
            settings.interactions,
            run.traced_limit,
            estimator.has_unions,
        )
        if n_workers == 1:
            for rows in run.blocks(0, game.n_rows, drawn_ends.shape[2]):
                run.estimate_block(rows, drawn_ends[rows], evaluate, result)
        else:
            estimate_in_workers(run, n_workers, drawn_ends, evaluate, seconds, result)
        bar.total = bar.n  # designs may leave a few evaluations of the budget
    of_model = evaluate.spent[0] if n_workers == 1 else np.nan
    result = replace(result, seconds=Seconds(of_model, perf_counter() - started - of_model))
    return result, partial(_checked, result, run, ends, noise)


def _advance(bar: Any, game: Any, before: Usage, n_evaluations: int) -> None:
    """Move the bar, and show what a remote model was used for."""
    bar.set_postfix_str(str(game.usage - before), refresh=False)
    bar.update(n_evaluations)


def _checked(result: Estimate, run: Run, ends: ValueArray, noise: Repetition) -> Estimate:
    """Warn of what the run has found, and return the result with the cost of looking for noise."""
    game, settings, estimator = run.game, run.settings, run.estimator
    if not settings.is_for_training:
        run.warnings.count_small_budgets(run.budgets, run.n_active, result, estimator)
    run.warnings.warn(game.n_rows, settings)
    if settings.is_for_training:
        return result
    rows = np.flatnonzero(run.n_active)
    n_checks, spent = noise.n_evaluations, result.evaluations[rows]
    if run.warnings.two_answers is not None:
        _warn(*map(np.atleast_1d, run.warnings.two_answers))
    n_checks += run.warnings.n_repeated
    if not n_checks and settings.n_repeats == 1 and not game.is_random:
        n_checks = check_repeated_values(game, settings, rows, ends[rows], run.largest, spent)
    return replace(
        result,
        budget=settings.budget,
        check_evaluations=n_checks,
        rounding=game.rounding,
        errors_cancel=settings.independent_rows
        and not game.draws_values  # all rows share the draws without any player
        and estimator.is_unbiased
        and run.warnings.small_budget is None,
    )


@dataclass(frozen=True)
class Repetition:
    """Whether a model answers at random, from coalitions of the first row that it has twice.

    Attributes
    ----------
    n_evaluations : int
        The evaluations that this took.
    is_random : bool
        Whether two answers for the same input differ.
    n_repeated : int
        How many values of each row remain to be evaluated again: few pairs of labels are often
        equal by chance, and among all values of a row there are better ones.
    """

    n_evaluations: int = 0
    is_random: bool = False
    n_repeated: int = 0

    @classmethod
    def from_first_row(
        cls, game: Game, active: BoolArray, ends: ValueArray, settings: Settings
    ) -> Repetition:
        """Evaluate half of the players of the first row twice, if that is at most 2 % of a call.

        Half of the players, because a model may answer at random only where some are absent. If
        the budget allows it, the output is computed again, too: beside other rows than before, it
        differs where rows of a batch influence each other. Models in training mode are not checked:
        the hosts warn of them, and their rows may need a batch.
        """
        rows = np.flatnonzero(active.any(axis=1))
        is_known = settings.n_repeats > 1 or game.is_random or game.is_in_training_mode
        if settings.is_for_training or is_known or not len(rows):
            return cls()
        budget = settings.budget or _CHECKED_BY_DEFAULT
        spare = budget - 2 ** min(int(active.sum(axis=1).max()), 60)  # beside an enumeration
        n_affordable = int(max(_CHECKED_SHARE * budget * len(rows), spare))
        n_most = min(n_affordable, 2 * _MOST_PAIRS)
        if n_most < 2:
            return cls()
        row, players = rows[:1], np.flatnonzero(active[rows[0]])
        evaluate = Evaluator(game, settings.batch_size)
        rounding = _ROUNDINGS * game.rounding
        largest, n_spent, n_repeated = largest_magnitude(ends), 0, 0
        if n_most < 2 * _MOST_PAIRS and (ends[row] == np.round(ends[row])).all():
            n_affordable = n_most = 0
            n_repeated = int(_CHECKED_SHARE * budget)
        for start in range(n_most // 2):
            coalition = np.zeros((1, 1, game.n_players), dtype=bool)
            coalition[..., np.roll(players, start)[: (len(players) + 1) // 2]] = True
            request = Request(row, CoalitionTable(coalition, np.array([1])))
            # Each is evaluated alone: rows of a batch may influence each other.
            first = evaluate([request])[0][0, 0]
            second = evaluate([request])[0][0, 0]
            n_spent += 2
            largest = max(largest, float(np.abs(first).max()))
            if (np.abs(first - second) > max(_NOISE, rounding) * largest).any():
                _warn(first, second)
                return cls(n_spent, is_random=True)
            # Labels may be equal by chance, and numbers almost.
            if (first == second).all() and not (first == np.round(first)).any():
                break
        # Alone, unless it was alone before: then with the empty coalition.
        n_ends = 2 if game.evaluates_first_alone else 1
        if settings.budget is None or n_spent + n_ends <= n_affordable:
            coalitions = end_points(game.n_players)[None, ::-1][:, :n_ends]
            beside = Request(row, CoalitionTable(coalitions, np.array([n_ends])))
            pairs = np.stack([ends[row, ::-1][0, :n_ends], evaluate([beside])[0][0]])
            n_spent += n_ends
            allowed = max(_DIFFERENCE, rounding) * largest
            differ = (np.abs(pairs[0] - pairs[1]) > allowed).any(axis=1)
            end, are_labels = int(differ.argmax()), bool((pairs == np.round(pairs)).all())
            is_affordable = settings.budget is None or n_spent + _TIMES_ALONE <= n_affordable
            if differ.any() and (are_labels or not is_affordable):
                _warn(*pairs[:, end])
            elif differ.any():
                lone = Request(row, CoalitionTable(coalitions[:, end : end + 1], np.array([1])))
                alone = [pairs[0 if n_ends == 2 else 1, end]]
                alone += [evaluate([lone])[0][0, 0] for _ in range(_TIMES_ALONE)]
                n_spent += _TIMES_ALONE
                if (np.ptp(alone, axis=0) > allowed).any():
                    _warn(*pairs[:, end])
                    return cls(n_spent, is_random=True)
                _warn_of_company(*pairs[:, end])
        return cls(n_spent, n_repeated=n_repeated)


def check_repeated_values(
    game: Game,
    settings: Settings,
    rows: IntArray,
    ends: ValueArray,
    largest: float,
    evaluations: IntArray,
) -> int:
    """Warn where two values of the same input differ; return the evaluations that this took.

    At most two, if the rows' budgets still pay for them; the default budget is no limit. Models in
    training mode are not checked, because the hosts warn of them.

    Parameters
    ----------
    game : Game
        The games of all rows.
    settings : Settings
        The settings of the run, after its estimate.
    rows : array, (R,)
        The rows that have players.
    ends : array, (R, 2, K)
        Their values of the empty coalition and of all players.
    largest : float
        The largest value, regardless of signs.
    evaluations : array, (R,)
        The evaluations of each of these rows.
    """
    if len(rows) == 0 or game.is_in_training_mode:
        return 0
    n_affordable, budget = 2, settings.budget
    if budget is not None:
        budget = min(budget, int(evaluations.max()) + 2)  # NumPy's integers are bounded
        n_affordable = min(2, int(np.maximum(budget - evaluations, 0).sum()))
    evaluate = Evaluator(game, settings.batch_size)
    allowed = max(_DIFFERENCE, _ROUNDINGS * game.rounding) * largest
    # All players first: without any input, a random part of the model may have no effect.
    coalitions = end_points(game.n_players)[::-1][:n_affordable]
    for n_spent, (coalition, first) in enumerate(zip(coalitions, ends[0, ::-1], strict=False), 1):
        # Each is evaluated alone: rows of a batch may influence each other.
        request = Request(rows[:1], CoalitionTable(coalition[None, None], np.array([1])))
        second = evaluate([request])[0][0, 0]
        if (np.abs(first - second) > allowed).any():
            if n_spent == len(coalitions):
                _warn(first, second)
                return n_spent
            third = evaluate([request])[0][0, 0]  # alone again
            is_random = (np.abs(second - third) > allowed).any() or (
                second == np.round(second)
            ).all()
            (_warn if is_random else _warn_of_company)(first, second)
            return n_spent + 1
    if game.has_common_empty_value:
        first, second = ends[:, 0].min(axis=0), ends[:, 0].max(axis=0)
        if (np.abs(first - second) > allowed).any():
            _warn(first, second)
    return len(coalitions)


def _warn(first: ValueArray, second: ValueArray) -> None:
    output = int(np.abs(first - second).argmax())
    warn_user(
        f"The model is not deterministic: it returned {first[output]:.6g} and {second[output]:.6g} "
        "for the same input. Error bars hold that noise; repeats= evaluates each coalition "
        "several times. Switch off the random parts of the model (model.eval() for dropout), let "
        "it start from a fixed seed in each call, or average many outputs inside it. If its rows "
        "influence each other within a batch, as in batch normalisation, explain one that treats "
        "each row alone.",
        subject="repeated values",
    )


def _warn_of_company(first: ValueArray, second: ValueArray) -> None:
    output = int(np.abs(first - second).argmax())
    warn_user(
        f"The rows of a batch influence each other: the model returned {first[output]:.6g} and "
        f"{second[output]:.6g} for the same input beside other rows. The attributions then depend "
        "on the size of batches, and error bars do not hold that. Let the model treat each row "
        "alone: model.eval() for batch normalisation, no softmax or mean over the first axis. Or "
        "call it with one row at a time: in shap explain lambda x: [model(row[None])[0] for row in "
        "x], in captum one example with perturbations_per_eval=1.",
        subject="repeated values",
    )
