"""Images whose pixels of unknown sign are hatched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters.array_types import BoolArray
from shapley_adapters.errors import InvalidArgumentError, PlotError
from shapley_adapters.hatching import hatch_cells

from .host_plots import HostPlot
from .intervals import Intervals, intervals_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHAPES = {
    2: "(height, width)",
    3: "(height, width, channels) of an image",
    4: "(images, height, width, channels)",
    5: "the same with an axis for the outputs",
}
_REMEDY = "Draw images of different sizes one after another: explanation[i]."


def image(*arguments: Any, level: float = 0.95, **options: Any) -> Figure | None:
    """Draw shap's image plot, and hatch pixels whose interval contains 0.

    Parameters
    ----------
    *arguments, **options
        Those of `shap.plots.image`: an Explanation with bounds of one image or of several, with any
        number of outputs; `labels`, `true_labels`, `width`, `show` and all others.
    level : float
        The share of cases in which an interval shall contain the value with unlimited evaluations.

    Returns
    -------
    Figure or None
        The figure with `show=False`; else None, after it was shown.

    Raises
    ------
    InvalidArgumentError
        If the Explanation has no bounds, or is not one of images.

    Notes
    -----
    shap adds up the channels of a pixel. The widths of their intervals are added, too: this is
    exact where the channels belong to one segment, and otherwise never too small.
    """
    plot = HostPlot.from_call("image", arguments, options)
    explanation = plot.arguments["shap_values"]
    intervals = intervals_of(explanation, level, "image", _SHAPES, _REMEDY)
    images, of_outputs = _of_images(explanation, intervals)
    names = explanation.output_names
    labels = plot.arguments["labels"]
    if labels is None and names is not None:
        labels = [names] if isinstance(names, str) else list(names)
    axes = plot.draw(
        on_current_axes=False,
        shap_values=[of_output.values for of_output in of_outputs],
        pixel_values=images,
        labels=labels,
    ).axes
    figure: Any = axes.figure
    n_columns = len(of_outputs) + 1
    panels = figure.axes[:-1]  # the last one is the colour bar
    if len(panels) != len(images) * n_columns:
        raise PlotError(
            f"shap {shap.__version__} drew {len(panels)} panels in plots.image for {len(images)} "
            f"images and {len(of_outputs)} outputs. Call shap.plots.image for a plot without "
            "hatching, and please report the arguments of this call."
        )
    for column, of_output in enumerate(of_outputs, start=1):
        for panel, hidden in zip(panels[column::n_columns], _summed(of_output), strict=True):
            hatch_cells(panel, hidden)
    return None if plot.finish(axes) is None else figure


def _of_images(
    explanation: shap.Explanation, intervals: Intervals
) -> tuple[npt.NDArray[Any], list[Intervals]]:
    """Return images, (R, H, W, C), and the intervals of each output, of the same shape.

    One image, and images without channels, get the axes that they lack: shap would take (R, H, W)
    for one image.
    """
    images = np.asarray(explanation.data)
    has_outputs = intervals.values.ndim == images.ndim + 1
    outputs = [intervals]
    if has_outputs:
        outputs = [intervals.subset_features(k) for k in range(intervals.values.shape[-1])]
    is_one = np.ndim(explanation.base_values) == has_outputs
    shape = (1, *images.shape) if is_one else images.shape
    if outputs[0].values.shape != images.shape or len(shape) not in (3, 4):
        raise InvalidArgumentError(
            f"plots.image needs images, and attributions of their shape; got {images.shape} and "
            f"{intervals.values.shape}. {_REMEDY}"
        )
    shape = shape if len(shape) == 4 else (*shape, 1)
    reshaped = [one.mapped(lambda array: array.reshape(shape)) for one in outputs]
    return images.reshape(shape), reshaped


def _summed(intervals: Intervals) -> BoolArray:
    """Return for which pixels, (R, H, W), the interval of the sum over channels contains 0."""
    return intervals.mapped(lambda array: array.sum(axis=-1)).contain_zero
