"""What the accuracy benchmark measures for each contender and budget."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from coalition_games import FloatArray, TabulatedGame
from contenders import Contender
from metrics import absolute_error, faithfulness, monotonicity, ranking_accuracy

METRICS = ("AE", "ACC", "Faithfulness", "Monotonicity")


@dataclass(frozen=True)
class Score:
    """What a contender reached at one budget.

    Attributes
    ----------
    name, family : str
        The contender.
    per_player : int
        N, the evaluations per player.
    evaluations : float
        Evaluations really made for a row, the mean over rows and seeds.
    means, errors : dict of str to float
        Each metric's mean over rows and seeds, and its standard error.
    absolute_errors : array, (S, R)
        AE by seed and row.
    """

    name: str
    family: str
    per_player: int
    evaluations: float
    means: dict[str, float]
    errors: dict[str, float]
    absolute_errors: FloatArray

    def ratio_to(self, other: Score) -> tuple[float, float]:
        """Return the AE over that of another on the same rows, and its standard error."""
        return paired_ratio(self.absolute_errors, other.absolute_errors)


def measure(
    contender: Contender, per_player: int, n_seeds: int, exact: FloatArray, game: TabulatedGame
) -> Score:
    """Run a contender with several seeds and compare its answers with the exact values."""
    budget = per_player * game.n_players + 2
    answers = [contender.estimate(budget, seed) for seed in range(n_seeds)]
    found = {
        "AE": [absolute_error(answer.values, exact) for answer in answers],
        "ACC": [ranking_accuracy(answer.values, exact) for answer in answers],
        "Faithfulness": [faithfulness(answer.values, game) for answer in answers],
        "Monotonicity": [monotonicity(answer.values, game) for answer in answers],
    }
    return Score(
        name=contender.name,
        family=contender.family,
        per_player=per_player,
        evaluations=float(np.mean([answer.evaluations for answer in answers])),
        means={metric: float(np.mean(values)) for metric, values in found.items()},
        errors={metric: standard_error(np.array(values)) for metric, values in found.items()},
        absolute_errors=np.array(found["AE"]),
    )


def save(scores: Sequence[Score], path: Path) -> None:
    """Write all scores to a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        errors = [f"{metric} standard error" for metric in METRICS]
        writer.writerow(["per_player", "family", "contender", "evaluations", *METRICS, *errors])
        for score in scores:
            numbers = [*score.means.values(), *score.errors.values()]
            who = [score.per_player, score.family, score.name]
            writer.writerow([*who, score.evaluations, *(f"{number:.6g}" for number in numbers)])


def paired_ratio(own: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Return the ratio of the means of errors on the same rows, (S, R), and its standard error."""
    ratio = float(own.mean() / others.mean())
    return ratio, standard_error(own - ratio * others) / float(others.mean())


def standard_error(found: FloatArray) -> float:
    """Return the standard error of the mean over seeds and rows, (S, R).

    The rows of one seed share their draws, so that seeds and rows are taken as crossed.
    """
    n_seeds, n_rows = found.shape
    of_rows = found.mean(axis=0).var(ddof=1) / n_rows
    of_seeds = found.mean(axis=1).var(ddof=1) / n_seeds if n_seeds > 1 else 0.0
    return float(np.sqrt(of_rows + of_seeds))
