"""Texts: ragged rows, tokenizers of both kinds, tokens that cannot matter, plots."""

import re

import numpy as np
import pandas as pd
import pytest
import shap
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import shap_ext
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
)
from tests.helpers.brute_force import shapley_values
from tests.shap_host.games import ROUNDING, Seen, reloaded

TEXTS = ["this is not good", "good", "the film was not so good"]
NAMES = ["enumeration", "shear"]


def model(texts):
    """Return two outputs of each text, in which words interact."""
    texts = [str(text) for text in texts]
    n_good = np.array([text.count("good") for text in texts])
    n_not = np.array([text.count("not") for text in texts])
    length = np.array([len(text) for text in texts])
    return np.stack([length + 3.0 * n_good * (1 - 2 * n_not), np.sin(length) * n_good], axis=1)


def first_output(texts):
    return model(texts)[:, 0]


def by_spaces(text, return_offsets_mapping=True):
    """Tokenize as a plain function, with the interface that shap's Text masker asks for."""
    found = list(re.finditer(r"\S+", text))
    return {
        "input_ids": [match.group() for match in found],
        "offset_mapping": [match.span() for match in found],
    }


class Tokenizer:
    """A tokenizer of words with special tokens, in the style of Hugging Face, without offsets."""

    mask_token, sep_token, cls_token = "[MASK]", "[SEP]", "[CLS]"

    def __init__(self):
        words = [
            "[CLS]", "[SEP]", "[MASK]", "this", "is", "not", "good", "the", "film", "was", "so",
            "...",
        ]  # fmt: skip
        self.ids = {word: place for place, word in enumerate(words)}
        self.words = words
        self.mask_token_id, self.sep_token_id = self.ids["[MASK]"], self.ids["[SEP]"]
        self.n_calls = 0

    def __call__(self, text):
        self.n_calls += 1
        inside = [self.ids[word] for word in text.split()]
        return {"input_ids": [self.ids["[CLS]"], *inside, self.ids["[SEP]"]]}

    def convert_ids_to_tokens(self, ids):
        return [self.words[place] for place in ids]

    def get_special_tokens_mask(self, ids, already_has_special_tokens=True):
        return [int(self.words[place][0] == "[") for place in ids]


TOKENIZERS = {"regex": r"\W+", "default": None, "function": by_spaces, "class": Tokenizer()}


def values_by_oracle(masker, function, text):
    """Return the Shapley values of one text's tokens, masked one coalition at a time."""
    n_tokens = masker.shape(text)[1]

    def value(coalition):
        mask = np.zeros(n_tokens, dtype=bool)
        mask[list(coalition)] = True
        return function(masker(mask, text)[0])[0]

    return shapley_values(n_tokens, value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
def test_ragged_texts_are_exact(name, tokenizer):
    masker = shap.maskers.Text(tokenizer)
    sv = shap.Explainer(model, masker, algorithm=name, seed=0)(TEXTS)
    assert sv.values.dtype == object
    for place, text in enumerate(TEXTS):
        wanted = values_by_oracle(shap.maskers.Text(tokenizer), model, text)
        assert sv.values[place].shape == wanted.shape
        np.testing.assert_allclose(sv.values[place], wanted, **ROUNDING)
        np.testing.assert_array_equal(sv.data[place], masker.data_transform(text)[0])
        assert sv.feature_names[place] == masker.feature_names(text)[0]
    assert sv.base_values.shape == (3, 2)


# Of at least two tokens: of one, shap's own fails.
@pytest.mark.parametrize("texts", [TEXTS[::2], TEXTS[:1], ["not good", "so good"]])
@pytest.mark.parametrize("function", [model, first_output])
def test_explanations_have_the_form_of_shaps_own(texts, function):
    ours = shap.Explainer(function, shap.maskers.Text(r"\W+"), algorithm="shear")(texts)
    theirs = shap.Explainer(function, shap.maskers.Text(r"\W+"), algorithm="partition")(
        texts, silent=True
    )
    assert ours.values.dtype == theirs.values.dtype
    assert ours.shape == theirs.shape
    assert type(ours.data) is type(theirs.data)
    assert [list(own) for own in ours.data] == [list(own) for own in theirs.data]
    assert ours.feature_names == theirs.feature_names
    np.testing.assert_allclose(ours.base_values, theirs.base_values, **ROUNDING)
    for own, other in zip(ours.values, theirs.values, strict=True):
        np.testing.assert_allclose(own.sum(axis=0), other.sum(axis=0), **ROUNDING)


def test_texts_come_as_lists_arrays_series_columns_and_datasets():
    class Column:
        """What a dataset of Hugging Face looks like."""

        column_names = ("text", "label")

        def __getitem__(self, name):
            return TEXTS if name == "text" else None

    explainer = shap.Explainer(first_output, shap.maskers.Text(r"\W+"), algorithm="enumeration")
    wanted = explainer(TEXTS)
    for texts in (
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS, index=[5, 6, 7]),
        {"text": TEXTS},
        Column(),
    ):
        sv = explainer(texts)
        assert [list(own) for own in sv.data] == [list(own) for own in wanted.data]
        for own, other in zip(sv.values, wanted.values, strict=True):
            np.testing.assert_array_equal(own, other)


