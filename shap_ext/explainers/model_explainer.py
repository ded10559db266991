"""Base of all explainers of a model with a masker, including those that combine others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import shap

from shapley_adapters.arguments import checked_flag, checked_seed
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentTypeError

from ..argument_types import Link, Masker, Model
from ..games.links import checked_link
from ..inputs.backgrounds import bounded_background, check_masker
from ..shap_internals import prepared_attributes
from .legacy_calls import LegacyCalls


@write_constructor
class ModelExplainer(LegacyCalls):
    """Base of all explainers, with the arguments of `shap.Explainer`.

    Attributes
    ----------
    seed : int
        Seed of all random choices, drawn from the operating system where none was given.
    """

    model: Model = field(kw_only=False)
    masker: Masker = field(default=None, kw_only=False)
    link: Link = field(default=shap.links.identity, kw_only=False)
    feature_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    linearize_link: bool = True
    seed: int | None = None

    def __post_init__(self) -> None:
        masker, self._background_dtypes = bounded_background(self.masker)
        prepared = prepared_attributes(
            self.model,
            masker,
            link=checked_link(self.link),
            feature_names=_checked_names("feature_names", self.feature_names),
            output_names=_checked_names("output_names", self.output_names),
            linearize_link=checked_flag("linearize_link", self.linearize_link),
        )
        self.__dict__.update(prepared)
        check_masker(self.masker)
        given_seed, self.seed = self.seed, checked_seed(self.seed)
        self._drawn_seed = self.seed if given_seed is None else None


def _checked_names(name: str, names: object) -> list[Any] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidArgumentTypeError(f"{name} must be a list of names; got {names!r}.")
    return list(names)
