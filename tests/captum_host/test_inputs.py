"""Every form in which captum's users pass inputs, baselines, masks, targets and arguments."""

import pytest
import torch

from captum_ext import Exact, RandomOrder, Shear
from tests.captum_host.networks import examples, network, oracle
from tests.helpers.tolerances import EXACT

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

METHODS = [RandomOrder, Shear]
every_method = pytest.mark.parametrize("method", METHODS)

# All tests with few features have budgets that pay for all coalitions, so that each method is
# exact. Sums of at most 2^6 values of order one, in float64.


def attributed(forward_func, *args, method=Exact, **kwargs):
    return method(forward_func, seed=0).attribute(*args, **kwargs)


# Types and layouts


@every_method
def test_results_of_half_precision_neither_overflow_nor_vanish(method):
    x = torch.ones(1, 4).half()
    for scale in (1.2e5, 1e-9):  # the largest number of float16 is 65,504, the smallest 6e-8
        made = attributed(lambda z, scale=scale: z.float().sum(1) * scale, x, method=method)
        assert made.dtype == torch.float32
        torch.testing.assert_close(made, torch.full((1, 4), scale), rtol=1e-6, atol=0)
    of_groups = attributed(
        lambda z: z.float().sum(1) * 1.2e5, x, method=method, return_input_shape=False
    )
    torch.testing.assert_close(of_groups, torch.full((1, 4), 1.2e5), rtol=1e-6, atol=0)


def test_large_token_ids_stay_whole():
    big = 2**24 + 1  # the first whole number that float32 cannot hold
    ids = torch.tensor([[big, 3]])
    made = attributed(lambda z: (z == big).double().sum(dim=1), ids, baselines=0)
    assert made.tolist() == [[1.0, 0.0]]
    made = attributed(lambda z: (z == big).double().sum(dim=1), ids - 1, baselines=big)
    assert made.tolist() == [[-1.0, -1.0]]


@every_method
def test_empty_tensors_among_the_inputs(method):
    x, nothing = examples(2, 3), torch.zeros(2, 0)

    def forward(a, b):
        assert b.shape == (len(a), 0)
        return a.prod(dim=1) + b.sum(dim=1)

    wanted = attributed(lambda a: a.prod(dim=1), x, method=method)
    for mask in (None, (torch.arange(3)[None], torch.zeros(1, 0, dtype=torch.long))):
        made = attributed(forward, (x, nothing), method=method, feature_mask=mask)
        assert made[1].shape == (2, 0)
        torch.testing.assert_close(made[0], wanted, **EXACT)
    first = attributed(lambda b, a: forward(a, b), (nothing, x), method=method)
    assert first[0].shape == (2, 0)
    torch.testing.assert_close(first[1], wanted, **EXACT)


# Baselines


@every_method
def test_inputs_at_their_baselines_get_nothing_and_cost_nothing(method):
    net, x = network(4), examples(3, 4)
    baseline = examples(3, 4, seed=3)
    baseline[0] = x[0]
    baseline[1, 2] = x[1, 2]
    attribution = method(net, seed=0)
    made = attribution.attribute(x, baselines=baseline)
    assert (made[0] == 0).all()
    assert (made[1, :, 2] == 0).all()
    assert attribution.last_estimate.evaluations.tolist() == [2, 8, 16]
    everything = attribution.attribute(x, baselines=x)
    assert (everything == 0).all()
    assert attribution.last_estimate.evaluations.tolist() == [2, 2, 2]


# Numbers that are not finite must not leak through masking by multiplication.


def missing_is_three(x):
    """Return the output of a model that knows missing and infinite values."""
    return (
        torch.tanh(torch.nan_to_num(x, nan=3.0, posinf=2.0, neginf=-2.0)).prod(dim=1)
        + x.isnan()[:, 0]
    )


@every_method
@pytest.mark.parametrize("side", ["input", "baseline", "both"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")], ids=str)
def test_numbers_that_are_not_finite(method, side, value):
    x, baseline = examples(2, 4), examples(2, 4, seed=3)
    if side != "baseline":
        x[0, 0] = x[1, 2] = value
    if side != "input":
        baseline[0, 1] = baseline[1, 2] = value
    made = attributed(missing_is_three, x, method=method, baselines=baseline)
    (wanted,) = oracle(missing_is_three, (x,), (baseline,))
    torch.testing.assert_close(made, wanted, **EXACT)
    if side == "both":
        assert made[1, 2] == 0


def test_numbers_that_are_not_finite_leave_the_derivatives_of_other_examples_alone():
    x = examples(3, 12)
    x[1, 4] = float("nan")
    attribution = Shear(missing_is_three, seed=0)
    made = attribution.attribute(x, n_samples=300)
    assert attribution.last_estimate.cooperators.tolist() == ["hessian", "difference", "hessian"]
    torch.testing.assert_close(
        made.sum(dim=1), missing_is_three(x) - missing_is_three(0 * x), **EXACT
    )


# Feature masks


@every_method
@pytest.mark.parametrize(
    "mask",
    [[[0, 0, 100, 5000]], [[-1, -7, 0, -1]], [[0, 0, 1, 2], [7, 7, 7, 9], [-3, -3, -3, -3]]],
    ids=["gaps", "negative", "other ids in each example"],
)
def test_masks_cost_what_their_features_cost(method, mask):
    mask = torch.tensor(mask)
    attribution = method(network(4), seed=0)
    attribution.attribute(examples(3, 4), feature_mask=mask)
    wanted = [2 ** len(set(ids)) for ids in mask.expand(3, 4).tolist()]
    assert attribution.last_estimate.evaluations.tolist() == wanted


# Targets


def log_odds(outputs):
    """Return the log-odds of the second class, and a difference of two outputs."""
    chances = outputs.softmax(dim=1)[:, 1]
    return torch.stack([chances.logit(), outputs[:, 0] - outputs[:, 2]], dim=1)


@pytest.mark.parametrize(("method", "per_eval"), [(RandomOrder, 2), (Shear, None)])
def test_functions_of_the_outputs_as_targets(method, per_eval):
    net, x = network(4, 3), examples(3, 4)
    options = {"method": method, "perturbations_per_eval": per_eval}
    made = attributed(net, x, target=log_odds, **options)
    (wanted,) = oracle(lambda z: log_odds(net(z)), (x,), (0 * x,))
    torch.testing.assert_close(made, wanted, **EXACT)
    made = attributed(net, x, target=lambda outputs: outputs[:, 0] - outputs[:, 2], **options)
    torch.testing.assert_close(made, wanted[:, 1], **EXACT)


@every_method
@pytest.mark.parametrize("n_examples", [1, 3])
def test_outputs_of_several_dimensions_come_first_or_are_chosen(method, n_examples):
    net, x = network(4, 6), examples(n_examples, 2, 2)

    def forward(z):
        return net(z.flatten(1)).reshape(-1, 2, 3)

    made, errors = attributed(forward, x, method=method, return_standard_error=True)
    assert made.shape == errors.shape == (n_examples, 2, 3, 2, 2)
    (wanted,) = oracle(forward, (x,), (0 * x,))
    torch.testing.assert_close(made, wanted, **EXACT)
    for target in ((1, 2), [(0, 1), (1, 2), (0, 0)][:n_examples]):
        made = attributed(forward, x, method=method, target=target)
        chosen = target if isinstance(target, list) else [target] * n_examples
        rows = torch.stack([wanted[i, a, b] for i, (a, b) in enumerate(chosen)])
        torch.testing.assert_close(made, rows, **EXACT)
