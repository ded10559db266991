"""The accuracy at which a row stops."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..array_types import BoolArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from ..estimators.protocol import Solution


@dataclass(frozen=True)
class Tolerance:
    """The standard error at which a row needs no further evaluations.

    Attributes
    ----------
    amount : float
        The largest standard error allowed, of any player and output.
    is_relative : bool
        Whether it is a fraction of the distance between the row's largest and smallest
        attribution to the output, rather than in units of the output.
    """

    amount: float
    is_relative: bool = False

    def is_met(self, solution: Solution) -> BoolArray:
        """Return which rows are accurate enough, (R,); rows with unknown errors are not."""
        is_met: BoolArray = self._excess(solution) <= 1
        return is_met

    def largest_excess(self, solution: Solution) -> float:
        """Return the largest standard error of the worst row as a multiple of the tolerance."""
        return float(self._excess(solution).max())

    def _excess(self, solution: Solution) -> Any:
        """Return the largest standard error of each row as a multiple of the tolerance, (R,)."""
        allowed: Any = self.amount
        if self.is_relative:
            allowed = allowed * np.ptp(solution.values, axis=1)  # (R, K)
        errors = np.where(np.isnan(solution.standard_errors), np.inf, solution.standard_errors)
        largest = errors.max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = largest / allowed
        return np.where(largest == 0, 0.0, excess).max(axis=1)


def checked_tolerance(tolerance: Any) -> Tolerance | None:
    """Read a user's `tolerance`: a number in units of the output, or a percentage as in "1%"."""
    if tolerance is None:
        return None
    requirement = (
        "tolerance must be a positive number, in units of the output, or a percentage of the "
        "distance between a row's largest and smallest attribution, such as '1%'"
    )
    is_relative = isinstance(tolerance, str)
    number = tolerance
    if is_relative:
        try:
            number = float(tolerance.strip().removesuffix("%")) / 100
        except ValueError:
            raise InvalidArgumentError(f"{requirement}; got {tolerance!r}.") from None
        if not tolerance.strip().endswith("%"):
            raise InvalidArgumentError(f"{requirement}; got {tolerance!r}.")
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise InvalidArgumentTypeError(f"{requirement}; got {type(tolerance).__name__}.")
    if not 0 < float(number) < np.inf:
        raise InvalidArgumentError(f"{requirement}; got {tolerance!r}.")
    return Tolerance(float(number), is_relative)
