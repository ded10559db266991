"""Explainers that are saved and loaded with all their options."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import IO, Any

import shap

from shapley_adapters.errors import InvalidArgumentTypeError

from ..shap_internals import Deserializer, Serializer, loader_of, saver_of

_STREAM = "shap_ext.CoalitionExplainer"


class _ByKeyword(shap.Explainer):  # type: ignore[misc] # shap is untyped
    """The class that files name first, which builds the explainer that they hold.

    `shap.Explainer.load` passes on only the arguments that may be positional. This class has one
    such argument, which holds all of them.
    """

    def __new__(cls, arguments: dict[str, Any]) -> Any:
        explainer: type[Any] = arguments.pop("class")
        return explainer(**arguments)

    def __init__(self, arguments: dict[str, Any]) -> None:
        """Name the argument for shap; `__new__` returns an explainer that is built already."""

    @classmethod
    def load(
        cls,
        in_file: IO[bytes],
        model_loader: Callable[..., Any] | None = None,
        masker_loader: Callable[..., Any] | None = None,
        instantiate: bool = False,
    ) -> dict[str, Any]:
        """Return the arguments of the explainer, and its class."""
        del instantiate  # shap asks for the arguments alone
        explainer: type[Any] = pickle.load(in_file)
        arguments = explainer.load(in_file, model_loader, masker_loader, instantiate=False)
        return {"arguments": {"class": explainer, **arguments}}


def save_explainer(
    explainer: Any,
    out_file: IO[bytes],
    model_saver: str | Callable[..., Any],
    masker_saver: str | Callable[..., Any],
) -> None:
    """Write an explainer with all its options; each is an attribute of the same name."""
    pickle.dump(_ByKeyword, out_file)
    shap.Explainer.save(
        explainer,
        out_file,
        saver_of(explainer.model, model_saver),
        saver_of(explainer.masker, masker_saver),
    )
    saved = ("model", "masker", "link")
    options = {
        name: getattr(explainer, name)
        for name in inspect.signature(type(explainer)).parameters
        if name not in saved
    }
    with Serializer(out_file, _STREAM, version=0) as stream:
        stream.save("options", options)


def load_explainer(
    kind: type[Any],
    in_file: IO[bytes],
    model_loader: Callable[..., Any] | None,
    masker_loader: Callable[..., Any] | None,
    instantiate: bool,
) -> Any:
    """Return the explainer of a file, or its arguments, if it is of some class."""
    if instantiate:
        loaded = shap.Explainer.load(in_file, model_loader, masker_loader)
        if not isinstance(loaded, kind):
            raise InvalidArgumentTypeError(
                f"in_file holds a {type(loaded).__name__}, not a {kind.__name__}. "
                "shap.Explainer.load reads any of them."
            )
        return loaded
    arguments = shap.Explainer.load.__func__(
        kind, in_file, loader_of(model_loader), loader_of(masker_loader), instantiate=False
    )
    with Deserializer(in_file, _STREAM, 0, 0) as stream:
        arguments.update(stream.load("options"))
    return arguments
