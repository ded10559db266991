"""The captum side against captum's own methods (written with captum 0.9.0) and the oracle."""

from typing import Any

import pytest
import torch
from captum.attr import ShapleyValues

from captum_ext import Exact
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
