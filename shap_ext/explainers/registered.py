"""Explainers made from the estimators of other packages."""

from __future__ import annotations

import copyreg
import functools
from typing import Any

from shapley_adapters.estimators.protocol import Estimator
from shapley_adapters.estimators.registered import MadeFromEstimator, class_from_estimator

from .sampling_explainer import SamplingExplainer


class _ExplainerClass(MadeFromEstimator):
    name: str


@functools.cache
def explainer_class(name: str, estimator: type[Estimator[Any]]) -> type[SamplingExplainer]:
    """Return the explainer whose options are those of an estimator class.

    `name` is the name of the method in messages and on progress bars.
    """
    is_on_graph = getattr(estimator, "needs_graph", False)
    shared = {"graph": None} if is_on_graph else {}
    class_name = f"{getattr(estimator, '__name__', '')}Explainer"
    explainer: Any = class_from_estimator(
        _ExplainerClass, class_name, SamplingExplainer, estimator, shared
    )
    explainer.name, explainer.has_graph = name, is_on_graph
    return explainer  # type: ignore[no-any-return]


def _how_to_make(explainer: _ExplainerClass) -> tuple[Any, ...]:
    return explainer_class, (explainer.name, explainer.estimator_class)


copyreg.pickle(_ExplainerClass, _how_to_make)
