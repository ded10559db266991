"""Plans: their counts are those of the call that follows, for every estimator in both hosts."""

import time
from typing import Any

import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.errors import (
    BudgetError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
)
from tests.helpers.estimator_table import ESTIMATORS, OF_CLASSES
from tests.helpers.optional import HAS_TORCH, captum_ext

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(3, 11))
ROWS[1, 2] = 0.0  # a null player
BACKGROUND = RNG.normal(size=(12, 11))
BACKGROUND[:, 2] = 0.0
ZEROS = np.zeros((1, 11))


def curved(x):
    x = np.asarray(x)
    return np.sin(x).sum(axis=1) + x[:, 0] * x[:, 1]


def cubic(x):
    return curved(x) + 3 * np.asarray(x)[:, 3:6].prod(axis=1)


def several(x):
    return np.stack([curved(x), curved(x) ** 2, -curved(x)], axis=1)


def never(*_):
    raise AssertionError("a plan must not call the model")


def counts(of):
    """The counts of a plan, or of an estimate with its usage."""
    used = of if hasattr(of, "note") else of.usage
    evaluations = of.evaluations.tolist(), of.model_rows.tolist(), of.check_evaluations
    return *evaluations, used.calls, used.rows, used.remembered_rows


def both(row, function, rows=ROWS, background=ZEROS, remote=None, **options):
    """The plan of shap's explainer, and the estimate of the call after it."""
    plans = row.explainer(
        shap_ext.RemoteModel(never, **(remote or {})), background, seed=0, **row.options
    )
    explainer = row.explainer(
        shap_ext.RemoteModel(function, **(remote or {})), background, seed=0, **row.options
    )
    plan = plans.plan(rows, **options)
    explainer(rows, silent=True, **options)
    return plan, explainer.last_estimate


def depends_on_values(row):
    """Whether SHEAR's coalitions depend on differences of values, and some may coincide."""
    return row.cooperators in ("auto", "difference")


@pytest.mark.filterwarnings("ignore:.* is little for")
@pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: row.id)
def test_counts_are_those_of_the_call(row):
    plan, made = both(row, curved, max_evals=row.budget(11, 150))
    if depends_on_values(row):
        assert plan.note.startswith("Coalitions depend")
        np.testing.assert_allclose(plan.evaluations, made.evaluations, rtol=0.05)
        assert plan.rows == pytest.approx(made.usage.rows, rel=0.05)
    else:
        assert counts(plan) == counts(made)


@pytest.mark.filterwarnings("ignore:.* is little for")
@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
@pytest.mark.parametrize("row", OF_CLASSES, ids=lambda row: row.id)
def test_counts_are_those_of_the_call_in_captum(row):
    import torch

    def function(x):
        return torch.as_tensor(several(x))

    rows, budget = torch.tensor(ROWS), row.budget(11, 150)
    plan = row.attribution(captum_ext.RemoteModel(never), seed=0, **row.options).plan(
        rows, target=2, n_samples=budget
    )
    method = row.attribution(captum_ext.RemoteModel(function), seed=0, **row.options)
    method.attribute(rows, target=2, n_samples=budget)
    if depends_on_values(row):
        np.testing.assert_allclose(plan.evaluations, method.last_estimate.evaluations, rtol=0.05)
    else:
        assert counts(plan) == counts(method.last_estimate)


SEVERAL_ROWS = [
    row
    for row in OF_CLASSES
    # With a budget of coalitions or of rows, best is oddgp.
    if not (row.is_exact or row.id == "best" or depends_on_values(row))
]


@pytest.mark.filterwarnings("ignore:.* is little for")
@pytest.mark.parametrize(
    "options",
    [
        {"max_model_rows": 900},
        {"max_model_rows": 300},
        {"repeats": 3, "max_evals": 250},
        {"error_bounds": True, "batch_size": 17},
    ],
    ids=str,
)
@pytest.mark.parametrize("row", SEVERAL_ROWS, ids=lambda row: row.id)
def test_counts_with_background_rows(row, options):
    try:
        options = {"max_evals": 150, "remote": {"rows_per_call": 50}, **options}
        plan, made = both(row, several, background=BACKGROUND, **options)
    except BudgetError:  # of the plan, which refuses what the call would
        assert options.get("max_model_rows") == 300
        return
    assert counts(plan) == counts(made)


