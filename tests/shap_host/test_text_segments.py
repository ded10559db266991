"""Texts by words, sentences and paragraphs: the numbers by enumeration, plots, bad input."""

import io
from typing import Any

import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.brute_force import shapley_values

WORDS = ["  This ", "film\n", "is ", "not ", "so ", "good.  "]
TEXT = "".join(WORDS)
SENTENCES = ['"Dr No!" ', "he said.  ", "Was it 3.5?\n", "No... ", "(Yes!) ", "好。", "是"]


def model(texts):
    """Return two scores of each text, in which its words interact."""
    n_good = np.array([text.count("good") * (1 - 2.0 * text.count("not")) for text in texts])
    length = np.array([len(text) for text in texts])
    return np.stack([length + 3 * n_good, np.sin(length) * n_good], axis=1)


def explain(masker, text, function=model, **options):
    return shap.Explainer(function, masker, algorithm="enumeration")([text], **options)


@pytest.mark.parametrize("collapse", [True, False])
@pytest.mark.parametrize("mask_token", ["", "[MASK]"])
def test_words_have_their_shapley_values(mask_token, collapse):
    def value(coalition):
        kept, was_masked = [], False
        for place, word in enumerate(WORDS):
            if place in coalition:
                kept.append(word)
            elif mask_token:
                before = word[: word.index(word.strip())]
                behind = word[len(before) + len(word.strip()) :]
                if collapse and was_masked:
                    before = kept.pop().split(mask_token)[0]
                kept.append(f"{before}{mask_token}{behind}")
            was_masked = place not in coalition
        # The text begins with two spaces and ends with two, if any of it is left.
        text = f"  {''.join(kept).strip()}  " if kept else "  "
        return model([text])[0]

    masker = shap_ext.maskers.TextSegments("words", mask_token, collapse)
    sv = explain(masker, TEXT)
    wanted = shapley_values(len(WORDS), value)
    np.testing.assert_allclose(sv.values[0], wanted, rtol=0, atol=1e-10)
    assert list(sv.data[0]) == WORDS
    assert sv.feature_names[0] == [word.strip() for word in WORDS]


@pytest.mark.parametrize(
    ("segments", "text", "wanted"),
    [
        ("sentences", "".join(SENTENCES), SENTENCES),
        ("paragraphs", "one\ntwo\n \n\nthree\n", ["one\ntwo\n \n\n", "three\n"]),
        ("words", " one", [" one"]),
        (lambda text: [text[:2], text[2:]], "abcd", ["ab", "cd"]),
    ],
)
def test_kinds_of_segments(segments, text, wanted):
    masker = shap_ext.maskers.TextSegments(segments, mask_token="")
    sv = explain(masker, text, lambda texts: [len(text) for text in texts])
    assert list(sv.data[0]) == wanted
    (whole,) = masker(True, text)
    assert whole.tolist() == [text]


def test_rows_of_several_lengths_and_other_explainers():
    texts = [TEXT, "good", "not good"]
    masker = shap_ext.maskers.TextSegments()
    together = shap.Explainer(model, masker, algorithm="oddgp", seed=0)(texts)
    for row, text in enumerate(texts):
        alone = explain(masker, text)
        np.testing.assert_allclose(together.values[row], alone.values[0], rtol=0, atol=1e-10)
    theirs = shap.Explainer(model, masker, algorithm="partition")(texts[:1], silent=True)
    sums = theirs.values[0].sum(axis=0) + theirs.base_values[0]
    np.testing.assert_allclose(sums, model([TEXT])[0], rtol=0, atol=1e-10)
    assert theirs.clustering.shape == (1, 5, 4)


def test_plots_show_each_word_with_its_interval():
    masker = shap_ext.maskers.TextSegments()
    text = " ".join(f"word{n} not" for n in range(8)) + " good"
    explainer = shap.Explainer(model, masker, algorithm="oddgp", seed=0)
    sv = explainer([text], max_evals=60, error_bounds=True)
    page: Any = shap_ext.plots.text(sv[0][..., 0], display=False)
    assert page.count("95 % interval") == 17 + 1  # of each word, and of the legend
    assert "word7 " in page


def test_maskers_are_saved():
    stored = io.BytesIO()
    shap_ext.maskers.TextSegments("sentences", "", False).save(stored)
    stored.seek(0)
    masker = shap.maskers.Masker.load(stored)
    assert masker.mask_token == "" and not masker.collapse_mask_token
    mask = np.array([False, True])
    assert masker(mask, "One. Two.")[0].tolist() == ["Two."]


def refused(texts):
    raise AssertionError("the model was called")


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        ({"segments": "letters"}, "a", "'words', 'sentences', 'paragraphs'"),
        ({"mask_token": None}, "a", "mask_token must be a text"),
        ({}, "a", None),
        ({}, " \n", "X, row 0, is ' .n', which has no words"),
        ({"segments": lambda text: []}, "a", "X, row 0, .* no segments"),
        ({"segments": lambda text: ["b", "a"]}, "ab", "returned 'a' as entry 1.*order"),
        ({"segments": lambda text: ["a", " "]}, "a b", "entry 1, which is empty"),
        ({"segments": lambda text: [1]}, "a", "list of texts; entry 0 is a int"),
        ({}, 3, "X, row 0, must be a text; got int"),
    ],
)
def test_bad_input_is_refused_before_the_model_is_called(arguments, text, message):
    if message is None:  # one word: the difference that its absence makes
        sv = explain(shap_ext.maskers.TextSegments(**arguments), "good")
        difference = model(["good"])[0] - model(["..."])[0]
        np.testing.assert_allclose(sv.values[0], difference[None], rtol=0, atol=1e-12)
        return
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=message):
        explain(shap_ext.maskers.TextSegments(**arguments), text, refused)


@pytest.mark.parametrize("rows", [[TEXT, "a"], [["a b"], ["c"]], np.array([TEXT, "a"])])
def test_streams_of_texts_are_refused_before_the_model_is_called(rows, tmp_path):
    masker = shap_ext.maskers.TextSegments()
    explainer = shap.Explainer(lambda texts: 1 / 0, masker, algorithm="best", seed=0)
    with pytest.raises(InvalidArgumentError, match=r"such as tokens.* by explainer\(X\), chunk"):
        explainer.explain_stream(rows, tmp_path / "values.npz")
