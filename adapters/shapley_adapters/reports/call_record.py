"""The record of the call that made an explanation."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("shapley-ext", "shap", "captum", "numpy", "pandas", "scikit-learn", "scipy", "torch")


@dataclass(frozen=True)
class CallRecord:
    """How an explanation was computed.

    Attributes
    ----------
    method : str
        The name of the estimator.
    explainer : str
        The class of the explainer.
    model : str
        The name of the model: that of its class or of its function.
    started : float
        When the call began, in seconds since 1970.
    seconds : float
        How long it took.
    options : mapping of str to str
        The options of the explainer that differ from their defaults.
    seed : int, optional
        The seed of all random choices.
    evaluations : tuple of int, optional
        The smallest and the largest number of evaluations of a row, and the sum over the rows.
    choice : str
        What was chosen by measured costs or by the structure of the model, and why; "" elsewhere.
    warnings : tuple of str
        The warnings of this package in the call.
    versions : mapping of str to str
        The versions of Python and of the packages in use.
    spent : str
        The evaluations of each member of an aggregate, and the members that are not counted; ""
        elsewhere.
    """

    method: str
    explainer: str
    model: str
    started: float
    seconds: float
    options: Mapping[str, str]
    seed: int | None
    evaluations: tuple[int, int, int] | None
    choice: str
    warnings: tuple[str, ...]
    versions: Mapping[str, str]
    spent: str = ""

    @property
    def date(self) -> str:
        """When the call began, in the local time of the reader."""
        return datetime.fromtimestamp(self.started).astimezone().strftime("%Y-%m-%d %H:%M %Z")


@functools.cache
def used_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages in use, read once in a process."""
    versions = {"Python": platform.python_version()}
    for name in _PACKAGES:
        module = {"shapley-ext": "shapley_adapters", "scikit-learn": "sklearn"}.get(name, name)
        if module in sys.modules:
            versions[name] = _version_of(name)
    return versions


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"


def name_of_model(model: object) -> str:
    """Return the qualified name of a function, or the name of the class of another model."""
    name = getattr(model, "__qualname__", None)
    return name if isinstance(name, str) else type(model).__name__
