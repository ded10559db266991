"""Outputs of models that cannot be explained, through shap's door."""

import itertools

import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.errors import ModelOutputError

ROWS = np.arange(15.0).reshape(3, 5)


def explain(model, n_background):
    background = np.zeros((n_background, 5))
    explainer = shap.Explainer(model, background, algorithm="shear", seed=0)
    assert isinstance(explainer, shap_ext.ShearExplainer)
    return explainer(ROWS)


@pytest.mark.parametrize("n_background", [1, 3])
def test_outputs_without_numbers(n_background):
    with pytest.raises(ModelOutputError, match="one number at least"):
        explain(lambda rows: rows[:, :0], n_background)


@pytest.mark.parametrize("n_background", [1, 3])
def test_numbers_of_outputs_that_vary(n_background):
    numbers = itertools.count(1)
    with pytest.raises(ModelOutputError, match="outputs of the same shape"):
        explain(lambda rows: rows[:, : next(numbers)], n_background)
