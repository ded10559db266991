"""Masked arrays of NumPy: masked entries have no value, and nothing may read what is under them."""

import numpy as np
import pytest
import torch

from captum_ext import AVA, Centroid, Convex, Exact, OddGP, Shear, combine, criteria
from shapley_adapters.aggregation import Centroid as CoreCentroid
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtError
from tests.captum_host.networks import examples

X = examples(3, 4)
VALUES = np.ma.masked_array(X.numpy(), X.numpy() > 0)
SCORES = np.ma.masked_array(np.ones((4, 4)), np.eye(4, dtype=bool))

refused = pytest.raises(
    InvalidArgumentError, match=r"is a masked array with \d+ masked entries.*filled"
)


def forward(x):
    return x.prod(dim=1)


@pytest.mark.parametrize(
    "run",
    [
        lambda: criteria.complexity(VALUES),
        lambda: criteria.absolute_error(X, VALUES),
        lambda: criteria.faithfulness(VALUES, forward, X),
        lambda: combine([X, VALUES], CoreCentroid()),
        lambda: Centroid([lambda x: x, lambda _: VALUES]).attribute(X),
        lambda: AVA(lambda _: VALUES, X, n_neighbors=3).attribute(X),
        lambda: Convex([lambda x: x] * 2, weights=np.ma.masked_array([1.0, 2.0], [True, False])),
        lambda: Shear(forward, cooperators=SCORES).attribute(X),
        lambda: OddGP(forward, cooperators=SCORES).attribute(X),
        lambda: criteria.sensitivity(
            Exact(forward).attribute, X, Neighbourhood(9.0, points=VALUES, keep="all")
        ),
    ],
)
def test_masked_entries_are_refused(run):
    with refused:
        run()


def test_masked_arrays_without_masked_entries_are_arrays():
    full = np.ma.masked_array(X.numpy())
    assert torch.equal(criteria.complexity(full), criteria.complexity(X))


@pytest.mark.parametrize(
    "target",
    [np.ma.masked_array([0, 1, 1], [True, False, False]), [np.ma.masked, 1, 1], np.ma.masked],
    ids=["array", "list", "constant"],
)
def test_masked_targets_are_refused(target):
    with pytest.raises(ShapleyExtError, match="target"):
        Exact(lambda x: x[:, :2]).attribute(X, target=target)
