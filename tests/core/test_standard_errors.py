"""Squared standard errors against the variance over seeds that they estimate."""

from itertools import cycle

import numpy as np
import pytest
import scipy.stats

import shapley_adapters as core
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.estimator_table import ESTIMATORS, OF_CLASSES, over
from tests.helpers.reference_games import TableGame, from_function, random_game, smooth_game
from tests.helpers.zoo import tabulated

N_PLAYERS, N_SEEDS = 8, 200
GAMES = {"smooth": smooth_game, "random": random_game}

DRAWN = [
    row
    for row in ESTIMATORS
    if not (row.is_exact or row.is_posterior or row.options.get("complement") == "none")
]


@pytest.mark.parametrize(
    ("row", "kind", "budget"),
    [
        (row, *one)
        for row, one in zip(DRAWN, cycle([("smooth", 110), ("random", 190)]), strict=False)
    ],
    ids=lambda value: getattr(value, "id", value),
)
@pytest.mark.slow
def test_standard_errors_estimate_the_spread_over_seeds(row, kind, budget):
    n_players, budget = (7, 66) if row.fits_folds else (N_PLAYERS, budget)
    game = GAMES[kind](n_players, n_rows=4, seed=3)
    results = [
        row.estimate(game, budget=budget, seed=seed, with_errors=True)
        for seed in range(row.n_seeds(N_SEEDS))
    ]
    squares = np.mean([result.standard_errors**2 for result in results], axis=0)
    variance = np.var([result.values for result in results], axis=0, ddof=1)
    low, high = row.error_ratio
    assert low < squares.sum() / variance.sum() < high
    assert (squares / variance).min() > row.least_error_ratio  # of any player
    means = np.mean([result.values for result in results], axis=0)
    for confidence, fewest, most in ((0.68, 0.60, 0.76), (0.95, 0.90, 0.98)):
        ends = [result.interval(confidence) for result in results]
        held = np.mean([(lower <= means) & (means <= upper) for lower, upper in ends])
        assert fewest < held < most


@over(
    [row for row in ESTIMATORS if row.options.get("complement") != "none" and row.exact_on_additive]
)
def test_errors_vanish_where_chance_has_no_part(row):
    """On an additive game every draw says the same. Its values are many numbers, unlike labels."""
    game = from_function(lambda z: z @ 2.0 ** np.arange(7), 7)
    result = row.estimate(game, budget=row.budget(7, 110), with_errors=True)
    # A small ridge, or the root of it.
    atol = 1e-5 if row.is_posterior else row.rounding if row.rounding > 1e-10 else 1e-12
    np.testing.assert_allclose(result.standard_errors, 0, atol=atol)


def test_what_single_precision_leaves_of_no_spread_tells_nothing_of_others():
    """Two of ten players only add up: their spread is nothing, or, in single precision, rounding.

    Taken for small spreads, the latter would make all intervals twice as wide.
    """

    def game(kind):
        def value(z):
            z = z.astype(kind)
            weights = np.random.default_rng(0).normal(size=(8, 6)).astype(kind)
            return np.tanh(z[:, :8] @ weights).sum(axis=1) + z[:, 8:] @ np.array([0.3, 0.7], kind)

        return from_function(value, 10)

    settings = core.Settings(seed=0, budget=160, with_errors=True)
    double, single = (
        core.estimate(game(kind), core.Shear(efficient=False, cooperators="random"), settings)
        for kind in (np.float64, np.float32)
    )
    np.testing.assert_allclose(single.standard_errors, double.standard_errors, rtol=1e-3)
    freedom, wanted = (one.degrees_of_freedom[:, :8] for one in (single, double))
    np.testing.assert_allclose(freedom, wanted, rtol=1e-3)
    # Few draws do not tell that they only add up.
    assert single.standard_errors[:, 8:].max() < single.standard_errors[:, :8].mean()


@pytest.mark.parametrize(
    ("row", "kind"),
    list(zip([row for row in OF_CLASSES if row in DRAWN], cycle(GAMES), strict=False)),
    ids=lambda value: getattr(value, "id", value),
)
@pytest.mark.slow
def test_intervals_hold_the_exact_values_as_often_as_they_say(row, kind):
    """With so few draws that 1.96 standard errors of several rows hold 76 to 85 %.

    Heavy tails leave Student's a little short.
    """
    game = GAMES[kind](N_PLAYERS, n_rows=2, seed=3)
    exact = game_shapley_values(game)
    inside = []
    for seed in range(60):
        budget = 66 if row.least(N_PLAYERS) < 60 else 110  # differences cost SHEAR 36
        lower, upper = row.estimate(game, budget=budget, seed=seed, with_errors=True).interval()
        inside.append((lower <= exact) & (exact <= upper))
    assert 0.84 < np.mean(inside) < 0.995


def test_student_s_quantiles_widen_what_few_draws_tell():
    game = random_game(6)
    few = core.estimate(game, core.RandomOrder(), core.Settings(seed=0, budget=22))
    assert (few.degrees_of_freedom == 2).all()
    lower, upper = few.interval(0.9)
    width = scipy.stats.t.ppf(0.95, 2) * few.standard_errors
    np.testing.assert_allclose(upper - few.values, width)
    np.testing.assert_allclose(few.values - lower, width)


@pytest.mark.parametrize("kind", ["vote", "airport (max)", "minimum of four", "second largest"])
@pytest.mark.parametrize(
    ("estimator", "per_player"),
    [
        (core.RandomOrder(), (4, 8, 16, 32)),
        (core.Shear(cooperators="random"), (9, 16, 32)),
        (core.LeastSquares(), (3, 4, 8)),
        (core.Semivalue(), (9, 16, 32)),
    ],
    ids=["random order", "shear", "least squares", "semivalue"],
)
def test_few_equal_draws_are_not_taken_for_certain(estimator, per_player, kind):
    """Before variances were pooled, intervals of votes held .17 to .8, of others .4 to .9."""
    game = TableGame(tabulated(kind, 11, 40)[:, :, None])
    exact = game_shapley_values(game)
    held = []
    for n in per_player:
        settings = core.Settings(seed=0, budget=n * game.n_players, with_errors=True)
        lower, upper = core.estimate(game, estimator, settings).interval()
        held.append(((lower <= exact + 1e-9) & (exact - 1e-9 <= upper)).mean())
    assert np.mean(held) >= 0.9
    assert min(held) >= 0.8


def test_orders_that_agree_by_chance_on_labels_are_not_taken_for_certain():
    """All errors of 10 of 40 draws were 0, and .875 held. In a game of pairs, orders must agree."""
    labels = from_function(lambda z: z[:, :3].all(axis=1), 6)
    pairs = from_function(lambda z: (z @ np.sqrt(np.arange(36)).reshape(6, 6) * z).sum(axis=1), 6)
    exact, held = np.repeat([1 / 3, 0], 3), []
    for seed in range(40):
        settings = core.Settings(seed=seed, budget=22, with_errors=True)
        found = core.estimate(labels, core.RandomOrder(), settings)
        assert found.standard_errors.max() > 0.01
        lower, upper = (ends[0, :, 0] for ends in found.interval())
        held.append((lower <= exact + 1e-9) & (exact - 1e-9 <= upper))
        assert core.estimate(pairs, core.RandomOrder(), settings).standard_errors.max() < 1e-12
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("confidence", [0, 1, 1.5, "0.9", True, None])
def test_confidence_is_a_share(confidence):
    estimate = core.estimate(random_game(3), core.RandomOrder(), core.Settings(seed=0))
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match="confid"):
        estimate.interval(confidence)
