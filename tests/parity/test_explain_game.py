"""`explain_game` of both hosts: a user's function of coalitions, against enumeration."""

import math
import os
import re

import numpy as np
import pytest
import shap

from shap_ext import RemoteModel, explain_game
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
from tests.helpers.interaction_oracles import matrix_of, pair_interactions, semivalues_by_sizes
from tests.helpers.optional import captum_ext, torch

M = 6
NAMES = ["ann", "bob", "None", "nan", "eve", "fay"]
TABLE = np.random.default_rng(0).normal(size=(2**M, 2))
EXACT = shapley_values(M, lambda players: TABLE[sum(1 << player for player in players)])


def drawn(coalitions):
    """Return two drawn numbers for each coalition, (n, 2)."""
    return TABLE[coalitions @ (1 << np.arange(M))]


def first(coalitions):
    return drawn(coalitions)[:, 0]


def slow(function):
    async def value(coalitions):
        return function(coalitions)

    return value


def tensors(coalitions):
    return torch.tensor(first(coalitions), requires_grad=True)


def for_captum(function):
    """Return the same function of boolean tensors alone."""

    def value(coalitions):
        assert coalitions.dtype == torch.bool
        return torch.as_tensor(function(coalitions.numpy()))

    return value


def of_sets(coalitions):
    return [TABLE[sum(1 << NAMES.index(name) for name in each), 0] for each in coalitions]


@pytest.mark.parametrize("algorithm", ["best", "oddgp", "leastsquares", "Random-Order", "shear"])
def test_values_are_those_of_enumeration(algorithm):
    found = explain_game(drawn, M, algorithm=algorithm, output_names=["p", "q"])
    np.testing.assert_allclose(found.values, EXACT, atol=1e-10)
    np.testing.assert_allclose(found.base_values, TABLE[0], atol=1e-10)
    assert (found.feature_names[0], list(found.output_names)) == ("Player 0", ["p", "q"])


@pytest.mark.parametrize("value", [first, slow(first), RemoteModel(first), of_sets, tensors])
def test_functions_coroutines_and_sets_have_the_same_values(value):
    found = explain_game(value, NAMES, as_sets=value is of_sets)
    np.testing.assert_allclose(found.values, EXACT[:, 0], atol=1e-10)
    assert list(found.feature_names) == NAMES
    assert found.call.failed_coalitions == 0


GROUPS = {"red": [4, 0], "blue": [1, 2, 5], "green": [3]}


@pytest.mark.parametrize("as_sets", [True, False])
def test_members_of_a_group_come_together(as_sets):
    groups = {k: [NAMES[place] for place in g] for k, g in GROUPS.items()} if as_sets else GROUPS
    found = explain_game(of_sets if as_sets else first, groups, as_sets=as_sets)
    exact = shapley_values(
        3, lambda some: TABLE[sum(1 << m for g in some for m in list(GROUPS.values())[g]), 0]
    )
    np.testing.assert_allclose(found.values, exact, atol=1e-10)
    assert list(found.feature_names) == ["red", "blue", "green"]


def test_options_of_calls_and_of_algorithms_are_taken():
    pairs = explain_game(first, NAMES, interactions=True)
    value = lambda players: TABLE[sum(1 << player for player in players), 0]  # noqa: E731
    exact = matrix_of(M, pair_interactions("shapley", M, value), EXACT[:, 0])
    np.testing.assert_allclose(pairs.values, exact, atol=1e-10)
    shares = [math.comb(M - 1, size) / 2 ** (M - 1) for size in range(M)]
    banzhaf = explain_game(first, NAMES, index="banzhaf").values
    np.testing.assert_allclose(banzhaf, semivalues_by_sizes(shares, M, value), atol=1e-10)
    edges = [("a", "c"), ("c", "b")]
    line = explain_game(lambda c: c[:, 0] * c[:, 1], [*"abc"], algorithm="myerson", graph=edges)
    np.testing.assert_allclose(line.values, [1 / 3] * 3, atol=1e-10)


