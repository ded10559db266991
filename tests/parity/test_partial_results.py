"""What a call leaves that an error or Ctrl-C ended: finished rows, and estimates of others."""

from functools import cache

import joblib
import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.errors import NonFiniteValueError, RemoteCallError, WorkerError
from tests.helpers.brute_force import masked_model_values, shapley_values
from tests.helpers.estimator_table import ESTIMATORS
from tests.helpers.optional import HAS_TORCH, captum_ext

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(8, 9))
ZEROS = np.zeros((1, 9))
BACKGROUND = RNG.normal(size=(5, 9))


def curved(x):
    return np.sin(x).sum(axis=1) + x[:, 0] * x[:, 1] * x[:, 2] + np.exp(x[:, 3] * x[:, 4] / 2)


@cache
def exact_values(row):
    return shapley_values(9, masked_model_values(curved, ROWS[row], ZEROS))


class Ends:
    """A model that raises an error once it was asked for so many rows."""

    def __init__(self, n_rows, error=KeyboardInterrupt):
        self.n_left, self.error = n_rows, error

    def __call__(self, x):
        self.n_left -= len(x)
        if self.n_left < 0:
            raise self.error
        return curved(np.asarray(x))


def ended(explainer, *args, error=KeyboardInterrupt, **options):
    """The partial result of a call that ends by an error."""
    with pytest.raises(error) as raised:
        explainer(*args, silent=True, **options)
    assert raised.value.partial is explainer.last_partial
    if explainer.last_partial.result is not None and hasattr(raised.value, "add_note"):
        assert "rows are finished" in raised.value.__notes__[-1]
    assert explainer.last_estimate is None
    return explainer.last_partial


@pytest.mark.filterwarnings("ignore:.* is little for")
@pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: row.id)
def test_finished_rows_are_those_of_the_whole_call(row):
    budget = row.budget(9, 130)
    whole = row.explainer(curved, ZEROS, seed=0, **row.options)
    has_errors = row.options.get("complement") != "none"
    wanted = whole(ROWS, max_evals=budget, error_bounds=has_errors)
    # SHEAR spends 45 evaluations of each row on its scores first.
    n_scores = 45 * (row.cooperators in ("auto", "difference"))
    n_rows = 16 + 8 * n_scores + 3.5 * (whole.last_estimate.evaluations.mean() - n_scores)
    stops = row.explainer(Ends(n_rows), ZEROS, seed=0, **row.options)
    partial = ended(stops, ROWS, max_evals=budget, batch_size=20)
    is_finished = partial.are_finished
    assert 1 <= is_finished.sum() <= 6
    finished = partial.rows[is_finished]
    np.testing.assert_array_equal(partial.result.values[is_finished], wanted.values[finished])
    if has_errors:
        found = partial.result.error_std[is_finished]
        np.testing.assert_array_equal(found, wanted.error_std[finished])
    np.testing.assert_array_equal(partial.result.data, ROWS[partial.rows])
    assert np.isnan(partial.estimate.values[np.setdiff1d(range(8), partial.rows)]).all()
    begun = partial.rows[~is_finished]
    evaluations = partial.estimate.evaluations[begun]
    assert (evaluations < whole.last_estimate.evaluations[begun]).all()
    if has_errors and len(begun):
        # Nine players of few rows: their mean square has a relative error of a third or more.
        exact = np.stack([exact_values(number) for number in begun])
        squares = (partial.result.values[~is_finished] - exact) ** 2
        assert squares.mean() < 9 * (partial.result.error_std[~is_finished] ** 2).mean()


def test_a_row_that_was_begun_has_the_estimate_of_a_trace():
    options = {"algorithm": "randomorder", "seed": 0}
    stops = shap.Explainer(Ends(16 + 66), ZEROS, **options)
    partial = ended(stops, ROWS[:1], max_evals=200, batch_size=2)
    assert not partial.are_finished.any()
    n = partial.estimate.evaluations[0]
    assert 50 < n < 90
    whole = shap.Explainer(curved, ZEROS, **options)
    whole(ROWS[:1], max_evals=200, trace=True)
    trace = whole.last_estimate.trace
    points = trace.evaluations[0]
    below, above = np.flatnonzero(points <= n)[-1], np.flatnonzero(points >= n)[0]
    errors = partial.result.error_std.mean()
    bounds = trace.standard_errors[0, :, [below, above], 0].mean(axis=1)
    assert 0.5 * bounds.min() < errors < 2 * bounds.max()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
def test_rows_of_a_hierarchy_that_was_begun_have_an_estimate(share):
    """Each of its rounds follows from the values of the one before."""
    options = {"algorithm": "hierarchy", "seed": 0}
    options["hierarchy"] = [[[0, 1, 2], [3, 4]], [[5, 6], [7, 8]]]
    wanted = shap.Explainer(curved, ZEROS, **options)(ROWS, max_evals=40, error_bounds=True)
    stops = shap.Explainer(Ends(8 * (5 + 35 * share)), ZEROS, **options)
    partial = ended(stops, ROWS, max_evals=40, batch_size=8)
    assert partial.rows.tolist() == list(range(8))
    assert not partial.are_finished.any()
    values, errors = partial.result.values, partial.result.error_std
    np.testing.assert_allclose(values.sum(axis=1), wanted.values.sum(axis=1), atol=1e-10)
    assert (errors**2).sum() > (wanted.error_std**2).sum()
    assert 0.1 < ((values - wanted.values) ** 2).sum() / (errors**2).sum() < 4


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": 1e-6, "max_evals": 400},
        {"max_model_rows": 300},
        {"interactions": True},
        {"trace": True},
        {"repeats": 2},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*did not reach the tolerance")
