"""Several explanations of the same inputs, ready to be combined."""

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


def checked_candidates(given: Any) -> FloatArray:
    """Return candidates, (G, …, M), of an array or of a sequence of explanations of one shape."""
    if isinstance(given, Sequence):
        arrays = [checked_attributions(f"candidates[{i}]", one) for i, one in enumerate(given)]
        shapes = [array.shape for array in arrays]
        if len(set(shapes)) > 1:
            raise InvalidArgumentError(
                f"candidates must explain the same rows and features; their shapes are {shapes}."
            )
        given = np.stack(arrays) if arrays else np.zeros((0, 1, 1))
    if len(given) == 0:
        raise InvalidArgumentError("candidates are missing: pass at least one explanation.")
    values = checked_attributions("candidates", given)
    if values.ndim < 2:
        raise InvalidArgumentError(
            f"candidates have shape {values.shape}; (candidates, …, features) is needed."
        )
    return values


def on_one_scale(candidates: FloatArray, scale: str) -> FloatArray:
    """Bring the candidates of each input to the same size.

    Explainers may answer in units of their own: a gradient is no difference of outputs.

    Parameters
    ----------
    candidates : array, (G, …, M)
        The candidates.
    scale : {"none", "l1", "l2", "max"}
        What is made equal: nothing, the sum of the absolute attributions, their Euclidean length,
        or the largest of them. Each candidate is divided by its size and multiplied by the mean
        size of the candidates of that input, so that the units stay near those of the candidates.
        A candidate that is zero throughout stays so, and does not count.
    """
    checked_choice("scale", scale, SCALES)
    if scale == "none":
        return candidates
    sizes = np.linalg.norm(candidates, ord=_ORDERS[scale], axis=-1, keepdims=True)
    n_positive = (sizes > 0).sum(axis=0)
    mean = sizes.sum(axis=0) / np.maximum(n_positive, 1)
    scaled: FloatArray = candidates / np.where(sizes > 0, sizes, 1.0) * mean
    return scaled
