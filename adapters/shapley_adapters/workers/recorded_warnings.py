"""Warnings of workers, which the parent process shows once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import ShapleyExtWarning, warn_user

_shown: dict[str | tuple[str, type[Warning], int], int] = {}
"""The warnings of this process that Python's filters show only once."""


@dataclass(frozen=True)
class RecordedWarning:
    """A warning: its class, its text, and the line that it is about."""

    category: type[Warning]
    text: str
    filename: str
    line: int

    def show(self) -> None:
        """Warn in this process."""
        if issubclass(self.category, ShapleyExtWarning):
            warn_user(self.text)
        else:
            warnings.warn_explicit(
                self.text, self.category, self.filename, self.line, registry=_shown
            )


class _Recorder:
    """Records the warnings of each thread that is inside; those of other threads are shown."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_thread = threading.local()
        self._n_inside = 0
        self._filters: Any = None
        self._show_elsewhere: Any = None

    @contextmanager
    def recorded(self) -> Iterator[dict[RecordedWarning, None]]:
        """Yield the warnings of this thread, each once, in their order."""
        records: dict[RecordedWarning, None] = {}
        self._enter()
        self._of_thread.records = records
        try:
            yield records
        finally:
            self._of_thread.records = None
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            self._n_inside += 1
            if self._n_inside == 1:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("always")  # the parent's filters decide
                self._show_elsewhere = warnings.showwarning
                warnings.showwarning = self._show

    def _leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._filters.__exit__(None, None, None)

    def _show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        records = getattr(self._of_thread, "records", None)
        if records is None:
            self._show_elsewhere(message, category, filename, lineno, file, line)
        else:
            records[RecordedWarning(category, str(message), filename, lineno)] = None


recorded_warnings = _Recorder().recorded
"""Context that records the warnings of its thread."""
