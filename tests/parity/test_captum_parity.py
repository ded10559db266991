"""The captum side against captum's own methods (written with captum 0.9.0) and the oracle."""

from typing import Any

import pytest
import torch
from captum.attr import KernelShap, ShapleyValues, ShapleyValueSampling

from captum_ext import Exact, LeastSquares, RandomOrder, Shear
from tests.captum_host.networks import examples, network

# captum's methods warn (KernelShap of several examples); ours must not.
pytestmark = [pytest.mark.versions, pytest.mark.filterwarnings("error")]

# captum keeps its sums in float32 whatever the model. Outputs of order 0.1, so that 24 orders of
# four steps add up to rounding well below the 1e-6 that is promised.
SCALE = 0.1


def small(n_inputs, n_outputs=1, dtype=torch.float32):
    net = network(n_inputs, n_outputs, dtype=dtype)
    return lambda x: SCALE * net(x)


CALLS: dict[str, dict[str, Any]] = {
    "one output": {"target": 0},
    "targets": {"target": torch.tensor([1, 0, 2])},
    "list of targets": {"target": [1, 0, 2]},
    "all outputs": {},
    "number as baseline": {"target": 1, "baselines": 0.5},
    "tensor as baseline": {"target": 1, "baselines": examples(3, 4, dtype=torch.float32, seed=6)},
    "baseline of one": {"target": 1, "baselines": examples(1, 4, dtype=torch.float32, seed=6)},
    "groups": {"target": 1, "feature_mask": torch.tensor([[0, 1, 0, 2]])},
    "groups of each example": {
        "target": 1,
        "feature_mask": torch.tensor([[0, 1, 0, 2], [0, 0, 1, 2], [2, 1, 0, 0]]),
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_exact_equals_captums_shapley_values(name):
    net, x, call = small(4, 3), examples(3, 4, dtype=torch.float32), CALLS[name]
    made = Exact(net).attribute(x, **call)
    wanted = ShapleyValues(net).attribute(x, **call)
    assert made.shape == wanted.shape
    assert made.dtype == wanted.dtype
    torch.testing.assert_close(made, wanted, rtol=0, atol=1e-6)
    assert wanted.abs().max() > 1e-2  # ten thousand times the tolerance


# Random methods: both sides estimate the same values, so the mean of captum's runs and ours
# differ by their standard errors at most. 5 of them: for 2 × 9 numbers a right estimator fails
# once in about 100,000 choices of seeds, and the seeds are fixed.
N_ERRORS = 5


def captums_runs(run, n_runs):
    """Return the mean and standard error of a method that draws from torch's global state."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = torch.stack([run() for _ in range(n_runs)]).double()
    return made.mean(dim=0), made.std(dim=0) / n_runs**0.5


@pytest.mark.parametrize("method", [RandomOrder, Shear])
def test_random_methods_agree_with_captums_sampling(method):
    net, x = small(9), examples(2, 9, dtype=torch.float32)
    theirs, their_errors = captums_runs(
        lambda: ShapleyValueSampling(net).attribute(
            x, target=0, n_samples=100, perturbations_per_eval=9
        ),
        20,
    )
    made, errors = method(net, seed=0).attribute(
        x, target=0, n_samples=300, return_standard_error=True
    )
    combined = (their_errors**2 + errors.double() ** 2).sqrt()
    assert ((made - theirs).abs() < N_ERRORS * combined).all()
    # The test can tell: the values are many errors apart, so that shuffled ones would not pass.
    assert (theirs.std() > 2 * N_ERRORS * combined).all()
    assert ((made.roll(1, dims=1) - theirs).abs() > N_ERRORS * combined).any()


def test_least_squares_agrees_with_captums_kernel_shap():
    net, x = small(9), examples(1, 9, dtype=torch.float32)
    # The regression is consistent, not unbiased; at 300 samples of 510 coalitions its bias is far
    # below the spread of 10 runs.
    theirs, their_errors = captums_runs(
        lambda: KernelShap(net).attribute(x, target=0, n_samples=300, perturbations_per_eval=100),
        10,
    )
    made, errors = LeastSquares(net, seed=0).attribute(
        x, target=0, n_samples=300, return_standard_error=True
    )
    combined = (their_errors**2 + errors.double() ** 2).sqrt()
    assert ((made - theirs).abs() < N_ERRORS * combined).all()
    assert (theirs.std() > 2 * N_ERRORS * combined).all()
    assert ((made.roll(1, dims=1) - theirs).abs() > N_ERRORS * combined).any()


# Where captum 0.9.0 goes wrong, and we do not. Should a test of this part fail in its assertion
# about captum, captum has been mended: drop that line.


def test_missing_values_do_not_leak():
    x = torch.tensor([[1.0, float("nan"), 2.0]])

    def forward(z):
        return torch.nan_to_num(z, nan=5.0).sum(dim=1)

    made = Exact(forward).attribute(x)
    torch.testing.assert_close(made, torch.tensor([[1.0, 5.0, 2.0]]))
    theirs = ShapleyValues(forward).attribute(x)
    assert not torch.allclose(theirs, made, equal_nan=True)


def test_negative_ids_are_features():
    x = torch.tensor([[1.0, 2.0, 3.0]])
    mask = torch.tensor([[-1, 0, 1]])
    made = Exact(lambda z: z.sum(dim=1)).attribute(x, feature_mask=mask)
    torch.testing.assert_close(made, x)
