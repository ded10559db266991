"""Explainers that are saved and loaded with all their options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import shap

from ..shap_internals import Deserializer, Serializer, loader_of, saver_of

_STREAM = "shap_ext.CoalitionExplainer"


class SavedExplainer(shap.Explainer):  # type: ignore[misc] # shap is untyped
    """Base of the explainers; what `__init__` takes are attributes of the same names."""

    def save(
        self,
        out_file: Any,
        model_saver: str | Callable[..., Any] = ".save",
        masker_saver: str | Callable[..., Any] = ".save",
    ) -> None:
        """Write the explainer with all its options, its seed and its names to a file."""
        super().save(
            out_file,
            saver_of(self.model, model_saver),
            saver_of(self.masker, masker_saver),
        )
        saved = ("model", "masker", "link", "algorithm")
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
        in_file: Any,
        model_loader: Callable[..., Any] | None = None,
        masker_loader: Callable[..., Any] | None = None,
        instantiate: bool = True,
    ) -> Any:
        """Read an explainer that `save` wrote.

        Models, maskers and options are stored as pickles, and reading a pickle runs the code in it.
        Load only files that you trust.
        """
        if instantiate:
            return cls._instantiated_load(
                in_file, model_loader=model_loader, masker_loader=masker_loader
            )
        arguments = super().load(
            in_file, loader_of(model_loader), loader_of(masker_loader), instantiate=False
        )
        with Deserializer(in_file, _STREAM, 0, 0) as stream:
            arguments.update(stream.load("options"))
        return arguments
