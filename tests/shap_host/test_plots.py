"""Every plot of shap for tables takes our explanations, and shows what is in them."""

import functools
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext  # noqa: F401 # registers the algorithms
from tests.shap_host.games import rows

# No warnings of ours in ordinary use; shap's own plots use what matplotlib deprecates.
pytestmark = [
    pytest.mark.versions,
    pytest.mark.filterwarnings("error::shapley_adapters.errors.ShapleyExtWarning"),
    pytest.mark.filterwarnings("ignore:.*:PendingDeprecationWarning"),
]

N_ROWS = 110  # monitoring plots want more than 100
COLUMNS = [
    "age", "colour_blue", "colour_green", "colour_red", "weight", "height", "flag", "hours",
    "score",
]  # fmt: skip
GROUPS = {"colour": COLUMNS[1:4]}


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_ROWS, 9)), columns=COLUMNS)
    frame["age"] = rng.integers(20, 80, N_ROWS)
    frame[GROUPS["colour"]] = np.eye(3, dtype=int)[rng.integers(0, 3, N_ROWS)]
    frame["flag"] = rng.random(N_ROWS) < 0.3
    return frame


FRAME = table()


def model(frame):
    x = np.asarray(frame, dtype=float)
    colour = 2 * x[:, 3] - x[:, 1]
    return (
        x[:, 0] / 50 * (1 + colour)
        + np.tanh(x[:, 4] * x[:, 5])
        - x[:, 6]
        + np.cos(x[:, 7] - x[:, 4] * x[:, 8])
    )


def two_outputs(frame):
    return np.stack([model(frame), -2 * model(frame) ** 2], axis=1)


@functools.cache
def explained(kind):
    """Return an explanation of all rows, (R, M)."""
    x = FRAME.astype(float) if kind == "clustered" else FRAME
    background = shap.maskers.Partition(x) if kind == "clustered" else FRAME.iloc[:5]
    options: dict = {"groups": GROUPS} if kind == "grouped" else {}
    if kind == "outputs":
        options = {"output_names": ["u", "v"]}
    predict = two_outputs if kind == "outputs" else model
    explainer = shap.Explainer(predict, background, algorithm="shear", seed=0, **options)
    found = explainer(x, max_evals=100 if kind == "grouped" else 200, error_bounds=True)
    return found[:, :, "v"] if kind == "outputs" else found


@pytest.fixture(params=["grouped", "outputs", "clustered"])
def sv(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return explained(request.param)


def drawn():
    """Render the current figure and return its visible words."""
    figure = plt.gcf()
    figure.canvas.draw()
    assert figure.axes
    words = []
    for axes in figure.axes:
        words += [text.get_text() for text in axes.get_yticklabels() + axes.get_xticklabels()]
        words += [text.get_text() for text in axes.texts] + [axes.get_xlabel(), axes.get_ylabel()]
    return " | ".join(words)


def test_waterfall(sv):
    shap.plots.waterfall(sv[0], show=False)
    words = drawn()
    if "colour" in sv.feature_names:
        shown = dict(zip(sv.feature_names, sv[0].display_data, strict=True))["colour"]
        assert f"{shown} = colour" in words
    for name in sv.feature_names:
        assert name in words


@pytest.mark.parametrize("plot", [shap.plots.bar, shap.plots.beeswarm])
def test_bar_and_beeswarm(sv, plot):
    plot(sv, show=False)
    words = drawn()
    for name in sv.feature_names:
        assert name in words
    # Points are coloured by the feature's value: grey alone would mean that it is not numeric.
    coloured = [
        points
        for points in plt.gcf().axes[0].collections
        if (shown := points.get_array()) is not None and len(np.unique(shown)) > 1
    ]
    assert len(coloured) == (sv.shape[1] if plot is shap.plots.beeswarm else 0)


DRAWN = [
    lambda e: shap.plots.bar(e[0], show=False),
    lambda e: shap.plots.bar(e.abs.max(0), show=False),
    lambda e: shap.plots.heatmap(e, show=False),
    lambda e: shap.plots.violin(e, show=False),
    lambda e: shap.plots.force(e[0], matplotlib=True, show=False),
    lambda e: shap.plots.scatter(e[:, "weight"], color=e[:, "height"], show=False),
    lambda e: shap.plots.scatter(e[:, "weight"], color=e, show=False),
]


def test_the_others_are_drawn(sv):
    columns = [
        lambda e, place=place: shap.plots.scatter(e[:, place], show=False)
        for place in range(sv.shape[1])
    ]
    for plot in DRAWN + columns:
        plot(sv)
        drawn()
        plt.close("all")
    shap.plots.force(sv[:5])  # JavaScript
    shap.plots.force(sv[0])


@pytest.mark.parametrize("as_type", ["category", "str"])
def test_columns_of_strings(as_type):
    colours = pd.Series(["red", "blue", "green"] * 10).astype(as_type)
    frame = pd.DataFrame({"colour": colours, "size": rows(30, 1)[:, 0]})
    explained = shap.Explainer(
        lambda frame: (frame["colour"] == "red") * frame["size"].to_numpy(float),
        frame.iloc[:4],
        algorithm="shear",
    )(frame)
    shap.plots.waterfall(explained[0], show=False)
    assert "red = colour" in drawn()
    for name in ("bar", "heatmap", "scatter", "beeswarm"):
        plt.close("all")
        shown = explained[:, "colour"] if name == "scatter" else explained
        getattr(shap.plots, name)(shown, show=False)
        drawn()
