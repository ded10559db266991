"""Rows unlike the training rows: artificial ones, distances, and efficiency gaps.

Artificial rows show how errors grow outside the training data. A network returns attributions for
every row, even for a row unlike all training rows. Such rows are far from the training rows, and
the gap v(N) − v(∅) − Σφ, which is known after v(N) is evaluated, is larger for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy import special
from torch import Tensor

from ..array_types import AttributionArray, BoolArray, FloatArray, IntArray, ValueArray
from ..errors import row_number, warn_user
from .explainer_network import ExplainerNetwork
from .ledger import TrainingRows

_SMALLEST_SHIFT, _LARGEST_SHIFT = 0.25, 4.0
"""Shifts in standard deviations of a column."""

_FEWEST, _MOST = 16, 128

_MOST_USED, _MOST_NUMBERS = 2**14, 2**23
"""Bounds on the training rows that are copied to be shifted, and on their numbers in total."""

_MOST_STORED, _MOST_STORED_NUMBERS = 512, 2**20
"""Bounds on the number of stored rows, and on their numbers in total."""

_FACTOR = 2.0
"""A warning needs a gap of at least this many times the largest gap of held-out rows."""

_FALSE_ALARMS = 1e-6
"""Probability of a warning for a row like the held-out ones, if gaps were normal."""

_FALSE_CALLS = 1e-4
"""Probability, for a call with rows like the held-out ones, of a warning for all rows together."""

_ROUNDING = 1e-5
"""Gaps from rounding in single precision, relative to the scale of an output."""

_SHOWN = 10

_ROWS_AT_ONCE = 256

_LARGEST_DISTANCE = 1e15
"""Larger distances, which may be infinite in single precision, count as this distance."""


def mixed_rows(
    rows: npt.NDArray[np.generic], players: IntArray, n_mixed: int, seed: int
) -> npt.NDArray[np.generic]:
    """Return rows, (n, …), that take the values of each player from one of two real rows.

    The network learns values of a model, and these are correct for artificial rows too. Training on
    more rows reduces the error on real ones.

    Parameters
    ----------
    rows : array, (R, …)
        The real rows.
    players : array, (size of one row,)
        The player of each number.
    n_mixed : int
        Number of rows to return.
    seed : int
        Seed of the choice of rows and players.
    """
    rng = np.random.default_rng([seed, 3])
    first, second = rng.integers(0, len(rows), size=(2, n_mixed))
    is_first = rng.random((n_mixed, int(players.max()) + 1)) < 0.5
    takes_first = is_first[:, players].reshape(n_mixed, *rows.shape[1:])
    return np.where(takes_first, rows[first], rows[second])


def n_shifted_rows(n_training: int) -> int:
    """Return how many artificial rows to evaluate for a number of training rows."""
    return int(np.clip(n_training // 8, _FEWEST, _MOST))


def shifted_rows(rows: Any, seed: int, n_numbers: int | None = None) -> Any:
    """Return rows, an array or a frame, that are shifted away from the training rows.

    Some or all numbers of a row are moved: by noise, by a constant, or away from their mean. Whole
    numbers may be codes of categories, which a model may refuse if it does not know them. Columns
    of whole numbers, of objects that are no numbers, and with missing or infinite numbers are
    therefore never moved. They get values of other rows. Positive numbers stay positive, and shares
    between 0 and 1 within their range.

    Parameters
    ----------
    rows : array or DataFrame, (R, …)
        The training rows. If they are many, a part of them is used, to save memory.
    seed : int
        Seed of the shifts.
    n_numbers : int, optional
        The numbers of a row, if it has other parts; by default those of `rows`.
    """
    n_shifted, n_numbers = n_shifted_rows(len(rows)), n_numbers or math.prod(rows.shape[1:])
    is_frame, n_used = isinstance(rows, pd.DataFrame), max(_MOST, _MOST_NUMBERS // (n_numbers or 1))
    if len(rows) > (n_used := min(_MOST_USED, n_used)):
        used = np.random.default_rng([seed, 9]).choice(len(rows), n_used, replace=False)
        rows = (rows.iloc if is_frame else rows)[np.sort(used)]
    rng = np.random.default_rng([seed, 7])
    values = rows.to_numpy(dtype=object) if is_frame else rows
    flat = values.reshape(len(values), -1)
    base, others = flat[rng.integers(0, len(flat), size=(2, n_shifted))]
    # All numbers of a row are moved, or a random part of them.
    shares = np.where(rng.random(n_shifted) < 0.5, 1.0, rng.random(n_shifted))
    affected = rng.random(base.shape) < shares[:, None]
    affected[np.arange(n_shifted), rng.integers(0, base.shape[1], size=n_shifted)] = True
    shifted = np.where(affected & (rng.random(base.shape) < 0.5), others, base)
    columns = np.flatnonzero([_is_fraction(column) for column in flat.T])
    if len(columns):
        numbers = flat[:, columns].astype(np.float64)
        moved = _moved(base[:, columns].astype(np.float64), numbers, rng)
        shifted[:, columns] = np.where(affected[:, columns], moved, base[:, columns])
    if is_frame:
        return pd.DataFrame(shifted, columns=rows.columns).astype(rows.dtypes)
    return shifted.reshape(n_shifted, *values.shape[1:])


def _moved(base: FloatArray, numbers: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the rows of `base`, (n, D), moved by noise, by a constant, or away from the mean."""
    n = len(base)
    centre, spread = numbers.mean(axis=0), numbers.std(axis=0)
    logarithms = rng.uniform(np.log(_SMALLEST_SHIFT), np.log(_LARGEST_SHIFT), size=(n, 1))
    factor, kind = np.exp(logarithms), rng.integers(0, 3, size=(n, 1))
    noise = rng.normal(size=base.shape) * spread
    constant = rng.choice([-1.0, 1.0], size=(n, 1)) * spread
    moved = base + factor * np.choose(kind, [noise, constant, base - centre])
    # Nowhere negative, or above 1, where the numbers of the training rows are not: a model may take
    # their logarithms, or read them as probabilities.
    lowest, highest = numbers.min(axis=0), numbers.max(axis=0)
    are_positive = lowest >= 0
    are_shares = are_positive & (highest <= 1)
    return np.clip(
        moved, np.where(are_positive, lowest, -np.inf), np.where(are_shares, highest, np.inf)
    )


