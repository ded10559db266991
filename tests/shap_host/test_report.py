"""The HTML page of an Explanation, and the record of the call in it."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtWarning
from tests.shap_host.games import curved, curved_columns, rows

EVIL = '<script>alert("1")</script>'
NAMES = [EVIL, "$blood$ pressure", "a & b", "x" * 300, *"efghi"]


def explained(model=curved, **options):
    explainer = shap_ext.OddGPExplainer(model, rows(3, 9, 1), seed=3, feature_names=NAMES)
    options = {"max_evals": 60, "error_bounds": True, "silent": True, **options}
    return explainer(rows(6, 9), **options)


def page_of(explanation, folder, **options):
    """Return the page and the tables in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShapleyExtWarning)
        shap_ext.report(explanation, folder / "page.html", **options)
    page = (folder / "page.html").read_text(encoding="utf-8")
    features, call = (
        [re.findall("<td>(.*?)</td>", line) for line in table.split("</tr>")]
        for table in re.findall("<table.*?</table>", page, re.DOTALL)
    )
    return page, [line for line in features if line], dict(line for line in call if line)


def test_a_page_has_plots_a_table_and_the_call(tmp_path):
    e = explained()
    page, features, call = page_of(e, tmp_path, title=EVIL)
    assert page.count("data:image/png;base64,") == 4
    sizes = np.abs(e.values).mean(axis=0)
    top = np.argmax(sizes)
    width = (e.upper_bounds - e.lower_bounds).mean(axis=0)[top]
    numbers = [f"{number:.4g}" for number in (sizes[top], e.values.mean(axis=0)[top], width)]
    assert features[0][1:4] == numbers
    assert call["Model"] == "curved"
    assert call["Method"] == "odd GP (OddGPExplainer)"
    assert call["Evaluations"] == "60 to 60 for each row, 360 in all"
    assert call["Seed"] == "3"
    assert f"shap {shap.__version__}" in call["Versions"]
    assert call["Error bars"].startswith("hold 95 %")
    # Names and titles are only text, and the page loads nothing.
    assert "<script" not in page and page.count("&lt;script&gt;") == 3
    assert not re.search(r'(href|src)="(?!data:)', page)


def test_one_row_and_one_text_have_a_page(tmp_path):
    e = explained()[4]
    page, features, call = page_of(e, tmp_path)
    assert page.count("data:image/png;base64,") == 1
    top = np.argmax(np.abs(e.values))
    interval = f"{e.lower_bounds[top]:.4g} to {e.upper_bounds[top]:.4g}"
    assert features[0][1:4] == [f"{e.data[top]:.4g}", f"{e.values[top]:.4g}", interval]
    assert call["Seed"] == "3"  # the record survives the selection

    def length(texts):
        return np.array([len(text.split()) + ("good" in text) * ("not" in text) for text in texts])

    explainer = shap.Explainer(length, shap.maskers.Text(r"\W+"), algorithm="randomorder", seed=0)
    texts = explainer(["<b>not</b> good", "a b c not d good"], max_evals=60, silent=True)
    assert len(page_of(texts[0], tmp_path)[1]) == len(texts[0].values)


def test_explanations_without_bounds_or_record_have_a_page(tmp_path):
    e = explained()
    _, features, call = page_of(shap.Explanation(e.values, e.base_values, e.data), tmp_path)
    assert call == {
        "Call": "not recorded in this explanation",
        "Error bars": "none; error_bounds=True gives them",
    }
    assert features[0][0].startswith("Feature ")
    assert "removed by an operation (abs)" in page_of(e.abs, tmp_path)[2]["Error bars"]
    frame = pd.DataFrame({"colour": ["red", EVIL, "blue"], "size": [1.0, 2.0, 3.0]})
    explainer = shap_ext.OddGPExplainer(lambda x: x["size"] * (x["colour"] == "red"), frame, seed=0)
    page = page_of(explainer(frame, silent=True)[1:2], tmp_path)[0]
    assert "&lt;script&gt;" in page


def test_warnings_options_and_aggregates_are_recorded(tmp_path):
    explainer = shap_ext.ShearExplainer(curved, rows(3, 9, 1), seed=0, antithetic=False)
    assert page_of(explainer(rows(2, 9), silent=True), tmp_path)[2]["Options"] == "antithetic=False"
    with pytest.warns(ShapleyExtWarning, match="far off") as caught:
        e = shap_ext.OddGPExplainer(curved, rows(3, 9, 1), seed=0)(
            rows(2, 9), max_evals=8, error_bounds=True, silent=True
        )
    assert e.call.warnings == (str(caught[0].message),)
    assert page_of(e, tmp_path)[2]["Warnings"] != "none"
    mean = shap.Explainer(curved, rows(3, 9, 1), algorithm="centroid", seed=1)
    call = page_of(mean(rows(2, 9), silent=True), tmp_path)[2]
    assert call["Method"] == "centroid (CentroidExplainer)"
    assert call["Evaluations"] == str(mean.last_evaluations)


def test_what_is_not_one_output_of_rows_is_refused(tmp_path):
    e = explained(curved_columns)
    for refused in (e, e[0], e[:0, :, 0]):
        with pytest.raises(InvalidArgumentError, match=r"such as explanation\[\.\.\., 0\]"):
            shap_ext.report(refused, tmp_path / "page.html")
    page_of(e[..., 1], tmp_path)
