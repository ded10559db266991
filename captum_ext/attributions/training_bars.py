"""When the progress bars of a training appear."""

from __future__ import annotations

from shapley_adapters.arguments import checked_flag

_DELAY = 10.0
"""Seconds until bars appear by default, so that short trainings show none."""


def bar_delay(show_progress: bool | None) -> float | None:
    """Return the seconds until bars appear; None for no bars."""
    if show_progress is None:
        return _DELAY
    return 0.0 if checked_flag("show_progress", show_progress) else None
