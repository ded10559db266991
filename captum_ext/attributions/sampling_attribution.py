"""Base of the attribution methods that draw coalitions."""

from __future__ import annotations

from shapley_adapters.arguments import checked_flag
from shapley_adapters.constructors import write_constructor

from .importance_attribution import ImportanceAttribution


@write_constructor
class SamplingAttribution(ImportanceAttribution):
    """Base of the methods that draw coalitions: all but enumeration and networks."""

    independent_rows: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_flag("independent_rows", self.independent_rows)
        self._estimator()  # refuses options that cannot be used
