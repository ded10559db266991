"""Sizes that no machine computes, and budgets that say little: refused or warned of at once."""

import os
import time
import warnings
from functools import partial

import numpy as np
import pytest
import shap

import shap_ext
import shapley_adapters as core
from shapley_adapters import memory_bounds
from shapley_adapters.errors import BudgetError, InvalidArgumentError, ShapleyExtWarning
from shapley_adapters.estimators.protocol import DesignRequest
from shapley_adapters.pipeline import designs
from tests.helpers.optional import captum_ext, torch
from tests.helpers.reference_games import FunctionGame


def must_not_be_called(*_):
    raise AssertionError("The model must not be evaluated.")


def attribute(method, *shape, **options):
    """Call a method of captum, with no entry at its baseline."""
    made = getattr(captum_ext, method)(must_not_be_called, seed=0)
    return made.attribute(1 + torch.rand(*shape), **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [core.RandomOrder(), core.Shear(cooperators="random"), core.SimSemivalue()]
)
def test_three_thousand_players_are_possible(estimator):
    """More than 1,023 players, beyond which 2^M is no floating-point number."""
    weights = np.random.default_rng(0).normal(size=3000)
    game = FunctionGame(lambda z: z @ weights, 3000, evaluations_per_batch=256)
    budget = estimator.minimum_budget(3000) + 6000
    values = core.estimate(game, estimator, core.Settings(seed=0, budget=budget)).values
    if isinstance(estimator, core.SimSemivalue):
        assert values.sum() == pytest.approx(weights.sum())
    else:
        np.testing.assert_allclose(values[0, :, 0], weights, atol=1e-9)


@pytest.mark.slow
def test_oddgp_through_its_first_values_of_more_players_than_a_power_of_two_has(monkeypatch):
    """2^(M − 1) is no floating-point number from 1,025 players on."""
    # As with more than 8,192 evaluations.
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp.posterior.DENSE", 64)
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp.posterior.SEEN", 64)
    weights = np.random.default_rng(0).normal(size=1030)
    explainer = shap.Explainer(
        lambda x: x @ weights, np.zeros((1, 1030)), algorithm="oddgp", seed=0
    )
    found = explainer(np.ones((1, 1030)), max_evals=2200)
    differences = np.abs(found.values[0] - weights)
    assert differences.mean() < 0.06  # of 0.8 on average; exactly, .044: priors are averaged
    errors = explainer.last_estimate.standard_errors[0, :, 0]
    assert (differences < 5 * errors + 0.02).mean() > 0.98


def wide_call(name, n_features, n_rows=1, call="__call__", built=None, **options):
    rows, built = np.ones((n_rows, n_features)), {"algorithm": name, "seed": 0, **(built or {})}
    explainer = shap.Explainer(must_not_be_called, 0 * rows[:1], **built)
    return getattr(explainer, call)(rows, **options)


LIMITS = {
    "1 TiB": (2**40, ["pipeline.settings"]),
    "8 GiB": (2**33, ["pipeline.settings"]),
    "8 GiB of matrices": (2**33, ["interactions.result"]),
    "2 MiB": (2**21, ["pipeline.settings", "estimators.graph.linear_design"]),
}
SLOW_ROWS = r"(?si)odd GP.* s for each row .*for 8000 players.*At most 600 s.*groups=.*"
ON_GRAPH = r"(?s)max_evals=20000 is too large.*0\.00195 GiB.*120 players.*Lower max_evals.*groups="
LINE = {"graph": "line"}
NO_MASK = r"(?s)GiB.*150528 players.*2408448.*feature_mask"
MATRICES = {"interactions": True, "max_evals": 10}
PAIRS = r"(?s)GiB.*500 players.*groups=.*Without interactions, it needs about \d\."