def _is_fraction(column: npt.NDArray[Any]) -> bool:
    """Return whether a column holds finite numbers that are not all whole."""
    if column.dtype.kind != "f" and not all(isinstance(x, (float, np.floating)) for x in column):
        return False
    numbers = column.astype(np.float64)
    return bool(np.isfinite(numbers).all() and (numbers != np.round(numbers)).any())


@dataclass(frozen=True)
class ReferenceRows:
    """Training rows, in units of the standard deviations of their columns.

    Attributes
    ----------
    rows : Tensor, (n, D)
        The rows, in single precision.
    """

    rows: Tensor

    @classmethod
    def draw(
        cls, network: ExplainerNetwork, inputs: Any, training_rows: IntArray, seed: int
    ) -> ReferenceRows:
        """Return random training rows."""
        size = max(1, int(np.prod(inputs.shape[1:])))
        n_rows = min(_MOST_STORED, max(1, _MOST_STORED_NUMBERS // size), len(training_rows))
        order = np.random.default_rng([seed, 8]).permutation(len(training_rows))
        return cls(network.flattened(inputs[np.sort(training_rows[order[:n_rows]])]))

    def distances(self, network: ExplainerNetwork, inputs: Any) -> FloatArray:
        """Return the distance of each row to the nearest of these rows, (R,).

        It is the root mean square difference in standard deviations; for whole numbers, which stand
        for tokens or categories, the root of the share of different numbers.
        """
        is_whole = not network.centre.numel()
        distances = np.empty(len(inputs))
        for start in range(0, len(inputs), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            rows = network.flattened(inputs[part])
            if is_whole:
                counts = [(row != self.rows).sum(dim=1).min() for row in rows]
                squares = torch.stack(counts).double()
            else:
                # Without matrix products, whose rounding would depend on the number of rows.
                exact = "donot_use_mm_for_euclid_dist"
                nearest = torch.cdist(rows, self.rows, compute_mode=exact).min(dim=1).values
                squares = nearest.double().clamp(max=_LARGEST_DISTANCE) ** 2
            distances[part] = np.sqrt(squares.numpy() / max(1, rows.shape[1]))
        return distances


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

    def relative(self, gaps: ValueArray) -> FloatArray:
        """Return the largest of each row's gaps, (R, K), divided by the sizes, as (R,)."""
        return (np.abs(gaps) / np.array(self.sizes)).max(axis=1, initial=0.0)

    def rows_beyond(self, gaps: ValueArray) -> IntArray:
        """Return the rows with unusually large gaps, (R, K); none if gaps are NaN.

        These are the rows with gaps too large for chance. If too many rows for chance are above the
        largest gap of the held-out rows, all of those are returned.
        """
        relative = self.relative(gaps)
        beyond: IntArray = np.flatnonzero(relative > self.largest)
        # If all rows are alike, all orders of their gaps have the same probability.
        n_remaining = len(gaps) - np.arange(len(beyond))
        if np.prod(n_remaining / (n_remaining + self.n_rows)) < _FALSE_CALLS:
            return beyond
        share = _FALSE_ALARMS / (2 * len(self.sizes))
        limit = max(-float(special.stdtrit(self.n_rows, share)), _FACTOR * self.largest)
        return beyond[relative[beyond] > limit]


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
    return values + share * gaps[:, None]


def warn_of_rows(rows: IntArray, n_rows: int, reason: str, advice: str = "") -> None:
    """Warn about rows that are unlike the training rows, for a reason."""
    if not len(rows):
        return
    numbers = ", ".join(str(row_number(row)) for row in rows[:_SHOWN])
    numbers += ", …" if len(rows) > _SHOWN else ""
    warn_user(
        f"{len(rows)} of {n_rows} rows are unlike the rows that the network was trained on: "
        f"{reason}. Do not trust the attributions of rows {numbers}. {advice}Explain these rows by "
        "oddgp, or train on rows like them; last_unlike_rows holds the indices of all of them."
    )
