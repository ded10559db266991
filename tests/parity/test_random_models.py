"""Models that are not deterministic are warned of, and no others, within the budget."""

import warnings
from typing import Any, cast

import numpy as np
import pytest
import scipy.signal
import shap

from shapley_adapters.coalitions.tables import CoalitionTable
from shapley_adapters.errors import BudgetError, ModelOutputError, ShapleyExtWarning
from shapley_adapters.games.evaluation import Request
from shapley_adapters.pipeline.repetition import Difference
from tests.helpers.estimator_table import OF_CLASSES
from tests.helpers.optional import captum_ext, torch

N_FEATURES = 8
ROWS = np.random.default_rng(0).normal(size=(5, N_FEATURES)) + 2
WARNING = pytest.warns(ShapleyExtWarning, match=r"(?s)not deterministic.*model\.eval\(\)")


class Counted:
    """A model that counts its rows, with noise of a given size."""

    def __init__(self, noise=0.0, kind=np.float64):
        self.noise, self.kind, self.n_rows = noise, kind, 0
        self.rng = np.random.default_rng(1)

    def __call__(self, x):
        self.n_rows += len(x)
        values = np.tanh(np.asarray(x, dtype=self.kind)).sum(axis=1, dtype=self.kind)
        return values + self.noise * self.rng.normal(size=len(x))

    def forward(self, x):
        return torch.as_tensor(self(x.numpy()))


def curved(x):
    return np.tanh(x).sum(axis=1) + x[:, 0] * x[:, 7] * x[:, 3]


def by_shap(model, rows, budget, algorithm="oddgp", background=None, **options):
    background = np.zeros((1, N_FEATURES)) if background is None else background
    explainer = shap.Explainer(model, background, algorithm=algorithm, seed=0, **options)
    explainer(rows, max_evals=budget, silent=True)
    return explainer.last_estimate


def by_captum(model, rows, budget, method="OddGP", **options):
    made = getattr(captum_ext, method)(model.forward, seed=0, **options)
    made.attribute(torch.as_tensor(rows), n_samples=None if budget == "auto" else budget)
    return made.last_estimate


HOSTS = pytest.mark.parametrize("explain", [by_shap, by_captum])


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        *((row.algorithm, {}) for row in OF_CLASSES),
        ("lshapley", {"graph": "line"}),
        ("cshapley", {"graph": "line"}),
        ("myerson", {"graph": "line"}),
    ],
)
def test_every_estimator_is_checked(algorithm, options):
    with WARNING:
        found = by_shap(Counted(noise=0.3), ROWS[:1], "auto", algorithm, **options)
    n_to_explain = 3  # one coalition twice in a batch, between which is another one
    n_most = max(4, 0.05 * found.evaluations.sum()) + n_to_explain
    assert 1 <= found.check_evaluations <= n_most
    found = by_shap(Counted(1e-6), ROWS[:1], "auto", algorithm, **options)
    assert 1 <= found.check_evaluations <= max(4, 0.05 * found.evaluations.sum())


@HOSTS
@pytest.mark.parametrize("budget", [20, 51, 100, 255, 256, 257, 300])
@pytest.mark.parametrize("n_rows", [1, 3])
@pytest.mark.parametrize("rounding", [0.0, 1e-6])
def test_what_is_evaluated_never_exceeds_the_budget(explain, budget, n_rows, rounding):
    model = Counted(rounding)
    found = explain(model, ROWS[:n_rows], budget)
    assert model.n_rows <= budget * n_rows + max(4, 0.05 * budget * n_rows)
    assert model.n_rows == found.evaluations.sum() + found.check_evaluations


@pytest.mark.filterwarnings("ignore:The model is not deterministic")
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("n_features", [0, 1])
def test_rows_of_no_or_of_one_feature_are_repeated(n_features, noise):
    rows = np.zeros((2, N_FEATURES))
    rows[0], rows[1, :n_features] = ROWS[0], 1
    for some in (rows, rows[1:]):
        explainer = shap.Explainer(Counted(noise), np.zeros((1, N_FEATURES)), algorithm="oddgp")
        values = explainer(some, repeats=2, silent=True).values
        assert not values[-1, n_features:].any()
        np.testing.assert_allclose(values[-1].sum(), n_features * np.tanh(1), atol=5 * noise + 1e-9)


