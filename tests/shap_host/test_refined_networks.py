"""Errors that networks state, and attributions of networks refined by evaluations, in shap."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtWarning

pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("safetensors")

N = 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, N))
INTO = RNG.normal(size=(N, N)) / 2
REFERENCE = np.zeros((1, N))
ROWS = RNG.normal(size=(60, N))
FEW: dict[str, Any] = {"epochs": 15, "seed": 0}


def curved(x):
    return np.tanh(np.asarray(x, dtype=float) @ INTO).sum(axis=1)


def exact(rows):
    return shap.Explainer(curved, REFERENCE, algorithm="enumeration")(rows).values


def sum_of_errors(values, rows):
    return np.abs(values - exact(rows)).sum(axis=1).mean()


@pytest.fixture(scope="module")
def explainer():
    return shap_ext.SimShapExplainer(curved, REFERENCE, training_data=X, **FEW).fit()


@pytest.fixture
def quiet_explainer(explainer, monkeypatch):
    """Return the explainer, with which rows outside the training data do not warn."""
    monkeypatch.setattr("shapley_adapters.amortized.amortized.warn_of_rows", lambda *_: None)
    return explainer


def share_inside(explained, rows):
    truth = exact(rows)
    return ((explained.lower_bounds <= truth) & (truth <= explained.upper_bounds)).mean()


def test_intervals_of_a_network_hold_inside(explainer):
    explained = explainer(ROWS, error_bounds=True)
    # 60 rows: the standard error of the share is about 1.5 % if errors of a row go together
    assert 0.89 <= share_inside(explained, ROWS) <= 0.995
    assert explainer.last_estimate.evaluations.mean() < 2.5


@pytest.mark.parametrize(
    "rows",
    [2 * ROWS, ROWS + 3 * np.eye(N)[:3].sum(axis=0), ROWS + 2 * RNG.normal(size=ROWS.shape)],
    ids=["doubled", "three columns moved", "noise"],
)
def test_intervals_widen_outside(quiet_explainer, rows):
    inside = quiet_explainer(ROWS, error_bounds=True)
    outside = quiet_explainer(rows, error_bounds=True)
    assert outside.error_std.mean() > 1.5 * inside.error_std.mean()
    assert share_inside(outside, rows) >= 0.8


def test_stated_errors_follow_the_rows_errors(quiet_explainer):
    rows = np.concatenate([ROWS, 2 * ROWS])
    explained = quiet_explainer(rows, error_bounds=True)
    actual = np.sqrt(((explained.values - exact(rows)) ** 2).sum(axis=1))
    stated = np.sqrt((explained.error_std**2).sum(axis=1))
    assert pd.Series(actual).corr(pd.Series(stated), method="spearman") > 0.4


@pytest.mark.parametrize("budget", [4, 8, 16])
def test_refined_is_better_than_either_alone(explainer, budget):
    alone = sum_of_errors(explainer(ROWS).values, ROWS)
    refined = sum_of_errors(explainer(ROWS, max_evals=budget).values, ROWS)
    assert explainer.last_estimate.evaluations.max() <= budget
    assert refined <= 1.02 * alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShapleyExtWarning)  # few evaluations per feature
        of_rows = shap_ext.OddGPExplainer(curved, REFERENCE, seed=0)(ROWS, max_evals=budget)
    assert refined < 0.9 * sum_of_errors(of_rows.values, ROWS)


def test_refined_by_all_coalitions_is_exact(explainer):
    refined = explainer(ROWS[:5], max_evals=2**N, error_bounds=True)
    np.testing.assert_allclose(refined.values, exact(ROWS[:5]), atol=1e-10)
    np.testing.assert_array_equal(refined.error_std, 0)
    assert explainer.last_estimate.enumerated.all()


@pytest.mark.parametrize("budget", [6, 20, 40])
def test_refined_sums_to_the_output_and_its_intervals_hold(explainer, budget):
    refined = explainer(ROWS, max_evals=budget, error_bounds=True)
    np.testing.assert_allclose(
        refined.values.sum(axis=1) + refined.base_values, curved(ROWS), atol=1e-10
    )
    assert share_inside(refined, ROWS) >= 0.85


def test_bad_predictions_do_not_spoil_the_refinement(quiet_explainer):
    rows = 6 * ROWS[:30]
    refined = sum_of_errors(quiet_explainer(rows, max_evals=64).values, rows)
    of_rows = shap_ext.OddGPExplainer(curved, REFERENCE, seed=0)(rows, max_evals=64)
    assert refined < 1.15 * sum_of_errors(of_rows.values, rows)


def test_tolerance_refines_only_the_rows_that_need_it(explainer):
    stated = explainer(ROWS, error_bounds=True).error_std.max(axis=1)
    tolerance = float(np.median(stated))
    explained = explainer(ROWS, tolerance=tolerance, error_bounds=True)
    evaluations = explainer.last_estimate.evaluations
    assert (evaluations[stated <= tolerance] <= 2).all()
    assert (evaluations[stated > tolerance] > 2).all()
    assert explained.error_std.max() <= tolerance
    np.testing.assert_array_equal(
        explained.values[stated <= tolerance], explainer(ROWS).values[stated <= tolerance]
    )


def test_rows_do_not_depend_on_each_other(explainer):
    call: dict[str, Any] = {"max_evals": 12, "error_bounds": True}
    together = explainer(ROWS[:6], **call)
    apart = [explainer(ROWS[index : index + 1], **call) for index in range(6)]
    # The network is in single precision, whose rounding depends on the size of a batch.
    close: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(together.values, np.concatenate([e.values for e in apart]), **close)
    np.testing.assert_allclose(
        together.error_std, np.concatenate([e.error_std for e in apart]), **close
    )


def test_errors_are_saved(explainer, tmp_path):
    explainer.save_trained(tmp_path / "net")
    loaded = shap_ext.SimShapExplainer(curved, REFERENCE, trained=tmp_path / "net")
    one, other = explainer(ROWS, error_bounds=True), loaded(ROWS, error_bounds=True)
    np.testing.assert_array_equal(one.error_std, other.error_std)
    np.testing.assert_array_equal(one.lower_bounds, other.lower_bounds)


def test_without_evaluations_nothing_is_refined():
    made = shap_ext.SimShapExplainer(
        curved, REFERENCE, training_data=X[:60], efficient=False, epochs=2, seed=0
    )
    assert np.isfinite(made(ROWS[:3], error_bounds=True).error_std).all()
    with pytest.raises(InvalidArgumentError, match=r"max_evals needs efficient=True"):
        made(ROWS[:3], max_evals=20)
    with pytest.raises(InvalidArgumentError, match=r"tolerance needs efficient=True"):
        made(ROWS[:3], tolerance=0.1)


def test_training_ends_with_a_line_about_its_cost(capsys, monkeypatch):
    monkeypatch.setattr("shap_ext.explainers.amortized_explainer.BAR_DELAY", 0.0)
    made = shap_ext.SimShapExplainer(curved, REFERENCE, training_data=X[:60], epochs=2, seed=0)
    made.fit()
    line = next(line for line in capsys.readouterr().err.splitlines() if "for validation" in line)
    trained = made.trained
    assert f"SimSHAP: {trained.evaluations:,} evaluations for training" in line
    assert "held-out rows; efficiency gap" in line
    made.fit(silent=True)
    assert "for validation" not in capsys.readouterr().err


def test_zero_evaluations_are_the_pass_alone(explainer):
    np.testing.assert_array_equal(explainer(ROWS, max_evals=0).values, explainer(ROWS).values)


def test_models_that_fail_on_artificial_rows_train_with_a_warning():
    def fragile(x):
        if np.abs(x).max() > np.abs(X[:100]).max() + 1e-9:
            raise ValueError("out of range")
        return curved(x)

    made = shap_ext.SimShapExplainer(fragile, REFERENCE, training_data=X[:100], epochs=2, seed=0)
    with pytest.warns(ShapleyExtWarning, match=r"artificial rows.*out of range"):
        made.fit()
    assert np.isfinite(made(X[:3], error_bounds=True).error_std).all()


def test_artificial_rows_are_in_the_domain_of_the_columns():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "positive": rng.gamma(1.0, size=200) + 0.01,
            "share": rng.random(200),
            "count": rng.integers(0, 5, 200),
            "group": pd.Categorical(rng.choice(["a", "b"], 200)),
            "number": rng.normal(size=200),
        }
    )
    seen = []

    def model(table):
        seen.append(table)
        return (
            np.log(table["positive"].to_numpy(dtype=float))
            + table["share"].to_numpy(dtype=float)
            + (table["group"] == "a").to_numpy()
            + table["number"].to_numpy(dtype=float)
        )

    def numbers(table):
        coded = table.assign(group=(table["group"] == "a").astype(float))
        return coded.to_numpy(dtype=np.float32)

    made = shap_ext.SimShapExplainer(
        model, frame[:1], training_data=frame, features=numbers, epochs=2, seed=0
    ).fit()
    every = pd.concat(seen)
    assert every["positive"].min() >= frame["positive"].min()
    assert every["positive"].max() > 1.2 * frame["positive"].max()
    assert every["share"].between(0, 1).all()
    assert set(every["count"]) <= set(frame["count"])
    assert set(every["group"]) <= {"a", "b"}
    assert every["number"].abs().max() > 1.2 * frame["number"].abs().max()
    assert np.isfinite(made(frame[:3], error_bounds=True).error_std).all()
