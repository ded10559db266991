"""How far a network misses the sums of held-out rows, and which rows it misses by far more.

A network answers for any row, also for one unlike all that it was trained on. What its
attributions miss of v(N) − v(∅) is known once v(N) is evaluated, and grows on such rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..array_types import FloatArray, IntArray, ValueArray
from ..errors import warn_user
from .explainer_network import ExplainerNetwork

if TYPE_CHECKING:
    from .training_rows import TrainingRows

_FACTOR = 2.0
"""Of the largest gap of held-out rows."""

_FALSE_ALARMS = 1e-6
"""Share of the rows like those held out that would be warned of if gaps were normal."""

_FALSE_CALLS = 1e-4
"""Share of the calls with rows like those held out in which the rows together are warned of."""

_ROUNDING = 1e-5
"""Of an output's scale: gaps of this size are those of single precision."""

_SHOWN = 10


@dataclass(frozen=True)
class HeldOutGaps:
    """The efficiency gaps of a network on rows that it was not trained on.

    Attributes
    ----------
    sizes : tuple of float, (K,)
        Root of the mean square of the gaps of each output.
    largest : float
        The largest gap of all rows and outputs, in units of its output's size.
    n_rows : int
        How many rows were held out.
    """

    sizes: tuple[float, ...]
    largest: float
    n_rows: int

    @classmethod
    def of(cls, network: ExplainerNetwork, rows: TrainingRows, held_out: IntArray) -> HeldOutGaps:
        """Compute the gaps of held-out rows; costs no evaluations."""
        told = network.explained(rows.inputs[held_out], rows.active[held_out])
        gaps = rows.rise[held_out] - np.concatenate([values.sum(axis=1) for values in told])
        rounding = _ROUNDING * network.scale.double().numpy()
        sizes = np.maximum(np.sqrt((gaps**2).mean(axis=0)), rounding)
        return cls(tuple(sizes.tolist()), float((np.abs(gaps) / sizes).max()), len(held_out))

    @property
    def limit(self) -> float:
        """The largest gap that is not warned of, in units of the sizes."""
        share = _FALSE_ALARMS / (2 * len(self.sizes))
        return max(-float(special.stdtrit(self.n_rows, share)), _FACTOR * self.largest)

    def relative(self, gaps: ValueArray) -> FloatArray:
        """Return the gap of each row, (R,), in units of the sizes, of gaps (R, K)."""
        found: FloatArray = (np.abs(gaps) / np.array(self.sizes)).max(axis=1, initial=0.0)
        return found

    def rows_beyond(self, gaps: ValueArray) -> IntArray:
        """Return the rows with gaps, (R, K), beyond what is usual; none where gaps are NaN.

        These are the rows beyond `limit`. Where more rows than chance allows lie beyond the largest
        gap of the held-out rows, it is all those.
        """
        relative = self.relative(gaps)
        beyond: IntArray = np.flatnonzero(relative > self.largest)
        if self._probability(len(beyond), len(gaps)) < _FALSE_CALLS:
            return beyond
        return beyond[relative[beyond] > self.limit]

    def _probability(self, n_beyond: int, n_rows: int) -> float:
        """Return the probability of so many rows beyond the largest gap, were all rows alike.

        All orders of all gaps are then equally probable, whatever their distribution.
        """
        left = n_rows - np.arange(n_beyond)
        return float(np.prod(left / (left + self.n_rows)))


def warn_of_rows(rows: IntArray, gaps: ValueArray, known: HeldOutGaps) -> None:
    """Warn of rows, found by their gaps, (R, K), for which the network was not trained."""
    if not len(rows):
        return
    shown = ", ".join(map(str, rows[:_SHOWN])) + (", …" if len(rows) > _SHOWN else "")
    largest = known.relative(gaps).max()
    warn_user(
        f"{len(rows)} of {len(gaps)} rows are unlike those that the network was trained on: what "
        f"its attributions miss of the model's output is up to {largest / known.largest:.3g} times "
        f"the largest gap of {known.n_rows} held-out rows. Do not trust the attributions of rows "
        f"{shown}. Explain these rows by oddgp, or train on rows like them; last_unlike_rows holds "
        "the numbers of all of them."
    )
