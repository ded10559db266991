"""What the core asks of a host: a cooperative game for each row to explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from .batch_sizes import BatchBounds

if TYPE_CHECKING:
    import torch


class Game(Protocol):
    """The games of all rows to explain: coalitions in, values out.

    Which value an absent player takes is the host's business (shap: the masker, captum: the
    baselines). A game may use more than one row of the model's input for one value, such as one
    for each background row; `evaluations_per_batch` already allows for that.
    """

    @property
    def n_rows(self) -> int:
        """R, the number of rows to explain."""

    @property
    def n_players(self) -> int:
        """M, the number of players, the same for each row."""

    @property
    def evaluations_per_batch(self) -> int:
        """How many evaluations one call should hold when the user gives no batch size."""

    def active_players(self) -> BoolArray:
        """Tell which players can change the value at all, as an (R, M) array.

        A player whose present and absent values are equal is a null player: it gets 0 and costs
        no evaluation.
        """

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), of `coalitions`, (P, M), each for its row in `rows`, (P,)."""


@runtime_checkable
class FingerprintedGame(Game, Protocol):
    """A game whose rows can be told apart by what they hold, for draws of their own."""

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of each row's content: all that makes its game differ from others'.

        Equal rows have equal digests, in every process; see `fingerprints.fingerprint`.
        """


@runtime_checkable
class GameOfTimedBatches(Game, Protocol):
    """A game whose batch size is found by timing the first batches.

    Its values are NumPy arrays, so that a call has ended on the model's device, too, when it
    returns.
    """

    @property
    def batch_bounds(self) -> BatchBounds | None:
        """Between which sizes to choose; None for batches of `evaluations_per_batch`."""


@runtime_checkable
class DifferentiableGame(Game, Protocol):
    """A game that is also defined for players who are present to a degree.

    A presence of 0 gives the absent value, 1 the present one, and what lies between moves the
    input along the straight line that joins them.
    """

    @property
    def derivative_obstacle(self) -> str | None:
        """Why no derivative can be taken, or None where nothing speaks against trying."""

    def fully_present(self, n_points: int) -> torch.Tensor:
        """Return ones of shape (n_points, M), in the model's precision and on its device."""

    def presence_values(self, rows: IntArray, presence: torch.Tensor) -> torch.Tensor:
        """Return the values, (P, K), at `presence`, (P, M), each for its row in `rows`, (P,)."""
