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

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.estimators.protocol import Estimator

from . import aggregates, explainers
from .explainers.methods import explainer_class
from .explainers.model_explainer import ModelExplainer
from .explainers.sampling_explainer import SamplingExplainer
from .shap_internals import (
    BUILT_IN_ALGORITHMS,
    REGISTRY,
    InvalidAlgorithmError,
    algorithms,
    registered_name,
)

_lock = threading.Lock()


_ALGORITHMS: dict[str, type[ModelExplainer]] = {
    registered_name(explainer.name.replace(" ", "")): explainer
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
    """Has the signature of `shap.Explainer.__init__`, which another package's wrapper may hide."""


_SIGNATURE = inspect.signature(_as_shap_declares_it)


def register() -> None:
    """Register our algorithms in `shap.Explainer`; a second call changes nothing."""
    for name in _ALGORITHMS:
        if name in BUILT_IN_ALGORITHMS:
            raise InvalidArgumentError(f"algorithm {name!r} is shap's own.")
    with _lock:
        _set_registry(algorithms() | _ALGORITHMS)


def register_estimator(name: str, estimator: type[Estimator[Any]]) -> type[SamplingExplainer]:
    """Make `shap.Explainer` know an estimator of your own by a name.

    `shap.Explainer(model, masker, algorithm=name, ...)` then builds an explainer that estimates by
    it. The explainer has the estimator's options as keyword-only arguments beside those that all
    explainers share, and works as the explainers of this package do: with budgets, tolerances,
    error bounds, groups, plots, saving and loading.

    A name may be registered again, which replaces the estimator; explainers that are built already
    keep theirs.

    Parameters
    ----------
    name : str
        Name of the algorithm, of letters and digits. Case, hyphens and underscores do not matter.
    estimator : type
        A class with the methods of `shapley_adapters.estimators.Estimator`, usually a frozen
        dataclass. To save explainers, it must be importable where they are loaded.

    Returns
    -------
    type
        The class of the explainer, which may be built directly, too.

    Raises
    ------
    InvalidArgumentTypeError
        If it is not the class of an estimator, or its options cannot be passed by name.
    InvalidArgumentError
        If shap or this package uses the name, or an option has a name that explainers use
        themselves, such as `seed`.

    Examples
    --------
    >>> import numpy as np
    >>> import shap, shap_ext
    >>> from shapley_adapters import RandomOrder  # stands for an estimator of your own
    >>> _ = shap_ext.register_estimator("orders", RandomOrder)
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> background = np.zeros((1, 12))
    >>> explainer = shap.Explainer(model, background, algorithm="orders", antithetic=True, seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    >>> shap_ext.unregister_estimator("orders")
    """
    algorithm = _checked_name(name)
    explainer = explainer_class(name, estimator)
    with _lock:
        _set_registry(algorithms() | {algorithm: explainer})
    return explainer


def unregister_estimator(name: str) -> None:
    """Make `shap.Explainer` forget an estimator that `register_estimator` added.

    Raises
    ------
    InvalidArgumentError
        If there is none of this name.
    """
    algorithm = _checked_name(name)
    with _lock:
        remaining = algorithms()
        if remaining.pop(algorithm, None) is None:
            names = ", ".join(sorted(set(remaining) - set(_ALGORITHMS))) or "none"
            raise InvalidArgumentError(
                f"name={name!r} is not a registered estimator; these are: {names}."
            )
        setattr(shap.Explainer, REGISTRY, remaining)


def unregister() -> None:
    """Remove our algorithms from `shap.Explainer`, and those of `register_estimator`.

    Its `__init__` is restored. If another package has wrapped it after us, our wrapper remains
    inside, and calls the original.
    """
    with _lock:
        setattr(shap.Explainer, REGISTRY, {})
        current = shap.Explainer.__init__
        if _is_ours(current):
            shap.Explainer.__init__ = current.__wrapped__


def _checked_name(name: object) -> str:
    """Return the name of an algorithm of others as it is registered."""
    if not isinstance(name, str):
        raise InvalidArgumentTypeError(f"name must be a str; got {type(name).__name__}.")
    algorithm = registered_name(name)
    if not algorithm.isalnum():
        raise InvalidArgumentError(
            f"name must consist of letters and digits, hyphens and underscores; got {name!r}."
        )
    if algorithm in BUILT_IN_ALGORITHMS or algorithm in _ALGORITHMS:
        owner = "shap" if algorithm in BUILT_IN_ALGORITHMS else "shap_ext"
        raise InvalidArgumentError(
            f"name={name!r} is an algorithm of {owner} itself; choose another name."
        )
    return algorithm


def _set_registry(registry: dict[str, type[ModelExplainer]]) -> None:
    """Set the known algorithms, and wrap the constructor of `shap.Explainer` if it is not yet."""
    setattr(shap.Explainer, REGISTRY, registry)
    if not _is_wrapped():
        shap.Explainer.__init__ = _wrapped(shap.Explainer.__init__)


def _is_ours(function: object) -> bool:
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
                ours, theirs = (", ".join(sorted(n)) for n in (algorithms(), BUILT_IN_ALGORITHMS))
                raise InvalidAlgorithmError(
                    f"{error} Known to shap: {theirs}. Known to shap_ext: {ours}."
                ) from None
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


def _explainer_for(
    explainer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> type[ModelExplainer] | None:
    """Return our class, if `shap.Explainer` itself is created with one of our names."""
    if type(explainer) is not shap.Explainer:
        return None
    algorithm = args[3] if len(args) > 3 else kwargs.get("algorithm")
    if not isinstance(algorithm, str):
        return None
    return algorithms().get(registered_name(algorithm))
