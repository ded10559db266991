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
        explainer: type[SavedExplainer] = arguments.pop("class")
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
        explainer: type[SavedExplainer] = pickle.load(in_file)
        arguments = explainer.load(in_file, model_loader, masker_loader, instantiate=False)
        return {"arguments": {"class": explainer, **arguments}}


class SavedExplainer(shap.Explainer):  # type: ignore[misc] # shap is untyped
    """Base of the explainers. Each argument of `__init__` is an attribute of the same name."""

    def save(
        self,
        out_file: IO[bytes],
        model_saver: str | Callable[..., Any] = ".save",
        masker_saver: str | Callable[..., Any] = ".save",
    ) -> None:
        """Write the explainer with all its options, its seed and its names to a file."""
        pickle.dump(_ByKeyword, out_file)
        super().save(
            out_file,
            saver_of(self.model, model_saver),
            saver_of(self.masker, masker_saver),
        )
        saved = ("model", "masker", "link")
        options = {
            name: getattr(self, name)
            for name in inspect.signature(type(self)).parameters
            if name not in saved
        }
        with Serializer(out_file, _STREAM, version=0) as stream:
            stream.save("options", options)

    @classmethod
    def load(
        cls,
        in_file: IO[bytes],
        model_loader: Callable[..., Any] | None = None,
        masker_loader: Callable[..., Any] | None = None,
        instantiate: bool = True,
    ) -> Any:
        """Read an explainer that `save` wrote.

        Models, maskers and options are stored as pickles, and reading a pickle runs the code in it.
        Load only files that you trust.
        """
        if instantiate:
            loaded = shap.Explainer.load(in_file, model_loader, masker_loader)
            if not isinstance(loaded, cls):
                raise InvalidArgumentTypeError(
                    f"in_file holds a {type(loaded).__name__}, not a {cls.__name__}. "
                    "shap.Explainer.load reads any of them."
                )
            return loaded
        arguments = super().load(
            in_file, loader_of(model_loader), loader_of(masker_loader), instantiate=False
        )
        with Deserializer(in_file, _STREAM, 0, 0) as stream:
            arguments.update(stream.load("options"))
        return arguments
