"""Explaining a remote model through both hosts: same numbers, many calls at once, paid once."""

import time

import numpy as np
import pytest
import shap
from tqdm import tqdm

import shap_ext
from shapley_adapters.errors import ModelOutputError
from shapley_adapters.pipeline import one_round
from tests.helpers.estimator_table import ESTIMATORS
from tests.helpers.optional import HAS_TORCH

ROWS = np.random.default_rng(0).normal(size=(6, 12))
BACKGROUND = np.random.default_rng(1).normal(size=(3, 12))


def model(x):
    return np.array([np.sin(row).sum() + row[0] * row[1] * row[2] for row in np.asarray(x)])


def explained(predict, algorithm="leastsquares", **options):
    explainer = shap.Explainer(predict, BACKGROUND, algorithm=algorithm, seed=0)
    return explainer(ROWS, **{"max_evals": 200, **options})


@pytest.mark.parametrize("algorithm", ["leastsquares", "oddgp", "randomorder", "best"])
def test_numbers_are_those_of_the_model(algorithm):
    remote = explained(shap_ext.RemoteModel(model), algorithm)
    plain = explained(model, algorithm)
    np.testing.assert_array_equal(remote.values, plain.values)
    np.testing.assert_array_equal(remote.base_values, plain.base_values)


def test_other_numbers_of_evaluations_pay_for_what_is_new(tmp_path):
    asked = []

    def call(x):
        asked.extend(row.tobytes() for row in x)
        return model(x)

    arguments = {"memory": tmp_path / "paid.db", "name": "a"}
    first = explained(shap_ext.RemoteModel(call, **arguments))
    n_first = len(asked)
    again = explained(shap_ext.RemoteModel(call, **arguments))
    assert len(asked) == n_first
    np.testing.assert_array_equal(first.values, again.values)
    larger = explained(shap_ext.RemoteModel(call, **arguments), max_evals=300)
    np.testing.assert_array_equal(larger.values, explained(model, max_evals=300).values)
    assert len(set(asked)) == len(asked)


def test_texts_are_paid_for_once_whatever_is_in_their_batch(tmp_path):
    asked = []

    def call(texts):
        asked.extend(texts.tolist())
        return np.array([len(text) + 0.1 * text.count("o") for text in texts])

    remote = shap_ext.RemoteModel(call, memory=tmp_path / "paid.db", name="a")
    explainer = shap.Explainer(
        remote, shap_ext.maskers.TextSegments(mask_token=""), algorithm="hierarchy", seed=0
    )
    texts = ["not so good a film as one hoped", "good film"]
    explainer(texts, silent=True)
    assert len(set(asked)) == len(asked)
    n_asked = len(asked)
    explainer(texts[1:], silent=True)
    explainer(texts[::-1], batch_size=3, silent=True)
    assert len(asked) == n_asked


@pytest.mark.parametrize(
    "row", [row for row in ESTIMATORS if not row.is_exact], ids=lambda row: row.id
)
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
    if row.id.startswith("random order") or row.id == "odd GP, equal weights":
        assert n_new <= 0.53 * n_all


@pytest.mark.parametrize("n_rows", [1, 6])
def test_calls_run_at_the_same_time_within_a_row(n_rows):
    def slow(x):
        time.sleep(0.02)
        return model(x)

    remote = shap_ext.RemoteModel(slow, rows_per_call=2)
    explainer = shap.Explainer(remote, BACKGROUND[:1], algorithm="leastsquares", seed=0)
    started = time.perf_counter()
    explainer(ROWS[:n_rows], max_evals=400)
    seconds = time.perf_counter() - started
    # Of 16 calls at once: benchmarks/remote_models.py has the ratio on an idle machine.
    assert seconds < remote.usage.seconds / 5


@pytest.mark.skipif(not HAS_TORCH, reason="captum needs torch")
def test_captum_takes_it(tmp_path):
    import torch

    import captum_ext

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


def test_one_process_counts_and_holds_the_limits_whatever_n_jobs_is():
    remote = shap_ext.RemoteModel(model, concurrency=4, rate=200)
    explainer = shap.Explainer(remote, BACKGROUND, algorithm="leastsquares", seed=0, n_jobs=2)
    plain = shap.Explainer(model, BACKGROUND, algorithm="leastsquares", seed=0)
    found = explainer(ROWS, max_evals=100).values
    np.testing.assert_array_equal(found, plain(ROWS, max_evals=100).values)
    used = explainer.last_estimate.usage
    assert used == remote.usage
    assert used.rows >= (explainer.last_estimate.model_rows - 2).sum()


def test_coroutine_functions_are_refused_by_name():
    async def model(rows):
        return rows[:, 0]

    with pytest.raises(ModelOutputError, match=r"RemoteModel\(model\)"):
        shap_ext.RandomOrderExplainer(model, BACKGROUND)(ROWS)
    if HAS_TORCH:
        import torch

        import captum_ext

        method = captum_ext.RandomOrder(model)  # type: ignore[arg-type] # async on purpose
        with pytest.raises(ModelOutputError, match=r"RemoteModel\(model\)"):
            method.attribute(torch.as_tensor(ROWS))


def test_a_call_after_an_error_pays_only_for_what_is_missing(tmp_path):
    n_rows, n_most, answered = 0, 1500, []  # of some 3,600 rows: several batches come before

    def breaks(x):
        nonlocal n_rows
        n_rows += len(x)
        if n_rows > n_most:
            raise ConnectionResetError("the server went away")
        answered.extend(row.tobytes() for row in x)
        return model(x)

    memory = {"memory": tmp_path / "paid.db", "name": "a"}
    remote = shap_ext.RemoteModel(breaks, retries=0, **memory)
    with pytest.raises(Exception, match=r"ConnectionResetError: the server went away. What was"):
        explained(remote, batch_size=50)
    assert len(answered) > 1400
    n_most, n_before = 10**9, len(answered)
    again = shap_ext.RemoteModel(breaks, **memory)
    found = explained(again, batch_size=50)
    np.testing.assert_array_equal(found.values, explained(model).values)
    assert again.usage.rows == len(answered) - n_before
    assert len(set(answered)) == len(answered)
    whole = shap_ext.RemoteModel(model, memory=tmp_path / "whole.db", name="a")
    explained(whole)
    assert len(answered) == whole.usage.rows
