"""The forms of least squares as one choice, for the hosts."""

from __future__ import annotations

from ...arguments import checked_flag
from ...errors import InvalidArgumentError
from .regression import LeastSquares
from .unbiased import UnbiasedLeastSquares

OPTIONS = """paired : bool
        Whether each coalition is evaluated with its complement; quadratic models are then exact.
    sizes : {"kernel", "leverage"}
        The distribution of coalition sizes: the Shapley kernel, or leverage scores, which are
        uniform over sizes.
    replacement : bool
        Whether coalitions are drawn with replacement. If not, each is drawn at most once, with
        weights that account for this.
    unbiased : bool
        Whether to solve with the exact matrix (Covert and Lee, Improving KernelSHAP, AISTATS 2021)
        instead of the matrix of the draws."""
"""The meaning of the options, for the hosts' docstrings."""


def least_squares(
    paired: bool, sizes: str, replacement: bool, unbiased: bool
) -> LeastSquares | UnbiasedLeastSquares:
    """Return the regression of the draws, or the form with the exact matrix.

    Raises
    ------
    InvalidArgumentError
        If the unbiased form is combined with other sizes or draws without replacement.
    """
    regression = LeastSquares(paired, sizes, replacement)
    if not checked_flag("unbiased", unbiased):
        return regression
    if sizes != "kernel" or not replacement:
        raise InvalidArgumentError(
            "unbiased=True draws independently by the Shapley kernel; leave sizes='kernel' and "
            f"replacement=True. Got sizes={sizes!r}, replacement={replacement!r}."
        )
    return UnbiasedLeastSquares(paired)
