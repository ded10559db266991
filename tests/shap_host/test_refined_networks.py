"""Errors that networks state, and attributions of networks refined by evaluations, in shap."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtWarning
from tests.shap_host.games import Seen

pytest.importorskip("torch")
pytest.importorskip("safetensors")

N = 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, N))
INTO = RNG.normal(size=(N, N)) / 2
REFERENCE = np.zeros((1, N))
ROWS = RNG.normal(size=(60, N))
FEW: dict[str, Any] = {"epochs": 15}
SEEDS = range(4)  # of networks, because the coverage of one differs from that of the next by .05


def curved(x):
    return np.tanh(np.asarray(x, dtype=float) @ INTO).sum(axis=1)


def exact(rows):
    return shap.Explainer(curved, REFERENCE, algorithm="enumeration")(rows).values


def sum_of_errors(values, rows):
    return np.abs(values - exact(rows)).sum(axis=1).mean()


def fitted(seed):
    return shap_ext.SimShapExplainer(curved, REFERENCE, training_data=X, seed=seed, **FEW).fit()


@pytest.fixture(scope="module")
def explainers():
    return [fitted(seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def explainer(explainers):
    return explainers[0]


@pytest.fixture
def is_quiet(monkeypatch):
    """Let rows outside the training data pass without a warning."""
    monkeypatch.setattr("shapley_adapters.amortized.amortized.warn_of_rows", lambda *_: None)


def share_inside(explained, rows):
    truth = exact(rows)
    return ((explained.lower_bounds <= truth) & (truth <= explained.upper_bounds)).mean()


def mean_share(explainers, rows):
    return np.mean([share_inside(made(rows, error_bounds=True), rows) for made in explainers])


def test_intervals_of_a_network_hold_inside(explainers):
    assert 0.89 <= mean_share(explainers, ROWS) <= 0.995
    assert explainers[-1].last_estimate.evaluations.mean() < 2.5


@pytest.mark.parametrize(
    "rows",
    [2 * ROWS, ROWS + 3 * np.eye(N)[:3].sum(axis=0), ROWS + 2 * RNG.normal(size=ROWS.shape)],
    ids=["doubled", "three columns moved", "noise"],
)
def test_intervals_widen_outside(explainers, is_quiet, rows):
    inside = explainers[0](ROWS, error_bounds=True)
    outside = explainers[0](rows, error_bounds=True)
    assert outside.error_std.mean() > 1.5 * inside.error_std.mean()
    assert mean_share(explainers, rows) >= 0.77


@pytest.mark.parametrize("budget", [4, 16])
def test_refined_is_better_than_either_alone(explainer, budget):
    alone = sum_of_errors(explainer(ROWS).values, ROWS)
    refined = sum_of_errors(explainer(ROWS, max_evals=budget).values, ROWS)
    assert explainer.last_estimate.evaluations.max() <= budget
    assert refined <= 1.05 * alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShapleyExtWarning)  # few evaluations per feature
        of_rows = shap_ext.OddGPExplainer(curved, REFERENCE, seed=0)(ROWS, max_evals=budget)
    assert refined < 0.9 * sum_of_errors(of_rows.values, ROWS)


def test_refined_by_all_coalitions_is_exact(explainer):
    refined = explainer(ROWS[:5], max_evals=2**N, error_bounds=True)
    np.testing.assert_allclose(refined.values, exact(ROWS[:5]), atol=1e-10)
    np.testing.assert_array_equal(refined.error_std, 0)
    assert explainer.last_estimate.enumerated.all()


@pytest.mark.parametrize("budget", [6, 40])
def test_refined_sums_to_the_output_and_its_intervals_hold(explainer, budget):
    refined = explainer(ROWS, max_evals=budget, error_bounds=True)
    np.testing.assert_allclose(
        refined.values.sum(axis=1) + refined.base_values, curved(ROWS), atol=1e-10
    )
    assert share_inside(refined, ROWS) >= 0.85


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


def test_without_evaluations_nothing_is_refined():
    made = shap_ext.SimShapExplainer(
        curved, REFERENCE, training_data=X[:60], efficient=False, epochs=2, seed=0
    )
    assert np.isfinite(made(ROWS[:3], error_bounds=True).error_std).all()
    with pytest.raises(InvalidArgumentError, match=r"max_evals needs efficient=True"):
        made(ROWS[:3], max_evals=20)
    with pytest.raises(InvalidArgumentError, match=r"tolerance needs efficient=True"):
        made(ROWS[:3], tolerance=0.1)


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

    def numbers(table):
        return table.assign(group=table["group"].cat.codes).to_numpy(dtype=np.float32)

    seen = Seen(lambda table: numbers(table).sum(axis=1))
    made = shap_ext.SimShapExplainer(
        seen, frame[:1], training_data=frame, features=numbers, epochs=2, seed=0
    ).fit()
    every = pd.concat(seen.calls)
    assert every["positive"].min() >= frame["positive"].min()
    assert every["positive"].max() > 1.2 * frame["positive"].max()
    assert every["share"].between(0, 1).all()
    assert set(every["count"]) <= set(frame["count"])
    assert set(every["group"]) <= {"a", "b"}
    assert every["number"].abs().max() > 1.2 * frame["number"].abs().max()
    assert np.isfinite(made(frame[:3], error_bounds=True).error_std).all()


def excess(explained, tolerance):
    """Return each row's largest error, as a multiple of a share of the row's attributions."""
    return explained.error_std.max(axis=1) / (tolerance * np.ptp(explained.values, axis=1))


def test_relative_tolerance_is_a_share_of_the_attributions(explainer):
    """Not of the differences from the network, which are much smaller."""
    stated = explainer(ROWS, error_bounds=True)
    share = 0.5 * float(np.median(excess(stated, 1.0)))
    explained = explainer(ROWS, tolerance=f"{100 * share:.9f}%", error_bounds=True)
    assert (excess(explained, share) <= 1 + 1e-6).all()
    relative = explainer.last_estimate.evaluations.mean()
    explainer(ROWS, tolerance=share * float(np.median(np.ptp(stated.values, axis=1))))
    assert relative < 1.2 * explainer.last_estimate.evaluations.mean()


def test_refinement_counts_no_evaluations_that_were_not_made(explainer):
    seen = Seen(curved)
    counting = shap_ext.SimShapExplainer(seen, REFERENCE, trained=explainer.trained, seed=0)
    seen.calls.clear()
    counting(ROWS, tolerance=0.1)
    estimate = counting.last_estimate
    assert sum(map(len, seen.calls)) <= estimate.evaluations.sum() + estimate.check_evaluations


@pytest.mark.parametrize("options", [{"tolerance": 0.01}, {"max_evals": 30}])
def test_random_models_are_named_where_a_network_is_refined(explainer, options):
    rng = np.random.default_rng(0)

    def random(x):
        return curved(x) + rng.normal(size=len(x))

    made = shap_ext.SimShapExplainer(random, REFERENCE, trained=explainer.trained, seed=0)
    made.trained.network.empty.fill_(float("nan"))  # v(∅) is not the one of the training
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made(ROWS[:3], **options)
    assert any("not deterministic" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("efficient", [True, False])
def test_rows_of_one_active_player_are_exact_by_efficiency(efficient):
    made = shap_ext.SimShapExplainer(
        curved, REFERENCE, training_data=X[:60], efficient=efficient, epochs=2, seed=0
    ).fit()
    row = np.zeros((1, N))
    row[0, 2] = 1.0
    assert (made(row, error_bounds=True).error_std[0, 2] == 0) == efficient


@pytest.mark.parametrize(("factor", "options"), [(1e30, {}), (1e10, {"max_evals": 40})])
def test_errors_of_huge_rows_are_finite(explainer, is_quiet, factor, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explained = explainer(factor * ROWS[:3], error_bounds=True, **options)
    assert np.isfinite(explained.error_std).all()
    assert np.isfinite(explained.values).all()


@pytest.mark.parametrize("as_table", [np.asarray, pd.DataFrame])
def test_columns_with_missing_numbers_are_not_moved(as_table):
    """Their mean is missing, so that all rows would become missing there."""
    data = X[:120].copy()
    data[::3, 1] = np.nan
    numbers = lambda table: np.nan_to_num(np.array(table, dtype=float))  # noqa: E731
    seen = Seen(lambda table: curved(numbers(table)))
    shap_ext.SimShapExplainer(
        seen, as_table(REFERENCE), training_data=as_table(data), features=numbers, epochs=1, seed=0
    ).fit()
    mixtures = np.concatenate([np.array(table, dtype=float) for table in seen.calls])
    artificial = mixtures[~np.isin(mixtures[:, 0], [*data[:, 0], 0.0])]
    assert len(artificial) > 5
    assert np.isin(artificial[:, 1], [*data[:, 1], 0.0]).sum() > 5


def test_artificial_rows_of_frames_go_by_position():
    """Integers select by the labels of an index of floats."""
    by_position = pd.DataFrame(X[:100])
    by_label = by_position.set_axis(np.linspace(1000.0, 2000.0, 100))
    errors = []
    for frame in (by_position, by_label):
        made = shap_ext.SimShapExplainer(
            lambda table: curved(table.to_numpy()),
            pd.DataFrame(REFERENCE),
            training_data=frame,
            epochs=1,
            seed=0,
        )
        errors.append(made(by_position[:3], error_bounds=True).error_std)
    np.testing.assert_array_equal(*errors)