def test_options_of_the_call(options):
    options = {"max_evals": 120, **options}
    whole = shap_ext.OddGPExplainer(curved, BACKGROUND, seed=0)
    wanted = whole(ROWS, **options)
    n_rows = whole.last_estimate.model_rows.sum() * 2 // 3
    stops = shap_ext.OddGPExplainer(Ends(n_rows), BACKGROUND, seed=0)
    partial = ended(stops, ROWS, batch_size=20, **options)
    assert len(partial.rows)
    finished = partial.rows[partial.are_finished]
    found = partial.result.values[partial.are_finished]
    np.testing.assert_array_equal(found, wanted.values[finished])
    assert partial.result.error_std is not None


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
@pytest.mark.parametrize("as_tuple", [False, True])
def test_captum_has_tensors(as_tuple):
    import torch

    rows = torch.tensor(ROWS)
    inputs = (rows[:, :4], rows[:, 4:]) if as_tuple else rows

    def joined(*x):
        return torch.as_tensor(curved(torch.cat(x, dim=1).numpy()))

    wanted = captum_ext.LeastSquares(joined, seed=0).attribute(inputs, n_samples=100)
    stops = Ends(16 + 350, RuntimeError("no more"))
    method = captum_ext.LeastSquares(
        lambda *x: torch.as_tensor(stops(torch.cat(x, dim=1).numpy())), seed=0
    )
    with pytest.raises(RuntimeError, match="no more") as raised:
        method.attribute(inputs, n_samples=100, perturbations_per_eval=1)
    partial = method.last_partial
    assert vars(raised.value)["partial"] is partial
    values, errors = partial.result
    finished = partial.rows[partial.are_finished]
    assert 1 <= len(finished) < 8
    for found, of_errors, whole in zip(
        *((one if as_tuple else (one,)) for one in (values, errors, wanted)), strict=True
    ):
        torch.testing.assert_close(found[partial.are_finished], whole[finished], rtol=0, atol=0)
        assert found.shape == of_errors.shape


def test_remote_models_leave_what_came_before():
    model = shap_ext.RemoteModel(Ends(16 + 800, ValueError("quota")), rows_per_call=5)
    explainer = shap_ext.LeastSquaresExplainer(model, ZEROS, seed=0)
    partial = ended(explainer, ROWS, error=RemoteCallError, max_evals=150, batch_size=100)
    assert partial.are_finished.sum() >= 2
    assert partial.estimate.usage.rows <= 16 + 800
    assert partial.estimate.usage.calls > 100


@pytest.mark.parametrize("has_memory", [False, True])
def test_a_batch_that_failed_has_the_answers_before_the_failure(has_memory, tmp_path):
    """All evaluations of the row are one batch."""
    stops = Ends(2 * 5 + 300, ValueError("quota"))
    arguments = {"memory": tmp_path / "paid.db", "name": "a"} if has_memory else {}
    model = shap_ext.RemoteModel(stops, rows_per_call=4, concurrency=32, **arguments)
    explainer = shap_ext.RandomOrderExplainer(model, BACKGROUND, seed=0)
    partial = ended(explainer, ROWS[:1], error=RemoteCallError, max_evals=180)
    n = int(partial.estimate.evaluations[0])
    assert 40 <= n <= 62  # five rows of the model each, in whole orders
    n_calls = model.usage.calls
    whole = shap_ext.RandomOrderExplainer(curved, BACKGROUND, seed=0)
    whole(ROWS[:1], max_evals=n)
    np.testing.assert_allclose(
        partial.estimate.values, whole.last_estimate.values, rtol=0, atol=1e-12
    )
    assert model.usage.calls == n_calls
    assert partial.result.error_std is not None


def test_workers_leave_the_rows_of_finished_chunks():
    many = np.random.default_rng(1).normal(size=(400, 9))

    def model(x):
        if ((x == many[390]).sum(axis=1) == 5).any():  # not among the values of all features
            raise ValueError("no such row")
        return curved(x)

    explainer = shap_ext.LeastSquaresExplainer(model, ZEROS, seed=0, n_jobs=2)
    with joblib.parallel_config("threading"):
        partial = ended(explainer, many, error=WorkerError, max_evals=100, batch_size=400)
    assert partial.are_finished.all()
    assert 390 not in partial.rows


def test_an_error_before_any_row_leaves_the_call_as_it_was():
    explainer = shap_ext.LeastSquaresExplainer(Ends(3), ZEROS, seed=0)
    with pytest.raises(KeyboardInterrupt) as raised:
        explainer(ROWS, max_evals=100)
    assert explainer.last_partial is None
    assert not hasattr(raised.value, "partial")
    explainer = shap_ext.LeastSquaresExplainer(Ends(20), ZEROS, seed=0)
    partial = ended(explainer, ROWS, max_evals=100)
    assert partial.result is None
    assert repr(partial) == "Partial(0 of 8 rows finished, 0 estimated from less)"
    explainer.model.n_left = 3
    with pytest.raises(KeyboardInterrupt):
        explainer(ROWS, max_evals=100)
    assert explainer.last_partial is None  # not that of the call before


def test_numbers_that_are_not_finite():
    def model(x):
        return np.where((x == ROWS[6]).sum(axis=1) == 5, np.nan, curved(x))

    explainer = shap_ext.RandomOrderExplainer(model, ZEROS, seed=0)
    partial = ended(explainer, ROWS, error=NonFiniteValueError, max_evals=100, batch_size=25)
    assert 4 <= partial.are_finished.sum() <= 6
