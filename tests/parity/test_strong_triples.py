"""The strongest triples through both hosts, of a model whose triples are products."""

import numpy as np
import pytest
import shap

import shap_ext
from tests.helpers.optional import HAS_TORCH, captum_ext, torch

assert shap_ext  # it makes shap know the algorithms

N_FEATURES, BUDGET = 40, 402
PRODUCTS = {(0, 1, 2): 1.0, (5, 17, 30): -0.7, (8, 9, 39): 0.5}
"""Features that are multiplied, and the factor of their product."""

RNG = np.random.default_rng(0)
ROWS = 1 + RNG.uniform(size=(2, N_FEATURES))
BACKGROUND = 0.5 * RNG.normal(size=(100, N_FEATURES))
NAMES = [f"column {feature}" for feature in range(N_FEATURES)]


def model(x):
    """Return the sum of some products and of half of all features; for arrays and tensors."""
    products = (weight * x[:, i] * x[:, j] * x[:, k] for (i, j, k), weight in PRODUCTS.items())
    return sum(products) + 0.5 * x.sum(1)


def exact_triples(row):
    """Return {names: interaction}: no larger set interacts, so that all triple differences agree.

    Those of a product are the mean of Π (x − z) over the background.
    """
    return {
        tuple(NAMES[feature] for feature in features): weight
        * (row - BACKGROUND)[:, features].prod(axis=1).mean()
        for features, weight in PRODUCTS.items()
    }


def through_shap():
    explainer = shap.Explainer(model, BACKGROUND, algorithm="oddgp", seed=0)
    explainer(ROWS, max_evals=BUDGET, interactions=True)
    return explainer.last_estimate


def through_captum():
    method = captum_ext.OddGP(model, seed=0)
    method.interactions(torch.tensor(ROWS), torch.tensor(BACKGROUND), n_samples=BUDGET)
    return method.last_estimate


needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")


@pytest.mark.parametrize(
    "estimated", [through_shap, pytest.param(through_captum, marks=needs_torch)]
)
def test_products_of_three_features_are_found_with_their_names(estimated):
    estimate = estimated()
    for index, row in enumerate(ROWS):
        found = estimate.strongest_triples(NAMES, row=index)
        exact = exact_triples(row)
        assert {triple.names for triple in found[: len(exact)]} == set(exact)
        for names, value, error in found:
            assert 0 < error < 0.2
            # Four posterior standard deviations: a normal error exceeds them once in 16,000.
            assert abs(value - exact.get(names, 0.0)) < 4 * error
