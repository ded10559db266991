"""Attributions of images beside their standard errors, in the style of captum."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from shapley_adapters.arguments import checked_probability
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    required_packages,
)
from shapley_adapters.hatching import hatch_cells
from shapley_adapters.pipeline.result import percent, quantiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HATCH_COLOUR = "#4d4d4d"
_N_AXES = 2


def visualize_image_attr_with_error(
    attr: Tensor | npt.NDArray[Any],
    standard_error: Tensor | npt.NDArray[Any],
    *arguments: Any,
    level: float = 0.95,
    **options: Any,
) -> tuple[Figure, Sequence[Axes]]:
    """Draw attributions of an image by captum, and their standard errors beside them.

    On the left is captum's picture; pixels whose interval contains 0 are hatched. On the right
    are the standard errors, on a scale of their own.

    Parameters
    ----------
    attr, standard_error : arrays or tensors, (H, W, C) or (H, W)
        Attributions of one image and their standard errors, as
        `attribute(..., return_standard_error=True)` returns them, with the channels last.
    *arguments, **options
        The other arguments of captum's `visualize_image_attr`: `original_image`, `method`, `sign`,
        `cmap`, `title`, `fig_size` for each of the two pictures, `use_pyplot` and all others.
        `plt_fig_axis` is a figure and two axes.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.
        The intervals are normal.

    Returns
    -------
    figure, axes
        The figure and its two axes.

    Raises
    ------
    InvalidArgumentError
        If attributions and standard errors are not those of one image.

    Notes
    -----
    captum adds up the channels of a pixel. Their standard errors are added, too: this is exact
    where the channels belong to one feature of the mask, and otherwise never too small.
    """
    checked_probability("level", level)
    values, errors = _image_numbers("attr", attr), _image_numbers("standard_error", standard_error)
    if values.shape != errors.shape:
        raise InvalidArgumentError(
            f"attr and standard_error must have the same shape; got {values.shape} and "
            f"{errors.shape}. attribute(..., return_standard_error=True) returns both."
        )
    bound = _captum_arguments(values, arguments, options)
    figure, axes = _figure_and_axes(bound)
    _draw_attributions(figure, axes[0], bound)
    summed_errors = errors.sum(axis=2)
    widths = float(quantiles(level)) * summed_errors
    hatch_cells(axes[0], np.abs(values.sum(axis=2)) <= widths, _HATCH_COLOUR)
    _draw_errors(figure, axes[1], summed_errors)
    title = axes[0].get_title() or "attributions"
    axes[0].set_title(f"{title}\n(hatched: the {percent(level)} interval contains 0)")
    if bound["use_pyplot"]:
        _pyplot().show()
    return figure, axes


def _image_numbers(name: str, array: Tensor | npt.NDArray[Any]) -> FloatArray:
    """Return the numbers of one image, (H, W, C)."""
    numbers = array.detach().cpu().numpy() if isinstance(array, Tensor) else np.asarray(array)
    if numbers.ndim not in (2, 3):
        raise InvalidArgumentError(
            f"{name} must be of one image, (H, W, C) or (H, W); got shape {numbers.shape}. For a "
            f"batch of tensors, pass {name}[0].permute(1, 2, 0)."
        )
    of_pixels: FloatArray = numbers.astype(np.float64)
    return of_pixels if of_pixels.ndim == 3 else of_pixels[:, :, None]


def _pyplot() -> Any:
    with required_packages("visualize_image_attr_with_error needs matplotlib", extra="captum"):
        import matplotlib.pyplot as plt

    return plt


def _captum_arguments(
    values: FloatArray, positional: Sequence[Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all arguments of captum's function, with its defaults."""
    from captum.attr import visualization

    signature = inspect.signature(visualization.visualize_image_attr)
    try:
        bound = signature.bind(values, *positional, **options)
    except TypeError as error:
        raise InvalidArgumentTypeError(
            "visualize_image_attr_with_error takes the arguments of captum's "
            f"visualize_image_attr: {error}."
        ) from error
    bound.apply_defaults()
    return dict(bound.arguments)


def _figure_and_axes(arguments: Mapping[str, Any]) -> tuple[Figure, Sequence[Axes]]:
    """Return the figure of the call, or a new one with room for two pictures."""
    given = arguments["plt_fig_axis"]
    if given is not None:
        figure, axes = given
        if np.size(axes) != _N_AXES:
            raise InvalidArgumentError(
                "plt_fig_axis must be a figure and two axes, for attributions and standard "
                f"errors; got {np.size(axes)}. plt.subplots(1, 2) returns them."
            )
        return figure, list(np.ravel(axes))
    plt = _pyplot()
    width, height = arguments["fig_size"]
    if arguments["use_pyplot"]:
        figure = plt.figure(figsize=(2 * width, height))
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(2 * width, height))
    return figure, list(figure.subplots(1, 2))


def _draw_attributions(figure: Figure, axes: Axes, arguments: Mapping[str, Any]) -> None:
    """Draw captum's picture."""
    from captum.attr import visualization

    changes = {"plt_fig_axis": (figure, axes), "use_pyplot": False}
    visualization.visualize_image_attr(**{**arguments, **changes})
    if not arguments["show_colorbar"]:
        _room_for_colour_bar(axes).axis("off")


def _draw_errors(figure: Figure, axes: Axes, errors: FloatArray) -> None:
    """Draw the standard errors with a colour bar below, where captum draws it."""
    image = axes.imshow(errors, cmap="Purples", vmin=0.0)
    axes.set(xticks=[], yticks=[], title="standard errors")
    figure.colorbar(image, orientation="horizontal", cax=_room_for_colour_bar(axes))


def _room_for_colour_bar(axes: Axes) -> Axes:
    """Return axes below a picture, of captum's size, so that both pictures stay in line."""
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    below: Axes = make_axes_locatable(axes).append_axes("bottom", size="5%", pad=0.1)
    return below
