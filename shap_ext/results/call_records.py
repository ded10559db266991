"""The record of a call, stored in the Explanations that the call returns."""

from __future__ import annotations

import functools
import inspect
import reprlib
import time
from collections.abc import Callable
from typing import Any

from shapley_adapters import Estimate
from shapley_adapters.errors import warnings_since
from shapley_adapters.reports.call_record import CallRecord, name_of_model, used_versions

from ..inputs.models import inner_model

_RECORDED_ELSEWHERE = frozenset(["model", "masker", "seed", "feature_names", "output_names"])


def with_record(results: Any, explainer: Any, started: float, estimate: Estimate | None) -> Any:
    """Return the Explanation of a call, or the list of them, with the record of the call.

    `started` is the time when the call began.
    """
    evaluations = None
    if estimate is not None:
        counts = estimate.evaluations
        evaluations = (int(counts.min()), int(counts.max()), int(counts.sum()))
    record = CallRecord(
        method=explainer.name,
        explainer=type(explainer).__name__,
        model=name_of_model(inner_model(explainer.model)),
        started=started,
        seconds=time.time() - started,
        options=_options_of(explainer),
        seed=explainer.seed if estimate is None else estimate.seed,
        evaluations=evaluations,
        choice="" if estimate is None else estimate.choice,
        warnings=warnings_since(started),
        versions=used_versions(),
        spent=str(getattr(explainer, "last_evaluations", "")),
    )
    for result in results if isinstance(results, list) else [results]:
        result.call = record
    return results


def _options_of(explainer: Any) -> dict[str, str]:
    """Return the options of an explainer that are not the defaults, as texts."""
    texts = {}
    for name, default in _defaults(explainer.__class__):
        value = getattr(explainer, name, default)
        if value is not default:
            texts[name] = name_of_model(value) if callable(value) else reprlib.repr(value)
    return texts


@functools.cache
def _defaults(kind: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the names of the options of a class with their defaults."""
    parameters = inspect.signature(kind).parameters.values()
    return [(one.name, one.default) for one in parameters if one.name not in _RECORDED_ELSEWHERE]
