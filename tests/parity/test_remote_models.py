"""Explaining a remote model through both hosts: same numbers, many calls at once, paid once."""

import numpy as np
import pytest
import shap
from tqdm import tqdm

import shap_ext
from shapley_adapters.errors import ModelOutputError
from shapley_adapters.pipeline import one_round
from tests.helpers.estimator_table import OF_CLASSES, over
from tests.helpers.optional import HAS_TORCH, captum_ext, torch

ROWS = np.random.default_rng(0).normal(size=(6, 12))
BACKGROUND = np.random.default_rng(1).normal(size=(3, 12))


def model(x):
    return np.array([np.sin(row).sum() + row[0] * row[1] * row[2] for row in np.asarray(x)])


# What `best` takes depends on the time of the model, which a memory changes.
@over([row for row in OF_CLASSES if not row.is_exact and row.id != "best"])
def test_a_larger_budget_equals_the_larger_call(row, tmp_path):
    def explainer(**arguments):
        remote = shap_ext.RemoteModel(model, rows_per_call=200, **arguments)
        return row.explainer(remote, np.zeros((1, 12)), seed=0, **row.options)

    paid = explainer(memory=tmp_path / "paid.db", name="a")
    paid(ROWS[:2], max_evals=200)
    larger = paid(ROWS[:2], max_evals=400)
    plain = explainer()
    np.testing.assert_array_equal(larger.values, plain(ROWS[:2], max_evals=400).values)
    n_new, n_all = paid.last_estimate.usage.rows, plain.last_estimate.usage.rows
    assert n_new < n_all
    # Designs that begin with those of a smaller budget pay for the difference alone.
    if row.id == "random order":
        assert n_new <= 0.53 * n_all


def test_captum_takes_it(tmp_path):
    def forward(x, scale):
        return (x * scale)[:, 0] * x[:, 1] + x.sum(dim=1)

    inputs, scale = torch.tensor(ROWS), torch.arange(6.0)[:, None]
    options = {"additional_forward_args": (scale,), "n_samples": 200}
    plain = captum_ext.LeastSquares(forward, seed=0).attribute(inputs, **options)
    for _ in range(2):
        remote = captum_ext.RemoteModel(forward, memory=tmp_path / "paid.db", name="a")
        found = captum_ext.LeastSquares(remote, seed=0).attribute(inputs, **options)
        torch.testing.assert_close(found, plain, rtol=0, atol=1e-12)
    assert remote.usage.calls == 0


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor, captum_ext.Shared])
def test_arguments_of_all_examples_are_never_divided(kind):
    shared = kind([1.0, 2.0, 3.0, 4.0]) if kind is not captum_ext.Shared else kind(torch.ones(4))
    remote = captum_ext.RemoteModel(lambda x, other: x.sum(dim=1) * len(other), rows_per_call=3)
    for n_rows in (2, 3, 5):  # batches have 4 rows, too
        inputs = torch.tensor(ROWS[:n_rows])
        options = {"additional_forward_args": (shared,), "perturbations_per_eval": 4 // n_rows or 4}
        found = captum_ext.Exact(remote).attribute(inputs, **options)
        torch.testing.assert_close(found, 4 * inputs)


def test_the_estimate_and_the_bar_say_what_was_used(monkeypatch, capsys):
    monkeypatch.setattr(one_round, "tqdm", lambda **options: tqdm(**{**options, "delay": 0}))
    remote = shap_ext.RemoteModel(model, cost=0.25)
    remote(ROWS)
    explainer = shap.Explainer(remote, BACKGROUND, algorithm="oddgp", seed=0)
    explainer(ROWS, max_evals=100, silent=False)
    usage = explainer.last_estimate.usage
    assert usage.rows == remote.usage.rows - len(ROWS)
    assert usage.money == 0.25 * usage.rows
    assert usage.rows >= 6 * 3 * 90
    assert "calls, cost" in capsys.readouterr().err
    plain = shap.Explainer(model, BACKGROUND, algorithm="oddgp", seed=0)
    plain(ROWS, max_evals=100)
    assert plain.last_estimate.usage is None


@pytest.mark.parametrize("algorithm", ["leastsquares", "best"])
def test_one_process_counts_and_holds_the_limits_whatever_n_jobs_is(algorithm):
    remote = shap_ext.RemoteModel(model, concurrency=4)
    explainer = shap.Explainer(remote, BACKGROUND, algorithm=algorithm, seed=0, n_jobs=2)
    plain = shap.Explainer(model, BACKGROUND, algorithm=algorithm, seed=0)
    found, wanted = explainer(ROWS, max_evals=100), plain(ROWS, max_evals=100)
    np.testing.assert_array_equal(found.values, wanted.values)
    np.testing.assert_array_equal(found.base_values, wanted.base_values)
    used = explainer.last_estimate.usage
    assert used == remote.usage
    assert used.rows >= (explainer.last_estimate.model_rows - 2).sum()


def test_coroutine_functions_are_refused_by_name():
    async def model(rows):
        return rows[:, 0]

    with pytest.raises(ModelOutputError, match=r"RemoteModel\(model\)"):
        shap_ext.RandomOrderExplainer(model, BACKGROUND)(ROWS)
    if HAS_TORCH:
        method = captum_ext.RandomOrder(model)  # async on purpose
        with pytest.raises(ModelOutputError, match=r"RemoteModel\(model\)"):
            method.attribute(torch.as_tensor(ROWS))