@pytest.mark.filterwarnings("error")
def test_texts_do_not_look_random():
    texts = [
        "The film was not good. I liked the sound! But it rained.",
        "Good film.",
        "It is another paragraph here, with clauses. And more; yes.",
    ]
    masker = shap_ext.maskers.TextSegments(mask_token="")
    explainer = shap.Explainer(
        lambda x: np.array([len(text) for text in x]), masker, algorithm="hierarchy", seed=0
    )
    plan = explainer.plan(texts)
    explainer(texts, silent=True)
    np.testing.assert_array_equal(plan.evaluations, explainer.last_estimate.evaluations)


def test_draws_of_absent_features_are_counted_fast():
    import pandas as pd

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 8)), columns=list("abcdefgh"))
    masker = shap_ext.maskers.Gaussian(frame, draws=128)
    explainer = shap.Explainer(lambda x: x["a"].to_numpy(), masker, algorithm="best", seed=0)
    started = time.process_time()
    plan = explainer.plan(frame[:5])
    assert time.process_time() - started < 3  # a fifth of a second; by digests, six seconds
    explainer(frame[:5], silent=True)
    assert plan.rows > 200_000
    np.testing.assert_array_equal(plan.model_rows, explainer.last_estimate.model_rows)


def test_rows_of_a_frame_a_text_and_a_sparse_table():
    import pandas as pd
    import scipy.sparse

    seen: list[int] = []

    def counted(function):
        def model(x):
            seen.append(x.shape[0] if hasattr(x, "shape") else len(x))
            return function(x)

        return model

    frame = pd.DataFrame(ROWS).assign(kind=pd.Categorical(["u", "v", "u"]))
    frame.columns = frame.columns.astype(str)
    table = scipy.sparse.csr_matrix(ROWS)
    cases: list[Any] = [
        (
            lambda x: (x["kind"] == "u").to_numpy() * 1.5 + curved(x.drop(columns="kind")),
            frame[1:],
            frame,
        ),
        (lambda x: curved(x.toarray()), scipy.sparse.csr_matrix((1, 11)), table),
        (
            lambda x: np.array([len(text) + 0.1 * text.count("o") for text in x]),
            shap.maskers.Text(r"\W+"),
            ["not so good a film as one hoped", "good"],
        ),
    ]
    for function, masker, rows in cases:
        explainer = shap_ext.LeastSquaresExplainer(counted(function), masker, seed=0)
        plan = explainer.plan(rows, max_evals=90, batch_size=20)
        assert seen == []
        explainer(rows, max_evals=90, batch_size=20)
        assert (plan.calls, plan.rows) == (len(seen), sum(seen))
        seen.clear()


@pytest.mark.parametrize("algorithm", ["lshapley", "myerson"])
def test_counts_on_graphs(algorithm):
    explainers = [
        shap_ext.algorithms()[algorithm](
            shap_ext.RemoteModel(function), ZEROS, graph="line", seed=0
        )
        for function in (never, curved)
    ]
    plan = explainers[0].plan(ROWS)
    explainers[1](ROWS)
    assert counts(plan) == counts(explainers[1].last_estimate)


def test_interactions_and_rows_of_their_own_draws():
    row = next(row for row in ESTIMATORS if row.id == "best")
    plan, made = both(row, curved, max_evals=150, interactions=True)
    assert counts(plan) == counts(made)
    row = next(row for row in ESTIMATORS if row.id == "random order")
    options = {**row.options, "independent_rows": True}
    explainers = [
        row.explainer(shap_ext.RemoteModel(function), ZEROS, seed=0, **options)
        for function in (never, curved)
    ]
    plan = explainers[0].plan(ROWS, max_evals=100)
    explainers[1](ROWS, max_evals=100)
    assert counts(plan) == counts(explainers[1].last_estimate)


@pytest.mark.filterwarnings("ignore:.*did not reach the tolerance")
def test_a_tolerance_is_planned_at_most():
    row = next(row for row in ESTIMATORS if row.id == "random order")
    plan, made = both(row, cubic, max_evals=1000, tolerance="30%")
    assert plan.note.startswith("At most")
    assert (plan.evaluations >= made.evaluations).all()
    assert plan.rows > made.usage.rows
    _, made = both(row, cubic, max_evals=1000, tolerance=1e-9)
    assert counts(plan) == counts(made)


