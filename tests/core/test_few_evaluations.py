"""Least squares and random orders with half an evaluation to ten for each of many players."""

from typing import Any

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.errors import ShapleyExtWarning
from shapley_adapters.pipeline.background_plans import background_drawing
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import FunctionGame, TableGame, random_game, request_of

FEW = "ignore:.* is little for"
N_PLAYERS = 40


def estimate(function, estimator, budget, seed=0, n_players=N_PLAYERS):
    settings = core.Settings(seed=seed, budget=budget)
    return core.estimate(FunctionGame(function, n_players), estimator, settings)


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("budget", [5, 9, 13, 18, 19])
def test_orders_are_the_least_squares_of_differences_of_successive_values(paired, budget):
    """Against a regression of least norm; weights are 1 / number of players of a block."""
    n_players = 9
    game = random_game(n_players, n_rows=2, n_outputs=2)
    estimator = core.LeastSquares(paired)
    design = estimator.design(request_of(n_players, budget, budget))
    coalitions = design.table.coalitions[0]
    assert budget - 1 <= len(coalitions) <= budget
    values = game.values[:, coalitions @ (1 << np.arange(n_players))]
    equations, targets = [], []
    for chains in [*design.chains, *design.block_chains]:
        for chain in chains:
            members = np.diff(coalitions[chain].astype(float), axis=0)
            roots = np.sqrt(members.sum(axis=1))[:, None]
            equations.append(members / roots)
            targets.append(np.diff(values[:, chain], axis=1) / roots)
    flat = np.concatenate(targets, axis=1).transpose(1, 0, 2).reshape(-1, 4)
    solution = np.linalg.lstsq(np.concatenate(equations), flat, rcond=None)[0]
    expected = solution.reshape(n_players, 2, 2).transpose(1, 0, 2)
    np.testing.assert_allclose(estimator.solve(design, values).values, expected, atol=1e-10)


def triples(rng):
    """Return a game with some large main effects and as many triples as players, and its values."""
    weights = rng.normal(size=N_PLAYERS) * rng.exponential(size=N_PLAYERS)
    strengths, exact = rng.normal(size=N_PLAYERS) / 2, weights.copy()
    sets = np.array([rng.choice(N_PLAYERS, 3, replace=False) for _ in range(N_PLAYERS)])
    np.add.at(exact, sets, strengths[:, None] / 3)  # each set shares its dividend equally
    return lambda z: z @ weights + z[:, sets].all(axis=2) @ strengths, exact


def means(rng):
    """Return the mean of the weights of those present, of which one alone says far too much."""
    weights = rng.normal(size=N_PLAYERS)
    own = (1 / np.arange(1, N_PLAYERS + 1)).mean()  # the mean of 1 / size over positions
    others = (own - 1 / N_PLAYERS) / (N_PLAYERS - 1)
    exact = own * weights - others * (weights.sum() - weights)
    return lambda z: z @ weights / np.maximum(z.sum(axis=1), 1), exact


def networks(rng):
    """Return sums of networks of seven players each, and their values by enumeration."""
    subsets = [rng.choice(N_PLAYERS, 7, replace=False) for _ in range(20)]
    layers = [(rng.normal(size=(7, 5)), rng.normal(size=5)) for _ in subsets]
    bits = np.arange(2**7)[:, None] >> np.arange(7) & 1
    exact = np.zeros(N_PLAYERS)
    for subset, (first, last) in zip(subsets, layers, strict=True):
        table = np.tanh(bits @ first + 0.5) @ last
        exact[subset] += game_shapley_values(TableGame(table[None, :, None]))[0, :, 0]

    def function(z):
        parts = zip(subsets, layers, strict=True)
        return sum(np.tanh(z[:, s].astype(float) @ a + 0.5) @ b for s, (a, b) in parts)

    return function, exact


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("estimator", [core.LeastSquares(), core.RandomOrder()], ids=["ls", "ro"])
@pytest.mark.parametrize(("make", "least"), [(triples, 0.2), (means, 0.65), (networks, 0.3)])
def test_errors_fall_with_the_budget(make, least, estimator):
    """No peak where there are about as many values as players; intervals hold."""
    games = [make(np.random.default_rng(seed)) for seed in range(8)]
    errors, held = [], []
    for per_player in (0.25, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 6, 8, 9, 10):
        of_games = []
        for seed, (function, exact) in enumerate(games):
            found = estimate(function, estimator, round(per_player * N_PLAYERS) + 2, seed)
            values = found.values[0, :, 0]
            assert values.sum() == pytest.approx(exact.sum(), abs=1e-9)
            of_games.append(np.abs(values - exact).sum() / np.abs(exact).sum())
            lower, upper = (ends[0, :, 0] for ends in found.interval(0.95))
            held.append(((lower <= exact) & (exact <= upper)).mean())
        errors.append(np.mean(of_games))
    assert max(errors) < 1.1
    assert (np.array(errors) < 1.05 * np.minimum.accumulate(errors) + 0.02).all()
    assert errors[-1] < least
    assert 0.9 < np.mean(held) < 0.995