@pytest.mark.parametrize(
    ("call", "words", "limit"),
    [
        *(
            (partial(attribute, method, 1, 3, 224, 224), NO_MASK, None)
            for method in ("RandomOrder", "LeastSquares", "OddGP")
        ),
        *(
            (partial(wide_call, name, 150_528), r"(?s)GiB.*groups=.*lower max_evals", None)
            for name in ("oddgp", "simsemivalue")
        ),
        # Minutes of our own work
        (partial(wide_call, "oddgp", 8000), SLOW_ROWS + "lower max_evals", "1 TiB"),
        (partial(attribute, "OddGP", 1, 8000), SLOW_ROWS + "lower n_samples", "1 TiB"),
        # Interactions
        *(
            (partial(wide_call, "leastsquares", 500, interactions=True, max_evals=274452,
                     max_seconds=seconds), PAIRS, "8 GiB")
            for seconds in (None, 60)
        ),
        (partial(wide_call, "oddgp", 200, call="set_interactions", order=5, max_evals=400),
         "(?s)GiB.*200 players.*groups=.*Without interactions", None),
        *(
            # 32 bytes for each of 2,000 rows and 400 times 400 entries
            (partial(wide_call, "oddgp", 400, 2000, max_seconds=seconds, **MATRICES),
             "(?s)GiB.*2000 rows.*fewer rows", "8 GiB of matrices")
            for seconds in (None, 60)
        ),
        # Graphs: the terms of 7,260 connected sets of 120 players take more than their coalitions
        *(
            (partial(wide_call, name, 120, built=LINE | own, max_evals=20_000), ON_GRAPH, "2 MiB")
            for name, own in (
                ("myerson", {}), ("cshapley", {"order": 120}), ("lshapley", {"order": 5}),
                ("cshapley", {"variant": "regression", "order": 120}),
                ("cshapley", {"variant": "regression", "order": 120, "shapes": "connected"}),
            )
        ),
        (partial(wide_call, "lshapley", 40, built=LINE, max_evals=10**9),
         "max_evals=1000000000 is too large", None),
        # Enumeration
        *(
            case
            for n in (21, 30)
            for case in (
                (partial(wide_call, "oddgp", n, max_evals=10**11),
                 rf"max_evals=10{{11}} .*2\^{n}.*20 players", None),
                (partial(attribute, "RandomOrder", 1, n, n_samples=10**11),
                 rf"n_samples=10{{11}} .*2\^{n}.*20 players", None),
                (partial(attribute, "RandomOrder", 1, n, n_samples=10**11, tolerance=0.1),
                 "20 players", None),
                (partial(attribute, "Exact", 1, n), "20 players", None),
            )
        ),
    ],
)  # fmt: skip
def test_hopeless_calls_are_refused_at_once(call, words, limit, monkeypatch):
    n_bytes, modules = LIMITS.get(limit, (0, []))
    for module in modules:
        monkeypatch.setattr(f"shapley_adapters.{module}.memory_limit", lambda: n_bytes)
    designs._kept.clear()
    started = time.perf_counter()
    with pytest.raises((BudgetError, InvalidArgumentError), match=words):
        call()
    assert time.perf_counter() - started < 60


@pytest.mark.parametrize("options", [{}, {"replacement": False}, {"sizes": "leverage"}])
def test_least_squares_of_more_coalitions_than_a_number_holds(options):
    """From about 1,030 players on, some sizes have more coalitions than the largest float."""
    ends = np.array([[False], [True]]).repeat(1100, axis=1)
    request = DesignRequest(1100, 16_800, 16_800, np.random.default_rng(0), ends)
    design = core.LeastSquares(**options).design(request)
    assert len(design.weights) == 8399
    assert np.isfinite(design.weights).all()


