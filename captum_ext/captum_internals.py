"""All private parts of captum that we use. Checked with captum 0.8 and 0.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from captum._utils.common import _select_targets
from captum._utils.typing import BaselineType, TargetType, TensorOrTupleOfTensorsGeneric
from captum.log import log_usage
from torch import Tensor, nn

from .argument_types import Target

__all__ = [
    "BaselineType",
    "SecondStep",
    "TargetType",
    "TensorOrTupleOfTensorsGeneric",
    "counted_usage",
    "select_targets",
]

# Sets `__wrapped__`, through which NoiseTunnel, the metrics and the layer methods call `attribute`.
counted_usage: Callable[[Callable[..., Any]], Callable[..., Any]] = log_usage(part_of_slo=True)


def select_targets(output: Tensor, target: Target) -> Any:
    """Select the target of each example as captum does."""
    return _select_targets(output, target)


class SecondStep:
    """A language model that stops at the second token, to check which inputs captum passes to it.

    Parameters
    ----------
    model : Module
        The model, which runs for the first token.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._lengths: list[int] = []

    @property  # type: ignore[misc] # captum 0.8 asks whether it is a model of transformers
    def __class__(self) -> Any:
        return type(self._model)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model once; store the number of its input tokens."""
        ids = args[0] if args else kwargs["input_ids"]
        self._lengths.append(ids.shape[1])
        if len(self._lengths) == 2:
            raise _StopError
        return self._model.forward(*args, **kwargs)

    def holds_one_token(self, run: Callable[[], Any]) -> bool:
        """Return whether the second step of `run` passes only the new token to the model.

        It is also False if captum cannot use the cache, because the model lacks the methods of
        transformers or their arguments. Other errors of the model occur again without a cache.
        """
        try:
            with torch.no_grad():
                run()
        except _StopError:
            return self._lengths[1] == 1
        except (AttributeError, TypeError):
            return False
        return False


class _StopError(Exception):
    """The second step is reached."""
