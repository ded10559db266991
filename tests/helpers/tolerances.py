"""The type of tolerances that tests name once and pass to `assert_allclose` or `assert_close`."""

from typing import TypedDict


class Tolerances(TypedDict):
    """How far two arrays may be apart."""

    rtol: float
    atol: float
