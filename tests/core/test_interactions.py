"""Interactions of pairs: exact ones, posteriors, regressions, and what is refused."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.errors import BudgetError, InvalidArgumentError
from shapley_adapters.estimators.odd_gp.indices import Index
from shapley_adapters.interactions.result import INDICES, sum_of_squares, weights_of_members
from tests.helpers.brute_force import shapley_values
from tests.helpers.estimator_table import ESTIMATORS
from tests.helpers.interaction_oracles import (
    matrix_of,
    pair_interactions,
    shapley_taylor_by_orders,
)
from tests.helpers.reference_games import (
    FunctionGame,
    TableGame,
    quadratic_game,
    random_game,
    smooth_game,
)

each_index = pytest.mark.parametrize("index", INDICES)


def estimated(game, estimator=None, index="shapley", **options):
    settings = core.Settings(seed=0, interactions=index, **options)
    return core.estimate(game, estimator or core.OddGP(), settings)


def true_matrices(game, index):
    """Return shap's matrices, (R, M, M, K), by enumeration."""
    n_players = game.n_players
    return np.array(
        [
            matrix_of(
                n_players,
                pair_interactions(index, n_players, game.value_of(row)),
                shapley_values(n_players, game.value_of(row)),
            )
            for row in range(game.n_rows)
        ]
    )


def matrices(estimate):
    return estimate.interactions.matrices(estimate.values)


def test_the_two_oracles_of_shapley_taylor_agree():
    game = random_game(5, seed=3)
    by_weights = pair_interactions("shapley_taylor", 5, game.value_of(0))
    by_orders = shapley_taylor_by_orders(5, game.value_of(0))
    for pair, interaction in by_weights.items():
        np.testing.assert_allclose(interaction, by_orders[pair], atol=1e-12)


@each_index
@pytest.mark.parametrize("n_players", [2, 3, 6])
def test_enumeration_is_exact(index, n_players):
    game = random_game(n_players, n_rows=2, n_outputs=3)
    estimate = estimated(game, core.Exact(), index, budget=2**n_players)
    np.testing.assert_allclose(matrices(estimate), true_matrices(game, index), atol=1e-10)
    np.testing.assert_allclose(matrices(estimate).sum(axis=2), estimate.values, atol=1e-10)
    assert not estimate.interactions.error_matrices().any()


@pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: row.id)
def test_every_estimator_is_exact_where_all_coalitions_are_known(row):
    game = random_game(5, n_rows=2)
    estimate = estimated(game, row.build(), budget=32)
    np.testing.assert_allclose(matrices(estimate), true_matrices(game, "shapley"), atol=1e-10)


def test_players_without_influence_have_no_interactions():
    active = np.array([[True, False, True, True], [False, False, True, False]])
    values = random_game(4, n_rows=2).values
    places = np.arange(16)
    for row, players in enumerate(active):
        seen = sum(1 << player for player in np.flatnonzero(players))
        values[row] = values[row, places & seen]
    game = TableGame(values, active=active)
    estimate = estimated(game, core.Exact(), budget=16)
    np.testing.assert_allclose(matrices(estimate), true_matrices(game, "shapley"), atol=1e-10)


def test_one_player_has_no_interactions():
    estimate = estimated(random_game(1), core.Exact(), budget=2)
    assert estimate.interactions.values.shape == (1, 0, 1)
    np.testing.assert_allclose(matrices(estimate)[:, 0], estimate.values)


def able(index):
    """Return estimators that estimate an index, with a budget for 10 players."""
    return [
        row for row in ESTIMATORS if index in row.build().interaction_indices and row.id != "best"
    ]


@pytest.mark.parametrize(
    "row", [row for row in able("shapley") if row.exact_on_quadratic], ids=lambda row: row.id
)
def test_games_of_pairs_are_recovered(row):
    """An interaction of two players is the same in all indices, and so is its estimate."""
    game = quadratic_game(9, seed=2)
    estimate = estimated(game, row.build(), budget=200)
    assert not estimate.enumerated.any()
    np.testing.assert_allclose(matrices(estimate), true_matrices(game, "shapley"), atol=1e-9)


@pytest.mark.parametrize(
    ("row", "index"),
    [(row, index) for index in INDICES for row in able(index)],
    ids=lambda value: getattr(value, "id", value),
)
def test_estimates_come_close_and_need_no_further_evaluation(row, index):
    game = smooth_game(9, n_rows=3, n_outputs=2)
    without = estimated(game, row.build(), index=None, budget=200)
    n_before = len(game.asked)
    estimate = estimated(game, row.build(), index, budget=200)
    assert len(game.asked) == 2 * n_before
    np.testing.assert_array_equal(estimate.values, without.values)
    error = np.abs(matrices(estimate) - true_matrices(game, index)).sum()
    assert error < 0.2 * np.abs(true_matrices(game, index)).sum()
    np.testing.assert_allclose(matrices(estimate).sum(axis=2), estimate.values, atol=1e-12)


