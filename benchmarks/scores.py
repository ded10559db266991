"""Scores of contenders: errors paired by row, and the measures of Wang et al. (ICML 2022).

The measures are those of their Sections 5.2 and 5.3, one number for each row.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from coalition_games import BoolArray, FloatArray, IntArray, TabulatedGame
from contenders import Contender

from shapley_adapters import Game, criteria
from shapley_adapters.criteria import absolute_error, ranking_accuracy

METRICS = ("AE", "ACC", "Faithfulness", "Monotonicity")
_NORMAL_95 = 1.96


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


@dataclass(frozen=True)
class ErrorScore:
    """How far a contender was from the Shapley values at one budget.

    Attributes
    ----------
    name : str
        The contender.
    per_player : int
        N, the evaluations per player.
    absolute_errors : array, (S, R)
        The sum over players of absolute errors, by seed and row.
    evaluations, backward_passes : float
        What was spent on a row: the mean, and the most.
    seconds : float
        For a row, those of the model apart.
    """

    name: str
    per_player: int
    absolute_errors: FloatArray
    evaluations: float
    backward_passes: float
    seconds: float

    @property
    def mean(self) -> float:
        """Mean over rows and seeds."""
        return float(self.absolute_errors.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean."""
        return standard_error(self.absolute_errors)

    @property
    def median(self) -> float:
        """Median over rows of the mean over seeds."""
        return float(np.median(self.absolute_errors.mean(axis=0)))

    def ratio_to(self, other: ErrorScore) -> Ratio:
        """Return the mean error over that of another, on the rows and seeds of both."""
        shape = np.minimum(self.absolute_errors.shape, other.absolute_errors.shape)
        own, others = (score.absolute_errors[: shape[0], : shape[1]] for score in (self, other))
        ratio, error = paired_ratio(own, others)
        of_rows = own.mean(axis=0) / others.mean(axis=0)
        # On the scale of logarithms, for errors are positive.
        factor = float(np.exp(_NORMAL_95 * error / ratio))
        return Ratio(ratio, ratio / factor, ratio * factor, float(np.median(of_rows)))


@dataclass(frozen=True)
class Ratio:
    """A ratio of errors.

    Attributes
    ----------
    of_means : float
        Ratio of the mean errors.
    lower, upper : float
        Its 95 % interval over rows and seeds.
    median : float
        Median over rows of the ratios.
    """

    of_means: float
    lower: float
    upper: float
    median: float


def ratio_of(own: FloatArray, other: FloatArray, least: float) -> Ratio:
    """Return a ratio of mean errors, (S, R); smaller ones than `least` count as this."""
    first, second = (
        ErrorScore("", 0, np.maximum(errors, least), 0, 0, 0) for errors in (own, other)
    )
    return first.ratio_to(second)


def save_errors(scores: Sequence[ErrorScore], path: Path) -> None:
    """Write a line for each contender, budget, seed and row to a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        names = ["per_player", "contender", "evaluations", "backward_passes", "seconds"]
        writer.writerow([*names, "seed", "row", "absolute_error"])
        for score in scores:
            spent = [f"{score.evaluations:.1f}", score.backward_passes, f"{score.seconds:.6f}"]
            for (seed, row), error in np.ndenumerate(score.absolute_errors):
                who = [score.per_player, score.name, *spent]
                writer.writerow([*who, seed, row, f"{error:.6g}"])


def faithfulness(values: FloatArray, game: TabulatedGame) -> FloatArray:
    """Return the correlation of the values with what v(N) loses without each player, (R,)."""
    return criteria.faithfulness(values, _AsGame(game), subset_size=1, n_subsets=game.n_players)


def monotonicity(values: FloatArray, game: TabulatedGame) -> FloatArray:
    """Return how often the next player adds no more than the one before, (R,)."""
    return criteria.monotonicity(values, _AsGame(game))


@dataclass(frozen=True)
class _AsGame(Game):
    """A tabulated game in the form that criteria take."""

    game: TabulatedGame
    evaluations_per_batch: int = 2**16

    @property
    def n_rows(self) -> int:
        return len(self.game.table)

    @property
    def n_players(self) -> int:
        return self.game.n_players

    def __call__(self, rows: IntArray, coalitions: BoolArray) -> FloatArray:
        places = coalitions @ (1 << np.arange(self.n_players))
        return self.game.table[rows, places][:, None]
