"""Every piece of captum that is not public and that we use. Checked with captum 0.8 and 0.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from captum._utils.common import _run_forward, _select_targets
from captum._utils.typing import BaselineType, TargetType, TensorOrTupleOfTensorsGeneric
from captum.log import log_usage

__all__ = [
    "BaselineType",
    "TargetType",
    "TensorOrTupleOfTensorsGeneric",
    "counted_usage",
    "run_forward",
    "select_targets",
]

# Sets `__wrapped__`, through which NoiseTunnel, the metrics and the layer methods call `attribute`.
counted_usage: Callable[[Callable[..., Any]], Callable[..., Any]] = log_usage(part_of_slo=True)


def run_forward(
    forward_func: Callable[..., Any], inputs: Any, additional_forward_args: tuple[Any, ...]
) -> Any:
    """Call the forward function as captum does, without selecting a target."""
    return _run_forward(forward_func, inputs, None, additional_forward_args or None)


def select_targets(output: Any, target: Any) -> Any:
    """Select the target of each example as captum does."""
    return _select_targets(output, target)
