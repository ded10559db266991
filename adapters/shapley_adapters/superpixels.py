"""Segments of images: labels of the user, grids, and superpixels of scikit-image.

An image has its channels last, (H, W, C), or none, (H, W). So a series (times, channels) is an
image without channels, too, and the cells of a grid are its windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .arguments import checked_choice, checked_count
from .array_types import IntArray
from .errors import InvalidArgumentError, InvalidArgumentTypeError, required_packages

Segments: TypeAlias = (
    "int | tuple[int, int] | npt.NDArray[np.integer[Any]] | "
    "Callable[[npt.NDArray[Any]], npt.ArrayLike]"
)
"""How many segments, lines and columns of a grid, labels, or a function from image to labels."""

_FORMS = (
    "a number of segments, the lines and columns of a grid such as (7, 7), an array of labels "
    "(height, width), or a function that returns the labels of an image"
)

_COMPACTNESS = {3: 10.0}
"""The weight of positions beside colours in SLIC, by the number of channels. Images with three are
compared as CIELAB, with lightness from 0 to 100, and others in the range from 0 to 1."""

_COMPACTNESS_OTHERWISE = 0.1


@dataclass(frozen=True, eq=False)
class Segmentation:
    """Divides images into segments.

    Attributes
    ----------
    segments : int, tuple, array or callable
        How many; the lines and columns of a grid; labels for all images; or a function that
        returns the labels of an image.
    method : {"grid", "slic"}
        How to make a number of segments: cells that are nearly squares, or superpixels by SLIC of
        scikit-image.
    """

    segments: Segments
    method: str = "grid"

    def __post_init__(self) -> None:
        checked_choice("method", self.method, ("grid", "slic"))
        if callable(self.segments):
            return
        if isinstance(self.segments, tuple):
            if len(self.segments) != 2:
                raise InvalidArgumentError(
                    f"segments={self.segments!r} must be the lines and columns of a grid."
                )
            for count in self.segments:
                checked_count("segments", count)
        elif isinstance(self.segments, (np.ndarray, list)) or hasattr(self.segments, "__array__"):
            object.__setattr__(self, "segments", _checked_labels(self.segments))
        elif isinstance(self.segments, (int, np.integer)):
            checked_count("segments", self.segments)
            if self.method == "slic":
                _slic()
        else:
            raise InvalidArgumentTypeError(
                f"segments must be {_FORMS}; got {type(self.segments).__name__}."
            )

    def __call__(self, image: npt.NDArray[Any], name: str) -> IntArray:
        """Return the label of each pixel, (H, W).

        Parameters
        ----------
        image : array, (H, W) or (H, W, C)
            The image.
        name : str
            Its name in messages.

        Raises
        ------
        InvalidArgumentError
            If the image is none, or the segments do not fit it.
        """
        _check_image(image, name)
        height, width = image.shape[:2]
        labels: npt.NDArray[np.integer[Any]]
        if callable(self.segments):
            labels = _checked_labels(self.segments(image.copy()), f"segments(image) of {name}")
        elif isinstance(self.segments, np.ndarray):
            labels = self.segments
        elif isinstance(self.segments, tuple):
            labels = _grid_labels(height, width, self.segments, name)
        elif self.segments > height * width:
            raise InvalidArgumentError(
                f"segments={self.segments} is more than the {height * width} pixels of {name}."
            )
        elif self.method == "slic":
            return _slic_labels(image, int(self.segments), name)
        else:
            labels = _grid_labels(
                height, width, _near_squares(height, width, int(self.segments)), name
            )
        if labels.shape != (height, width):
            raise InvalidArgumentError(
                f"segments holds labels of the shape {labels.shape}, but {name} has "
                f"{height} x {width} pixels. Pass one label for each pixel, or resize the image."
            )
        return labels.astype(np.intp, copy=False)


def paint(values: npt.NDArray[Any], places: IntArray) -> npt.NDArray[Any]:
    """Return numbers of segments, (M, …), as equal shares of their entries, (*places.shape, …).

    `places` has the segment of each entry. The shares sum to the same as the numbers.
    """
    counts = np.bincount(places.ravel(), minlength=len(values))
    shares = values / np.maximum(counts, 1).reshape(-1, *[1] * (values.ndim - 1))
    painted: npt.NDArray[Any] = shares[places]
    return painted


def collect(painted: npt.NDArray[Any], places: IntArray, n_segments: int) -> npt.NDArray[Any]:
    """Return the sums over the entries of each segment, (M, …): the inverse of `paint`."""
    sums = np.zeros((n_segments, *painted.shape[places.ndim :]), dtype=painted.dtype)
    np.add.at(sums, places, painted)
    return sums


def _checked_labels(labels: Any, name: str = "segments") -> npt.NDArray[np.integer[Any]]:
    array: npt.NDArray[Any] = np.asarray(labels)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InvalidArgumentError(
            f"{name} holds NaN in {np.isnan(array).sum()} places. Give each pixel a label; those "
            "of no segment may share one."
        )
    if array.dtype.kind not in "iu":
        raise InvalidArgumentTypeError(
            f"{name} must hold whole numbers, the labels of pixels; got {array.dtype}."
        )
    if array.ndim != 2 or array.size == 0:
        raise InvalidArgumentError(
            f"{name} has the shape {array.shape}; labels of pixels, (height, width), are needed. "
            "For images with segments of their own, pass a function from image to labels."
        )
    return array


def _check_image(image: npt.NDArray[Any], name: str) -> None:
    if image.ndim not in (2, 3) or image.size == 0 or image.dtype.kind not in "biuf":
        raise InvalidArgumentError(
            f"{name} has the shape {image.shape} and holds {image.dtype}; an image of numbers, "
            "(height, width) or (height, width, channels), is needed."
        )
    if image.ndim == 3 and image.shape[0] in (1, 3) and min(image.shape[1:]) > 4:
        raise InvalidArgumentError(
            f"{name} has the shape {image.shape}, which looks like channels first; they must be "
            "last, as in np.moveaxis(images, 1, -1)."
        )


def _near_squares(height: int, width: int, n_segments: int) -> tuple[int, int]:
    """Return the lines and columns of about so many cells, as square as possible."""
    lines = min(height, max(1, round((n_segments * height / width) ** 0.5)))
    return lines, min(width, max(1, round(n_segments / lines)))


def _grid_labels(height: int, width: int, grid: tuple[int, int], name: str) -> IntArray:
    lines, columns = grid
    if lines > height or columns > width:
        raise InvalidArgumentError(
            f"segments={grid} would leave segments of {name} empty, which has only {height} x "
            f"{width} pixels. Pass fewer lines or columns."
        )
    line = np.arange(height) * lines // height
    column = np.arange(width) * columns // width
    return line[:, None] * columns + column


def _slic() -> Callable[..., Any]:
    needed_by = "method='slic' needs scikit-image (method='grid' needs nothing)"
    with required_packages(needed_by, extra="text-and-images"):
        from skimage.segmentation import slic
    function: Callable[..., Any] = slic
    return function


def _slic_labels(image: npt.NDArray[Any], n_segments: int, name: str) -> IntArray:
    if not np.isfinite(image).all():
        raise InvalidArgumentError(
            f"{name} holds NaN or infinite numbers, from which SLIC makes no segments. Pass a grid."
        )
    n_channels = image.shape[2] if image.ndim == 3 else 1
    labels = _slic()(
        image if n_channels > 1 else image.reshape(image.shape[:2]),
        n_segments=n_segments,
        compactness=_COMPACTNESS.get(n_channels, _COMPACTNESS_OTHERWISE),
        channel_axis=-1 if n_channels > 1 else None,
        start_label=0,
    )
    return np.asarray(labels, dtype=np.intp)
