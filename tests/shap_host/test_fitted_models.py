"""Fitted estimators and Boosters: which of their functions is explained, and which are refused."""

import functools
import sys
from types import ModuleType
from typing import Any

import lightgbm
import numpy as np
import pytest
import shap
import sklearn.cluster
import sklearn.ensemble
import sklearn.linear_model
import sklearn.mixture
import sklearn.model_selection
import sklearn.multioutput
import sklearn.neighbors
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.svm

import shap_ext  # noqa: F401 # registers the algorithms
from shapley_adapters.errors import InvalidArgumentTypeError, ShapleyExtWarning
from tests.shap_host.games import ROUNDING, curved, oracle, rows

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

TRAIN = rows(120, 4, seed=2)
LABELS = np.digitize(curved(TRAIN), [-0.5, 0.5])
WORDS = np.array(["low", "middle", "high"])[LABELS]
X, BACKGROUND = rows(3, 4), rows(4, 4, seed=1)


def explain(model, background=BACKGROUND, explained=X, name="oddgp", **options):
    return shap.Explainer(model, background, algorithm=name, seed=0, **options)(explained)


def in_pipeline(model):
    return sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), model)


def searched(model):
    return sklearn.model_selection.GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2)


class Foreign:
    """An estimator that is not scikit-learn's, fitted on classes."""

    classes_ = np.arange(3)

    def predict(self, x):
        return np.digitize(curved(x), [-0.5, 0.5])


class ForeignWithScores(Foreign):
    def decision_function(self, x):
        return curved(x)


# Scores in place of class numbers

WITHOUT_PROBABILITIES = {
    "SVC": sklearn.svm.SVC(),
    "LinearSVC": sklearn.svm.LinearSVC(dual="auto"),
    "RidgeClassifier": sklearn.linear_model.RidgeClassifier(),
    "SGDClassifier": sklearn.linear_model.SGDClassifier(random_state=0),
    "Perceptron": sklearn.linear_model.Perceptron(),
    "pipeline": in_pipeline(sklearn.svm.SVC()),
    "search": searched(sklearn.linear_model.RidgeClassifier()),
    "pipeline of a search": in_pipeline(searched(sklearn.linear_model.RidgeClassifier())),
}


