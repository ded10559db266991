"""The forms of C-Shapley as one choice, for the hosts."""

from __future__ import annotations

from .arguments import checked_choice
from .errors import InvalidArgumentError
from .estimators.connected_regression import ConnectedRegression
from .estimators.connected_shapley import CShapley

VARIANTS = ("sum", "regression")

_OF_SUM = {"weighting": "myerson", "marginals": "removal"}
_OF_REGRESSION = {"shapes": "auto", "kernel": "shapley", "efficient": False}


def c_shapley(
    order: int | str,
    variant: str,
    context: str,
    *,
    weighting: str,
    marginals: str,
    shapes: str,
    kernel: str,
    efficient: bool,
) -> CShapley | ConnectedRegression:
    """Return the sum over connected sets, or the regression on them.

    Raises
    ------
    InvalidArgumentError
        If an option of the other variant is given.
    """
    checked_choice("variant", variant, VARIANTS)
    summed = CShapley(order if variant == "sum" else "auto", weighting, context, marginals)
    solved = ConnectedRegression(
        order if variant == "regression" else "auto", shapes, kernel, efficient, context
    )
    given = {
        "weighting": weighting,
        "marginals": marginals,
        "shapes": shapes,
        "kernel": kernel,
        "efficient": efficient,
    }
    foreign = _OF_REGRESSION if variant == "sum" else _OF_SUM
    for name, default in foreign.items():
        if given[name] != default:
            other = "regression" if variant == "sum" else "sum"
            raise InvalidArgumentError(
                f"{name}={given[name]!r} is an option of variant={other!r}; leave it out, or "
                f"change variant={variant!r}."
            )
    return summed if variant == "sum" else solved