@pytest.mark.filterwarnings("ignore:.* did not reach the tolerance")
@pytest.mark.parametrize("algorithm", ["shear", "hierarchy"])
def test_rounds_in_which_no_row_is_done(algorithm):
    """With draws, and designs of each row or of first values."""
    halves = [list(range(4)), list(range(4, 8))]
    options = {"hierarchy": halves} if algorithm == "hierarchy" else {}
    background = np.random.default_rng(3).normal(size=(12, N_FEATURES))
    explainer = shap.Explainer(curved, background, algorithm=algorithm, seed=3, **options)
    found = explainer(ROWS, max_model_rows=600, tolerance=0.05, silent=True)
    np.testing.assert_allclose(
        found.values.sum(axis=1), curved(ROWS) - curved(background).mean(), atol=1e-9
    )


@HOSTS
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rounding_is_not_noise(explain, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explain(Counted(kind=kind), ROWS, 101)
        explain(Counted(noise=1e-6, kind=kind), ROWS, 101)


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32"])
def test_rounding_of_torch_modules_of_any_precision_is_not_noise(kind):
    """Their kernels round differently in batches of different sizes."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, 64) for _ in range(4)]
    net = torch.nn.Sequential(torch.nn.Linear(N_FEATURES, 64), *layers, torch.nn.Linear(64, 3))
    net = net.to(getattr(torch, kind)).eval()
    x = torch.as_tensor(ROWS).to(getattr(torch, kind))
    for n_samples in (51, 101, 1000):
        captum_ext.OddGP(net, seed=0).attribute(x, target=1, n_samples=n_samples)
    background = np.random.default_rng(2).normal(size=(3, N_FEATURES)).astype(np.float32)
    by_shap(net, ROWS.astype(np.float32), 101, background=background)


def test_values_of_each_examples_own_are_not_compared():
    """Two examples with baselines, targets or arguments of their own are different games."""
    x = torch.as_tensor(ROWS[:2])
    method = captum_ext.OddGP(lambda x, *more: x.sum(1) + (more[0] if more else 0), seed=0)
    method.attribute(x, n_samples=100, baselines=torch.stack([x[0] * 0, x[1] * 0 + 9]))
    method.attribute(x, n_samples=100, additional_forward_args=(torch.tensor([0.0, 50.0]),))
    method = captum_ext.OddGP(lambda x: torch.stack([x.sum(1), 9 - x.sum(1)], dim=1), seed=0)
    method.attribute(x, n_samples=100, target=[0, 1])
    method.attribute(x, n_samples=100, target=torch.tensor([0, 1]))


# --- what error bars say of random models ---

WEIGHTS = np.random.default_rng(4).normal(size=N_FEATURES)


def smooth(x):
    return x @ WEIGHTS + x[:, 0] * x[:, 1] + 0.5 * x[:, 2] * x[:, 3] * x[:, 4]


def chance(x):
    return 0.5 + 0.4 * np.tanh(smooth(x) / 2)


def noisy(level, seed, kind="equal"):
    """Return a model with noise, or one whose answers are labels or the means of ten labels."""
    rng = np.random.default_rng(seed)

    def answer(x):
        if kind in N_LABELS:
            return rng.binomial(N_LABELS[kind], chance(x)) / N_LABELS[kind]
        noise = level * rng.normal(size=len(x))
        if kind == "carried":  # from row to row
            noise = 0.3 * scipy.signal.lfilter([1.0], [1.0, -0.95], noise)
        scales = {"growing": 0.3 + x.mean(axis=1), "rare": 3.0 * (rng.random(len(x)) < 0.05)}
        return smooth(x) + noise * scales.get(kind, 1.0) + 1e5 * (kind == "far from 0")

    return answer


N_LABELS = {"labels": 1, "ratings": 10}


def shared_noise():
    rng = np.random.default_rng(0)
    return Joint(lambda x: np.tanh(x).sum(axis=1) + 0.3 * rng.normal())


def exact_of(kind, algorithm="enumeration", **options):
    """Return what is estimated, by all coalitions."""
    explainer = shap.Explainer(
        chance if kind in N_LABELS else smooth, np.zeros((1, N_FEATURES)), algorithm=algorithm,
        seed=0, **options,
    )  # fmt: skip
    return explainer(np.ones((1, N_FEATURES)), max_evals=2**N_FEATURES, silent=True).values[0]


def estimates(algorithm, model_of_seed, n_seeds=30, options=None, **budget):
    """Return the estimates of a row of ones, each with random numbers of its own."""
    found = []
    for seed in range(n_seeds):
        background = np.zeros((1, N_FEATURES))
        explainer = shap.Explainer(
            model_of_seed(seed), background, algorithm=algorithm, seed=seed, **(options or {})
        )
        explainer(np.ones((1, N_FEATURES)), silent=True, **budget)
        found.append(explainer.last_estimate)
    return found


def mean_square(algorithm, level, kind, **budget):
    """Return the mean square of errors over standard errors, of 30 estimates."""
    found = estimates(algorithm, lambda seed: noisy(level, seed, kind), **budget)
    exact = exact_of(kind)
    return np.mean(
        [((one.values[0, :, 0] - exact) / one.standard_errors[0, :, 0]) ** 2 for one in found]
    )


def coverage(algorithm, level, kind="equal", n_seeds=30, options=None, **budget):
    """Return the share of the attributions that 95 % intervals hold."""
    on_graph = options and "graph" in options
    exact = exact_of(kind, algorithm, **options) if on_graph else exact_of(kind)
    found = estimates(algorithm, lambda seed: noisy(level, seed, kind), n_seeds, options, **budget)
    ends = [one.interval() for one in found]
    return np.mean([(low[0, :, 0] <= exact) & (exact <= high[0, :, 0]) for low, high in ends])


@pytest.mark.filterwarnings("ignore:The model is not deterministic")
def test_coalitions_of_a_graph_are_repeated_within_the_budget():
    explainer = shap.Explainer(
        noisy(1.0, 0), np.zeros((1, N_FEATURES)), algorithm="myerson", graph="line", seed=0
    )
    explainer(np.ones((1, N_FEATURES)), max_evals=400, silent=True)
    estimate = explainer.last_estimate
    assert estimate.evaluations[0] == 1 + N_FEATURES * (N_FEATURES + 1) / 2
    assert 0.9 * 400 < estimate.model_rows[0] <= 400


@pytest.mark.filterwarnings("ignore:The model is not deterministic")
def test_random_labels_of_rows_whose_designs_have_different_lengths():
    """SHEAR's designs depend on the row, and rows whose labels differ are solved alone."""
    explainer = shap.Explainer(
        noisy(0.0, 0, "labels"), np.zeros((1, N_FEATURES)), algorithm="shear", seed=0
    )
    explainer(ROWS, max_evals=150, silent=True)
    estimate = explainer.last_estimate
    assert len(set(estimate.evaluations)) > 1 and estimate.value_errors.any()


def test_labels_of_a_deterministic_model_have_no_errors():
    """The values that are looked at twice are 3 %, and change nothing."""
    counted = Counted()

    def label(x):
        return (counted(x) > 1.0).astype(float)

    found = by_shap(label, ROWS[:3], 200)
    assert not found.value_errors.any()
    assert found.check_evaluations == 3 * 6
    assert counted.n_rows == found.evaluations.sum() + found.check_evaluations


@pytest.mark.parametrize(("kind", "n_active"), [("labels", 4), ("labels", 5), ("equal", 3)])
def test_rows_whose_answers_agree_by_chance_have_the_noise_of_others(kind, n_active):
    """With 2^M evaluations. Errors of 0 of such rows, or rows not looked at, made .2 to .6 hold."""
    rows, held = np.zeros((10, N_FEATURES)), []
    rows[:, :n_active] = 1
    exact = by_shap(chance if kind == "labels" else smooth, rows[:1], "auto").values
    for seed in range(6):
        with WARNING:
            found = by_shap(noisy(0.3, seed, kind), rows, 2**n_active)
        assert (found.value_errors > 0).all()
        low, high = found.interval()
        held.append((low <= exact + 1e-9) & (exact - 1e-9 <= high))
    assert np.mean(held) > 0.9


@pytest.mark.parametrize(("n_rows", "budget"), [(1, 40), (5, 90)])
def test_each_row_of_few_labels_is_looked_at_four_times(n_rows, budget):
    found = by_shap(lambda x: (x.sum(axis=1) > 9.0).astype(float), ROWS[:n_rows], budget)
    assert found.check_evaluations == 4 * n_rows and not found.value_errors.any()


def test_repeats():
    model = Counted()
    explainer = shap.Explainer(model, np.zeros((1, N_FEATURES)), algorithm="oddgp", seed=0)
    explainer(ROWS[:2], max_evals=120, repeats=3, silent=True)
    estimate = explainer.last_estimate
    assert model.n_rows == estimate.model_rows.sum() <= 2 * 120
    assert (estimate.evaluations <= 40).all()
    assert estimate.value_errors.max() < 1e-12  # this model gives the same answer three times
    with pytest.raises(BudgetError, match=r"max_evals=20 is too small for a random model"):
        explainer(ROWS[:2], max_evals=20, repeats=10, silent=True)


# Rows that influence each other


def centred(x):
    """Return values that depend on the other rows of a batch."""
    return np.tanh(x).sum(axis=1) - np.tanh(x[:, 0] * x[:, 1]).mean()


def softmax_over_rows(x):
    scores = np.exp(x[:, 0] * x[:, 1])
    return scores / scores.sum()


class Joint:
    def __init__(self, function):
        self.function, self.sizes = function, []

    def __call__(self, x):
        self.sizes.append(len(x))
        return self.function(np.asarray(x))

    def forward(self, x):
        return torch.as_tensor(self(x.numpy()))


INFLUENCE = r"(?s)rows of a batch influence each other.*perturbations_per_eval=1"


@pytest.mark.filterwarnings("error")
def test_one_row_a_call_is_what_the_warning_says():
    def one_by_one(x):
        return np.concatenate([centred(row[None]) for row in x])

    by_shap(one_by_one, ROWS, "auto")
    model = Joint(centred)
    made = captum_ext.Exact(model.forward, seed=0)
    found = made.attribute(torch.as_tensor(ROWS[:1]), perturbations_per_eval=1)
    assert set(model.sizes) == {1}
    wanted = captum_ext.Exact(Joint(one_by_one).forward, seed=0).attribute(
        torch.as_tensor(ROWS[:1])
    )
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("per_eval", [None, 1])
def test_a_model_in_training_mode_that_fails_for_one_row(per_eval):
    net = torch.nn.Sequential(
        torch.nn.Linear(N_FEATURES, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1)
    )
    inputs, forward = torch.as_tensor(ROWS, dtype=torch.float32), lambda x: net(x)
    with pytest.raises(ModelOutputError, match=r"(?s)one of them alone.*model\.eval\(\)"):
        captum_ext.OddGP(forward, seed=0).attribute(inputs, perturbations_per_eval=per_eval)


def test_answers_that_are_often_equal_are_not_taken_for_influence():
    messages = []
    for seed in range(20):
        rng = np.random.default_rng(seed)

        def forward(x, rng=rng):
            return x.tanh().sum(dim=1) + 0.3 * torch.as_tensor(rng.integers(2, size=len(x)))

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            captum_ext.OddGP(forward, seed=0).attribute(torch.as_tensor(ROWS[:1]))
        messages += [str(one.message) for one in caught]
    # Five answers of one coalition are equal with probability 1 / 16, after an equal pair.
    assert sum("The rows of a batch influence" in message for message in messages) <= 3
    assert sum("not deterministic" in message for message in messages) >= 12


@pytest.mark.parametrize(
    ("answers", "cause", "words"),
    [
        ([], "noise", "not deterministic"),  # labels are not asked for again
        ([(0, 9, 1)], "noise", "Error bars include this noise"),
        ([(0, 9, 0), (0,), (1,)], "shared noise", "All rows of a batch share this noise"),
        ([(0, 9, 0), (0,), (0,), (0, 9, 1)], "noise", "not deterministic"),
        ([(0, 9, 0), (0,), (0,), (0, 9, 0), (0,), (1,)], "shared noise", "error bars cannot"),
        ([(2, 9, 2.5), (0,), (0,), (2, 9, 2), (0,), (0,)], "influence", "influence each other"),
        ([(0, 9, 0), (0,), (0,), (1, 9, 1), (0,), (0,)], "noise", "Error bars include"),
        ([(0, 9, 0.5), (0.5,), (0,), (0.5, 9, 0), (0,), (0.5,)], "noise", "Error bars include"),
    ],
)
def test_causes_of_a_difference(answers, cause, words):
    """Values of a coalition, with its complement between or alone; they may differ by 0.5."""
    waiting = list(answers)

    def evaluate(requests):
        ((request,), made) = requests, np.array(waiting.pop(0), dtype=float)
        assert request.table.counts == len(made)
        wanted = [[i % 2 == 0, i % 2 == 1] for i in range(len(made))]
        assert request.table.coalitions.tolist() == [wanted]
        return [np.stack([np.full(len(made), 40.0), made], axis=1)[None]]  # two outputs

    alone = Request(np.array([0]), CoalitionTable(np.array([[[True, False]]]), np.array([1])))
    first = 0.25 if answers else 0
    two = np.array([[40, first], [40, 3]])
    found, n_spent = Difference.explained(two, cast("Any", evaluate), alone, 0.5)
    assert (found.cause, n_spent, waiting) == (cause, sum(map(len, answers)), [])
    with pytest.warns(ShapleyExtWarning, match=words) as caught:
        found.warn()
    assert f"returned {first} and 3 for the same input" in str(caught[0].message)
