"""shap_ext.plots draw error bars at the Explanation's bounds; shap's arguments pass through."""

import io
import re
import sys
from functools import wraps

import matplotlib.pyplot as plt
import numpy as np
import pytest
import shap
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_rgb

import shap_ext
from shap_ext import plots
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    MissingPackageError,
    PlotError,
    ShapleyExtWarning,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*:PendingDeprecationWarning")

NAMES = ["age", "bmi", "bp", "sex", "pulse", "hours"]
N_ROWS, M = 30, len(NAMES)


def explanation(n_rows=N_ROWS, seed=0, **fields):
    """Return an Explanation whose intervals differ in width between rows and features."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_rows, M)) * [3, 2, 1, 0.5, 0.3, 0.2]
    errors = rng.uniform(0.05, 0.6, size=values.shape)
    data = rng.normal(size=values.shape)
    data[:, 3] = rng.integers(0, 2, n_rows)
    arguments = {
        "base_values": np.full(n_rows, 1.5),
        "data": data,
        "feature_names": NAMES,
        "lower_bounds": values - 2.5 * errors,
        "upper_bounds": values + 2.5 * errors,
        "error_std": errors,
    }
    return shap.Explanation(values, **(arguments | fields))


@pytest.fixture(autouse=True)
def jitter():
    np.random.seed(0)  # noqa: NPY002  shap's uses it


def segments(axes):
    """Return the ends of all error bars and bands drawn as lines, (n, 2, 2)."""
    parts = [c.get_segments() for c in axes.collections if isinstance(c, LineCollection)]
    return np.array([segment for part in parts for segment in part])


def labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def circles(axes):
    """Return the collections of dots."""
    return [c for c in axes.collections if isinstance(c, PathCollection) and len(offsets(c))]


def offsets(collection):
    """Return the positions of dots, NaN where a dot is not drawn."""
    return np.ma.filled(np.ma.asarray(collection.get_offsets(), dtype=float), np.nan)


def dots_of(axes):
    return np.concatenate([offsets(c) for c in circles(axes)])


def points_of(collection):
    """Return the corners of the first polygon of a collection."""
    return np.asarray(collection.get_paths()[0].vertices)


def groups_of(values, max_display):
    """Return the features of each bar: the largest alone, and all others together."""
    order = np.argsort(-np.abs(values).reshape(-1, M).mean(axis=0))
    n_alone = M if max_display is None else max_display - 1
    others = [list(order[n_alone:])] if n_alone < M else []
    return [[feature] for feature in order[:n_alone]] + others


@pytest.mark.parametrize("plot", [plots.bar, plots.waterfall])
def test_labels_do_not_touch_the_error_bars(plot):
    for number in range(8):
        axes = plot(explanation()[number], show=False)
        axes.figure.canvas.draw()
        left, right = axes.get_xlim()
        texts = sorted(axes.texts, key=lambda text: -text.get_position()[1])
        for text, (low, high) in zip(texts, segments(axes)[:, :, 0], strict=True):
            box = axes.transData.inverted().transform_bbox(text.get_window_extent())
            assert box.x0 >= high or box.x1 <= low
            is_inside = left - 1e-9 <= box.x0 <= box.x1 <= right + 1e-9
            assert is_inside or plot is plots.waterfall
            # Inside an arrow labels are white, which none behind it may stay.
            is_centred = text.get_horizontalalignment() == "center"
            assert is_centred or to_rgb(text.get_color()) < (1, 1, 1)
        plt.close("all")


class TestBar:
    @pytest.mark.parametrize("max_display", [None, 3])
    def test_bars_of_a_row(self, max_display):
        row = explanation()[3]
        axes = plots.bar(row, max_display=max_display, show=False)
        groups, drawn = groups_of(row.values, max_display), segments(axes)
        np.testing.assert_allclose(drawn[:, 0, 0], [row.lower_bounds[g].sum() for g in groups])
        np.testing.assert_allclose(drawn[:, 1, 0], [row.upper_bounds[g].sum() for g in groups])
        np.testing.assert_allclose(drawn[:, 0, 1], np.arange(len(groups), 0, -1))
        assert ("Sum of 4 other features" in labels(axes)) == (max_display == 3)

    @pytest.mark.parametrize("independent", [False, True])
    def test_bars_of_mean_sizes(self, independent):
        many = explanation()
        axes = plots.bar(many, show=False, independent_rows=independent)
        sizes = np.abs(many.values).mean(axis=0)
        order = np.argsort(-sizes)
        errors = (many.upper_bounds - many.lower_bounds) / 2
        widths = np.sqrt((errors**2).sum(0)) / N_ROWS if independent else errors.mean(0)
        drawn = segments(axes)[:, :, 0]
        np.testing.assert_allclose(drawn[:, 1], (sizes + widths)[order])
        np.testing.assert_allclose(drawn[:, 0], np.maximum(sizes - widths, 0)[order], atol=1e-12)

    def test_order_axes_and_cohorts_pass_through(self):
        many = explanation()
        _, axes = plt.subplots()
        order = np.array([5, 4, 3, 2, 1, 0])
        drawn = plots.bar({"first": many[:10], "second": many[10:]}, 10, order, ax=axes, show=False)
        assert drawn is axes
        assert labels(axes)[:M] == NAMES[::-1]
        assert axes.get_legend().get_texts()[0].get_text().startswith("first")
        sizes = np.abs(many.values[10:]).mean(0)[order]
        widths = ((many.upper_bounds - many.lower_bounds)[10:] / 2).mean(0)[order]
        np.testing.assert_allclose(segments(axes)[M:, 1, 0], sizes + widths)

    def test_merged_clusters_have_the_sum_of_their_widths(self):
        row = explanation(1)[0]
        rng = np.random.default_rng(2)
        column = rng.normal(size=(200, 1))
        data = np.hstack([column + 1e-3 * rng.normal(size=(200, 4)), rng.normal(size=(200, 2))])
        tree = shap.utils.hclust(data, metric="correlation")
        row.values[:4] = [0.1, -0.2, 0.3, 0.15]
        row.values[4:] = [2.0, 1.0]
        row.upper_bounds[:], row.lower_bounds[:] = row.values + 0.25, row.values - 0.25
        axes = plots.bar(row, max_display=3, clustering=tree, show=False)
        widths = np.diff(segments(axes)[:3, :, 0])[:, 0]
        # Four features of a cluster share one bar.
        assert sorted(np.round(widths, 6)) == [0.5, 0.5, 2.0]


class TestBeeswarm:
    def check(self, axes, many, members):
        dots, bands = dots_of(axes), segments(axes)
        assert len(bands) == len(dots) == N_ROWS * len(members)
        for line, features in enumerate(reversed(members)):
            of_line = np.round(dots[:, 1]) == line
            is_band = np.round(bands[:, 0, 1]) == line
            at_dots = {tuple(dot) for dot in np.round(dots[of_line], 9)}
            values = many.values[:, features].sum(1)
            widths = (many.upper_bounds - many.values)[:, features].sum(1)
            row_of = {round(value, 9): row for row, value in enumerate(values)}
            for (low, y), (high, _) in bands[is_band]:
                centre = round((low + high) / 2, 9)
                assert (centre, round(y, 9)) in at_dots  # at the height of its dot
                row = row_of[centre]
                assert (high - low) / 2 == pytest.approx(widths[row])

    @pytest.mark.parametrize(("max_display", "is_mixed"), [(None, False), (4, False), (None, True)])
    def test_each_band_is_centred_on_its_dot(self, max_display, is_mixed):
        many = explanation()
        if is_mixed:  # missing and categorical features
            data = many.data.astype(object)
            data[::3, 0] = np.nan
            data[:, 1] = np.where(many.data[:, 1].astype(float) > 0, "yes", "no")
            many.data = data
        axes = plots.beeswarm(many, max_display=max_display, show=False)
        self.check(axes, many, groups_of(many.values, max_display))
        assert (labels(axes)[0] == "Sum of 3 other features") == (max_display == 4)

    def test_equal_attributions_are_told_apart_by_their_colours(self):
        """All rows have the same attribution; each band has the width of the row of its colour."""
        many = explanation()
        values = np.tile([2.0, 1.0, 0.5, 0.4, 0.3, 0.2], (N_ROWS, 1))
        widths = np.abs(many.data) + 0.1
        same = explanation(
            lower_bounds=values - widths, upper_bounds=values + widths, error_std=None
        )
        same.values[:] = values
        same.data = np.abs(many.data) * [1, 1, 1, 1, 1, 1]
        axes = plots.beeswarm(same, show=False)
        (collection,) = (
            c
            for c in circles(axes)
            if round(offsets(c)[0, 1]) == M - 1 and c.get_array() is not None
        )
        heights, shades = offsets(collection)[:, 1], np.asarray(collection.get_array())
        low, high = collection.get_clim()
        bands = {y: (right - left) / 2 for (left, y), (right, _) in segments(axes)}
        inside = (shades > low) & (shades < high)
        assert inside.sum() > 20
        expected = shades + 0.1
        drawn = np.array([bands[y] for y in heights])
        np.testing.assert_allclose(drawn[inside], expected[inside])


class TestScatter:
    def check(self, axes, column):
        dots, bars = dots_of(axes), segments(axes)
        dots = dots[~np.isnan(dots[:, 0])]
        assert len(bars) == len(dots) == N_ROWS
        places = {tuple(dot) for dot in np.round(dots, 9)}
        row_of = {round(value, 9): row for row, value in enumerate(column.values)}
        for (x, low), (_, high) in bars:
            centre = round((low + high) / 2, 9)
            assert (round(x, 9), centre) in places
            row = row_of[centre]
            assert (high - low) / 2 == pytest.approx((column.upper_bounds - column.values)[row])

    @pytest.mark.parametrize("name", ["age", "sex", "missing"])
    def test_each_bar_is_at_its_dot(self, name):
        many = explanation()
        if name == "missing":
            many.data[::4, 0] = np.nan
        column = many[:, "age" if name == "missing" else name]
        self.check(plots.scatter(column, show=False), column)

    def test_colours_and_axes_pass_through(self):
        many = explanation()
        _, axes = plt.subplots()
        drawn = plots.scatter(many[:, "bmi"], color=many, ax=axes, title="a title", show=False)
        assert drawn is axes
        assert axes.get_title() == "a title"
        self.check(axes, many[:, "bmi"])

    def test_several_columns(self):
        many = explanation()
        plots.scatter(many[:, ["age", "bmi"]], show=False)
        for axes, name in zip(plt.gcf().axes, ["age", "bmi"], strict=False):
            self.check(axes, many[:, name])


class TestDecision:
    def bands(self, axes, n_rows):
        polygons = [c for c in axes.collections if isinstance(c, PolyCollection)]
        assert len(polygons) == n_rows
        return [
            {
                y: (points[points[:, 1] == y, 0].min(), points[points[:, 1] == y, 0].max())
                for y in np.unique(points[:, 1])
            }
            for points in map(points_of, polygons)
        ]

    @pytest.mark.parametrize("efficient", [False, True])
    def test_bands_have_the_summed_widths(self, efficient):
        many = explanation()[:4]
        axes = plots.decision(many, efficient=efficient, show=False)
        order = np.argsort(np.abs(many.values).sum(0))
        for row, band in enumerate(self.bands(axes, 4)):
            widths = (many.upper_bounds - many.values)[row, order]
            for y, (low, high) in band.items():
                below, above = widths[: int(y)].sum(), widths[int(y) :].sum()
                width = min(below, above) if efficient else below
                centre = 1.5 + many.values[row, order[: int(y)]].sum()
                assert (low, high) == pytest.approx((centre - width, centre + width))

    def test_part_of_the_features_another_base_and_order(self):
        many = explanation()[:3]
        axes = plots.decision(
            many,
            feature_order=[5, 4, 3, 2, 1, 0],
            feature_display_range=slice(4, 1, -1),
            new_base_value=0.0,
            xlim=(-20, 20),
            show=False,
        )
        assert axes.get_xlim() == (-20, 20)
        assert labels(axes) == ["sex", "bp", "bmi"]
        widths = (many.upper_bounds - many.values)[0, ::-1]
        (low, high) = self.bands(axes, 3)[0][0.0]
        assert (high - low) / 2 == pytest.approx(widths[:2].sum())

    def test_probabilities(self):
        many = explanation()[:3]
        axes = plots.decision(many, link="logit", show=False)
        (low, high) = self.bands(axes, 3)[0][float(M)]
        total = 1.5 + many.values[0].sum()
        width = (many.upper_bounds - many.values)[0].sum()
        ends = 1 / (1 + np.exp(-np.array([total - width, total + width])))
        assert (low, high) == pytest.approx(tuple(ends))


class TestWaterfall:
    def test_bars_are_at_the_ends_of_the_arrows(self):
        row = explanation()[3]
        axes = plots.waterfall(row, max_display=4, show=False)
        end, drawn = 1.5 + row.values.sum(), segments(axes)
        for (low, high), group in zip(drawn[:, :, 0], groups_of(row.values, 4), strict=True):
            width = (row.upper_bounds - row.values)[group].sum()
            assert (low, high) == pytest.approx((end - width, end + width))
            end -= row.values[group].sum()

    def test_one_feature_explains_everything(self):
        background = np.zeros((1, 11))  # values of the others are rounding errors
        explainer = shap_ext.BestExplainer(lambda x: x[:, 0] * 1.0, background, seed=0)
        axes = plots.waterfall(explainer(np.ones(11), error_bounds=True), show=False)
        np.testing.assert_allclose(segments(axes)[0, :, 0], [1, 1], atol=0.01)


class TestText:
    def texts(self):
        words = [["a ", "fine ", "film"], ["not ", "bad"]]
        values = np.empty(2, dtype=object)
        values[:] = [np.array([0.01, 2.0, -0.5]), np.array([1.0, -0.02])]
        bounds = [[v - 0.1 for v in values], [v + 0.1 for v in values]]
        data = np.empty(2, dtype=object)
        data[:] = [np.array(row, dtype=object) for row in words]
        return shap.Explanation(
            values,
            base_values=np.zeros(2),
            data=data,
            lower_bounds=bounds[0],
            upper_bounds=bounds[1],
        )

    def test_words_have_their_intervals_and_uncertain_ones_are_faded(self):
        html = str(plots.text(self.texts(), display=False))
        titles = re.findall(r"title='([^']*)' style='(opacity)?", html)
        assert [title for title, _ in titles] == [
            "+0.01; 95 % interval: -0.09 to +0.11",
            "+2; 95 % interval: +1.9 to +2.1",
            "-0.5; 95 % interval: -0.6 to -0.4",
            "+1; 95 % interval: +0.9 to +1.1",
            "-0.02; 95 % interval: -0.12 to +0.08",
        ]
        assert [bool(faded) for _, faded in titles] == [True, False, False, False, True]
        assert "95 % interval contains 0" in html
        assert "np.float64" not in html

    def test_one_text_and_the_notebook(self, monkeypatch):
        display = pytest.importorskip("IPython.display")
        shown = []
        monkeypatch.setattr(display, "display", shown.append)
        assert plots.text(self.texts()[1], num_starting_labels=1) is None
        assert "not " in shown[0].data

    def test_an_unknown_form_of_shap_s_text_is_refused(self, monkeypatch):
        monkeypatch.setattr(
            shap.plots, "text", lambda shap_values, display=True: "<p>another form</p>"
        )
        with pytest.raises(PlotError, match=r"Call shap\.plots\.text"):
            plots.text(self.texts(), display=False)


def cells_of(axes):
    return np.asarray(axes.images[0].get_array())


def pairs(n_rows=5):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(n_rows, M, M)) * np.linspace(3, 0.1, M)[:, None]
    values = half + half.transpose(0, 2, 1)
    bounds = {"lower_bounds": values - 0.8, "upper_bounds": values + 0.8}
    return shap.Explanation(values, base_values=np.zeros(n_rows), feature_names=NAMES, **bounds)


class TestInteractions:
    def test_pairs_are_doubled_and_uncertain_ones_have_no_colour(self):
        row = pairs()[0]
        axes = plots.interactions(row, max_display=4, show=False)
        whole = row.values * (2 - np.eye(M))
        order = np.argsort(-np.abs(whole).sum(0))[:4]
        expected = whole[np.ix_(order, order)]
        np.testing.assert_allclose(cells_of(axes), expected)
        assert labels(axes) == [NAMES[feature] for feature in order]
        assert np.subtract(*axes.figure.get_size_inches()) == pytest.approx(1.2)  # cells are square
        contain = ((row.lower_bounds <= 0) & (row.upper_bounds >= 0))[np.ix_(order, order)]
        assert 0 < contain.sum() < contain.size
        shown = np.asanyarray(axes.images[0].get_array())
        np.testing.assert_array_equal(np.ma.getmaskarray(shown), contain)
        assert "95 % interval contains 0" in axes.get_xlabel()

    def test_means_over_rows(self):
        many = pairs()
        axes = plots.interactions(many, None, show=False)
        whole = np.abs(many.values * (2 - np.eye(M))).mean(0)
        order = np.argsort(-whole.sum(0))
        np.testing.assert_allclose(cells_of(axes), whole[np.ix_(order, order)])

    @pytest.mark.parametrize(
        ("size", "texts"),
        [
            (0.0, {"0"}),
            (1e-7, {"0", "+1.0e\N{MINUS SIGN}07"}),
            (0.5, {"0", "+0.500"}),
            (1e7, {"0", "+1.0e+07"}),
        ],
    )
    def test_numbers_fit_into_their_cells(self, size, texts):
        values = np.zeros((M, M))
        values[0, 0] = size
        row = shap.Explanation(values, base_values=0.0, lower_bounds=values, upper_bounds=values)
        axes = plots.interactions(row, show=False)
        assert {text.get_text() for text in axes.texts} == texts

    def test_dollar_signs_are_no_formulas(self):
        row = pairs()[0]
        row.feature_names = ["$x$", "a $ b", *"cdef"]
        axes = plots.interactions(row, None, show=False)
        assert {r"\$x\$", r"a \$ b"} < set(labels(axes))


PLOTS = {
    "bar": lambda e, **o: plots.bar(e, show=False, **o),
    "beeswarm": lambda e, **o: plots.beeswarm(e, show=False, **o),
    "scatter": lambda e, **o: plots.scatter(e[:, "age"], show=False, **o),
    "decision": lambda e, **o: plots.decision(e, show=False, **o),
    "waterfall": lambda e, **o: plots.waterfall(e[0], show=False, **o),
    "text": lambda e, **o: plots.text(e[0], display=False, **o),
}


def without_errors(kept):
    return explanation(lower_bounds=kept, upper_bounds=kept, error_std=kept)


def two_outputs():
    values = np.zeros((4, M, 2))
    names = {"feature_names": NAMES, "output_names": ["u", "v"]}
    bounds = {"lower_bounds": values, "upper_bounds": values}
    return shap.Explanation(
        values, base_values=np.zeros((4, 2)), data=np.zeros((4, M)), **names, **bounds
    )


@pytest.mark.every_combination
@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize(
    ("make", "options", "error", "words"),
    [
        (lambda: without_errors(None), {}, InvalidArgumentError, "error_bounds=True"),
        (lambda: without_errors(np.full((N_ROWS, M), np.nan)), {}, InvalidArgumentError, "max_ev"),
        (two_outputs, {}, InvalidArgumentError, r"one output.*explanation\["),
        (explanation, {"nonsense": 1}, InvalidArgumentTypeError, "nonsense"),
        (explanation, {"level": 95}, InvalidArgumentError, "level"),
    ],
    ids=["no bounds", "unknown errors", "two outputs", "an argument", "a level"],
)
def test_what_no_plot_can_draw_is_refused(name, make, options, error, words):
    with pytest.raises(error, match=words):
        PLOTS[name](make(), **options)


@pytest.mark.parametrize("name", PLOTS)
def test_what_is_no_explanation_and_a_missing_matplotlib_are_named(name, monkeypatch):
    with pytest.raises(InvalidArgumentTypeError, match=r"shap\.Explanation"):
        getattr(plots, name)(np.zeros((3, 2)))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingPackageError, match=r"shapley-ext\[plots\]"):
        PLOTS[name](explanation())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plots.scatter(explanation()[0]), r"explanation\[:, 'age'\]"),
        (lambda: plots.decision(explanation(base_values=np.arange(30.0))), "one base value"),
        (lambda: plots.waterfall(explanation()), r"explanation\[0\]"),
        (lambda: plots.interactions(pairs(), -1), "max_display"),
        (lambda: plots.interactions(explanation()), "interactions=True"),
    ],
)
def test_what_one_plot_cannot_draw_is_refused(call, words):
    with pytest.raises(InvalidArgumentError, match=words):
        call()


@pytest.mark.parametrize("name", sorted({*PLOTS} - {"text"}))  # which is no picture
def test_names_that_matplotlib_cannot_draw_are_drawn_as_text(name):
    """Half of a formula and half of a character; a whole formula is drawn as one."""
    names = ["age", "$x_{$", "\ud800", "$x_1$", *NAMES[4:]]
    PLOTS[name](explanation(feature_names=names))
    plt.gcf().savefig(io.BytesIO())


def test_exact_values_are_called_so():
    widths = np.zeros((N_ROWS, M))
    exact, half = (explanation(lower_bounds=None, error_std=widths + error) for error in (0, 0.1))
    for plot in (plots.waterfall, plots.bar, plots.beeswarm, plots.decision):
        rows = 0 if plot is plots.waterfall else slice(None)
        assert "Exact values" in plot(exact[rows], show=False).get_xlabel()
        assert "95 % intervals" in plot(half[rows], show=False).get_xlabel()
        plt.close("all")
    assert "(Exact values)" in plots.scatter(exact[:, 0], show=False).get_ylabel()
    cohorts = {"a": exact, "b": half}
    assert "95 % intervals" in plots.bar(cohorts, show=False).get_xlabel()


def test_some_unknown_errors_are_drawn_without_bars_and_with_a_warning():
    row = explanation()[0]
    for array in (row.lower_bounds, row.upper_bounds, row.error_std):
        array[np.argmin(np.abs(row.values))] = np.nan
    with pytest.warns(ShapleyExtWarning, match="1 of 6 attributions have no standard error"):
        axes = plots.bar(row, show=False)
    (bars,) = (c for c in axes.collections if isinstance(c, LineCollection))
    are_drawn = [bool(len(bar) and np.isfinite(bar).all()) for bar in bars.get_segments()]
    assert are_drawn == [True] * (M - 1) + [False]
    assert np.isfinite(axes.get_xlim()).all()


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_other_levels_are_student_s(level):
    """The widths at other levels are those of the estimate, from the bounds at 95 % alone."""
    background = np.random.default_rng(0).normal(size=(1, 8))
    explainer = shap.Explainer(
        lambda x: np.tanh(x).prod(1) + x[:, 0] * x[:, 1],
        background,
        algorithm="randomorder",
        seed=0,
    )
    rows = np.random.default_rng(1).normal(size=(3, 8))
    found = explainer(rows, max_evals=40, error_bounds=True)
    assert np.isfinite(explainer.last_estimate.degrees_of_freedom).all()
    lower, upper = explainer.last_estimate.interval(level)
    axes = plots.bar(found[1], level=level, max_display=None, show=False)
    order = np.argsort(-np.abs(found.values[1]))
    drawn = segments(axes)[:, :, 0]
    np.testing.assert_allclose(drawn[:, 0], lower[1, order, 0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(drawn[:, 1], upper[1, order, 0], rtol=1e-6, atol=1e-9)
    assert f"{100 * level:.4g} %" in axes.get_xlabel()


def test_standard_errors_alone_give_normal_intervals():
    """shap's own permutation explainer returns error_std without bounds."""
    many = explanation(lower_bounds=None, upper_bounds=None)
    drawn = segments(plots.bar(many[0], show=False, max_display=None))
    order = np.argsort(-np.abs(many.values[0]))
    widths = 1.959963984540054 * many.error_std[0, order]
    np.testing.assert_allclose(np.diff(drawn[:, :, 0])[:, 0], 2 * widths)


@pytest.mark.parametrize(
    ("name", "argument"), [("waterfall", "shap_values"), ("decision", "base_value")]
)
def test_values_that_shap_draws_otherwise_are_noticed(name, argument, monkeypatch):
    drawn = getattr(shap.plots, name)

    @wraps(drawn)
    def doubled(**options):
        return drawn(**{**options, argument: options[argument] * 2})

    monkeypatch.setattr(shap.plots, name, doubled)
    with pytest.raises(PlotError, match=rf"Call shap\.plots\.{name}"):
        getattr(plots, name)(explanation()[0], show=False)


def test_figures_are_shown_by_default(monkeypatch):
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    assert plots.bar(explanation()[0]) is None
    assert plots.waterfall(explanation()[0]) is None
    assert plots.interactions(pairs()[0]) is None
    assert len(shown) == 3
