"""Written by tests/test_public_signatures.py, for type checkers and editors."""

from shapley_adapters.constructors import write_constructor
from shapley_adapters.cooperators.choices import Cooperators
from shapley_adapters.graphs.reading import GraphLike
from shapley_adapters.hierarchies.reading import HierarchyLike

from .methods import AsymmetricExplainer, BestExplainer
from .networks import FastShapExplainer, SimShapExplainer
from .sampling_explainer import SamplingExplainer

__all__ = [
    "AsymmetricExplainer",
    "BestExplainer",
    "CShapleyExplainer",
    "EnumerationExplainer",
    "FastShapExplainer",
    "HierarchyExplainer",
    "LShapleyExplainer",
    "LeastSquaresExplainer",
    "MyersonExplainer",
    "OddGPExplainer",
    "RandomOrderExplainer",
    "SemivalueExplainer",
    "ShearExplainer",
    "SimSemivalueExplainer",
    "SimShapExplainer",
]

@write_constructor
class CShapleyExplainer(SamplingExplainer):
    """C-Shapley values: marginal contributions to connected sets of features on a graph."""

    graph: GraphLike | None = ...
    order: int | str = ...
    variant: str = ...
    context: str = ...
    weighting: str = ...
    marginals: str = ...
    shapes: str = ...
    kernel: str = ...
    efficient: bool = ...

@write_constructor
class EnumerationExplainer(SamplingExplainer):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 features."""

@write_constructor
class HierarchyExplainer(SamplingExplainer):
    """Owen values of a hierarchy: words in sentences and paragraphs, or pixels in squares."""

    hierarchy: HierarchyLike | None = ...

@write_constructor
class LShapleyExplainer(SamplingExplainer):
    """L-Shapley values: each feature's Shapley value among its neighbours on a graph."""

    graph: GraphLike | None = ...
    order: int | str = ...
    context: str = ...

@write_constructor
class LeastSquaresExplainer(SamplingExplainer):
    """Shapley values as the solution of a weighted regression (KernelSHAP)."""

    paired: bool = ...
    sizes: str = ...
    replacement: bool = ...
    unbiased: bool = ...

@write_constructor
class MyersonExplainer(SamplingExplainer):
    """Myerson values: Shapley values of features that act together only where connected."""

    graph: GraphLike | None = ...

@write_constructor
class OddGPExplainer(SamplingExplainer):
    """Shapley values as the posterior of a Gaussian process on the odd part of the game."""

    weights: str = ...
    cooperators: Cooperators | None = ...
    unbiased: bool = ...
    graph: GraphLike | None = ...

@write_constructor
class RandomOrderExplainer(SamplingExplainer):
    """Shapley values from random orders of the features and their reverses."""

    antithetic: bool = ...

@write_constructor
class SemivalueExplainer(SamplingExplainer):
    """Shapley values from marginal contributions, drawn for each feature alone."""

    antithetic: bool = ...
    efficient: bool = ...

@write_constructor
class ShearExplainer(SamplingExplainer):
    """SHEAR: enumerate the strongest cooperators of each feature, draw the others at random."""

    cooperators: Cooperators = ...
    complement: str = ...
    antithetic: bool = ...
    efficient: bool = ...

@write_constructor
class SimSemivalueExplainer(SamplingExplainer):
    """Shapley values from one draw of coalitions for all features, signed by membership."""

    paired: bool = ...
    centred: bool = ...
