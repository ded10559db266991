"""Global importance through shap: right values, honest error bars, and arguments."""

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.global_importance.result import GlobalImportance
from tests.helpers.importance_oracles import attributions, sage_values

N_PLAYERS = 5
_RNG = np.random.default_rng(3)
_WEIGHTS, _OUT = _RNG.normal(size=(N_PLAYERS, 12)), _RNG.normal(size=12)
_WEIGHTS[4] = 0  # the last feature changes nothing
BACKGROUND = np.zeros((1, N_PLAYERS))
TABLE = _RNG.normal(size=(1500, N_PLAYERS))


def network(x):
    return np.maximum(np.asarray(x) @ _WEIGHTS + 0.3, 0) @ _OUT


def probability(x):
    return 1 / (1 + np.exp(-network(x)))


LABELS = network(TABLE) + _RNG.normal(size=len(TABLE))


def explainer(algorithm="randomorder", model=network, masker=BACKGROUND, **options):
    return shap.Explainer(model, masker, algorithm=algorithm, seed=0, **options)


# --- exact values ---

FEW, FEW_LABELS = TABLE[:12], LABELS[:12]
SEVERAL = TABLE[20:23]


@pytest.mark.parametrize("kind", ["mean", "mean_absolute"])
def test_all_rows_of_a_population_by_enumeration_are_exact(kind):
    exact = attributions(network, FEW, SEVERAL)
    wanted = (np.abs(exact) if kind == "mean_absolute" else exact).mean(axis=0)
    found = explainer("enumeration", masker=SEVERAL).global_importance(
        FEW, kind=kind, population=True
    )
    np.testing.assert_allclose(found.values, wanted, atol=1e-10)
    np.testing.assert_array_equal(found.standard_errors, 0)
    assert found.n_rows == 12 and found.evaluations >= 12 * 2**4


def squared(prediction, label):
    return (prediction - label) ** 2


def cross_entropy(prediction, label):
    return -np.log(prediction if label else 1 - prediction)


def classes(x):
    scores = np.exp(np.stack([network(x), -network(x), network(x) ** 2 / 9], axis=1))
    return scores / scores.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("model", "labels", "loss", "oracle"),
    [
        (network, FEW_LABELS, "squared_error", squared),
        (network, FEW_LABELS, lambda f, y: (f - y) ** 2, squared),
        (probability, (FEW_LABELS > 0).astype(int), "cross_entropy", cross_entropy),
        (classes, classes(FEW).argmax(axis=1), "cross_entropy", lambda p, y: -np.log(p[y])),
    ],
)
def test_the_loss_is_that_of_the_averaged_prediction(model, labels, loss, oracle):
    wanted = sage_values(model, FEW, labels, SEVERAL, oracle)
    found = explainer("enumeration", model, SEVERAL).global_importance(
        FEW, labels, kind="loss", loss=loss, population=True
    )
    np.testing.assert_allclose(found.values, wanted, atol=1e-10)
    empty = model(SEVERAL).mean(axis=0)
    lost = [oracle(empty, y) - oracle(f, y) for f, y in zip(model(FEW), labels, strict=True)]
    assert found.values.sum() == pytest.approx(np.mean(lost))


# --- error bars ---


def truth(kind):
    """Return the importance of the active features over the whole table."""
    labels = LABELS if kind == "loss" else None
    loss = "squared_error" if kind == "loss" else None
    exact = explainer("enumeration").global_importance(
        TABLE, labels, kind=kind, loss=loss, population=True, silent=True
    )
    return exact.values[:4]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "algorithm", "max_evals"),
    [
        ("mean", "randomorder", 20),
        ("loss", "randomorder", 20),
        ("mean_absolute", "simsemivalue", 14),
        ("mean_absolute", "oddgp", 14),
    ],
)
def test_intervals_hold_as_often_as_they_say(kind, algorithm, max_evals):
    """Over 80 samples of rows, drawn with replacement from the table, and 4 features.

    About 300 intervals that depend on each other like 150: their share scatters by 1.8 %. Losses
    have a long tail, so that their means are almost normal from more rows on. Where
    draws are noisy, the bias makes intervals of absolute values wider than needed; biased
    estimators have wider intervals, too.
    """
    wanted, hits = truth(kind), []
    options = {"weights": "equal"} if algorithm == "oddgp" else {}  # which are learned for seconds
    n_rows = 250 if kind == "loss" else 80
    for seed in range(80):
        rows = np.random.default_rng(seed).integers(len(TABLE), size=n_rows)
        found = shap.Explainer(network, BACKGROUND, algorithm=algorithm, seed=seed, **options)
        result = found.global_importance(
            TABLE[rows],
            LABELS[rows] if kind == "loss" else None,
            kind=kind,
            loss="squared_error" if kind == "loss" else None,
            max_evals=max_evals,
            silent=True,
        )
        lower, upper = (end[:4] for end in result.interval())
        hits.append((lower <= wanted) & (wanted <= upper))
    assert 0.91 <= np.mean(hits) <= (1.0 if kind == "mean_absolute" else 0.985)


