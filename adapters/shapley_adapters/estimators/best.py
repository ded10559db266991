"""The estimator that measured costs choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .odd_gp.estimator import OddGP
from .protocol import Estimator
from .random_order import RandomOrder


@dataclass(frozen=True)
class Best(OddGP):
    """Odd Gaussian-process regression, or what errs less in the time that it takes.

    `estimate` measures costs, and takes all coalitions or one of the candidates. Where costs are
    not measured, as in streams, it is the first candidate.
    """

    candidates: ClassVar[tuple[Estimator[Any], ...]] = (
        OddGP(),
        OddGP(weights="equal"),
        RandomOrder(),
    )
