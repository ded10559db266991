"""Our algorithms in `shap.Explainer(model, masker, algorithm=…)`.

shap has no place to add algorithms: its `Explainer.__init__` compares names in a chain of ifs. We
wrap that method once. The registry is an attribute of `shap.Explainer`, read at each call, so that
reloading this module or wrapping by others does no harm.
"""

from __future__ import annotations

import functools
import inspect
import threading
from typing import Any

import shap

from shapley_adapters.errors import InvalidArgumentError

from . import aggregates, explainers
from .explainers.saved_options import SavedExplainer
from .shap_internals import BUILT_IN_ALGORITHMS, InvalidAlgorithmError

_REGISTRY = "_shapley_ext_algorithms"
_lock = threading.Lock()


def _without_hyphens(name: str) -> str:
    """Return a name as algorithms are registered: "Random-Order" is "randomorder"."""
    return name.lower().replace("-", "").replace("_", "")


_ALGORITHMS: dict[str, type[SavedExplainer]] = {
    _without_hyphens(explainer.name.replace(" ", "")): explainer
    for package in (explainers, aggregates)
    for explainer in (getattr(package, name) for name in package.__all__)
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
    """Stand for `shap.Explainer.__init__`, whose own signature a foreign wrapper may hide."""


_SIGNATURE = inspect.signature(_as_shap_declares_it)


def algorithms() -> dict[str, type[SavedExplainer]]:
    """Return the registered names and the explainers that they build.

    Names are matched without regard to case, hyphens and underscores.
    """
    return dict(getattr(shap.Explainer, _REGISTRY, {}))


def register() -> None:
    """Make `shap.Explainer` know our algorithms; doing it again changes nothing."""
    for name in _ALGORITHMS:
        if name in BUILT_IN_ALGORITHMS:
            raise InvalidArgumentError(f"algorithm {name!r} is shap's own.")
    with _lock:
        setattr(shap.Explainer, _REGISTRY, dict(_ALGORITHMS))
        if not _is_wrapped():
            shap.Explainer.__init__ = _wrapped(shap.Explainer.__init__)


def unregister() -> None:
    """Make `shap.Explainer` forget our algorithms.

    Its `__init__` is put back, unless someone else has wrapped it after us; then ours stays
    underneath and passes everything on.
    """
    with _lock:
        setattr(shap.Explainer, _REGISTRY, {})
        current = shap.Explainer.__init__
        if _is_ours(current):
            shap.Explainer.__init__ = current.__wrapped__


def _is_ours(function: Any) -> bool:
    # Wrappers of others may carry copies of our attributes.
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
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        given.update(given.pop("kwargs", {}))
        del given["self"], given["algorithm"]
        self.__class__ = explainer
        explainer.__init__(self, **given)

    # shap's `load` reads the signature of the function itself, past `__wrapped__`.
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__._shapley_ext_wrapper = __init__  # type: ignore[attr-defined]
    return __init__


def _known_names() -> str:
    own, shaps = ", ".join(sorted(algorithms())), ", ".join(sorted(BUILT_IN_ALGORITHMS))
    return f"Known to shap: {shaps}. Known to shap_ext: {own}."


def _explainer_for(
    explainer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> type[SavedExplainer] | None:
    """Return our class where `shap.Explainer` itself is built with one of our names."""
    if type(explainer) is not shap.Explainer:
        return None
    algorithm = args[3] if len(args) > 3 else kwargs.get("algorithm")
    if not isinstance(algorithm, str):
        return None
    return algorithms().get(_without_hyphens(algorithm))
