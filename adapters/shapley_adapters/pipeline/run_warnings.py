"""What a run warns of when it is done: missed tolerances, and neighbours that do not count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..array_types import BoolArray, IntArray
from ..errors import warn_user
from ..estimators.protocol import Estimator, Solution
from .budgets import FEWER_PLAYERS, RowBudget
from .designs import GroupDesign
from .result import Estimate
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
    """

    n_missed: int = 0
    worst_excess: float = 0.0
    n_isolated: int = 0
    shortfalls: list[str] = field(default_factory=list)

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
        name, budget = settings.name, settings.limit_text
        if self.n_missed:
            warn_user(
                f"{self.n_missed} of {n_rows} rows did not reach the tolerance within {budget}: "
                f"standard errors are up to {self.worst_excess:.3g} times as large. Raise "
                f"{settings.limit_name} or the tolerance."
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


def warn_of_small_budgets(
    budgets: Mapping[int, RowBudget],
    n_active: IntArray,
    result: Estimate,
    estimator: Estimator[Any],
    settings: Settings,
) -> None:
    """Warn of the most players for which the attributions are far off, and how much is the prior.

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
    settings : Settings
        The settings of the run.
    """
    for n_players, budget in sorted(budgets.items(), reverse=True):
        useful = estimator.useful_budget(n_players)
        if budget.enumerates_now or budget.limit >= useful:
            continue
        share = float(result.prior_shares[n_active == n_players].mean())
        of_prior = ""
        if share > 0:
            of_prior = (
                f" {share:.0%} of their variance over the players is not determined by the model, "
                "but is the prior, which expects all to be equal."
            )
        remedy = f"Raise {settings.budget_name} to {useful} at least."
        if settings.max_seconds is not None:
            remedy = f"Raise max_seconds until {settings.budget_name}={useful} fits into it."
        warn_user(
            f"{settings.budget_name}={budget.limit} is little for {n_players} players: below "
            f"{useful} evaluations, {settings.name} gives attributions that are far off.{of_prior} "
            f"{remedy} {FEWER_PLAYERS} if that is too expensive."
        )
        return
