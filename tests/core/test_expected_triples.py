"""Interactions of three players that the pairs of the even part make likely."""

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.estimators.odd_gp.design import spread_pairs
from shapley_adapters.estimators.odd_gp.expected_triples import even_differences, pair_coefficients
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import FunctionGame, from_function

N_PLAYERS = 50


def game_of_few(seed=0):
    """Return a norm over a few of the players, its odd part as a game, and their Shapley values."""
    rng = np.random.default_rng(seed)
    few, lengths = rng.choice(N_PLAYERS, 12, replace=False), rng.normal(size=12) ** 2

    def value(coalitions):
        return np.sqrt(coalitions[:, few] @ lengths)

    def odd_part(coalitions):
        return (value(coalitions) - value(~coalitions)) / 2

    exact = np.zeros(N_PLAYERS)
    of_few = from_function(lambda members: np.sqrt(members @ lengths), 12)
    exact[few] = game_shapley_values(of_few)[0, :, 0]
    return value, odd_part, exact


def estimate(value, per_player=8, **options):
    # Interactions need complements, which so few evaluations of so many players do not have.
    settings = core.Settings(seed=0, budget=per_player * N_PLAYERS + 2, interactions="shapley")
    return core.estimate(FunctionGame(value, N_PLAYERS), core.OddGP(**options), settings)


def test_the_even_part_lowers_the_error():
    """A game and its odd part have the same differences of complements and the same values."""
    ratios = []
    for seed in range(3):
        *games, exact = game_of_few(seed)
        errors = [np.abs(estimate(game).values[0, :, 0] - exact).sum() for game in games]
        ratios.append(errors[0] / errors[1])
    assert np.exp(np.mean(np.log(ratios))) < 0.7


def test_an_even_part_without_structure_changes_nothing():
    """Its values are independent numbers, the same for a coalition and its complement."""
    _, odd_part, _ = game_of_few()

    def with_noise(coalitions):
        same_side = coalitions ^ coalitions[:, :1]
        return odd_part(coalitions) + np.sin(
            1e4 * same_side @ np.sqrt(np.arange(1.0, N_PLAYERS + 1.0))
        )

    alone, beside = (estimate(value).values for value in (odd_part, with_noise))
    np.testing.assert_allclose(beside, alone, atol=1e-9)


def test_equal_weights_do_not_use_the_even_part():
    value, odd_part, _ = game_of_few()
    alone, beside = (estimate(game, weights="equal").values for game in (odd_part, value))
    np.testing.assert_allclose(beside, alone, atol=1e-9)


@pytest.mark.parametrize("per_player", [8, 12])
def test_rows_are_the_same_alone_and_together(per_player):
    """Whether or not interactions are expected in the other rows."""
    values = [game for seed in range(2) for game in game_of_few(seed)[:2]]

    class Together(FunctionGame):
        def __call__(self, rows, coalitions):
            of_all = np.array([value(coalitions) for value in values])
            return of_all[rows, np.arange(len(rows))][:, None]

    settings = core.Settings(seed=0, budget=per_player * N_PLAYERS + 2, interactions="shapley")
    games = Together(None, N_PLAYERS, n_rows=len(values))
    together = core.estimate(games, core.OddGP(), settings)
    for row, value in enumerate(values):
        alone = estimate(value, per_player)
        # The values of the model themselves may differ in their last digit.
        np.testing.assert_allclose(together.values[row], alone.values[0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            together.standard_errors[row], alone.standard_errors[0], rtol=0, atol=1e-9
        )


def test_coefficients_of_pairs_are_those_of_the_game():
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(N_PLAYERS, 2, replace=False) for _ in range(12)])
    strengths = rng.choice([-1.0, 1.0], size=12)
    members = spread_pairs(N_PLAYERS, 240, rng)
    signs = np.where(np.concatenate([np.ones((1, N_PLAYERS), bool), members]), 1.0, -1.0)
    products = (signs[:, pairs[:, 0]] * signs[:, pairs[:, 1]]) @ strengths
    found = pair_coefficients(signs, products[1:] - products[0], np.ones(N_PLAYERS))
    exact = np.zeros((N_PLAYERS, N_PLAYERS))
    np.add.at(exact, tuple(pairs.T), strengths)
    assert found is not None
    np.testing.assert_allclose(found, exact + exact.T, atol=0.1)


def test_a_game_without_an_even_part_has_no_coefficients():
    """Rounding errors are none."""
    rng = np.random.default_rng(0)
    first = 1e3 + rng.normal(size=(1, 101, 1))
    differences = even_differences(first, 0.3 - first)
    assert not differences.any()
    signs = np.ones((101, N_PLAYERS))
    assert pair_coefficients(signs, differences[0, :, 0], np.ones(N_PLAYERS)) is None


@pytest.mark.parametrize("exponent", [-30, -180, 180])
def test_expected_triples_scale_with_the_values(exponent):
    """Their variances are products of six coefficients."""
    value, _, _ = game_of_few()
    with np.errstate(all="raise", under="ignore"):
        ordinary, scaled = estimate(value), estimate(lambda z: value(z) * 2.0**exponent)
    np.testing.assert_array_equal(scaled.values, ordinary.values * 2.0**exponent)