def test_what_best_may_choose_is_said():
    row = next(row for row in ESTIMATORS if row.id == "best")
    plan, _ = both(row, curved)
    assert "may take another candidate" in plan.note
    assert "all 2^11 coalitions" in plan.note
    assert plan.evaluations.tolist() == [500, 2**10, 500]
    model = shap_ext.RemoteModel(never)
    on_part = shap_ext.BestExplainer(model, BACKGROUND, seed=0).plan(ROWS)
    assert "may take another candidate" in on_part.note
    assert (on_part.model_rows[[0, 2]] <= 500 * len(BACKGROUND) / 2).all()


def test_a_memory_makes_the_plan_cheaper(tmp_path):
    remote = {"memory": tmp_path / "paid.db", "name": "a", "rows_per_call": 4, "cost": 0.5}
    row = next(row for row in ESTIMATORS if row.id == "random order")
    plan, made = both(row, curved, background=BACKGROUND, remote=remote, max_evals=50)
    assert counts(plan) == counts(made)
    assert plan.money == made.usage.money == 0.5 * plan.rows > 0
    assert plan.remembered_rows > 0  # background rows that several coalitions share
    again, made = both(row, curved, background=BACKGROUND, remote=remote, max_evals=50)
    assert (again.rows, again.calls, again.money) == (0, 0, 0.0)
    assert counts(again) == counts(made)
    larger, made = both(row, curved, background=BACKGROUND, remote=remote, max_evals=90)
    assert larger.remembered_rows > plan.rows
    assert larger.rows > 0
    assert counts(larger) == counts(made)


def test_seconds_follow_from_one_call_and_the_rates():
    asked = []

    def function(x):
        asked.append(len(x))
        return several(x)

    model = shap_ext.RemoteModel(
        function, concurrency=4, rows_per_call=8, cost=lambda x, y: len(x) * 0.25
    )
    explainer = shap_ext.RandomOrderExplainer(model, ZEROS, seed=0)
    blind = explainer.plan(ROWS, max_evals=100)
    assert np.isnan(blind.seconds)
    assert np.isnan(blind.money)
    assert asked == []
    measured = explainer.plan(ROWS, max_evals=100, measure=True)
    assert len(asked) == 1
    assert counts(measured) == counts(blind)
    assert measured.money == pytest.approx(0.25 * measured.rows)
    each = model.usage.seconds
    assert measured.calls is not None
    assert measured.calls / 4 * each <= measured.seconds <= (measured.calls / 4 + 20) * each
    assert explainer.plan(ROWS, max_evals=100).money == measured.money  # by the earlier call
    limited = shap_ext.RemoteModel(never, rate=5, row_rate=1000)
    slow = shap_ext.RandomOrderExplainer(limited, ZEROS, seed=0).plan(ROWS, max_evals=100)
    assert slow.calls is not None
    assert slow.seconds >= slow.calls / 5


def test_models_that_are_not_remote():
    explainer = shap_ext.RandomOrderExplainer(never, ZEROS, seed=0)
    plan = explainer.plan(ROWS, max_evals=100)
    assert plan.calls is None
    assert str(plan).startswith("3 rows, 96 to 98 evaluations each; ")
    seen = []

    def function(x):
        seen.append(len(x))
        return curved(x)

    explainer = shap_ext.RandomOrderExplainer(function, ZEROS, seed=0, output_names=["y"])
    plan = explainer.plan(ROWS, max_evals=100, batch_size=10, measure=True)
    assert len(seen) == 1
    assert plan.seconds > 0
    seen.clear()
    explainer(ROWS, max_evals=100, batch_size=10)
    assert (plan.calls, plan.rows) == (len(seen), sum(seen))


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_modules_keep_their_derivatives():
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(11, 3).double()
            self.n_rows = 0

        def forward(self, x):
            if not x.requires_grad:
                self.n_rows += len(x)
            return torch.sin(self.layer(x)).prod(dim=1)

    for make, rows in (
        (lambda model: captum_ext.Shear(model, seed=0), torch.tensor(ROWS)),
        (lambda model: shap_ext.ShearExplainer(model, ZEROS, seed=0), ROWS),
    ):
        model = Model().eval()
        explain = make(model)
        captum = hasattr(explain, "attribute")
        budget: Any = {"n_samples" if captum else "max_evals": 100}
        plan = explain.plan(rows, **budget)
        assert model.n_rows == 0
        (explain.attribute if captum else explain)(rows, **budget)
        # By differences of values, a plan would have 66 evaluations more before the draws.
        np.testing.assert_allclose(plan.evaluations, explain.last_estimate.evaluations, rtol=0.05)
        assert (explain.last_estimate.cooperators == "hessian").all()


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_one_value_for_all_examples_is_refused():
    import torch

    method = captum_ext.LeastSquares(lambda x: x.sum(), seed=0)
    with pytest.raises(ModelOutputError, match="one entry for each row"):
        method.plan(torch.tensor(ROWS), n_samples=100, measure=True)


