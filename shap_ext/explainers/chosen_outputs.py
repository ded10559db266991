"""The outputs that a call explains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shapley_adapters.arguments import checked_count
from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..argument_types import Outputs
from ..shap_internals import is_op_chain


def checked_outputs(outputs: Outputs) -> Any:
    """Return checked indices of outputs, or a chain of operations as it is."""
    if is_op_chain(outputs):
        return outputs
    if isinstance(outputs, (str, bytes)) or not isinstance(outputs, (Sequence, np.ndarray)):
        raise InvalidArgumentTypeError(
            f"outputs must be a list of places of outputs; got {type(outputs).__name__}."
        )
    if len(outputs) == 0:
        raise InvalidArgumentError("outputs is empty; pass None to explain all outputs.")
    return [checked_count("outputs", index, minimum=0) for index in outputs]


def check_range(outputs: Sequence[int] | IntArray, n_outputs: int) -> None:
    """Raise an error if an index is beyond the model's outputs."""
    if max(outputs) >= n_outputs:
        raise InvalidArgumentError(
            f"outputs={list(outputs)} names outputs beyond the model's {n_outputs}, counted from 0."
        )
