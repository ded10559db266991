"""Segments of images: labels of the user, grids, and superpixels of scikit-image.

An image has its channels last, (H, W, C), or none, (H, W). So a series (times, channels) is an
image without channels, too, and the cells of a grid are its windows. Volumes have a third axis
before these, (D, H, W, C) or (D, H, W).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .arguments import checked_choice, checked_count
from .array_types import IntArray
from .errors import InvalidArgumentError, InvalidArgumentTypeError, required_packages

Segments: TypeAlias = (
    "int | tuple[int, ...] | npt.NDArray[np.integer[Any]] | "
    "Callable[[npt.NDArray[Any]], npt.ArrayLike]"
)
"""How many segments, lines and columns of a grid, labels, or a function from image to labels."""

_FORMS = (
    "a number of segments, the lines and columns of a grid such as (7, 7), labels (height, "
    "width), or a function that returns labels"
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
    n_axes : int
        The axes of an image without its channels: 3 for volumes.
    """

    segments: Segments
    method: str = "grid"
    n_axes: int = 2

    def __post_init__(self) -> None:
        checked_choice("method", self.method, ("grid", "slic"))
        if callable(self.segments):
            return
        if isinstance(self.segments, tuple):
            if len(self.segments) != self.n_axes:
                of_volume = "slices, " if self.n_axes == 3 else ""
                raise InvalidArgumentError(
                    f"segments={self.segments!r} must be the {of_volume}lines and columns of a "
                    "grid."
                )
            for count in self.segments:
                checked_count("segments", count)
        elif isinstance(self.segments, (np.ndarray, list)) or hasattr(self.segments, "__array__"):
            labels = _checked_labels(self.segments, self.n_axes)
            object.__setattr__(self, "segments", labels)
        elif isinstance(self.segments, (int, np.integer)):
            checked_count("segments", self.segments)
            if self.method == "slic":
                _slic()
        else:
            raise InvalidArgumentTypeError(
                f"segments must be {_FORMS}; got {type(self.segments).__name__}."
            )

    def __call__(self, image: npt.NDArray[Any], name: str) -> IntArray:
        """Return the label of each pixel, (H, W); (D, H, W) for volumes.

        Parameters
        ----------
        image : array, (H, W) or (H, W, C)
            The image; (D, H, W) or (D, H, W, C) for volumes.
        name : str
            Its name in messages.

        Raises
        ------
        InvalidArgumentError
            If the image is none, or the segments do not fit it.
        """
        _check_image(image, name, self.n_axes)
        shape = image.shape[: self.n_axes]
        labels: npt.NDArray[np.integer[Any]]
        if callable(self.segments):
            made = self.segments(image.copy())
            labels = _checked_labels(made, self.n_axes, f"segments(image) of {name}")
        elif isinstance(self.segments, np.ndarray):
            labels = self.segments
        elif isinstance(self.segments, tuple):
            labels = _grid_labels(shape, self.segments, name)
        elif self.segments > math.prod(shape):
            raise InvalidArgumentError(
                f"segments={self.segments} is more than the {math.prod(shape)} pixels of {name}."
            )
        elif self.method == "slic":
            return _slic_labels(image, int(self.segments), name, self.n_axes)
        else:
            labels = _grid_labels(shape, _near_squares(shape, int(self.segments)), name)
        if labels.shape != shape:
            raise InvalidArgumentError(
                f"segments holds labels of the shape {labels.shape}, but {name} has "
                f"{_times(shape)} pixels. Pass one label for each pixel, or resize the image."
            )
        return labels.astype(np.intp, copy=False)


def paint(values: npt.NDArray[Any], places: IntArray) -> npt.NDArray[Any]:
    """Return numbers of segments, (M, …), as equal shares of their entries, (*places.shape, …).

    `places` has the segment of each entry. The shares sum to the same as the numbers.
    """
    counts = np.bincount(places.ravel(), minlength=len(values))
    shares = values / np.maximum(counts, 1).reshape(-1, *[1] * (values.ndim - 1))
    return shares[places]


def collect(painted: npt.NDArray[Any], places: IntArray, n_segments: int) -> npt.NDArray[Any]:
    """Return the sums over the entries of each segment, (M, …): the inverse of `paint`."""
    sums = np.zeros((n_segments, *painted.shape[places.ndim :]), dtype=painted.dtype)
    np.add.at(sums, places, painted)
    return sums


def _checked_labels(
    labels: Any, n_axes: int, name: str = "segments"
) -> npt.NDArray[np.integer[Any]]:
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
    if array.ndim != n_axes or array.size == 0:
        axes = "(height, width)" if n_axes == 2 else "(depth, height, width)"
        raise InvalidArgumentError(
            f"{name} has the shape {array.shape}; labels of pixels, {axes}, are needed. "
            "For images with segments of their own, pass a function from image to labels."
        )
    return array


def _check_image(image: npt.NDArray[Any], name: str, n_axes: int) -> None:
    if image.ndim not in (n_axes, n_axes + 1) or image.size == 0 or image.dtype.kind not in "biuf":
        raise InvalidArgumentError(
            f"{name} has the shape {image.shape} and holds {image.dtype}; an image of numbers, "
            "(height, width) or (height, width, channels), is needed."
        )
    if n_axes == 2 < image.ndim and image.shape[0] in (1, 3) and min(image.shape[1:]) > 4:
        raise InvalidArgumentError(
            f"{name} has the shape {image.shape}, which looks like channels first; they must be "
            "last, as in np.moveaxis(images, 1, -1)."
        )


def _near_squares(shape: tuple[int, ...], n_segments: float) -> tuple[int, ...]:
    """Return the cells along each axis of about so many cells, as square as possible."""
    size, *others = shape
    wanted = n_segments * size ** len(others) / math.prod(others)
    count = min(size, max(1, round(wanted ** (1 / len(shape)))))
    return (count, *(_near_squares(tuple(others), n_segments / count) if others else ()))


def _grid_labels(shape: tuple[int, ...], grid: tuple[int, ...], name: str) -> IntArray:
    if any(count > size for count, size in zip(grid, shape, strict=True)):
        raise InvalidArgumentError(
            f"segments={grid} would leave segments of {name} empty, which has only {_times(shape)} "
            "pixels. Pass fewer lines or columns."
        )
    cells = [np.arange(size) * count // size for count, size in zip(grid, shape, strict=True)]
    return np.ravel_multi_index(np.ix_(*cells), grid)


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _slic() -> Callable[..., Any]:
    needed_by = "method='slic' needs scikit-image (method='grid' needs nothing)"
    with required_packages(needed_by, extra="text-and-images"):
        from skimage.segmentation import slic
    return slic


def _slic_labels(image: npt.NDArray[Any], n_segments: int, name: str, n_axes: int) -> IntArray:
    if not np.isfinite(image).all():
        raise InvalidArgumentError(
            f"{name} holds NaN or infinite numbers, from which SLIC makes no segments. Pass a grid."
        )
    n_channels = image.shape[n_axes] if image.ndim > n_axes else 1
    labels = _slic()(
        image if n_channels > 1 else image.reshape(image.shape[:n_axes]),
        n_segments=n_segments,
        compactness=_COMPACTNESS.get(n_channels, _COMPACTNESS_OTHERWISE),
        channel_axis=-1 if n_channels > 1 else None,
        start_label=0,
    )
    return np.asarray(labels, dtype=np.intp)
