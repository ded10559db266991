"""Heat maps of the interactions of pairs, with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import shap

from shapley_adapters.arguments import checked_count
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.pipeline.result import percent

from ..argument_types import Explanation
from .features import names_of_features, without_formulas
from .host_plots import pyplot
from .intervals import intervals_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHAPES = {2: "(features, features)", 3: "(rows, features, features)"}
_REMEDY = (
    "explainer(X, interactions=True, error_bounds=True) returns interactions; choose one output, "
    "such as explanation[..., 0]."
)
_INCHES_PER_CELL = 0.62
_STRONG = 0.6  # share of the largest value from which a cell is so dark that its number is white


def interactions(
    explanation: Explanation,
    max_display: int | None = 10,
    *,
    level: float = 0.95,
    independent_rows: bool = False,
    ax: Axes | None = None,
    show: bool = True,
) -> Axes | None:
    """Draw a heat map of interactions, without colour where the interval contains 0.

    A cell off the diagonal has the interaction of a pair, which is twice the value in the
    Explanation: both entries of a pair have half of it. The diagonal has the main effects.

    Parameters
    ----------
    explanation : Explanation
        Interactions with bounds, from `explainer(X, interactions=True, error_bounds=True)`. Of one
        row, the interactions are drawn; of several rows, their mean absolute values.
    max_display : int or None
        The largest number of features, those with the largest sum of absolute values first; None
        for all.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.
    independent_rows : bool
        Whether each row has random draws of its own, as with the estimators' option of this name.
        The errors of the rows then cancel in the mean. By default they do not.
    ax : Axes, optional
        The axes; by default the current ones.
    show : bool
        Whether to show the figure.

    Returns
    -------
    Axes or None
        The axes with `show=False`, else None.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no interactions, no bounds or several outputs.
    """
    if max_display is not None:
        checked_count("max_display", max_display)
    halves = intervals_of(explanation, level, "interactions", _SHAPES, _REMEDY)
    *_, n_lines, n_features = halves.values.shape
    if n_lines != n_features:
        raise InvalidArgumentError(
            f"plots.interactions needs a square of features for each row; got the shape "
            f"{halves.values.shape}. {_REMEDY}"
        )
    names = names_of_features(explanation, n_features)
    pairs = halves.mapped(lambda array: array * (2.0 - np.eye(n_features)))
    is_mean = pairs.values.ndim == 3
    if is_mean:
        pairs = pairs.mean_sizes(independent_rows=independent_rows)
    shown = np.argsort(-np.abs(pairs.values).sum(axis=0), kind="stable")[:max_display]
    cells = pairs.mapped(lambda array: array[np.ix_(shown, shown)])
    plt = pyplot()
    axes: Axes = plt.gca() if ax is None else ax
    if ax is None:
        side = len(shown) * _INCHES_PER_CELL
        plt.gcf().set_size_inches(side + 3.2, side + 2.0)
    limit = float(np.nanmax(np.abs(cells.values), initial=0.0)) or 1.0
    image = axes.imshow(
        np.ma.array(cells.values, mask=cells.contain_zero),
        cmap="Reds" if is_mean else shap.plots.colors.red_white_blue,
        vmin=0.0 if is_mean else -limit,
        vmax=limit,
    )
    for (row, column), value in np.ndenumerate(cells.values):
        is_dark = abs(value) > _STRONG * limit and not cells.contain_zero[row, column]
        number, colour = _number(value, limit, is_mean), "white" if is_dark else "#333333"
        axes.text(column, row, number, color=colour, fontsize=9, ha="center", va="center")
    label = "mean |interaction|" if is_mean else "interaction"
    axes.figure.colorbar(image, ax=axes, label=label, fraction=0.046, pad=0.03)
    labels = [without_formulas(names[feature]) for feature in shown]
    axes.set_xticks(range(len(shown)), labels, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(shown)), labels)
    axes.tick_params(length=0, labelsize=11)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(f"Without colour: the {percent(level)} interval contains 0", fontsize=11)
    if not show:
        return axes
    plt.show()
    return None


def _number(value: float, limit: float, is_mean: bool) -> str:
    """Return a number with three significant digits of the largest value, without minus zero.

    Very large and very small ones have a power of ten, so that they fit into the cell.
    """
    digits = 2 - int(np.floor(np.log10(limit)))
    rounded = round(float(value), digits) + 0.0
    style = f".{max(0, digits)}f" if -2 <= digits <= 5 else ".1e"
    number = f"{rounded:{style}}" if is_mean else f"{rounded:+{style}}"
    return number.replace("-", "\N{MINUS SIGN}") if rounded else "0"
