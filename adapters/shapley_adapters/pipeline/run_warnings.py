"""What a run warns of when it is done: missed tolerances, and neighbours that do not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..array_types import BoolArray
from ..cooperators.scores import Scores, warn_of_scores
from ..errors import warn_user
from ..estimators.protocol import Solution
from .designs import GroupDesign
from .row_groups import RowGroup
from .settings import Settings
from .tolerance import Tolerance


@dataclass
class RunWarnings:
    """Counts rows with a shortcoming, for one warning about all of them.

    Attributes
    ----------
    n_missed : int
        Rows that spent their budget before they reached the tolerance.
    worst_excess : float
        The largest standard error of these, as a multiple of the tolerance.
    n_isolated : int
        Rows whose graph has no edge between two active players.
    n_shortfalls : int
        Rows whose design leaves out all neighbours.
    shortfall : str
        The reason for the first of these.
    score_source : str
        The source of the scores, if the user chose one by name.
    n_scored, n_partial, n_empty : int
        Rows with scores; of these, rows whose derivatives do not explain the output or are zero.
    n_rows : int
        The rows of all runs of a stream that were added.
    """

    n_missed: int = 0
    worst_excess: float = 0.0
    n_isolated: int = 0
    n_shortfalls: int = 0
    shortfall: str = ""
    score_source: str = ""
    n_scored: int = 0
    n_partial: int = 0
    n_empty: int = 0
    n_rows: int = 0
    _settings: Settings | None = field(default=None, repr=False)

    def add(self, others: RunWarnings) -> None:
        """Add the counts of other rows."""
        self.n_missed += others.n_missed
        self.worst_excess = max(self.worst_excess, others.worst_excess)
        self.n_isolated += others.n_isolated
        self.n_shortfalls += others.n_shortfalls
        self.shortfall = self.shortfall or others.shortfall
        self.score_source = others.score_source or self.score_source
        self.n_scored += others.n_scored
        self.n_partial += others.n_partial
        self.n_empty += others.n_empty

    def count_scores(self, scores: Scores) -> None:
        """Count the rows with unreliable scores."""
        self.n_scored += len(scores.sources)
        self.n_partial += scores.n_partial
        self.n_empty += scores.n_empty

    def count_missed(self, is_met: BoolArray, tolerance: Tolerance, solution: Solution) -> None:
        """Count the rows that missed the tolerance."""
        self.n_missed += int(np.count_nonzero(~is_met))
        self.worst_excess = max(self.worst_excess, tolerance.largest_excess(solution))

    def count_isolated(self, group: RowGroup, group_design: GroupDesign) -> None:
        """Count the rows whose players have no neighbours, or lose them for want of budget."""
        n_rows = len(group.rows)
        if group.graph is None or group.n_players < 2:
            return
        if not group.graph.degrees[group.players[0]].any():
            self.n_isolated += n_rows
        elif group_design.shortfall is not None:
            self.shortfall = self.shortfall or group_design.shortfall
            self.n_shortfalls += n_rows

    def warn(self, n_rows: int, settings: Settings) -> None:
        """Warn of all that was counted in a run over `n_rows` rows; in a stream, at its end."""
        of_stream = _of_stream.get()
        if of_stream is None:
            self._warn(n_rows, settings)
        else:
            of_stream.add(self)
            of_stream.n_rows += n_rows
            of_stream._settings = settings

    def warn_of_all(self) -> None:
        """Warn of all that was counted in the runs of a stream."""
        if self._settings is not None:
            self._warn(self.n_rows, self._settings)

    def as_record(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {name: getattr(self, name) for name in _COUNTS}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Set the counts to those of a record."""
        for name in _COUNTS:
            setattr(self, name, type(getattr(self, name))(record[name]))

    def _warn(self, n_rows: int, settings: Settings) -> None:
        warn_of_scores(self.score_source, self.n_partial, self.n_empty, self.n_scored)
        name, budget = settings.name, f"{settings.budget_name}={settings.budget or 'auto'}"
        if self.n_missed:
            warn_user(
                f"{self.n_missed} of {n_rows} rows did not reach the tolerance within {budget}: "
                f"standard errors are up to {self.worst_excess:.3g} times as large. Raise "
                f"{settings.budget_name} or the tolerance."
            )
        if self.n_isolated:
            warn_user(
                f"graph joins no two players in {self.n_isolated} of {n_rows} rows: {name} takes "
                "each player by itself, as if none of them interacted. Check graph=."
            )
        if self.n_shortfalls:
            warn_user(
                f"{name} takes each player by itself in {self.n_shortfalls} of {n_rows} rows, "
                f"and leaves out what players do together: {self.shortfall}. Raise {budget}."
            )


_COUNTS = (
    "n_missed",
    "worst_excess",
    "n_isolated",
    "n_shortfalls",
    "shortfall",
    "n_rows",
    "score_source",
    "n_scored",
    "n_partial",
    "n_empty",
)

_of_stream: ContextVar[RunWarnings | None] = ContextVar("of_stream", default=None)


@contextmanager
def collected_run_warnings(of_stream: RunWarnings) -> Iterator[None]:
    """Add what the runs in this block count to `of_stream`, and do not warn of it yet."""
    token = _of_stream.set(of_stream)
    try:
        yield
    finally:
        _of_stream.reset(token)
