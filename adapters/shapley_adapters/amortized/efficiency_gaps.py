"""Efficiency gaps of a network on held-out rows, and rows with far larger gaps.

A network returns attributions for every row, even for a row unlike all training rows. The gap
v(N) − v(∅) − Σφ is known after v(N) is evaluated, and is larger for such rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..array_types import AttributionArray, BoolArray, FloatArray, IntArray, ValueArray
from ..errors import row_number, warn_user
from .explainer_network import ExplainerNetwork

if TYPE_CHECKING:
    from .training_rows import TrainingRows

_FACTOR = 2.0
"""A warning needs a gap of at least this many times the largest gap of held-out rows."""

_FALSE_ALARMS = 1e-6
"""Probability of a warning for a row like the held-out ones, if gaps were normal."""

_FALSE_CALLS = 1e-4
"""Probability, for a call with rows like the held-out ones, of a warning for all rows together."""

_ROUNDING = 1e-5
"""Gaps from rounding in single precision, relative to the scale of an output."""

_SHOWN = 10


@dataclass(frozen=True)
class HeldOutGaps:
    """The efficiency gaps of a network on held-out rows.

    Attributes
    ----------
    sizes : tuple of float, (K,)
        Root mean square of the gaps of each output.
    largest : float
        The largest gap of all rows and outputs, divided by its output's size.
    n_rows : int
        Number of held-out rows.
    """

    sizes: tuple[float, ...]
    largest: float
    n_rows: int

    @classmethod
    def from_network(
        cls, network: ExplainerNetwork, rows: TrainingRows, held_out: IntArray
    ) -> HeldOutGaps:
        """Compute the gaps of held-out rows; costs no evaluations."""
        _, gaps = predictions_and_gaps(network, rows, held_out)
        rounding = _ROUNDING * network.scale.double().numpy()
        sizes = np.maximum(np.sqrt((gaps**2).mean(axis=0)), rounding)
        return cls(tuple(sizes.tolist()), float((np.abs(gaps) / sizes).max()), len(held_out))

    @property
    def limit(self) -> float:
        """The largest gap without a warning, divided by the sizes."""
        share = _FALSE_ALARMS / (2 * len(self.sizes))
        return max(-float(special.stdtrit(self.n_rows, share)), _FACTOR * self.largest)

    def relative(self, gaps: ValueArray) -> FloatArray:
        """Return the largest of each row's gaps, (R, K), divided by the sizes, as (R,)."""
        relative_gaps: FloatArray = (np.abs(gaps) / np.array(self.sizes)).max(axis=1, initial=0.0)
        return relative_gaps

    def rows_beyond(self, gaps: ValueArray) -> IntArray:
        """Return the rows with unusually large gaps, (R, K); none if gaps are NaN.

        These are the rows with gaps above `limit`. If the number of rows above the largest gap of
        the held-out rows is too large for chance, all of those are returned.
        """
        relative = self.relative(gaps)
        beyond: IntArray = np.flatnonzero(relative > self.largest)
        if self._probability(len(beyond), len(gaps)) < _FALSE_CALLS:
            return beyond
        return beyond[relative[beyond] > self.limit]

    def _probability(self, n_beyond: int, n_rows: int) -> float:
        """Return the probability of so many rows above the largest gap, if all rows are alike.

        In that case all orders of the gaps have the same probability, for any distribution.
        """
        n_remaining = n_rows - np.arange(n_beyond)
        return float(np.prod(n_remaining / (n_remaining + self.n_rows)))


def predictions_and_gaps(
    network: ExplainerNetwork, rows: TrainingRows, indices: IntArray
) -> tuple[AttributionArray, ValueArray]:
    """Return the network's attributions of some rows, and their gaps; costs no evaluations."""
    batches = network.explained(rows.inputs[indices], rows.active[indices])
    predictions = np.concatenate(list(batches))
    return predictions, rows.grand_minus_empty[indices] - predictions.sum(axis=1)


def with_residual(
    values: AttributionArray, gaps: ValueArray, active: BoolArray
) -> AttributionArray:
    """Share gaps, (R, K), equally among the active players."""
    share = active[:, :, None] / np.maximum(active.sum(axis=1), 1)[:, None, None]
    shared: AttributionArray = values + share * gaps[:, None]
    return shared


def warn_of_rows(rows: IntArray, gaps: ValueArray, held_out_gaps: HeldOutGaps) -> None:
    """Warn about rows that are unlike the training rows, with the gaps of all rows, (R, K)."""
    if not len(rows):
        return
    row_numbers = ", ".join(str(row_number(row)) for row in rows[:_SHOWN]) + (
        ", …" if len(rows) > _SHOWN else ""
    )
    largest = held_out_gaps.relative(gaps).max()
    warn_user(
        f"{len(rows)} of {len(gaps)} rows are unlike the rows that the network was trained on: the "
        "sum of their attributions differs from the model's output by up to "
        f"{largest / held_out_gaps.largest:.3g} times the largest gap of {held_out_gaps.n_rows} "
        f"held-out rows. Do not trust the attributions of rows {row_numbers}. Explain these rows "
        "by oddgp, or train on rows like them; last_unlike_rows holds the indices of all of them."
    )
