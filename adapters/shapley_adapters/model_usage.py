"""What a remote model was used for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """What a remote model was used for.

    Attributes
    ----------
    calls : int
        Calls that were started, repetitions included.
    retries : int
        Calls that were repetitions.
    rows : int
        Rows that were answered.
    remembered_rows : int
        Rows whose answer was known from `memory`, or equals that of another row of the batch.
    seconds : float
        Seconds of all calls in sum; of calls at the same time, each counts.
    money : float
        What the answered calls cost.
    """

    calls: int = 0
    retries: int = 0
    rows: int = 0
    remembered_rows: int = 0
    seconds: float = 0.0
    money: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        """Return what two models were used for."""
        counts = {name: getattr(self, name) + value for name, value in vars(other).items()}
        return Usage(**counts)

    def __sub__(self, other: Usage) -> Usage:
        """Return what was used after another time."""
        counts = {name: getattr(self, name) - value for name, value in vars(other).items()}
        return Usage(**counts)

    def __str__(self) -> str:
        """State the counts that are not 0."""
        parts = [f"{self.calls} calls"]
        if self.retries:
            parts.append(f"{self.retries} repeated")
        if self.remembered_rows:
            parts.append(f"{self.remembered_rows} rows remembered")
        if self.money:
            parts.append(f"cost {self.money:.4g}")
        return ", ".join(parts)
