"""The seconds that the phases of a run take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

Phase = Literal["scores", "designs", "evaluations", "solutions"]


@dataclass
class PhaseSeconds:
    """The seconds of each phase so far.

    Attributes
    ----------
    scores : float
        To compute the scores of players.
    designs : float
        To choose coalitions.
    evaluations : float
        To evaluate them.
    solutions : float
        To compute attributions from the values.
    """

    scores: float = 0.0
    designs: float = 0.0
    evaluations: float = 0.0
    solutions: float = 0.0

    @contextmanager
    def timed(self, phase: Phase) -> Iterator[None]:
        """Add the time of the block to a phase."""
        started = perf_counter()
        yield
        setattr(self, phase, getattr(self, phase) + perf_counter() - started)


@dataclass
class Stopwatch:
    """The seconds since it was made."""

    def __post_init__(self) -> None:
        self._started = perf_counter()

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return perf_counter() - self._started
