"""Every piece of shap that is not public and that we use. Checked with shap 0.46 to 0.51."""

from __future__ import annotations

from typing import Any

import numpy as np
import shap
from shap._serializable import Deserializer, Serializer

__all__ = ["BUILT_IN_ALGORITHMS", "Deserializer", "Serializer", "background_of", "is_identity"]

BUILT_IN_ALGORITHMS = frozenset(
    ["auto", "exact", "permutation", "partition", "tree", "additive", "linear", "deep"]
)


def background_of(masker: Any) -> Any:
    """Return the background of a masker that only puts background values in, (B, D), else None.

    Arrays that shap leaves as they are, such as images, are backgrounds themselves. shap's tabular
    maskers keep state between calls and multiply by the mask, so that NaN leaks; their background
    is all that is needed to mask without them.
    """
    if isinstance(masker, np.ndarray):
        return masker.reshape(len(masker), -1)
    plain = (shap.maskers.Independent, shap.maskers.Partition)
    tabular_call = shap.maskers.Independent.__call__
    if isinstance(masker, plain) and type(masker).__call__ is tabular_call:
        return masker.data
    return None


def is_identity(link: Any) -> bool:
    """Tell whether `link` is shap's identity."""
    return link is shap.links.identity
