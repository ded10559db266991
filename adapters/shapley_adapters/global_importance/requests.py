"""The arguments of `global_importance` that both hosts share."""

from __future__ import annotations

from typing import Any

from ..arguments import checked_choice, checked_count, checked_flag
from ..errors import InvalidArgumentError
from ..pipeline.settings import checked_tolerance
from .error_parts import KINDS
from .estimate_importance import Plan


def checked_plan(
    *,
    kind: Any,
    n_rows: Any,
    tolerance: Any,
    total: Any,
    population: Any,
    total_name: str,
) -> Plan:
    """Return what a user asks for, its arguments checked."""
    checked_choice("kind", kind, KINDS)
    if tolerance is not None and total is not None:
        raise InvalidArgumentError(
            f"tolerance= and {total_name}= both decide the cost; pass one of them."
        )
    return Plan(
        kind=kind,
        n_rows=None if n_rows is None else checked_count("n_rows", n_rows),
        tolerance=checked_tolerance(tolerance),
        total=None if total is None else checked_count(total_name, total),
        is_population=checked_flag("population", population),
        total_name=total_name,
    )


def check_no_loss(kind: str, **arguments: Any) -> None:
    """Refuse a loss and labels where attributions are averaged, which would ignore them."""
    for name, value in arguments.items():
        if value is not None:
            raise InvalidArgumentError(
                f"{name} is used with kind='loss' only; kind is {kind!r}. Pass kind='loss', or "
                f"leave out {name}."
            )
