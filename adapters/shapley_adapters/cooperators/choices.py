"""What users may choose as the source of cooperators, checked."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ..arguments import check_unmasked, checked_choice
from ..array_types import ScoreArray
from ..errors import InvalidArgumentError

COOPERATORS = ("auto", "hessian", "gradient", "difference", "random")

DERIVATIVES = "derivatives"
"""As "auto", but what derivatives do not tell is left open: neither differences nor chance."""

PRIORS = ("auto", "hessian", "gradient", "difference")
"""How odd Gaussian-process regression may be told about interactions."""


Cooperators: TypeAlias = str | ScoreArray
"""The name of a way to find cooperators, or scores of pairs of players."""


def checked_cooperators(cooperators: Any, ways: tuple[str, ...] = COOPERATORS) -> str | ScoreArray:
    """Return `cooperators` if it is one of the named ways, or an array of scores."""
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
    """Return the cooperators that make a prior; what derivatives do not tell, values will."""
    if cooperators is None:
        return None
    if weights != "learned":
        raise InvalidArgumentError(
            f"cooperators are a prior of weights that are learned, and weights={weights!r} are "
            "not. Use weights='learned', or leave cooperators out."
        )
    checked = checked_cooperators(cooperators, PRIORS)
    return DERIVATIVES if isinstance(checked, str) and checked == "auto" else checked
