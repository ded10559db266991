"""An attribution method with the arguments of its call, for batches of a table."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from shapley_adapters.batches.batch_function import (
    BatchAttributions,
    BatchFunction,
    make_batch_function,
)
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.frames import floats_from_frame


def batch_function(
    method: Any,
    example: Any,
    features: Sequence[str] | None,
    keep: Sequence[str],
    prefix: str,
    options: dict[str, Any],
) -> BatchFunction:
    """Return a function from a batch of a table to attributions; see `CoalitionAttribution`."""
    explain = FrameAttribution.from_method(method, options)
    return make_batch_function(explain, example, features, keep, prefix)


@dataclass(frozen=True)
class FrameAttribution:
    """Attributes the output to the columns of frames.

    Attributes
    ----------
    method : method of captum_ext
        The method.
    options : dict
        The arguments of `attribute` that differ from the defaults.
    dtype : torch.dtype
        The precision of the inputs.
    """

    method: Any
    options: dict[str, Any]
    dtype: torch.dtype

    @classmethod
    def from_method(cls, method: Any, options: dict[str, Any]) -> FrameAttribution:
        """Return the method without its latest estimate and without workers of its own."""
        twin = copy.copy(method)
        twin.last_estimate, twin.n_jobs = None, 1
        options_of_call = {
            name: value
            for name, value in options.items()
            if value is not None and value is not False
        }
        return cls(twin, options_of_call, _precision_of(method.forward_func))

    def __call__(self, rows: pd.DataFrame) -> BatchAttributions:
        """Attribute for the rows of a frame of features."""
        method = copy.copy(self.method)  # threads may share the object, not the latest estimate
        inputs = torch.tensor(floats_from_frame(rows), dtype=self.dtype)
        method.attribute(inputs, **self.options)
        estimate = method.last_estimate
        if estimate is None or len(estimate.values) != len(rows):
            raise InvalidArgumentError(
                "batch_function needs a forward_func that returns an output for each row."
            )
        n_outputs = estimate.values.shape[2]
        has_errors = "return_standard_error" in self.options
        return BatchAttributions(
            estimate.values,
            estimate.standard_errors if has_errors else None,
            estimate.empty_values,
            list(map(str, rows.columns)),
            None if n_outputs == 1 else list(map(str, range(n_outputs))),
        )


def _precision_of(forward_func: Any) -> torch.dtype:
    """Return the precision of a module's parameters, or torch's default."""
    module = getattr(forward_func, "__self__", forward_func)
    if isinstance(module, torch.nn.Module):
        for parameter in module.parameters():
            if parameter.is_floating_point():
                return parameter.dtype
    return torch.get_default_dtype()
