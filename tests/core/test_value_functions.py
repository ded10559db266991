"""Value functions: log-probabilities and margins against their definitions."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax

import shapley_adapters as core
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    NonFiniteValueError,
)
from shapley_adapters.games.value_functions import KINDS, ValuedGame, checked_value_function
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import TableGame

M, R, B, K = 5, 3, 4, 3


class OutputsGame(TableGame):
    """Outputs for every coalition and background row, (R, 2^M, B, K); the full row has one."""

    def __init__(self, outputs, **options):
        outputs[:, -1] = outputs[:, -1, :1]
        self.outputs = outputs
        super().__init__(outputs.mean(axis=2), **options)

    def reduced(self, rows, coalitions, reduce):
        places = coalitions @ (1 << np.arange(self.n_players))
        self.asked += list(zip(rows.tolist(), places.tolist(), strict=True))
        self.batch_sizes.append(len(rows))
        return reduce(self.outputs[rows, places], rows)


def logits(n_outputs=K, seed=0):
    return 3 * np.random.default_rng(seed).normal(size=(R, 2**M, B, n_outputs))


def log_mean(logs):
    return logsumexp(logs, axis=2) - np.log(logs.shape[2])


def expected_values(kind, raw, are_logits, classes=None):
    """Return the values of all coalitions by the definitions, (R, 2^M)."""
    logs = log_mean(log_softmax(raw, axis=3) if are_logits else np.log(raw))
    rows = np.arange(R)
    full = raw[:, -1, 0]
    top = full.argsort(axis=1)[:, ::-1] if classes is None else np.array(classes)
    if kind == "log_probability":
        return logs[rows, :, top[:, 0]]
    if kind == "expected_log_probability":
        weights = softmax(full, axis=1) if are_logits else full
        return (logs * weights[:, None]).sum(axis=2)
    means = raw.mean(axis=2)
    return means[rows, :, top[:, 0]] - means[rows, :, top[:, 1]]


def shapley(game, budget=2**M, **options):
    return core.estimate(game, core.Exact(), core.Settings(seed=0, budget=budget, **options))


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("are_logits", [True, False])
@pytest.mark.parametrize("scale", ["auto", "told"])
def test_values_are_those_of_the_definition(kind, are_logits, scale):
    raw = logits() if are_logits else softmax(logits(), axis=3)
    if scale == "told":
        scale = "logits" if are_logits else "probabilities"
    game = OutputsGame(raw)
    result = shapley(ValuedGame(game, core.ValueFunction(kind, scale)))
    expected = TableGame(expected_values(kind, raw, are_logits)[:, :, None])
    np.testing.assert_allclose(result.values, game_shapley_values(expected), atol=1e-10)
    np.testing.assert_allclose(result.empty_values, expected.values[:, 0], atol=1e-12)
    np.testing.assert_allclose(result.grand_values, expected.values[:, -1], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_no_coalition_is_asked_for_twice(kind, batch_size):
    """The outputs for whole rows, by which their classes are known, are values as well."""
    game = OutputsGame(logits())
    result = shapley(ValuedGame(game, core.ValueFunction(kind)), batch_size=batch_size)
    assert len(set(game.asked)) == R * 2**M == result.evaluations.sum()
    assert len(game.asked) <= R * 2**M + result.check_evaluations
    assert max(game.batch_sizes) <= batch_size
    whole = shapley(ValuedGame(OutputsGame(logits()), core.ValueFunction(kind)))
    np.testing.assert_allclose(result.values, whole.values, atol=1e-12)


@pytest.mark.parametrize("kind", ["log_probability", "margin"])
def test_classes_of_ones_choice(kind):
    raw = logits()
    chosen = (1, 2) if kind == "margin" else 1
    game = ValuedGame(OutputsGame(raw), core.ValueFunction(kind, classes=chosen))
    expected = expected_values(kind, raw, True, [(1, 2)] * R)[:, :, None]
    np.testing.assert_allclose(
        shapley(game).values, game_shapley_values(TableGame(expected)), atol=1e-10
    )
    # One class for each row; the margin's other class is its strongest rival.
    classes = np.array([2, 0, 1])
    game = ValuedGame(OutputsGame(raw), core.ValueFunction(kind), classes=classes)
    rivals = raw[:, -1, 0].copy()
    rivals[np.arange(R), classes] = -np.inf
    pairs = np.stack([classes, rivals.argmax(axis=1)], axis=1)
    expected = expected_values(kind, raw, True, pairs)[:, :, None]
    np.testing.assert_allclose(
        shapley(game).values, game_shapley_values(TableGame(expected)), atol=1e-10
    )


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("scale", ["logits", "probabilities"])
def test_a_single_output_stands_for_two_classes(kind, scale):
    one = logits(1)
    both = np.concatenate([np.zeros_like(one), one], axis=3)
    if scale == "probabilities":
        one = softmax(both, axis=3)[..., 1:]
        both = np.concatenate([1 - one, one], axis=3)
    found = shapley(ValuedGame(OutputsGame(one), core.ValueFunction(kind, scale)))
    expected = shapley(ValuedGame(OutputsGame(both), core.ValueFunction(kind, scale)))
    np.testing.assert_allclose(found.values, expected.values, atol=1e-10)


def test_huge_logits_and_tiny_probabilities_stay_finite():
    raw = 1e4 * logits()
    for kind in KINDS[1:]:
        result = shapley(ValuedGame(OutputsGame(raw), core.ValueFunction(kind)))
        assert np.isfinite(result.values).all()
        residual = result.grand_values - result.empty_values - result.values.sum(axis=1)
        np.testing.assert_allclose(residual, 0, atol=1e-8)
    certain = np.zeros((R, 2**M, B, K))
    certain[..., 0] = 1
    certain[:, :9, :, [0, 1]] = certain[:, :9, :, [1, 0]]
    result = shapley(ValuedGame(OutputsGame(certain), core.ValueFunction("log_probability")))
    np.testing.assert_allclose(result.empty_values, np.log(1e-15))


@pytest.mark.parametrize("kind", KINDS[1:])
def test_non_finite_outputs_are_named(kind):
    raw = logits()
    raw[1, 6] = np.nan
    with pytest.raises(NonFiniteValueError, match=r"row 1.*players \[1, 2\]"):
        shapley(ValuedGame(OutputsGame(raw), core.ValueFunction(kind)))


def test_rounded_probabilities_are_not_taken_for_logits():
    raw = softmax(logits(), axis=3).round(2)
    raw[:, -1, :, 0] += 0.01
    with pytest.raises(InvalidArgumentError, match="add up to almost 1"):
        shapley(ValuedGame(OutputsGame(raw), core.ValueFunction("log_probability")))
    raw += 1e-9
    told = core.ValueFunction("log_probability", scale="probabilities")
    assert np.isfinite(shapley(ValuedGame(OutputsGame(raw), told)).values).all()


def test_logits_are_not_taken_for_probabilities():
    told = core.ValueFunction("log_probability", scale="probabilities")
    with pytest.raises(InvalidArgumentError, match=r"scale='probabilities', but .*logits"):
        shapley(ValuedGame(OutputsGame(logits()), told))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("log",), "value_function must be one of"),
        (("margin", "odds"), "scale must be one of"),
        (("raw", "auto", 1), "classes=1 has no meaning"),
        (("log_probability", "auto", (0, 1)), "classes must be the index of a class"),
        (("log_probability", "auto", -1), "classes must be"),
        (("margin", "auto", (1, 1)), "pair of different ones"),
        (("margin", "auto", 1.5), "classes must be"),
    ],
)
def test_value_functions_of_no_use_are_refused(arguments, match):
    with pytest.raises(InvalidArgumentError, match=match):
        core.ValueFunction(*arguments)


def test_other_refusals():
    with pytest.raises(InvalidArgumentTypeError, match="value_function must be one of"):
        checked_value_function(3)
    beyond = ValuedGame(OutputsGame(logits()), core.ValueFunction("log_probability", classes=3))
    with pytest.raises(InvalidArgumentError, match="class 3, but the model has 3 classes"):
        shapley(beyond)
    single = ValuedGame(OutputsGame(logits(1)), core.ValueFunction("log_probability"))
    with pytest.raises(InvalidArgumentError, match="single output may be a probability or a logit"):
        shapley(single)
