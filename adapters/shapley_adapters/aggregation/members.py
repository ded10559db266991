"""The explainers that an aggregate combines: names, shares of the budget, what they spent."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError


def name_of(explainer: Any) -> str:
    """Return the name of an explainer, a method or a function, for messages."""
    return getattr(explainer, "__name__", type(explainer).__name__)


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function; none for builtins without a signature."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def share_of_budget(name: str, budget: int, n_shares: int, sharers: str) -> int:
    """Return the budget of each explainer when `n_shares` of them share `budget` equally.

    Parameters
    ----------
    name : str
        The host's name of the budget.
    budget, n_shares : int
        The budget, and the number of shares.
    sharers : str
        The host's word for explainers.

    Raises
    ------
    BudgetError
        If a share is less than one evaluation.
    """
    if n_shares > budget:
        raise BudgetError(
            f"{name}={budget} must be shared by {n_shares} {sharers}; pass at least {n_shares}, or "
            "leave it out."
        )
    return budget // max(1, n_shares)


@contextmanager
def shared_budget(name: str, n_shares: int) -> Iterator[None]:
    """Say of a budget that is too small for an explainer that it is one of several shares."""
    try:
        yield
    except BudgetError as error:
        if n_shares < 2:
            raise
        total = "more" if error.needed is None else f"{n_shares * error.needed} or more"
        raise BudgetError(
            f"{error} It is this explainer's part of the budget, which {n_shares} share. Pass "
            f"{total} as {name}= to the aggregate."
        ) from error


def checked_members(
    name: str, members: object, what: str, *, may_be_named: bool = False
) -> list[Any]:
    """Return a user's list of members, each of which is `what` the host takes."""
    if isinstance(members, str) or not isinstance(members, Sequence):
        raise InvalidArgumentTypeError(
            f"{name} must be a list, each entry {what}; got {type(members).__name__}."
        )
    if not members:
        raise InvalidArgumentError(f"{name} must hold at least one; each is {what}.")
    for index, member in enumerate(members):
        if not (may_be_named and isinstance(member, str)):
            check_member(f"{name}[{index}]", member, what)
    return list(members)


def check_member(name: str, member: object, what: str) -> None:
    """Refuse what cannot explain: classes, and objects without `attribute` that are no function."""
    if isinstance(member, type) or not (callable(member) or hasattr(member, "attribute")):
        raise InvalidArgumentTypeError(f"{name} must be {what}; got {member!r}.")


@dataclass(frozen=True)
class SpentEvaluations:
    """The evaluations of the members of an aggregate in one call, all rows together.

    An evaluation is that of one coalition of one row. Members of other packages are not counted.

    Attributes
    ----------
    counted : tuple of (str, int)
        The name of each member that counts, and its evaluations.
    not_counted : tuple of str
        The names of the others.
    """

    counted: tuple[tuple[str, int], ...]
    not_counted: tuple[str, ...]

    @classmethod
    def from_members(cls, members: Iterable[tuple[str, Any]]) -> SpentEvaluations:
        """Return what named explainers spent in their latest calls."""
        named = [(name, latest_evaluations(explainer)) for name, explainer in members]
        return cls(
            tuple((name, count) for name, count in named if count is not None),
            tuple(name for name, count in named if count is None),
        )

    @property
    def total(self) -> int:
        """The evaluations of the members that count."""
        return sum(count for _, count in self.counted)

    def __str__(self) -> str:
        """Return the counts, and who does not count."""
        parts = [f"{name}: {count:,}" for name, count in self.counted]
        if self.not_counted:
            parts.append(f"not counted: {', '.join(self.not_counted)}")
        return "; ".join(parts)


def latest_evaluations(explainer: Any) -> int | None:
    """Return the evaluations of an explainer's latest call; None if it does not count them."""
    spent = getattr(explainer, "last_evaluations", None)
    if isinstance(spent, SpentEvaluations):
        return None if spent.not_counted else spent.total
    counts = getattr(getattr(explainer, "last_estimate", None), "evaluations", None)
    return None if counts is None else int(counts.sum())
