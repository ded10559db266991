"""Owen sampling: levels of the inclusion probability, and coalitions that serve all players."""

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.coalitions.tables import end_points
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.estimators import DesignRequest
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import FunctionGame, from_function, random_game


def design_of(owen, n_players, budget):
    rng = np.random.default_rng(0)
    return owen.design(DesignRequest(n_players, budget, budget, rng, end_points(n_players)))


def drawn_of(design, n_players):
    """Return the drawn coalitions, without those that differ in a player."""
    return design.table.coalitions[0][design.positions[:, 0]]


@pytest.mark.parametrize("antithetic", [True, False])
def test_players_join_with_the_probability_of_the_level(antithetic):
    """Of 4 means over at least 200 · 40 players |z| > 5 is no chance."""
    n_players, width = 40, 0.5 if antithetic else 1.0
    design = design_of(core.Owen(levels=4, antithetic=antithetic), n_players, 70_000)
    drawn = drawn_of(design, n_players)
    levels = design.levels[: len(drawn)]
    for level in range(4):
        share = drawn[levels == level].mean(axis=1)
        spread = share.std(ddof=1) / np.sqrt(len(share))
        assert len(share) > 200
        assert abs(share.mean() - width * (level + 0.5) / 4) < 5 * spread
        q = np.sqrt(share.var() - np.mean(share * (1 - share)) / (n_players - 1))
        assert q == pytest.approx(width / 4 / np.sqrt(12), rel=0.25)  # q is spread over its level


@pytest.mark.parametrize("antithetic", [True, False])
def test_a_coalition_serves_all_players_for_one_evaluation_each(antithetic):
    owen = core.Owen(antithetic=antithetic)
    game = FunctionGame(lambda z: np.tanh(z @ np.linspace(-1, 1, 30)), 30)
    least = owen.minimum_budget(30)
    assert least == (2 if antithetic else 1) * 31 + 2
    result = core.estimate(game, owen, core.Settings(seed=0, budget=least))
    assert result.evaluations == least
    assert (result.values != 0).all()


def test_one_draw_is_the_marginal_contribution_to_it():
    game = random_game(7)
    owen = core.Owen(antithetic=False, efficient=False)
    design = design_of(owen, 7, owen.minimum_budget(7))
    bits = 1 << np.arange(7)
    values = game.values[:, design.table.coalitions[0] @ bits]
    number = int(drawn_of(design, 7)[0] @ bits)
    with_each, without_each = game.values[0, number | bits], game.values[0, number & ~bits]
    solution = owen.solve(design, values)
    np.testing.assert_allclose(solution.values[0], with_each - without_each, atol=1e-15)
    assert np.isnan(solution.standard_errors).all()


def test_levels_err_less_than_none():
    """On a game whose marginal contributions depend on the size of the coalition alone."""
    game = from_function(lambda z: np.tanh(4 * z.mean(axis=1) - 1) ** 3 + z[:, 0], 10)
    exact = game_shapley_values(game)

    def error(levels):
        owen = core.Owen(levels, antithetic=False, efficient=False)
        settings = [core.Settings(seed=seed, budget=250) for seed in range(40)]
        return np.mean([np.abs(core.estimate(game, owen, s).values - exact) for s in settings])

    assert error(levels=None) < 0.92 * error(levels=1)


def test_levels_are_a_count():
    with pytest.raises(InvalidArgumentError, match="levels"):
        core.Owen(levels=0)
    with pytest.raises(InvalidArgumentTypeError, match="levels"):
        core.Owen(levels=2.5)  # type: ignore[arg-type] # wrong on purpose
    with pytest.raises(InvalidArgumentTypeError, match="antithetic"):
        core.Owen(antithetic=1)  # type: ignore[arg-type] # wrong on purpose
