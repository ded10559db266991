"""Base of the explainers that draw coalitions."""

from __future__ import annotations

from shapley_adapters.arguments import checked_flag
from shapley_adapters.constructors import write_constructor

from .importance_explainer import ImportanceExplainer


@write_constructor
class SamplingExplainer(ImportanceExplainer):
    """Base of the explainers that draw coalitions: all but enumeration and networks."""

    independent_rows: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_flag("independent_rows", self.independent_rows)
        self._estimator()  # refuses options that cannot be used
