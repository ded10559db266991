"""Ratios of errors on the same rows, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from games import FloatArray

_NORMAL_95 = 1.96


@dataclass(frozen=True)
class Ratio:
    """A ratio of mean errors, and its 95 % interval over rows and seeds."""

    of_means: float
    lower: float
    upper: float


def ratio_of(own: FloatArray, others: FloatArray, least: float = 0.0) -> Ratio:
    """Return the ratio of the means of errors on the same rows, (S, R).

    Smaller errors than `least` count as this.
    """
    own, others = (np.maximum(errors, least) for errors in (own, others))
    ratio = float(own.mean() / others.mean())
    error = standard_error(own - ratio * others) / float(others.mean())
    # On the scale of logarithms, for errors are positive.
    factor = float(np.exp(_NORMAL_95 * error / ratio))
    return Ratio(ratio, ratio / factor, ratio * factor)


def standard_error(found: FloatArray) -> float:
    """Return the standard error of the mean over seeds and rows, (S, R).

    The rows of one seed share their draws, so that seeds and rows are taken as crossed.
    """
    n_seeds, n_rows = found.shape
    of_rows = found.mean(axis=0).var(ddof=1) / n_rows
    of_seeds = found.mean(axis=1).var(ddof=1) / n_seeds if n_seeds > 1 else 0.0
    return float(np.sqrt(of_rows + of_seeds))
