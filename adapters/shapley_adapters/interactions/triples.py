"""The strongest interactions of three players, for each row and output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..array_types import BoolArray, FloatArray, IntArray

MOST_TRIPLES = 10
"""Number of triples that a result has for a row and output at most."""


class Triple(NamedTuple):
    """The Shapley interaction of three players.

    Attributes
    ----------
    names : tuple of str
        The names of the players.
    value : float
        The interaction, in units of the game's value. Positive if the three together are worth
        more than their pairs and they themselves say.
    standard_error : float
        The posterior standard deviation.
    """

    names: tuple[str, ...]
    value: float
    standard_error: float


@dataclass(frozen=True)
class StrongTriples:
    """The strongest triples that were found, by the size of their interactions.

    Attributes
    ----------
    players : array, (R, 10, 3, K)
        The players of each triple; −1 where fewer triples stand out.
    values, standard_errors : arrays, (R, 10, K)
        Their interactions and standard errors.
    are_searched : array, (R,)
        Whether triples were searched for.
    """

    players: IntArray
    values: FloatArray
    standard_errors: FloatArray
    are_searched: BoolArray

    @classmethod
    def blank(cls, n_rows: int, n_outputs: int) -> StrongTriples:
        """Return no triples, which were not searched for."""
        players = np.full((n_rows, MOST_TRIPLES, 3, n_outputs), -1)
        values, errors = np.zeros((2, n_rows, MOST_TRIPLES, n_outputs))
        return cls(players, values, errors, np.zeros(n_rows, dtype=np.bool_))

    def subset_rows(self, rows: IntArray | slice) -> StrongTriples:
        """Return those of some rows."""
        players, values, errors, are_searched = self._arrays
        return StrongTriples(players[rows], values[rows], errors[rows], are_searched[rows])

    def set_rows(self, rows: IntArray | slice, triples: StrongTriples) -> None:
        """Store those of some rows."""
        for own, array in zip(self._arrays, triples._arrays, strict=True):
            own[rows] = array

    def mapped(self, function: Callable[[FloatArray], FloatArray]) -> StrongTriples:
        """Return the same with a function of interactions and of errors, (R, 10, K)."""
        values, errors = function(self.values), function(self.standard_errors)
        return replace(self, values=values, standard_errors=errors)

    def record(self, rows: IntArray, players: IntArray, triples: StrongTriples) -> None:
        """Store those of some rows, among their active players, (r, m)."""
        self.set_rows(rows, triples)
        of_rows = np.arange(len(rows))[:, None, None, None]
        named = players[of_rows, triples.players]
        self.players[rows] = np.sort(np.where(triples.players < 0, -1, named), axis=2)

    def triples_of(self, row: int, output: int, names: Sequence[str]) -> list[Triple]:
        """Return the triples of a row and output, the strongest first."""
        return [
            Triple(tuple(str(names[player]) for player in players), float(value), float(error))
            for players, value, error in zip(
                self.players[row, :, :, output],
                self.values[row, :, output],
                self.standard_errors[row, :, output],
                strict=True,
            )
            if players[0] >= 0
        ]

    @property
    def _arrays(self) -> tuple[IntArray, FloatArray, FloatArray, BoolArray]:
        return self.players, self.values, self.standard_errors, self.are_searched