def test_standard_errors_of_absolute_values_include_their_bias():
    """Normal errors: the bias is at most √3 of our standard errors, and as large for φ = 0.

    With 20,000 rows of a population, a mean has a standard deviation of at most 0.007 beside it.
    """
    exact = np.linspace(0, 4, 9) * np.ones((20_000, 1))
    estimates = exact + np.random.default_rng(0).normal(size=exact.shape)
    found = GlobalImportance.from_attributions(
        estimates[..., None],
        np.ones((*exact.shape, 1)),
        "mean_absolute",
        errors_cancel=True,
        is_population=True,
    )
    np.testing.assert_array_equal(found.values, np.abs(estimates).mean(axis=0))
    bias, bound = found.values - exact[0], np.sqrt(3) * found.standard_errors
    assert bias[0] == pytest.approx(np.sqrt(2 / np.pi), abs=0.02)
    assert bound[0] == pytest.approx(bias[0], abs=0.03)
    assert (bias <= bound + 0.03).all()
    assert bound[-1] < 0.05


def test_rows_of_a_population_leave_less_uncertainty_than_a_sample():
    method = explainer()
    sample = method.global_importance(TABLE[:60], max_evals=20)
    all_rows = method.global_importance(TABLE[:60], max_evals=20, population=True)
    half = method.global_importance(TABLE[:60], max_evals=20, n_rows=30, population=True)
    np.testing.assert_array_equal(sample.values, all_rows.values)
    assert (all_rows.standard_errors[:4] < 0.5 * sample.standard_errors[:4]).all()
    assert (half.standard_errors[:4] > all_rows.standard_errors[:4]).all()


def test_equal_rows_have_draws_of_their_own():
    """With the same draws, the error of the mean would be that of a single row."""
    row = np.repeat(TABLE[:1], 200, axis=0)
    exact = attributions(network, TABLE[:1], BACKGROUND)[0]
    found = explainer().global_importance(row, kind="mean", max_evals=10)
    assert (found.standard_errors[:4] > 0).all()
    assert (np.abs(found.values - exact) <= 4.5 * found.standard_errors + 1e-12).all()


def test_the_order_of_the_rows_does_not_matter():
    method = explainer()
    arguments = {"kind": "mean", "n_rows": 40, "max_evals": 12}
    found = method.global_importance(TABLE[:200], **arguments)
    turned = method.global_importance(TABLE[:200][::-1], **arguments)
    np.testing.assert_allclose(found.values, turned.values, rtol=1e-9)
    assert found.n_rows == 40 and found.n_rows_available == 200


# --- from an Explanation ---


def test_rows_that_share_their_draws_have_a_wider_bar():
    rows, results = TABLE[:300], []
    for independent in (False, True):
        method = explainer("simsemivalue", independent_rows=independent)
        explanation = method(rows, max_evals=14, error_bounds=True, silent=True)
        results.append(shap_ext.global_importance(explanation, kind="mean").standard_errors[:4])
    shared, own = results
    assert (shared > 2 * own).all()
    # A part of an explanation still knows how its errors depend on each other.
    part = shap_ext.global_importance(explanation[:150], kind="mean").standard_errors[:4]
    np.testing.assert_allclose(part, own * np.sqrt(2), rtol=0.3)