@pytest.mark.parametrize("estimator", [core.LeastSquares(), core.RandomOrder()], ids=["ls", "ro"])
def test_less_than_an_order_is_warned_of(estimator):
    weights = np.arange(40.0)
    with pytest.warns(ShapleyExtWarning, match="budget=40 is little for 40 players: below 80"):
        found = estimate(lambda z: z @ weights, estimator, 40)
    assert found.prior_shares[0] == pytest.approx(20 / 39)  # 20 blocks of two players


@pytest.mark.parametrize(
    ("n_backgrounds", "rows", "takes_over"), [(20, 303, True), (20, 305, False), (19, 250, False)]
)
def test_orders_take_over_with_few_rows_of_many(n_backgrounds, rows, takes_over):
    """Below 2 · 20 + 2.2 · 6 · 20 = 304 rows of the model, at 20 background rows or more."""
    game: Any = FunctionGame(lambda z: z.sum(axis=1), 6)
    game.n_backgrounds, game.has_single_outputs = n_backgrounds, True
    settings = core.Settings(seed=0, max_model_rows=rows)
    found = background_drawing(game, np.array([6]), core.LeastSquares(), settings)[2]
    assert isinstance(found, core.RandomOrder) == takes_over


def test_intervals_hold_where_effects_depend_on_how_many_players_are_present():
    """Between one and two evaluations a player, in games that saturate; by their integral."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    held = []
    for seed in range(6):
        shares = 0.3 * np.random.default_rng(seed).random(N_PLAYERS) ** 2
        absent = 1 - (nodes[:, None] + 1) / 2 * shares
        exact = weights / 2 @ (shares * absent.prod(axis=1, keepdims=True) / absent)
        game = lambda z, shares=shares: 1 - (1 - shares * z).prod(axis=1)  # noqa: E731
        low, high = estimate(game, core.OddGP(), round(1.8 * N_PLAYERS)).interval()
        held.append(((low[0, :, 0] <= exact) & (exact <= high[0, :, 0])).mean())
    assert np.mean(held) > 0.9


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize(("per_player", "most"), [(1, 0.95), (1.5, 0.7), (1.9, 0.5), (2.5, 0.4)])
def test_games_that_saturate_at_a_third_of_the_players_are_told_from_equal_shares(per_player, most):
    """And their mirrors, which change with the last third; by their integral."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    errors, held = [], []
    for seed in range(6):
        rates = np.random.default_rng(seed).exponential(size=N_PLAYERS)
        rates *= 3 * np.log(100) / rates.sum()
        absent = 1 + (nodes[:, None] + 1) / 2 * np.expm1(-rates)
        exact = weights / 2 @ (-np.expm1(-rates) * absent.prod(axis=1, keepdims=True) / absent)
        for game in (
            lambda z, r=rates: -np.expm1(z @ -r),
            lambda z, r=rates: np.exp(z @ r - r.sum()),
        ):
            found = estimate(game, core.OddGP(), round(per_player * N_PLAYERS), seed)
            low, high = found.interval()
            off = np.abs([found.values[0, :, 0] - exact, exact.mean() - exact]).sum(axis=1)
            errors.append(off[0] / off[1])
            held.append(((low[0, :, 0] <= exact) & (exact <= high[0, :, 0])).mean())
    assert np.mean(errors) < most
    assert np.mean(held) > 0.8


@pytest.mark.parametrize("n_more", [0, 1, 2])
def test_intervals_hold_with_two_evaluations_a_player(n_more):
    """Of sigmoids, whose single players hardly matter by themselves; by enumeration."""
    bits, held = np.arange(2**12)[:, None] >> np.arange(12) & 1, []
    for seed in range(6):
        shares = np.random.default_rng(seed).dirichlet(np.ones(12))
        game = lambda z, shares=shares: 1 / (1 + np.exp(6 - 12 * z @ shares))  # noqa: E731
        exact = game_shapley_values(TableGame(game(bits)[None, :, None]))[0, :, 0]
        low, high = estimate(game, core.OddGP(), 24 + n_more, seed, 12).interval()
        held.append(((low[0, :, 0] <= exact) & (exact <= high[0, :, 0])).mean())
    assert min(held) > 0.75
