"""All private parts of captum that we use. Checked with captum 0.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from captum._utils.common import _select_targets
from captum._utils.typing import BaselineType, TargetType, TensorOrTupleOfTensorsGeneric
from captum.attr._core.llm_attr import DEFAULT_GEN_ARGS, _convert_ids_to_pretty_tokens
from captum.log import log_usage
from torch import Tensor

from .argument_types import Target

__all__ = [
    "DEFAULT_GEN_ARGS",
    "BaselineType",
    "TargetType",
    "TensorOrTupleOfTensorsGeneric",
    "counted_usage",
    "readable_tokens",
    "select_targets",
]

# Sets `__wrapped__`, through which NoiseTunnel, the metrics and the layer methods call `attribute`.
counted_usage: Callable[[Callable[..., Any]], Callable[..., Any]] = log_usage(part_of_slo=True)


def select_targets(output: Tensor, target: Target) -> Any:
    """Select the target of each example as captum does."""
    return _select_targets(output, target)


def readable_tokens(tokens: Tensor, tokenizer: Any) -> list[str]:
    """Return the texts of tokens as captum shows them."""
    return _convert_ids_to_pretty_tokens(tokens, tokenizer)
