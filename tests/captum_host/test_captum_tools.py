"""captum's tools around our methods: NoiseTunnel and metrics.

Four features, so that the default budget pays for all coalitions, and captum's own exact method
tells what each tool has to return. captum's tools are written for float32, and so are these tests.
"""

import pytest
import torch
from captum.attr import NoiseTunnel, ShapleyValues
from captum.metrics import sensitivity_max

from tests.captum_host.networks import examples, network
from tests.helpers.estimator_table import OF_KINDS
from tests.helpers.tolerances import Tolerances

pytestmark = pytest.mark.filterwarnings("error")

ROUNDING: Tolerances = {"rtol": 1e-5, "atol": 1e-5}
X = examples(3, 4, dtype=torch.float32)
NET = network(4, 2, dtype=torch.float32)

every_class = pytest.mark.parametrize("row", OF_KINDS, ids=lambda row: row.attribution.__name__)


def built(row, forward_func=NET):
    return row.attribution(forward_func, seed=0, **row.options)


def seeded(function, *args, **kwargs):
    """Call one of captum's tools with equal random numbers each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return function(*args, **kwargs)


# NoiseTunnel


@every_class
def test_noise_tunnel_over_tuples_and_masks_of_each_example(row):
    y = examples(3, 1, 2, dtype=torch.float32, seed=2)

    def forward(a, b, scale):
        return torch.tanh(a).prod(dim=1) * b.sum(dim=(1, 2)) * scale

    arguments = {
        "nt_samples": 4,
        "stdevs": (0.1, 0.2),
        "additional_forward_args": (torch.tensor([1.0, 2.0, 3.0]),),
        "feature_mask": (
            torch.tensor([[0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 1, 0]]),
            torch.tensor([[[2, 0]]]),
        ),
    }
    ours = seeded(NoiseTunnel(built(row, forward)).attribute, (X, y), **arguments)
    theirs = seeded(NoiseTunnel(ShapleyValues(forward)).attribute, (X, y), **arguments)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, **ROUNDING)


# Metrics


@every_class
@pytest.mark.parametrize("per_batch", [None, 4])
def test_sensitivity(row, per_batch):
    arguments = {
        "perturb_radius": 0.1,
        "n_perturb_samples": 3,
        "max_examples_per_batch": per_batch,
        "target": torch.tensor([0, 1, 0]),
        "baselines": examples(3, 4, dtype=torch.float32, seed=4),
    }
    ours = seeded(sensitivity_max, built(row).attribute, X, **arguments)
    theirs = seeded(sensitivity_max, ShapleyValues(NET).attribute, X, **arguments)
    torch.testing.assert_close(ours, theirs, **ROUNDING)
    assert (ours > 0.01).all()
