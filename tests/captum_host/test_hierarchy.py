"""Owen values of hierarchies through captum: tables, images, nested masks, bad input."""

import numpy as np
import pytest
import torch

from captum_ext import Hierarchy, PlayerTree
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.captum_host.networks import game_of
from tests.helpers.hierarchy_oracle import owen_values

pytestmark = pytest.mark.filterwarnings("error")

WEIGHTS = torch.as_tensor(np.random.default_rng(0).normal(size=(16, 2)))


def forward(x):
    flat = x.reshape(len(x), -1)
    return torch.tanh(flat.double() @ WEIGHTS[: flat.shape[1]]) + flat[:, :1] * flat[:, -1:]


def oracle(nested, example, target=0):
    """Return the values of a hierarchy of the numbers of an example, the others being zero."""
    return owen_values(nested, game_of(lambda x: forward(x)[:, target], example))


def test_tables_need_a_hierarchy_and_are_exact():
    x = torch.as_tensor(np.random.default_rng(1).normal(size=(2, 6)))
    nested = [[0, 1], [2, [3, 4]], 5]
    for hierarchy in (nested, PlayerTree.from_nested(nested, 6)):
        found = Hierarchy(forward, hierarchy=hierarchy).attribute(x, target=1)
        for example, values in zip(x, found, strict=True):
            np.testing.assert_allclose(values, oracle(nested, example, 1), rtol=0, atol=1e-10)
    with pytest.raises(InvalidArgumentError, match="hierarchy is missing"):
        Hierarchy(forward).attribute(x, target=0)


def test_images_are_quadrants_or_nested_masks():
    x = torch.as_tensor(np.random.default_rng(2).normal(size=(1, 1, 2, 4)))
    halves = [[0, 1, 4, 5], [2, 3, 6, 7]]
    found = Hierarchy(forward).attribute(x, target=0)
    np.testing.assert_allclose(found.ravel(), oracle(halves, x[0]), rtol=0, atol=1e-10)
    rows = torch.tensor([[0, 0, 0, 0], [1, 1, 1, 1]])
    pairs = torch.tensor([[[0, 0, 1, 1], [2, 2, 3, 3]]])
    nested = [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    found = Hierarchy(forward, hierarchy=[rows, pairs]).attribute(x, target=0)
    np.testing.assert_allclose(found.ravel(), oracle(nested, x[0]), rtol=0, atol=1e-10)
    by_pair = Hierarchy(forward, hierarchy=[rows]).attribute(x, target=0, feature_mask=pairs)
    np.testing.assert_allclose(by_pair[..., ::2].sum(), found.sum(), atol=1e-10)
    assert torch.equal(by_pair[..., ::2], by_pair[..., 1::2])


@pytest.mark.parametrize(
    ("hierarchy", "message"),
    [
        ([torch.zeros(3, 3).long()], "does not broadcast"),
        ([torch.zeros(4, 4)], "must hold whole numbers"),
        (PlayerTree.from_nested([0, 1], 2), "has 2 players, but there are"),
    ],
)
def test_bad_hierarchies(hierarchy, message):
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=message):
        Hierarchy(forward, hierarchy=hierarchy).attribute(torch.ones(1, 1, 4, 4), target=0)


def test_masks_must_hold_whole_features():
    pairs = torch.tensor([[[0, 0], [1, 1]]])
    with pytest.raises(InvalidArgumentError, match="divides feature 0"):
        Hierarchy(forward, hierarchy=[torch.tensor([[0, 1], [0, 1]])]).attribute(
            torch.ones(1, 1, 2, 2), target=0, feature_mask=pairs
        )
