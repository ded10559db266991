"""Images: superpixels as feature masks, and attributions beside their standard errors."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    required_packages,
)
from shapley_adapters.superpixels import Segmentation, Segments
from shapley_adapters.torch_support.tensor_arrays import array_of

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

    return make_axes_locatable(axes).append_axes("bottom", size="5%", pad=0.1)


def superpixels(images: Tensor, segments: Segments | Any = 50, *, method: str = "grid") -> Tensor:
    """Divide images into segments, for the argument `feature_mask` of captum's methods and ours.

    Parameters
    ----------
    images : Tensor, (N, C, H, W)
        The images, with their channels first; volumes, (N, C, D, H, W); or series (N, times,
        channels), whose cells of a grid are windows.
    segments : int, (lines, columns), array or tensor of labels, or function
        How many segments; the lines and columns of a grid, for volumes (slices, lines, columns);
        the labels of the pixels, (H, W) of all images or (N, H, W); or a function that returns the
        labels of an image, which it gets as an array (H, W, C).
    method : {"grid", "slic"}
        How to make a number of segments: cells that are nearly squares, or superpixels that follow
        the image, by scikit-image. `pip install "shapley-ext[text-and-images]"` installs it.

    Returns
    -------
    Tensor of int64, (N, 1, H, W) or (N, 1, D, H, W)
        The segment of each pixel, for all its channels; (N, times, channels) for series. Segments
        of different images may have the same ids.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If images or segments cannot be used, or do not fit each other.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import OddGP, superpixels
    >>> images = torch.rand(2, 3, 16, 16)
    >>> mask = superpixels(images, (4, 4))
    >>> redness = lambda x: x[:, 0].mean(dim=(1, 2)) - x[:, 1].mean(dim=(1, 2))
    >>> OddGP(redness, seed=0).attribute(images, feature_mask=mask).shape
    torch.Size([2, 3, 16, 16])
    """
    if not isinstance(images, Tensor):
        raise InvalidArgumentTypeError(
            f"images must be a tensor (N, C, H, W), of images of one size; got "
            f"{type(images).__name__}. torch.stack joins tensors of single images."
        )
    if images.ndim not in (3, 4, 5) or len(images) == 0:
        raise InvalidArgumentError(
            f"images has the shape {tuple(images.shape)}; (N, C, H, W), or (N, C, D, H, W) for "
            "volumes, is needed. For one image pass image[None]."
        )
    has_channels, n_axes = images.ndim > 3, max(2, images.ndim - 2)
    if images.ndim == 4 and images.shape[-1] in (1, 3) and min(images.shape[1:3]) > 4:
        raise InvalidArgumentError(
            f"images must have their channels first, (N, C, H, W); got {tuple(images.shape)}. Pass "
            "images.permute(0, 3, 1, 2)."
        )
    channels_last = array_of(images.movedim(1, -1) if has_channels else images)
    segments = array_of(segments)
    if np.ndim(segments) == n_axes + 1 and not callable(segments):
        if len(segments) != len(images):
            raise InvalidArgumentError(
                f"segments holds labels of {len(segments)} images, but images holds {len(images)}."
            )
        of_images = [Segmentation(labels, method, n_axes) for labels in segments]
    else:
        of_images = [Segmentation(segments, method, n_axes)] * len(images)
    masks = [
        _numbered(segmentation(image, f"images, number {index},"))
        for index, (segmentation, image) in enumerate(zip(of_images, channels_last, strict=True))
    ]
    mask = torch.as_tensor(np.stack(masks), dtype=torch.int64, device=images.device)
    return mask[:, None] if has_channels else mask


def _numbered(labels: Any) -> Any:
    """Return labels from 0 without gaps."""
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape)
