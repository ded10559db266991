"""What a run warns of when it is done: missed tolerances, and neighbours that do not count."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    shortfalls : list of str
        For each row whose design leaves out all neighbours, the reason.
    score_source : str
        The source of the scores, if the user chose one by name.
    n_scored, n_partial, n_empty : int
        Rows with scores; of these, rows whose derivatives do not explain the output or are zero.
    """

    n_missed: int = 0
    worst_excess: float = 0.0
    n_isolated: int = 0
    shortfalls: list[str] = field(default_factory=list)
    score_source: str = ""
    n_scored: int = 0
    n_partial: int = 0
    n_empty: int = 0

    def add(self, counts: RunWarnings) -> None:
        """Add the counts of other rows of the same run."""
        self.n_missed += counts.n_missed
        self.worst_excess = max(self.worst_excess, counts.worst_excess)
        self.n_isolated += counts.n_isolated
        self.shortfalls += counts.shortfalls
        self.score_source = counts.score_source
        self.n_scored += counts.n_scored
        self.n_partial += counts.n_partial
        self.n_empty += counts.n_empty

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
            self.shortfalls += [group_design.shortfall] * n_rows

    def warn(self, n_rows: int, settings: Settings) -> None:
        """Warn of all that was counted in a run over `n_rows` rows."""
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
        if self.shortfalls:
            warn_user(
                f"{name} takes each player by itself in {len(self.shortfalls)} of {n_rows} rows, "
                f"and leaves out what players do together: {self.shortfalls[0]}. Raise {budget}."
            )
