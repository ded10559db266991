"""The scale of the efficiency gaps of held-out rows."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lightning")

import torch

from shapley_adapters.amortized.efficiency_gaps import HeldOutGaps


def test_gaps_below_the_rounding_of_an_output_count_as_rounding():
    """An exact network has no gaps: their size is 1e-5 of the scale of each output."""
    network: Any = SimpleNamespace(
        scale=torch.tensor([4.0, 0.5]), explained=lambda inputs, active: [np.zeros((2, 3, 2))]
    )
    rows: Any = SimpleNamespace(
        inputs=np.zeros((2, 3)), active=np.ones((2, 3), bool), grand_minus_empty=np.zeros((2, 2))
    )
    gaps = HeldOutGaps.from_network(network, rows, np.arange(2))
    np.testing.assert_allclose(gaps.sizes, [4e-5, 5e-6])
