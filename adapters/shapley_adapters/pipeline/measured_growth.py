"""Seconds as a function of the budget, from measurements with small budgets."""

from __future__ import annotations

from dataclasses import dataclass, field

_LEAST_EXPONENT = 1.25
"""Even work in proportion to the budget slows down where arrays outgrow the caches."""


@dataclass
class MeasuredGrowth:
    """The seconds of some work, extrapolated to larger budgets.

    All growth between the last two measurements is attributed to the highest power of the budget,
    so that the extrapolation is rather too high than too low.

    Attributes
    ----------
    exponent : float
        With this power of the budget, the seconds grow at most.
    """

    exponent: float
    _budgets: list[int] = field(default_factory=list, init=False)
    _seconds: list[float] = field(default_factory=list, init=False)

    def add(self, budget: int, seconds: float) -> None:
        """Add a measurement with a larger budget than those before, or replace the last one."""
        if self._budgets and self._budgets[-1] == budget:
            self._seconds[-1] = seconds
            return
        self._budgets.append(budget)
        self._seconds.append(seconds)

    def at(self, budget: int) -> float:
        """Return the seconds with a budget; 0 without a measurement."""
        if not self._budgets:
            return 0.0
        last_budget, last_seconds = self._budgets[-1], self._seconds[-1]
        if budget <= last_budget:
            return last_seconds
        growth = budget / last_budget
        if len(self._budgets) == 1:
            return float(last_seconds * growth**self.exponent)
        increase = max(0.0, last_seconds - self._seconds[-2])
        shrinkage = self._budgets[-2] / last_budget
        steepness = increase / (1 - shrinkage**self.exponent)
        steep = last_seconds + steepness * (growth**self.exponent - 1)
        return float(max(steep, last_seconds * growth**_LEAST_EXPONENT))
