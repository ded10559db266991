"""Cross-fitted estimates: unbiased whatever the regression, with the errors that they state."""

import math
from fractions import Fraction

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.estimators.cross_fitting import cross_fitted, variances_of_errors
from shapley_adapters.estimators.pair_folds import draw_folds, pair_counts
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import TableGame, random_game, request_of
from tests.helpers.zoo import tabulated


def ridge(draws, targets, total):
    """Return a regression on single players, wrong for most games, and right at known pairs.

    The pair of no and all players counts 2/M in each Shapley value.
    """
    signs = np.where(draws.members, 1.0, -1.0)
    n_players = signs.shape[1]

    def fit(known, others):
        matrix = signs[known].T @ signs[known] + 3 * np.eye(n_players)
        slopes = np.linalg.solve(matrix, signs[known].T @ targets[:, known])
        off = total / 2 - slopes.sum(axis=1, keepdims=True)
        weights = draws.coefficients[known] / pair_counts(n_players)[draws.sizes[known], None]
        errors = targets[:, known] - signs[known] @ slopes
        attributions = 2 * slopes + 2 * off / n_players + weights.T @ errors
        return attributions, signs[others] @ slopes, np.zeros_like(attributions)

    return fit


def solved(draws, game):
    table = draws.table.coalitions[0]
    values = game.values[:, table @ (1 << np.arange(table.shape[1]))]
    targets, total = draws.targets(values, centred=False), values[:, 1:2] - values[:, :1]
    return cross_fitted(draws, targets, ridge(draws, targets, total))


def z_values(game, make_draws, n_seeds):
    found = np.array([solved(make_draws(seed), game).values for seed in range(n_seeds)])
    spread = found.std(axis=0, ddof=1) / np.sqrt(n_seeds)
    return (found.mean(axis=0) - game_shapley_values(game)) / np.maximum(spread, 1e-12)


# --- designs ---

BUDGETS = [
    (3, 6, None),
    (4, 8, None),
    (5, 20, None),
    (6, 20, None),
    (6, 40, 14),
    (6, 62, None),
    (7, 40, None),
    (8, 100, 40),
    (8, 200, None),
    (13, 208, None),
    (13, 2000, 60),
    (40, 640, None),
    (300, 900, 600),
]
over_budgets = pytest.mark.parametrize(("n_players", "budget", "planned"), BUDGETS)


def check_folds(draws, n_players):
    """Each pair left by the others may be in a fold, and stands for its share of them."""
    counts = pair_counts(n_players)
    held = []
    for index, fold in enumerate(draws.folds()):
        held += fold.indices.tolist()
        n_known = np.bincount(draws.sizes[fold.other_indices], minlength=len(counts))
        is_left = n_known < counts
        own = np.arange(len(draws.expected)) % draws.n_folds == index
        assert (draws.expected[own].sum(axis=0)[is_left] > 0).all()
        for size in np.unique(draws.sizes[fold.indices]):
            of_size = fold.factors[draws.sizes[fold.indices] == size]
            assert np.ptp(of_size) == 0
            # Where it is random whether the fold has a pair of the size, its share is unbiased.
            expected, n_left = draws.expected[own, size].sum(), counts[size] - n_known[size]
            if expected < 1 and len(of_size) < n_left:
                assert of_size[0] * expected == pytest.approx(n_left / counts[size])
    assert sorted(held) == np.flatnonzero(draws.blocks >= 0).tolist()


