"""`algorithm="best"` for model objects: the question and the values of shap's own default."""

import pickle

import lightgbm
import numpy as np
import pandas as pd
import pytest
import shap
from sklearn.ensemble import (
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression

import shap_ext

ROWS = np.random.default_rng(0).normal(size=(150, 7))
BACKGROUND = ROWS[:40]
LABELS = (ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2] > 0).astype(int)
CLASSES = LABELS + (ROWS[:, 3] > 1)


def best(model, masker=BACKGROUND, **options):
    return shap.Explainer(model, masker, algorithm="best", seed=0, **options)


def lightgbm_classifier():
    return lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)


@pytest.mark.parametrize(
    ("model", "labels", "name", "as_frame"),
    [
        (lightgbm_classifier(), LABELS, "TreeExplainer", True),
        (lightgbm_classifier(), CLASSES, "TreeExplainer", False),
        (RandomForestClassifier(10, random_state=0), CLASSES, "TreeExplainer", True),
        (RandomForestRegressor(10, random_state=0), LABELS, "TreeExplainer", False),
        (GradientBoostingClassifier(random_state=0), LABELS, "TreeExplainer", False),
        (IsolationForest(n_estimators=10, random_state=0), LABELS, "TreeExplainer", True),
        (LinearRegression(), LABELS, "LinearExplainer", True),
        (LogisticRegression(), CLASSES, "LinearExplainer", False),
    ],
)
def test_a_model_object_has_the_values_of_shaps_default(model, labels, name, as_frame, tmp_path):
    rows = pd.DataFrame(ROWS, columns=list("abcdefg")) if as_frame else ROWS
    model.fit(ROWS, labels)
    explainer = best(model, rows[:40])
    assert isinstance(explainer, shap_ext.BestExplainer)
    explained, wanted = explainer(rows[:6]), shap.Explainer(model, rows[:40])(rows[:6])
    assert explained.values.shape == wanted.values.shape
    np.testing.assert_allclose(explained.values, wanted.values, atol=1e-12)
    base = np.asarray(explained.base_values).reshape(6, -1)
    np.testing.assert_allclose(base, wanted.base_values.reshape(6, -1), atol=1e-12)
    estimate = explainer.last_estimate
    assert estimate.method == name and estimate.choice.startswith(name)
    assert repr(estimate).startswith(f"Estimate({name}: 6 rows")
    assert (estimate.evaluations == 0).all() and estimate.enumerated.all()
    assert explained.call.choice == estimate.choice
    # A row alone, with intervals, from a copy, in a stream: the same.
    bounded = pickle.loads(pickle.dumps(explainer))(rows[:6], error_bounds=True)
    np.testing.assert_array_equal(bounded.values, explained.values)
    assert (bounded.error_std == 0).all()
    explainer.explain_stream([rows[:4], rows[4:6]], out=tmp_path / "out.npz")
    streamed = shap_ext.StreamedExplanations.open(tmp_path / "out.npz")
    np.testing.assert_array_equal(streamed.values, explained.values)


def test_interactions_and_groups_are_of_the_same_output():
    explainer = best(lightgbm_classifier().fit(ROWS, LABELS))
    values = explainer(ROWS[:3]).values
    interactions = explainer(ROWS[:3], interactions=True).values
    np.testing.assert_allclose(interactions.sum(axis=2), values, atol=1e-6)
    groups = {"pair": [0, 1], **{str(index): [index] for index in range(2, 7)}}
    of_groups = best(explainer.model, groups=groups)
    np.testing.assert_allclose(
        of_groups(ROWS[:3]).values.sum(axis=1), values.sum(axis=1), atol=1e-6
    )
    importance = explainer.global_importance(ROWS[:30], kind="mean", silent=True)
    wanted = explainer(ROWS[:30]).values.mean(axis=0)
    np.testing.assert_allclose(importance.values, wanted, atol=1e-6)


def test_a_loss_is_that_of_probabilities():
    model = lightgbm_classifier().fit(ROWS, LABELS)
    options = {"kind": "loss", "loss": "cross_entropy", "silent": True}
    by_object = best(model).global_importance(ROWS[:30], LABELS[:30], **options)
    by_function = best(model.predict_proba).global_importance(ROWS[:30], LABELS[:30], **options)
    np.testing.assert_array_equal(by_object.values, by_function.values)


@pytest.mark.parametrize(
    ("model", "algorithm"),
    [(lightgbm_classifier(), "best"), (IsolationForest(n_estimators=5, random_state=0), "oddgp")],
)
def test_trees_are_read_once_for_all_calls(model, algorithm, monkeypatch):
    built = []
    build = shap.TreeExplainer.__init__

    def counted(self, *arguments, **options):
        built.append(self)
        build(self, *arguments, **options)

    monkeypatch.setattr(shap.TreeExplainer, "__init__", counted)
    explainer = shap.Explainer(model.fit(ROWS, LABELS), BACKGROUND, algorithm=algorithm, seed=0)
    for row in range(3):
        explainer(ROWS[row : row + 1])
    assert len(built) == 1
