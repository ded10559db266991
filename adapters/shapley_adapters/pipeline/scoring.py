"""Scores per row: how much each pair of players cooperates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..coalitions.tables import pack
from ..cooperators.choices import DERIVATIVES, LEARNED
from ..cooperators.scores import (
    difference_coalitions,
    difference_scores,
    scores_before_evaluation,
)
from ..games.evaluation import Evaluator
from .designs import RowGroup

if TYPE_CHECKING:
    from .run import Run


def scored(run: Run, group: RowGroup, evaluate: Evaluator) -> list[RowGroup]:
    """Return the group with scores of its players, where their coalitions are drawn.

    Two groups where some rows have derivatives and others do not. These have scores by differences
    of values if the user chose them or they are cheap, else at random, and none where the user
    chose derivatives alone.
    """
    source, n_players = run.estimator.score_source, group.n_players
    choice = source if isinstance(source, str) else ""
    run.warnings.score_source = choice or run.warnings.score_source
    budget, n_differences = run.budgets[n_players], n_players * (n_players + 1) // 2
    if budget.enumerates_now or source is None:
        return [group]
    # Differences of means of draws have errors: unless asked for, they are not worth their rows of
    # the model (12 features, 100 background rows, 500 to 2,000 model rows each).
    limit = budget.first_check if run.drawing is None else 0
    minimum = run.estimator.minimum_budget(n_players, run.settings.needs_errors)
    are_cheap = 2 * (n_differences + 1) <= limit and minimum + n_differences <= limit
    by_differences = choice == "difference" or (choice == "auto" and are_cheap)
    computed = scores_before_evaluation(
        run.game, group.rows, source, run.settings.batch_size, by_differences
    )
    run.warnings.count_scores(computed)
    row = np.arange(len(computed.values))[:, None, None]
    scores = computed.values[row, group.players[:, :, None], group.players[:, None, :]]
    passes, is_missing = computed.backward_passes, computed.sources == ""
    parts = []
    if not is_missing.all():
        known = ~is_missing
        part = group.subset_rows(known)
        parts.append(part.scored(scores[known], computed.sources[known], passes[known]))
    if not is_missing.any():
        return parts
    rest, passes = group.subset_rows(is_missing), passes[is_missing]
    shape = n_players, n_players
    if choice == DERIVATIVES:
        return [*parts, rest.scored(np.zeros((len(rest.rows), *shape)), "", passes)]
    if by_differences:
        coalitions = difference_coalitions(n_players)
        rest, values = run.knowing(rest, coalitions, evaluate)
        positions = {key.tobytes(): index for index, key in enumerate(pack(rest.known))}
        indices = [positions[key.tobytes()] for key in pack(coalitions)]
        differences = difference_scores(values[:, 1], values[:, indices], n_players)
        return [*parts, rest.scored(differences, "difference", passes)]
    # At random, by another stream than the coalitions; rows without draws of their own share it.
    alone = rest.one_by_one() if rest.own_words is not None else [rest]
    drawn = [one.generator(run.settings.seed, 1).random(shape) for one in alone]
    at_random = np.broadcast_to(drawn, (len(rest.rows), *shape))
    return [*parts, rest.scored(at_random, LEARNED if choice == LEARNED else "random", passes)]
