"""The attribution methods: each is built from the declaration of its estimator.

`__init__.pyi` has them for type checkers and editors.
"""

import shapley_adapters
from shapley_adapters.estimators.registered import estimators_in, options_from

from .amortized_attribution import FastShap, SimShap
from .sampling_attribution import SamplingAttribution, attribution_class
from .shared_parameters import TEXTS

__all__ = ["FastShap", "SimShap", "attribution_class"]

for _estimator in estimators_in(shapley_adapters):
    _name = _estimator.__name__
    _method = type(_name, (SamplingAttribution,), {"__module__": __name__})
    globals()[_name] = options_from(_estimator, TEXTS)(_method)
    __all__.append(_name)
