"""The warnings at the end of a run, such as missed tolerances and neighbours without effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import numpy as np

from ..array_types import FloatArray
from ..cooperators.scores import Scores, warn_of_scores
from ..errors import warn_user
from ..estimators.protocol import Design
from ..graphs.player_graph import PlayerGraph
from .designs import RowGroup
from .settings import Settings


@dataclass(frozen=True)
class SmallBudget:
    """Rows whose budget leaves the attributions far off.

    Attributes
    ----------
    n_players : int
        The active players of these rows.
    limit, useful : int
        The evaluations that a row could have, and those from which on attributions are useful.
    n_rows : int
        The number of rows.
    sum_of_prior_shares : float
        The sum of their prior shares.
    """

    n_players: int
    limit: int
    useful: int
    n_rows: int
    sum_of_prior_shares: float

    def joined(self, other: SmallBudget | None) -> SmallBudget:
        """Return the rows of both, or those with more players."""
        if other is None or other.n_players < self.n_players:
            return self
        if other.n_players > self.n_players:
            return other
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            sum_of_prior_shares=self.sum_of_prior_shares + other.sum_of_prior_shares,
        )

    def warn(self, settings: Settings) -> None:
        """Warn of these rows, and say how much of their attributions is the prior."""
        of_prior = ""
        if self.sum_of_prior_shares > 0:
            of_prior = (
                f" {self.sum_of_prior_shares / self.n_rows:.0%} of their variance over the players "
                "is still unknown; there, the method assumes that all are equal."
            )
        limit, budget = settings.limit_name, settings.budget_name
        remedy = f"Raise {budget} to {self.useful} at least."
        if limit != budget:
            remedy = f"Raise {limit} until {budget}={self.useful} fits into it."
        warn_user(
            f"{settings.budget_text(self.limit)} is little for {self.n_players} players: below "
            f"{self.useful} evaluations, {settings.name} gives attributions that are far off."
            f"{of_prior} {remedy} {settings.fewer_players} if that is too expensive."
        )


@dataclass
class RunWarnings:
    """Counts rows with a shortcoming, for one warning about all of them.

    Attributes
    ----------
    counts : Counter
        Rows, `"missed"`: that spent their budget before they reached the tolerance; `"isolated"`:
        whose graph has no edge between two active players; `"alone"`: whose design leaves out all
        neighbours; `"scored"`: with scores, and of these `"partial"` and `"empty"`: whose
        derivatives do not explain the output, or are zero; `"all"`: of the runs of a stream.
    worst_excess : float
        The largest standard error of missed rows, as a multiple of the tolerance.
    shortfall : str
        Why the first row leaves out all neighbours.
    score_source : str
        The source of the scores, if the user chose one by name.
    small_budget : SmallBudget, optional
        The rows with most players, where the budget leaves the attributions far off.
    """

    counts: Counter[str] = field(default_factory=Counter)
    worst_excess: float = 0.0
    shortfall: str = ""
    score_source: str = ""
    small_budget: SmallBudget | None = None
    _settings: Settings | None = field(default=None, repr=False)

    def add(self, addition: RunWarnings) -> None:
        """Add the counts of other rows."""
        self.counts += addition.counts
        self.worst_excess = max(self.worst_excess, addition.worst_excess)
        self.shortfall = self.shortfall or addition.shortfall
        self.score_source = addition.score_source or self.score_source
        if addition.small_budget is not None:
            self.small_budget = addition.small_budget.joined(self.small_budget)

    def count_scores(self, scores: Scores) -> None:
        """Count the rows with unreliable scores."""
        n_rows, partial, empty = len(scores.sources), scores.n_partial, scores.n_empty
        self.counts.update(scored=n_rows, partial=partial, empty=empty)

    def count_missed(self, excess: FloatArray) -> None:
        """Count the rows that missed the tolerance, given errors as multiples of it, (R,)."""
        self.counts["missed"] += int(np.count_nonzero(excess > 1))
        self.worst_excess = max(self.worst_excess, float(excess.max()))

    def count_isolated(self, group: RowGroup, design: Design) -> None:
        """Count the rows whose players have no neighbours, or lose them for want of budget."""
        if not isinstance(group.graph, PlayerGraph) or group.n_players < 2:
            return
        if not group.graph.degrees[group.players[0]].any():
            self.counts["isolated"] += len(group.rows)
        elif design.shortfall is not None:
            self.shortfall = self.shortfall or design.shortfall
            self.counts["alone"] += len(group.rows)

    def warn(self, n_rows: int, settings: Settings) -> None:
        """Warn of all that was counted in a run over `n_rows` rows; in a stream, at its end."""
        of_stream = _of_stream.get()
        if of_stream is not None:
            of_stream.add(self)
            of_stream.counts["all"] += n_rows
            of_stream._settings = settings
            return
        counts, name = self.counts, settings.name
        if counts["scored"]:
            source, n_scored = self.score_source, counts["scored"]
            warn_of_scores(source, counts["partial"], counts["empty"], n_scored)
        if self.small_budget is not None:
            self.small_budget.warn(settings)
        if counts["missed"]:
            warn_user(
                f"{counts['missed']} of {n_rows} rows did not reach the tolerance within "
                f"{settings.limit_text}: standard errors are up to {self.worst_excess:.3g} times "
                f"as large. Raise {settings.limit_name} or the tolerance."
            )
        if counts["isolated"]:
            warn_user(
                f"graph joins no two players in {counts['isolated']} of {n_rows} rows: {name} "
                "takes each player by itself, as if none of them interacted. Check graph=."
            )
        if counts["alone"]:
            warn_user(
                f"{name} takes each player by itself in {counts['alone']} of {n_rows} rows, "
                f"and leaves out all interactions: {self.shortfall}. Raise {settings.limit_name}."
            )

    def warn_of_all(self) -> None:
        """Warn of all that was counted in the runs of a stream, when it has ended."""
        if self._settings is not None:
            self.warn(self.counts["all"], self._settings)


_of_stream: ContextVar[RunWarnings | None] = ContextVar("of_stream", default=None)


@contextmanager
def collected_run_warnings(of_stream: RunWarnings) -> Iterator[None]:
    """Add the counts of the runs in this block to `of_stream`, and do not warn yet."""
    token = _of_stream.set(of_stream)
    try:
        yield
    finally:
        _of_stream.reset(token)