def test_the_limit_is_half_of_the_smaller_of_machine_and_container(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sysconf", lambda _: 2**17)  # pages, and bytes of each
    container = tmp_path / "memory.max"
    monkeypatch.setattr(memory_bounds, "_CONTAINER", container)
    assert memory_bounds.memory_limit() == 2**33
    container.write_text("max\n")
    assert memory_bounds.memory_limit() == 2**33
    container.write_text(f"{2**30}\n")
    assert memory_bounds.memory_limit() == 2**29
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    container.unlink()
    assert memory_bounds.memory_limit() == 2**33  # unknown


# --- graphs ---


def on_line(algorithm, n_players, budget, **options):
    """Explain a sum of its features on a line; the values are known."""
    weights = np.arange(1.0, n_players + 1)
    explainer = shap.Explainer(
        lambda x: x @ weights,
        np.zeros((1, n_players)),
        algorithm=algorithm,
        graph="line",
        seed=0,
        **options,
    )
    found = explainer(np.ones((1, n_players)), max_evals=budget).values[0]
    np.testing.assert_allclose(found, weights, rtol=1e-9)
    return explainer.last_estimate


@pytest.mark.parametrize(
    ("algorithm", "options", "n_evaluations"),
    [
        ("myerson", {}, 40 * 41 // 2 + 1),
        ("lshapley", {"order": 2}, None),
        ("cshapley", {"order": 2}, None),
        ("cshapley", {"variant": "regression", "order": 2, "efficient": True}, None),
    ],
)
def test_large_budgets_of_small_designs_on_graphs(algorithm, options, n_evaluations):
    """10^9 coalitions of 40 players do not fit into memory, but far fewer are needed."""
    estimate = on_line(algorithm, 40, 10**9, **options)
    assert (estimate.standard_errors == 0).all()
    assert estimate.evaluations[0] < 1000
    assert n_evaluations in (None, estimate.evaluations[0])


def test_draws_on_graphs_that_do_not_fit_into_memory(monkeypatch):
    """7,000 evaluations do not pay for all connected sets, and their draws are too many."""
    for module in ("pipeline.settings", "estimators.graph.linear_design"):
        monkeypatch.setattr(f"shapley_adapters.{module}.memory_limit", lambda: 2**22)
    with pytest.raises(BudgetError, match="max_evals=7000 is too large"):
        on_line("myerson", 120, 7000)
    assert (on_line("myerson", 120, 1000).standard_errors >= 0).all()


@pytest.mark.parametrize("name", ["lshapley", "cshapley", "myerson"])
def test_a_large_budget_on_a_small_graph_is_exact(name):
    rows = np.arange(1.0, 4.0)[None]
    explainer = shap.Explainer(
        lambda x: x.prod(axis=1), 0 * rows, algorithm=name, graph=[(0, 1), (1, 2), (0, 2)]
    )
    np.testing.assert_allclose(explainer(rows, max_evals=10**30).values, 2.0)


# --- budgets that say little ---


@pytest.mark.parametrize(("n_players", "n_samples", "least"), [(50, 25, 50), (30, 29, 30)])
def test_oddgp_warns_of_few_evaluations_a_feature(n_players, n_samples, least):
    """Of less than one."""
    x = torch.rand(3, n_players, dtype=torch.float64)
    words = rf"={n_samples} is little for {n_players} players.*below {least}.*Raise "
    method = captum_ext.OddGP(lambda x: x.sum(1), gradients=False, seed=0)
    with pytest.warns(ShapleyExtWarning, match=f"n_samples{words}n_samples to") as found:
        method.attribute(x, n_samples=n_samples)
    assert len(found) == 1
    explainer = shap_ext.OddGPExplainer(lambda x: x.sum(axis=1), np.zeros((1, n_players)), seed=0)
    with pytest.warns(ShapleyExtWarning, match=f"max_evals{words}max_evals to"):
        explainer(x.numpy(), max_evals=n_samples)


def test_oddgp_does_not_warn_where_it_is_of_use():
    """From one evaluation a feature on, where all coalitions are, and for the active features."""
    x = torch.rand(2, 50, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method = captum_ext.OddGP(lambda x: x.sum(1), seed=0)
        method.attribute(x, n_samples=50)
        method.attribute(x[:, :3], n_samples=8)
        x[:, 12:] = 0
        method.attribute(x, n_samples=25)