@pytest.mark.parametrize("algorithm", ["best", "oddgp", "randomorder"])
def test_values_are_bit_for_bit_those_of_a_row_of_ones(algorithm):
    model = lambda rows: np.sin(rows @ np.arange(14)) + rows[:, 2] * rows[:, 5]  # noqa: E731
    options: dict = {"max_evals": 100, "error_bounds": True}
    explainer = shap.Explainer(model, np.zeros((1, 14)), algorithm=algorithm, seed=3)
    expected = explainer(np.ones((1, 14)), **options)[0]
    found = explain_game(model, 14, algorithm=algorithm, seed=3, **options)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.error_std, expected.error_std)


# Coalitions without a value


def failing(fails, is_nan=False, calls=None):
    """Return the function whose coalitions of certain sizes have no value."""

    def value(coalitions):
        if calls is not None:
            calls.append(len(coalitions))
        values = drawn(coalitions).copy()
        bad = np.isin(coalitions.sum(axis=1), fails)
        if bad.any() and not is_nan:
            raise RuntimeError("nothing to train on")
        values[bad, 1] = np.nan
        return values

    return value


@pytest.mark.parametrize("batch_size", [1, 10, "auto"])
@pytest.mark.parametrize("on_error", [0.5, lambda coalition: [coalition.sum(), 1.0]])
@pytest.mark.parametrize("kind", ["error", "nan", "coroutine", "nan of a remote model"])
def test_coalitions_without_a_value_get_another(kind, on_error, batch_size):
    value = failing([0, 2], is_nan="nan" in kind)
    value = slow(value) if kind == "coroutine" else value
    value = RemoteModel(value, retries=0) if "remote" in kind else value
    with pytest.warns(ShapleyExtWarning, match="is on_error: 16. First: ") as caught:
        found = explain_game(value, M, on_error=on_error, batch_size=batch_size)
    assert found.call.failed_coalitions == 1 + 15
    assert found.call.warnings == (str(caught[0].message),)
    assert ("NaN" if "nan" in kind else "nothing to train on") in str(caught[0].message)

    def replaced(players):
        if len(players) in (0, 2):
            return np.array([len(players), 1.0] if callable(on_error) else [0.5, 0.5])
        return TABLE[sum(1 << player for player in players)]

    np.testing.assert_allclose(found.values, shapley_values(M, replaced), atol=1e-10)


def test_a_remote_model_may_lack_the_value_of_all_players():
    def value(coalitions):
        return np.where(coalitions.all(axis=1), np.nan, coalitions.sum(axis=1))

    with pytest.warns(ShapleyExtWarning, match="is on_error: 1. First: "):
        found = explain_game(RemoteModel(value, retries=0), M, on_error=float(M))
    np.testing.assert_allclose(found.values, 1, atol=1e-10)


def test_only_one_batch_is_called_in_vain():
    calls = []
    with pytest.warns(ShapleyExtWarning, match="is on_error: 1. First: "):
        explain_game(failing([0], calls=calls), M, on_error=0.0, algorithm="enumeration")
    assert [n for n in calls if n > 1] == calls[:1]
    assert sum(calls) < 1.5 * 2**M


@pytest.mark.parametrize("fails", [[0], range(M + 1)])
def test_errors_of_the_function_remain(fails):
    with pytest.raises(RuntimeError, match="nothing to train on") as caught:
        explain_game(failing(fails), M)
    assert caught.value.__notes__ == ["value got a boolean array, as_sets=False"]
    if len(fails) > M:  # the number of outputs cannot be known
        with pytest.raises(RuntimeError, match="nothing to train on"):
            explain_game(failing(range(M + 1)), M, on_error=0)


@pytest.mark.slow
def test_workers_share_coalitions():
    def value(coalitions):
        if (coalitions.sum(axis=1) == 2).any():
            raise RuntimeError(str(os.getpid()))
        return first(coalitions)

    with pytest.warns(ShapleyExtWarning, match="First: RuntimeError: ") as caught:
        found = explain_game(value, M, on_error=7.0, n_jobs=2)
    assert str(os.getpid()) not in str(caught[0].message)
    replaced = lambda some: 7.0 if len(some) == 2 else TABLE[sum(1 << one for one in some), 0]  # noqa: E731
    np.testing.assert_allclose(found.values, shapley_values(M, replaced), atol=1e-10)