def test_an_explanation_without_errors_is_exact_only_if_the_user_says_so():
    values = shap.Explanation(
        np.array([[1.0, -2.0], [-3.0, 4.0], [2.0, 0.0]]),
        data=np.ones((3, 2)),
        feature_names=["a", "b"],
    )
    with pytest.raises(InvalidArgumentError, match="error_bounds=True.*exact=True"):
        shap_ext.global_importance(values)
    found = shap_ext.global_importance(values, exact=True)
    np.testing.assert_allclose(found.values, [2, 2])
    np.testing.assert_allclose(found.standard_errors, [1 / np.sqrt(3), 2 / np.sqrt(3)])
    assert set(found.to_frame().index) == {"a", "b"}
    assert found.interval()[0].tolist() == [0, 0]  # the quantile of two degrees of freedom is 4.3


ODDS = shap_ext.ValueFunction("log_probability", "probabilities")


# --- results and arguments ---


def test_tables_plots_and_several_outputs():
    frame = pd.DataFrame(TABLE[:50], columns=list("abcde"))
    model = lambda x: np.stack([network(x), 2 * network(x)], axis=1)  # noqa: E731
    method = explainer("enumeration", model, output_names=["one", "two"])
    found = method.global_importance(frame)
    assert found.values.shape == (5, 2) and found.output_names == ["one", "two"]
    np.testing.assert_allclose(found.values[:, 1], 2 * found.values[:, 0])
    table = found.to_frame(output=1)
    assert table["importance"].is_monotonic_decreasing and set(table.index) == set("abcde")
    with pytest.raises(InvalidArgumentError, match="one of the 2 outputs"):
        found.plot()
    axes = found.plot(output=0, max_display=3, confidence=0.999)
    assert axes.get_xlabel().endswith("with 99.9 % intervals")
    assert [label.get_text() for label in axes.get_yticklabels()] == list(
        found.to_frame(output=0).index[:3]
    )
    assert [bar.get_width() for bar in axes.containers[-1]] == pytest.approx(
        found.to_frame(output=0)["importance"][:3].tolist()
    )
    explanation = found.to_explanation(output=0)
    np.testing.assert_allclose(explanation.upper_bounds, found.interval()[1][:, 0])
    shap.plots.bar(explanation, show=False)


HALF, SQUARED = LABELS[:50], {"kind": "loss", "loss": "squared_error"}
SQUARE = {"explanation": shap.Explanation(np.ones((4, 3, 3)), data=np.ones((4, 3)))}


def importance(options, arguments):
    """Return that of an explainer with these options, or of an Explanation."""
    if options is None:
        return shap_ext.global_importance(exact=True, **arguments)
    return explainer(**options).global_importance(TABLE[:50], **arguments)


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({}, {"kind": "loss"}, "loss= is missing"),
        ({}, SQUARED, "y= is missing"),
        ({}, SQUARED | {"loss": "hinge", "y": HALF}, "'squared_error', 'cross_entropy'"),
        ({}, SQUARED | {"y": LABELS[:7]}, "each of the 50 rows"),
        ({}, SQUARED | {"loss": "cross_entropy", "y": HALF}, "index of a class"),
        ({}, SQUARED | {"loss": "cross_entropy", "y": np.ones(50, int)}, "returns probabilities"),
        ({}, SQUARED | {"loss": lambda f, y: 1.0, "y": HALF}, "one number for each"),
        ({}, {"y": HALF}, "y is used with kind='loss' only"),
        ({}, {"kind": "max"}, "'mean_absolute', 'mean', 'loss'"),
        ({}, {"n_rows": 1}, "at least 2 rows"),
        (None, SQUARE, "may be that of interactions"),
        (None, {"explanation": shap.Explanation(np.ones(3))}, "several rows"),
        (None, {"explanation": np.ones((3, 3))}, "explainer.global_importance"),
        (None, {"explanation": SQUARE["explanation"][:, :, 0], "kind": "loss"}, "needs the model"),
        ({"model": probability, "link": "logit"}, SQUARED | {"y": HALF}, "^link"),
        ({"model": probability, "value_function": ODDS}, SQUARED | {"y": HALF}, "^value_function"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(options, arguments, message):
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=message):
        importance(options, arguments)