def test_special_tokens_are_exactly_zero_and_cost_nothing():
    seen = Seen(first_output)
    explainer = shap.Explainer(seen, shap.maskers.Text(Tokenizer()), algorithm="shear", seed=0)
    sv = explainer(["not good", "this [SEP] good"])
    assert [list(own) for own in sv.data] == [
        ["", " not", " good", ""],
        ["", " this", " [SEP]", " good", ""],
    ]
    assert explainer.last_estimate.evaluations[0] == 4
    assert (sv.values[0][[0, 3]] == 0).all()
    assert (sv.values[1][[0, 4]] == 0).all()


def test_separators_that_the_masker_does_mask_are_players():
    """shap calls them invariant, but keeps only segments that are the separator to the letter."""
    masker = shap.maskers.Text(Tokenizer())
    text = "this [SEP] good"
    assert masker.invariants(text)[0, 2]
    (without,) = masker(np.array([1, 1, 0, 1, 1], dtype=bool), text)
    (whole,) = masker(np.ones(5, dtype=bool), text)
    assert without[0] != whole[0]
    sv = shap.Explainer(first_output, masker, algorithm="enumeration")([text])
    assert sv.values[0, 2] != 0
    np.testing.assert_allclose(
        sv.values[0], values_by_oracle(masker, first_output, text), **ROUNDING
    )
    np.testing.assert_allclose(
        sv.base_values[0] + sv.values[0].sum(), first_output([whole[0]])[0], **ROUNDING
    )


@pytest.mark.parametrize("mask_token", [2, "[MASK]"])
def test_token_ids_of_different_lengths(mask_token):
    """Rows of other lengths cannot share a call of the model, but all coalitions of a row can."""

    def of_ids(ids):
        return (np.asarray(ids) * np.arange(1, ids.shape[1] + 1)).sum(axis=1) ** 2 / 100.0

    masker = shap.maskers.Text(Tokenizer(), mask_token=mask_token, output_type="token_ids")
    seen = Seen(of_ids)
    sv = shap.Explainer(seen, masker, algorithm="enumeration")(TEXTS)
    for place, text in enumerate(TEXTS):
        wanted = values_by_oracle(masker, of_ids, text)
        np.testing.assert_allclose(sv.values[place], wanted, rtol=0, atol=1e-10)
    assert len(seen.calls) <= 2 * len(TEXTS) + 4  # four look for random answers


def test_each_text_is_tokenized_a_few_times_only():
    """One masker would tokenize anew at each change of rows."""
    tokenizer = Tokenizer()
    masker = shap.maskers.Text(tokenizer)
    tokenizer.n_calls = 0
    shap.Explainer(first_output, masker, algorithm="enumeration")(TEXTS)
    # Once for each text itself; a fast path of the masker that fails first counts double.
    assert tokenizer.n_calls <= 2 * 2 * len(TEXTS)


@pytest.mark.timed
def test_rows_and_coalitions_share_calls_of_the_model():
    texts = ["a b c d e f", "a b c", "c d e f g"] * 4
    seen = Seen(lambda texts: np.array([float(len(text)) for text in texts]))
    explainer = shap.Explainer(seen, shap.maskers.Text(r"\W+"), algorithm="enumeration")
    explainer(texts)
    n_evaluations = explainer.last_estimate.evaluations.sum()
    assert n_evaluations == 4 * (64 + 8 + 32)
    n_checks = explainer.last_estimate.check_evaluations  # more than three: whole numbers
    assert sum(map(len, seen.calls)) == n_evaluations + n_checks
    # Full and empty coalitions of all rows in one call, single ones that look for random answers,
    # and all others in calls whose size is timed.
    assert len(seen.calls[0]) == 2 * len(texts)
    assert len(seen.calls) <= 30 + n_checks
    seen.calls.clear()
    explainer(texts, batch_size=50)
    assert max(map(len, seen.calls)) == 50
    first = next(call for call in seen.calls[1:] if len(call) > 1)
    assert any("b" in text for text in first)  # of the second row
    assert any("d" in text for text in first)  # and of another


