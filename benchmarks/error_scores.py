"""Absolute errors of contenders, paired by row."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from coalition_games import FloatArray
from scores import paired_ratio, standard_error

_NORMAL_95 = 1.96


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


def save(scores: Sequence[ErrorScore], path: Path) -> None:
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
