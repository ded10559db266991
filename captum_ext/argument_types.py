"""Types of the arguments that users pass to captum's side, by role."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor
    from torch.futures import Future

ForwardFunction: TypeAlias = "Callable[..., Tensor | Future[Tensor] | float]"
"""The function that is explained; returns outputs, or one number for the whole batch."""

Inputs: TypeAlias = "Tensor | tuple[Tensor, ...]"
"""The inputs; the first dimension counts the examples."""

Batches: TypeAlias = "Inputs | Iterable[Any]"
"""Inputs, or batches of them, such as a DataLoader yields."""


class DrawnBaselines(Protocol):
    """Baselines that are drawn given the present features, as in `captum_ext.conditional`."""

    @property
    def draws(self) -> Any:
        """Their distribution, with its random numbers."""


Baselines: TypeAlias = (
    "Tensor | float | tuple[Tensor | float, ...] | Callable[..., Any] | DrawnBaselines | None"
)
"""Values of absent features, a function that returns them, or their distribution."""

Target: TypeAlias = (
    "int | tuple[int, ...] | Tensor | Sequence[int] | Sequence[tuple[int, ...]] | "
    "Callable[[Tensor], Tensor] | None"
)
"""Which output is explained, for all examples or for each; or a function of the outputs."""

FeatureMask: TypeAlias = "Tensor | tuple[Tensor, ...] | None"
"""Whole numbers that say which features form a group."""


class HasAttribute(Protocol):
    """One of captum's attribution methods."""

    @property
    def attribute(self) -> Callable[..., Any]:
        """Return attributions of inputs."""


Method: TypeAlias = Callable[..., Any] | HasAttribute
"""An attribution method, or a function of inputs that returns attributions."""

Attributions: TypeAlias = "Tensor | tuple[Tensor, ...] | npt.NDArray[Any]"
"""The return value of a method for inputs."""
