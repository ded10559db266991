"""Semivalues from random coalitions (SimSHAP, Table 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arguments import checked_flag
from ..array_types import AttributionArray, CoalitionArray, FloatArray, IntArray, ValueArray
from ..coalitions.tables import kernel_total, random_subsets
from ..interactions.result import InteractionRequest, SetSolution
from .pair_folds import KernelDraws
from .protocol import Declaration, DesignRequest, Estimator, Solution
from .units import UnitDesign, select_within_budget, share_residual, shared_variances
from .value_errors import ValueErrors, pooled_variances


@dataclass(frozen=True)
class SemivalueDesign(UnitDesign):
    """Marginal contributions, in rounds of one per player.

    A unit contains a coalition without and with the player. If S is 4, the same follows for the
    complement among the other players; else S is 2.

    Attributes
    ----------
    players : array, (U,)
        The player whose contribution each unit contains.
    """

    players: IntArray

    unit_fields: ClassVar[tuple[str, ...]] = ("positions", "players")


@dataclass(frozen=True)
class Semivalue(Estimator[SemivalueDesign]):
    """Shapley values from marginal contributions, drawn for each feature alone.

    ApproSemivalue (Castro et al., 2009; Zhang et al., SimSHAP, 2023, Eq. 2). For each feature, a
    size is drawn, uniform in 0, …, M − 1, then a coalition of that size of the other features.
    Unbiased. Random orders draw from the same distribution for half the evaluations, so prefer
    them. Needs at least 4 M + 2 evaluations.

    Parameters
    ----------
    antithetic : bool
        Whether each coalition comes with its complement among the other features.
    efficient : bool
        Whether attributions are corrected, all by the same amount, to sum to the difference of the
        outputs with all features and with none.
    """

    declaration: ClassVar[Declaration | None] = Declaration("semivalue")
    has_units: ClassVar[bool] = True
    is_unbiased = True

    antithetic: bool = True
    efficient: bool = True

    def __post_init__(self) -> None:
        checked_flag("antithetic", self.antithetic)
        checked_flag("efficient", self.efficient)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one unit per player, or of two, and the empty and full coalition."""
        return (2 if with_errors else 1) * (4 if self.antithetic else 2) * n_players + 2

    def memory(self, n_players: int, budget: int) -> int:
        """Return the memory of the coalitions, of which more are drawn than evaluated."""
        return 11 * budget * n_players

    def design(self, request: DesignRequest) -> SemivalueDesign:
        """Draw rounds until the budget is spent; the players of a round are in random order."""
        n_players, unit_size = request.n_players, 4 if self.antithetic else 2
        # Duplicates are free, so offer more rounds than the budget covers without duplicates.
        n_rounds = 2 * (request.budget // (unit_size * n_players)) + 2
        identity = np.tile(np.arange(n_players), (n_rounds, 1))
        players = request.rng.permuted(identity, axis=1).ravel()
        units = self._units(players, n_players, request.rng)
        design = select_within_budget(request, units)
        n_units = len(design.positions)
        return SemivalueDesign(design.table, design.positions, players[:n_units])

    def solve(self, design: SemivalueDesign, values: ValueArray) -> Solution:
        """Average the contributions of each player; errors from their spread."""
        n_players = design.table.coalitions.shape[2]
        means, variances, freedom = self._means(design, values, np.ones(n_players))
        return share_residual(means, variances, values, self._shares(n_players)[None], freedom)

    def solve_with_errors(
        self, design: SemivalueDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Average the contributions; add the errors of values that several of them share."""
        coalitions = design.table.coalitions[0, : values.shape[1]]
        n_players = coalitions.shape[1]
        of_player = (design.players == np.arange(n_players)[:, None]).astype(np.float64)
        of_player /= of_player.sum(axis=1, keepdims=True)
        added = shared_variances(
            design.positions, of_player, self._shares(n_players), errors, coalitions
        )
        return self.solve(design, values).with_variances(added)

    def _shares(self, n_players: int) -> FloatArray:
        """Return the share of each player in the efficiency residual, (M,)."""
        return np.full(n_players, 1.0 / n_players if self.efficient else 0.0)

    def has_interactions(self, request: InteractionRequest) -> bool:
        """Return whether they are semivalues, which weigh the sizes of the coalitions."""
        return request.are_semivalues

    def interactions(
        self,
        design: SemivalueDesign,
        values: ValueArray,
        errors: AttributionArray,
        request: InteractionRequest,
        value_errors: ValueErrors | None = None,
    ) -> SetSolution:
        """Average the weighted contributions; the spread holds the errors of values."""
        del value_errors
        n_players = errors.shape[1]
        weights = n_players * request.index(n_players).shares_of_sizes
        means, variances, _ = self._means(design, values, weights)
        return SetSolution(means, np.sqrt(variances), errors)

    def _means(
        self, design: SemivalueDesign, values: ValueArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray | float]:
        """Return the means of contributions, their variances, and the degrees of freedom of these.

        `weights`, (M,), are those of coalitions of 0, …, M − 1 others.
        """
        n_players = len(weights)
        unit_values = np.take(values, design.positions, axis=1)  # (R, U, S, K)
        sizes = design.table.coalitions[0, design.positions[:, ::2]].sum(axis=2)  # (U, S / 2)
        steps = unit_values[:, :, 1::2] - unit_values[:, :, ::2]
        contributions = (steps * weights[sizes][..., None]).mean(axis=2)
        counts = np.bincount(design.players, minlength=n_players)[:, None]  # (M, 1)
        of_player = (design.players == np.arange(n_players)[:, None]).astype(np.float64)  # (M, U)
        means = of_player @ contributions / counts
        spread = of_player @ (contributions - means[:, design.players]) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = spread / (counts - 1)
        pooled, freedom = pooled_variances(variances, (counts - 1).astype(np.float64))
        return means, pooled / counts, freedom

    def _units(self, players: IntArray, n_players: int, rng: np.random.Generator) -> CoalitionArray:
        """Draw a coalition of the other players for each of `players`, (U, S, M)."""
        sizes = rng.integers(n_players, size=len(players))
        among_others = random_subsets(sizes, n_players - 1, rng)
        is_player = players[:, None] == np.arange(n_players)
        without = np.zeros((len(players), n_players), dtype=bool)
        without[~is_player] = among_others.ravel()
        units = [without, without | is_player]
        if self.antithetic:
            units += [~(without | is_player), ~without]
        return np.stack(units, axis=1)


@dataclass(frozen=True)
class SimSemivalue(KernelDraws):
    """Shapley values as weighted means over drawn coalitions (SimSHAP, Zhang et al., Eq. 14).

    The estimator of SimSHAP (Zhang et al., 2023, Table 1 and Eq. 14). A coalition of s features,
    drawn by the Shapley kernel, adds γ (M − s) v(S) to its members and subtracts γ s v(S) from the
    other features. For the same draws it equals the unbiased form of least squares. Unbiased;
    attributions sum exactly to the difference of the outputs with all features and with none. Works
    with any budget of at least 4 evaluations, but has a larger variance than random orders.

    Parameters
    ----------
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether to subtract first the linear interpolation between the outputs without and with all
        features; see `CoalitionDraws.targets`. This lowers the variance and does not change the
        expectation. The paper's form does not subtract it.
    """

    declaration: ClassVar[Declaration | None] = Declaration("sim-semivalue")

    def _coefficients(self, members: CoalitionArray) -> FloatArray:
        # (M − s) for members and −s for other players. Those of the complement are the same with
        # the opposite sign.
        n_players, sizes = members.shape[1], members.sum(axis=1, keepdims=True)
        return kernel_total(n_players) * (n_players * members - sizes)
