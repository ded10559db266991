"""The interface between a host and the core: a cooperative game for each row to explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from .batch_sizes import BatchBounds

if TYPE_CHECKING:
    import torch


class Game(Protocol):
    """The games of all rows to explain: coalitions in, values out.

    The host defines the value of an absent player (shap: by the masker, captum: by the baselines).
    A game may use several rows of the model's input for one value, such as one per background row;
    `evaluations_per_batch` takes this into account.

    A game may also have `batch_bounds`, the first and the largest size of a batch. The size is then
    chosen by timing the first batches: values are NumPy arrays, so that the model's device has
    finished when a call returns. With None, batches have `evaluations_per_batch`.
    """

    @property
    def n_rows(self) -> int:
        """R, the number of rows to explain."""

    @property
    def n_players(self) -> int:
        """M, the number of players, the same for each row."""

    @property
    def evaluations_per_batch(self) -> int:
        """Evaluations in one call if the user gives no batch size."""

    def active_players(self) -> BoolArray:
        """Return which players can change the value, as an (R, M) array.

        A player whose present and absent values are equal is a null player: its attribution is 0
        and it costs no evaluation.
        """

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), of `coalitions`, (P, M), each for its row in `rows`, (P,)."""


@runtime_checkable
class FingerprintedGame(Game, Protocol):
    """A game whose rows have digests of their content, as seeds of independent draws."""

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of each row's content: of everything that its game depends on.

        Equal rows have equal digests, in every process; see `fingerprints.fingerprint`.
        """


@runtime_checkable
class DifferentiableGame(Game, Protocol):
    """A game that is also defined for players with a degree of presence between 0 and 1.

    Degree 0 is the absent value of a player and degree 1 its present value. In between, values are
    interpolated linearly.
    """

    @property
    def derivative_obstacle(self) -> str | None:
        """The reason why there are no derivatives; None if there may be derivatives."""

    def fully_present(self, n_points: int) -> torch.Tensor:
        """Return ones of shape (n_points, M), in the model's precision and on its device."""

    def presence_values(self, rows: IntArray, presence: torch.Tensor) -> torch.Tensor:
        """Return the values, (P, K), at `presence`, (P, M), each for its row in `rows`, (P,)."""


class WrappedGame:
    """What a game has in common with the game that it changes.

    Attributes
    ----------
    game : Game
        The inner game.
    """

    game: Any

    @property
    def n_rows(self) -> int:
        """Number of rows to explain."""
        return int(self.game.n_rows)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.game.n_players)

    @property
    def n_backgrounds(self) -> int:
        """Number of background rows of a value."""
        return int(getattr(self.game, "n_backgrounds", 1))

    @property
    def draws_values(self) -> bool:
        """Whether the values of the inner game are random by design."""
        return bool(getattr(self.game, "draws_values", False))

    @property
    def answers_at_random(self) -> bool:
        """Whether the model of the inner game is known to answer at random."""
        return bool(getattr(self.game, "answers_at_random", False))

    @property
    def evaluations_per_batch(self) -> int:
        """Number of evaluations in a batch."""
        return int(self.game.evaluations_per_batch)

    @property
    def batch_bounds(self) -> BatchBounds | None:
        """Bounds of the batch size, if the inner game has them."""
        bounds: BatchBounds | None = getattr(self.game, "batch_bounds", None)
        return bounds

    @property
    def is_in_training_mode(self) -> bool:
        """Whether the model is known to be random, about which users are warned."""
        return bool(getattr(self.game, "is_in_training_mode", False))

    @property
    def rounding(self) -> float:
        """Relative rounding error of the model's output; 0 if it is unknown."""
        return float(getattr(self.game, "rounding", 0.0))

    @property
    def usage(self) -> Any:
        """The `Usage` of a remote model so far; None for other models."""
        return getattr(self.game, "usage", None)


@dataclass
class SomeRows(WrappedGame):
    """The games of some of the rows of a game.

    Attributes
    ----------
    game : Game
        The game of all rows.
    rows : array, (R,)
        The rows.
    """

    game: Any
    rows: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def active_players(self) -> BoolArray:
        """Return which players can change the value."""
        active: BoolArray = self.game.active_players()[self.rows]
        return active

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K)."""
        values: ValueArray = self.game(self.rows[rows], coalitions)
        return values
