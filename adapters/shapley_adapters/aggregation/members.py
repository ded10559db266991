"""What both hosts ask of the explainers that they combine."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ..errors import BudgetError


def name_of(member: Any) -> str:
    """Return what messages call an explainer, a method or a function."""
    name: str = getattr(member, "__name__", type(member).__name__)
    return name


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return what a function can be called with; builtins do not tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def share_of_budget(name: str, budget: int, n_shares: int, sharers: str, way_out: str = "") -> int:
    """Return what each of those that take a budget gets of one for all.

    Raises
    ------
    BudgetError
        If it is less than one evaluation; with the host's words for budget and sharers, and for
        what else the user may do.
    """
    if n_shares > budget:
        raise BudgetError(
            f"{name}={budget} must be shared by {n_shares} {sharers}; pass at least "
            f"{n_shares}{way_out}."
        )
    return budget // max(1, n_shares)
