"""Names, parameters and budget shares of the explainers that an aggregate combines."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ..errors import BudgetError


def name_of(explainer: Any) -> str:
    """Return the name of an explainer, a method or a function, for messages."""
    name: str = getattr(explainer, "__name__", type(explainer).__name__)
    return name


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function; none for builtins without a signature."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def share_of_budget(name: str, budget: int, n_shares: int, sharers: str, way_out: str = "") -> int:
    """Return the budget of each explainer when `n_shares` of them share `budget` equally.

    Parameters
    ----------
    name : str
        The host's name of the budget.
    budget, n_shares : int
        The budget, and the number of shares.
    sharers : str
        The host's word for explainers.
    way_out : str
        Another remedy, for the message.

    Raises
    ------
    BudgetError
        If a share is less than one evaluation.
    """
    if n_shares > budget:
        raise BudgetError(
            f"{name}={budget} must be shared by {n_shares} {sharers}; pass at least "
            f"{n_shares}{way_out}."
        )
    return budget // max(1, n_shares)
