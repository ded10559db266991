"""A ridge for regressions with about as many equations as players, chosen by left-out values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ...array_types import AttributionArray, BoolArray, FloatArray

_STRENGTHS = (0.0, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Ridges, as multiples of the mean squared singular value of the equations. Ten cover what the
draws of any game can tell apart; the best of ten is within some per cent of the best of all."""

_DOUBT = 1.0
"""The draws must predict each other better than the fit without them by this number over theirs, as
measured on networks, votes, rules, maxima and trees with 11 players."""

_MANY_DRAWS = 3
"""With more drawn equations for each player than this, no ridge is needed."""


@dataclass(frozen=True)
class RidgeFit:
    """Ridge regressions around the fit to some equations that are always included.

    With as many equations as players, a regression follows the noise of the few that were drawn,
    whose weights are those of all other sizes. The ridge shrinks it towards the fit without them.

    Attributes
    ----------
    left, right : array, (n, M − 1) and (M, M − 1)
        Singular vectors of the weighted equations; those on the right sum to 0.
    squares : array, (M − 1,)
        Squared singular values.
    roots : array, (n,)
        Square roots of the weights.
    is_drawn : array, (n,)
        Whether an equation was drawn.
    """

    left: FloatArray
    right: FloatArray
    squares: FloatArray
    roots: FloatArray
    is_drawn: BoolArray

    @classmethod
    def from_equations(
        cls, design: FloatArray, weights: FloatArray, is_drawn: BoolArray
    ) -> RidgeFit:
        """Decompose weighted equations, (n, M), for coefficients of a fixed sum."""
        basis, roots = scipy.linalg.helmert(design.shape[1]).T, np.sqrt(weights)
        left, values, right = np.linalg.svd(roots[:, None] * (design @ basis), full_matrices=False)
        return cls(left, basis @ right.T, values**2, roots, is_drawn)

    def corrections(self, residuals: FloatArray) -> AttributionArray:
        """Return what to add to the coefficients, (R, M, K), given their residuals, (R, n, K).

        The ridge of each row and output has the least squared error at drawn equations that are
        left out of its fit.
        """
        weighted = self.roots[:, None] * residuals
        rotated = self.left.T @ weighted  # (R, M − 1, K)
        best: FloatArray = np.full((len(residuals), 1, residuals.shape[2]), np.inf)
        chosen: AttributionArray = np.zeros((len(residuals), len(self.right), residuals.shape[2]))
        for strength in (np.inf, *_STRENGTHS[::-1]):
            kept = self.squares / (self.squares + strength * self.squares.mean())
            if np.isinf(strength):
                kept = np.zeros(len(self.squares))
            slack = 1 - (self.left**2) @ kept
            if (slack[self.is_drawn] < 1e-9).any():
                continue  # a left-out equation would leave the coefficients undetermined
            left_out = (weighted - self.left @ (kept[:, None] * rotated)) / slack[:, None]
            error = (left_out[:, self.is_drawn] ** 2).sum(axis=1, keepdims=True)
            scaled = kept / np.sqrt(self.squares)
            if np.isinf(strength):  # few draws must say clearly that they know more
                best = error / (1 + _DOUBT / self.is_drawn.sum())
                continue
            better = error < best
            chosen = np.where(better, self.right @ (scaled[:, None] * rotated), chosen)
            best = np.where(better, error, best)
        return chosen


def needs_ridge(is_drawn: BoolArray, n_players: int) -> bool:
    """Return whether so few equations were drawn that a regression may follow their noise."""
    return 0 < int(is_drawn.sum()) <= _MANY_DRAWS * n_players and n_players > 1
