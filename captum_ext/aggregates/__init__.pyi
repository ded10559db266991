"""What type checkers and editors read; tests/test_public_signatures.py writes the classes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..argument_types import Inputs, Method
from .methods import AggregateAttribution
from .methods import Convex as Convex

__all__ = [
    "AVA",
    "Centroid",
    "Convex",
    "LowComplexity",
]

class AVA(AggregateAttribution):
    """A row explained by its nearest rows (AVA): how these are searched, and weighted."""

    n_neighbors: int | None
    metric: str | Callable[..., float]
    metric_params: Mapping[str, Any] | None
    normalized: bool
    at_zero: str
    smoothing: float
    attribution_method: Method
    dataset: Inputs
    embed: Callable[..., Any] | None
    def __init__(
        self,
        attribution_method: Method,
        dataset: Inputs,
        *,
        n_neighbors: int | None = ...,
        metric: str | Callable[..., float] = ...,
        metric_params: Mapping[str, Any] | None = ...,
        normalized: bool = ...,
        at_zero: str = ...,
        smoothing: float = ...,
        embed: Callable[..., Any] | None = ...,
    ) -> None: ...

class Centroid(AggregateAttribution):
    """The explanation nearest to several others, by a power of a distance."""

    distance: str | float
    power: float | None
    scale: str
    order: str
    approximate: bool
    def __init__(
        self,
        attribution_methods: Sequence[Any],
        *,
        distance: str | float = ...,
        power: float | None = ...,
        scale: str = ...,
        order: str = ...,
        approximate: bool = ...,
    ) -> None: ...

class LowComplexity(AggregateAttribution):
    """An explanation no more complex than any of several, from the region that they span."""

    method: str
    scale: str
    n_steps: int
    n_rounds: int
    tolerance: float
    n_points: int
    def __init__(
        self,
        attribution_methods: Sequence[Any],
        *,
        method: str = ...,
        scale: str = ...,
        n_steps: int = ...,
        n_rounds: int = ...,
        tolerance: float = ...,
        n_points: int = ...,
    ) -> None: ...
