"""Measuring the errors of a trained network on held-out rows, and its gaps on shifted ones."""

from __future__ import annotations

import numpy as np

from .efficiency_gaps import predictions_and_gaps, with_residual
from .explainer_network import ExplainerNetwork
from .held_out_values import HeldOutValues
from .reference_rows import ReferenceRows
from .stated_errors import RowsWithErrors, StatedErrors
from .training_rows import TrainingRows

_ROUNDING = 1e-6
"""Smallest error that is stated, relative to the scale of an output: single precision."""


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
