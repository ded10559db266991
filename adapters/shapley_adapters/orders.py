"""How far to look in a graph: the order that was asked for, or the largest that is affordable."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from .arguments import checked_count
from .designs import DesignRequest
from .errors import BudgetError, InvalidArgumentError
from .linear_designs import TooManyCoalitionsError

MOST_COALITIONS = 2**18
"""Distinct coalitions of one row beyond which none are listed to find out their number."""

_WITHOUT_BUDGET = 2**16
"""Distinct coalitions of one row beyond which an order needs a budget that somebody named."""

DesignT = TypeVar("DesignT")


def checked_order(order: Any, minimum: int = 0) -> int | str:
    """Return `order` if it is "auto" or a whole number of at least `minimum`."""
    if isinstance(order, str) and order == "auto":
        return order
    if isinstance(order, str) or not isinstance(order, numbers.Integral):
        raise InvalidArgumentError(f"order must be a whole number or 'auto'; got {order!r}.")
    return checked_count("order", order, minimum)


def affordable(
    order: int | str,
    make: Callable[[int, int], DesignT],
    request: DesignRequest,
    first: int,
    is_last: Callable[[int], bool],
) -> DesignT:
    """Return the design of an order, or of the largest order within the budget.

    Parameters
    ----------
    order : int or "auto"
        What was asked for.
    make : callable
        Makes the design of an order with at most so many coalitions, or raises
        `TooManyCoalitionsError`.
    request : DesignRequest
        Says the budget. Where that is nobody's choice, a given order may exceed it.
    first : int
        The least order there is.
    is_last : callable
        Tells of an order that was affordable whether nothing changes from it on.

    Raises
    ------
    BudgetError
        If the order, or the first one, costs more than the budget; says how much.
    """
    if isinstance(order, int):
        return make_or_refuse(order, make, request)
    found = None
    for candidate in count(first):
        try:
            found = make(candidate, request.budget)
        except TooManyCoalitionsError:
            break
        if is_last(candidate):
            break
    return make_or_refuse(first, make, request) if found is None else found


def allowed(request: DesignRequest) -> int:
    """Return how many coalitions a given order may need."""
    return _WITHOUT_BUDGET if request.budget_is_default else request.budget


def make_or_refuse(
    order: int, make: Callable[[int, int], DesignT], request: DesignRequest
) -> DesignT:
    """Return the design of an order, or say how many evaluations it takes."""
    try:
        return make(order, allowed(request))
    except TooManyCoalitionsError as error:
        needed = needed_for(order, make, error)
        raise BudgetError(
            f"order={order} needs {needed} evaluations for a row of {request.n_players} players; "
            "lower it, or pass order='auto' for the largest that fits."
        ) from error


def needed_for(order: int, make: Callable[[int, int], Any], error: TooManyCoalitionsError) -> str:
    """Say how many coalitions an order needs, as far as they can be counted."""
    try:
        return str(make(order, MOST_COALITIONS).table.counts[0])
    except TooManyCoalitionsError as still:
        error = still
    return f"more than {max(error.args[0], MOST_COALITIONS)}"
