"""Interactions as an object of shapiq, for its plots and tools."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..array_types import FloatArray
from ..errors import MissingPackageError
from .indices import pairs_of

_NAMES = {"shapley": "k-SII", "shapley_taylor": "STII", "banzhaf": "BII"}
"""The names of shapiq for our indices. Its k-SII of order 2 has the main effects of our matrices,
and so has its STII; our estimates have no Banzhaf values, so that BII has pairs only."""


def interaction_values(
    index: str,
    matrix: FloatArray,
    baseline: float,
    n_evaluations: int,
    is_estimated: bool,
) -> Any:
    """Return `shapiq.InteractionValues` of one row and output.

    Parameters
    ----------
    index : str
        The name of the index.
    matrix : array, (M, M)
        Main effects on the diagonal, and half of the interaction at both entries of a pair.
    baseline : float
        The value of the empty coalition.
    n_evaluations : int
        The evaluations of the row.
    is_estimated : bool
        Whether some coalitions were not evaluated.

    Raises
    ------
    MissingPackageError
        If shapiq is not installed.
    """
    try:
        shapiq = importlib.import_module("shapiq")
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"to_shapiq needs shapiq, but {error.name} is not installed: pip install shapiq. It "
            "needs Python 3.12 or newer.",
            name=error.name,
        ) from error
    n_players = len(matrix)
    first, second = pairs_of(n_players)
    sets: list[tuple[int, ...]] = list(zip(first.tolist(), second.tolist(), strict=True))
    values = 2 * matrix[first, second]
    has_mains = index != "banzhaf"
    if has_mains:
        sets = [(), *((player,) for player in range(n_players)), *sets]
        values = np.concatenate([[baseline], np.diag(matrix), values])
    return shapiq.InteractionValues(
        values=values,
        index=_NAMES[index],
        max_order=2,
        min_order=0 if has_mains else 2,
        n_players=n_players,
        interaction_lookup={players: number for number, players in enumerate(sets)},
        estimated=is_estimated,
        estimation_budget=n_evaluations,
        baseline_value=baseline,
    )
