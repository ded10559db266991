"""Budgets in rows of the model: coalitions on a part of the background, in both hosts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap
from shap.utils._legacy import DenseData

import shap_ext
from shapley_adapters.errors import BudgetError, InvalidArgumentError, ShapleyExtWarning
from tests.helpers.brute_force import masked_model_values, shapley_values
from tests.helpers.optional import captum_ext, torch

M, B = 7, 30
RNG = np.random.default_rng(0)
X, BACKGROUND = RNG.normal(size=(3, M)), RNG.normal(size=(B, M))
LIMIT = 900  # a quarter of 2^M · B
PLAYERS = RNG.normal(size=(M, M)) * 0.3
SLOPES = RNG.normal(size=M)
ON_GRAPHS = [
    ("lshapley", {"graph": "line", "order": 2}),
    ("lshapley", {"graph": "line", "order": 3, "context": "kept"}),
    ("cshapley", {"graph": "line", "order": 2}),
    ("cshapley", {"graph": "line", "variant": "regression", "order": 2}),
    ("myerson", {"graph": "line"}),
]
SHEARS = [
    ("shear", {"cooperators": "random"}),
    ("shear", {"cooperators": "difference"}),
    pytest.param("shear", {"cooperators": "learned"}, marks=pytest.mark.slow),
]
ESTIMATORS = ["oddgp", "leastsquares", "randomorder", "best"]


class Model:
    """A game with interactions, of two outputs if asked, that counts its rows."""

    def __init__(self, n_outputs=1):
        self.n_outputs = n_outputs
        self.n_rows = 0

    def __call__(self, x):
        x = np.asarray(x.todense() if scipy.sparse.issparse(x) else x, dtype=float)
        self.n_rows += len(x)
        one = np.tanh(x @ PLAYERS).sum(axis=1) + x @ SLOPES + x[:, 0] * x[:, 1] * x[:, 2]
        return one if self.n_outputs == 1 else np.column_stack([one, np.sin(x).sum(axis=1)])

    def forward(self, x):
        return torch.as_tensor(self(x.numpy()))


def exact(background=BACKGROUND, rows=X, weights=None):
    def value(row):
        values = [
            masked_model_values(lambda m: Model()(m), row, background[[b]])
            for b in range(len(background))
        ]
        return lambda coalition: np.average([v(coalition) for v in values], weights=weights)

    return np.array([shapley_values(M, value(row)).ravel() for row in rows])


EXACT = exact()


def explained(algorithm="oddgp", limit=LIMIT, background=BACKGROUND, rows=X, model=None, **options):
    call = {name: options.pop(name) for name in ("interactions", "trace") if name in options}
    explainer = shap.Explainer(model or Model(), background, algorithm=algorithm, **options)
    result = explainer(rows, max_model_rows=limit, error_bounds=True, silent=True, **call)
    return result, explainer.last_estimate


def share_inside(exact, n_seeds, algorithm="oddgp", limit=LIMIT, **options):
    """Return how often the intervals of calls with several seeds hold what is exact."""
    inside = []
    for seed in range(n_seeds):
        _, estimate = explained(algorithm, limit, seed=seed, **options)
        assert (estimate.value_errors > 0).all() and (estimate.model_rows <= limit).all()
        lower, upper = estimate.interval()
        inside.append((lower[..., 0] <= exact) & (exact <= upper[..., 0]))
    return np.mean(inside)


@pytest.mark.parametrize("algorithm", ["leastsquares", "randomorder", "oddgp"])
def test_small_budgets_are_kept_for_any_seed(algorithm):
    """Orders come several times, and each would take draws of its own."""
    for seed in range(25):
        _, estimate = explained(algorithm, 200, rows=X[:1], seed=seed)
        assert estimate.model_rows[0] <= 200


@pytest.mark.parametrize("algorithm", ESTIMATORS)
def test_the_budget_is_kept_and_rows_are_counted(algorithm):
    model = Model()
    _, estimate = explained(algorithm, model=model, seed=0)
    assert (estimate.model_rows <= LIMIT).all()
    n_checks = estimate.check_evaluations * B
    assert model.n_rows == estimate.model_rows.sum() + n_checks
    assert (estimate.value_errors > 0).all()
    assert (estimate.evaluations * B > estimate.model_rows).all()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ESTIMATORS)
def test_intervals_hold_and_sums_are_exact(algorithm):
    ends = Model()(X) - Model()(BACKGROUND).mean()
    sums = explained(algorithm, seed=0)[0].values.sum(axis=1)
    np.testing.assert_allclose(sums, ends, atol=1e-10)
    assert 0.88 < share_inside(EXACT, 12, algorithm) <= 1


@pytest.mark.parametrize(
    ("algorithm", "options"), [("randomorder", {}), *SHEARS[:2], ("myerson", {"graph": "line"})]
)
@pytest.mark.slow
def test_unbiased_methods_stay_unbiased(algorithm, options):
    exact, limit = EXACT, LIMIT
    if algorithm == "myerson":
        whole = shap.Explainer(Model(), BACKGROUND, algorithm=algorithm, seed=0, **options)
        exact, limit = whole(X, max_evals=2**M, silent=True).values, 500
    drawn = np.array(
        [explained(algorithm, limit, seed=seed, **options)[1].values[..., 0] for seed in range(100)]
    )
    spread = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert np.abs((drawn.mean(axis=0) - exact) / spread).max() < 4.5


@pytest.mark.parametrize(("algorithm", "options"), [*ON_GRAPHS, *SHEARS])
def test_graphs_and_shear_on_a_part_of_the_background(algorithm, options):
    """The budget is kept and counted, and intervals hold the value on the whole background."""
    limit, model = 390 if algorithm in ("cshapley", "myerson") else 880, Model()
    whole = shap.Explainer(Model(), BACKGROUND, algorithm=algorithm, seed=0, **options)
    exact = EXACT if algorithm == "shear" else whole(X, max_evals=2**M, silent=True).values
    _, estimate = explained(algorithm, limit, model=model, seed=0, **options)
    assert model.n_rows == estimate.model_rows.sum() + B * estimate.check_evaluations
    assert 0.9 < share_inside(exact, 20, algorithm, limit, **options) < 0.99


@pytest.mark.parametrize("rows_each", [2, 3, 5])
def test_intervals_on_graphs_hold_with_few_rows_for_each_coalition(rows_each):
    """Fewer rows of the model for a background row than players: regressions could interpolate."""
    options = {"graph": "line", "order": 2}
    whole = shap.Explainer(Model(), BACKGROUND, algorithm="lshapley", seed=0, **options)
    exact = whole(X, max_evals=2**M, silent=True).values
    n_inner = int(whole.last_estimate.evaluations.max()) - 2
    limit = B + 1 + rows_each * n_inner
    assert 0.86 < share_inside(exact, 20, "lshapley", limit, **options) < 0.995


@pytest.mark.parametrize(("algorithm", "options"), ON_GRAPHS)
def test_graphs_on_the_whole_background(algorithm, options):
    """With a budget for it, the numbers are those without, to the last bit."""
    explainer = shap.Explainer(Model(), BACKGROUND, algorithm=algorithm, seed=0, **options)
    expected = explainer(X, max_evals=70, silent=True).values
    explanation = explainer(X, max_evals=70, max_model_rows=70 * B, silent=True)
    np.testing.assert_array_equal(explanation.values, expected)
    n_coalitions = explainer.last_estimate.evaluations.max()
    enough = explainer(X, max_evals=70, max_model_rows=int(n_coalitions) * B, silent=True).values
    np.testing.assert_allclose(enough, expected, atol=1e-13)
    assert not explainer.last_estimate.value_errors.any()
    # Two background rows for each coalition are the least.
    fewest = 2 * (int(n_coalitions) - 2) + B + 1
    explainer(X, max_evals=70, max_model_rows=fewest, silent=True)
    assert (explainer.last_estimate.model_rows <= fewest).all()


def test_budgets_that_do_not_pay_for_a_graph():
    with pytest.raises(BudgetError, match=r"max_model_rows=31 is too small.* at least 33"):
        explained("myerson", 31, graph="line")
    with pytest.raises(BudgetError, match=r"With max_model_rows=40, max_evals=6 is too small"):
        explained("lshapley", 40, graph="line", order=2)


def test_the_remedy_for_few_rows_is_more_rows():
    with pytest.warns(ShapleyExtWarning, match=r"order 1 needs .*\. Raise max_model_rows\."):
        explained("lshapley", 80, graph="line")
    words = r"within max_model_rows=300: .* Raise max_model_rows or"
    explainer = shap_ext.RandomOrderExplainer(Model(), BACKGROUND)
    with pytest.warns(ShapleyExtWarning, match=words):
        explainer(X, max_model_rows=300, tolerance=1e-9, silent=True)


@pytest.mark.parametrize(
    ("algorithm", "name", "options"),
    [
        ("oddgp", "OddGP", {}),
        ("lshapley", "LShapley", {"graph": "line", "order": 2}),
        ("cshapley", "CShapley", {"graph": "line", "variant": "regression"}),
        ("myerson", "Myerson", {"graph": "line"}),
        ("shear", "Shear", {"cooperators": "difference"}),
    ],
)
def test_both_hosts_give_the_same_numbers(algorithm, name, options):
    expected, of_shap = explained(algorithm, seed=3, **options)
    method = getattr(captum_ext, name)(Model().forward, seed=3, **options)
    made, errors = method.attribute(
        torch.as_tensor(X),
        baselines=captum_ext.BaselineDistribution(torch.as_tensor(BACKGROUND)),
        max_model_rows=LIMIT,
        return_standard_error=True,
    )
    np.testing.assert_allclose(made.numpy(), expected.values, atol=1e-10)
    np.testing.assert_allclose(errors.numpy(), expected.error_std, atol=1e-10)
    found = method.last_estimate
    np.testing.assert_array_equal(found.model_rows, of_shap.model_rows)
    np.testing.assert_allclose(found.value_errors, of_shap.value_errors, atol=1e-12)


def test_enough_rows_give_todays_numbers():
    full, _ = explained(limit=2**M * B, seed=0)
    np.testing.assert_allclose(full.values, EXACT, atol=1e-10)
    explainer = shap.Explainer(Model(), BACKGROUND, algorithm="oddgp", seed=0)
    by_coalitions = explainer(X, max_evals=100, max_model_rows=100 * B, silent=True).values
    plain = shap.Explainer(Model(), BACKGROUND, algorithm="oddgp", seed=0)(
        X, max_evals=100, silent=True
    )
    np.testing.assert_array_equal(by_coalitions, plain.values)
    one_row = explained(limit=40, background=BACKGROUND[:1], seed=0)[1]
    assert one_row.evaluations.tolist() == [40] * 3


def test_kinds_of_rows_give_the_same_numbers():
    expected = explained(seed=0)[0].values
    columns = [f"x{index}" for index in range(M)]
    frame = pd.DataFrame(X, columns=columns)
    of_frame, _ = explained(
        rows=frame, background=pd.DataFrame(BACKGROUND, columns=columns), seed=0
    )
    np.testing.assert_allclose(of_frame.values, expected, atol=1e-10)
    of_sparse, _ = explained(
        rows=scipy.sparse.csr_matrix(X), background=scipy.sparse.csr_matrix(BACKGROUND), seed=0
    )
    np.testing.assert_allclose(of_sparse.values, expected, atol=1e-10)

    class Masker:
        clustering = None

        def shape(self, _):
            return (B, M)

        def __call__(self, mask, x):
            return (np.where(mask, x, BACKGROUND),)

    # It is called B times for all players, so that fewer other rows are drawn.
    called, _ = explained(background=Masker(), seed=0)
    spread = np.hypot(called.error_std, of_frame.error_std)
    assert (np.abs(called.values - expected) < 4 * spread).mean() > 0.9


def test_weighted_backgrounds():
    summary = shap.kmeans(RNG.normal(size=(200, M)), 20)
    weights = np.asarray(summary.weights)
    truth = exact(np.asarray(summary.data), weights=weights)
    assert 0.85 < share_inside(truth, 12, limit=600, background=summary) <= 1


def test_rows_without_weight_count_for_nothing():
    rows = np.concatenate([RNG.normal(size=(30, M)), 30 * RNG.normal(size=(10, M))])
    summary = DenseData(rows, list(range(M)), None, np.repeat([1.0, 0.0], [30, 10]))
    alone = shap.Explainer(Model(), rows[:30], algorithm="leastsquares", seed=0)
    alone(X, max_model_rows=LIMIT, silent=True, error_bounds=True)
    explained = shap.Explainer(Model(), summary, algorithm="leastsquares", seed=0)
    explained(X, max_model_rows=LIMIT, silent=True, error_bounds=True)
    found, expected = (one.last_estimate.standard_errors for one in (explained, alone))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_rows_workers_and_batches_change_nothing():
    expected = explained(seed=1)[0].values
    alone = explained(rows=X[1:2], seed=1)[0].values
    np.testing.assert_allclose(alone[0], expected[1], atol=1e-12)
    explainer = shap.Explainer(Model(), BACKGROUND, algorithm="oddgp", seed=1)
    few = explainer(X, max_model_rows=LIMIT, batch_size=7, silent=True).values
    np.testing.assert_allclose(few, expected, atol=1e-12)
    shared = shap.Explainer(Model(), BACKGROUND, algorithm="oddgp", seed=1, n_jobs=2)
    np.testing.assert_allclose(
        shared(X, max_model_rows=LIMIT, silent=True).values, expected, atol=1e-12
    )
    # Rows with draws of their own: each as if it were alone.
    own = explained(seed=1, independent_rows=True)[0].values
    one = explained(rows=X[2:], seed=1, independent_rows=True)[0].values
    np.testing.assert_allclose(one[0], own[2], atol=1e-12)


@pytest.mark.parametrize("limit", [300, LIMIT, 2**M * B - 1])
@pytest.mark.parametrize("algorithm", ["oddgp", "leastsquares", "randomorder"])
def test_values_whose_squares_are_no_numbers(algorithm, limit):
    """Values near 1e180, by a power of two, so that all numbers are the same but for it."""
    scale, model = 2.0**600, Model()
    found, estimate = explained(algorithm, limit, seed=0)
    large, of_large = explained(algorithm, limit, model=lambda x: scale * model(x), seed=0)
    np.testing.assert_allclose(large.values / scale, found.values, rtol=1e-9)
    for name in ("standard_errors", "value_errors"):
        ours = getattr(of_large, name) / scale
        np.testing.assert_allclose(ours, getattr(estimate, name), rtol=1e-6, atol=1e-12)


def test_several_outputs_links_and_interactions():
    two, estimate = explained(model=Model(2), seed=0)
    one = explained(seed=0)[0].values
    np.testing.assert_allclose(two.values[..., 0], one, atol=1e-3)
    assert estimate.value_errors.shape == (3, 2)

    def chance(x):
        return 1 / (1 + np.exp(-Model()(x)))

    linked, of_link = explained(model=chance, link=shap.links.logit, seed=0)
    full = shap.Explainer(chance, BACKGROUND, algorithm="oddgp", link=shap.links.logit, seed=0)(
        X, silent=True
    ).values
    lower, upper = of_link.interval()
    assert np.mean((lower[..., 0] <= full) & (full <= upper[..., 0])) > 0.8
    assert linked.values.shape == (3, M)
    with pytest.raises(InvalidArgumentError, match="the link of an average"):
        explained(model=chance, link=shap.links.logit, linearize_link=False)
    pairs, with_pairs = explained(interactions=True, seed=0)
    assert pairs.values.shape == (3, M, M)
    truth = shap.Explainer(Model(), BACKGROUND, algorithm="oddgp", seed=0)(
        X, interactions=True, silent=True
    ).values
    errors = with_pairs.interactions.error_matrices()[..., 0]
    off = ~np.eye(M, dtype=bool)
    z = ((pairs.values - truth) / np.where(errors > 0, errors, 1))[:, off]
    assert np.mean(np.abs(z) < 1.96) > 0.85


@pytest.mark.filterwarnings("ignore:.*tolerance")
def test_units_that_could_end_in_an_enumeration_keep_their_draws():
    """The budget pays for six draws of each coalition. Errors are 21, correlated in each row."""
    explainer = shap.Explainer(Model(), BACKGROUND, algorithm="randomorder", seed=0)
    limit = B + 1 + 6 * (2**M - 2)
    found = explainer(X, max_model_rows=limit, tolerance=1e-6, silent=True)
    z = (found.values - EXACT) / explainer.last_estimate.standard_errors[..., 0]
    assert np.sqrt(np.mean(z**2)) < 2
    assert (explainer.last_estimate.model_rows <= limit).all()


@pytest.mark.filterwarnings("ignore:max_evals=4 is little")
def test_budgets_that_are_too_small_name_the_minimum():
    with pytest.raises(BudgetError, match=r"max_model_rows=32 is too small.* at least ") as found:
        explained(limit=32)
    minimum = found.value.needed or 0
    _, estimate = explained(limit=minimum, seed=0)
    assert estimate.model_rows.max() <= minimum
    with pytest.raises(BudgetError):
        explained(limit=minimum - 1)
    for wrong in (0, -1, 2.5, "many", True):
        with pytest.raises((InvalidArgumentError, TypeError), match="max_model_rows"):
            explained(limit=wrong)
    with pytest.raises((InvalidArgumentError, TypeError), match="repeats"):
        shap.Explainer(Model(), BACKGROUND, algorithm="oddgp")(X, repeats=0)


def test_networks_refuse_it():
    pytest.importorskip("safetensors")
    made = shap_ext.SimShapExplainer(Model(), BACKGROUND, training_data=X)
    with pytest.raises(InvalidArgumentError, match="max_model_rows=9 means nothing"):
        made(X, max_model_rows=9)
