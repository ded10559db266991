"""The order of an estimator on a graph: the requested one, or the largest within the budget."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from ...arguments import checked_count
from ...errors import BudgetError, InvalidArgumentError
from ..protocol import Design, DesignRequest
from .linear_design import TooManyCoalitionsError

MAX_COALITIONS = 2**18
"""The largest number of distinct coalitions per row that is listed."""

_WITHOUT_BUDGET = 2**16
"""The largest number of distinct coalitions per row if the user gave no budget."""

_COUNTING_FACTOR = 4
"""An error reports the number of needed coalitions up to this multiple of the budget."""

DesignT = TypeVar("DesignT", bound=Design)


def checked_order(order: Any, minimum: int = 0) -> int | str:
    """Return `order` if it is "auto" or a whole number of at least `minimum`."""
    if isinstance(order, str) and order == "auto":
        return order
    if isinstance(order, str) or not isinstance(order, numbers.Integral):
        raise InvalidArgumentError(f"order must be a whole number or 'auto'; got {order!r}.")
    return checked_count("order", order, minimum)


def enumerate_within_budget(
    order: int | str,
    enumerate_all: Callable[[int, int], DesignT],
    request: DesignRequest,
    first: int,
    is_last: Callable[[int], bool],
) -> DesignT:
    """Return the design of an order, or for "auto" of the largest order within the budget.

    Parameters
    ----------
    order : int or "auto"
        The user's choice.
    enumerate_all : callable
        Takes an order and a number of coalitions. Returns the design of the order, or raises
        `TooManyCoalitionsError` if it needs more coalitions.
    request : DesignRequest
        Holds the budget. If this is a default, an order that is not "auto" may exceed it.
    first : int
        The smallest order.
    is_last : callable
        Returns whether all larger orders have the same design as an order.

    Raises
    ------
    BudgetError
        If the order, or the smallest one, costs more than the budget. The message contains the
        cost.
    """
    if isinstance(order, int):
        return _enumerate_or_refuse(order, enumerate_all, request)
    largest = None
    for candidate in count(first):
        try:
            largest = enumerate_all(candidate, request.budget)
        except TooManyCoalitionsError:
            break
        if is_last(candidate):
            break
    return _enumerate_or_refuse(first, enumerate_all, request) if largest is None else largest


def enumerate_or_draw(
    order: int | str,
    enumerate_all: Callable[[int, int], DesignT],
    draw: Callable[[int], DesignT],
    request: DesignRequest,
    is_last: Callable[[int], bool],
) -> DesignT:
    """Return the design of `enumerate_within_budget`, or a random one if the order costs too much.

    "auto" is the largest order within the budget. If that is 0, order 1 is drawn, so that
    neighbours are considered. If the budget is too small for these draws, too, the order is 0.

    Parameters
    ----------
    order, enumerate_all, request, is_last
        As in `enumerate_within_budget`; the smallest order is 0.
    draw : callable
        Draws the design of an order within the budget, or raises `BudgetError`.
    """
    if request.must_draw:
        return draw(order if isinstance(order, int) else 1)
    if isinstance(order, int):
        try:
            return enumerate_all(order, _budget_limit(request))
        except TooManyCoalitionsError:
            return draw(order)
    largest = enumerate_within_budget(order, enumerate_all, request, 0, is_last)
    if largest.order > 0 or is_last(0):
        return largest
    try:
        return draw(1)
    except BudgetError:
        return largest


def with_shortfall(order: int | str, design: DesignT, first: int, needed: str) -> DesignT:
    """Return a design that says why "auto" selected the order without neighbours, if it did.

    Parameters
    ----------
    order : int or "auto"
        The user's choice.
    design : Design
        The design within the budget.
    first : int
        The order with which each player is considered alone.
    needed : str
        The evaluations that the next order needs, in words.
    """
    if order != "auto" or design.order > first:
        return design
    reason = f"order='auto' came down to order {first}, because order {first + 1} needs {needed}"
    return replace(design, shortfall=reason)


def _budget_limit(request: DesignRequest) -> int:
    """Return the largest number of coalitions of an order that the user chose."""
    default = _WITHOUT_BUDGET if request.budget_is_default else 0
    return max(default, request.budget)


def _enumerate_or_refuse(
    order: int, enumerate_all: Callable[[int, int], DesignT], request: DesignRequest
) -> DesignT:
    """Return the design of an order, or raise an error with the evaluations that it takes."""
    limit = _budget_limit(request)
    try:
        return enumerate_all(order, limit)
    except TooManyCoalitionsError as error:
        needed = _needed_evaluations(order, enumerate_all, limit)
        raise BudgetError(
            f"with order={order} needs {needed} evaluations for a row of {request.n_players} "
            "players; lower it, or pass order='auto' for the largest that fits."
        ) from error


def _needed_evaluations(order: int, enumerate_all: Callable[[int, int], Design], limit: int) -> str:
    """Return in words how many coalitions an order needs, or a bound if counting takes long."""
    counting_limit = max(limit, min(_COUNTING_FACTOR * limit, _WITHOUT_BUDGET))
    if counting_limit > limit:
        try:
            return str(enumerate_all(order, counting_limit).table.counts[0])
        except TooManyCoalitionsError:
            pass
    return f"more than {counting_limit}"
