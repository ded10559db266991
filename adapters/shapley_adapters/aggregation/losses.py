"""What a convex combination of explanations is to be good at, as functions of its weights.

A loss takes weights, (G,), and returns one number for each input, (R,); less is better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..array_types import BoolArray, CoalitionArray, FloatArray
from ..criteria.complexity import entropy_of_shares
from ..criteria.faithfulness import pearson
from ..errors import InvalidArgumentError
from ..threads.blas_threads import one_blas_thread

Loss: TypeAlias = Callable[[FloatArray], FloatArray]


@one_blas_thread()
def combined(weights: FloatArray, candidates: FloatArray) -> FloatArray:
    """Return Σ_i w_i g_i of candidates, (G, …)."""
    values: FloatArray = np.tensordot(weights, candidates, axes=1)
    return values


@dataclass(frozen=True)
class ComplexityLoss:
    """The complexity of the combination.

    Attributes
    ----------
    candidates : array, (G, R, M)
        Explanations of the inputs.
    """

    candidates: FloatArray

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Return μ_C, (R,)."""
        return entropy_of_shares(combined(weights, self.candidates))


@dataclass(frozen=True)
class SensitivityLoss:
    """How far the combinations for neighbours lie from those for the inputs; convex in the weights.

    Attributes
    ----------
    differences : array, (G, R, n, M)
        Each candidate's explanation of an input less those of its neighbours.
    kept : array, (R, n)
        Which neighbours count; at least one for each input.
    largest : bool
        Whether the largest distance is taken instead of the mean.
    """

    differences: FloatArray
    kept: BoolArray
    largest: bool = False

    @classmethod
    def of(cls, rows: FloatArray, neighbours: FloatArray, kept: BoolArray) -> SensitivityLoss:
        """Return the loss of several candidates' explanations; rows without neighbours drop out.

        Parameters
        ----------
        rows : array, (R, G, K, M)
            Explanations of K outputs by G candidates; each output counts as an input of its own.
        neighbours : array, (R, n, G, K, M)
            Those of the neighbours.
        kept : array, (R, n)
            Which neighbours count.

        Raises
        ------
        InvalidArgumentError
            If no neighbour counts.
        """
        has_any = kept.any(axis=1)
        if not has_any.any():
            raise InvalidArgumentError(
                "no row has a neighbour that keeps the prediction; draw more, or change the radius."
            )
        moved = rows[has_any, None] - neighbours[has_any]
        _, n, n_candidates, n_outputs, n_features = moved.shape
        per_output = np.moveaxis(moved, (2, 3), (0, 2))  # (G, R, K, n, M)
        flat = per_output.reshape(n_candidates, -1, n, n_features)
        return cls(flat, np.repeat(kept[has_any], n_outputs, axis=0))

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Return μ_A, or μ_M, (R,)."""
        away = np.linalg.norm(combined(weights, self.differences), axis=2)
        if self.largest:
            largest: FloatArray = np.where(self.kept, away, 0.0).max(axis=1)
            return largest
        mean: FloatArray = np.where(self.kept, away, 0.0).sum(axis=1) / self.kept.sum(axis=1)
        return mean


@dataclass(frozen=True)
class UnfaithfulnessLoss:
    """One less the faithfulness of the combination.

    Attributes
    ----------
    sums : array, (G, R, n)
        Sums of each candidate's attributions over n subsets.
    losses : array, (R, n)
        What the output loses with each subset.
    """

    sums: FloatArray
    losses: FloatArray

    @classmethod
    def of(
        cls, candidates: FloatArray, subsets: CoalitionArray, losses: FloatArray
    ) -> UnfaithfulnessLoss:
        """Return the loss of candidates, (G, R, M), over subsets, (n, M)."""
        return cls(candidates @ subsets.T.astype(float), losses)

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Return 1 − μ_F, (R,)."""
        return 1 - pearson(combined(weights, self.sums), self.losses)


@dataclass(frozen=True)
class CriterionLoss:
    """A user's criterion of the combination.

    Attributes
    ----------
    candidates : array, (G, R, M)
        Explanations of the inputs.
    criterion : callable
        Explanations (R, M) to one number for each, (R,); less is better.
    """

    candidates: FloatArray
    criterion: Callable[[FloatArray], Any]

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Return what the criterion says, (R,)."""
        found = np.asarray(self.criterion(combined(weights, self.candidates)), dtype=np.float64)
        n_rows = self.candidates.shape[1]
        if found.shape != (n_rows,) or not np.isfinite(found).all():
            raise InvalidArgumentError(
                f"the criterion must return {n_rows} finite numbers, one for each explanation; it "
                f"returned shape {found.shape}."
            )
        return found
