"""How to run an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..graphs.player_graph import PlayerGraph
from .tolerance import Tolerance


@dataclass(frozen=True)
class Settings:
    """How to run an estimate.

    Attributes
    ----------
    seed : int
        Seed of all random choices.
    budget : int, optional
        Evaluations for each row; `default_budget` where None.
    batch_size : int, optional
        Evaluations in one call of the game; the size that the game prefers where None.
    graph : PlayerGraph or sequence of them, optional
        The graph of the game's players, or the graph of each row, for estimators that need one.
        Their estimates depend on it, so that enumeration of all coalitions never replaces them.
    with_errors : bool
        Whether standard errors are needed, so that a budget too small for them is refused.
    tolerance : Tolerance, optional
        The standard error at which a row stops before its budget is spent.
    max_seconds : float, optional
        The time for the call, for all rows together. The budget is then the largest that fits, by
        measured costs, and `budget` is a further limit.
    independent_rows : bool
        Whether each row has random draws of its own, from the seed and the content of the row.
    is_for_training : bool
        Whether a network learns from the values, and no user reads them. There is then no warning
        of small budgets, because errors average out over rows, and no check that the model is
        deterministic.
    interactions : str, optional
        The index of the interactions of pairs to compute from the same evaluations.
    trace : bool
        Whether to estimate from the first evaluations, too, for a plot of convergence.
    n_jobs : int, optional
        The number of workers of joblib that share the rows; None for joblib's configuration.
    progress_delay : float, optional
        Seconds after which a progress bar appears; no bar where None.
    name : str
        Name of the estimator for the bar and for errors.
    budget_name : str
        Name of the budget in the host, for errors.
    """

    seed: int
    budget: int | None = None
    batch_size: int | None = None
    graph: PlayerGraph | Sequence[PlayerGraph] | None = None
    with_errors: bool = False
    tolerance: Tolerance | None = None
    max_seconds: float | None = None
    independent_rows: bool = False
    is_for_training: bool = False
    interactions: str | None = None
    trace: bool = False
    n_jobs: int | None = 1
    progress_delay: float | None = None
    name: str = "the estimator"
    budget_name: str = "budget"

    @property
    def limit_name(self) -> str:
        """The argument that limits the evaluations, for messages."""
        return self.budget_name if self.max_seconds is None else "max_seconds"

    @property
    def limit_text(self) -> str:
        """The argument that limits the evaluations and its value, for messages."""
        budget = f"{self.budget_name}={self.budget or 'auto'}"
        if self.max_seconds is None:
            return budget
        return f"max_seconds={self.max_seconds:g}, which pays for {budget}"

    @property
    def needs_errors(self) -> bool:
        """Whether the estimate needs standard errors."""
        return self.with_errors or self.trace or self.tolerance is not None