def test_value_functions_need_the_number_of_classes():
    def classes(x):
        odds = np.exp(several(x) / 9)
        return odds / odds.sum(axis=1, keepdims=True)

    explainers = [
        shap_ext.RandomOrderExplainer(
            shap_ext.RemoteModel(classes), ZEROS, seed=0, value_function="log_probability"
        )
        for _ in range(2)
    ]
    with pytest.raises(InvalidArgumentError, match="measure=True"):
        explainers[0].plan(ROWS)
    plan = explainers[0].plan(ROWS, max_evals=100, measure=True)
    explainers[1](ROWS, max_evals=100)
    assert counts(plan) == counts(explainers[1].last_estimate)


def test_bad_arguments():
    explainer = shap_ext.RandomOrderExplainer(never, ZEROS)
    with pytest.raises(BudgetError, match="max_evals=2 is too small"):
        explainer.plan(ROWS, max_evals=2)
    with pytest.raises(InvalidArgumentTypeError, match="measure"):
        explainer.plan(ROWS, measure="yes")  # type: ignore[arg-type]
    assert explainer.last_estimate is None


@pytest.mark.parametrize("name", ["random order", "best"])
def test_a_time_is_planned_by_one_call(name):
    row = next(row for row in ESTIMATORS if row.id == name)
    calls = []

    def slow(x):
        calls.append(len(x))
        time.sleep(0.02)
        return curved(x)

    remote = shap_ext.RemoteModel(slow, concurrency=1, rows_per_call=8)
    explainer = row.explainer(remote, ZEROS, seed=0, **row.options)
    with pytest.raises(InvalidArgumentError, match="max_seconds=2 needs the time of the model"):
        explainer.plan(ROWS, max_seconds=2)
    assert calls == []
    for max_seconds in (1.2, 4):
        plan = explainer.plan(ROWS, max_seconds=max_seconds, measure=max_seconds == 1.2)
        assert len(calls) == 1
        assert 0.8 * max_seconds < plan.seconds <= 0.92 * max_seconds
        # A budget that is a quarter larger would not fit.
        more = explainer.plan(ROWS, max_evals=int(1.25 * plan.evaluations.max()))
        assert more.seconds > 0.92 * max_seconds
        assert f"At most: max_seconds={max_seconds:g} pays for" in plan.note
    limited = explainer.plan(ROWS, max_evals=300, max_seconds=60)
    np.testing.assert_array_equal(
        limited.evaluations, explainer.plan(ROWS, max_evals=300).evaluations
    )
    with pytest.raises(BudgetError, match=r"max_seconds=0\.01 is too short: at least \d+ eval"):
        explainer.plan(ROWS, max_seconds=0.01)
    with pytest.raises(InvalidArgumentError, match="max_seconds"):
        explainer.plan(ROWS, max_seconds=-1)
    assert len(calls) == 1
    on_graph = shap_ext.MyersonExplainer(slow, ZEROS, graph="line", seed=0)
    with pytest.raises(InvalidArgumentError, match="cannot be used with"):
        on_graph.plan(ROWS, max_seconds=2, measure=True)


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_a_time_is_planned_in_captum():
    import torch

    def slow(x):
        time.sleep(0.001 * len(x))
        return several(x)

    method = captum_ext.RandomOrder(lambda x: torch.as_tensor(slow(x)), seed=0)
    plan = method.plan(torch.tensor(ROWS), target=1, max_seconds=1, measure=True)
    assert 0.4 < plan.seconds <= 0.92
    assert plan.rows == pytest.approx(3 * plan.evaluations[0], rel=0.1)
