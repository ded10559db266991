"""The report of an Explanation: what is in the page, that it is safe, and that browsers show it."""

import base64
import io
import re
import shutil
import subprocess
import warnings
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import shap
from matplotlib.image import imread

import shap_ext
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
)
from shapley_adapters.reports.html_page import coloured_words, table
from tests.shap_host.games import curved, curved_columns, rows

BACKGROUND = rows(3, 9, 1)
EVIL = '<script>alert("1")</script>'
NAMES = [EVIL, "$blood$ pressure", "a & b", "x" * 300, *"efghi"]


def explained(model=curved, x=None, **options):
    explainer = shap_ext.OddGPExplainer(model, BACKGROUND, seed=3, feature_names=NAMES)
    options = {"max_evals": 60, "error_bounds": True, "silent": True, **options}
    return explainer(rows(6, 9) if x is None else x, **options)


@pytest.mark.parametrize("path", ["", 5, b"page.html", "a\0b", "x" * 300, "\ud800", "none/page"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match="path"):
        shap_ext.report(explained(), path)


def test_a_folder_is_no_path(tmp_path):
    with pytest.raises(InvalidArgumentError, match="is a folder"):
        shap_ext.report(explained(), tmp_path)


def test_an_explanation_without_rows_is_refused():
    with pytest.raises(InvalidArgumentError, match="explanation has no rows"):
        shap_ext.report(explained()[:0])


def test_half_characters_are_written_as_question_marks(tmp_path):
    explanation = explained()
    explanation.feature_names = ["\ud800", *NAMES[1:]]
    shap_ext.report(explanation, tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert ("td", "?") in page.texts or ("th", "?") in page.texts


class Page(HTMLParser):
    """The parts of a page; a tag that is not closed is an error."""

    EMPTY = frozenset(["meta", "img", "!doctype"])

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.attributes = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip() and self.open[-1] != "style":
            self.texts.append((self.open[-1], data.strip()))

    def of(self, tag):
        return [text for owner, text in self.texts if owner == tag]

    def cells(self):
        return self.of("td")

    def pictures(self):
        sources = [value for tag, name, value in self.attributes if (tag, name) == ("img", "src")]
        assert all(source.startswith("data:image/png;base64,") for source in sources)
        return [imread(io.BytesIO(base64.b64decode(s.split(",")[1]))) for s in sources]


def page_of(explanation, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShapleyExtWarning)
        page = Page(shap_ext.report(explanation, **options))
    assert_is_closed(page)
    return page


def assert_is_closed(page):
    """See that the page loads nothing and runs nothing."""
    assert not {"script", "link", "iframe", "object", "form", "base"} & set(page.tags)
    for tag, name, value in page.attributes:
        assert not name.startswith("on")
        if name in ("src", "href"):
            assert value.startswith("data:" if tag == "img" else "#")
    (policy,) = [v for t, n, v in page.attributes if n == "content" and "default-src" in v]
    assert policy.startswith("default-src 'none'")


def how_to_read(page_text):
    """Return the first sentence of each section."""
    return re.findall(r"<h2>[^<]*</h2>\n<p class=\"how\">([^<]+)</p>", page_text)


def test_a_table_has_its_sections_values_and_facts():
    e = explained()
    text = shap_ext.report(e, title="A < B")
    page = Page(text)
    assert page.of("h1") == page.of("title") == ["A < B"]
    titles = ["Which features matter", "How the features act", "Some rows, one by one"]
    assert page.of("h2") == [*titles, "How it was computed"]
    assert len(how_to_read(text)) == 4
    assert all(sentence.rstrip().endswith(".") for sentence in how_to_read(text))
    assert len(page.pictures()) == 2 + 3
    cells = page.cells()
    facts = dict(zip(cells[-14::2], cells[-13::2], strict=True))
    assert facts["Model"] == "curved"
    assert facts["Method"] == "odd GP (OddGPExplainer)"
    assert facts["Seed"] == "3"
    assert facts["Evaluations"] == "60 for each row, 360 in all"
    assert f"shap {shap.__version__}" in facts["Versions"]
    assert f"numpy {np.__version__}" in facts["Versions"]
    first = np.argmax(np.abs(e.values).mean(0))
    size = f"{np.abs(e.values).mean(0)[first]:.4g}"
    assert cells[:3] == [NAMES[first], size, f"{e.values.mean(0)[first]:.4g}"]


def test_names_and_titles_are_only_text():
    page = page_of(explained(), title=EVIL, rows=[0])
    assert page.of("h1") == [EVIL]
    assert EVIL in page.cells()
    assert "x" * 300 in page.cells()


def test_rows_are_those_asked_for_with_their_intervals():
    e = explained()
    page = page_of(e, rows=[4])
    assert page.of("h2")[2] == "One row"
    output = e.base_values[4] + e.values[4].sum()
    assert page.of("h3")[0] == f"Row 4: output {output:.4g}"
    top = np.argmax(np.abs(e.values[4]))
    ends = f"{e.lower_bounds[4, top]:.4g} to {e.upper_bounds[4, top]:.4g}"
    assert page.cells()[9 * 4 : 9 * 4 + 5] == [
        NAMES[top], f"{e.data[4, top]:.4g}", f"{e.values[4, top]:.4g}",
        f"{e.error_std[4, top]:.4g}", ends,
    ]  # fmt: skip
    sums = e.base_values + e.values.sum(axis=1)
    chosen = [int(h.split()[1][:-1]) for h in page_of(e, rows=2).of("h3")[:2]]
    assert chosen == [np.argmin(sums), np.argmax(sums)]


def test_one_row_has_no_plots_of_many():
    page = page_of(explained()[2])
    assert page.of("h2") == ["One row", "How it was computed"]
    assert "odd GP (OddGPExplainer)" in page.cells()  # the record survives the selection
    assert page_of(explained(curved_columns)[2]).of("h2")[0] == "One row (Output 0)"


@pytest.mark.slow
def test_several_outputs_have_sections_of_their_own():
    e = explained(curved_columns)
    titles = page_of(e).of("h2")
    assert [t for t in titles if "matter" in t] == [
        f"Which features matter (Output {k})" for k in range(3)
    ]
    four = shap.Explanation(
        np.concatenate([e.values, 0 * e.values[..., :1]], axis=2),
        np.concatenate([e.base_values, e.base_values[:, :1]], axis=1),
        e.data,
    )
    page = page_of(four)
    assert len([t for t in page.of("h2") if "matter" in t]) == 3
    assert "Of the 4 outputs, those with the largest" in page.of("p")[0]


def test_explanations_of_shap_have_reports_that_say_what_is_unknown():
    e = explained()
    page = page_of(shap.Explanation(e.values, e.base_values, e.data))
    assert "Feature 0" in page.cells()
    assert any("no error bars: call the explainer" in text for text in page.of("p"))
    assert any("not recorded" in text for text in page.cells())
    assert any("removed by an operation (abs)" in text for text in page_of(e.abs).of("p"))


def test_warnings_of_the_call_are_in_the_report():
    explainer = shap_ext.OddGPExplainer(curved, BACKGROUND, seed=0)
    with pytest.warns(ShapleyExtWarning, match="far off") as caught:
        e = explainer(rows(2, 9), max_evals=10, error_bounds=True, silent=True)
    assert page_of(e).of("li") == [str(caught[0].message)]
    assert page_of(explainer(rows(2, 9), max_evals=200, silent=True)).of("li") == []


def test_options_and_aggregates_are_recorded():
    explainer = shap_ext.ShearExplainer(curved, BACKGROUND, seed=0, antithetic=False)
    facts = page_of(explainer(rows(2, 9), silent=True)).cells()
    assert "antithetic=False" in facts
    mean = shap.Explainer(curved, BACKGROUND, algorithm="centroid", seed=1)
    cells = page_of(mean(rows(2, 9), silent=True)).cells()
    assert "centroid (CentroidExplainer)" in cells
    assert str(mean.last_evaluations) in cells


def test_interactions_have_a_heat_map_and_a_table_of_pairs():
    i = explained(interactions=True)
    page = page_of(i)
    assert page.of("h2") == ["Which features act together", "How it was computed"]
    sizes = 2 * np.abs(i.values).mean(axis=0)
    sizes[np.tril_indices(9)] = 0
    first, second = np.unravel_index(sizes.argmax(), sizes.shape)
    assert page.cells()[:3] == [NAMES[first], NAMES[second], f"{sizes.max():.4g}"]
    both = page_of(explained(), interactions=i).of("h2")
    assert both[-2:] == ["Which features act together", "How it was computed"]
    with pytest.raises(InvalidArgumentError, match="interactions must hold interactions"):
        shap_ext.report(explained(), interactions=explained())


def length(texts):
    return np.array([len(t.split()) + ("good" in t) * ("not" in t) for t in texts])


def two_lengths(texts):
    return np.stack([length(texts), -length(texts)], axis=1)


@pytest.mark.parametrize("model", [length, two_lengths])
def test_texts_are_coloured_words(model):
    explainer = shap.Explainer(model, shap.maskers.Text(r"\W+"), algorithm="randomorder", seed=0)
    texts = ["<b>not</b> good", "a b c not d good e f g h", "one"]
    e = explainer(texts[:2], max_evals=60, error_bounds=True, silent=True)
    page = page_of(e)
    assert page.of("h2")[0] in ("Some texts, one by one", "Some texts, one by one (Output 0)")
    assert "".join(page.of("span")).count("good") == (2 if model is length else 4)
    notes = [value for _, name, value in page.attributes if name == "title"]
    assert any(re.fullmatch(r"\S+ \(\S+ to \S+\)", note) for note in notes)
    assert page_of(e[1] if model is length else e[:, :, 0][1:2]).of("h2")[0].startswith("One text")


def test_traces_show_whether_there_were_enough_evaluations():
    titles = page_of(explained(max_evals=200, trace=True), rows=[2]).of("h2")
    assert titles[-2:] == ["Were there enough evaluations? (row 2)", "How it was computed"]


def test_images_and_tables_of_categories():
    values = rows(2, 48).reshape(2, 4, 4, 3)
    image = shap.Explanation(values, np.zeros(2), values)
    assert page_of(image).of("h2")[0] == "Some images, one by one"
    frame = pd.DataFrame({"colour": ["red", EVIL, "blue"], "size": [1.0, 2.0, 3.0]})
    explainer = shap_ext.OddGPExplainer(lambda x: x["size"] * (x["colour"] == "red"), frame, seed=0)
    page = page_of(explainer(frame, error_bounds=True, silent=True))
    assert EVIL in page.cells()


@pytest.mark.slow
def test_many_features_and_rows_make_a_small_page():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(10_000, 100)) * np.linspace(2, 0, 100)
    e = shap.Explanation(
        values, np.zeros(10_000), values, feature_names=[f"f{i}" for i in range(100)]
    )
    text = shap_ext.report(e)
    assert len(text) < 3e6
    assert "rows are drawn, at equal distances" in text
    assert text.count("<details>") == 1 + 3  # the rest of 100 features


def test_user_state_is_unchanged():
    """Figures, styles and random numbers of the user remain as they are."""
    figure = plt.figure()
    np.random.seed(5)  # noqa: NPY002  the generator that shap's plots use
    style = plt.rcParams.copy()
    page_of(explained())
    assert plt.get_fignums() == [figure.number]
    assert np.random.random() == np.random.RandomState(5).random()  # noqa: NPY002
    assert plt.rcParams == style
    plt.close(figure)


@pytest.mark.slow
def test_equal_calls_give_equal_pictures():
    e = explained()
    assert shap_ext.report(e) == shap_ext.report(e)


@pytest.mark.slow
def test_a_path_gets_the_page(tmp_path):
    e = explained()
    assert shap_ext.report(e, tmp_path / "page.html") is None
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == shap_ext.report(e)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rows": [6]}, InvalidArgumentError, "rows has the index 6, but the explanation has 6"),
        ({"rows": "all"}, InvalidArgumentTypeError, "rows"),
        ({"rows": 0}, InvalidArgumentError, "rows"),
        ({"max_display": 0}, InvalidArgumentError, "max_display"),
    ],
)
def test_arguments_are_checked(options, error, words):
    with pytest.raises(error, match=words):
        shap_ext.report(explained(), **options)


