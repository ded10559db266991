"""The estimator that errs least for what it costs."""

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
    2. Odd Gaussian-process regression, where it takes at most 20 ms a row beside the model, or as
       long as the model; with gradients of networks.
    3. What errs least in that time: odd Gaussian-process regression with weights that are learned
       quickly or with fewer evaluations, or random orders, which have up to four times the default
       budget.

    An estimator's time is counted by its operations, that of the model is measured by a few
    evaluations, at most 5 %. Times are rounded to a factor of four, so that the choice repeats.
    With `max_seconds`, it is what errs least within that time. A call of the method that was
    chosen, with its budget (`last_estimate.budget`) and `seed`, repeats the numbers exactly. In
    streams, odd Gaussian-process regression is taken.
    """

    declaration: ClassVar[Declaration | None] = Declaration("best")

    # The candidates have these options, not the choice between them.
    weights: str = field(default="learned", init=False)
    cooperators: Cooperators | None = field(default=None, init=False)
    unbiased: bool = field(default=False, init=False)
    gradients: bool | str = field(default="auto", init=False)

    candidates: ClassVar[tuple[Estimator[Any], ...]] = (OddGP(), OddGP("quick"), RandomOrder())
