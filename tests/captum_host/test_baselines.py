"""Distributions of baselines, and functions that make baselines."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import shap
import torch
from captum.attr import NoiseTunnel
from captum.metrics import sensitivity_max
from torch import nn

import captum_ext
import shap_ext
from captum_ext import BaselineDistribution, Exact, LeastSquares, RandomOrder, Shear
from captum_ext.conditional import Gaussian
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    NonFiniteValueError,
)
from tests.captum_host.networks import Recorder, examples, network, oracle
from tests.helpers.conditional_games import Quadratic, correlated_rows
from tests.helpers.estimator_table import OF_KINDS, over
from tests.helpers.tolerances import EXACT

pytestmark = pytest.mark.filterwarnings("error")

B, DRAWS = 2, 3
X = examples(B, 4)
BACKGROUND = examples(DRAWS, 4, seed=5)


def averaged_oracle(forward_func, inputs, baselines, **more):
    """Return the mean of the oracle's values over the draws; a value's mean is linear in it."""
    draws = [oracle(forward_func, inputs, draw, **more) for draw in zip(*baselines, strict=True)]
    return tuple(torch.stack(parts).mean(dim=0) for parts in zip(*draws, strict=True))


def each_draw(background, n_examples):
    """Return each row of a background as a baseline of all examples."""
    return [row.expand(n_examples, *row.shape) for row in background]


# What is computed


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (RandomOrder, {}),
        (LeastSquares, {}),
        (Shear, {"cooperators": np.arange(144.0).reshape(12, 12)}),
    ],
)
def test_small_budgets_give_the_mean_over_the_single_baselines(method, options):
    # These estimates are linear in the values, and equal seeds evaluate equal coalitions.
    net, x, background = network(12), examples(B, 12), examples(DRAWS, 12, seed=5)
    attribution = method(net, seed=0, **options)
    made = attribution.attribute(x, baselines=background, n_samples=100)
    assert attribution.last_estimate.evaluations.max() <= 100
    each = [attribution.attribute(x, baselines=one[None], n_samples=100) for one in background]
    torch.testing.assert_close(made, torch.stack(each).mean(dim=0), **EXACT)


@over(OF_KINDS[:2])
def test_inputs_may_differ_in_how_their_baselines_are_given(row):
    x, y, z = examples(B, 2), examples(B, 2, 1, seed=2), torch.tensor([[1], [2]])

    def forward(a, b, c):
        return a.prod(dim=1) * torch.tanh(b).sum(dim=(1, 2)) + c[:, 0] * a[:, 0] * b[:, 0, 0]

    of_x, of_y = examples(DRAWS, 2, seed=5), examples(B, 2, 1, seed=6)
    made = row.attribution(forward, seed=0, **row.options).attribute(
        (x, y, z), baselines=(of_x, of_y, 7)
    )
    full = (each_draw(of_x, B), [of_y] * DRAWS, [torch.full_like(z, 7)] * DRAWS)
    for part, wanted in zip(made, averaged_oracle(forward, (x, y, z), full), strict=True):
        torch.testing.assert_close(part, wanted, **EXACT)


# What it costs


def test_features_that_equal_all_baselines_cost_nothing():
    x, background = X.clone(), BACKGROUND.clone()
    background[:, 1] = x[:, 1] = 0.5  # constant, and the input's
    background[:, 2] = x[:, 2] = float("nan")  # missing everywhere
    background[:, 3] = 0.25  # constant, and not the input's
    background[0, 0] = x[0, 0]  # varies
    method = Exact(lambda z: torch.nan_to_num(z, nan=3.0).prod(dim=1))
    made = method.attribute(x, baselines=background)
    assert method.last_estimate.evaluations.tolist() == [4, 4]
    assert (made[:, [0, 3]] != 0).all()
    assert (made[:, [1, 2]] == 0).all()


@pytest.mark.parametrize("per_eval", [1, 2, 7, 1000])
@pytest.mark.parametrize("method", [Exact, Shear])
def test_perturbations_per_eval_bounds_rows_and_changes_nothing(method, per_eval):
    net = network(4)
    forward = Recorder(net)
    attribution = method(forward, seed=0)
    made = attribution.attribute(X, baselines=BACKGROUND, perturbations_per_eval=per_eval)
    assert max(forward.sizes) <= per_eval * B
    n_checked = attribution.last_estimate.check_evaluations
    assert sum(forward.sizes) == (16 * B + n_checked) * DRAWS
    torch.testing.assert_close(
        made, method(net, seed=0).attribute(X, baselines=BACKGROUND), **EXACT
    )


def test_batches_stay_full_and_bounded_where_there_are_many_draws():
    # 200 draws of 40,000 numbers in float64: 64 MiB, the bound, hold 209 rows.
    forward = Recorder(lambda x: x.sum(dim=1))
    background = examples(200, 1, seed=5).expand(200, 40_000)
    mask = torch.arange(40_000)[None] // 20_000
    Exact(forward).attribute(
        examples(1, 1).expand(1, 40_000), baselines=background, feature_mask=mask
    )
    assert sum(forward.sizes) == (4 + 4) * 200  # four to check that it is deterministic
    # The first call holds the example once.
    assert forward.sizes[0] == 1
    assert max(forward.sizes) * 40_000 * 8 <= 2**26
    assert len(forward.sizes) <= 1 + (4 + 4) * 4


def test_draws_are_split_when_memory_runs_out():
    net = network(4)

    def forward(x):
        if len(x) > 5:
            raise RuntimeError("out of memory")
        return net(x)

    background = examples(23, 4, seed=5)
    made = Exact(forward).attribute(X, baselines=background)
    wanted = Exact(net).attribute(X, baselines=background)
    torch.testing.assert_close(made, wanted, **EXACT)


# Derivatives


@pytest.mark.parametrize("cooperators", ["hessian", "gradient"])
def test_shear_finds_cooperators_over_a_distribution(cooperators):
    def forward(x):  # players work together in pairs
        return sum(torch.tanh(x[:, i] * x[:, i + 6]) for i in range(6))

    x, background = examples(B, 12), examples(DRAWS, 12, seed=5)
    method = Shear(forward, seed=0, cooperators=cooperators)
    made = method.attribute(x, baselines=background, n_samples=200)
    assert set(method.last_estimate.cooperators) == {cooperators}
    # One cooperator says it all, so that nothing is left to chance.
    wanted = Exact(forward).attribute(x, baselines=background)
    torch.testing.assert_close(made, wanted, **EXACT)


# Functions


@pytest.mark.parametrize("takes_inputs", [False, True])
@pytest.mark.parametrize("as_pair", [False, True])
def test_functions_are_called_once_with_the_container_of_the_inputs(takes_inputs, as_pair):
    inputs = (X, examples(B, 2, seed=2)) if as_pair else X
    baselines = (BACKGROUND, examples(B, 2, seed=3)) if as_pair else BACKGROUND
    calls: list[Any] = []

    def of_inputs(given):
        calls.append(given)
        return baselines

    def forward(a, b=None):
        return a.prod(dim=1) * (1 if b is None else b[:, 0])

    function = of_inputs if takes_inputs else lambda: of_inputs(None)
    made = Exact(forward).attribute(inputs, baselines=function)
    torch.testing.assert_close(calls, [inputs if takes_inputs else None], rtol=0, atol=0)
    wanted = Exact(forward).attribute(inputs, baselines=baselines)
    torch.testing.assert_close(made, wanted, rtol=0, atol=0)


def test_errors_of_the_function_itself_are_not_dressed_up():
    def function(_given):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Exact(network(4)).attribute(X, baselines=function)


# In captum's tools


def test_marked_distributions_stay_so_where_sensitivity_lengthens_batches():
    # Two perturbations of each of two examples: as many as baselines.
    net, background = network(4), BaselineDistribution(examples(4, 4, seed=5))
    method = Exact(net)
    sizes = []

    def explain(inputs, baselines):
        sizes.append(len(inputs[0]))
        made = method.attribute(inputs, baselines=baselines, target=0)
        plain = baselines.as_subclass(torch.Tensor)
        (wanted,) = averaged_oracle(net, inputs, (each_draw(plain, len(inputs[0])),))
        torch.testing.assert_close(made[0], wanted[:, 0], **EXACT)
        return made

    found = sensitivity_max(explain, X, baselines=background, n_perturb_samples=2)
    assert sizes == [2, 4]
    assert (found > 0).all()


def test_noise_tunnels_draw_from_a_distribution():
    linear = nn.Linear(4, 1).double()
    same = X[:1].expand(DRAWS, 4)  # whichever row is drawn, it is this one
    made = NoiseTunnel(Exact(linear)).attribute(
        X, baselines=same, draw_baseline_from_distrib=True, nt_samples=5, stdevs=0.0, target=0
    )
    wanted = Exact(linear).attribute(X, baselines=X[:1], target=0)
    torch.testing.assert_close(made, wanted, **EXACT)


def test_marked_tensors_copy_and_pickle():
    marked = BaselineDistribution(BACKGROUND)
    for twin in (copy.deepcopy(marked), pickle.loads(pickle.dumps(marked)), marked.float()):
        assert isinstance(twin, BaselineDistribution)
        assert twin.shape == BACKGROUND.shape
    assert torch.equal(copy.deepcopy(marked), BACKGROUND)


def test_a_draw_that_is_not_finite_is_not_averaged_away():
    background = BACKGROUND.clone()
    background[1, 0] = float("inf")
    with pytest.raises(NonFiniteValueError):
        Exact(lambda x: x.sum(dim=1)).attribute(X, baselines=background)


@pytest.mark.parametrize("kind", ["row", "distribution"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_zeros_of_two_signs_differ(kind, dtype):
    def by_angle(x):
        return torch.atan2(x[:, 0], torch.full_like(x[:, 0], -1.0)) * (1 + x[:, 1])

    given, absent = (
        torch.tensor([[-0.0, 2.0]], dtype=dtype),
        torch.tensor([[0.0, 1.0]], dtype=dtype),
    )
    baselines = absent if kind == "row" else BaselineDistribution(absent.repeat(2, 1))
    found = Exact(by_angle).attribute(given, baselines=baselines)
    # The first feature turns the angle from π to -π, beside a factor of 2 or of 3.
    assert found[0, 0].item() == pytest.approx(-5 * np.pi, rel=1e-2)
    assert found[0, 1].item() == pytest.approx(0.0, abs=0.05)


# --- drawn given the present features: the same numbers as in shap ---


DATA = correlated_rows(500, 6, seed=0)
TENSOR, FIRST = torch.as_tensor(DATA), torch.as_tensor(DATA[:3])
MODEL = Quadratic(6, seed=0)
DISTRIBUTIONS = [
    "Gaussian", "Causal", "Copula", "Empirical", "Categorical", "Forest", "Sampled",
]  # fmt: skip


def quadratic(x):
    return torch.as_tensor(MODEL(x.reshape(len(x), -1).numpy()))


@pytest.mark.parametrize(
    ("name", "method", "algorithm", "budget"),
    [
        ("Gaussian", "LeastSquares", "leastsquares", 50),
        *((name, "Exact", "enumeration", None) for name in DISTRIBUTIONS),
    ],
)
def test_both_hosts_give_the_same_numbers(name, method, algorithm, budget):
    first = (lambda mask, row, n, rng: rng.normal(size=(n, 6)),) if name == "Sampled" else ()
    more = {"order": [3, [1, 0], 2, [4, 5]]} if name == "Causal" else {}
    data = {"Categorical": DATA.round(), "Forest": DATA[:60]}.get(name, DATA)
    baselines = getattr(captum_ext.conditional, name)(
        *first, torch.as_tensor(data), draws=8, **more
    )
    masker = getattr(shap_ext.maskers, name)(*first, data, draws=8, **more)
    made = getattr(captum_ext, method)(quadratic, seed=0)
    found = made.attribute(torch.as_tensor(data[:2]), baselines=baselines, n_samples=budget)
    explainer = shap.Explainer(MODEL, masker, algorithm=algorithm, seed=0)
    other = explainer(data[:2], max_evals=budget or "auto", silent=True)
    np.testing.assert_allclose(found.numpy(), other.values, rtol=1e-9, atol=1e-12)
    fits = made.last_estimate.fit_errors, explainer.last_estimate.fit_errors
    np.testing.assert_allclose(*fits, rtol=1e-6)
    assert (fits[0] > 0).all() == (name != "Sampled")


def test_conditional_means_of_both_hosts():
    mean = captum_ext.conditional.ConditionalMean(quadratic, TENSOR.reshape(-1, 3, 2))
    method, examples = captum_ext.Exact(mean, seed=0), TENSOR[:2].reshape(-1, 3, 2)
    found = method.attribute(examples, baselines=mean.reference)
    other = shap_ext.models.ConditionalMean(MODEL, DATA)
    explainer = shap.Explainer(other, other.reference, algorithm="enumeration", seed=0)
    np.testing.assert_allclose(found.reshape(2, 6).numpy(), explainer(DATA[:2]).values, atol=1e-9)


def test_graphs_and_asymmetric_values_of_both_hosts():
    edges, tree = [(3, (0, 1)), ((0, 1), 4)], [(3, 0), (3, 1)]
    options: dict[str, Any] = {"graph": edges, "confounded": [(0, 1)], "draws": 8}
    baselines = captum_ext.conditional.Causal(TENSOR, **options)
    method = captum_ext.Asymmetric(quadratic, seed=0, graph=tree)
    found = method.attribute(FIRST, baselines=baselines, n_samples=30)
    masker = shap_ext.maskers.Causal(DATA, **options)
    explainer = shap.Explainer(MODEL, masker, algorithm="asymmetric", graph=tree, seed=0)
    other = explainer(DATA[:3], max_evals=30, silent=True)
    np.testing.assert_allclose(found.numpy(), other.values, rtol=1e-9, atol=1e-12)


def test_shapes_masks_targets_and_value_functions():
    """Examples (3, 2) in three groups, two outputs, of which one is chosen or compared."""

    def two_outputs(x):
        value = quadratic(x)
        return torch.stack([value, -value], dim=1)

    pairs, groups = TENSOR.reshape(-1, 3, 2), torch.tensor([[[0, 0], [1, 1], [2, 2]]])
    baselines = Gaussian(pairs, draws=256)
    plain = captum_ext.Exact(lambda x: 2 * quadratic(x), seed=0)
    margin = captum_ext.Exact(
        two_outputs, seed=0, value_function=captum_ext.ValueFunction("margin", classes=(0, 1))
    )
    chosen = captum_ext.Exact(two_outputs, seed=0)
    arguments = {"baselines": baselines, "feature_mask": groups}
    found = plain.attribute(FIRST.reshape(3, 3, 2), **arguments)
    assert found.shape == (3, 3, 2)
    (in_tuple,) = plain.attribute((FIRST.reshape(3, 3, 2),), (baselines,), feature_mask=groups)
    assert torch.equal(in_tuple, found)
    np.testing.assert_allclose(
        margin.attribute(FIRST.reshape(3, 3, 2), **arguments), found, rtol=1e-9
    )
    np.testing.assert_allclose(
        chosen.attribute(FIRST.reshape(3, 3, 2), target=0, **arguments), found / 2, rtol=1e-9
    )
    single = chosen.attribute(FIRST.reshape(3, 3, 2).float(), target=0, **arguments)
    assert single.dtype == torch.float64  # of the output
    np.testing.assert_allclose(single, found / 2, atol=0.01 * found.abs().max())  # other shifts


def test_bad_distributions():
    method = captum_ext.Exact(quadratic, seed=0)
    baselines = Gaussian(TENSOR)
    with pytest.raises(InvalidArgumentTypeError, match="data must be a tensor of examples"):
        Gaussian(DATA)
    with pytest.raises(InvalidArgumentError, match=r"draws examples of the shape \(6,\)"):
        method.attribute(FIRST[:, :5], baselines=baselines)
    with pytest.raises(InvalidArgumentTypeError, match=r"Pass inputs\.float\(\)"):
        method.attribute(FIRST.long(), baselines=baselines)
    with pytest.raises(InvalidArgumentError, match="one value for the whole batch"):
        captum_ext.Exact(lambda x: quadratic(x).sum(), seed=0).attribute(FIRST, baselines=baselines)


def test_criteria_of_both_hosts():
    baselines, masker = Gaussian(TENSOR, draws=8), shap_ext.maskers.Gaussian(DATA, draws=8)
    found = captum_ext.criteria.mse_v(quadratic, FIRST, baselines=baselines)
    other = shap_ext.criteria.mse_v(MODEL, masker, DATA[:3])
    np.testing.assert_allclose(found.of_rows, other.of_rows, rtol=1e-9)
    found = captum_ext.criteria.energy_score(FIRST, baselines)
    other = shap_ext.criteria.energy_score(masker, FIRST.numpy())
    np.testing.assert_allclose(found.of_rows, other.of_rows, rtol=1e-9)
    with pytest.raises(InvalidArgumentTypeError, match="baselines must be a distribution"):
        captum_ext.criteria.energy_score(FIRST, TENSOR)  # type: ignore[arg-type]
