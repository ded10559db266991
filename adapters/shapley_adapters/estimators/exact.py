"""Shapley values from the values of all coalitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..array_types import CoalitionArray, ValueArray
from ..coalitions.tables import (
    CoalitionTable,
    all_coalitions,
    end_points,
    first_occurrences,
    pack,
    size_weights,
)
from ..errors import BudgetError
from .protocol import Declaration, DesignRequest, Estimator, Solution, WholeDesign
from .value_errors import ValueErrors

MAX_PLAYERS = 20
"""With more players, the 2^M coalitions take too much time and memory."""


@dataclass(frozen=True)
class FullDesign(WholeDesign):
    """All 2^M coalitions. The first of them are no smaller design."""


@dataclass(frozen=True)
class Exact(Estimator[FullDesign]):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 features.

    Each coalition is evaluated once (Wang et al., 2022, Eq. 3), those of all rows together.
    Features whose value equals the background are left out first. Nothing is random; `seed` has no
    effect.
    """

    declaration: ClassVar[Declaration | None] = Declaration("enumeration", is_random=False)
    is_unbiased = True  # nothing is drawn

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return 2^M, or raise an error if that is too many."""
        if n_players > MAX_PLAYERS:
            raise BudgetError(
                f"Exact enumeration takes 2^{n_players} evaluations for {n_players} players; the "
                f"limit is {MAX_PLAYERS} players. Group players, or choose oddgp (captum: OddGP)."
            )
        return int(2**n_players)

    def design(self, request: DesignRequest) -> FullDesign:
        """Return all coalitions, the known ones first."""
        return full_design(request.n_players, request.known)

    def solve(self, design: FullDesign, values: ValueArray) -> Solution:
        """Return the Shapley values; their standard errors are 0."""
        return solve_full(design, values)

    def solve_with_errors(
        self, design: FullDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Return the Shapley values, and the standard errors that those of values leave."""
        return solve_full(design, values, errors)


def full_design(n_players: int, known_coalitions: CoalitionArray | None = None) -> FullDesign:
    """Return the design of all coalitions, the known ones first."""
    first = end_points(n_players) if known_coalitions is None else known_coalitions
    with_duplicates = np.concatenate([first, all_coalitions(n_players)])
    is_new = first_occurrences(pack(with_duplicates)[None])[0] == np.arange(len(with_duplicates))
    coalitions = with_duplicates[is_new][None]
    return FullDesign(CoalitionTable(coalitions, np.array([coalitions.shape[1]])))


def solve_full(
    design: FullDesign, values: ValueArray, errors: ValueErrors | None = None
) -> Solution:
    """Return the Shapley values of the players, exact up to rounding and the errors of values."""
    coalitions = design.table.coalitions[0]
    present, absent = size_weights(coalitions.shape[1])
    sizes = coalitions.sum(axis=1)
    # The weight of v(S) for player i is `present` if i is in S, else −`absent`.
    operator = np.where(coalitions, present[sizes][:, None], -absent[sizes][:, None])  # (C, M)
    attributions = operator.T @ values
    if errors is None:
        return Solution(attributions, np.zeros_like(attributions))
    standard_errors = np.sqrt(errors.enumeration_variances(coalitions))
    return Solution(attributions, errors.in_units_of_values(standard_errors), errors.freedom)
