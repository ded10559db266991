"""Tolerances for `assert_allclose` or `assert_close` that tests name once, and their type."""

from typing import TypedDict


class Tolerances(TypedDict):
    """How far two arrays may be apart."""

    rtol: float
    atol: float


EXACT: Tolerances = {"rtol": 0, "atol": 1e-10}
"""For sums of few numbers of order one in double precision."""