@over_budgets
def test_folds_may_hold_whatever_is_left(n_players, budget, planned):
    draws = draw_folds(request_of(n_players, budget, 0, planned))
    n_evaluations = draws.table.coalitions.shape[1]
    assert budget - 1 <= n_evaluations <= budget
    check_folds(draws, n_players)
    smaller = draws.within(planned or budget)
    assert smaller.n_folds >= min(3, budget // 2 - 1)
    check_folds(smaller, n_players)
    assert (np.isinf(draws.expected).sum(axis=0) <= 1).all()  # a size is completed once


def test_pairs_differ():
    draws = draw_folds(request_of(8, 200))
    same_side = draws.members ^ draws.members[:, :1]
    assert len(np.unique(same_side, axis=0)) == len(same_side) == 99


# --- unbiased, for any regression ---


@pytest.mark.parametrize(
    ("n_players", "budget", "planned", "stop"),
    [
        *((*row, 1.0) for row in BUDGETS if row[0] <= 8),
        *((7, 100, 40, stop) for stop in (0.4, 0.55, 0.9)),  # the first part of a design
    ],
)
@pytest.mark.slow
def test_unbiased_for_any_regression(n_players, budget, planned, stop):
    """|z| > 4.5 of up to 64 means happens once in 2,000 runs."""
    game = random_game(n_players, n_rows=8, seed=3)
    n_used = int(budget * stop)
    draws = lambda seed: draw_folds(request_of(n_players, budget, seed, planned)).within(n_used)  # noqa: E731
    assert np.abs(z_values(game, draws, 200)).max() < 4.5


@pytest.mark.parametrize(("n_players", "budget"), [(6, 30), (8, 60), (8, 160)])
@pytest.mark.slow
def test_errors_are_those_of_the_draws(n_players, budget):
    """Mean squares over 300 seeds; they count on some covariance between folds."""
    game = random_game(n_players, seed=4)
    found = [solved(draw_folds(request_of(n_players, budget, seed)), game) for seed in range(300)]
    off = np.array([one.values for one in found]) - game_shapley_values(game)
    stated = np.mean([one.standard_errors**2 for one in found])
    assert 0.85 < stated / (off**2).mean() < 1.5


@pytest.mark.parametrize(("n_players", "budget", "planned"), [*BUDGETS[1:5], *BUDGETS[7:10]])
def test_errors_of_values_count_as_often_as_the_spread_does_not_show_them(
    n_players, budget, planned
):
    """Pair by pair, in whole numbers; sizes are complete, drawn, or drawn beside complete parts."""
    draws = draw_folds(request_of(n_players, budget, 0, planned))
    errors = np.random.default_rng(1).random((2, len(draws.sizes), 3))
    wanted, coefficients = np.zeros((2, n_players, 3)), draws.coefficients
    for pair, (size, block) in enumerate(zip(draws.sizes.tolist(), draws.blocks, strict=True)):
        is_half = 2 * (size + 1) == n_players
        n_all = math.comb(n_players, size + 1) // (1 + is_half)
        n_drawn, n_known = np.bincount(draws.blocks[draws.sizes == size] < 0, minlength=2).tolist()
        n_open = n_all - n_known
        share = Fraction(1, n_all) if block < 0 else Fraction(n_open, n_drawn * n_all)
        missing = 1 if block < 0 else Fraction(n_drawn, n_open)
        weights = coefficients[pair, :, None] ** 2 * float(missing * share**2)
        wanted += weights * errors[:, pair, None]
    np.testing.assert_allclose(variances_of_errors(draws, errors), wanted, rtol=1e-9, atol=1e-300)


# --- odd Gaussian-process regression ---


def errors_of(estimator, table, per_player, n_seeds=2):
    """Return the mean error over Σ|φ|, and how often 95 % intervals hold."""
    game = TableGame(table[:, :, None])
    exact = game_shapley_values(game)
    errors, inside = [], []
    for seed in range(n_seeds):
        settings = core.Settings(seed=seed, budget=per_player * game.n_players)
        found = core.estimate(game, estimator, settings)
        lower, upper = found.interval(0.95)
        errors.append(np.abs(found.values - exact).sum(axis=1) / np.abs(exact).sum(axis=1))
        inside.append((lower <= exact + 1e-9) & (exact <= upper + 1e-9))
    return np.mean(errors), np.mean(inside)


@pytest.mark.parametrize(("per_player", "most"), [(16, 0.6), (32, 0.35)])
@pytest.mark.parametrize("name", ["tanh network", "ReLU network", "trees"])
@pytest.mark.slow
def test_far_more_accurate_than_other_unbiased_estimators(name, per_player, most):
    table = tabulated(name, 10, 6)
    ours, inside = errors_of(core.OddGP(unbiased=True), table, per_player, n_seeds=1)
    others = [core.RandomOrder(), core.UnbiasedLeastSquares()]
    assert ours < most * min(errors_of(other, table, per_player)[0] for other in others)
    assert inside > 0.85


@pytest.mark.parametrize("name", ["vote", "random", "sum above a threshold"])
@pytest.mark.slow
def test_no_less_accurate_where_regressions_tell_little(name):
    table = tabulated(name, 9, 8)
    ours, _ = errors_of(core.OddGP(unbiased=True), table, 16)
    others = [core.RandomOrder(), core.UnbiasedLeastSquares()]
    assert ours < 1.2 * min(errors_of(other, table, 16, n_seeds=8)[0] for other in others)


@pytest.mark.parametrize("weights", ["learned", "equal"])
def test_large_designs_are_predicted_through_their_first_values(weights, monkeypatch):
    """What is left out of the regression is corrected all the same."""
    game = random_game(9, n_rows=3, seed=5)
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp.posterior.DENSE", 60)
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp.posterior.SEEN", 60)
    estimator = core.OddGP(weights, unbiased=True)
    found = core.estimate(game, estimator, core.Settings(seed=0, budget=508))
    off = np.abs(found.values - game_shapley_values(game))
    assert off.max() < 0.05
    np.testing.assert_allclose(
        found.values.sum(axis=1), found.grand_values - found.empty_values, atol=1e-10
    )


@pytest.mark.parametrize(("n_players", "budget"), [(3, 6), (4, 8), (4, 10), (4, 12), (4, 14)])
def test_few_evaluations_do_not_look_sure(n_players, budget):
    """Equal errors of two pairs, one pair, and all pairs of one size but none of the other."""
    tables = [tabulated(name, n_players, 4) for name in ("vote", "random", "tanh network")]
    game = TableGame(np.concatenate(tables)[:, :, None])
    exact = game_shapley_values(game)
    inside, freedom = [], []
    for seed in range(20):
        settings = core.Settings(seed=seed, budget=budget)
        found = core.estimate(game, core.OddGP("equal", unbiased=True), settings)
        lower, upper = found.interval()
        is_off = np.abs(found.values - exact) > 1e-6
        assert not (is_off & (found.standard_errors < 1e-6)).any()
        is_known = ~np.isnan(found.standard_errors)
        inside.append(((lower - 1e-9 <= exact) & (exact <= upper + 1e-9))[is_known])
        freedom.append(found.degrees_of_freedom[is_known])
    assert np.concatenate(inside).mean() > 0.93
    assert np.concatenate(freedom).max() <= budget / 2 - 1


@pytest.mark.slow
@pytest.mark.parametrize(("n_players", "budget"), [(5, 14), (8, 34)])
def test_pairs_that_do_not_separate_players_do_not_look_sure(n_players, budget):
    """Additive games are predicted without error then, but not how players share."""
    members = (np.arange(2**n_players)[:, None] >> np.arange(n_players)) % 2 == 1
    for seed in range(30):
        numbers = np.random.default_rng(seed).normal(size=n_players)
        game = TableGame((members @ numbers)[None, :, None])
        settings = core.Settings(seed=seed, budget=budget)
        found = core.estimate(game, core.OddGP(unbiased=True), settings)
        off = np.abs(found.values[0, :, 0] - numbers)
        assert (off < 30 * found.standard_errors[0, :, 0] + 1e-5).all()
