"""Models that are not deterministic are warned of, and no others, within the budget."""

import warnings

import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.errors import ShapleyExtWarning
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


@HOSTS
@pytest.mark.parametrize("n_rows", [1, 5])
@pytest.mark.parametrize("budget", ["auto", 101, 1000])
def test_noise_is_warned_of(explain, n_rows, budget):
    """With the default budget, with one that sampling cannot spend, and with more than there is."""
    with WARNING:
        explain(Counted(noise=0.3), ROWS[:n_rows], budget)


@HOSTS
def test_rows_without_features_tell_when_nothing_is_left(explain):
    """An even budget is spent to the last evaluation; five rows hold the same empty coalition."""
    model = Counted(noise=0.3)
    with WARNING:
        found = explain(model, ROWS, 100)
    assert found.check_evaluations == 0
    assert model.n_rows == 5 * 100


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
    assert found.check_evaluations == 2
    by_shap(Counted(), ROWS[:1], "auto", algorithm, **options)


@HOSTS
@pytest.mark.parametrize("budget", [20, 51, 100, 255, 256, 257, 300])
@pytest.mark.parametrize("n_rows", [1, 3])
def test_what_is_evaluated_never_exceeds_the_budget(explain, budget, n_rows):
    model = Counted()
    found = explain(model, ROWS[:n_rows], budget)
    assert model.n_rows <= budget * n_rows
    assert model.n_rows == found.evaluations.sum() + found.check_evaluations


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


def test_dropout_that_hides_behind_a_function():
    """Of a module in training mode the hosts warn by themselves, once."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(N_FEATURES, 32), torch.nn.Dropout(0.5), torch.nn.Linear(32, 1)
    ).double()
    x = torch.as_tensor(ROWS)
    with WARNING:
        captum_ext.RandomOrder(lambda x: net(x), seed=0).attribute(x, n_samples=61)
    with pytest.warns(ShapleyExtWarning) as found:
        captum_ext.RandomOrder(net, seed=0).attribute(x, n_samples=61)
    assert len(found) == 1


def test_one_value_for_the_batch():
    rng = np.random.default_rng(0)

    def total(x):
        return x.tanh().sum() + 0.5 * float(rng.normal())

    with WARNING:
        captum_ext.RandomOrder(total, seed=0).attribute(torch.as_tensor(ROWS))


def test_log_probabilities():
    rng = np.random.default_rng(0)

    def logits(x):
        values = np.tanh(x).sum(axis=1)
        return np.stack([values, -values], axis=1) + rng.normal(size=(len(x), 2))

    explainer = shap_ext.OddGPExplainer(
        logits, np.zeros((1, N_FEATURES)), seed=0, value_function="log_probability"
    )
    with WARNING:
        explainer(ROWS, silent=True)


def test_members_of_aggregates():
    with WARNING:
        explainer = shap.Explainer(
            Counted(noise=0.3),
            np.zeros((1, N_FEATURES)),
            algorithm="centroid",
            explainers=["oddgp", "randomorder"],
            seed=0,
        )
        explainer(ROWS)


def test_values_of_each_examples_own_are_not_compared():
    """Two examples with baselines, targets or arguments of their own are different games."""
    x = torch.as_tensor(ROWS[:2])
    method = captum_ext.OddGP(lambda x, *more: x.sum(1) + (more[0] if more else 0), seed=0)
    method.attribute(x, n_samples=100, baselines=torch.stack([x[0] * 0, x[1] * 0 + 9]))
    method.attribute(x, n_samples=100, additional_forward_args=(torch.tensor([0.0, 50.0]),))
    method = captum_ext.OddGP(lambda x: torch.stack([x.sum(1), 9 - x.sum(1)], dim=1), seed=0)
    method.attribute(x, n_samples=100, target=[0, 1])
    method.attribute(x, n_samples=100, target=torch.tensor([0, 1]))
