"""Conversion of tensors to arrays, without importing torch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..array_types import FloatArray

_KNOWN_TO_NUMPY = frozenset(["torch.float16", "torch.float32", "torch.float64"])
"""Floating-point types that NumPy also has."""


def is_tensor(value: Any) -> bool:
    """Return whether `value` is a tensor."""
    return hasattr(value, "detach") and hasattr(value, "layout")


def array_of(value: Any) -> Any:
    """Return a tensor as an array of the same numbers; return anything else as it is.

    bfloat16 and the 8-bit types, which NumPy lacks, become float32, which represents them exactly.
    """
    if not is_tensor(value):
        return value
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_floating_point() and str(tensor.dtype) not in _KNOWN_TO_NUMPY:
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


def array_of_tensor(tensor: Any) -> FloatArray:
    """Return a copy of a tensor as an array in double precision.

    A copy is needed because models may reuse the memory of their output.
    """
    return np.array(array_of(tensor), dtype=np.float64)


def tensor_beside(value: Any, array: Any) -> Any:
    """Return an array as a tensor on the device of `value` if that is a tensor; else as it is."""
    if not is_tensor(value):
        return array
    return sys.modules["torch"].from_numpy(array).to(value.device)
