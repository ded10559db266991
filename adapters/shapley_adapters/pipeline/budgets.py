"""How many evaluations a row may have, needs, and spends before it may stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import BudgetError, warn_user
from ..estimators.exact import MAX_PLAYERS
from ..estimators.protocol import Estimator, OnGraph
from ..memory_bounds import memory_limit
from .settings import Settings

_LOOKS_FROM = 4
"""How many times the evaluations that standard errors need at least are made before a row may stop:
errors told from fewer are often too small, and stopping picks the moments when they are."""


_FEWER_PLAYERS = "Group features (groups= or a coarser masker in shap, feature_mask in captum)"


def default_budget(n_players: int, with_tolerance: bool = False) -> int:
    """Return the evaluations for each row when the user names none: 16 a player, at least 500.

    Twenty times as many where a tolerance ends most rows earlier.
    """
    return max(500, 16 * n_players) * (20 if with_tolerance else 1)


@dataclass(frozen=True)
class RowBudgets:
    """The evaluations of rows, by how many active players they have.

    A row's own players decide, so that other rows do not matter.

    Attributes
    ----------
    estimator : Estimator
        What has least budgets of its own.
    settings : Settings
        What the user gave.
    """

    estimator: Estimator[Any]
    settings: Settings

    @property
    def are_on_graph(self) -> bool:
        """Whether the estimator looks at a graph, and so never gives way to enumeration."""
        return isinstance(self.estimator, OnGraph)

    def of(self, n_players: int) -> int:
        """Return the evaluations that a row may have."""
        if self.settings.budget is not None:
            return self.settings.budget
        budget = default_budget(n_players, self.settings.tolerance is not None)
        return budget if 2**n_players <= budget else max(budget, self.least(n_players))

    def least(self, n_players: int) -> int:
        """Return the evaluations without which a row cannot be estimated."""
        least = self.estimator.minimum_budget(n_players, self.settings.needs_errors)
        source = self.estimator.score_source
        if isinstance(source, str) and source == "difference":
            least += n_players * (n_players + 1) // 2
        return int(min(least, 2**n_players))

    def planned(self, n_players: int) -> int:
        """Return up to how many evaluations a row goes before it may stop."""
        budget = self.of(n_players)
        if self.settings.tolerance is None:
            return budget
        return min(budget, max(_LOOKS_FROM * self.least(n_players), 4 * n_players))

    def pay_for_all_at_once(self, n_players: int) -> bool:
        """Tell whether a row is enumerated from the start."""
        return not self.are_on_graph and bool(2**n_players <= self.planned(n_players))

    def pay_for_all(self, n_players: int) -> bool:
        """Tell whether a row may be enumerated in the end."""
        return not self.are_on_graph and bool(2**n_players <= self.of(n_players))

    def check(self, n_players: int) -> None:
        """Refuse a budget that is too small for a row, or too large for any machine.

        Raises
        ------
        BudgetError
            If it is.
        """
        self._check_enumeration(n_players)
        if self.pay_for_all_at_once(n_players):
            return
        needed = self.least(n_players)
        if self.of(n_players) < needed:
            exact = f"; {2**n_players} make it exact" if n_players <= 20 else ""
            name, budget = self.settings.budget_name, self.settings.budget
            raise BudgetError(
                f"{name}={budget} is too small: {self.settings.name} needs at least {needed} "
                f"evaluations for a row of {n_players} players"
                f"{' to tell standard errors' if self.settings.with_errors else ''}{exact}.",
                needed,
            )
        self.check_memory(n_players)

    def check_memory(self, n_players: int) -> None:
        """Refuse so many players, or so large a budget, that memory does not suffice.

        Raises
        ------
        BudgetError
            If the design of a row needs more than `memory_limit`.
        """
        budget = min(self.of(n_players), 2**n_players)  # no coalition is evaluated twice
        if self.are_on_graph:  # a small graph may need less than a large budget pays for
            budget = min(budget, default_budget(n_players))
        needed, limit = self.estimator.memory(n_players, budget), memory_limit()
        if needed > limit:
            name = self.settings.name
            raise BudgetError(
                f"{name} needs about {needed / 2**30:.3g} GiB of memory for {n_players} players "
                f"and {budget} evaluations a row; {limit / 2**30:.3g} GiB, half of what there is, "
                f"may be used. {_FEWER_PLAYERS}, or lower {self.settings.budget_name}."
            )

    def memory_error(self, n_players: int) -> BudgetError:
        """Return the error for coalitions of a graph that do not fit into memory."""
        name, budget, limit = self.settings.budget_name, self.settings.budget, memory_limit()
        given = f"{name}={budget} is too large: " if budget else ""
        return BudgetError(
            f"{given}{self.settings.name} needs more than {limit / 2**30:.3g} GiB of memory, half "
            f"of what there is, for the coalitions of {n_players} players on their graph. Lower "
            f"{name} or the order, if there is one. {_FEWER_PLAYERS}."
        )

    def warn_of_small(self, n_players: int) -> bool:
        """Warn of a budget with which the estimator says little; tell whether it is one."""
        if self.settings.is_for_training:
            return False
        useful = self.estimator.useful_budget(n_players)
        if self.pay_for_all_at_once(n_players) or self.of(n_players) >= useful:
            return False
        name, budget = self.settings.budget_name, self.of(n_players)
        warn_user(
            f"{name}={budget} is little for {n_players} players: below {useful} evaluations, "
            f"{self.settings.name} gives attributions that are far off, most of them close to each "
            f"other. Raise {name} to {useful} at least. {_FEWER_PLAYERS} if that is too expensive."
        )
        return True

    def _check_enumeration(self, n_players: int) -> None:
        if not self.pay_for_all(n_players) or n_players <= MAX_PLAYERS:
            return
        name, budget = self.settings.budget_name, self.settings.budget
        raise BudgetError(
            f"{name}={budget} pays for all 2^{n_players} = {2**n_players} coalitions of a row of "
            f"{n_players} players, but enumeration is limited to {MAX_PLAYERS} players. Lower "
            f"{name}, and coalitions are drawn; the default is {default_budget(n_players)}. "
            f"{_FEWER_PLAYERS} for exact values."
        )
