"""The warnings at the end of a run, such as missed tolerances and neighbours without effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..array_types import BoolArray, IntArray
from ..cooperators.scores import Scores, warn_of_scores
from ..errors import warn_user
from ..estimators.protocol import Design, Estimator, Solution
from ..graphs.player_graph import PlayerGraph
from .designs import RowGroup
from .result import Estimate
from .settings import RowBudget, Settings, Tolerance


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
                "is not determined by the model, but is the prior, which expects all to be equal."
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
    small_budget : SmallBudget, optional
        The rows with most players, where the budget leaves the attributions far off.
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
    small_budget: SmallBudget | None = None
    n_rows: int = 0
    _settings: Settings | None = field(default=None, repr=False)

    def add(self, addition: RunWarnings) -> None:
        """Add the counts of other rows."""
        self.n_missed += addition.n_missed
        self.worst_excess = max(self.worst_excess, addition.worst_excess)
        self.n_isolated += addition.n_isolated
        self.n_shortfalls += addition.n_shortfalls
        self.shortfall = self.shortfall or addition.shortfall
        self.score_source = addition.score_source or self.score_source
        self.n_scored += addition.n_scored
        self.n_partial += addition.n_partial
        self.n_empty += addition.n_empty
        if addition.small_budget is not None:
            self.small_budget = addition.small_budget.joined(self.small_budget)

    def count_scores(self, scores: Scores) -> None:
        """Count the rows with unreliable scores."""
        self.n_scored += len(scores.sources)
        self.n_partial += scores.n_partial
        self.n_empty += scores.n_empty

    def count_missed(self, is_met: BoolArray, tolerance: Tolerance, solution: Solution) -> None:
        """Count the rows that missed the tolerance."""
        self.n_missed += int(np.count_nonzero(~is_met))
        self.worst_excess = max(self.worst_excess, tolerance.largest_excess(solution))

    def count_isolated(self, group: RowGroup, design: Design) -> None:
        """Count the rows whose players have no neighbours, or lose them for want of budget."""
        n_rows = len(group.rows)
        if not isinstance(group.graph, PlayerGraph) or group.n_players < 2:
            return
        if not group.graph.degrees[group.players[0]].any():
            self.n_isolated += n_rows
        elif design.shortfall is not None:
            self.shortfall = self.shortfall or design.shortfall
            self.n_shortfalls += n_rows

    def count_small_budgets(
        self,
        budgets: Mapping[int, RowBudget],
        n_active: IntArray,
        result: Estimate,
        estimator: Estimator[Any],
    ) -> None:
        """Count the rows with most players for which the attributions are far off.

        Parameters
        ----------
        budgets : dict of int to RowBudget
            The budget for each number of active players.
        n_active : array, (R,)
            The number of active players of each row.
        result : Estimate
            With the shares of the prior.
        estimator : Estimator
            The estimator.
        """
        for n_players, budget in sorted(budgets.items(), reverse=True):
            useful = estimator.useful_budget(n_players)
            if not budget.enumerates_now and budget.limit < useful:
                shares = result.prior_shares[n_active == n_players]
                self.small_budget = SmallBudget(
                    n_players, budget.limit, useful, len(shares), float(shares.sum())
                )
                return

    def warn(self, n_rows: int, settings: Settings) -> None:
        """Warn of all that was counted in a run over `n_rows` rows; in a stream, at its end."""
        of_stream = _of_stream.get()
        if of_stream is not None:
            of_stream.add(self)
            of_stream.n_rows += n_rows
            of_stream._settings = settings
            return
        if self.n_scored:
            warn_of_scores(self.score_source, self.n_partial, self.n_empty, self.n_scored)
        if self.small_budget is not None:
            self.small_budget.warn(settings)
        if self.n_missed or self.n_isolated or self.n_shortfalls:
            self._warn_of_rows(n_rows, settings)

    def warn_of_all(self) -> None:
        """Warn of all that was counted in the runs of a stream, when it has ended."""
        if self._settings is not None:
            self.warn(self.n_rows, self._settings)

    def _warn_of_rows(self, n_rows: int, settings: Settings) -> None:
        name, limit = settings.name, settings.limit_name
        if self.n_missed:
            warn_user(
                f"{self.n_missed} of {n_rows} rows did not reach the tolerance within "
                f"{settings.limit_text}: standard errors are up to {self.worst_excess:.3g} times "
                f"as large. Raise {limit} or the tolerance."
            )
        if self.n_isolated:
            warn_user(
                f"graph joins no two players in {self.n_isolated} of {n_rows} rows: {name} takes "
                "each player by itself, as if none of them interacted. Check graph=."
            )
        if self.n_shortfalls:
            warn_user(
                f"{name} takes each player by itself in {self.n_shortfalls} of {n_rows} rows, "
                f"and leaves out all interactions: {self.shortfall}. Raise {limit}."
            )


_of_stream: ContextVar[RunWarnings | None] = ContextVar("of_stream", default=None)


@contextmanager
def collected_run_warnings(of_stream: RunWarnings) -> Iterator[None]:
    """Add the counts of the runs in this block to `of_stream`, and do not warn yet."""
    token = _of_stream.set(of_stream)
    try:
        yield
    finally:
        _of_stream.reset(token)
