"""Images masked by superpixels: a colour, images, the blurred or the filled-in image instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.ndimage
import shap

from shapley_adapters.array_types import BoolArray, IntArray
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    required_packages,
)
from shapley_adapters.superpixels import Segmentation, Segments, paint
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..argument_types import Explanation
from ..inputs.datasets import packed, same
from ..inputs.masked_rows import InputMask, Mask, MaskedInputs, MaskedRow

_BLUR = 1 / 6
"""Standard deviation of the blur, as a share of the shorter side. It is that of the box of 128 of
224 pixels which shap's examples use."""


@dataclass(eq=False)
class Superpixels:
    """Masks images by segments: the segments are the features, instead of pixels.

    Explainers of shap_ext return attributions of the images' shape, as for `shap.image_plot`. Each
    segment shares its attribution equally between its numbers, so that an image's attributions
    still sum to the model's output less the base value. shap's own explainers return one
    attribution for each segment; `paint` makes images of them.

    Parameters
    ----------
    segments : int, (lines, columns), array of labels (H, W), or function
        How many segments; the lines and columns of a grid; the labels of the pixels of all images;
        or a function that returns the labels of an image, such as
        `lambda image: skimage.segmentation.quickshift(image)`.
    background : "blur", "inpaint", number, colour, image, images or function
        The values of absent segments: those of the blurred image; those that scikit-image fills in
        from the present segments, which takes .02 s for an image of 32 × 32 and .3 s for one of
        224 × 224, for each coalition; one number, or one for each channel; an image; several
        images, (B, H, W, C), over which the output is averaged; or a function that returns the
        background of an image.
    method : {"grid", "slic"}
        How to make a number of segments: cells that are nearly squares, or superpixels that follow
        the image, by scikit-image. `pip install "shapley-ext[text-and-images]"` installs it.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If segments or background cannot be used, or do not fit an image; the model is not called.

    Notes
    -----
    Images have their channels last, (H, W, C), or none, (H, W); so a series (times, channels) can
    be explained by windows, `Superpixels(shap_ext.windows(...))`. Images of one call may have
    different sizes and numbers of segments.

    Examples
    --------
    >>> import numpy as np
    >>> import shap
    >>> import shap_ext
    >>> images = np.random.default_rng(0).random((2, 16, 16, 3))
    >>> redness = lambda x: x[..., 0].mean(axis=(1, 2)) - x[..., 1].mean(axis=(1, 2))
    >>> masker = shap_ext.maskers.Superpixels((4, 4), background=0.5)
    >>> explanation = shap.Explainer(redness, masker, algorithm="oddgp", seed=0)(images)
    >>> explanation.shape
    (2, 16, 16, 3)
    >>> sums = explanation.values.sum(axis=(1, 2, 3)) + explanation.base_values
    >>> np.allclose(sums, redness(images))
    True
    """

    segments: Segments = 50
    background: Any = "blur"
    method: str = "grid"

    def __post_init__(self) -> None:
        self.background = array_of(self.background)
        check_background(self.background)
        self._segmentation = Segmentation(array_of(self.segments), self.method)
        self._latest: tuple[npt.NDArray[Any], SuperpixelRow] | None = None

    def row(self, image: npt.NDArray[Any], name: str = "the image") -> SuperpixelRow:
        """Return an image with its segments and background."""
        image = np.asarray(array_of(image))
        labels, places = np.unique(self._segmentation(image, name), return_inverse=True)
        background = images_of_background(self.background, image, name)
        return SuperpixelRow((image,), places.reshape(image.shape[:2]), labels, background)

    def paint(self, explanation: Explanation) -> Any:
        """Return an Explanation by one of shap's own explainers as one of images.

        Parameters
        ----------
        explanation : shap.Explanation
            Values of segments, (R, M) or (R, M, K), with the images as its data.

        Returns
        -------
        shap.Explanation
            Values of the shape of the images, with an axis for the outputs where there are several.
        """
        rows = [self.row(image) for image in explanation.data]
        errors = explanation.error_std
        return shap.Explanation(
            _painted(explanation.values, rows),
            base_values=explanation.base_values,
            data=explanation.data,
            output_names=explanation.output_names,
            error_std=None if errors is None else _painted(errors, rows),
        )

    # What shap's own explainers ask a masker.

    def shape(self, image: npt.NDArray[Any]) -> tuple[int, int]:
        """Return the number of masked images for each mask, and of segments."""
        row = self._row_of(image)
        return 1 if row.background is None else len(row.background), row.n_entries

    def mask_shapes(self, image: npt.NDArray[Any]) -> list[tuple[int, ...]]:
        """Return the shape of the mask."""
        return [mask.shape for mask in self._row_of(image).masks]

    def feature_names(self, image: npt.NDArray[Any]) -> list[list[str] | None]:
        """Return the names of the segments."""
        return [mask.names for mask in self._row_of(image).masks]

    def __call__(self, mask: BoolArray, image: npt.NDArray[Any]) -> tuple[npt.NDArray[Any]]:
        """Return the image, once for each background image, with its absent segments masked."""
        return self._row_of(image)(mask)

    def _row_of(self, image: npt.NDArray[Any]) -> SuperpixelRow:
        """Return the row of an image, which shap passes again for each mask."""
        image, latest = np.asarray(array_of(image)), self._latest
        if latest is None or not np.array_equal(latest[0], image) or latest[0].dtype != image.dtype:
            kept = image.copy()
            latest = self._latest = kept, self.row(kept)
        return latest[1]


