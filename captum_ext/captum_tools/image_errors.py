"""Attributions of images beside their standard errors, in the style of captum."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    required_packages,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def visualize_image_attr_with_error(
    attr: Tensor | npt.NDArray[Any],
    standard_error: Tensor | npt.NDArray[Any],
    *arguments: Any,
    **options: Any,
) -> tuple[Figure, Sequence[Axes]]:
    """Draw attributions of an image by captum, and their standard errors beside them.

    On the left is captum's picture, with a colour bar in the unit of the attributions. On the right
    are the standard errors in the same unit, from 0 to the largest of them.

    Parameters
    ----------
    attr, standard_error : arrays or tensors, (H, W, C) or (H, W)
        Attributions of one image and their standard errors, as
        `attribute(..., return_standard_error=True)` returns them, with the channels last.
    *arguments, **options
        The other arguments of captum's `visualize_image_attr`: `original_image`, `method`, `sign`,
        `cmap`, `title`, `fig_size` for each of the two pictures, `use_pyplot` and all others.
        `plt_fig_axis` is a figure and two axes, and `show_colorbar` is True by default.

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
    from captum.attr import visualization

    values, errors = _image_numbers("attr", attr), _image_numbers("standard_error", standard_error)
    if values.shape != errors.shape:
        raise InvalidArgumentError(
            f"attr and standard_error must have the same shape; got {values.shape} and "
            f"{errors.shape}. attribute(..., return_standard_error=True) returns both."
        )
    draw = visualization.visualize_image_attr
    try:
        bound = inspect.signature(draw).bind(values, *arguments, **options)
    except TypeError as error:
        raise InvalidArgumentTypeError(
            "visualize_image_attr_with_error takes the arguments of captum's "
            f"visualize_image_attr: {error}."
        ) from error
    bound.arguments.setdefault("show_colorbar", True)
    bound.apply_defaults()
    all_arguments = bound.arguments
    figure, axes = _figure_and_axes(all_arguments)
    sums, error_sums = values.sum(axis=2), errors.sum(axis=2)
    largest_error = float(np.nanmax(error_sums, initial=0.0))
    # captum divides by a quantile of the attributions of the chosen sign, and refuses to divide
    # by 0. It then draws ones instead, which are replaced.
    sign = -1 if all_arguments["sign"] == "negative" else 1
    has_signs = all_arguments["sign"] in ("positive", "negative")
    is_blank = not (sign * sums > 0 if has_signs else sums).any()
    all_arguments["attr"] = np.full_like(sums, sign) if is_blank else sums
    draw(**{**all_arguments, "plt_fig_axis": (figure, axes[0]), "use_pyplot": False})
    picture = axes[0].images[-1]
    pixels = np.asarray(picture.get_array())
    if all_arguments["method"] in ("heat_map", "blended_heat_map"):
        scale = largest_error or 1.0 if is_blank else np.abs(sums[np.abs(pixels) == 1]).min()
        limits = sorted(sign * scale * limit for limit in picture.get_clim())
        picture.set(data=0 * pixels if is_blank else sign * scale * pixels, clim=limits)
        if sign < 0:
            picture.set_cmap(picture.get_cmap().reversed())
    elif is_blank and all_arguments["method"] != "original_image":
        picture.set_data(0 * pixels)
    axes[0].set_title(axes[0].get_title() or "attributions")
    if not all_arguments["show_colorbar"]:
        _room_for_colour_bar(axes[0]).axis("off")
    size = float(np.abs(sums).max())
    limit = largest_error or size or 1.0
    image = axes[1].imshow(error_sums, cmap="viridis", vmin=0.0, vmax=limit)
    axes[1].set(xticks=[], yticks=[], title="standard errors")
    bar = figure.colorbar(image, orientation="horizontal", cax=_room_for_colour_bar(axes[1]))
    bar.set_label(f"attributions: up to {size:.3g}")
    for each in (picture, image):
        if each.colorbar is not None:
            each.colorbar.ax.locator_params(nbins=5)  # numbers of small errors are long
    if all_arguments["use_pyplot"]:
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


def _figure_and_axes(arguments: dict[str, Any]) -> tuple[Figure, Sequence[Axes]]:
    """Return the figure of the call, or a new one with room for two pictures."""
    given = arguments["plt_fig_axis"]
    if given is not None:
        figure, axes = given
        if np.size(axes) != 2:
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


def _room_for_colour_bar(axes: Axes) -> Axes:
    """Return axes below a picture, of captum's size, so that both pictures stay in line."""
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    below: Axes = make_axes_locatable(axes).append_axes("bottom", size="5%", pad=0.1)
    return below
