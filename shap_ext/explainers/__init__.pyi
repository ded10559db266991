"""What type checkers and editors read; tests/test_public_signatures.py writes the classes."""

from collections.abc import Sequence

from shapley_adapters.cooperators.choices import Cooperators
from shapley_adapters.games.value_functions import ValueFunctionOrName
from shapley_adapters.graphs.causal_graph import CausalEdges, CausalOrder
from shapley_adapters.graphs.reading import GraphLike
from shapley_adapters.hierarchies.reading import HierarchyLike

from ..argument_types import Groups, Link, Masker, Model
from .amortized_explainer import FastShapExplainer, SimShapExplainer
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

class AsymmetricExplainer(SamplingExplainer):
    """Asymmetric Shapley values: contributions in causal orderings of the features."""

    order: CausalOrder | None
    graph: CausalEdges | None
    split_effects: bool
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        order: CausalOrder | None = ...,
        graph: CausalEdges | None = ...,
        split_effects: bool = ...,
    ) -> None: ...

class BestExplainer(SamplingExplainer):
    """Exact Shapley values where they cost no more, otherwise the best estimate for the time."""

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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
    ) -> None: ...

class CShapleyExplainer(SamplingExplainer):
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
        model: Model,
        masker: Masker = ...,
        link: Link = ...,
        *,
        feature_names: Sequence[str] | None = ...,
        output_names: Sequence[str] | None = ...,
        linearize_link: bool = ...,
        seed: int | None = ...,
        model_output: str = ...,
        groups: Groups | None = ...,
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

class EnumerationExplainer(SamplingExplainer):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 features."""

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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
    ) -> None: ...

class HierarchyExplainer(SamplingExplainer):
    """Owen values of nested groups: words in sentences and paragraphs, or pixels in squares."""

    hierarchy: HierarchyLike | None
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        hierarchy: HierarchyLike | None = ...,
    ) -> None: ...

class LShapleyExplainer(SamplingExplainer):
    """L-Shapley values: each feature's Shapley value among its neighbours on a graph."""

    graph: GraphLike | None
    order: int | str
    context: str
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        graph: GraphLike | None = ...,
        order: int | str = ...,
        context: str = ...,
    ) -> None: ...

class LeastSquaresExplainer(SamplingExplainer):
    """Shapley values as the solution of a weighted regression (KernelSHAP)."""

    paired: bool
    sizes: str
    replacement: bool
    unbiased: bool
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        paired: bool = ...,
        sizes: str = ...,
        replacement: bool = ...,
        unbiased: bool = ...,
    ) -> None: ...

class MyersonExplainer(SamplingExplainer):
    """Myerson values: Shapley values of features that act together only where connected."""

    graph: GraphLike | None
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        graph: GraphLike | None = ...,
    ) -> None: ...

class OddGPExplainer(SamplingExplainer):
    """Shapley values by a Gaussian process that learns the interactions of each row."""

    weights: str
    cooperators: Cooperators | None
    unbiased: bool
    gradients: bool | str
    graph: GraphLike | None
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        weights: str = ...,
        cooperators: Cooperators | None = ...,
        unbiased: bool = ...,
        gradients: bool | str = ...,
        graph: GraphLike | None = ...,
    ) -> None: ...

class RandomOrderExplainer(SamplingExplainer):
    """Shapley values by permutation sampling: random orders of the features and their reverses."""

    antithetic: bool
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        antithetic: bool = ...,
    ) -> None: ...

class SemivalueExplainer(SamplingExplainer):
    """Shapley values from marginal contributions, drawn for each feature alone."""

    antithetic: bool
    efficient: bool
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        antithetic: bool = ...,
        efficient: bool = ...,
    ) -> None: ...

class ShearExplainer(SamplingExplainer):
    """Shapley values from all coalitions of the features that interact most with each (SHEAR)."""

    cooperators: Cooperators
    complement: str
    antithetic: bool
    efficient: bool
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        cooperators: Cooperators = ...,
        complement: str = ...,
        antithetic: bool = ...,
        efficient: bool = ...,
    ) -> None: ...

class SimSemivalueExplainer(SamplingExplainer):
    """Shapley values as weighted means over drawn coalitions (SimSHAP, Zhang et al., Eq. 14)."""

    paired: bool
    centred: bool
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
        groups: Groups | None = ...,
        value_function: ValueFunctionOrName = ...,
        n_jobs: int | None = ...,
        independent_rows: bool = ...,
        paired: bool = ...,
        centred: bool = ...,
    ) -> None: ...
