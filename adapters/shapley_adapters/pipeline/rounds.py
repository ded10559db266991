"""Rows whose evaluation goes on: what they have, and what they ask for next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..array_types import IntArray, ValueArray
from ..estimators.exact import full_design
from ..estimators.protocol import Design
from ..games.evaluation import Request
from .row_groups import RowGroup

_GROWTH = 1.25
"""How much farther each round goes: at most a fifth of the evaluations come too late to stop."""


@dataclass(frozen=True)
class OpenRows:
    """Rows of a group with the part of their design that has been evaluated.

    Attributes
    ----------
    group : RowGroup
        The rows.
    design : Design
        What may be evaluated for them at most.
    values : array, (R, n, K)
        The values of the design's first coalitions.
    limit : int
        Up to how many coalitions the present round goes.
    shortfall : str, optional
        Why the design leaves out all neighbours of the players, if it does.
    """

    group: RowGroup
    design: Design
    values: ValueArray
    limit: int
    shortfall: str | None = None

    @property
    def is_last_round(self) -> bool:
        """Whether the design ends with this round."""
        return bool(self.limit >= self.design.table.counts.max())

    @property
    def evaluations(self) -> IntArray:
        """The coalitions evaluated by the end of the round, (R,) or (1,)."""
        return self.design.table.first(self.limit).counts

    def request(self) -> Request:
        """Ask for what the round lacks."""
        return self.group.request(self.design.table.first(self.limit).after(self.values.shape[1]))

    def with_values(self, new: ValueArray) -> OpenRows:
        """Return the rows with the values of the request."""
        if new.shape[1] == 0:
            return self
        return replace(self, values=np.concatenate([self.values, new], axis=1))

    def of_rows(self, places: IntArray) -> OpenRows:
        """Return some of the rows, given by their places."""
        return replace(
            self,
            group=self.group.of_rows(places),
            design=self.design.of_rows(places),
            values=self.values[places],
        )

    def next_round(self) -> OpenRows:
        """Go farther into the design."""
        return replace(self, limit=int(np.ceil(_GROWTH * self.limit)))

    def one_by_one(self) -> list[OpenRows]:
        """Return each row by itself, to be evaluated in full from what it has."""
        alone = []
        for place in range(len(self.group.rows)):
            row = self.of_rows(np.array([place]))
            table = row.design.table
            n_known = int(table.counts[0])
            full = full_design(self.group.n_players, table.coalitions[0, :n_known])
            alone.append(
                OpenRows(row.group, full, row.values[:, :n_known], int(full.table.counts[0]))
            )
        return alone