def test_sets_of_names_are_remembered(tmp_path):
    for n_expected in (2**M, 0):
        model = RemoteModel(of_sets, memory=tmp_path, name="of_sets")
        explain_game(model, NAMES, as_sets=True, algorithm="enumeration")
        assert model.usage.rows == n_expected


@pytest.mark.parametrize(
    ("value", "players", "options", "kind", "text"),
    [
        (first, [], {}, InvalidArgumentError, "players must be a number, a list"),
        (first, set(NAMES), {}, InvalidArgumentError, "players must be a number, a list"),
        (first, ["a", None], {}, InvalidArgumentError, "players must be a number, a list"),
        (first, ["a", math.nan], {}, InvalidArgumentError, "players must be a number, a list"),
        (lambda c: ["a" in s for s in c], ["a"], {}, InvalidArgumentTypeError, "Pass as_sets=True"),
        (first, ["a", "b", "a"], {}, InvalidArgumentError, "unique names; got 'a' 2 times"),
        (first, {"a": [0], "b": []}, {}, InvalidArgumentError, "at least one each"),
        (first, {"a": [0, 1], "b": [1]}, {}, InvalidArgumentError, "unique members"),
        (first, {"a": [0, 1], "b": [3]}, {}, InvalidArgumentError, "0 to 2; got 0 to 3"),
        (3, M, {}, InvalidArgumentTypeError, "value must be a function"),
        (first, M, {"on_error": "zero"}, InvalidArgumentError, "on_error must be one of"),
        (first, M, {"as_sets": 1}, InvalidArgumentTypeError, "as_sets must be True or False"),
        (first, M, {"algorithm": "ava"}, InvalidArgumentError, "algorithm must be one of"),
        (first, M, {"max_eval": 9}, InvalidArgumentTypeError, "Did you mean max_evals"),
        (first, M, {"trace": True}, InvalidArgumentError, "trace=True fills last_estimate"),
        (first, M, {"index": "owen"}, InvalidArgumentError, "index must be one of"),
        (first, M, {"output_names": ["a", "b"]}, InvalidArgumentError, "output_names holds 2"),
        (first, 40, {"max_evals": 2**40}, BudgetError, "Group players (players= takes a mapping"),
        (lambda c: c.sum(), M, {}, ModelOutputError, "value(coalitions), of 2: The model must"),
        (lambda c: ["a"] * len(c), M, {}, ModelOutputError, "value(coalitions), of 2"),
        (failing([2], is_nan=True), M, {}, NonFiniteValueError, "pass on_error="),
        (failing([2]), M, {"on_error": lambda c: [1, 2, 3]}, ModelOutputError, "value must return"),
        (lambda c: np.where(c[:, 0], 1, np.inf), M, {"on_error": 0}, NonFiniteValueError, "inf"),
    ],
)  # fmt: skip
def test_bad_input_is_named(value, players, options, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        explain_game(value, players, **options)


# --- captum's host ---


@pytest.mark.parametrize("name", ["", "OddGP", "RandomOrder", "LeastSquares"])
def test_values_of_tensors_are_those_of_enumeration(name):
    kinds = vars(captum_ext) | {"LeastSquares": captum_ext.attribution_class(LeastSquares)}
    options = {"method": kinds[name]} if name else {}
    found = captum_ext.explain_game(for_captum(drawn), NAMES, **options)
    np.testing.assert_allclose(found.values, EXACT.T, atol=1e-10)
    np.testing.assert_array_equal(found.standard_errors, np.zeros((2, M)))
    np.testing.assert_allclose(found.estimate.empty_values[0], TABLE[0], atol=1e-10)
    with pytest.raises(InvalidArgumentError, match="one of the 2 outputs, counted from 0; got 2"):
        found.to_frame(2)


@pytest.mark.parametrize("kind", ["coroutine", "remote", "sets"])
def test_coroutines_and_sets_have_the_values_of_tensors(kind):
    value = of_sets if kind == "sets" else for_captum(first)
    value = slow(value) if kind == "coroutine" else value
    value = captum_ext.RemoteModel(value, concurrency=3) if kind == "remote" else value
    found = captum_ext.explain_game(value, NAMES, as_sets=kind == "sets")
    np.testing.assert_allclose(found.values, EXACT[:, 0], atol=1e-10)
    assert found.players == tuple(NAMES)


@pytest.mark.parametrize(
    ("players", "options", "of_shap"),
    [
        (M, {"interactions": True}, {"interactions": True}),
        (M, {"index": [1.0, 0, 0, 0, 0, 0]}, {"index": [1.0, 0, 0, 0, 0, 0]}),
        (GROUPS, {}, {}),
        (M, {"method": "Myerson", "graph": "line"}, {"algorithm": "myerson", "graph": "line"}),
    ],
)
def test_pairs_semivalues_groups_and_graphs_are_those_of_shap(players, options, of_shap):
    kinds = {"method": getattr(captum_ext, options["method"])} if "method" in options else {}
    found = captum_ext.explain_game(for_captum(first), players, **options | kinds)
    values = found.interactions if "interactions" in options else found.values
    expected = explain_game(first, players, **of_shap)
    np.testing.assert_allclose(values, expected.values, atol=1e-10)


def test_values_are_bit_for_bit_those_of_attribute():
    game = lambda rows: torch.sin(rows.double() @ torch.arange(14.0).double())  # noqa: E731
    found = captum_ext.explain_game(game, 14, method=captum_ext.OddGP, seed=3, n_samples=100)
    method = captum_ext.OddGP(game, gradients=False, seed=3)
    values, errors = method.attribute(torch.ones(1, 14), n_samples=100, return_standard_error=True)
    np.testing.assert_array_equal(found.values, values[0])
    np.testing.assert_array_equal(found.standard_errors, errors[0])
    table = found.to_frame(confidence=0.5)
    assert (table["value"].abs().diff().dropna() <= 0).all()
    assert (table["lower"] < table["value"]).all()
    axes = found.plot(max_display=4)
    assert [text.get_text() for text in axes.get_yticklabels()] == list(table.index[:4])
    assert axes.get_xlabel() == "attribution, with 95 % intervals"


def test_coalitions_of_tensors_without_a_value_get_another():
    value = for_captum(failing([2], is_nan=True))
    with pytest.warns(ShapleyExtWarning, match="is on_error: 15. First: "):
        found = captum_ext.explain_game(value, M, on_error=lambda c: [2.0 * c.sum(), 1.0])
    replaced = lambda s: [4.0, 1.0] if len(s) == 2 else TABLE[sum(1 << one for one in s)]  # noqa: E731
    exact = shapley_values(M, lambda some: np.array(replaced(some)))
    np.testing.assert_allclose(found.values, exact.T, atol=1e-10)
    assert found.failed_coalitions == 15


@pytest.mark.parametrize(
    ("value", "players", "options", "kind", "text"),
    [
        (first, M, {"method": "oddgp"}, InvalidArgumentTypeError, "method must be the class of"),
        (first, M, {"n_sample": 9}, InvalidArgumentTypeError, "Did you mean n_samples"),
        (first, M, {"return_standard_error": True}, InvalidArgumentError, "does not go with expl"),
        (first, M, {"return_input_shape": False}, InvalidArgumentError, "which have no input"),
        (first, M, {"interactions": True, "index": "ii"}, InvalidArgumentError, "needs index="),
        (first, M, {"n_jobs": 0}, InvalidArgumentError, "n_jobs=0 means no workers"),
        (lambda c: c.sum(), M, {}, ModelOutputError, "value(coalitions), of 1: The model must"),
        (lambda c: c / c.sum(1)[:, None], M, {}, NonFiniteValueError, "pass on_error="),
        (lambda c: ["a" in each for each in c], M, {}, RuntimeError, "Tensor.__contains__"),
        (first, 40, {"n_samples": 2**40}, BudgetError, "Group players (players= takes a mapping"),
    ],
)  # fmt: skip
def test_bad_input_of_captum_is_named(value, players, options, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        captum_ext.explain_game(for_captum(value) if value is first else value, players, **options)


def test_little_budgets_speak_of_players():
    with pytest.warns(ShapleyExtWarning, match="for 300 players.* Group players ((?!feature).)*$"):
        explain_game(lambda c: np.tanh(c.mean(axis=1)), 300, max_evals=70, seed=0)
