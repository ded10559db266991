"""What type checkers and editors read; tests/test_public_signatures.py writes the classes."""

from shapley_adapters.cooperators.choices import Cooperators
from shapley_adapters.games.value_functions import ValueFunctionOrName
from shapley_adapters.graphs.causal_graph import CausalEdges, CausalOrder
from shapley_adapters.graphs.reading import GraphLike
from shapley_adapters.hierarchies.reading import HierarchyLike

from ..argument_types import ForwardFunction
from .amortized_attribution import FastShap, SimShap
from .sampling_attribution import SamplingAttribution, attribution_class

__all__ = [
    "Asymmetric",
    "Best",
    "CShapley",
    "Exact",
    "FastShap",
    "Hierarchy",
    "LShapley",
    "LeastSquares",
    "Myerson",
    "OddGP",
    "RandomOrder",
    "Semivalue",
    "Shear",
    "SimSemivalue",
    "SimShap",
    "attribution_class",
]

class Asymmetric(SamplingAttribution):
    """Asymmetric Shapley values: contributions in causal orderings of the features."""

    order: CausalOrder | None
    graph: CausalEdges | None
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        order: CausalOrder | None = ...,
        graph: CausalEdges | None = ...,
    ) -> None: ...

class Best(SamplingAttribution):
    """Exact Shapley values where they cost no more, otherwise the best estimate for the time."""

    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
    ) -> None: ...

class CShapley(SamplingAttribution):
    """C-Shapley values: marginal contributions to connected sets of features on a graph."""

    graph: GraphLike | None
    order: int | str
    variant: str
    context: str
    weighting: str
    marginals: str
    shapes: str
    kernel: str
    efficient: bool
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        graph: GraphLike | None = ...,
        order: int | str = ...,
        variant: str = ...,
        context: str = ...,
        weighting: str = ...,
        marginals: str = ...,
        shapes: str = ...,
        kernel: str = ...,
        efficient: bool = ...,
    ) -> None: ...

class Exact(SamplingAttribution):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 features."""

    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
    ) -> None: ...

class Hierarchy(SamplingAttribution):
    """Owen values of nested groups: words in sentences and paragraphs, or pixels in squares."""

    hierarchy: HierarchyLike | None
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        hierarchy: HierarchyLike | None = ...,
    ) -> None: ...

class LShapley(SamplingAttribution):
    """L-Shapley values: each feature's Shapley value among its neighbours on a graph."""

    graph: GraphLike | None
    order: int | str
    context: str
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        graph: GraphLike | None = ...,
        order: int | str = ...,
        context: str = ...,
    ) -> None: ...

class LeastSquares(SamplingAttribution):
    """Shapley values as the solution of a weighted regression (KernelSHAP)."""

    paired: bool
    sizes: str
    replacement: bool
    unbiased: bool
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        paired: bool = ...,
        sizes: str = ...,
        replacement: bool = ...,
        unbiased: bool = ...,
    ) -> None: ...

class Myerson(SamplingAttribution):
    """Myerson values: Shapley values of features that act together only where connected."""

    graph: GraphLike | None
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        graph: GraphLike | None = ...,
    ) -> None: ...

class OddGP(SamplingAttribution):
    """Shapley values by a Gaussian process that learns the interactions of each row."""

    weights: str
    cooperators: Cooperators | None
    unbiased: bool
    gradients: bool | str
    graph: GraphLike | None
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        weights: str = ...,
        cooperators: Cooperators | None = ...,
        unbiased: bool = ...,
        gradients: bool | str = ...,
        graph: GraphLike | None = ...,
    ) -> None: ...

class RandomOrder(SamplingAttribution):
    """Shapley values by permutation sampling: random orders of the features and their reverses."""

    antithetic: bool
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        antithetic: bool = ...,
    ) -> None: ...

class Semivalue(SamplingAttribution):
    """Shapley values from marginal contributions, drawn for each feature alone."""

    antithetic: bool
    efficient: bool
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        antithetic: bool = ...,
        efficient: bool = ...,
    ) -> None: ...

class Shear(SamplingAttribution):
    """Shapley values from all coalitions of the features that interact most with each (SHEAR)."""

    cooperators: Cooperators
    complement: str
    antithetic: bool
    efficient: bool
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        cooperators: Cooperators = ...,
        complement: str = ...,
        antithetic: bool = ...,
        efficient: bool = ...,
    ) -> None: ...

class SimSemivalue(SamplingAttribution):
    """Shapley values as weighted means over drawn coalitions (SimSHAP, Zhang et al., Eq. 14)."""

    paired: bool
    centred: bool
    def __init__(
        self,
        forward_func: ForwardFunction,
        *,
        seed: int | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        paired: bool = ...,
        centred: bool = ...,
    ) -> None: ...
