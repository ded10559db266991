"""Progress bars of a training."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from tqdm.auto import tqdm


@dataclass(frozen=True)
class Progress:
    """A progress bar for each part of a training.

    Attributes
    ----------
    name : str
        What is trained; each bar begins with it.
    delay : float, optional
        Seconds from now until bars appear; there are none where None.
    """

    name: str = "training"
    delay: float | None = None
    _start: float = field(default_factory=time.monotonic)

    def description(self, part: str) -> str:
        """Return what the bar of a part begins with."""
        return f"{self.name}: {part}"

    @property
    def remaining_delay(self) -> float | None:
        """Seconds that are left until bars appear; None where there are none."""
        if self.delay is None:
            return None
        return max(0.0, self.delay - (time.monotonic() - self._start))

    def bar(self, part: str, total: int, unit: str, initial: int = 0) -> tqdm[Any]:
        """Return the bar of a part, to be used in a `with` statement."""
        delay = self.remaining_delay
        return tqdm(
            total=total,
            initial=initial,
            desc=self.description(part),
            unit=f" {unit}",
            disable=delay is None,
            delay=delay or 0.0,
        )
