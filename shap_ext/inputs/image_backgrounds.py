"""Values of absent segments of an image: a colour, images, the blurred or the filled-in image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.ndimage

from shapley_adapters.array_types import BoolArray
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    required_packages,
)

_BLUR = 1 / 6
"""Standard deviation of the blur, as a share of the shorter side. It is that of the box of 128 of
224 pixels which shap's examples use."""


def check_background(background: object) -> None:
    """Refuse backgrounds that can be of no image, before there is one."""
    if isinstance(background, str):
        if background not in ("blur", "inpaint"):
            raise InvalidArgumentError(
                f"background={background!r} must be 'blur', 'inpaint', a number, a colour, an "
                "image, images, or a function that returns the background of an image."
            )
        if background == "inpaint":
            _inpainter()
    elif not callable(background):
        values = np.asarray(background)
        if values.dtype.kind not in "biuf" or values.size == 0:
            raise InvalidArgumentTypeError(
                f"background must hold numbers; got an array of {values.dtype} with the shape "
                f"{values.shape}."
            )
        if not np.isfinite(values).all():
            raise InvalidArgumentError("background holds NaN or infinite numbers.")


def images_of_background(
    background: Any, image: npt.NDArray[Any], name: str
) -> npt.NDArray[Any] | None:
    """Return the background of an image as images of its shape and type, (B, H, W[, C]).

    None for "inpaint", with which absent pixels depend on those that are present.
    """
    if isinstance(background, str) and background == "inpaint":
        return None
    if isinstance(background, str):
        width = _BLUR * min(image.shape[:2])
        widths = (width, width, 0)[: image.ndim]
        values = scipy.ndimage.gaussian_filter(image.astype(np.float64), widths)
    else:
        values = np.asarray(background(image.copy()) if callable(background) else background)
    is_colour = values.ndim == 0 or (image.ndim == 3 and values.shape == image.shape[2:])
    if is_colour:
        values = np.broadcast_to(values, image.shape)
    if values.ndim == image.ndim:
        values = values[None]
    if values.shape[1:] != image.shape or len(values) == 0:
        raise InvalidArgumentError(
            f"background has the shape {values.shape if is_colour else np.shape(values)}, but "
            f"{name} {image.shape}. Pass a number, one for each channel, or images of that shape."
        )
    return _in_type(values, image.dtype, is_made=isinstance(background, str), name=name)


def fill_in(image: npt.NDArray[Any], is_absent: BoolArray) -> npt.NDArray[Any]:
    """Return an image whose absent pixels, (H, W), are filled in from the others.

    An image of absent pixels alone gets its mean colour, as with shap's Image masker.
    """
    if not is_absent.any():
        return image
    numbers = image.astype(np.float64)
    if is_absent.all():
        filled = np.broadcast_to(numbers.mean(axis=(0, 1)), image.shape)
    else:
        channel_axis = -1 if image.ndim == 3 else None
        filled = _inpainter()(numbers, is_absent, channel_axis=channel_axis)
        where = is_absent if image.ndim == 2 else is_absent[..., None]
        filled = np.where(where, filled, image)
    return _in_type(filled, image.dtype, is_made=True, name="")


def _in_type(
    values: npt.NDArray[Any], dtype: np.dtype[Any], *, is_made: bool, name: str
) -> npt.NDArray[Any]:
    """Return values in the type of the image; made ones may be rounded, a user's may not."""
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    rounded = np.clip(np.rint(values.astype(np.float64)), *limits)
    if not is_made and (rounded != values).any():
        raise InvalidArgumentError(
            f"background holds numbers that {dtype} of {name} cannot hold, such as "
            f"{values[rounded != values][0]}. Pass the images as floating-point numbers."
        )
    return rounded.astype(dtype)


def _inpainter() -> Callable[..., Any]:
    needed_by = "background='inpaint' needs scikit-image (background='blur' needs nothing)"
    with required_packages(needed_by, extra="text-and-images"):
        from skimage.restoration import inpaint_biharmonic
    function: Callable[..., Any] = inpaint_biharmonic
    return function