@dataclass
class SuperpixelRow(MaskedRow):
    """An image masked by segments.

    Attributes
    ----------
    places : array of int, (H, W)
        The place of each pixel's segment in the mask.
    labels : array of int, (M,)
        The labels of the segments.
    background : array, (B, *shape of the image), or None
        Values of absent pixels; None if they are filled in from those that are present.
    """

    places: IntArray
    labels: IntArray
    background: npt.NDArray[Any] | None

    @cached_property
    def masks(self) -> list[InputMask]:
        """One entry per segment; segments that touch are neighbours."""
        names = [f"Segment {label}" for label in self.labels]
        return [InputMask(self.labels.shape, names, None, self.places_of_numbers, True)]

    @property
    def places_of_numbers(self) -> IntArray:
        """The place of the segment of each of the image's numbers, of the image's shape."""
        return np.broadcast_to(self._of_pixels(self.places), self.inputs[0].shape)

    def null_entries(self) -> BoolArray:
        """Return which segments equal all backgrounds."""
        if self.background is None:
            return np.zeros(self.n_entries, dtype=bool)
        (image,) = self.inputs
        changes = ~same(self.background, image[None]).all(axis=0)
        changes = changes.reshape(*self.places.shape, -1).any(axis=-1)
        counts = np.bincount(self.places.ravel(), changes.ravel(), minlength=self.n_entries)
        return np.asarray(counts == 0)

    def __call__(self, mask: Mask) -> tuple[npt.NDArray[Any]]:
        """Return one masked image for each background image."""
        return (self._masked_images(mask[None], self.background),)

    def masked(self, masks: Mask) -> list[MaskedInputs]:
        """Return the masked images of all masks at once."""
        images = self._masked_images(masks, self.background)
        return [MaskedInputs(np.arange(len(masks)), (images,))]

    def masked_once(self, masks: Mask, backgrounds: IntArray) -> list[MaskedInputs]:
        """Return the masked image of each mask with one of the background images."""
        if self.background is None:
            return self.masked(masks)
        images = self._masked_images(masks, self.background[backgrounds][:, None])
        return [MaskedInputs(np.arange(len(masks)), (images,))]

    def _masked_images(self, masks: Mask, background: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """Return images masked by each mask, (n · B, *shape), with (B, …) or (n, B, …) images."""
        (image,) = self.inputs
        are_present = masks[:, self.places]
        if background is None:
            return np.stack([fill_in(image, ~is_present) for is_present in are_present])
        n_images = background.shape[-image.ndim - 1]
        masked = np.empty((len(masks), n_images, *image.shape), dtype=image.dtype)
        masked[...] = background
        np.copyto(masked, image, where=self._of_pixels(are_present)[:, None])
        return masked.reshape(-1, *image.shape)

    def _of_pixels(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array of pixels, (…, H, W), with an axis for channels where there are any."""
        return array[..., None] if self.inputs[0].ndim == 3 else array


def _painted(values: Any, rows: Sequence[SuperpixelRow]) -> npt.NDArray[Any]:
    """Return numbers of segments of each image as those of its pixels."""
    images = []
    for of_row, row in zip(values, rows, strict=True):
        if np.ndim(of_row) not in (1, 2) or len(of_row) != row.n_entries:
            raise InvalidArgumentError(
                f"explanation has values of the shape {np.shape(of_row)} for an image of "
                f"{row.n_entries} segments. Pass the result of an explainer of shap with this "
                "masker; those of shap_ext return images themselves."
            )
        images.append(paint(np.asarray(of_row), row.places_of_numbers))
    return packed(images)


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
    return inpaint_biharmonic
