"""The forms of C-Shapley as one choice, for the hosts."""

from __future__ import annotations

from ...arguments import checked_choice
from ...errors import InvalidArgumentError
from .c_shapley import CShapley
from .c_shapley_regression import ConnectedRegression

VARIANTS = ("sum", "regression")

_OF_SUM = {"weighting": "myerson", "marginals": "removal"}
_OF_REGRESSION = {"shapes": "auto", "kernel": "shapley", "efficient": False}

OPTIONS = """variant : {"sum", "regression"}
        The sum of Definition 2, or the regression of v(U) − v(∅) on the members of U, over small
        connected sets U (4.3.2).
    context : {"removed", "kept"}
        Whether features outside the neighbourhood are absent, as in the paper, or present, as in
        the authors' code. For the regression, whether its target is v(U) − v(∅) or v(N) − v(N∖U).
    weighting : {"myerson", "paper"}
        The weight of a set of u features with b neighbours. "myerson" is (u − 1)! b! / (u + b)!,
        with which additive models are exact. "paper" is 2 / (u (u + 1) (u + 2)), the same for
        b = 2; with it, sets cannot be drawn at random.
    marginals : {"removal", "components"}
        The contribution of a feature to U: v(U) − v(U∖i), or v(U) less the sum of the values of the
        components of U∖i, as in the Myerson value. The latter takes fewer evaluations.
    shapes : {"auto", "connected", "squares"}
        The sets of the regression: all connected sets of up to `order` features, or the squares
        with sides up to `order`. "auto": squares on grids, and connected sets on other graphs.
    kernel : {"shapley", "equal"}
        The weights of the regression: those of the Shapley kernel, or equal ones. With hundreds of
        features, the kernel gives almost all weight to single features."""
"""The meaning of the options, for the hosts' docstrings."""


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
    # Both are built, so that each checks its options.
    sum_over_sets = CShapley(order if variant == "sum" else "auto", weighting, context, marginals)
    regression = ConnectedRegression(
        order if variant == "regression" else "auto", shapes, kernel, efficient, context
    )
    options = {
        "weighting": weighting,
        "marginals": marginals,
        "shapes": shapes,
        "kernel": kernel,
        "efficient": efficient,
    }
    foreign = _OF_REGRESSION if variant == "sum" else _OF_SUM
    for name, default in foreign.items():
        if options[name] != default:
            required_variant = "regression" if variant == "sum" else "sum"
            raise InvalidArgumentError(
                f"{name}={options[name]!r} is an option of variant={required_variant!r}; "
                f"leave it out, or change variant={variant!r}."
            )
    return sum_over_sets if variant == "sum" else regression
