"""The interface between a host and the core: a cooperative game for each row to explain."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..array_types import (
    AttributionArray,
    BoolArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ValueArray,
)
from ..constructors import default
from ..errors import InvalidArgumentTypeError
from .batch_sizes import BatchBounds

if TYPE_CHECKING:
    import torch


NO_MODULE = "the model is not a torch module"
"""Why most models have no derivatives."""


class Game:
    """Base of all games: one for each row to explain, coalitions in, values out.

    A subclass has `n_rows`, `n_players` and `evaluations_per_batch`, as attributes, properties or
    fields, and `__call__`. It may have the other members, whose defaults are those of a plain game.

    The host defines the value of an absent player (shap: by the masker, captum: by the baselines).
    A game may use several rows of the model's input for one value, such as one per background row;
    `evaluations_per_batch` takes this into account.
    """

    if TYPE_CHECKING:

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
        """Return which players can change the value, as an (R, M) array; by default all.

        A player whose present and absent values are equal is a null player: its attribution is 0
        and it costs no evaluation.
        """
        return np.ones((self.n_rows, self.n_players), dtype=bool)

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), of `coalitions`, (P, M), each for its row in `rows`, (P,)."""
        raise NotImplementedError

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of each row's content: of everything that its game depends on.

        Seeds of independent draws come from them. Equal rows have equal digests, in every process;
        see `fingerprints.fingerprint`.
        """
        raise InvalidArgumentTypeError(
            "independent_rows=True needs a game with row_fingerprints(), which "
            f"{type(self).__name__} lacks. Leave independent_rows=False."
        )

    @default
    def batch_bounds(self) -> BatchBounds | None:
        """The first and the largest size of a batch, chosen by timing the first batches.

        Values are NumPy arrays, so that the model's device has finished when a call returns. With
        None, batches have `evaluations_per_batch`.
        """
        return None

    @default
    def rounding(self) -> float:
        """Relative rounding error of the model's output; 0 if it is unknown."""
        return 0.0

    @default
    def usage(self) -> Any:
        """What a remote model was used for so far; None for other models."""
        return None

    @default
    def output_names(self) -> list[list[str]] | None:
        """The names of the outputs of each row, where rows have outputs of their own."""
        return None

    @default
    def additive_part(self) -> AttributionArray | None:
        """The attributions, (R, M, K), whose additive games were subtracted from the values."""
        return None

    # Repeated values

    @default
    def is_in_training_mode(self) -> bool:
        """Whether the model is known to be random, about which users are warned."""
        return False

    @default
    def answers_at_random(self) -> bool:
        """Whether the model is known to answer at random."""
        return False

    @default
    def draws_values(self) -> bool:
        """Whether values are random by design, such as means of draws of absent features.

        The same row and coalition have the same value in each call; `repeated` has other ones.
        """
        return False

    @property
    def only_absence_is_random(self) -> bool:
        """Whether the value of all players together is not random, where others are."""
        return self.draws_values

    @default
    def evaluates_first_alone(self) -> bool:
        """Whether the first calls of the model have one row, and later ones more."""
        return False

    @default
    def has_refits(self) -> bool:
        """Whether `log_ratios` of the game and of its repetitions say how draws depend on data."""
        return False

    def log_ratios(self, rows: IntArray, coalitions: CoalitionArray) -> FloatArray:
        """Return the logarithms of ratios of densities of all draws, (P, D, F).

        Those of their distribution fitted to the data with other weights, F times, by its density.
        """
        raise NotImplementedError

    def repeated(self, n_repeats: int) -> Game:
        """Return a game whose row r · n + i is repetition i of row r, each drawn independently."""
        raise NotImplementedError

    # Means over the rows of a background

    @default
    def n_backgrounds(self) -> int:
        """B, the number of background rows of a value."""
        return 1

    @default
    def background_weights(self) -> FloatArray | None:
        """Weight of each background row, 1 in all; None where they are equal."""
        return None

    @default
    def has_single_outputs(self) -> bool:
        """Whether `outputs_at` returns the outputs for single background rows."""
        return False

    @default
    def has_one_full_value(self) -> bool:
        """Whether the value of all players needs one row of the model."""
        return False

    @default
    def sampling_obstacle(self) -> str:
        """Why the mean over a part of the background would not do; "" if it does."""
        return ""

    def outputs_at(
        self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray
    ) -> ValueArray:
        """Return the outputs, (P, K), of `coalitions`, (P, M), each for one background row."""
        raise NotImplementedError

    def level_columns(self, row: int) -> tuple[npt.NDArray[Any], IntArray] | None:
        """Return the columns, (B + 1, D), of the row and the background, and their players.

        None where values are not in columns, as in texts, or where the columns are too many.
        """
        del row
        return None

    # Degrees of presence between 0, the absent value of a player, and 1, its present value. In
    # between, values are interpolated linearly.

    @default
    def derivative_obstacle(self) -> str | None:
        """The reason why there are no derivatives; None if there may be derivatives."""
        return NO_MODULE

    @default
    def has_link(self) -> bool:
        """Whether values are a function of what is differentiated."""
        return False

    def fully_present(self, n_points: int) -> torch.Tensor:
        """Return ones of shape (n_points, M), in the model's precision and on its device."""
        raise NotImplementedError

    def presence_values(self, rows: IntArray, presence: torch.Tensor) -> torch.Tensor:
        """Return the values, (P, K), at `presence`, (P, M), each for its row in `rows`, (P,)."""
        raise NotImplementedError


class WrappedGame(Game):
    """A game made of a game: what the model and its rows are remains, unless a subclass changes it.

    What is not known to hold for the new values, such as derivatives, is that of a plain game.

    Attributes
    ----------
    game : Game
        The inner game.
    """

    game: Any

    def active_players(self) -> BoolArray:
        """Return which players can change the value."""
        return self.game.active_players()

    def row_fingerprints(self) -> list[bytes]:
        """Return digests of the inner game's rows."""
        return self.game.row_fingerprints()


_OF_INNER_GAME = (
    "n_rows",
    "n_players",
    "n_backgrounds",
    "evaluations_per_batch",
    "batch_bounds",
    "rounding",
    "usage",
    "is_in_training_mode",
    "answers_at_random",
    "draws_values",
)
for _name in _OF_INNER_GAME:
    setattr(WrappedGame, _name, property(attrgetter(f"game.{_name}")))


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
        return super().active_players()[self.rows]

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of each of the rows."""
        digests = super().row_fingerprints()
        return [digests[row] for row in self.rows]

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K)."""
        return self.game(self.rows[rows], coalitions)
