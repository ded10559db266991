"""The plot that compares two explanations: its dots, its bars, and its stars."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import shap

import shap_ext
from shap_ext.shap_internals import set_bounds
from shapley_adapters.errors import InvalidArgumentError
from tests.shap_host.games import curved, curved_columns, rows

BACKGROUND, X = rows(3, 9, 1), rows(5, 9)
NAMES = ["$a$ and $b", *"bcdefghi"]


@pytest.fixture(autouse=True)
def closed_figures():
    plt.close("all")
    yield
    plt.close("all")


def explained(seed=0, budget=60, model=curved):
    explainer = shap_ext.OddGPExplainer(model, BACKGROUND, seed=seed, feature_names=NAMES)
    return explainer(X, max_evals=budget, error_bounds=True, silent=True)


def drawn(*explanations, **options):
    """Return the axes, and the (value, lower end, upper end) of the features of each side."""
    axes = shap_ext.plots.comparison(*explanations, show=False, **options)
    axes.figure.canvas.draw()
    sides = []
    for container in axes.containers:
        dots, _, (bars,) = container.lines
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        sides.append(np.column_stack([dots.get_xdata(), ends]))
    return axes, sides


def starred(axes):
    return [label.get_text().startswith("★") for label in axes.get_yticklabels()]


def test_one_row_has_its_values_and_intervals():
    first, second = explained()[0], explained(1, 40)[0]
    axes, sides = drawn(first, second, names=("many", "few"), max_display=4)
    order = np.argsort(-np.maximum(np.abs(first.values), np.abs(second.values)))[:4]
    for side, e in zip(sides, (first, second), strict=True):
        wanted = np.column_stack([e.values, e.lower_bounds, e.upper_bounds])[order]
        np.testing.assert_allclose(side, wanted, atol=1e-12)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["many", "few"]
    assert "independent random draws" in axes.get_xlabel()


def test_means_over_rows_have_intervals_that_hold_for_any_correlation():
    first, second = explained(), explained(1)
    _, sides = drawn(first, second)
    widths = (first.upper_bounds - first.values).mean(0)
    sizes = np.abs(first.values).mean(0)
    np.testing.assert_allclose(np.sort(sides[0][:, 0]), np.sort(sizes))
    np.testing.assert_allclose(np.sort(sides[0][:, 2]), np.sort(sizes + widths))
    np.testing.assert_allclose(np.sort(sides[0][:, 1]), np.sort(np.maximum(sizes - widths, 0)))


@pytest.mark.parametrize("seed", [0, 1])
def test_stars_are_where_the_interval_of_the_difference_excludes_zero(seed):
    """Distances of 2.5, 3.5 and 5 for half widths of 2 each: sqrt(8) is 2.8, and the sum is 4."""
    first, second = explained()[0], explained(seed)[0]
    half, gaps = np.full(9, 2.0), np.array([2.5, 3.5, 5.0, -2.5, -3.5, -5.0, 0, 0, 0])
    start = np.linspace(90, 10, 9)  # so that the features stay in order
    for e, values in ((first, start), (second, start + gaps)):
        e.values = values
        set_bounds(e, values - half, values + half, half / 2)
    axes, _ = drawn(first, second)
    is_significant = np.abs(gaps) > (2 * 2 if seed == 0 else np.sqrt(8))
    assert starred(axes) == is_significant.tolist()
    difference = first - second
    excludes_zero = (difference.lower_bounds > 0) | (difference.upper_bounds < 0)
    np.testing.assert_array_equal(excludes_zero, is_significant)
    assert ("do not overlap" in axes.get_xlabel()) == (seed == 0)


def test_exact_values_have_no_bars():
    e = explained()
    plain = shap.Explanation(e.values + 100, e.base_values, e.data, feature_names=NAMES)
    axes, sides = drawn(e[0], plain[0])
    np.testing.assert_array_equal(sides[1][:, 1], sides[1][:, 2])
    assert all(starred(axes))


def test_it_draws_on_the_given_axes():
    figure, axes = plt.subplots()
    assert shap_ext.plots.comparison(explained(), explained(1), ax=axes, show=False) is axes
    assert plt.get_fignums() == [figure.number]


def test_what_cannot_be_compared_is_refused():
    e, outputs = explained(), explained(model=curved_columns)
    renamed = explained()
    renamed.feature_names = list("abcdefghi")
    for pair, words in [
        ((e, e[0]), "the same rows and features"),
        ((outputs, outputs), "one output"),
        ((e, renamed), "feature_names differ"),
        ((e.abs.mean(0), e.abs.mean(0)), r"removed by an operation \(abs, mean\)"),
    ]:
        with pytest.raises(InvalidArgumentError, match=words):
            shap_ext.plots.comparison(*pair)
    with pytest.raises(InvalidArgumentError, match="two names"):
        shap_ext.plots.comparison(e, e, names="ab")
