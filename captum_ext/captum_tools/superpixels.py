"""Superpixels of images, as feature masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.superpixels import Segmentation, Segments
from shapley_adapters.torch_support.tensor_arrays import array_of


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