def test_links_and_outputs_of_texts():
    def probabilities(texts):
        return 1 / (1 + np.exp(-model(texts) / 10))

    masker = shap.maskers.Text(r"\W+")
    explainer = shap.Explainer(
        probabilities, masker, algorithm="enumeration", link=shap.links.logit
    )
    sv = explainer(TEXTS, outputs=[1])
    for place, text in enumerate(TEXTS):
        wanted = values_by_oracle(masker, lambda texts: model(texts) / 10, text)
        np.testing.assert_allclose(sv.values[place], wanted[:, [1]], rtol=0, atol=1e-10)
    assert sv.output_names == ["Output 1"]


def test_each_row_chooses_outputs_by_a_chain_of_operations():
    def three(texts):
        return np.stack([np.array([text.count(c) * 1.0 for text in texts]) for c in "abc"], axis=1)

    explainer = shap.Explainer(
        three, shap.maskers.Text(r"\W+"), algorithm="enumeration", output_names=list("ABC")
    )
    texts = ["aa b c ccc", "bb b a"]
    chain = shap.Explanation.argsort.flip[:2]
    sv, everything = explainer(texts, outputs=chain), explainer(texts)
    assert np.array(sv.output_names).tolist() == [["C", "A"], ["B", "A"]]
    np.testing.assert_array_equal(sv.values[0], everything.values[0][:, [2, 0]])
    np.testing.assert_array_equal(sv.values[1], everything.values[1][:, [1, 0]])
    np.testing.assert_array_equal(sv.base_values[1], everything.base_values[1][[1, 0]])
    theirs = shap.Explainer(
        three, shap.maskers.Text(r"\W+"), algorithm="partition", output_names=list("ABC")
    )(texts, outputs=chain, silent=True)
    assert np.array(theirs.output_names).tolist() == np.array(sv.output_names).tolist()


REVIEWS = ["good film", "bad film", "very good sound", "not a good film, a bad one"] * 5
CLASSIFIER = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(REVIEWS, [1, 0, 1, 0] * 5)


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
@pytest.mark.parametrize("algorithm", ["best", "oddgp", "enumeration"])
@pytest.mark.parametrize("method", [None, "decision_function"])
def test_pipelines_of_texts_explain_words_without_a_masker(form, algorithm, method):
    model = CLASSIFIER if method is None else getattr(CLASSIFIER, method)
    texts = ["not a good film", "bad"]
    with pytest.warns(ShapleyExtWarning, match=r"TfidfVectorizer.*TextSegments\('words'"):
        explainer = shap.Explainer(model, algorithm=algorithm, seed=0)
    sv = explainer(form(texts))
    words = shap_ext.maskers.TextSegments("words", mask_token="")
    given = shap.Explainer(model, words, algorithm=algorithm, seed=0)(texts)
    for row, text in enumerate(texts):
        assert sv.feature_names[row] == text.split()
        np.testing.assert_array_equal(sv.values[row], given.values[row])
        whole = CLASSIFIER.decision_function([text])[0]
        np.testing.assert_allclose(sv.values[row].sum() + sv.base_values[row], whole, atol=1e-9)


# --- words, sentences and paragraphs ---


WORDS = ["  This ", "film\n", "is ", "not ", "so ", "good.  "]
TEXT = "".join(WORDS)
SENTENCES = ['"Dr No!" ', "he said.  ", "Was it 3.5?\n", "No... ", "(Yes!) ", "好。", "是"]


def segment_scores(texts):
    """Return two scores of each text, in which its words interact."""
    n_good = np.array([text.count("good") * (1 - 2.0 * text.count("not")) for text in texts])
    length = np.array([len(text) for text in texts])
    return np.stack([length + 3 * n_good, np.sin(length) * n_good], axis=1)


def explain(masker, text, function=segment_scores, **options):
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
        return segment_scores([text])[0]

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
    together = shap.Explainer(segment_scores, masker, algorithm="oddgp", seed=0)(texts)
    for row, text in enumerate(texts):
        alone = explain(masker, text)
        np.testing.assert_allclose(together.values[row], alone.values[0], rtol=0, atol=1e-10)
    theirs = shap.Explainer(segment_scores, masker, algorithm="partition")(texts[:1], silent=True)
    sums = theirs.values[0].sum(axis=0) + theirs.base_values[0]
    np.testing.assert_allclose(sums, segment_scores([TEXT])[0], rtol=0, atol=1e-10)
    assert theirs.clustering.shape == (1, 5, 4)


def test_maskers_are_saved():
    segments = shap_ext.maskers.TextSegments("sentences", "", False)
    masker = reloaded(segments, shap.maskers.Masker)
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
        difference = segment_scores(["good"])[0] - segment_scores(["..."])[0]
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
