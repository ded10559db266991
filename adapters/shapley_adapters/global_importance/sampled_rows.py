"""A random sample of the rows of a game, as a game."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from ..games.fingerprints import fingerprint
from ..games.game import DifferentiableGame, WrappedGame

if TYPE_CHECKING:
    import torch


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
        A digest of each row of `game`; equal rows have different ones.
    """

    game: Any
    indices: IntArray
    digests: list[bytes]

    @classmethod
    def drawn(cls, game: Any, n_rows: int | None, seed: int) -> SampledRows:
        """Return rows drawn without replacement; all rows where `n_rows` is None.

        Which rows they are does not depend on their order in the table.
        """
        # Random draws depend on the digest of a row. Equal rows need draws of their own, or their
        # errors would be equal, too.
        counts: Counter[bytes] = Counter()
        digests = []
        for digest in game.row_fingerprints():
            digests.append(fingerprint(digest, counts[digest]) if counts[digest] else digest)
            counts[digest] += 1
        key = fingerprint(seed)
        ranks = [blake2b(digest, key=key).digest() for digest in digests]
        order = np.array(sorted(range(len(ranks)), key=ranks.__getitem__), dtype=np.intp)
        return cls(game, np.sort(order[:n_rows]), digests)

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
