"""What type checkers and editors read; tests/test_public_signatures.py writes the classes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..argument_types import ExplainerLike, Link, Masker, Model
from .aggregate_explainer import AggregateExplainer
from .methods import ConvexExplainer as ConvexExplainer

__all__ = [
    "AVAExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "LowComplexityExplainer",
]

class AVAExplainer(AggregateExplainer):
    """A row explained by its nearest rows (AVA): how these are searched, and weighted."""

    n_neighbors: int | None
    metric: str | Callable[..., float]
    metric_params: Mapping[str, Any] | None
    normalized: bool
    at_zero: str
    smoothing: float
    embed: Callable[..., Any] | None
    explainer: ExplainerLike
    dataset: Any
    def __init__(
        self,
        model: Model,
        masker: Masker = ...,
        link: Link = ...,
        *,
        feature_names: Sequence[str] | None = ...,
        output_names: Sequence[str] | None = ...,
        linearize_link: bool = ...,
        seed: int | None = ...,
        model_output: str = ...,
        n_jobs: int | None = ...,
        n_neighbors: int | None = ...,
        metric: str | Callable[..., float] = ...,
        metric_params: Mapping[str, Any] | None = ...,
        normalized: bool = ...,
        at_zero: str = ...,
        smoothing: float = ...,
        embed: Callable[..., Any] | None = ...,
        explainer: ExplainerLike = ...,
        dataset: Any = ...,
    ) -> None: ...

class CentroidExplainer(AggregateExplainer):
    """The explanation nearest to several others, by a power of a distance."""

    distance: str | float
    power: float | None
    scale: str
    order: str
    approximate: bool
    def __init__(
        self,
        model: Model,
        masker: Masker = ...,
        link: Link = ...,
        *,
        feature_names: Sequence[str] | None = ...,
        output_names: Sequence[str] | None = ...,
        linearize_link: bool = ...,
        seed: int | None = ...,
        model_output: str = ...,
        n_jobs: int | None = ...,
        explainers: Sequence[Any] | None = ...,
        distance: str | float = ...,
        power: float | None = ...,
        scale: str = ...,
        order: str = ...,
        approximate: bool = ...,
    ) -> None: ...

class LowComplexityExplainer(AggregateExplainer):
    """An explanation no more complex than any of several, from the region that they span."""

    method: str
    scale: str
    n_steps: int
    n_rounds: int
    tolerance: float
    n_points: int
    def __init__(
        self,
        model: Model,
        masker: Masker = ...,
        link: Link = ...,
        *,
        feature_names: Sequence[str] | None = ...,
        output_names: Sequence[str] | None = ...,
        linearize_link: bool = ...,
        seed: int | None = ...,
        model_output: str = ...,
        n_jobs: int | None = ...,
        explainers: Sequence[Any] | None = ...,
        method: str = ...,
        scale: str = ...,
        n_steps: int = ...,
        n_rounds: int = ...,
        tolerance: float = ...,
        n_points: int = ...,
    ) -> None: ...