def test_only_explanations_have_reports():
    with pytest.raises(InvalidArgumentTypeError, match=r"must be a shap\.Explanation; got ndarray"):
        shap_ext.report(np.zeros((2, 3)))


def test_cells_and_words_are_escaped():
    assert "&lt;b&gt;" in table(["<b>"], [["1"]])
    assert "&lt;b&gt;" in table(["a"], [["<b>"]])
    words = coloured_words([("<b>", 1.0, '"&')], 1.0)
    assert "&lt;b&gt;" in words
    assert "&quot;&amp;" in words


OF_BROWSER = (".google.com", ".googleapis.com", ".gvt1.com")
"""Hosts that Chromium itself asks for updates."""
BROWSERS = ["chromium", "chromium-browser", "google-chrome"]
CHROMIUM: str = next(filter(None, map(shutil.which, BROWSERS)), "")


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason=f"none of {BROWSERS} is here")
def test_a_browser_shows_the_page_without_the_network(tmp_path):
    path = tmp_path / "page.html"
    shap_ext.report(explained(), path, title=EVIL)
    log = tmp_path / "network.json"
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-sync",
        "--disable-background-networking",
        "--disable-component-update",
    ]
    done = subprocess.run(
        [CHROMIUM, *flags, f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}",
         "--virtual-time-budget=2000", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    shown = Page(done.stdout)
    assert shown.of("h1") == [EVIL]
    assert "script" not in shown.tags
    assert len(shown.pictures()) == 5
    requested = set(re.findall(r'"url":"(?:https?|wss?)://([^/"]+)', log.read_text()))
    others = {host for host in requested if not host.endswith(OF_BROWSER)}
    assert others == set()


def test_rows_are_a_number_of_numpy_but_not_an_empty_list():
    e = explained()
    assert page_of(e, rows=np.int64(2)).of("h3") == page_of(e, rows=2).of("h3")
    with pytest.raises(InvalidArgumentError, match="rows is empty"):
        shap_ext.report(e, rows=[])


def test_unknown_errors_have_a_report_that_says_so():
    e, unknown = explained(), np.full((6, 9), np.nan)
    fields = dict.fromkeys(["lower_bounds", "upper_bounds", "error_std"], unknown)
    page = page_of(shap.Explanation(e.values, e.base_values, e.data, **fields))
    assert len(page.pictures()) == 2 + 3
    assert any("all standard errors are unknown" in text for text in page.of("p"))


def test_one_row_of_texts_and_as_many_outputs_as_features_is_one_row():
    frame = pd.DataFrame({"colour": ["red", "blue"] * 6, "size": np.arange(12.0), "n": [1.0] * 12})

    def columns(x):
        size = np.asarray(x["size"], dtype=float)
        return np.stack([size, -size, (np.asarray(x["colour"]) == "red") * size], axis=1)

    explainer = shap_ext.LeastSquaresExplainer(columns, frame[:6], seed=0)
    row = explainer(frame[6:], max_evals=8, error_bounds=True, silent=True)[0]
    page = page_of(row)
    assert [t for t in page.of("h2") if t.startswith("One row")] == [
        f"One row (Output {k})" for k in range(3)
    ]
    assert "red" in page.cells()


def test_interactions_are_drawn_by_the_plot_of_interactions():
    def picture_of(one):
        (png,) = Page(shap_ext.report(one)).pictures()
        return png

    i = explained(interactions=True, max_evals=200)
    plain = shap.Explanation(i.values, i.base_values, feature_names=i.feature_names)
    with_bounds, without = picture_of(i), picture_of(plain)
    assert with_bounds.shape[0] > without.shape[0]  # the label of the hatching


def test_traces_of_several_outputs_are_drawn():
    e = explained(curved_columns, trace=True)
    titles = [t for t in page_of(e, rows=[0]).of("h2") if "enough" in t]
    assert titles == [f"Were there enough evaluations? (row 0, Output {k})" for k in range(3)]
    one = page_of(explained(trace=True)[2]).of("h2")
    assert "Were there enough evaluations? (row 0)" in one
