"""The estimator that measured costs choose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..cooperators.choices import Cooperators
from .odd_gp.estimator import OddGP
from .protocol import Declaration, Estimator
from .random_order import RandomOrder


@dataclass(frozen=True)
class Best(OddGP):
    """Exact Shapley values where they cost no more, otherwise the best estimate for the time.

    The first of these that applies is chosen, and `last_estimate.choice` says which one and why:

    1. All 2^M coalitions of M features, which are exact: up to 10 features, where the budget pays
       for them, and where they take no longer than an estimate.
    2. Odd Gaussian-process regression; with equal weights, or random orders, where its own work
       takes seconds and longer than the model.

    Costs are measured with the first evaluations. With `max_seconds`, the choice is what errs
    least within that time. A call of the method that was chosen, with its budget
    (`last_estimate.budget`) and `seed`, repeats the numbers exactly. Where costs are not measured,
    as in streams, odd Gaussian-process regression is taken.
    """

    declaration: ClassVar[Declaration | None] = Declaration("best")

    # The candidates have these options, not the choice between them.
    weights: str = field(default="learned", init=False)
    cooperators: Cooperators | None = field(default=None, init=False)
    unbiased: bool = field(default=False, init=False)

    candidates: ClassVar[tuple[Estimator[Any], ...]] = (
        OddGP(),
        OddGP(weights="equal"),
        RandomOrder(),
    )
