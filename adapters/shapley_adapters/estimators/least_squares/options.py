"""The forms of least squares as one choice, for the hosts."""

from __future__ import annotations

from ...arguments import checked_flag
from ...errors import InvalidArgumentError
from .regression import LeastSquares
from .unbiased import UnbiasedLeastSquares

OPTIONS = """paired : bool
        Whether each coalition comes with its complement; quadratic models are exact then.
    sizes : {"kernel", "leverage"}
        Whether coalition sizes are drawn by the Shapley kernel or by their leverage, uniformly.
    replacement : bool
        Whether coalitions are drawn with replacement, or each once, with the weights that match.
    unbiased : bool
        Whether to solve with the exact matrix (Covert and Lee, Improving KernelSHAP, AISTATS 2021)
        in place of that of the draws."""
"""What the options mean, for the hosts' docstrings."""


def least_squares(
    paired: bool, sizes: str, replacement: bool, unbiased: bool
) -> LeastSquares | UnbiasedLeastSquares:
    """Return the regression of the draws, or the form with the exact matrix.

    Raises
    ------
    InvalidArgumentError
        If the unbiased form is asked for other draws than its own.
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
