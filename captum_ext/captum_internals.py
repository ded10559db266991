"""Every piece of captum that is not public and that we use. Checked with captum 0.8 and 0.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from captum._utils.common import _select_targets
from captum._utils.typing import BaselineType, TargetType, TensorOrTupleOfTensorsGeneric
from captum.log import log_usage

__all__ = [
    "BaselineType",
    "TargetType",
    "TensorOrTupleOfTensorsGeneric",
    "counted_usage",
    "select_targets",
]

# Sets `__wrapped__`, through which NoiseTunnel, the metrics and the layer methods call `attribute`.
counted_usage: Callable[[Callable[..., Any]], Callable[..., Any]] = log_usage(part_of_slo=True)


def select_targets(output: Any, target: Any) -> Any:
    """Select the target of each example as captum does."""
    return _select_targets(output, target)
