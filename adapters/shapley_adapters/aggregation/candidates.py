"""Several explanations of the same inputs: checks and scaling before they are combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments import checked_choice
from ..array_types import FloatArray
from ..criteria.attribution_arrays import checked_attributions
from ..errors import InvalidArgumentError

SCALES = ("none", "l1", "l2", "max")
_ORDERS = {"l1": 1, "l2": 2, "max": np.inf}


def checked_candidates(candidates: Any) -> FloatArray:
    """Return an array, or a sequence of explanations of one shape, as candidates, (G, …, M)."""
    if isinstance(candidates, Sequence):
        arrays = [
            checked_attributions(f"candidates[{i}]", candidate)
            for i, candidate in enumerate(candidates)
        ]
        shapes = [array.shape for array in arrays]
        if len(set(shapes)) > 1:
            raise InvalidArgumentError(
                f"candidates must explain the same rows and features; their shapes are {shapes}."
            )
        candidates = np.stack(arrays) if arrays else np.zeros((0, 1, 1))
    if len(candidates) == 0:
        raise InvalidArgumentError("candidates are missing: pass at least one explanation.")
    values = checked_attributions("candidates", candidates)
    if values.ndim < 2:
        raise InvalidArgumentError(
            f"candidates have shape {values.shape}; (candidates, …, features) is needed."
        )
    return values


def on_one_scale(candidates: FloatArray, scale: str) -> FloatArray:
    """Scale the candidates of each input to the same size.

    Explainers may use different units: a gradient, for example, is not a difference of outputs.

    Parameters
    ----------
    candidates : array, (G, …, M)
        The candidates.
    scale : {"none", "l1", "l2", "max"}
        The size that is made equal: none, the sum of the absolute attributions, their Euclidean
        length, or the largest absolute attribution. Each candidate is divided by its size and
        multiplied by the mean size of the candidates of that input. A candidate of zeros stays
        zero and does not count in the mean.
    """
    checked_choice("scale", scale, SCALES)
    if scale == "none":
        return candidates
    sizes = np.linalg.norm(candidates, ord=_ORDERS[scale], axis=-1, keepdims=True)
    n_positive = (sizes > 0).sum(axis=0)
    mean = sizes.sum(axis=0) / np.maximum(n_positive, 1)
    scaled: FloatArray = candidates / np.where(sizes > 0, sizes, 1.0) * mean
    return scaled
