"""Checks of the argument `cooperators`: the source of the cooperators."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ..arguments import check_unmasked, checked_choice
from ..array_types import ScoreArray
from ..errors import InvalidArgumentError

LEARNED = "learned"
"""Cooperators at random, and interactions that a regression learns from the values."""

COOPERATORS = ("auto", "hessian", "gradient", "difference", "random", LEARNED)

DERIVATIVES = "derivatives"
"""As "auto", but rows without usable derivatives get no scores instead of differences or draws."""

PRIORS = ("auto", "hessian", "gradient", "difference")
"""Sources of a prior of the interactions, for odd Gaussian-process regression."""


Cooperators: TypeAlias = str | ScoreArray
"""The name of a way to find cooperators, or scores of pairs of players."""


def checked_cooperators(cooperators: Any, ways: tuple[str, ...] = COOPERATORS) -> str | ScoreArray:
    """Return `cooperators` if it is one of the named sources, or an array of scores."""
    if isinstance(cooperators, str):
        return checked_choice("cooperators", cooperators, ways)
    check_unmasked("cooperators", cooperators)
    try:
        scores = np.asarray(cooperators, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"cooperators must be one of {', '.join(map(repr, ways))}, or an array of "
            f"scores, (M, M) or (rows, M, M); got {type(cooperators).__name__}."
        ) from error
    if scores.ndim not in (2, 3) or scores.shape[-1] != scores.shape[-2]:
        raise InvalidArgumentError(
            "cooperators must have shape (M, M) for M players, or (rows, M, M); got "
            f"{scores.shape}."
        )
    if not np.isfinite(scores).all() or (scores < 0).any():
        raise InvalidArgumentError(
            "cooperators must be finite and not negative: the larger a score, the stronger the "
            "interaction. Take absolute values."
        )
    return scores


def checked_prior(cooperators: Any, weights: str) -> str | ScoreArray | None:
    """Return the cooperators of a prior; rows without usable derivatives learn from values only."""
    if cooperators is None:
        return None
    if weights == "equal":
        raise InvalidArgumentError(
            f"cooperators are a prior for learned weights, but weights={weights!r} are not "
            "learned. Use weights='learned', or leave cooperators out."
        )
    checked = checked_cooperators(cooperators, PRIORS)
    return DERIVATIVES if isinstance(checked, str) and checked == "auto" else checked
