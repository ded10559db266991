"""Checks of the arguments of networks that explain, the same in both hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..arguments import checked_choice, checked_count, checked_flag
from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    from torch import nn

    from ..pipeline.settings import Settings

Network: TypeAlias = "str | nn.Module"
"""The name of a network, or a module of the user."""


def check_amortized(explainer: Any, targets: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse arguments of a network that explains; set `labels` to the first target if it is None.

    Returns
    -------
    tuple of str
        The targets that a network may have that is loaded in place of training: all, or the one
        that the caller passed.
    """
    is_open = explainer.labels is None
    explainer.labels = checked_choice("labels", explainer.labels or targets[0], targets)
    checked_flag("paired", explainer.paired)
    explainer.n_mixed_rows = checked_count("n_mixed_rows", explainer.n_mixed_rows, minimum=0)
    checked_flag("efficient", explainer.efficient)
    return targets if is_open else (explainer.labels,)


def check_refinement(efficient: bool, **refinements: object) -> None:
    """Refuse arguments that refine a network's attributions if these are not made efficient.

    Raises
    ------
    InvalidArgumentError
        If one is given without `efficient`.
    """
    for name, value in refinements.items():
        if value and not efficient:
            raise InvalidArgumentError(
                f"{name} needs efficient=True: attributions are improved by evaluations of the "
                f"model, but efficient=False asks for none. Leave out {name}, or set "
                "efficient=True."
            )


def refinement(settings: Settings) -> Settings | None:
    """Return how to refine a network's attributions; None without a budget or a tolerance."""
    is_refined = settings.budget is not None or settings.tolerance is not None
    return settings if is_refined else None
