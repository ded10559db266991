"""Least squares with a fixed sum, against the textbook's system with a multiplier."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shapley_adapters as core
from shapley_adapters.errors import SingularSystemError
from shapley_adapters.estimators.linear_algebra import fit_with_fixed_sum
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import TableGame


def by_multiplier(design, weights, target, total):
    """Minimise Σ w (t − Xβ)² with Σ β = total by its Karush–Kuhn–Tucker system."""
    n_players = design.shape[1]
    system = np.zeros((n_players + 1, n_players + 1))
    system[:-1, :-1] = 2 * design.T @ (weights[:, None] * design)
    system[:-1, -1] = system[-1, :-1] = 1
    return np.linalg.solve(system, [*(2 * design.T @ (weights * target)), total])[:-1]


def random_problem(seed, n_equations=12, n_players=5):
    rng = np.random.default_rng(seed)
    design = (rng.random((n_equations, n_players)) < 0.5).astype(float)
    return design, rng.uniform(0.1, 2, n_equations), rng


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_solve_the_constrained_problem(seed):
    design, weights, rng = random_problem(seed)
    targets, totals = rng.normal(size=(3, 12, 2)), rng.normal(size=(3, 2))
    fit = fit_with_fixed_sum(design, weights)
    coefficients = fit.coefficients(targets, totals)
    assert coefficients.shape == (3, 5, 2)
    for row, output in np.ndindex(3, 2):
        expected = by_multiplier(design, weights, targets[row, :, output], totals[row, output])
        # Rounding only: both are well conditioned.
        np.testing.assert_allclose(coefficients[row, :, output], expected, atol=1e-10)


def test_the_sum_is_held_where_the_weights_span_many_orders():
    design, _, rng = random_problem(0)
    weights = 10.0 ** rng.uniform(-12, 3, 12)
    coefficients = fit_with_fixed_sum(design, weights).coefficients(
        rng.normal(size=(1, 12, 1)), np.array([[7.0]])
    )
    # The operator's columns sum to zero up to rounding, whatever the weights.
    assert coefficients.sum() == pytest.approx(7, abs=1e-9)


def test_leverages_tell_how_a_target_moves_its_own_fit():
    design, weights, _ = random_problem(1)
    fit = fit_with_fixed_sum(design, weights)
    no_total = np.zeros((12, 1))
    moved = fit.coefficients(np.eye(12)[:, :, None], no_total)  # one target moved in each row
    np.testing.assert_allclose((design @ moved)[..., 0].diagonal(), fit.leverages, atol=1e-12)
    assert fit.leverages.sum() == pytest.approx(4)  # the free parameters


def test_one_player_gets_the_total():
    fit = fit_with_fixed_sum(np.ones((2, 1)), np.ones(2))
    assert fit.coefficients(np.zeros((1, 2, 1)), np.array([[3.0]])).tolist() == [[[3.0]]]


@pytest.mark.parametrize("n_equations", [0, 1, 3])
def test_too_few_equations_are_refused(n_equations):
    design, weights, _ = random_problem(0, n_equations)
    with pytest.raises(SingularSystemError, match=f"{n_equations} equations determine . of the 4"):
        fit_with_fixed_sum(design, weights)


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1))
def test_undetermined_systems_are_refused_and_determined_ones_are_not(seed):
    """A rank is judged by singular values of the design without the weights."""
    rng = np.random.default_rng(seed)
    n_players = int(rng.integers(2, 8))
    design = (rng.random((int(rng.integers(1, 14)), n_players)) < 0.5).astype(float)
    weights = rng.uniform(0.01, 1, len(design))
    centred = design - design.mean(axis=1, keepdims=True)  # what moves with differences of players
    if np.linalg.matrix_rank(centred) == n_players - 1:
        fit_with_fixed_sum(design, weights)
    else:
        with pytest.raises(SingularSystemError):
            fit_with_fixed_sum(design, weights)


def drawn_games(kind, n_players, n_rows, rng):
    """Return the values of drawn games of a kind, (R, 2^M, 1)."""
    bits = ((np.arange(2**n_players)[:, None] >> np.arange(n_players)) & 1).astype(float)
    games = []
    for _ in range(n_rows):
        if kind == "network":
            slopes = rng.normal(size=(n_players, 8)) * 2.5 / np.sqrt(n_players)
            games.append(np.tanh(bits @ slopes + rng.normal(size=8)) @ rng.normal(size=8))
        elif kind == "vote":
            votes = rng.exponential(size=n_players)
            games.append((bits @ votes > rng.uniform(0.5, 0.9) * votes.sum()).astype(float))
        else:
            trees = [
                (rng.choice(n_players, 3, replace=False), rng.normal(size=8)) for _ in range(30)
            ]
            places = [(bits[:, columns] @ [1, 2, 4]).astype(int) for columns, _ in trees]
            games.append(sum(leaves[at] for (_, leaves), at in zip(trees, places, strict=True)))
    return np.array(games)[:, :, None]


@pytest.mark.parametrize("kind", ["network", "vote", "trees"])
def test_errors_of_least_squares_do_not_rise_with_the_budget(kind):
    """With about as many equations as players, a regression without ridge follows their noise."""
    n_players = 11
    game = TableGame(drawn_games(kind, n_players, 30, np.random.default_rng(5)))
    exact = game_shapley_values(game)
    smallest = np.inf
    for per_player in (2.2, 2.5, 3, 3.5, 4, 5, 6, 8):
        budget = round(per_player * n_players)
        error = 0.0
        for seed in range(4):
            settings = core.Settings(seed=seed, budget=budget)
            values = core.estimate(game, core.LeastSquares(), settings).values
            error += np.abs(values - exact).sum()
            ends = game.values[:, -1] - game.values[:, 0]
            np.testing.assert_allclose(values.sum(axis=1), ends, atol=1e-10)
        assert error < 1.07 * smallest  # without ridge 1.13 for votes
        smallest = min(smallest, error)
