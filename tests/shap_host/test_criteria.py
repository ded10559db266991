"""Criteria of shap's explanations: models, maskers, frames, groups and outputs translated."""

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shap_ext import criteria
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import InvalidArgumentError
from tests.helpers import criteria_oracle
from tests.helpers.brute_force import masked_model_values
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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: criteria.complexity(np.ones(3)), r"explanation\[:1\]"),
        (lambda: criteria.monotonicity(VALUES, curved, BACKGROUND), "X is missing"),
        (lambda: criteria.sensitivity(lambda x: x, X, Neighbourhood(1.0)), "model= is missing"),
        (
            lambda: criteria.masked_log_odds(VALUES, probability, X, X, value_function="raw"),
            "'log_probability'",
        ),
        (lambda: criteria.faithfulness(VALUES, curved_columns, X, X), "1 outputs, but the model"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, words):
    with pytest.raises(InvalidArgumentError, match=words):
        call()
