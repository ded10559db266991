"""Estimates from the first evaluations of a run, for plots of convergence."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..array_types import FloatArray, IntArray
from ..estimators.exact import FullDesign
from ..estimators.protocol import Estimator, Solution
from .row_groups import PendingRows
from .value_scales import solve_near_one

_FEWEST = 4
"""Evaluations below which no estimate is tried."""


@dataclass(frozen=True)
class Trace:
    """The estimates that the first evaluations of a run give, without further evaluations.

    The evaluations of a run are in the order of their design, so that the first of them are a
    smaller run. Each point has about √2 times the evaluations of the point before; the last is the
    estimate of the run. NaN stands for points with too few evaluations for the estimator.

    Attributes
    ----------
    evaluations : array, (R, T)
        The evaluations of each row at each point; 0 where there are too few.
    values, standard_errors, degrees_of_freedom : arrays, (R, M, T, K)
        The attributions, their standard errors, and the degrees of freedom of these.
    """

    evaluations: IntArray
    values: FloatArray
    standard_errors: FloatArray
    degrees_of_freedom: FloatArray

    @classmethod
    def blank(cls, limit: int, shape: tuple[int, int, int]) -> Trace:
        """Return a trace without points for attributions of a shape, (R, M, K)."""
        n_rows, n_players, n_outputs = shape
        n_points = 1 + int(2 * np.log2(max(limit, _FEWEST) / _FEWEST))
        evaluations = np.zeros((n_rows, n_points), dtype=np.intp)
        unknown = np.full((n_rows, n_players, n_points, n_outputs), np.nan)
        return cls(evaluations, unknown, unknown.copy(), unknown.copy())

    def set_rows(self, start: int, stop: int, trace: Trace) -> None:
        """Store the trace of the rows from `start` to `stop`."""
        for one in fields(self):
            getattr(self, one.name)[start:stop] = getattr(trace, one.name)

    def record(
        self,
        first_row: int,
        estimator: Estimator[Any],
        pending: PendingRows,
        last: Solution,
        minimum: int,
    ) -> None:
        """Store the points of rows whose evaluation has ended.

        Parameters
        ----------
        first_row : int
            The row of the game that has the first entries here.
        estimator : Estimator
            The estimator.
        pending : PendingRows
            The rows, with their values.
        last : Solution
            Their solution.
        minimum : int
            The fewest evaluations that an estimate of these rows needs.
        """
        rows, design = pending.group.rows - first_row, pending.design
        counts = np.minimum(design.table.counts, pending.round_end)
        n_points = self.evaluations.shape[1]
        end = int(counts.max())
        self._store(rows, n_points - 1, pending, last, counts)
        # A player without influence has the attribution 0 at each point.
        if isinstance(design, FullDesign) or design.is_whole:
            return
        fewest = max(minimum, design.fewest_coalitions)
        for point in range(n_points - 1):
            n_coalitions = int(np.ceil(end * 2 ** (-(n_points - 1 - point) / 2)))
            if n_coalitions < fewest:
                continue
            smaller = design.within(n_coalitions)
            solution = solve_near_one(estimator, smaller, pending.values[:, :n_coalitions])
            self._store(rows, point, pending, solution, np.minimum(counts, n_coalitions))

    def _store(
        self,
        rows: IntArray,
        point: int,
        pending: PendingRows,
        solution: Solution,
        counts: IntArray,
    ) -> None:
        """Store the solution of some rows at a point; a solution on a graph has all players."""
        errors = solution.standard_errors
        arrays = (
            (self.values, solution.values, 0.0),
            (self.standard_errors, errors, 0.0),
            (self.degrees_of_freedom, solution.degrees_of_freedom, np.inf),
        )
        n_players = self.values.shape[1]
        everyone = np.tile(np.arange(n_players), (len(rows), 1))
        players = pending.group.players if pending.group.graph is None else everyone
        for array, numbers, without in arrays:
            array[rows, :, point] = without
            array[rows[:, None], players, point] = np.broadcast_to(numbers, errors.shape)
        self.evaluations[rows, point] = counts
