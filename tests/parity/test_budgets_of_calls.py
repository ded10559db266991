"""What a call takes at most, said before it: held by the call that follows, in both hosts."""

import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.errors import BudgetError, InvalidArgumentError
from tests.helpers.estimator_table import ESTIMATORS, OF_CLASSES, over
from tests.helpers.optional import captum_ext, torch

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(3, 11))
ROWS[1, 2] = 0.0  # a null player
BACKGROUND = RNG.normal(size=(12, 11))
BACKGROUND[:, 2] = 0.0


def curved(x):
    x = np.asarray(x)
    return np.sin(x).sum(axis=1) + x[:, 0] * x[:, 1]


def never(*_):
    raise AssertionError("the model must not be called")


def both(row, background=BACKGROUND[:1], rows=ROWS, **options):
    """The budget of a call, without a model, and the estimate of the call."""
    budget = row.explainer(never, background, seed=0, **row.options).budget_of(rows, **options)
    explainer = row.explainer(curved, background, seed=0, **row.options)
    explainer(rows, silent=True, **options)
    return budget, explainer.last_estimate


def check(budget, made, least=0.5):
    """Compare with the counts of a call, which are less where coalitions or rows coincide."""
    assert budget.evaluations.shape == budget.model_rows.shape == made.evaluations.shape
    assert (made.evaluations <= budget.evaluations).all()
    assert (made.evaluations >= least * budget.evaluations).all()
    assert (made.model_rows <= 1.01 * budget.model_rows).all()  # a unit of draws may take one more
    assert (made.model_rows >= 0.6 * least * budget.model_rows).all()


@pytest.mark.filterwarnings("ignore:.* is little for")
@over(OF_CLASSES)
def test_a_call_takes_its_budget(row):
    check(*both(row, max_evals=row.budget(11, 150)))


@pytest.mark.filterwarnings("ignore:.* is little for")
@over(OF_CLASSES)
def test_a_call_takes_its_budget_in_captum(row):
    rows, budget = torch.tensor(ROWS), row.budget(11, 150)
    said = row.attribution(never, seed=0, **row.options).budget_of(rows, n_samples=budget)
    method = row.attribution(lambda x: torch.as_tensor(curved(x)), seed=0, **row.options)
    method.attribute(rows, n_samples=budget)
    check(said, method.last_estimate)


@pytest.mark.filterwarnings("ignore:.* is little for", "ignore:.*did not reach the tolerance")
@pytest.mark.parametrize(
    "options",
    [{}, {"max_model_rows": 900}, {"repeats": 3, "max_evals": 250}, {"tolerance": 1e-9}],
    ids=str,
)
@over([row for row in OF_CLASSES if row.name in ("OddGP", "RandomOrder", "Semivalue", "Best")])
def test_options_that_decide_the_budget(row, options):
    said, made = both(row, BACKGROUND, **{"max_evals": 150, **options})
    check(said, made, least=0.0 if "tolerance" in options else 0.5)


def test_the_default_saves_rows_of_the_model():
    row = next(row for row in ESTIMATORS if row.id == "best")
    background = RNG.normal(size=(12, 16))  # and too many coalitions to evaluate all of them
    budget, made = both(row, background, background[:2] + 1)
    check(budget, made)
    assert (budget.model_rows <= 500 * 12 / 2).all()


@pytest.mark.parametrize("algorithm", ["lshapley", "cshapley", "myerson", "hierarchy"])
def test_graphs(algorithm):
    nested = {"hierarchy": [[0, 1, 2], list(range(3, 11))]}
    graph = nested if algorithm == "hierarchy" else {"graph": "line"}
    said, explainer = (
        shap_ext.algorithms()[algorithm](model, BACKGROUND, seed=0, **graph)
        for model in (never, curved)
    )
    explainer(ROWS)
    check(said.budget_of(ROWS), explainer.last_estimate)


def test_draws_of_absent_features_and_one_row():
    masker = shap_ext.maskers.Gaussian(RNG.normal(size=(100, 4)), draws=16)
    said, explainer = (
        shap.Explainer(model, masker, algorithm="enumeration", seed=0)
        for model in (never, lambda x: np.asarray(x).prod(axis=1))
    )
    explainer(ROWS[0, :4])
    check(said.budget_of(ROWS[0, :4]), explainer.last_estimate)


def test_bad_arguments():
    explainer = shap_ext.RandomOrderExplainer(never, BACKGROUND)
    with pytest.raises(BudgetError, match="max_evals=2 is too small"):
        explainer.budget_of(ROWS, max_evals=2)


def test_networks_have_no_budget():
    pytest.importorskip("safetensors")
    with pytest.raises(InvalidArgumentError, match="a network is trained first"):
        shap_ext.SimShapExplainer(never, BACKGROUND).budget_of(ROWS)
    with pytest.raises(InvalidArgumentError, match="a network is trained first"):
        captum_ext.SimShap(never).budget_of(torch.tensor(ROWS))
