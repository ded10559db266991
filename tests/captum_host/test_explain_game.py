"""`captum_ext.explain_game`: attributions of a user's function of coalitions, by enumeration."""

import re

import numpy as np
import pytest
import torch

import shap_ext
from captum_ext import Myerson, OddGP, RandomOrder, RemoteModel, attribution_class, explain_game
from shapley_adapters import LeastSquares
from shapley_adapters.errors import (
    BudgetError,
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    NonFiniteValueError,
    ShapleyExtWarning,
)
from tests.helpers.brute_force import shapley_values

M = 6
NAMES = ["ann", "bob", "cat", "dan", "eve", "fay"]
TABLE = torch.randn(2**M, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
EXACT = shapley_values(M, lambda players: TABLE[sum(1 << player for player in players)].numpy())


def drawn(coalitions):
    """Return two drawn numbers for each coalition, (n, 2), of boolean tensors alone."""
    assert coalitions.dtype == torch.bool
    return TABLE[(coalitions * (1 << torch.arange(M))).sum(dim=1)]


def first(coalitions):
    return drawn(coalitions)[:, 0]


def of_sets(coalitions):
    return [float(TABLE[sum(1 << NAMES.index(name) for name in each), 0]) for each in coalitions]


async def slow(coalitions):
    return first(coalitions)


OWN = attribution_class(LeastSquares)


@pytest.mark.parametrize("method", [None, OddGP, RandomOrder, OWN])
def test_values_are_those_of_enumeration(method):
    found = explain_game(drawn, NAMES, **({} if method is None else {"method": method}))
    np.testing.assert_allclose(found.values, EXACT.T, atol=1e-10)
    np.testing.assert_array_equal(found.standard_errors, np.zeros((2, M)))
    np.testing.assert_allclose(found.estimate.empty_values[0], TABLE[0], atol=1e-10)


@pytest.mark.parametrize("value", [first, slow, RemoteModel(first, concurrency=3), of_sets])
def test_functions_coroutines_and_sets_have_the_same_values(value):
    found = explain_game(value, NAMES, as_sets=value is of_sets)
    np.testing.assert_allclose(found.values, EXACT[:, 0], atol=1e-10)
    assert found.players == tuple(NAMES)


@pytest.mark.parametrize(
    ("players", "options", "of_shap"),
    [
        (M, {"interactions": True}, {"interactions": True}),
        (M, {"index": [1.0, 0, 0, 0, 0, 0]}, {"index": [1.0, 0, 0, 0, 0, 0]}),
        ({"red": [4, 0], "blue": [1, 2, 5], "green": [3]}, {}, {}),
        (M, {"method": Myerson, "graph": "line"}, {"algorithm": "myerson", "graph": "line"}),
    ],
)
def test_pairs_semivalues_groups_and_graphs_are_those_of_shap(players, options, of_shap):
    of_arrays = lambda coalitions: first(torch.as_tensor(coalitions)).numpy()  # noqa: E731
    found = explain_game(first, players, **options)
    expected = shap_ext.explain_game(of_arrays, players, **of_shap)
    values = found.interactions if "interactions" in options else found.values
    assert values is not None
    np.testing.assert_allclose(values, expected.values, atol=1e-10)


def test_values_are_bit_for_bit_those_of_attribute():
    game = lambda rows: torch.sin(rows.double() @ torch.arange(14.0).double())  # noqa: E731
    found = explain_game(game, 14, method=OddGP, seed=3, n_samples=100)
    method = OddGP(game, gradients=False, seed=3)
    values, errors = method.attribute(torch.ones(1, 14), n_samples=100, return_standard_error=True)
    np.testing.assert_array_equal(found.values, values[0])
    np.testing.assert_array_equal(found.standard_errors, errors[0])
    table = found.to_frame(confidence=0.5)
    assert (table["value"].abs().diff().dropna() <= 0).all()
    assert (table["lower"] < table["value"]).all()
    axes = found.plot(max_display=4)
    assert [text.get_text() for text in axes.get_yticklabels()] == list(table.index[:4])
    assert axes.get_xlabel() == "attribution, with 95 % intervals"


def test_coalitions_without_a_value_get_another():
    value = lambda coalitions: first(coalitions).where(coalitions.sum(dim=1) != 2, torch.nan)  # noqa: E731
    with pytest.warns(ShapleyExtWarning, match="is on_error: 15. First: "):
        found = explain_game(value, M, on_error=lambda coalition: 2.0 * coalition.sum())
    replaced = lambda some: 4.0 if len(some) == 2 else TABLE[sum(1 << one for one in some), 0]  # noqa: E731
    np.testing.assert_allclose(found.values, shapley_values(M, replaced), atol=1e-10)
    assert found.failed_coalitions == 15


@pytest.mark.parametrize(
    ("value", "options", "kind", "text"),
    [
        (first, {"method": "oddgp"}, InvalidArgumentTypeError, "method must be the class of"),
        (first, {"n_sample": 9}, InvalidArgumentTypeError, "Did you mean n_samples"),
        (first, {"return_standard_error": True}, InvalidArgumentError, "does not go with explain"),
        (first, {"return_input_shape": False}, InvalidArgumentError, "which have no input"),
        (first, {"interactions": True, "index": "banzhaf"}, InvalidArgumentError, "needs index="),
        (first, {"n_jobs": 0}, InvalidArgumentError, "n_jobs=0 means no workers"),
        (lambda c: c.sum(), {}, ModelOutputError, "value(coalitions), of 1: The model must"),
        (lambda c: c / c.sum(1)[:, None], {}, NonFiniteValueError, "pass on_error="),
        (lambda c: ["a" in each for each in c], {}, RuntimeError, "Tensor.__contains__"),
    ],
)  # fmt: skip
def test_bad_input_is_named(value, options, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        explain_game(value, M, **options)


def test_budgets_and_outputs_are_checked():
    with pytest.raises(BudgetError, match=re.escape("Group players (players= takes a mapping")):
        explain_game(first, 40, n_samples=2**40)
    with pytest.raises(InvalidArgumentError, match="one of the 2 outputs, counted from 0; got 2"):
        explain_game(drawn, M).to_frame(2)
