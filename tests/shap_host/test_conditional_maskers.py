"""Absent features drawn given the present ones: values, error bars, forms of input, bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shap_ext.maskers import Gaussian
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtWarning,
)
from tests.helpers.brute_force import shapley_values
from tests.helpers.conditional_games import (
    Quadratic,
    correlated_rows,
    normal_game,
    normal_shapley_values,
)

N_FEATURES = 6
DATA = correlated_rows(500, N_FEATURES, seed=0)
ROWS = DATA[:3]
MODEL = Quadratic(N_FEATURES, seed=0)


def explained(masker, algorithm="enumeration", model=MODEL, rows=ROWS, seed=0, **budget):
    explainer = shap.Explainer(model, masker, algorithm=algorithm, seed=seed)
    return explainer(rows, silent=True, **budget), explainer.last_estimate


def exact_values(model, data=DATA, rows=ROWS):
    return normal_shapley_values(rows, data.mean(axis=0), np.cov(data.T), model.expected)


def test_values_of_a_normal_distribution():
    """The error of 2,048 points is a hundredth of that of the values."""
    exact = exact_values(MODEL)
    found, estimate = explained(Gaussian(DATA, draws=2048))
    assert np.abs(found.values - exact).max() < 5 * estimate.standard_errors.max() + 1e-12
    assert estimate.standard_errors.max() < 0.01 * np.abs(exact).mean()
    assert np.ptp(found.base_values) == 0
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, MODEL(ROWS), rtol=1e-10)


def test_shifted_points_err_less_than_independent_ones():
    """At 64 draws of a smooth model: a fifth of the root mean square of the error, or less."""
    exact, errors = exact_values(MODEL), []
    for seed in range(5):
        _, estimate = explained(Gaussian(DATA, draws=64, seed=seed), seed=seed, max_evals=90)
        errors.append(estimate.values[..., 0] - exact)
    spread = np.std(MODEL(DATA)) / np.sqrt(64)
    assert np.sqrt(np.mean(np.square(errors))) < spread / 5


@pytest.mark.parametrize(
    ("algorithm", "budget"),
    [("enumeration", "auto"), ("oddgp", 50), ("leastsquares", 50), ("randomorder", 50)],
)
def test_intervals_hold_the_noise_of_draws(algorithm, budget):
    """30 rows of games of their own: the share inside has a standard error of at most .03."""
    inside = []
    for seed in range(15):
        data, model = correlated_rows(200, N_FEATURES, seed), Quadratic(N_FEATURES, seed)
        _, estimate = explained(
            Gaussian(data, draws=8, seed=seed), algorithm, model, data[:2], seed, max_evals=budget
        )
        low, high = estimate.interval()
        exact = exact_values(model, data, data[:2])
        inside.append((low[..., 0] <= exact) & (exact <= high[..., 0]))
        assert estimate.value_errors.all()
    assert 0.95 - 3 * 0.03 < np.mean(inside) < 0.999


def test_values_do_not_depend_on_batches_order_and_copies():
    masker = Gaussian(DATA, draws=8)
    explainer = shap.Explainer(MODEL, masker, algorithm="leastsquares", seed=0)
    found = explainer(ROWS, max_evals=40, silent=True).values
    for other in (
        explainer(ROWS, max_evals=40, silent=True, batch_size=3),
        explainer(ROWS[::-1], max_evals=40, silent=True)[::-1],
        explainer(ROWS[:1], max_evals=40, silent=True),
        explained(pickle.loads(pickle.dumps(masker)), "leastsquares", max_evals=40)[0],
    ):
        np.testing.assert_allclose(other.values, found[: len(other)], rtol=1e-9)
    others = explained(Gaussian(DATA, draws=8, seed=1), "leastsquares", max_evals=40)[0]
    assert np.abs(others.values - found).max() > 1e-3


@pytest.mark.parametrize("algorithm", ["exact", "permutation"])
def test_explainers_of_shap_take_the_masker(algorithm):
    """They draw each coalition once: 32 times the standard error of 15 repetitions is beyond."""
    exact = exact_values(MODEL)
    explainer = shap.Explainer(MODEL, Gaussian(DATA, draws=1024), algorithm=algorithm, seed=0)
    off = np.abs(explainer(ROWS).values - exact).max()
    assert off < (0.05 if algorithm == "exact" else 1.0) * np.abs(exact).max()


def test_frames_reach_the_model_with_their_columns():
    seen = []

    def model(frame):
        seen.append(frame)
        return MODEL(frame.to_numpy())

    frame = pd.DataFrame(DATA, columns=list("abcdef"))
    frame["a"] = frame["a"].round().astype(int)
    masker = Gaussian(frame, draws=4)
    found, _ = explained(masker, model=model, rows=frame[:2])
    assert found.feature_names == list("abcdef")
    assert all(list(table.columns) == list("abcdef") for table in seen)
    assert any((table["a"] % 1 != 0).any() for table in seen)  # draws are not whole numbers
    plain, _ = explained(Gaussian(frame.to_numpy(), draws=4), rows=frame[:2].to_numpy())
    np.testing.assert_allclose(found.values, plain.values, rtol=1e-12)


def test_groups_of_columns_are_drawn_together():
    groups = {"first": [0, 1, 2], "second": [3, 4], "third": [5]}
    explainer = shap.Explainer(
        MODEL, Gaussian(DATA, draws=1024), algorithm="enumeration", seed=0, groups=groups
    )
    found = explainer(ROWS, silent=True)
    columns = list(groups.values())
    for row, values in zip(ROWS, found.values, strict=True):
        game = normal_game(row, DATA.mean(axis=0), np.cov(DATA.T), MODEL.expected)
        exact = shapley_values(3, lambda s, game=game: game({c for g in s for c in columns[g]}))
        np.testing.assert_allclose(values, exact, atol=0.02 * np.abs(exact).max())


def test_rows_of_all_features_are_evaluated_once():
    """Repetitions of the value of all features are repetitions of the model only."""
    seen = []

    def model(x):
        seen.append(x)
        return MODEL(x)

    explained(Gaussian(DATA, draws=16), model=model, rows=ROWS[:1])
    n_whole = (np.concatenate(seen) == ROWS[0]).all(axis=1).sum()
    assert 1 <= n_whole <= 16


def test_missing_values_of_rows_stay_missing_and_say_nothing():
    rows = ROWS.copy()
    rows[:, 2] = np.nan
    seen = []

    def model(x):
        seen.append(x)
        return MODEL(np.nan_to_num(x))

    explained(Gaussian(DATA, draws=4), model=model, rows=rows)
    table = np.concatenate(seen)
    assert 0 < np.isnan(table[:, 2]).sum() < len(table)
    assert not np.isnan(np.delete(table, 2, axis=1)).any()


def test_columns_without_variance_and_singular_covariances():
    constant = np.column_stack([DATA, np.full(len(DATA), 0.3)])
    rows = constant[:3]
    found, _ = explained(Gaussian(constant, draws=8), model=lambda x: MODEL(x[:, :6]), rows=rows)
    assert np.isfinite(found.values).all()
    copied = np.column_stack([DATA, DATA[:, 0]])
    with pytest.warns(ShapleyExtWarning, match="follow from others"):
        masker = Gaussian(copied, draws=8)
    drawn = masker(np.arange(7) == 0, copied[0])
    np.testing.assert_allclose(drawn[:, 6], copied[0, 0], atol=0.02)


def test_bad_input():
    with pytest.raises(InvalidArgumentError, match="data has 5 rows and 6 columns"):
        Gaussian(DATA[:5])
    frame = pd.DataFrame({"number": [1.0, 2.0, 3.0], "colour": ["red", "red", "blue"]})
    with pytest.raises(InvalidArgumentTypeError, match="'red' in column 'colour'"):
        Gaussian(frame)
    with_missing = DATA.copy()
    with_missing[7, 2] = np.nan
    with pytest.raises(InvalidArgumentError, match="nan in row 7, column 2"):
        Gaussian(with_missing)
    with pytest.raises(InvalidArgumentError, match=r"a table of rows is needed"):
        Gaussian(DATA[0])
    with pytest.raises(InvalidArgumentError, match="draws must be at least 1; got 0"):
        Gaussian(DATA, draws=0)
    with pytest.raises(InvalidArgumentError, match="X has 5 columns"):
        explained(Gaussian(DATA), rows=ROWS[:, :5])
    composite = shap.maskers.FixedComposite(Gaussian(DATA))
    with pytest.raises(InvalidArgumentError, match="Gaussian is part of another masker"):
        explained(composite)


def test_model_rows_as_a_budget():
    _, estimate = explained(Gaussian(DATA, draws=8), "leastsquares", max_model_rows=50 * 8)
    assert (estimate.model_rows <= 50 * 8).all()
    assert (estimate.model_rows > 35 * 8).all()


@pytest.mark.slow
def test_values_do_not_depend_on_workers():
    masker = Gaussian(DATA, draws=8)
    first, second = (
        shap.Explainer(MODEL, masker, algorithm="leastsquares", seed=0, n_jobs=n_jobs)(ROWS)
        for n_jobs in (1, 2)
    )
    np.testing.assert_allclose(first.values, second.values, rtol=1e-9)


def test_importance_of_drawn_values():
    """Repetitions of sampled rows, and of their losses."""
    exact = exact_values(MODEL)
    explainer = shap_ext.RandomOrderExplainer(MODEL, Gaussian(DATA, draws=8), seed=0)
    found = explainer.global_importance(ROWS, kind="mean", population=True, silent=True)
    off = (found.values - exact.mean(axis=0)) / found.standard_errors
    assert np.abs(off).max() < 4
    assert found.standard_errors.max() < 0.1 * np.abs(exact).max()
    explainer = shap_ext.RandomOrderExplainer(MODEL, Gaussian(DATA, draws=128), seed=0)
    labels = MODEL(DATA[:50])
    by_loss = explainer.global_importance(
        DATA[:50], labels, kind="loss", loss="squared_error", population=True, silent=True
    )
    spread = ((labels - MODEL(DATA).mean()) ** 2).mean()  # of no feature less that of all
    np.testing.assert_allclose(by_loss.values.sum(), spread, rtol=0.1)
