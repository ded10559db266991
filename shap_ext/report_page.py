"""Explanations as HTML pages: plots, a table of the features, and how they were computed."""

from __future__ import annotations

import base64
import io
import warnings
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd
import shap

from shapley_adapters.arguments import checked_count, checked_path
from shapley_adapters.atomic_files import replaced
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.global_generators import global_generator, state_of

from . import plots
from .argument_types import Explanation
from .plots.features import names_of_features, without_formulas, without_surrogates
from .plots.host_plots import pyplot
from .results.bounded_explanation import removed_bounds
from .results.explanations import explanation as explanation_of

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; max-width: 62rem; margin: auto; padding: 1rem; overflow-wrap: anywhere; }
figure { margin: 1.5rem 0; } img { max-width: 100%; background: #fff; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
.features td:last-child { color: #e8590c; white-space: nowrap; }
</style>
<h1>$title</h1>
$body
</html>
""")  # noqa: E501  a rule of the style in each line

_DRAWN = ("base_values", "data", "display_data", "lower_bounds", "upper_bounds", "error_std")
_CAPTIONS = {
    "bar": "Each bar is the mean size of the attributions of a feature over the rows.",
    "beeswarm": "Each dot is a row: right of the middle the feature raises the output, left of it "
    "the feature lowers it. The colour shows whether the feature's value is high.",
    "waterfall": "Read upwards, from the mean output to the output for this row.",
}


def report(
    explanation: Explanation,
    path: str | Path,
    *,
    title: str = "What the model does",
    max_display: int = 15,
) -> None:
    """Write an Explanation as one HTML page: plots, a table, and how it was computed.

    The page needs no network, no scripts and no other files, so that it can be sent by mail. Error
    bars are drawn where the Explanation has bounds. Needs matplotlib.

    Parameters
    ----------
    explanation : shap.Explanation
        One output, for one row, (features,), or several, (rows, features). Choose them by slicing,
        such as `explanation[..., 1]` for an output and `explanation[17]` for a row or a text.
    path : str or Path
        The file to write.
    title : str
        The title of the page.
    max_display : int
        How many features the plots show. The table has all features.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If an argument cannot be used.

    Examples
    --------
    >>> explanation = explainer(X, error_bounds=True)  # doctest: +SKIP
    >>> shap_ext.report(explanation, "report.html")  # doctest: +SKIP
    """
    file = checked_path("path", path)
    checked_count("max_display", max_display)
    if not isinstance(explanation, shap.Explanation):
        kind = type(explanation).__name__
        raise InvalidArgumentTypeError(f"explanation must be a shap.Explanation; got {kind}.")
    values = explanation.values
    shape: tuple[int, ...] = getattr(values, "shape", ())
    data_axes = len(shape) if explanation.data is None else getattr(explanation.data, "ndim", 1)
    if not len(shape) == data_axes <= 2 or not values.size or values.dtype == object:
        raise InvalidArgumentError(
            f"explanation holds values of shape {shape}. A report has one output of at least "
            "one row of a table, (rows, features), or of one row or text, (features,). Choose an "
            "output, such as explanation[..., 0], or a text, such as explanation[0]."
        )
    if len(shape) == 2 and shape[0] == 1:
        explanation = explanation[0]
    lower = explanation.lower_bounds
    has_bounds = lower is not None and not np.isnan(lower).all()  # NaN: too few draws
    with pd.option_context("display.max_colwidth", None):
        body = [
            _figures(explanation, max_display, plots if has_bounds else shap.plots),
            "<h2>All features</h2>",
            _feature_table(explanation, has_bounds).to_html(
                index=False, border=0, classes="features", float_format="{:.4g}".format
            ),
            "<h2>How it was computed</h2>",
            _call_table(explanation, has_bounds).to_html(index=False, border=0, header=False),
        ]
    page = _PAGE.substitute(title=escape(title), body="\n".join(body))
    with replaced(file) as part:
        part.write_text(without_surrogates(page), encoding="utf-8")


def _figures(explanation: Explanation, max_display: int, module: Any) -> str:
    """Return the plots; of several rows, also those with the smallest and the largest output."""
    values = explanation.values
    fields = {name: getattr(explanation, name) for name in _DRAWN}
    names = names_of_features(explanation, values.shape[-1])
    names = [name if len(name) <= 40 else f"{name[:19]}…{name[-19:]}" for name in names]
    explanation = explanation_of(values, feature_names=[*map(without_formulas, names)], **fields)
    drawn = [("waterfall", "", explanation)]
    if values.ndim == 2:
        # A thousand rows show the shape of a beeswarm, and are drawn in seconds.
        dots = np.linspace(0, len(values) - 1, min(len(values), 1000)).astype(int)
        drawn = [("bar", "", explanation), ("beeswarm", "", explanation[dots.tolist()])]
        outputs = explanation.base_values + values.sum(axis=1)
        for row in (int(outputs.argmin()), int(outputs.argmax())):
            drawn.append(("waterfall", f"Row {row}. ", explanation[row]))
    figures, plt = [], pyplot()
    # shap's plots draw random numbers and use deprecated parts of matplotlib.
    with (
        warnings.catch_warnings(),
        global_generator(state_of(0)),
        plt.ioff(),
        plt.style.context("default"),
    ):
        warnings.simplefilter("ignore")
        for name, row_name, part in drawn:
            png, figure = io.BytesIO(), plt.figure(figsize=(8, 5))
            try:
                getattr(module, name)(part, max_display=max_display, show=False)
                figure.savefig(png, format="png", bbox_inches="tight")
            finally:
                plt.close(figure)
            data = base64.b64encode(png.getvalue()).decode("ascii")
            image = f'<img alt="{name} plot" src="data:image/png;base64,{data}">'
            caption = escape(row_name + _CAPTIONS[name])
            figures.append(f"<figure><figcaption>{caption}</figcaption>{image}</figure>")
    return "\n".join(figures)


def _feature_table(explanation: Explanation, has_bounds: bool) -> pd.DataFrame:
    """Return the features, the largest attributions first, with bars of their sizes."""
    values = np.atleast_2d(explanation.values)
    lower, upper = explanation.lower_bounds, explanation.upper_bounds
    sizes = np.abs(values).mean(axis=0)
    columns: dict[str, Any] = {"Feature": names_of_features(explanation, len(sizes))}
    if len(values) > 1:
        columns |= {"Mean size": sizes, "Mean": values.mean(axis=0)}
        if has_bounds:
            columns["Mean width of the 95 % intervals"] = np.mean(upper - lower, axis=0)
    else:
        data = explanation.data if explanation.display_data is None else explanation.display_data
        if np.size(data) == len(sizes):
            columns["Its value"] = np.ravel(np.asarray(data, dtype=object))
        columns["Attribution"] = values[0]
        if has_bounds:
            ends = zip(lower, upper, strict=True)
            columns["95 % interval"] = [f"{low:.4g} to {high:.4g}" for low, high in ends]
    columns[""] = ["\N{FULL BLOCK}" * round(20 * share) for share in sizes / (sizes.max() or 1)]
    return pd.DataFrame(columns).iloc[np.argsort(-sizes, kind="stable")]


def _call_table(explanation: Explanation, has_bounds: bool) -> pd.DataFrame:
    """Return how the numbers were computed, to repeat them."""
    facts = {"Call": "not recorded in this explanation"}
    record = getattr(explanation, "call", None)
    if record is not None:
        counts = record.evaluations
        counted = "{:,} to {:,} for each row, {:,} in all".format(*counts) if counts else "unknown"
        facts = {
            "Model": record.model,
            "Method": f"{record.method} ({record.explainer})",
            "Unit": record.unit,
            "Choice": record.choice or "by the user",
            "Options": ", ".join(f"{k}={v}" for k, v in record.options.items()) or "the defaults",
            "Evaluations": record.spent or counted,
            "Seed": str(record.seed),
            "Date": f"{record.date}, in {record.seconds:.3g} seconds",
            "Versions": ", ".join(f"{name} {v}" for name, v in record.versions.items()),
            "Warnings": " ".join(record.warnings) or "none",
        }
    facts["Error bars"] = removed_bounds(explanation) or "none; error_bounds=True gives them"
    if has_bounds:
        facts["Error bars"] = "hold 95 % of the values that unlimited evaluations would give"
    return pd.DataFrame(facts.items())
