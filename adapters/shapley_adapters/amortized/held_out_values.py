"""Shapley values of held-out rows, for validation and the errors of a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..array_types import IntArray, ValueArray
from ..estimators.odd_gp.estimator import OddGP
from ..pipeline.settings import Settings
from .efficiency_gaps import TrainingRows, predictions_and_gaps, with_residual
from .explainer_network import ExplainerNetwork
from .stated_errors import RowsWithErrors, StatedErrors
from .unlike_rows import ReferenceRows

if TYPE_CHECKING:
    from .training import Training


_SHARE = 0.1
"""Evaluations for validation, as a share of those for training rows."""

_EXACT_PLAYERS = 12
"""Up to this number of players, the values are exact if the share is large enough."""

_PER_PLAYER, _FEWEST_EVALUATIONS = 8, 64
"""Evaluations of an estimated value by default: per player, and at least."""

_FEWEST_ROWS = 16
"""Smallest number of rows with values, even above the share: fewer do not rank epochs reliably."""


_ROUNDING = 1e-6
"""Smallest error that is stated, relative to the scale of an output: single precision."""


@dataclass(frozen=True)
class HeldOutValues:
    """Shapley values of held-out rows.

    Attributes
    ----------
    rows : array, (n,)
        The rows that have values.
    values : array, (n, M, K)
        Exact or estimated values.
    standard_errors : array, (n, M, K)
        Their standard errors; 0 for exact values.
    evaluations : int
        Number of evaluations for them.
    """

    rows: IntArray
    values: ValueArray
    standard_errors: ValueArray
    evaluations: int


def evaluations_of_label(n_players: int) -> int:
    """Return the default number of evaluations for the label of a row."""
    return max(_FEWEST_EVALUATIONS, _PER_PLAYER * n_players)


def held_out_values(
    rows: TrainingRows, held_out: IntArray, training: Training, n_training: int, end_points: int
) -> HeldOutValues:
    """Return values of the held-out rows, or of random ones if all would cost too much.

    `end_points` is the number of v(∅) and v(N) that validation has evaluated already.
    """
    planned = training.evaluations_in_all(rows.game.n_players, n_training)
    budget, n_rows = training.validation_evaluations, len(held_out)
    if budget is None:
        total = _SHARE * planned - end_points
        budget, n_rows = _affordable(total, rows.game.n_players, len(held_out))
    order = np.random.default_rng([training.seed, 6]).permutation(len(held_out))
    selected = np.sort(held_out[order[:n_rows]])
    # Weights learned per row would take most of the time; they are used with a budget of the user.
    estimator = OddGP("equal" if training.validation_evaluations is None else "learned")
    settings = Settings(
        seed=training.seed,
        budget=budget,
        budget_name="validation_evaluations",
        name=rows.progress.description("values of held-out rows"),
        n_jobs=rows.n_jobs,
        progress_delay=rows.progress.remaining_delay,
        is_for_training=True,
    )
    paid = rows.ledger.estimated("values", rows, selected, estimator, settings)
    n_evaluations = int(paid.evaluations.sum())
    return HeldOutValues(selected, paid.values, paid.standard_errors, n_evaluations)


def _affordable(total: float, n_players: int, n_held_out: int) -> tuple[int, int]:
    """Return the evaluations per row and the number of rows for a total of evaluations.

    Each row gets all coalitions if the total allows this, and otherwise the default number of
    evaluations for a label. More would be more accurate, but the time of `oddgp` grows with the
    cube of this number and would then exceed that of the training. If the total is too small even
    for this, only some rows get values.
    """
    n_coalitions = 2**n_players
    if n_players <= _EXACT_PLAYERS and n_coalitions * n_held_out <= total:
        return n_coalitions, n_held_out
    budget = min(n_coalitions, evaluations_of_label(n_players))
    return budget, min(n_held_out, max(int(total // budget), _FEWEST_ROWS))


def stated_errors(
    network: ExplainerNetwork,
    reference: ReferenceRows,
    rows: TrainingRows,
    valued: HeldOutValues,
    shifted: TrainingRows | None,
) -> StatedErrors:
    """Return how large the errors of a trained network are; costs no evaluations.

    Parameters
    ----------
    network : ExplainerNetwork
        The trained network.
    reference : ReferenceRows
        Training rows, from which distances are measured.
    rows : TrainingRows
        All rows of the training.
    valued : HeldOutValues
        The held-out rows with values.
    shifted : TrainingRows, optional
        Rows unlike the training rows.
    """
    predictions, gaps = predictions_and_gaps(network, rows, valued.rows)
    active = rows.active[valued.rows]
    held_out = RowsWithErrors(
        reference.distances(network, rows.inputs[valued.rows]),
        gaps,
        with_residual(predictions, gaps, active) - valued.values,
        valued.standard_errors**2,
        active,
    )
    distances, gaps_of_shifted = np.zeros(0), gaps[:0]
    if shifted is not None:
        every_row = np.arange(shifted.game.n_rows)
        distances = reference.distances(network, shifted.inputs)
        _, gaps_of_shifted = predictions_and_gaps(network, shifted, every_row)
    rounding = _ROUNDING * network.scale.double().numpy()
    return StatedErrors.fit(held_out, distances, gaps_of_shifted, rounding)
