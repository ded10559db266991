"""What people who come from shap's older explainers call: shap_values, expected_value, links."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import (
    BudgetError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    NoExpectedValueError,
)
from tests.shap_host.games import ROUNDING, Seen, curved, curved_columns, probability, rows

pytestmark = [pytest.mark.versions, pytest.mark.filterwarnings("error")]

X, BACKGROUND = rows(3, 5), rows(4, 5, seed=1)


def build(model=curved, background=BACKGROUND, name="shear", **options):
    return shap.Explainer(model, background, algorithm=name, seed=0, **options)


# shap_values


@pytest.mark.parametrize("model", [curved, curved_columns, lambda x: curved(x)[:, None]])
def test_shap_values_are_those_of_kernel_explainer_in_number_and_shape(model):
    theirs = shap.KernelExplainer(model, BACKGROUND)
    ours = build(model)
    tail = () if np.ndim(theirs.expected_value) == 0 or theirs.D == 1 else (theirs.D,)
    for x in (X, X[:1], X[0], pd.Series(X[0]), pd.DataFrame(X)):
        theirs_of_x = theirs.shap_values(x, nsamples=30, l1_reg=False, silent=True)
        n_rows = () if np.ndim(x) == 1 else (len(x),)
        got = ours.shap_values(x, nsamples=30, silent=True)
        assert type(got) is np.ndarray
        assert got.shape == (*n_rows, 5, *tail)
        np.testing.assert_allclose(got, theirs_of_x.reshape(got.shape), atol=1e-9)
    expected = np.squeeze(theirs.expected_value)
    np.testing.assert_allclose(ours.expected_value, expected, **ROUNDING)


def test_nsamples_counts_the_coalitions_between_the_ends():
    explainer = build(background=rows(1, 9), name="leastsquares")
    x = rows(2, 9, seed=3)
    got = explainer.shap_values(x, nsamples=98)
    assert (explainer.last_estimate.evaluations == 100).all()
    np.testing.assert_array_equal(got, explainer(x, max_evals=100).values)
    np.testing.assert_array_equal(explainer.shap_values(x, max_evals=100), got)
    assert explainer.shap_values(x, nsamples="auto").shape == (2, 9)
    with pytest.raises(BudgetError, match=r"nsamples=1 means max_evals=3: .*at least"):
        explainer.shap_values(x, nsamples=1)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"nsamples": "many"}, InvalidArgumentTypeError, "nsamples must be"),
        ({"nsamples": 0}, InvalidArgumentError, "nsamples must be"),
        ({"nsamples": 10.5}, InvalidArgumentTypeError, "nsamples must be"),
        ({"l1_reg": "num_features(10)"}, InvalidArgumentError, "l1_reg=.* lasso"),
        ({"l1_reg": 0.1}, InvalidArgumentError, "l1_reg=0.1"),
        ({"gc_collect": True}, InvalidArgumentError, "gc_collect.*batch_size"),
        ({"check_additivity": 1}, InvalidArgumentTypeError, "check_additivity"),
        ({"nsample": 100}, TypeError, "nsample"),
        ({"nsamples": 90, "max_evals": 100}, InvalidArgumentError, "two budgets; pass one"),
    ],
)
def test_what_has_no_meaning_is_refused(wrong, error, words):
    with pytest.raises(error, match=words):
        build().shap_values(X, **wrong)


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ({"data": np.zeros((1, 4))}, "The background is masker="),
        ({"nsamples": 100}, r"explainer\(X, max_evals="),
        ({"l1_reg": "auto"}, "All features are estimated"),
        ({"keep_index": True}, "A DataFrame as masker keeps"),
    ],
)
def test_arguments_of_kernel_explainer_are_refused_with_their_new_names(old, words):
    with pytest.raises(InvalidArgumentTypeError, match=words):
        shap_ext.LeastSquaresExplainer(lambda x: x.sum(axis=1), **old)


def test_neutral_arguments_of_kernel_explainer_are_taken():
    explainer = build()
    plain = explainer.shap_values(X)
    for neutral in (
        {"l1_reg": "auto"},
        {"l1_reg": False},
        {"l1_reg": 0},
        {"l1_reg": None},
        {"gc_collect": False},
    ):
        np.testing.assert_array_equal(explainer.shap_values(X, **neutral), plain)
    np.testing.assert_array_equal(explainer.shap_values(X=X, silent=True), plain)


# expected_value


@pytest.mark.parametrize("model", [curved, probability])
@pytest.mark.parametrize("link", ["identity", "logit"])
def test_expected_value_is_the_base_value_before_and_after_a_call(model, link):
    model = (lambda x: probability(x)[:, 1]) if model is curved and link == "logit" else model
    seen = Seen(model)
    explainer = build(seen, link=link)
    before = explainer.expected_value
    assert sum(map(len, seen.calls)) <= 2 * len(BACKGROUND)  # the link takes them once more
    explained = explainer(X)
    n_calls = len(seen.calls)
    after = explainer.expected_value
    assert len(seen.calls) == n_calls
    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(explained.base_values, [after] * len(X))
    assert type(after) is (np.ndarray if model is probability else float)
    theirs = shap.KernelExplainer(model, BACKGROUND, link=link)
    np.testing.assert_allclose(after, theirs.expected_value, **ROUNDING)


@pytest.mark.parametrize("of", ["array", "independent", "frame", "images"])
def test_expected_value_of_every_kind_of_background(of):
    background = {
        "array": BACKGROUND,
        "independent": shap.maskers.Independent(BACKGROUND),
        "frame": pd.DataFrame(BACKGROUND, columns=list("abcde")),
        "images": rows(4, 12).reshape(4, 2, 3, 2),
    }[of]
    table = rows(4, 12) if of == "images" else BACKGROUND

    def model(x):
        return curved(np.asarray(x).reshape(len(x), -1))

    np.testing.assert_allclose(
        build(model, background).expected_value, curved(table).mean(), **ROUNDING
    )


def test_expected_values_that_rows_do_not_share_are_refused():
    explainer = build(lambda x: x.sum(axis=1), lambda mask, x: (x * mask + 0.5 * x)[None])
    assert not hasattr(explainer, "expected_value")
    explainer(X)
    with pytest.raises(NoExpectedValueError, match="differ from row to row.*base_values"):
        _ = explainer.expected_value
    explainer(X[:1])
    assert explainer.expected_value == pytest.approx(0.5 * X[0].sum())
    of_class = build(probability, value_function="log_probability")
    assert not hasattr(of_class, "expected_value")


# One row


def test_one_row_of_a_frame_has_its_types():
    frame = pd.DataFrame({"a": [1.5, 2.0], "b": [1, 2], "c": ["x", "y"], "d": [True, False]})
    frame["c"] = frame["c"].astype("category")

    def model(given):
        assert (given.dtypes == frame.dtypes).all()
        return given["a"] * given["b"] * (1.0 + (given["c"] == "x")) * (1.0 + given["d"])

    explainer = build(model, frame)
    one, whole = explainer(frame.iloc[1]), explainer(frame.iloc[[1]])[0]
    np.testing.assert_array_equal(one.values, whole.values)
    assert one.values.shape == (4,) and one.feature_names == list("abcd")


# Members of aggregates


@pytest.mark.parametrize(("member", "needed"), [("exact", 512), ("permutation", 19), ("shear", 38)])
def test_shares_that_are_too_small_say_what_they_need(member, needed):
    explainer = build(
        background=rows(2, 9), name="centroid", explainers=["oddgp", member, "leastsquares"]
    )
    x = rows(2, 9, seed=4)
    with pytest.raises(
        BudgetError,
        match=rf"(?i){member} needs at least {needed} .*Pass {3 * needed} or more as max_evals=",
    ):
        explainer(x, max_evals=3 * (needed - 1))
    assert explainer(x, max_evals=3 * max(needed, 50)).values.shape == (2, 9)
    with pytest.raises(BudgetError, match=f"(?i){member} needs at least {needed}") as raised:
        build(background=rows(2, 9), name="ava", explainer=member)(x, max_evals=needed - 1)
    assert pickle.loads(pickle.dumps(raised.value)).needed == needed


# --- what the table of docs/coming_from_shap.md says that calls cost ---


PAGE = Path(__file__).parents[2] / "docs" / "coming_from_shap.md"
TEXT = PAGE.read_text(encoding="utf-8")
FIVE, WIDE = rows(5, 12, seed=1), rows(1, 12)
CALL, VALUES = "__call__", "shap_values"


def predict(x):
    return np.tanh(x.sum(axis=1)) + x[:, 0] * x[:, 1] * x[:, 2]


def kernel(model):
    return shap.KernelExplainer(model, FIVE)


def permutation(model):
    return shap.PermutationExplainer(model, FIVE)


def oddgp(model):
    return shap.Explainer(model, FIVE, algorithm="oddgp", seed=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "build", "call", "options", "n_built", "n_called"),
    [
        ("`KernelExplainer`, `nsamples=200`", kernel, VALUES, {"nsamples": 200}, 5, 1001),
        ("`PermutationExplainer`, `max_evals=200`", permutation, CALL, {"max_evals": 200}, 0, 1000),
        ('`"oddgp"`, `max_evals=200`', oddgp, CALL, {"max_evals": 200}, 0, 1045),
        ('`"oddgp"`, `shap_values(nsamples=200)`', oddgp, VALUES, {"nsamples": 200}, 0, 1055),
        ('`"oddgp"`, `max_evals="auto"`', oddgp, CALL, {}, 0, 2590),
    ],
)
def test_calls_cost_what_the_table_says(row, build, call, options, n_built, n_called):
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {row} |")]
    told = f"{n_called:,}" + (f", and {n_built} when it is built" if n_built else "")
    assert line.endswith(f"| {told} |")
    seen = Seen(predict)
    explainer = build(seen)
    assert sum(map(len, seen.calls)) == n_built
    seen.calls.clear()
    getattr(explainer, call)(WIDE, silent=True, **options)
    assert sum(map(len, seen.calls)) == n_called
