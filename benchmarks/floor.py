"""The least that any explanation has to do: mask inputs and run the model on them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from adult import AdultBenchmark
from coalition_games import BoolArray, FloatArray, IntArray

BATCH_SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
MASKINGS = ("numpy", "torch")


@dataclass(frozen=True)
class Floor:
    """The plainest loop over given coalitions: mask a batch, run the model, keep the outputs.

    Attributes
    ----------
    benchmark : AdultBenchmark
        Model, rows and players.
    present : array, (P, M)
        The coalition of each evaluation.
    row_of : array, (P,)
        The row of each evaluation.
    batch_size : int
        Evaluations in one call of the model.
    masking : str
        One of `MASKINGS`: what spreads players to columns and fills in the reference.
    with_curvatures : bool
        Whether to take the second derivatives of all rows, too: 1 + M backward passes a row.
    """

    benchmark: AdultBenchmark
    present: BoolArray
    row_of: IntArray
    batch_size: int
    masking: str
    with_curvatures: bool = False

    @classmethod
    def fastest(cls, benchmark: AdultBenchmark, n_evaluations: int) -> Floor:
        """Return the floor for random coalitions of all rows, with the best batch and masking."""
        n_rows = len(benchmark.rows)
        shape = (n_rows * n_evaluations, benchmark.n_players)
        present = np.random.default_rng(0).random(shape) < 0.5
        row_of = np.repeat(np.arange(n_rows), n_evaluations)
        floors = [
            cls(benchmark, present, row_of, batch_size, masking)
            for masking in MASKINGS
            for batch_size in BATCH_SIZES
        ]
        return min(floors, key=lambda floor: min(floor.seconds() for _ in range(3)))

    def __call__(self) -> FloatArray:
        """Evaluate all coalitions, (P,)."""
        outputs = np.empty(len(self.present))
        with torch.no_grad():
            for start in range(0, len(outputs), self.batch_size):
                batch = slice(start, start + self.batch_size)
                outputs[batch] = self.benchmark.model(self._masked(batch)).numpy()
        if self.with_curvatures:
            self._curvatures()
        return outputs

    def seconds(self) -> float:
        """Return how long one pass takes."""
        started = time.perf_counter()
        self()
        return time.perf_counter() - started

    def _masked(self, batch: slice) -> torch.Tensor:
        benchmark, players = self.benchmark, self.benchmark.player_of_column
        if self.masking == "numpy":
            absent = np.take(~self.present[batch], players, axis=1)
            filled = benchmark.rows[self.row_of[batch]]
            np.copyto(filled, benchmark.reference, where=absent)
            return torch.from_numpy(filled)
        present = torch.from_numpy(self.present[batch])[:, torch.from_numpy(players)]
        rows = torch.from_numpy(benchmark.rows)[torch.from_numpy(self.row_of[batch])]
        return torch.where(present, rows, torch.from_numpy(benchmark.reference))

    def _curvatures(self) -> torch.Tensor:
        """Return ∂²v/∂z_i∂z_j of all rows where every player is present, z = 1, (R, M, M)."""
        rows = torch.from_numpy(self.benchmark.rows)
        reference = torch.from_numpy(self.benchmark.reference)
        present = torch.ones(len(rows), self.benchmark.n_players, requires_grad=True)
        spread = present[:, torch.from_numpy(self.benchmark.player_of_column)]
        output = self.benchmark.model(reference + spread * (rows - reference))
        (slope,) = torch.autograd.grad(output.sum(), present, create_graph=True)
        curvatures = [
            torch.autograd.grad(column, present, retain_graph=True)[0] for column in slope.sum(0)
        ]
        return torch.stack(curvatures, dim=1)