def test_rows_alone_give_the_same_numbers():
    values = smooth_game(9, n_rows=3, n_outputs=2).values
    together = estimated(TableGame(values), budget=150)
    for row in range(3):
        alone = estimated(TableGame(values[row : row + 1]), budget=150)
        np.testing.assert_array_equal(
            alone.interactions.values[0], together.interactions.values[row]
        )
        np.testing.assert_array_equal(
            alone.interactions.standard_errors[0], together.interactions.standard_errors[row]
        )


@pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: row.id)
def test_estimators_without_interactions_refuse_them_before_any_evaluation(row):
    if "shapley" in row.build().interaction_indices or row.is_exact:
        return
    game = random_game(9)
    with pytest.raises(InvalidArgumentError, match="'oddgp' and 'best'.*budget=512"):
        estimated(game, row.build(), budget=200)
    assert not game.asked


def test_budgets_that_do_not_determine_a_regression_are_refused():
    with pytest.raises(BudgetError, match="needs at least") as refusal:
        estimated(random_game(9), core.LeastSquares(), budget=60)
    estimated(random_game(9), core.LeastSquares(), budget=refusal.value.needed)


@pytest.mark.parametrize(("kind", "players"), [("tanh", 12), ("threshold", 10)])
def test_intervals_hold(kind, players):
    """With 8 and 16 evaluations a player, below and above the number of pairs."""
    game = smooth_game(players, n_rows=12, seed=5)
    if kind == "threshold":
        game.values = np.maximum(game.values, 0)
    truth = true_matrices_fast(game)
    first, second = np.triu_indices(players, 1)
    for per_player in (8, 16):
        estimate = estimated(game, budget=per_player * players)
        pairs = estimate.interactions
        errors = np.abs(pairs.values - 2 * truth[:, first, second])
        share = (errors <= 1.96 * pairs.standard_errors).mean()
        assert share >= 0.88, per_player


def true_matrices_fast(game):
    """Return matrices by enumeration in the package, which another test checks."""
    estimate = estimated(game, core.Exact(), budget=2**game.n_players)
    return matrices(estimate)


def test_few_evaluations_leave_wide_intervals():
    """Below M / 2 pairs of complements a player, most interactions are not determined."""
    game = smooth_game(12, n_rows=8, seed=7)
    truth = true_matrices_fast(game)
    first, second = np.triu_indices(12, 1)
    sizes = np.abs(2 * truth[:, first, second]).mean()
    pairs = estimated(game, budget=48).interactions
    assert pairs.standard_errors.mean() > sizes


def test_interactions_of_many_players():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=40)

    def value(coalitions):
        z = coalitions.astype(float)
        return z @ weights + 3 * z[:, 0] * z[:, 1] - 2 * z[:, 2] * z[:, 30]

    estimate = estimated(FunctionGame(value, 40), budget=640)
    matrix = matrices(estimate)[0, :, :, 0]
    expected = {(0, 1): 1.5, (2, 30): -1.0}
    for pair in itertools.combinations(range(40), 2):
        assert matrix[pair] == pytest.approx(expected.get(pair, 0.0), abs=0.05)


@pytest.mark.parametrize("n_players", [3, 12, 40, 1028, 1100, 2000])
def test_weights_of_more_coalitions_than_floating_point_numbers_hold(n_players):
    """The inputs of an estimate of 1,100 players would need 6 GiB, so the sums are tested alone."""
    others = n_players - 2
    shapley = [Fraction(1, (n_players - 1) * math.comb(others, size)) for size in range(others + 1)]
    squares = sum(4 * math.comb(others, s) * one**2 for s, one in enumerate(shapley))
    known = 2 * shapley[0] ** 2  # those of no and of all players
    index = Index(np.array([[0, 1]]), n_players)
    assert index.sum_of_squares(None) == pytest.approx(float(squares - known), rel=1e-10)
    weights = weights_of_members("shapley_taylor", n_players)
    squares = sum(
        4 * Fraction(math.comb(others, size), (n_players * math.comb(others + 1, size)) ** 2) * 4
        for size in range(others + 1)
    )
    assert sum_of_squares(weights) == pytest.approx(float(squares), rel=1e-10)
