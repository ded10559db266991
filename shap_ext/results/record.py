"""The record of the call that made an explanation."""

from __future__ import annotations

import functools
import inspect
import platform
import reprlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from shapley_adapters import Estimate
from shapley_adapters.errors import warnings_since

from ..inputs.models import inner_model

_PACKAGES = ("shapley-ext", "shap", "captum", "numpy", "pandas", "scikit-learn", "scipy", "torch")

_RECORDED_ELSEWHERE = frozenset(["model", "masker", "seed", "feature_names", "output_names"])


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
    unit : str
        The unit of the values; "" where it is not known.
    failed_coalitions : int
        The coalitions without a value, in games of your own; see `explain_game`.
    evaluations : tuple of int, optional
        The smallest and the largest number of evaluations of a row, and the sum over the rows.
    choice : str
        What was chosen by costs or by the structure of the model, and why; "" elsewhere.
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
    unit: str = ""
    failed_coalitions: int = 0

    @property
    def date(self) -> str:
        """When the call began, in the local time of the reader."""
        return datetime.fromtimestamp(self.started).astimezone().strftime("%Y-%m-%d %H:%M %Z")


@functools.cache
def _used_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages in use, read once in a process."""
    versions = {"Python": platform.python_version()}
    for name in _PACKAGES:
        module = {"shapley-ext": "shapley_adapters", "scikit-learn": "sklearn"}.get(name, name)
        if module in sys.modules:
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                versions[name] = "not installed as a package"
    return versions


def _name_of_model(model: object) -> str:
    """Return the qualified name of a function, or the name of the class of another model."""
    name = getattr(model, "__qualname__", None)
    return name if isinstance(name, str) else type(model).__name__


def with_record(results: Any, explainer: Any, started: float, estimate: Estimate | None) -> Any:
    """Return the Explanation of a call, or the list of them, with the record of the call.

    `started` is the time when the call began.
    """
    evaluations = None
    if estimate is not None:
        counts = estimate.evaluations
        evaluations = (int(counts.min()), int(counts.max()), int(counts.sum()))
    options = {}  # those that are not the defaults, as texts
    for name, default in _defaults(explainer.__class__):
        value = getattr(explainer, name, default)
        if value is not default:
            options[name] = _name_of_model(value) if callable(value) else reprlib.repr(value)
    record = CallRecord(
        method=explainer.name,
        explainer=type(explainer).__name__,
        model=_name_of_model(inner_model(explainer.model)),
        started=started,
        seconds=time.time() - started,
        options=options,
        seed=explainer.seed if estimate is None else estimate.seed,
        evaluations=evaluations,
        choice="" if estimate is None else estimate.choice,
        unit="" if estimate is None else estimate.unit,
        warnings=warnings_since(started),
        versions=_used_versions(),
        spent=str(getattr(explainer, "last_evaluations", "")),
    )
    for result in results if isinstance(results, list) else [results]:
        result.call = record
    return results


@functools.cache
def _defaults(kind: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the names of the options of a class with their defaults."""
    parameters = inspect.signature(kind).parameters.values()
    return [(one.name, one.default) for one in parameters if one.name not in _RECORDED_ELSEWHERE]
