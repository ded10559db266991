"""The result record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .array_types import AttributionArray, IntArray, ValueArray


@dataclass(frozen=True)
class Estimate:
    """Attributions of all rows and what they cost.

    Attributes
    ----------
    values : array, (R, M, K)
        Attribution of each player to each output, in units of the game's value.
    standard_errors : array, (R, M, K)
        Standard error that the random choice of coalitions leaves in `values`; 0 where every
        coalition was evaluated, NaN where the evaluations do not tell.
    empty_values, grand_values : array, (R, K)
        Value of the empty coalition and of all players together.
    evaluations : array, (R,)
        Distinct coalitions evaluated for each row, those spent on finding cooperators included.
    backward_passes : array, (R,)
        Backward passes through the model for each row; they are not part of `evaluations`.
    cooperators : array of str, (R,)
        Where SHEAR has the cooperators of each row from, and odd Gaussian-process regression its
        prior; "" where it has none, for all other estimators, and for rows whose coalitions were
        all evaluated.
    orders : array, (R,)
        Up to which order the graph was considered for each row; −1 for estimators without orders
        and for rows without active players.
    seed : int
        The seed of all random choices: pass it to repeat the estimate.
    """

    values: AttributionArray
    standard_errors: AttributionArray
    empty_values: ValueArray
    grand_values: ValueArray
    evaluations: IntArray
    backward_passes: IntArray
    cooperators: npt.NDArray[np.str_]
    orders: IntArray
    seed: int
