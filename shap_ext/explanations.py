"""Estimates as shap Explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shap

from shapley_adapters import Estimate
from shapley_adapters.array_types import FloatArray

_NORMAL_95 = 1.959963984540054
"""Standard errors from the middle to either end of a 95 % interval of the normal distribution."""


@dataclass(frozen=True)
class Part:
    """One model input's share of the players.

    Attributes
    ----------
    first : int
        Its first player.
    shape : tuple of int
        The shape of one row's attributions.
    data, display_data : arrays
        The explained rows, and how plots are to show them.
    feature_names : list of str, or None
        Names of the features.
    """

    first: int
    shape: tuple[int, ...]
    data: Any
    display_data: Any
    feature_names: list[str] | None

    def of(self, per_player: FloatArray) -> FloatArray:
        """Return the part of something given for all players, (R, M, …), in the row's shape."""
        size = int(np.prod(self.shape))
        own = per_player[:, self.first : self.first + size]
        return own.reshape(len(own), *self.shape, *own.shape[2:])


def explanations(
    estimate: Estimate,
    parts: Sequence[Part],
    *,
    error_bounds: bool,
    outputs: Sequence[int] | None,
    output_names: Sequence[str] | None,
    clustering: Any,
    compute_time: float,
) -> Any:
    """Return one Explanation, or a list with one for each model input.

    Models with one output get values (R, M) and base values (R,), as shap's plots want them.
    """
    n_outputs = estimate.values.shape[2]
    chosen = np.arange(n_outputs) if outputs is None else np.asarray(outputs)
    is_single = n_outputs == 1

    def select(values: FloatArray) -> FloatArray:
        return values[..., 0] if is_single else values[..., chosen]

    values, errors = select(estimate.values), select(estimate.standard_errors)
    names = None
    if output_names is not None and not is_single:
        names = [str(output_names[int(index)]) for index in chosen]
    made = []
    for part in parts:
        own, own_errors = part.of(values), part.of(errors)
        made.append(
            shap.Explanation(
                own,
                base_values=select(estimate.empty_values),
                data=part.data,
                display_data=part.display_data,
                feature_names=part.feature_names,
                output_names=names,
                lower_bounds=own - _NORMAL_95 * own_errors if error_bounds else None,
                upper_bounds=own + _NORMAL_95 * own_errors if error_bounds else None,
                error_std=own_errors if error_bounds else None,
                clustering=clustering,
                compute_time=compute_time,
            )
        )
    return made[0] if len(made) == 1 else made
