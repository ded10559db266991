"""Rows whose evaluation goes on: their values so far, and the coalitions to evaluate next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..array_types import IntArray, ValueArray
from ..estimators.exact import full_design
from ..estimators.protocol import Design
from ..games.evaluation import Request
from .row_groups import RowGroup

GROWTH = 1.25
"""Factor from the end of a round to the end of the next. At most a fifth of the evaluations of a
row come after it could have stopped."""


@dataclass(frozen=True)
class PendingRows:
    """Rows of a group with the part of their design that has been evaluated.

    Attributes
    ----------
    group : RowGroup
        The rows.
    design : Design
        All coalitions that may be evaluated for them.
    values : array, (R, n, K)
        The values of the design's first coalitions.
    round_end : int
        The number of coalitions that are evaluated by the end of the present round.
    """

    group: RowGroup
    design: Design
    values: ValueArray
    round_end: int

    def request(self) -> Request:
        """Return the coalitions that the round still has to evaluate."""
        return self.group.request(self.design.table.part(self.values.shape[1], self.round_end))

    def of_rows(self, indices: IntArray) -> PendingRows:
        """Return some of the rows, given by their indices."""
        return replace(
            self,
            group=self.group.of_rows(indices),
            design=self.design.of_rows(indices),
            values=self.values[indices],
        )

    def next_round(self) -> PendingRows:
        """Return the rows with a later end of the round."""
        return replace(self, round_end=int(np.ceil(GROWTH * self.round_end)))

    def enumerated(self) -> list[PendingRows]:
        """Return each row by itself, with the design of all coalitions."""
        rows = []
        for index in range(len(self.group.rows)):
            row = self.of_rows(np.array([index]))
            table = row.design.table
            n_known = int(table.counts[0])
            full = full_design(self.group.n_players, table.coalitions[0, :n_known])
            n_all = int(full.table.counts[0])
            rows.append(PendingRows(row.group, full, row.values[:, :n_known], n_all))
        return rows