@pytest.mark.parametrize("labels", [LABELS, WORDS, LABELS > 0], ids=["int", "str", "bool"])
@pytest.mark.parametrize("kind", WITHOUT_PROBABILITIES)
def test_classifiers_without_probabilities_are_explained_by_their_scores(kind, labels):
    model = sklearn.base.clone(WITHOUT_PROBABILITIES[kind]).fit(TRAIN, labels)
    wanted = oracle(model.decision_function, X, BACKGROUND)
    np.testing.assert_allclose(explain(model).values, wanted, **ROUNDING)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (sklearn.neighbors.LocalOutlierFactor(novelty=True).fit(TRAIN), "decision_function"),
        (sklearn.mixture.GaussianMixture(3, random_state=0).fit(TRAIN), "predict_proba"),
        (ForeignWithScores(), "decision_function"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_detectors_mixtures_and_foreign_classifiers(model, method):
    wanted = oracle(getattr(model, method), X, BACKGROUND)
    np.testing.assert_allclose(explain(model).values, wanted, **ROUNDING)


def test_members_of_aggregates_take_estimators_as_they_are():
    # shap's own explainers of functions call the model, which estimators do not let them.
    model = sklearn.svm.SVC().fit(TRAIN, LABELS)
    members = ["exact", "oddgp"]
    sv = explain(model, name="centroid", explainers=members)
    wanted = oracle(model.decision_function, X, BACKGROUND)
    np.testing.assert_allclose(sv.values, wanted, rtol=0, atol=1e-9)


# Class numbers


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (sklearn.cluster.KMeans(3, n_init=1, random_state=0), r"KMeans.*pass model\.transform"),
        (sklearn.cluster.MeanShift(bandwidth=1.0), r"MeanShift .* decision_function\. Pass a func"),
        (sklearn.ensemble.VotingClassifier([("a", sklearn.svm.SVC())]), "Voting.*voting='soft'"),
        (in_pipeline(sklearn.cluster.KMeans(3, n_init=1, random_state=0)), "KMeans"),
        (sklearn.multioutput.MultiOutputClassifier(sklearn.svm.LinearSVC()), "MultiOutputClassif"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_only_predicts_class_numbers_is_refused(model, words):
    labels = np.stack([LABELS, LABELS], axis=1) if "MultiOutput" in words else LABELS
    model.fit(TRAIN, labels)
    for name in ("oddgp", "shear", "centroid"):
        options = {"explainers": ["oddgp", "shear"]} if name == "centroid" else {}
        with pytest.raises(InvalidArgumentTypeError, match=words) as error:
            explain(model, name=name, **options)
        assert "model.predict(x) == label" in str(error.value)


def test_foreign_classifiers_without_scores_are_refused():
    with pytest.raises(InvalidArgumentTypeError, match="Foreign predicts numbers or labels"):
        explain(Foreign())


@pytest.mark.parametrize(
    "model",
    [
        sklearn.svm.SVC(),
        sklearn.ensemble.RandomForestClassifier(3, random_state=0),
        in_pipeline(sklearn.svm.SVC()),
        searched(sklearn.linear_model.RidgeClassifier()),
        sklearn.cluster.KMeans(3, n_init=1, random_state=0),
        lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_method_predict_of_classifiers_warns(model):
    model.fit(TRAIN, LABELS)
    for function in (model.predict, functools.partial(model.predict)):
        with pytest.warns(ShapleyExtWarning, match=r"\.predict, which returns numbers or labels"):
            shap.Explainer(function, BACKGROUND, algorithm="oddgp", seed=0)


def test_the_method_predict_of_regressors_does_not_warn():
    model = in_pipeline(sklearn.linear_model.LinearRegression()).fit(TRAIN, curved(TRAIN))
    explain(model.predict)


# Boosters


def test_boosters_of_lightgbm_are_explained_by_their_margins():
    data = lightgbm.Dataset(TRAIN, LABELS > 0)
    booster = lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1}, data, 5)
    wanted = oracle(functools.partial(booster.predict, raw_score=True), X, BACKGROUND)
    np.testing.assert_allclose(explain(booster).values, wanted, **ROUNDING)


def test_boosters_of_catboost_are_explained_by_their_margins():
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    options = {"iterations": 5, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    classifier = catboost.CatBoostClassifier(**options).fit(TRAIN, LABELS)
    margins = functools.partial(classifier.predict, prediction_type="RawFormulaVal")
    wanted = oracle(margins, X, BACKGROUND)
    np.testing.assert_allclose(explain(classifier).values, wanted, **ROUNDING)
    for loss, labels in (("RMSE", curved(TRAIN)), ("Logloss", LABELS > 0), ("MultiClass", LABELS)):
        booster = catboost.CatBoost({"loss_function": loss} | options).fit(TRAIN, labels)
        wanted = oracle(booster.predict, X, BACKGROUND)
        np.testing.assert_allclose(explain(booster).values, wanted, **ROUNDING)


def test_boosters_get_the_matrix_of_their_package(monkeypatch):
    class DMatrix:
        def __init__(self, data, feature_names, feature_types, enable_categorical):
            assert (feature_names, feature_types, enable_categorical) == (list("abcd"), None, True)
            self.data = np.asarray(data)

    class Booster:
        feature_names, feature_types = list("abcd"), None

        def predict(self, matrix, output_margin):
            assert isinstance(matrix, DMatrix) and output_margin
            return curved(matrix.data)

    package: Any = ModuleType("xgboost")
    package.DMatrix, package.Booster = DMatrix, Booster
    monkeypatch.setitem(sys.modules, "xgboost", package)
    wanted = oracle(curved, X, BACKGROUND)
    np.testing.assert_allclose(explain(Booster()).values, wanted, **ROUNDING)
