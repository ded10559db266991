"""Criteria of shap's explanations: models, maskers, frames, groups and outputs translated."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import shap
from scipy.stats import norm

import shap_ext
from shap_ext import criteria
from shap_ext.maskers import Gaussian
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers import criteria_oracle
from tests.helpers.brute_force import masked_model_values
from tests.helpers.conditional_games import Quadratic, correlated_rows, normal_game
from tests.shap_host.games import curved, curved_columns, probability, rows

BACKGROUND, X = rows(3, 5, seed=1), rows(4, 5)
VALUES = rows(4, 5, seed=7)


def explanation(values=VALUES, data=X):
    return shap.Explanation(values, base_values=np.zeros(len(values)), data=data)


@pytest.mark.parametrize("as_frame", [False, True])
def test_criteria_of_games_are_those_of_the_definition(as_frame):
    made, background, model, given = explanation(), BACKGROUND, curved, None
    if as_frame:
        background = pd.DataFrame(BACKGROUND, columns=list("abcde"))
        given = pd.DataFrame(X, columns=list("abcde"))

        def model(x):
            assert isinstance(x, pd.DataFrame)
            return curved(x.to_numpy())

    arguments = (made, model, background, given)
    faithful = criteria.faithfulness(*arguments, subset_size=3)
    monotone = criteria.monotonicity(*arguments)
    inserted = criteria.insertion_curve(*arguments)
    deleted = criteria.deletion_curve(*arguments)
    for row in range(4):
        value = masked_model_values(curved, X[row], BACKGROUND)
        own = VALUES[row].tolist()
        expected = criteria_oracle.subset_faithfulness(own, value, 3)
        np.testing.assert_allclose(faithful[row], expected, atol=1e-10)
        np.testing.assert_allclose(monotone[row], criteria_oracle.monotonicity(own, value))
        np.testing.assert_allclose(inserted.values[row], criteria_oracle.insertion(own, value))
        np.testing.assert_allclose(
            deleted.area[row], criteria_oracle.trapezoids(criteria_oracle.deletion(own, value))
        )


def test_outputs_come_last_in_shap_and_in_the_answer():
    values = rows(4, 15, seed=3).reshape(4, 5, 3)
    found = criteria.faithfulness(explanation(values), curved_columns, BACKGROUND, subset_size=2)
    assert found.shape == (4, 3)
    for output in range(3):
        alone = criteria.faithfulness(
            explanation(values[..., output]),
            lambda x, o=output: curved_columns(x)[:, o],
            BACKGROUND,
            subset_size=2,
        )
        np.testing.assert_allclose(found[:, output], alone)
    assert criteria.complexity(explanation(values)).shape == (4, 3)
    np.testing.assert_allclose(
        criteria.complexity(values)[1, 2], criteria_oracle.entropy(values[1, :, 2].tolist())
    )


def test_groups_of_columns_are_players():
    groups = {"both": ["Feature 0", "Feature 3"]}
    made = shap_ext.EnumerationExplainer(curved, BACKGROUND, groups=groups)(X, silent=True)
    found = criteria.monotonicity(made, curved, BACKGROUND, X, groups=groups)
    assert found.shape == (4,)
    with pytest.raises(InvalidArgumentError, match=r"\(4, 5\) is needed"):
        criteria.monotonicity(made, curved, BACKGROUND, X)


def test_sensitivity_of_an_explainer():
    explainer = shap_ext.EnumerationExplainer(probability, BACKGROUND)
    frame = pd.DataFrame(X, columns=list("abcde"))
    around = Neighbourhood(0.3, n_draws=6)
    found = criteria.sensitivity(explainer, X, around, silent=True)
    assert found.maximum.shape == (4, 2)
    assert (found.maximum >= found.average).all()
    near, _ = around.around(X, 0)
    kept = around.keeps_prediction(
        probability(X), probability(near.reshape(-1, 5)).reshape(4, 6, 2)
    )
    own = explainer(X, silent=True).values[..., 0]
    for row in range(4):
        others = explainer(near[row][kept[row]], silent=True).values[..., 0]
        largest, mean = criteria_oracle.sensitivities(own[row], others)
        np.testing.assert_allclose(found.maximum[row, 0], largest, atol=1e-10)
        np.testing.assert_allclose(found.average[row, 0], mean, atol=1e-10)
    framed = shap_ext.EnumerationExplainer(
        lambda x: probability(x[list("abcde")].to_numpy()),
        pd.DataFrame(BACKGROUND, columns=list("abcde")),
    )
    np.testing.assert_allclose(
        criteria.sensitivity(framed, frame, around, silent=True).maximum, found.maximum, atol=1e-10
    )


def test_sensitivity_of_frames_of_other_types():
    frame = pd.DataFrame({"size": [0.5, 1.5], "count": [3, 4], "is_new": [True, False]})
    seen = []

    def explain(rows):
        seen.append(rows.dtypes.astype(str).tolist())
        return rows.to_numpy(float)

    only_size = Neighbourhood(0.1, keep="all", columns=[True, False, False])
    criteria.sensitivity(explain, frame, only_size, model=curved)
    assert all(types == ["float64", "int64", "bool"] for types in seen)
    with pytest.raises(InvalidArgumentError, match="column 'kind' holds"):
        criteria.sensitivity(explain, frame.assign(kind="a"), only_size, model=curved)


def test_errors_rankings_and_log_odds():
    exact = shap_ext.EnumerationExplainer(curved, BACKGROUND)(X, silent=True)
    np.testing.assert_allclose(
        criteria.absolute_error(VALUES, exact), abs(VALUES - exact.values).sum(1)
    )
    assert (criteria.ranking_accuracy(exact, exact) == 1).all()
    curve = criteria.masked_log_odds(VALUES, probability, BACKGROUND, X)
    assert curve.values.shape == (4, 6)
    assert (curve.values[:, 0] == 0).all()


# Errors of the values of coalitions: MSE_v, the energy score, and errors of fits


DATA, MODEL = correlated_rows(300, 4, seed=1), Quadratic(4, seed=1)
ROWS = DATA[:20]
INNER = [set(members) for size in (1, 2, 3) for members in combinations(range(4), size)]


def exact_errors(game_of_row):
    games = [game_of_row(row) for row in ROWS]
    outputs = MODEL(ROWS)
    return np.array(
        [
            np.mean([(output - game(members)) ** 2 for members in map(frozenset, INNER)])
            for output, game in zip(outputs, games, strict=True)
        ]
    )


def of_normal(row):
    return normal_game(row, DATA.mean(axis=0), np.cov(DATA.T), MODEL.expected)


def test_marginal_values_by_enumeration():
    found = criteria.mse_v(MODEL, DATA[:50], ROWS)
    exact = exact_errors(lambda row: masked_model_values(MODEL, row, DATA[:50]))
    np.testing.assert_allclose(found.of_rows[:, 0], exact, rtol=1e-10)
    np.testing.assert_allclose(found.mean, exact.mean(), rtol=1e-10)
    np.testing.assert_allclose(found.standard_error, exact.std(ddof=1) / np.sqrt(20), rtol=1e-10)


def test_the_noise_of_draws_is_not_counted():
    """With two draws for each value, their variance would add a half to the error."""
    exact = exact_errors(of_normal).mean()
    found = [
        criteria.mse_v(MODEL, Gaussian(DATA, draws=2, seed=seed), ROWS).mean[0]
        for seed in range(40)
    ]
    assert abs(np.mean(found) - exact) < 4 * np.std(found) / np.sqrt(40)
    assert np.std(found) / np.sqrt(40) < 0.03 * exact


def test_differences_of_rows_say_which_distribution_is_better():
    conditional = criteria.mse_v(MODEL, Gaussian(DATA, draws=64), DATA)
    marginal = criteria.mse_v(MODEL, DATA[:100], DATA)
    difference = marginal - conditional
    assert difference.mean[0] > 3 * difference.standard_error[0]
    np.testing.assert_allclose(difference.mean, marginal.mean - conditional.mean)


def test_a_sample_of_coalitions():
    data = correlated_rows(300, 25, seed=2)
    model = Quadratic(25, seed=2)
    first, second = (
        criteria.mse_v(model, data[:10], data[:5], n_coalitions=50, seed=seed) for seed in (0, 1)
    )
    assert not np.array_equal(first.of_rows, second.of_rows)
    few = criteria.mse_v(MODEL, DATA[:50], ROWS, n_coalitions=5)
    assert not np.allclose(few.of_rows, criteria.mse_v(MODEL, DATA[:50], ROWS).of_rows)


def sensitivity_of(rows):
    return criteria.sensitivity(np.sin, rows, Neighbourhood(0.1, keep="all"), model=np.sin)


FIVE, TEXTS = DATA[:5], pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: criteria.complexity(np.ones(3)), r"explanation\[:1\]"),
        (lambda: criteria.complexity(VALUES[:0]), "shape .*; rows and features are needed"),
        (lambda: sensitivity_of(X[:0]), "shape .*; rows and features are needed"),
        (lambda: sensitivity_of(X[0]), "shape .*; rows and features are needed"),
        (lambda: criteria.monotonicity(VALUES, curved, BACKGROUND), "X is missing"),
        (lambda: criteria.sensitivity(lambda x: x, X, Neighbourhood(1.0)), "model= is missing"),
        (
            lambda: criteria.masked_log_odds(VALUES, probability, X, X, value_function="raw"),
            "'log_probability'",
        ),
        (lambda: criteria.mse_v(MODEL, FIVE, ROWS[:1]), "at least two rows and two features"),
        (
            lambda: criteria.mse_v(MODEL, FIVE, ROWS) - criteria.mse_v(MODEL, FIVE, ROWS[:3]),
            "those of the same rows",
        ),
        (lambda: criteria.energy_score(FIVE, ROWS[:1]), "at least two rows and two features"),
        (lambda: criteria.energy_score(FIVE, ROWS[:, :3]), "X has 3 columns"),
        (lambda: criteria.energy_score(TEXTS, TEXTS), "must hold numbers"),
        (lambda: criteria.energy_score(lambda mask, x: x, ROWS), "masker must be a distribution"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=words):
        call()


def test_energy_scores_of_background_rows_by_enumeration():
    background, spread = DATA[:30], ROWS.std(axis=0)
    scores = []
    for row in ROWS:
        of_row = []
        for members in INNER:
            out = [i for i in range(4) if i not in members]
            draws, truth = background[:, out] / spread[out], row[out] / spread[out]
            to_truth = np.mean([np.linalg.norm(draw - truth) for draw in draws])
            apart = np.mean([np.linalg.norm(a - b) for a in draws for b in draws])
            of_row.append(to_truth - apart / 2)
        scores.append(np.mean(of_row))
    found = criteria.energy_score(background, ROWS)
    np.testing.assert_allclose(found.of_rows[:, 0], scores, rtol=1e-10)


def test_energy_scores_of_normal_draws_are_those_of_the_normal_distribution():
    """With two features one is absent: the continuous ranked probability score."""
    data, rows = DATA[:, :2], ROWS[:, :2]
    mean, covariance, spread = data.mean(axis=0), np.cov(data.T), rows.std(axis=0)
    exact = np.zeros(len(rows))
    for present, absent in ((0, 1), (1, 0)):
        slope = covariance[0, 1] / covariance[present, present]
        middle = mean[absent] + slope * (rows[:, present] - mean[present])
        sigma = np.sqrt(covariance[absent, absent] - slope * covariance[0, 1])
        z = (rows[:, absent] - middle) / sigma
        score = z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)
        exact += sigma / spread[absent] * score / 2
    found = [
        criteria.energy_score(Gaussian(data, draws=8, seed=seed), rows).of_rows[:, 0]
        for seed in range(60)
    ]
    errors = np.std(found, axis=0) / np.sqrt(60)
    assert (np.abs(np.mean(found, axis=0) - exact) < 4.5 * errors).all()
    assert errors.max() < 0.05
