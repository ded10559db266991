"""Independent draws through both hosts' doors."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap

import shap_ext
from shapley_adapters.errors import ShapleyExtWarning
from tests.helpers.estimator_table import ESTIMATORS, over
from tests.helpers.optional import captum_ext, name_of, torch

N_FEATURES, BUDGET = 9, 120
RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(N_FEATURES, 12))
ROWS = RNG.normal(size=(6, N_FEATURES)) + 1
LINE: dict[str, Any] = {"graph": "line"}
UNIONS: dict[str, Any] = {"hierarchy": [list(range(N_FEATURES))]}
LISTS: dict[str, Any] = {"order": [0, [1, 2, 3, 4, 5, 6, 7, 8]]}
COMPLETE = scipy.sparse.csr_matrix(1.0 - np.eye(N_FEATURES))
KINDS = [
    *(
        (row.explainer, row.attribution, {"cooperators": "random"} if row.cooperators else {})
        for row in {row.explainer: row for row in ESTIMATORS if not row.is_exact}.values()
    ),
    (shap_ext.MyersonExplainer, captum_ext.Myerson, LINE),
    (shap_ext.HierarchyExplainer, captum_ext.Hierarchy, UNIONS),
    (shap_ext.AsymmetricExplainer, captum_ext.Asymmetric, LISTS),
    (shap_ext.LShapleyExplainer, captum_ext.LShapley, {**LINE, "order": 4}),
    (shap_ext.CShapleyExplainer, captum_ext.CShapley, {"graph": COMPLETE, "order": 1}),
]


def model(x):
    return np.tanh(np.asarray(x) @ WEIGHTS).sum(axis=1)


def forward(x):
    return torch.tanh(x @ torch.as_tensor(WEIGHTS)).sum(dim=1)


def budget_of(kind):
    # All connected sets of a line of 9 features are 45.
    return 40 if "Myerson" in name_of(kind) else BUDGET


@pytest.mark.every_combination
@pytest.mark.parametrize("host", ["shap", "captum"])
@pytest.mark.parametrize(("explainer", "method", "needed"), KINDS, ids=name_of)
def test_rows_with_draws_of_their_own_do_not_depend_on_others(host, explainer, method, needed):
    def explain(rows, **options):
        options |= needed | {"seed": 3}
        if host == "shap":
            made = explainer(model, np.zeros((1, N_FEATURES)), **options)
            return made(rows, max_evals=budget_of(explainer), silent=True).values
        made = method(forward, **options)
        return made.attribute(torch.as_tensor(rows), n_samples=budget_of(method)).numpy()

    own = explain(ROWS, independent_rows=True)
    np.testing.assert_allclose(explain(ROWS[4:], independent_rows=True), own[4:], atol=1e-12)
    shared = explain(ROWS)
    assert not np.allclose(own, shared)
    again = explain(np.concatenate([ROWS[:1], ROWS]), independent_rows=True)
    np.testing.assert_array_equal(again[0], again[1])
    np.testing.assert_array_equal(explain(ROWS, independent_rows=False), shared)


@pytest.mark.parametrize("name", ["cshapley", "lshapley", "myerson"])
@pytest.mark.parametrize("budget", [20, 30, 34])
def test_a_row_is_drawn_or_not_whatever_its_company(name, budget):
    """Also where the draws of some rows share so many coalitions that they would be cheaper."""
    hub = [(0, other) for other in range(1, N_FEATURES)]
    ring = [(one, one % (N_FEATURES - 1) + 1) for one in range(1, N_FEATURES)]
    explainer = shap.Explainer(
        model,
        np.zeros((1, N_FEATURES)),
        algorithm=name,
        seed=0,
        independent_rows=True,
        graph=hub + ring,
    )

    def explain(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapleyExtWarning)  # order 0 is all that fits
            return explainer(rows, max_evals=budget, silent=True).values

    alone = np.concatenate([explain(ROWS[row : row + 1]) for row in range(len(ROWS))])
    np.testing.assert_allclose(explain(ROWS), alone, atol=1e-12)


@over(
    [
        row
        for row in ESTIMATORS
        if row.id in ("random order", "odd GP, learned weights", "least squares, paired, kernel")
    ]
)
def test_both_hosts_draw_alike(row):
    """The same numbers are the same row, whatever holds them."""
    explainer = row.explainer(model, np.zeros((1, N_FEATURES)), seed=1, independent_rows=True)
    by_shap = explainer(ROWS, max_evals=BUDGET, silent=True).values
    without_gradients = lambda x: forward(x.detach())  # noqa: E731, as the model of shap
    method = row.attribution(without_gradients, seed=1, independent_rows=True)
    by_captum = method.attribute(torch.as_tensor(ROWS), n_samples=BUDGET)
    np.testing.assert_allclose(by_captum.numpy(), by_shap, atol=row.learned_rounding)


@pytest.mark.parametrize("name", ["target", "baselines", "additional_forward_args"])
def test_what_belongs_to_an_example_makes_its_draws(name):
    """An example by itself has the same; an equal one has others where this differs."""
    x = torch.as_tensor(ROWS[[0, 0, 1]])
    of_examples = {
        "target": torch.tensor([0, 1, 1]),
        "baselines": torch.as_tensor(ROWS[[3, 4, 5]]) / 2,
        "additional_forward_args": torch.tensor([[0.5], [1.0], [2.0]]),
    }[name]

    def attribute(x, entries):
        method = captum_ext.RandomOrder(
            lambda x, *_: torch.stack([forward(x), forward(x)], dim=1),
            seed=0,
            independent_rows=True,
        )
        return method.attribute(x, n_samples=40, **{"target": 1, name: entries})

    together = attribute(x, of_examples)
    for row in range(3):
        alone = attribute(x[row : row + 1], of_examples[row : row + 1])
        torch.testing.assert_close(alone[0], together[row])
    assert not torch.allclose(together[0], together[1])
    alike = attribute(x[:2], of_examples[[0, 0]])
    assert torch.equal(alike[0], alike[1])


SPARSE = scipy.sparse.csr_matrix(np.where(ROWS > 1, ROWS, 0.0))
FRAME = pd.DataFrame(ROWS).assign(word=["a", "b", "c", "a", "b", None])
TEXTS = ["one two three four five six", "ten nine eight seven six five", "one"]


@pytest.mark.parametrize(
    ("function", "masker", "rows", "budget"),
    [
        (lambda x: np.tanh(x @ WEIGHTS).sum(axis=1), SPARSE[:1] * 0, SPARSE, 20),
        (
            lambda f: model(f[list(range(N_FEATURES))]) * (1 + f["word"].eq("a")),
            FRAME[:1],
            FRAME,
            60,
        ),
        (
            lambda texts: [len(set(text)) ** 1.5 for text in texts],
            shap.maskers.Text(r"\W"),
            TEXTS,
            14,
        ),
    ],
    ids=["sparse rows", "frames with categories", "texts"],
)
def test_rows_in_other_forms(function, masker, rows, budget):
    explainer = shap_ext.RandomOrderExplainer(function, masker, seed=0, independent_rows=True)
    together = explainer(rows, max_evals=budget, silent=True)
    alone = explainer(rows[1:2], max_evals=budget, silent=True)
    np.testing.assert_allclose(together[1].values, alone[0].values)
