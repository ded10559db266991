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
        Definition 2, or the regression of v(U) − v(∅) on who is in U, over small connected sets U
        (4.3.2).
    context : {"removed", "kept"}
        Whether features outside the neighbourhood are absent, as the paper has it, or present, as
        the authors' code does; in the regression, whether v(U) − v(∅) or v(N) − v(N∖U) is
        explained.
    weighting : {"myerson", "paper"}
        The weight of a set of u features with b neighbours: (u − 1)! b! / (u + b)!, by which
        additive models come out exactly; or the paper's 2 / (u (u + 1) (u + 2)), the same for b =
        2, with which nothing can be drawn.
    marginals : {"removal", "components"}
        Whether a feature is paid v(U) − v(U∖i), or v(U) less what the components of U∖i are worth
        apart, as in the Myerson value; the latter takes fewer evaluations.
    shapes : {"auto", "connected", "squares"}
        The sets of the regression: all connected ones of up to `order` features, or the squares
        with sides up to `order`. By default squares on grids, and connected sets elsewhere.
    kernel : {"shapley", "equal"}
        The weights of the regression: of the Shapley kernel, or equal. With hundreds of features
        the kernel leaves little to all but single ones."""
"""What the options mean, for the hosts' docstrings."""


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
