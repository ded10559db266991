"""Models that write into their memory, and outputs that are no plain numbers."""

import numpy as np
import pytest
import shap

import shap_ext
import shap_ext.criteria
from tests.helpers.optional import nn, torch
from tests.shap_host.games import ROUNDING, curved, oracle, probability, rows

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

X, BACKGROUND = rows(6, 5), rows(2, 5, seed=1)


def explain(model, background, name="enumeration", explained=X, batch_size="auto", **options):
    explainer = shap.Explainer(model, background, algorithm=name, seed=0, **options)
    return explainer(explained, batch_size=batch_size)


# Memory


def test_outputs_beside_masked_rows_are_kept():
    # The model of the masker gets the row, and its output goes to the explained model.
    x, background = X.copy(), rows(2, 5, seed=1)
    inner = shap.maskers.Independent(background)
    memory = np.empty((1, 1))

    def first_column(row):
        memory[:] = row[0]
        row[:] = 99.0
        return memory

    masker = shap.maskers.OutputComposite(inner, first_column)

    def model(masked, first):
        return curved(masked) * first[:, 0]

    got = shap.Explainer(model, masker, algorithm="enumeration")(x).values
    wanted = oracle(curved, X, background) * X[:, :1]
    np.testing.assert_allclose(got, wanted, **ROUNDING)
    np.testing.assert_array_equal(x, X)


def test_criteria_of_models_that_change_their_input_and_reuse_memory():
    explained, memory = X.copy(), np.empty((10**4, 2))
    around = shap_ext.criteria.Neighbourhood(radius=0.3, n_draws=20)
    explainer = shap.Explainer(curved, rows(2, 5, seed=1), algorithm="enumeration")

    def overwriting(x):
        memory[: len(x)] = probability(x)
        x[...] = 99.0
        return memory[: len(x)]

    plain, other = (
        shap_ext.criteria.sensitivity(explainer, explained, around, model=model)
        for model in (probability, overwriting)
    )
    np.testing.assert_array_equal(explained, X)
    np.testing.assert_array_equal(plain.average, other.average)


# Torch


def test_modules_that_switch_gradients_on():
    class Forces(nn.Module):
        def forward(self, x):
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                energy = torch.sin(x).prod(dim=1).sum()
                (force,) = torch.autograd.grad(energy, x, create_graph=True)
            return force[:, :2]

    got = explain(Forces(), BACKGROUND, "shear").values
    forces = lambda x: Forces()(torch.as_tensor(x)).detach().numpy()  # noqa: E731
    np.testing.assert_allclose(got, oracle(forces, X, BACKGROUND), **ROUNDING)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_tensors_of_types_that_numpy_lacks(dtype):
    def model(x):  # of arrays, because NumPy lacks the type
        return torch.as_tensor(curved(x)).to(getattr(torch, dtype))

    x, background = (torch.as_tensor(one).to(getattr(torch, dtype)) for one in (X, rows(2, 5)))
    wanted = oracle(lambda x: model(x).double().numpy(), x.double().numpy(), background.double())
    got = shap.Explainer(model, background, algorithm="enumeration")(x).values
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4)


def test_modules_that_negate_lazily():
    class Negated(nn.Module):
        def forward(self, x):
            return torch.complex(x, x).conj().imag[:, 0]

    got = explain(Negated(), BACKGROUND).values
    np.testing.assert_allclose(got, oracle(lambda x: -x[:, 0], X, BACKGROUND), **ROUNDING)


# Explainers and their models


def test_members_that_change_the_rows_do_not_reach_other_members():
    def overwriting(x):
        values = np.sin(x)
        x[...] = 99.0
        return values

    explained = X.copy()
    members = [overwriting, "enumeration", overwriting]
    sv = explain(curved, rows(2, 5, seed=1), "centroid", explained, explainers=members)
    wanted = (2 * np.sin(X) + oracle(curved, X, rows(2, 5, seed=1))) / 3
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)
    np.testing.assert_array_equal(explained, X)


def test_criteria_read_tensors_of_types_that_numpy_lacks():
    values = torch.as_tensor(X).to(torch.bfloat16)
    found = shap_ext.criteria.complexity(values)
    np.testing.assert_array_equal(found, shap_ext.criteria.complexity(values.float().numpy()))


def test_functions_of_rows_that_overwrite_their_memory():
    memory = np.empty((100, 5))

    def overwriting(x):
        numbers = memory[: len(x)]
        numbers[:] = np.sin(x)
        x[:] = 99.0
        return numbers

    data, options = rows(30, 5, seed=3), {"explainer": "enumeration", "n_neighbors": 3}
    found = [
        explain(curved, rows(2, 5, seed=1), "ava", dataset=data, embed=embed, **options).values
        for embed in (np.sin, overwriting)
    ]
    np.testing.assert_array_equal(*found)


def test_functions_as_maskers_that_change_the_row():

    def careful(mask, x):
        return np.where(mask, x, 0.0)[None]

    def careless(mask, x):
        x[~mask] = 0.0
        return x[None]

    explained = X.copy()
    by = [explain(curved, masker, explained=explained) for masker in (careful, careless)]
    np.testing.assert_array_equal(by[1].values, by[0].values)
    np.testing.assert_array_equal(by[1].data, X)
    np.testing.assert_array_equal(explained, X)
