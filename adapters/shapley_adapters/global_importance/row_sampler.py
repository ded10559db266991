"""A growing random sample of rows, and their estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array_types import AttributionArray, BoolArray, CoalitionArray, IntArray, ValueArray
from ..errors import InvalidArgumentError
from ..estimators.protocol import Estimator
from ..games.fingerprints import fingerprint
from ..games.game import DifferentiableGame, FingerprintedGame, WrappedGame
from ..graphs.reading import Structure
from ..pipeline.estimate import estimate
from ..pipeline.settings import Settings
from .error_parts import ErrorParts, error_parts

if TYPE_CHECKING:
    import torch


def distinct_digests(digests: list[bytes]) -> list[bytes]:
    """Return digests of rows in which equal rows differ by how often they came before.

    Random draws depend on the digest of a row. Equal rows of a sample need draws of their own, or
    their errors would be equal, too.
    """
    counts: Counter[bytes] = Counter()
    distinct = []
    for digest in digests:
        distinct.append(fingerprint(digest, counts[digest]) if counts[digest] else digest)
        counts[digest] += 1
    return distinct


def random_order(digests: list[bytes], seed: int) -> IntArray:
    """Return the rows in a random order, which does not depend on their order in the table."""
    of_seed = fingerprint(seed)
    keys = [blake2b(digest, key=of_seed).digest() for digest in digests]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


@dataclass
class SampledRows(WrappedGame):
    """Some of the rows of a game, as a game.

    Attributes
    ----------
    game : Game
        The game of all rows.
    indices : array, (R,)
        The rows.
    digests : list of bytes
        The digest of each row of `game`; see `distinct_digests`.
    """

    game: Any
    indices: IntArray
    digests: list[bytes]

    @property
    def n_rows(self) -> int:
        """Number of rows in the sample."""
        return len(self.indices)

    @property
    def has_common_empty_value(self) -> bool:
        """Whether all rows have the same value without any player."""
        return bool(getattr(self.game, "has_common_empty_value", False))

    def active_players(self) -> BoolArray:
        """Return which players can change the value of the sampled rows."""
        active: BoolArray = self.game.active_players()[self.indices]
        return active

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of each sampled row."""
        return [self.digests[index] for index in self.indices]

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K)."""
        values: ValueArray = self.game(self.indices[rows], coalitions)
        return values

    def repeated(self, n_repeats: int) -> SampledRows:
        """Return the game of repetitions, where the values of the inner game are random."""
        indices = (self.indices[:, None] * n_repeats + np.arange(n_repeats)).ravel()
        digests = [digest for digest in self.digests for _ in range(n_repeats)]
        return SampledRows(self.game.repeated(n_repeats), indices, digests)

    # The next methods make this a DifferentiableGame if the inner game is one.

    @property
    def derivative_obstacle(self) -> str | None:
        """The reason why there are no derivatives; None if there are."""
        if not isinstance(self.game, DifferentiableGame):
            return getattr(self.game, "derivative_obstacle", "the model is not a torch module")
        return self.game.derivative_obstacle

    def fully_present(self, n_points: int) -> torch.Tensor:
        """Return ones in the model's precision."""
        ones: torch.Tensor = self.game.fully_present(n_points)
        return ones

    def presence_values(self, rows: IntArray, presence: torch.Tensor) -> torch.Tensor:
        """Return the values of the outputs at `presence`, (P, K)."""
        values: torch.Tensor = self.game.presence_values(self.indices[rows], presence)
        return values


@dataclass(frozen=True)
class EstimatedRows:
    """Attributions and standard errors, (R, M, K), of rows with the same budget."""

    budget: int | None
    values: AttributionArray
    errors: AttributionArray


@dataclass
class RowSampler:
    """Draws rows without replacement, and estimates each with random coalitions of its own.

    Attributes
    ----------
    game : Game
        The games of all rows.
    estimator : Estimator
        The estimator.
    settings : Settings
        The settings, without a budget.
    kind : str
        What is averaged over rows.
    estimated : list of EstimatedRows
        The rows so far, in the order in which they were drawn.
    evaluations : int
        The evaluations so far.
    """

    game: Any
    estimator: Estimator[Any]
    settings: Settings
    kind: str
    estimated: list[EstimatedRows] = field(default_factory=list, init=False)
    evaluations: int = field(default=0, init=False)
    _digests: list[bytes] = field(init=False, repr=False)
    _order: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.game, FingerprintedGame):
            raise InvalidArgumentError(
                f"global_importance needs a game with row_fingerprints(), which "
                f"{type(self.game).__name__} lacks."
            )
        scores = self.estimator.score_source
        if isinstance(scores, np.ndarray) and scores.ndim == 3:
            raise InvalidArgumentError(
                f"cooperators has shape {scores.shape}, with scores for each row, but "
                "global_importance draws the rows. Pass scores (M, M) for all rows."
            )
        self._digests = distinct_digests(self.game.row_fingerprints())
        self._order = random_order(self._digests, self.settings.seed)

    @property
    def n_rows(self) -> int:
        """The number of rows drawn so far."""
        return sum(len(rows.values) for rows in self.estimated)

    @property
    def n_left(self) -> int:
        """The number of rows that are not drawn yet."""
        return int(self.game.n_rows) - self.n_rows

    @property
    def errors_cancel(self) -> bool:
        """Whether the errors of the rows are independent and have mean 0."""
        if getattr(self.game, "draws_values", False):
            return False  # all rows share the draws without any player
        n_players = int(self.game.active_players().sum(axis=1).max(initial=0))
        useful = self.estimator.useful_budget(n_players)
        budgets = [useful if rows.budget is None else rows.budget for rows in self.estimated]
        return self.estimator.is_unbiased and min(budgets, default=useful) >= useful

    def draw(self, n_rows: int, budget: int | None) -> None:
        """Estimate further rows."""
        n_before = self.n_rows
        indices = np.sort(self._order[n_before : n_before + n_rows])
        result = estimate(
            SampledRows(self.game, indices, self._digests),
            self.estimator,
            replace(self.settings, budget=budget, graph=self._graphs_of(indices)),
        )
        errors = result.standard_errors
        self.estimated.append(EstimatedRows(budget, result.values, errors))
        self.evaluations += int(result.evaluations.sum()) + result.check_evaluations

    def parts(self) -> ErrorParts:
        """Return the mean over all rows so far, with the parts of its variance."""
        values = np.concatenate([rows.values for rows in self.estimated])
        errors = np.concatenate([rows.errors for rows in self.estimated])
        return error_parts(values, errors, self.kind, self.errors_cancel)

    def parts_of_budgets(self) -> list[tuple[int, ErrorParts]]:
        """Return the same for the rows of each budget, in the order of their first draw."""
        of_budgets: dict[int, list[EstimatedRows]] = {}
        for rows in self.estimated:
            of_budgets.setdefault(rows.budget or 0, []).append(rows)
        return [
            (
                budget,
                error_parts(
                    np.concatenate([rows.values for rows in same]),
                    np.concatenate([rows.errors for rows in same]),
                    self.kind,
                    self.errors_cancel,
                ),
            )
            for budget, same in of_budgets.items()
        ]

    def _graphs_of(self, indices: IntArray) -> Structure | Sequence[Structure] | None:
        graph = self.settings.graph
        if graph is None or isinstance(graph, Structure):
            return graph
        return [graph[index] for index in indices]
