"""Types of what users pass to captum's side, by role."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor
from torch.futures import Future

ForwardFunction: TypeAlias = "Callable[..., Tensor | Future[Tensor] | complex]"
"""The function that is explained; returns outputs, or one number for the whole batch."""

Inputs: TypeAlias = "Tensor | tuple[Tensor, ...]"
"""The inputs; the first dimension counts the examples."""
