"""Maskers of several inputs, of fixed inputs, and of inputs beside outputs."""

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext  # noqa: F401 # it makes shap know the algorithms
from shapley_adapters.errors import InvalidArgumentError
from tests.helpers.brute_force import shapley_values
from tests.shap_host.games import ROUNDING, Seen, curved, oracle, rows
from tests.shap_host.test_text import TEXTS, by_spaces, first_output, values_by_oracle

X, BACKGROUND = rows(3, 3), rows(4, 3, seed=1)
LABELS = np.array([0.5, -1.0, 2.0])
NAMES = ["enumeration", "shear", "leastsquares"]


def loss(x, labels):
    """Return the squared error of each row."""
    return (curved(x) - np.asarray(labels, dtype=float)) ** 2


def loss_of_one(label):
    return lambda x: loss(x, np.full(len(x), label))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["Independent", "Partition"])
def test_fixed_labels_explain_the_loss(name, kind):
    seen = Seen(loss)
    masker = shap.maskers.Composite(getattr(shap.maskers, kind)(BACKGROUND), shap.maskers.Fixed())
    explainer = shap.Explainer(seen, masker, algorithm=name, seed=0)
    of_columns, of_labels = explainer(X, LABELS)
    for place, label in enumerate(LABELS):
        wanted = oracle(loss_of_one(label), X[[place]], BACKGROUND)[0]
        np.testing.assert_allclose(of_columns.values[place], wanted, **ROUNDING)
    assert of_labels.values.shape == (3, 0)
    np.testing.assert_array_equal(of_labels.data, LABELS)
    np.testing.assert_array_equal(of_columns.data, X)
    assert max(len(call[0]) for call in seen.calls) > len(BACKGROUND)
    made = explainer.explain_row(X[0], LABELS[0])
    assert made["mask_shapes"] == [(3,), (0,)]
    np.testing.assert_allclose(made["values"], of_columns.values[0], **ROUNDING)


def test_missing_values_do_not_leak_in_a_composite():
    """shap's own tabular maskers multiply by the mask."""
    x = X.copy()
    x[0, 1] = np.nan

    def filling(x, labels):
        return loss(np.where(np.isnan(x), -1.0, x), labels)

    masker = shap.maskers.Composite(shap.maskers.Independent(BACKGROUND), shap.maskers.Fixed())
    sv, _ = shap.Explainer(filling, masker, algorithm="enumeration")(x, LABELS)
    filled = np.where(np.isnan(x), -1.0, x)
    wanted = oracle(loss_of_one(LABELS[0]), filled[[0]], BACKGROUND)[0]
    np.testing.assert_allclose(sv.values[0], wanted, **ROUNDING)


def test_frames_reach_the_model_as_frames_beside_labels():
    frame = pd.DataFrame(X, columns=list("abc")).astype({"b": np.float32})
    background = pd.DataFrame(BACKGROUND, columns=list("abc"))
    masker = shap.maskers.Composite(shap.maskers.Independent(background), shap.maskers.Fixed())
    seen = Seen(lambda x, labels: loss(x.to_numpy(), labels))
    sv, _ = shap.Explainer(seen, masker, algorithm="enumeration")(frame, LABELS)
    assert all(list(call[0].columns) == list("abc") for call in seen.calls)
    wanted = oracle(loss_of_one(LABELS[1]), frame.to_numpy()[[1]], BACKGROUND)[0]
    np.testing.assert_allclose(sv.values[1], wanted, **ROUNDING)
    assert sv.feature_names == list("abc")


def test_texts_beside_columns():
    def model(texts, x):
        return first_output(texts) * (1 + np.asarray(x)[:, 0] ** 2)

    masker = shap.maskers.Composite(
        shap.maskers.Text(by_spaces), shap.maskers.Independent(BACKGROUND)
    )
    of_texts, of_columns = shap.Explainer(model, masker, algorithm="enumeration")(TEXTS, X)
    text_masker = shap.maskers.Text(by_spaces)
    for place, text in enumerate(TEXTS):
        n_tokens = len(text.split())

        def value(coalition, text=text, place=place, n_tokens=n_tokens):
            mask = np.zeros(n_tokens + 3, dtype=bool)
            mask[list(coalition)] = True
            (masked,) = text_masker(mask[:n_tokens], text)
            x = np.where(mask[n_tokens:], X[place], BACKGROUND)
            return model(np.repeat(masked, len(x)), x).mean()

        wanted = shapley_values(n_tokens + 3, value)
        np.testing.assert_allclose(of_texts.values[place], wanted[:n_tokens], **ROUNDING)
        np.testing.assert_allclose(of_columns.values[place], wanted[n_tokens:], **ROUNDING)
    assert of_texts.feature_names[0] == TEXTS[0].split()
    assert of_columns.feature_names[0] == ["Feature 0", "Feature 1", "Feature 2"]
    np.testing.assert_array_equal(of_columns.data, X)
    assert [list(tokens) for tokens in of_texts.data][1] == ["good"]


def test_the_row_as_it_is_beside_several_masked_ones():
    """The single row is repeated for each background row."""
    masker = shap.maskers.FixedComposite(shap.maskers.Independent(BACKGROUND))

    def distance(masked, whole):
        assert masked.shape == whole.shape
        return np.sqrt(((masked - whole) ** 2).sum(axis=1))

    sv = shap.Explainer(distance, masker, algorithm="enumeration")(X)
    for place, x in enumerate(X):
        wanted = oracle(
            lambda masked, x=x: np.sqrt(((masked - x) ** 2).sum(axis=1)), x[None], BACKGROUND
        )[0]
        np.testing.assert_allclose(sv.values[place], wanted, **ROUNDING)


def test_outputs_beside_the_masked_row_are_made_once_for_each_row():
    target = Seen(lambda text: np.array([text.upper()]))

    def likeness(masked, targets):
        return np.array([len(set(a.upper().split()) & set(b.split())) * 1.0 + len(a) for a, b in
                         zip(masked, targets, strict=True)])  # fmt: skip

    masker = shap.maskers.OutputComposite(shap.maskers.Text(by_spaces), target)
    sv = shap.Explainer(likeness, masker, algorithm="leastsquares", seed=0)(TEXTS)
    assert sorted(target.calls) == sorted(TEXTS)
    for place, text in enumerate(TEXTS):
        wanted = values_by_oracle(
            shap.maskers.Text(by_spaces),
            lambda texts: likeness(texts, [text.upper()] * len(texts)),  # noqa: B023
            text,
        )
        np.testing.assert_allclose(sv.values[place], wanted, **ROUNDING)


class Segments:
    """A masker of three segments of eight columns, which has a shape and no shapes of masks."""

    shape = (1, 3)

    def __call__(self, mask, x):
        present = np.repeat(mask, [3, 3, 2])
        return ((x * present)[None],)


def test_a_masker_of_fewer_features_than_entries_says_what_it_needs():
    explainer = shap.Explainer(lambda x: x.sum(axis=1), Segments(), algorithm="oddgp")
    with pytest.raises(InvalidArgumentError, match=r"Segments has shape=\(1, 3\).*\[\(3,\)\]"):
        explainer(np.ones((2, 8)))
    explainer.masker.mask_shapes = lambda x: [(3,)]
    np.testing.assert_allclose(explainer(np.ones((2, 8))).values, [[3, 3, 2]] * 2)
