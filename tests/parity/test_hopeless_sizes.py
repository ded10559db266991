"""Sizes that no machine computes, and budgets that say little: refused or warned of at once."""

import os
import time
import warnings
from functools import partial
from types import MappingProxyType

import numpy as np
import pytest
import shap

import shap_ext  # noqa: F401 (its algorithms)
import shapley_adapters as core
from shapley_adapters import memory_bounds
from shapley_adapters.errors import BudgetError, InvalidArgumentError
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


def wide_call(
    name, n_features, built=MappingProxyType({}), rows=1, way="__call__", time=None, **options
):
    table, built = np.ones((rows, n_features)), {"algorithm": name, "seed": 0, **built}
    explainer = shap.Explainer(must_not_be_called, 0 * table[:1], **built)
    limits = {} if time is None else {"max_seconds": time}
    return getattr(explainer, way)(table, **limits, **options)


LIMITS = {
    "": (0, []),
    "1 TiB": (2**40, ["pipeline.settings"]),
    "8 GiB": (2**33, ["pipeline.settings"]),
    "8 GiB of all": (2**33, ["interactions.result"]),
    "2 MiB": (2**21, ["pipeline.settings", "estimators.graph.linear_design"]),
}
SLOW_ROWS = r"(?si)odd GP.* s for each row .*for 8000 players.*At most 600 s.*groups=.*"
ON_GRAPH = r"(?s)max_evals=20000 is too large.*0\.00195 GiB.*120 players.*Lower max_evals.*groups="
LINE = {"graph": "line"}
NO_MASK = r"(?s)GiB.*150528 players.*2408448.*feature_mask"
MATRICES = "(?s)GiB.*2000 rows.*fewer rows"
SETS = "(?s)GiB.*200 players.*groups=.*Without interactions"
PAIRS = r"(?s)GiB.*500 players.*groups=.*Without interactions, it needs about \d\."


def hopeless(words, call, *args, limit="", **options):
    return partial(call, *args, **options), words, limit


TOO_MANY = r"=10{{11}} .*2\^{}.*20 players"
BUDGET = {"n_samples": 10**11}
PAIRWISE = {"interactions": True}
HUNDRED, MANY, TEN = (PAIRWISE | {"max_evals": n} for n in (100, 274452, 10))


@pytest.mark.parametrize(
    ("call", "words", "limit"),
    [
        *(
            hopeless(NO_MASK, attribute, method, 1, 3, 224, 224)
            for method in ("RandomOrder", "LeastSquares", "OddGP")
        ),
        *(
            hopeless("(?s)GiB.*groups=.*lower max_evals", wide_call, name, 150_528)
            for name in ("oddgp", "simsemivalue")
        ),
        # Minutes of our own work
        hopeless(SLOW_ROWS + "lower max_evals", wide_call, "oddgp", 8000, limit="1 TiB"),
        hopeless(SLOW_ROWS + "lower n_samples", attribute, "OddGP", 1, 8000, limit="1 TiB"),
        hopeless("max_seconds=2 cannot.*max_evals", wide_call, "lshapley", 30, LINE, max_seconds=2),
        # Interactions
        *(
            case
            for time in (None, 60)
            for case in (
                hopeless(PAIRS, wide_call, "leastsquares", 500, limit="8 GiB", time=time, **MANY),
                # 32 bytes for each of 2,000 rows and 400 times 400 entries
                hopeless(
                    MATRICES,
                    wide_call,
                    "oddgp",
                    400,
                    rows=2000,
                    limit="8 GiB of all",
                    time=time,
                    **TEN,
                ),
            )
        ),
        *(
            hopeless(f"cannot estimate.*{words}", wide_call, "randomorder", n, time=20, **budget)
            for n, budget, words in ((8, HUNDRED, "max_evals=256"), (25, PAIRWISE, "20 players"))
        ),
        hopeless(SETS, wide_call, "oddgp", 200, way="set_interactions", order=5, max_evals=400),
        # Graphs: the terms of 7,260 connected sets of 120 players take more than their coalitions
        *(
            hopeless(ON_GRAPH, wide_call, name, 120, LINE | own, limit="2 MiB", max_evals=20_000)
            for name, own in (
                ("myerson", {}),
                ("cshapley", {"order": 120}),
                ("lshapley", {"order": 5}),
                ("cshapley", {"variant": "regression", "order": 120}),
                ("cshapley", {"variant": "regression", "order": 120, "shapes": "connected"}),
            )
        ),
        hopeless("max_evals=1000000000 is", wide_call, "lshapley", 40, LINE, max_evals=10**9),
        # Enumeration
        *(
            case
            for n in (21, 30)
            for case in (
                hopeless("max_evals" + TOO_MANY.format(n), wide_call, "oddgp", n, max_evals=10**11),
                hopeless(
                    "n_samples" + TOO_MANY.format(n), attribute, "RandomOrder", 1, n, **BUDGET
                ),
                hopeless("20 players", attribute, "RandomOrder", 1, n, tolerance=0.1, **BUDGET),
                hopeless("20 players", attribute, "Exact", 1, n),
            )
        ),
    ],
)
def test_hopeless_calls_are_refused_at_once(call, words, limit, monkeypatch):
    n_bytes, modules = LIMITS[limit]
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


# --- budgets that say little ---


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
