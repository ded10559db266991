"""Progress bars of a training."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

from tqdm.auto import tqdm

from ..pipeline.one_round import BY_MEAN_SPEED


@dataclass(frozen=True)
class Progress:
    """A progress bar for each part of a training.

    Attributes
    ----------
    name : str
        Name of the training, shown at the start of each bar.
    delay : float, optional
        Seconds from now until bars appear; None for no bars.
    """

    name: str = "training"
    delay: float | None = None
    _start: float = field(default_factory=time.monotonic)

    def description(self, part: str) -> str:
        """Return the text at the start of the bar of a part."""
        return f"{self.name}: {part}"

    @property
    def remaining_delay(self) -> float | None:
        """Remaining seconds until bars appear; None for no bars."""
        return None if self.delay is None else max(0.0, self.delay - self.seconds)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def write(self, line: str) -> None:
        """Write a line to stderr, if bars have appeared."""
        if self.remaining_delay == 0:
            tqdm.write(self.description(line), file=sys.stderr)

    def bar(self, part: str, total: int, unit: str, initial: int = 0) -> tqdm[Any]:
        """Return the bar of a part, to be used in a `with` statement."""
        delay, text = self.remaining_delay, self.description(part)
        shown: dict[str, Any] = {"disable": delay is None, "delay": delay or 0.0, **BY_MEAN_SPEED}
        return tqdm(total=total, initial=initial, desc=text, unit=f" {unit}", **shown)
