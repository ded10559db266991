"""Images with the errors of their pixels beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.pipeline.result import percent

from .host_plots import HostPlot
from .intervals import intervals_of

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
    """Draw shap's image plot, with a panel of errors beside the attributions of each output.

    The panel has half the width of each pixel's interval, in the unit of the attributions, from 0
    to the largest of them. It has a colour bar of its own.

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
    images, values = np.asarray(explanation.data), intervals.values
    has_outputs = values.ndim == images.ndim + 1
    # One image, and images without channels, get the axes that they lack: shap would take
    # (R, H, W) for one image.
    is_one = np.ndim(explanation.base_values) == has_outputs
    shape = (1, *images.shape) if is_one else images.shape
    if values.shape[: values.ndim - has_outputs] != images.shape or len(shape) not in (3, 4):
        raise InvalidArgumentError(
            f"plots.image needs images, and attributions of their shape; got {images.shape} and "
            f"{values.shape}. {_REMEDY}"
        )
    shape = shape if len(shape) == 4 else (*shape, 1)
    widths = np.maximum(intervals.below, intervals.above)
    panels = np.stack([values, widths], axis=-1).reshape(*shape, -1)  # those of an output in turn
    labels = plot.arguments["labels"]
    labels = explanation.output_names if labels is None else labels
    n_outputs = panels.shape[-1] // 2
    labels = np.reshape([""] * n_outputs if labels is None else labels, (-1, n_outputs))
    titles = np.full((len(labels), 2 * n_outputs), f"± ({percent(level)} interval)", dtype=object)
    titles[:, ::2] = labels
    sizes = np.abs(panels.sum(axis=3))[..., ::2]
    largest = float(np.nanmax(panels.sum(axis=3)[..., 1::2]))
    limit = plot.arguments["vmax"]
    if limit is None:  # shap's limit, over the attributions alone, and not 0
        limit = float(np.percentile(sizes, 99.9)) or float(sizes.max()) or largest or 1.0
    axes = plot.draw(
        on_current_axes=False,
        shap_values=list(np.moveaxis(panels, -1, 0)),
        pixel_values=images.reshape(shape),
        labels=titles,
        vmax=limit,
    ).axes
    figure: Any = axes.figure
    *drawn, bar = figure.axes
    for panel in np.reshape(drawn, (shape[0], -1))[:, 2::2].flat:
        panel.images[1].set(cmap="viridis", clim=(0, largest or limit))
    # shap's colour bar is that of its last panel, which has errors. It makes room for a second one.
    bar.set_xlabel(f"half width of the {percent(level)} interval")
    left, bottom, width, height = bar.get_position(original=True).bounds
    values_bar = figure.add_axes((left, bottom, 0.47 * width, height))
    bar.set_position((left + 0.53 * width, bottom, 0.47 * width, height))
    thickness = 2 * bar.get_box_aspect()  # relative to half the length
    for each in (bar, values_bar):
        each.set(box_aspect=thickness, anchor="N")
    figure.colorbar(
        drawn[1].images[1], cax=values_bar, label="SHAP value", orientation="horizontal"
    ).outline.set_visible(False)
    return None if plot.finish(axes) is None else figure
