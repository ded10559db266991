"""A random sample of the rows of a game."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array_types import BoolArray, CoalitionArray, IntArray, ValueArray
from ..games.fingerprints import fingerprint
from ..games.game import DifferentiableGame
from ..games.wrapped_game import WrappedGame

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
