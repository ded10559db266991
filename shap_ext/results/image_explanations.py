"""Attributions of superpixels as images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters.errors import InvalidArgumentError

from ..inputs.column_groups import labels_of_entries


def image_explanation(
    explanation: shap.Explanation, images: npt.NDArray[Any], labels: npt.NDArray[np.integer[Any]]
) -> shap.Explanation:
    """Return attributions of superpixels as those of all pixels, for `shap.image_plot`.

    The attribution of a superpixel is shared equally by its entries, so that those of an image
    still sum to the model's output less the base value.

    Parameters
    ----------
    explanation : shap.Explanation
        The explanation of the images by an explainer with `groups=labels`: values (R, M) or
        (R, M, K) of M superpixels.
    images : array, (R, H, W, C) or (R, H, W)
        The images.
    labels : array of int, (H, W) or the shape of an image
        The labels that `groups=` got.

    Returns
    -------
    shap.Explanation
        Values of the shape of the images, with an axis for the outputs where there are several.

    Raises
    ------
    InvalidArgumentError
        If the shapes do not belong together.

    Examples
    --------
    >>> import numpy as np
    >>> import shap
    >>> import shap_ext
    >>> images = np.ones((1, 4, 4, 3))
    >>> labels = np.repeat(np.repeat([[0, 1], [2, 3]], 2, axis=0), 2, axis=1)
    >>> model = lambda x: x.reshape(len(x), -1).sum(axis=1)
    >>> masked = lambda mask, x: (np.where(mask.reshape(x.shape), x, 0)[None],)
    >>> explainer = shap.Explainer(model, masked, algorithm="best", groups=labels)
    >>> explained = shap_ext.image_explanation(explainer(images), images, labels)
    >>> explained.values.shape, float(explained.values.sum().round(6))
    ((1, 4, 4, 3), 48.0)
    """
    images, values = np.asarray(images), np.asarray(explanation.values)
    n_entries = int(np.prod(images.shape[1:]))
    of_entries = labels_of_entries(np.asarray(labels), n_entries)
    # Players are in the order of their first entries.
    found, firsts, places = np.unique(of_entries, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(firsts))[places]
    if values.ndim < 2 or values.shape[:2] != (len(images), len(found)):
        raise InvalidArgumentError(
            f"explanation has values of the shape {values.shape}, but there are {len(images)} "
            f"images with {len(found)} superpixels. Pass explainer(images) of an explainer with "
            "groups=labels."
        )
    shares = values / np.bincount(rank).reshape(-1, *[1] * (values.ndim - 2))
    return shap.Explanation(
        shares[:, rank].reshape(*images.shape, *values.shape[2:]),
        base_values=explanation.base_values,
        data=images,
        output_names=explanation.output_names,
    )
