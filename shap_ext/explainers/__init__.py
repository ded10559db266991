"""The explainers: each is built from the declaration of its estimator.

`__init__.pyi` has them for type checkers and editors.
"""

import shapley_adapters
from shapley_adapters.estimators.registered import estimators_in, options_from

from .amortized_explainer import FastShapExplainer, SimShapExplainer
from .methods import AsymmetricExplainer, BestExplainer
from .sampling_explainer import SamplingExplainer
from .shared_parameters import TEXTS

__all__ = ["AsymmetricExplainer", "BestExplainer", "FastShapExplainer", "SimShapExplainer"]

for _estimator in estimators_in(shapley_adapters):
    # shap has an ExactExplainer of its own.
    _name = f"{_estimator.__name__.replace('Exact', 'Enumeration')}Explainer"
    if _name not in __all__:
        _explainer = type(_name, (SamplingExplainer,), {"__module__": __name__})
        globals()[_name] = options_from(_estimator, TEXTS)(_explainer)
        __all__.append(_name)
