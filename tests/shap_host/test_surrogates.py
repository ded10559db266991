"""Surrogates through shap: any model, any explainer, files."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap
from sklearn.ensemble import RandomForestClassifier

import shap_ext
from shap_ext import Surrogate
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.brute_force import conditional_values, shapley_values

pytest.importorskip("torch")
pytest.importorskip("safetensors")

# The second column is a copy of the first.
KINDS = np.array([[a, a, b, c] for a in range(3) for b in range(2) for c in range(2)], dtype=float)
X = np.tile(KINDS, (40, 1))
FEW: dict[str, Any] = {"epochs": 30, "seed": 0, "rows_per_step": 32}
FOREST = RandomForestClassifier(20, random_state=0, n_jobs=1).fit(X, X[:, 0] * X[:, 2] > 0)


def model(x):
    x = np.asarray(x)
    return x[:, 0] * (1 + x[:, 2]) + x[:, 2] * x[:, 3]


@pytest.fixture(scope="module")
def surrogate():
    return Surrogate(model, **FEW).fit(X)


def exact(predict, rows):
    return np.array([shapley_values(4, conditional_values(predict, row, KINDS)) for row in rows])


def test_trees_and_probabilities():
    forest = Surrogate(FOREST, **FEW).fit(X)
    assert forest.validation.loss == "kl"
    assert forest.validation.full_error < 0.05 * forest.validation.constant_error
    assert forest.evaluations == len(X)
    explainer = shap.Explainer(forest, forest.reference, algorithm="enumeration")
    found = explainer(KINDS)
    assert found.shape == (12, 4, 2)
    np.testing.assert_allclose(found.values, exact(FOREST.predict_proba, KINDS), atol=0.15)
    log = shap.Explainer(
        forest, forest.reference, algorithm="enumeration", value_function="log_probability"
    )(KINDS)
    told = forest(KINDS).max(axis=1)
    np.testing.assert_allclose(log.values.sum(axis=1) + log.base_values, np.log(told), atol=1e-6)


def test_one_is_made_where_it_is_asked_for(tmp_path):
    explainer = shap.Explainer(
        model, X[:1], algorithm="simshap", training_data=X, surrogate=True, epochs=3, seed=0
    )
    assert not explainer.surrogate.is_fitted
    values = explainer(KINDS).values
    assert explainer.surrogate.evaluations == len(X)
    assert (values[:, 1] != 0).any()  # no feature is null because it equals the masker's
    explainer.save_trained(tmp_path / "network")
    explainer.surrogate.save(tmp_path / "surrogate")
    options = {"algorithm": "simshap", "trained": tmp_path / "network"}
    loaded = Surrogate.load(tmp_path / "surrogate", model=model)
    again = shap.Explainer(model, X[:1], surrogate=loaded, **options)
    np.testing.assert_array_equal(again(KINDS).values, values)
    with pytest.raises(InvalidArgumentError, match="surrogate=Surrogate.load"):
        shap.Explainer(model, X[:1], surrogate=True, **options)
    with pytest.raises(InvalidArgumentError, match="another model"):
        shap.Explainer(model, X[:1], **options)


def test_explainers_are_saved_with_their_surrogates(tmp_path):
    """Before fitting and after."""
    options: dict[str, Any] = {"training_data": X, "surrogate": True, "epochs": 2, "seed": 0}
    explainer = shap_ext.SimShapExplainer(FOREST, X[:1], **options)
    found = []
    for name in ("before", "after"):
        with open(tmp_path / name, "wb") as file:
            explainer.save(file)
        with open(tmp_path / name, "rb") as file:
            found.append(shap_ext.SimShapExplainer.load(file)(KINDS).values)
        explainer(KINDS)
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[0], explainer(KINDS).values)
    with pytest.raises(InvalidArgumentError, match="without its model"):
        pickle.loads(pickle.dumps(Surrogate(model))).fit(X)


def test_files(surrogate, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    made = Surrogate(lambda rows: model(rows[list("abcd")]), **FEW).fit(frame)
    made.save(tmp_path / "a")
    masked = np.where(np.random.default_rng(0).random(X.shape) < 0.5, X, np.nan)
    loaded = Surrogate.load(tmp_path / "a", model=made.model)
    np.testing.assert_array_equal(loaded(masked), made(masked))
    np.testing.assert_array_equal(loaded(masked), surrogate(masked))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(made))(masked), made(masked))
    with pytest.raises(InvalidArgumentError, match="surrogate was trained on another model"):
        Surrogate.load(tmp_path / "a", model=lambda rows: 2 * model(rows[list("abcd")]))


def test_images_have_their_channels_last():
    images = np.random.default_rng(0).normal(size=(60, 8, 8, 3)).astype(np.float32)
    made = Surrogate(
        lambda x: x.mean(axis=(1, 2)),
        network="unet",
        network_options={"depth": 1, "width": 4},
        epochs=2,
        seed=0,
    ).fit(images, {"left": np.flatnonzero(np.tile(np.arange(24) < 12, 8)).tolist()})
    assert made.reference.shape == (1, 8, 8, 3)
    assert made(images).shape == (60, 3)
    half = images.copy()
    half[:, :, 4:] = np.nan
    assert np.isfinite(made(half)).all()
    assert (made(half) != made(images)).all()


def test_wrong_calls(surrogate):
    with pytest.raises(InvalidArgumentError, match="NaN"):
        Surrogate(model, **FEW).fit(np.where(X == 2, np.nan, X))
    with pytest.raises(InvalidArgumentTypeError, match="needs numbers"):
        Surrogate(len, **FEW).fit(np.array([["a", "b"]] * 5))
    with pytest.raises(InvalidArgumentError, match="Call fit"):
        Surrogate(model)(X)
    with pytest.raises(InvalidArgumentError, match=r"\(4,\).*\(3,\)"):
        surrogate(X[:, :3])
    with pytest.raises(InvalidArgumentTypeError, match="surrogate must be True"):
        shap_ext.SimShapExplainer(model, X[:1], surrogate="yes")


def test_outputs_in_a_folder_are_not_paid_for_again(tmp_path):
    n_evaluated = []

    def predict(x, sign=1.0):
        n_evaluated.append(len(x))
        return sign * np.tanh(x).sum(axis=1)

    rows = np.random.default_rng(0).normal(size=(40, 3))
    first, again = (
        shap_ext.Surrogate(predict, epochs=1, seed=0, folder=tmp_path).fit(rows, silent=True)
        for _ in range(2)
    )
    assert sum(n_evaluated) <= 40 + 4
    np.testing.assert_array_equal(first(rows), again(rows))
    other = shap_ext.Surrogate(lambda x: predict(x, -1.0), epochs=1, seed=0, folder=tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"folder=.*another model.*another folder"):
        other.fit(rows, silent=True)
