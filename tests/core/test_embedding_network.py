"""The network of piecewise-linear functions: against NumPy, in training, and in files."""

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")


from shapley_adapters.amortized.amortized import AmortizedShapley  # noqa: E402
from shapley_adapters.amortized.fitting import built  # noqa: E402
from shapley_adapters.amortized.networks import EmbeddingNetwork, PiecewiseLinear, build  # noqa: E402
from shapley_adapters.amortized.training import Training  # noqa: E402
from shapley_adapters.errors import InvalidArgumentError  # noqa: E402
from tests.helpers.brute_force import game_shapley_values  # noqa: E402
from tests.helpers.reference_games import RowsGame  # noqa: E402

N_PLAYERS = 5


def of_steps(n_rows=300, seed=0):
    """Return rows of steps in pairs of features, as trees have them; the reference is 0."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, N_PLAYERS)).astype(np.float32)
    rows[:, 4] = rng.random(n_rows) < 0.2

    def steps(x):
        first = (x[:, 0] > 0.3) * np.where(x[:, 1] > -0.5, 2.0, -1.0)
        second = 3.0 * x[:, 4] * (x[:, 2] > 0.8) + np.sign(x[:, 3] - 0.7)
        return np.stack([first + second, first - second], axis=1)

    return RowsGame(steps, rows)


def fitted(game, network="embeddings", options=None, players=None, **training):
    training = {"epochs": 3, "seed": 0, "evaluations": 32} | training
    settings = Training(student=network, student_options=options, **training)
    return AmortizedShapley.fit(game, game.x, settings, players=players)


def explained(amortized, game, batch_size=None):
    return amortized.explain(game, game.x, True, batch_size).estimate.values


def functions(knots, seed=0, n_functions=3):
    n_inputs, n_knots = np.shape(knots)
    made = built(seed, lambda: PiecewiseLinear(n_inputs, n_knots, n_functions))
    made.knots.copy_(torch.as_tensor(knots))
    return made


def test_functions_are_linear_between_knots_and_constant_outside():
    knots = np.sort(np.random.default_rng(0).normal(size=(2, 7)), axis=1).astype(np.float32)
    made = functions(knots)
    x = np.linspace(-4, 4, 201, dtype=np.float32)[:, None].repeat(2, axis=1)
    with torch.no_grad():
        found = made(torch.as_tensor(x)).numpy()
        increments = made.increments.numpy()
    at_knots = increments.cumsum(axis=1)
    at_knots += increments[:, :1] - at_knots.mean(axis=1, keepdims=True)
    for number in range(2):
        for function in range(3):
            expected = np.interp(x[:, number], knots[number], at_knots[number, :, function])
            np.testing.assert_allclose(found[:, number, function], expected, atol=1e-5)


def test_numbers_on_equal_knots_are_not_interpolated():
    """Numbers that many rows share take several knots; beyond the last one nothing jumps."""
    made = functions(np.array([[0, 0, 0, 1, 1, 1]], dtype=np.float32))
    with torch.no_grad():
        found = made(torch.tensor([[-1.0], [0.0], [0.25], [1.0], [9.0]])).numpy()[:, 0]
    np.testing.assert_allclose(found[2], 0.75 * found[1] + 0.25 * made_at(made, 3), atol=1e-6)
    np.testing.assert_array_equal(found[3], found[4])
    assert np.isfinite(found).all()


def made_at(functions_of_one_number, knot):
    increments = functions_of_one_number.increments.detach().numpy()[0]
    sums = increments.cumsum(axis=0)
    return increments[0] + sums[knot] - sums.mean(axis=0)


def test_knots_are_numbers_of_the_training_rows():
    game = of_steps()
    network = fitted(game).network
    standardised = (torch.as_tensor(game.x) - network.centre) / network.spread
    knots = network.network.functions.knots
    for column in range(N_PLAYERS):
        assert torch.isin(knots[column], standardised[:, column]).all()
        assert knots[column, 0] == standardised[:, column].min()
        assert knots[column, -1] == standardised[:, column].max()


def test_numbers_of_a_player_are_added():
    alone = built(0, lambda: EmbeddingNetwork((4,), 4, 2))
    joint = built(0, lambda: EmbeddingNetwork((4,), 2, 2, players=[1, 0, 1, 1]))
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        every, sums = alone(x), joint(x)
    torch.testing.assert_close(sums[:, 0], every[:, 1])
    torch.testing.assert_close(sums[:, 1], every[:, [0, 2, 3]].sum(dim=1))


@pytest.mark.slow
def test_steps_are_learned_better_than_by_dense_layers():
    game, new = of_steps(), of_steps(60, seed=1)
    exact = game_shapley_values(new)
    errors = {
        network: np.abs(explained(fitted(game, network, epochs=30), new) - exact).sum(axis=1).mean()
        for network in ("mlp", "embeddings")
    }
    assert errors["embeddings"] < 0.6 * errors["mlp"], errors


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        ((7,), {}, "7 numbers.*4 features.*players"),
        ((4,), {"players": [0, 1, 2]}, "4 numbers from 0 to 3.*holds 3"),
        ((4,), {"players": [0, 1, 2, 4]}, "from 0 to 3.*0 to 4"),
        ((4,), {"players": [-1, 0, 1, 2]}, "players.*at least 0"),
        ((4,), {"knots": 1}, "knots.*at least 2"),
        ((4,), {"rank": 0}, "rank.*at least 1"),
        ((4,), {"grid": (2, 2)}, "knots.*rank.*players.*grid"),
    ],
)
def test_options_that_do_not_fit_are_named(shape, options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        build("embeddings", shape, 4, 1, options)
