"""How far to look in a graph: the order that was asked for, or the largest that is affordable."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from ...arguments import checked_count
from ...errors import BudgetError, InvalidArgumentError
from ..protocol import Design, DesignRequest
from .linear_design import TooManyCoalitionsError

MOST_COALITIONS = 2**18
"""Distinct coalitions of one row beyond which none are listed."""

_WITHOUT_BUDGET = 2**16
"""Distinct coalitions of one row beyond which an order needs a budget that somebody named."""

_COUNTED_UP_TO = 4
"""How many times the affordable coalitions are counted to say in an error how many are needed."""

DesignT = TypeVar("DesignT", bound=Design)


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
        return _make_or_refuse(order, make, request)
    largest = None
    for candidate in count(first):
        try:
            largest = make(candidate, request.budget)
        except TooManyCoalitionsError:
            break
        if is_last(candidate):
            break
    return _make_or_refuse(first, make, request) if largest is None else largest


def affordable_or_drawn(
    order: int | str,
    make: Callable[[int, int], DesignT],
    draw: Callable[[int], DesignT],
    request: DesignRequest,
    is_last: Callable[[int], bool],
) -> DesignT:
    """Return what `affordable` does, with draws where an order costs more than the budget.

    A given order that costs more is drawn. "auto" is the largest order that costs no more; where
    that is 0, order 1 is drawn, so that neighbours count. Order 0 is left where the budget does not
    pay for these draws either.

    Parameters
    ----------
    order, make, request, is_last
        As in `affordable`; the least order is 0.
    draw : callable
        Draws the design of an order within the budget, or raises `BudgetError`.
    """
    if request.must_draw:
        return draw(order if isinstance(order, int) else 1)
    if isinstance(order, int):
        try:
            return make(order, _allowed(request))
        except TooManyCoalitionsError:
            return draw(order)
    largest = affordable(order, make, request, 0, is_last)
    if largest.order > 0 or is_last(0):
        return largest
    try:
        return draw(1)
    except BudgetError:
        return largest


def reason_for_first(order: int | str, design: Design, first: int, needed: str) -> str | None:
    """Return why "auto" came down to the order that leaves out all neighbours; None if not.

    Parameters
    ----------
    order : int or "auto"
        What was asked for.
    design : Design
        What the budget paid for.
    first : int
        The order at which each player is taken by itself.
    needed : str
        How many evaluations the next order takes.
    """
    if order != "auto" or design.order > first:
        return None
    return f"order='auto' came down to order {first}, because order {first + 1} needs {needed}"


def _allowed(request: DesignRequest) -> int:
    """Return how many coalitions a given order may need."""
    least = _WITHOUT_BUDGET if request.budget_is_default else 0
    return max(least, request.budget)


def _make_or_refuse(
    order: int, make: Callable[[int, int], DesignT], request: DesignRequest
) -> DesignT:
    """Return the design of an order, or say how many evaluations it takes."""
    most = _allowed(request)
    try:
        return make(order, most)
    except TooManyCoalitionsError as error:
        needed = _needed_for(order, make, most)
        raise BudgetError(
            f"with order={order} needs {needed} evaluations for a row of {request.n_players} "
            "players; lower it, or pass order='auto' for the largest that fits."
        ) from error


def _needed_for(order: int, make: Callable[[int, int], Design], most: int) -> str:
    """Say how many coalitions an order needs, as far as that is soon counted."""
    limit = max(most, min(_COUNTED_UP_TO * most, _WITHOUT_BUDGET))
    if limit > most:
        try:
            return str(make(order, limit).table.counts[0])
        except TooManyCoalitionsError:
            pass
    return f"more than {limit}"
