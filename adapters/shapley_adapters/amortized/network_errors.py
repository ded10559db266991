"""Measuring the errors of a trained network on held-out rows, and its gaps on shifted ones."""

from __future__ import annotations

import numpy as np

from ..array_types import AttributionArray, IntArray, ValueArray
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
    predictions, gaps = _predictions(network, rows, valued.rows)
    active = rows.active[valued.rows]
    shares = active[:, :, None] / np.maximum(active.sum(axis=1), 1)[:, None, None]
    held_out = RowsWithErrors(
        reference.distances(network, rows.inputs[valued.rows]),
        gaps,
        predictions + shares * gaps[:, None] - valued.values,
        valued.standard_errors**2,
        active,
    )
    distances, gaps_of_shifted = np.zeros(0), gaps[:0]
    if shifted is not None:
        every_row = np.arange(shifted.game.n_rows)
        distances = reference.distances(network, shifted.inputs)
        _, gaps_of_shifted = _predictions(network, shifted, every_row)
    rounding = _ROUNDING * network.scale.double().numpy()
    return StatedErrors.fit(held_out, distances, gaps_of_shifted, rounding)


def _predictions(
    network: ExplainerNetwork, rows: TrainingRows, indices: IntArray
) -> tuple[AttributionArray, ValueArray]:
    """Return the network's attributions of some rows, and their gaps."""
    batches = network.explained(rows.inputs[indices], rows.active[indices])
    predictions = np.concatenate(list(batches))
    return predictions, rows.grand_minus_empty[indices] - predictions.sum(axis=1)
