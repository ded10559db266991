"""Our algorithms in `shap.Explainer(model, masker, algorithm=…)`.

shap has no registry of algorithms: its `Explainer.__init__` compares names in a chain of ifs. We
wrap that method once. The registry is an attribute of `shap.Explainer`, read at each call, so that
this module may be reloaded, and other packages may wrap the method too.
"""

from __future__ import annotations

import functools
import inspect
import threading
from typing import Any

import shap

from shapley_adapters.errors import InvalidArgumentError

from .aggregates import AVAExplainer, CentroidExplainer, ConvexExplainer, LowComplexityExplainer
from .explainers import (
    CShapleyExplainer,
    EnumerationExplainer,
    FastShapExplainer,
    LeastSquaresExplainer,
    LShapleyExplainer,
    MyersonExplainer,
    OddGPExplainer,
    RandomOrderExplainer,
    SemivalueExplainer,
    ShearExplainer,
    SimSemivalueExplainer,
    SimShapExplainer,
)
from .explainers.saved_options import SavedExplainer
from .shap_internals import BUILT_IN_ALGORITHMS, InvalidAlgorithmError

_REGISTRY = "_shapley_ext_algorithms"
_lock = threading.Lock()

_ALGORITHMS: dict[str, type[SavedExplainer]] = {
    "ava": AVAExplainer,
    "centroid": CentroidExplainer,
    "convex": ConvexExplainer,
    "lowcomplexity": LowComplexityExplainer,
    "cshapley": CShapleyExplainer,
    "enumeration": EnumerationExplainer,
    "fastshap": FastShapExplainer,
    "leastsquares": LeastSquaresExplainer,
    "lshapley": LShapleyExplainer,
    "myerson": MyersonExplainer,
    "oddgp": OddGPExplainer,
    "randomorder": RandomOrderExplainer,
    "semivalue": SemivalueExplainer,
    "shear": ShearExplainer,
    "simsemivalue": SimSemivalueExplainer,
    "simshap": SimShapExplainer,
}


def _as_shap_declares_it(
    self: Any,
    model: Any,
    masker: Any = None,
    link: Any = shap.links.identity,
    algorithm: str = "auto",
    output_names: Any = None,
    feature_names: Any = None,
    linearize_link: bool = True,
    seed: int | None = None,
    **kwargs: Any,
) -> None:
    """Has the signature of `shap.Explainer.__init__`, which another package's wrapper may hide."""


_SIGNATURE = inspect.signature(_as_shap_declares_it)


def algorithms() -> dict[str, type[SavedExplainer]]:
    """Return the registered names and the explainers that they build.

    Names are matched without regard to case, hyphens and underscores.
    """
    return dict(getattr(shap.Explainer, _REGISTRY, {}))


def register() -> None:
    """Register our algorithms in `shap.Explainer`; a second call changes nothing."""
    for name in _ALGORITHMS:
        if name in BUILT_IN_ALGORITHMS:
            raise InvalidArgumentError(f"algorithm {name!r} is shap's own.")
    with _lock:
        setattr(shap.Explainer, _REGISTRY, dict(_ALGORITHMS))
        if not _is_wrapped():
            shap.Explainer.__init__ = _wrapped(shap.Explainer.__init__)


def unregister() -> None:
    """Remove our algorithms from `shap.Explainer`.

    Its `__init__` is restored. If another package has wrapped it after us, our wrapper remains
    inside, and calls the original.
    """
    with _lock:
        setattr(shap.Explainer, _REGISTRY, {})
        current = shap.Explainer.__init__
        if _is_ours(current):
            shap.Explainer.__init__ = current.__wrapped__


def _is_ours(function: Any) -> bool:
    # Wrappers of other packages may have copies of our attributes.
    return getattr(function, "_shapley_ext_wrapper", None) is function


def _is_wrapped() -> bool:
    function: Any = shap.Explainer.__init__
    while function is not None:
        if _is_ours(function):
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def _wrapped(original: Any) -> Any:
    signature = inspect.signature(original)
    if "algorithm" not in signature.parameters:
        signature = _SIGNATURE

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        explainer = _explainer_for(self, args, kwargs)
        if explainer is None:
            is_plain = type(self) is shap.Explainer
            try:
                original(self, *args, **kwargs)
            except InvalidAlgorithmError as error:
                if not is_plain or not algorithms():
                    raise
                raise InvalidAlgorithmError(f"{error} {_known_names()}") from None
            return
        arguments = dict(signature.bind(self, *args, **kwargs).arguments)
        arguments.update(arguments.pop("kwargs", {}))
        del arguments["self"], arguments["algorithm"]
        self.__class__ = explainer
        explainer.__init__(self, **arguments)

    # shap's `load` reads the signature of the function itself, past `__wrapped__`.
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__._shapley_ext_wrapper = __init__  # type: ignore[attr-defined]
    return __init__


def _known_names() -> str:
    our_names, shap_names = ", ".join(sorted(algorithms())), ", ".join(sorted(BUILT_IN_ALGORITHMS))
    return f"Known to shap: {shap_names}. Known to shap_ext: {our_names}."


def _explainer_for(
    explainer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> type[SavedExplainer] | None:
    """Return our class, if `shap.Explainer` itself is created with one of our names."""
    if type(explainer) is not shap.Explainer:
        return None
    algorithm = args[3] if len(args) > 3 else kwargs.get("algorithm")
    if not isinstance(algorithm, str):
        return None
    name = algorithm.lower().replace("-", "").replace("_", "")
    explainer_class: type[SavedExplainer] | None = getattr(shap.Explainer, _REGISTRY, {}).get(name)
    return explainer_class
