"""Tensors as arrays, without importing torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import FloatArray

_KNOWN_TO_NUMPY = frozenset(["torch.float16", "torch.float32", "torch.float64"])
"""Floating-point types that NumPy has, too."""


def is_tensor(value: Any) -> bool:
    """Tell whether `value` is a tensor."""
    return hasattr(value, "detach") and hasattr(value, "layout")


def array_of(value: Any) -> Any:
    """Return a tensor as an array of the same numbers; return anything else as it is.

    bfloat16 and the types of 8 bits, which NumPy lacks, become float32, which holds their numbers.
    """
    if not is_tensor(value):
        return value
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_floating_point() and str(tensor.dtype) not in _KNOWN_TO_NUMPY:
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


def array_of_tensor(tensor: Any) -> FloatArray:
    """Return the numbers of a tensor in double precision, in memory of their own.

    Models may reuse the memory of their output, and may have switched gradients on.
    """
    return np.array(array_of(tensor), dtype=np.float64)
