"""Interactions of pairs by a second regression of the same values (KernelSHAP-IQ).

Fumagalli et al., KernelSHAP-IQ: Weighted Least Squares for Shapley Interactions, ICML 2024. A pair
of which a coalition holds just one player adds minus half of its interaction to what the Shapley
values leave of the coalition's value. The weight of all coalitions of size s together is
1 / (s (s − 1) (M − s) (M − s − 1)). For single players and their complements it is infinite: the
interactions of a player have a known sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from ...array_types import AttributionArray, CoalitionArray, FloatArray, ValueArray
from ...coalitions.tables import kernel_mass
from ...errors import SingularSystemError
from ...interactions.result import membership, pairs_of

if TYPE_CHECKING:
    from .regression import LeastSquaresDesign

_SPARE_SHARE, _FEWEST_SPARE = 0.1, 4
"""Equations beyond the number of unknown interactions: a share of them, and a minimum."""

_MATRICES = 4
"""Number of matrices, (P, P) and (n, P) each, that are in memory at once."""


def pair_memory(n_players: int, n_equations: int) -> int:
    """Return the bytes of the regression of all P pairs on n equations."""
    n_pairs = n_players * (n_players - 1) // 2
    return 8 * _MATRICES * n_pairs * (n_pairs + n_equations)


def pair_budget(n_players: int, paired: bool) -> int:
    """Return the evaluations that determine the interactions of all pairs."""
    n_pairs = n_players * (n_players - 1) // 2
    n_spare = max(_FEWEST_SPARE, int(_SPARE_SHARE * n_pairs))
    n_others = max(0, n_pairs - n_players) + n_spare
    return 2 + 2 * n_players + (2 if paired else 1) * n_others


@dataclass(frozen=True)
class PairFit:
    """The solution operators of the regression, which can be applied to several targets.

    Attributes
    ----------
    features : array, (n, P)
        Minus a half where a coalition holds one player of the pair.
    operator : array, (P, n)
        Maps the targets to the interactions.
    of_sums : array, (P, M)
        Maps the sums of the interactions of each player to the interactions.
    leverages : array, (n,)
        Diagonal of the hat matrix.
    """

    features: FloatArray
    operator: FloatArray
    of_sums: FloatArray
    leverages: FloatArray

    @classmethod
    def from_members(cls, members: CoalitionArray, weights: FloatArray) -> PairFit:
        """Prepare the regression on coalitions, (n, M), with the weights of order 1, (n,).

        Raises
        ------
        SingularSystemError
            If the coalitions do not determine all interactions.
        """
        n_players = members.shape[1]
        first, second = pairs_of(n_players)
        features = np.where(members[:, first] != members[:, second], -0.5, 0.0)
        holding = membership(n_players).T
        weighted = features * (weights * _weight_ratios(members.sum(axis=1), n_players))[:, None]
        # What is added does not change the solution, because the sums are fixed.
        scale = np.abs(weighted).max(initial=0.0) or 1.0
        normal = features.T @ weighted + scale * (holding.T @ holding)
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(normal))
        except np.linalg.LinAlgError:
            raise SingularSystemError(
                f"{len(members)} coalitions do not determine the interactions of {n_players} "
                "players. Raise the budget, or use 'oddgp' (OddGP in captum)."
            ) from None
        inverse = inverse.T @ inverse
        to_sums = inverse @ holding.T
        of_sums = scipy.linalg.solve(holding @ to_sums, to_sums.T, assume_a="pos").T
        operator = (inverse - of_sums @ to_sums.T) @ weighted.T
        leverages = np.einsum("np,pn->n", features, operator)
        return cls(features, operator, of_sums, leverages)

    def interactions(self, targets: FloatArray, sums: FloatArray) -> FloatArray:
        """Return the interactions, (R, P, K), of `targets`, (R, n, K), and sums, (R, M, K)."""
        return self.operator @ targets + self.of_sums @ sums

    def residuals(self, targets: FloatArray, interactions: FloatArray) -> FloatArray:
        """Return the residuals of `targets`, (R, n, K)."""
        return targets - self.features @ interactions


def pair_targets(
    design: LeastSquaresDesign, values: ValueArray, attributions: AttributionArray
) -> tuple[FloatArray, FloatArray]:
    """Return the targets of the equations, (R, n, K), and the sums by player, (R, M, K).

    The targets are the values less the Shapley values of their members. Of a coalition and its
    complement, the mean counts, from which the Shapley values cancel.
    """
    empty, grand = values[:, :1], values[:, 1:2]
    targets: FloatArray = np.take(values, design.positions[:, 0], axis=1)
    if design.is_paired:
        targets = (targets + np.take(values, design.positions[:, 1], axis=1) - empty - grand) / 2
    else:
        targets = targets - empty - design.members.astype(np.float64) @ attributions
    coalitions = design.table.coalitions[0]
    sizes, n_players = coalitions.sum(axis=1), coalitions.shape[1]
    singles, others = np.flatnonzero(sizes == 1), np.flatnonzero(sizes == n_players - 1)
    singles = singles[np.argsort(coalitions[singles].argmax(axis=1))]
    others = others[np.argsort(coalitions[others].argmin(axis=1))]
    sums = empty + grand - np.take(values, singles, axis=1) - np.take(values, others, axis=1)
    return targets, sums


def _weight_ratios(sizes: FloatArray, n_players: int) -> FloatArray:
    """Return the weights of order 2 by those of order 1, for coalitions of these sizes."""
    all_sizes = np.arange(1.0, n_players)
    products = all_sizes * (all_sizes - 1) * (n_players - all_sizes) * (n_players - all_sizes - 1)
    mass = np.divide(1.0, products, out=np.zeros_like(products), where=products > 0)
    total = mass.sum() or 1.0
    return (mass / total / kernel_mass(n_players))[sizes.astype(np.intp) - 1]
