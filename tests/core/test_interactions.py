"""Interactions of sets: exact ones, posteriors, regressions, and what is refused."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import shapley_adapters as core
from shapley_adapters.errors import BudgetError, InvalidArgumentError
from shapley_adapters.interactions.indices import Family, Index, IndexOfSize
from shapley_adapters.interactions.result import (
    checked_pairs,
    checked_semivalues,
    checked_sets,
    set_numbers,
)
from tests.helpers.brute_force import shapley_values
from tests.helpers.estimator_table import ESTIMATORS, OF_CLASSES, over
from tests.helpers.interaction_oracles import (
    matrix_of,
    pair_interactions,
    semivalues_by_sizes,
    set_interactions,
)
from tests.helpers.reference_games import (
    FunctionGame,
    TableGame,
    quadratic_game,
    random_game,
    smooth_game,
    with_null_players,
)

INDICES = ["shapley", "shapley_taylor", "banzhaf"]
each_index = pytest.mark.parametrize("index", INDICES)
NAMES = ["SII", "k-SII", "STII", "FSII", "BII", "FBII", "Moebius"]
each_name = pytest.mark.parametrize("name", NAMES)


def estimated(game, estimator=None, index="shapley", **options):
    request = checked_pairs("interactions", index or False)
    settings = core.Settings(seed=0, interactions=request, **options)
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


@each_index
@pytest.mark.parametrize("n_players", [1, 2, 3, 6])
def test_enumeration_is_exact(index, n_players):
    game = random_game(n_players, n_rows=2, n_outputs=3)
    estimate = estimated(game, core.Exact(), index, budget=2**n_players)
    np.testing.assert_allclose(matrices(estimate), true_matrices(game, index), atol=1e-10)
    np.testing.assert_allclose(matrices(estimate).sum(axis=2), estimate.values, atol=1e-10)
    assert not estimate.interactions.error_matrices().any()


@over(OF_CLASSES)
def test_every_estimator_is_exact_where_all_coalitions_are_known(row):
    game = random_game(5, n_rows=2)
    estimate = estimated(game, row.build(), budget=32)
    np.testing.assert_allclose(matrices(estimate), true_matrices(game, "shapley"), atol=1e-10)


def able(index):
    """Return estimators that estimate an index, with a budget for 10 players."""
    return [
        row
        for row in ESTIMATORS
        if row.build().has_interactions(checked_pairs("", index)) and row.id != "best"
    ]


@over([row for row in able("shapley") if row.exact_on_quadratic])
def test_games_of_pairs_are_recovered(row):
    """An interaction of two players is the same in all indices, and so is its estimate."""
    game = quadratic_game(9, seed=2)
    estimate = estimated(game, row.build(), budget=200)
    assert not estimate.enumerated.any()
    np.testing.assert_allclose(matrices(estimate), true_matrices(game, "shapley"), atol=1e-9)


@pytest.mark.parametrize(
    ("row", "index"),
    [
        (row, index)
        for index in INDICES
        for row in able(index)
        if index == "shapley" or row in OF_CLASSES
    ],
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


@over([row for row in OF_CLASSES[1:] if not row.build().has_interactions(checked_pairs("", True))])
def test_estimators_without_interactions_refuse_them_before_any_evaluation(row):
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
    """With 8 and 16 evaluations a player, below and above the number of pairs.

    With 4, most interactions are not determined.
    """
    game = smooth_game(players, n_rows=12, seed=5)
    if kind == "threshold":
        game.values = np.maximum(game.values, 0)
    truth = matrices(estimated(game, core.Exact(), budget=2**players))
    first, second = np.triu_indices(players, 1)
    for per_player in (4, 8, 16):
        estimate = estimated(game, budget=per_player * players)
        pairs = estimate.interactions
        errors = np.abs(pairs.values - 2 * truth[:, first, second])
        share = (errors <= 1.96 * pairs.standard_errors).mean()
        assert share >= 0.88, per_player
        sizes = np.abs(2 * truth[:, first, second]).mean()
        assert per_player > 4 or kind == "threshold" or pairs.standard_errors.mean() > sizes


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
    taylor = [Fraction(2, n_players * math.comb(others + 1, size)) for size in range(others + 1)]
    for name, weights in (("SII", shapley), ("STII", taylor)):
        squares = sum(4 * math.comb(others, s) * one**2 for s, one in enumerate(weights))
        known = weights[0] ** 2 + weights[-1] ** 2  # those of no and of all players
        index = Index((IndexOfSize(np.array([[0, 1]]), n_players, Family(name, 2)),))
        assert index.sums_of_squares(None) == pytest.approx(float(squares - known), rel=1e-10)


# --- sets of any size ---


def of_sets(game, name, order, estimator=None, **options):
    request = checked_sets(name, order)
    settings = core.Settings(seed=0, interactions=request, **options)
    return core.estimate(game, estimator or core.OddGP(), settings)


def true_sets(game, name, order):
    """Return the interactions of all sets of up to `order` players, (R, k)."""
    return np.array(
        [
            list(set_interactions(name, order, game.n_players, game.value_of(row)).values())
            for row in range(game.n_rows)
        ]
    )


@each_name
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_enumeration_of_sets_is_exact(name, order):
    game = random_game(6, n_rows=2)
    estimate = of_sets(game, name, order, core.Exact(), budget=64)
    found = estimate.interactions.values[:, :, 0]
    np.testing.assert_allclose(found, true_sets(game, name, order), atol=1e-10)
    assert not estimate.interactions.standard_errors.any()


@each_name
def test_players_without_influence_are_in_no_set_that_interacts(name):
    active = np.array([[True, False, True, True], [False, False, True, False]])
    game = with_null_players(random_game(4, n_rows=2), active)
    found = of_sets(game, name, 3, core.Exact(), budget=16).interactions.values[:, :, 0]
    np.testing.assert_allclose(found, true_sets(game, name, 3), atol=1e-10)


@each_name
def test_estimates_of_sets_come_close(name):
    """Of nine players with interactions of up to three, at a quarter of all coalitions."""
    rng = np.random.default_rng(1)
    sets = [set_ for size in (1, 2, 3) for set_ in itertools.combinations(range(9), size)]
    chosen = {sets[place]: rng.normal() for place in rng.permutation(len(sets))[:20]}

    def value(coalitions):
        z = coalitions.astype(float)
        return sum(size * z[:, list(set_)].prod(axis=1) for set_, size in chosen.items())

    game = FunctionGame(value, 9)
    every = np.array(list(itertools.product([False, True], repeat=9)))[:, ::-1]
    truth = true_sets(TableGame(value(every)[None, :, None]), name, 3)
    estimate = of_sets(game, name, 3, budget=128).interactions
    errors = np.abs(estimate.values[:, :, 0] - truth)
    assert errors.sum() < 0.1 * np.abs(truth).sum()
    assert (errors <= 1.96 * estimate.standard_errors[:, :, 0] + 1e-9).mean() > 0.85


@pytest.mark.parametrize("name", ["k-SII", "STII", "FSII"])
def test_efficient_indices_sum_to_the_total(name):
    estimate = of_sets(smooth_game(9, n_rows=2), name, 3, budget=120)
    total = (estimate.grand_values - estimate.empty_values)[:, 0]
    sums = estimate.interactions.values[:, :, 0].sum(axis=1)
    np.testing.assert_allclose(sums, total, rtol=1e-5)


def test_sets_of_any_order_of_the_players_have_the_same_numbers():
    for size in (1, 2, 3, 5):
        sets = list(itertools.combinations(range(7), size))
        shuffled = np.random.default_rng(size).permuted(np.array(sets), axis=1)
        np.testing.assert_array_equal(set_numbers(shuffled, 7), np.arange(len(sets)))


def test_the_strongest_sets_have_intervals_for_all_sets_together():
    """The largest of the estimates of a game without interactions are chance."""
    rng = np.random.default_rng(0)
    held = []
    for seed in range(8):
        effects, noise = rng.normal(size=10), rng.normal(size=1024)
        places = 1 << np.arange(10)
        game = FunctionGame(lambda z: z @ effects + 0.5 * noise[z @ places], 10)  # noqa: B023
        found = of_sets(game, "SII", 3, budget=300).set_interactions()
        every = np.array(list(itertools.product([False, True], repeat=10)))[:, ::-1]
        exact = of_sets(
            TableGame((every @ effects + 0.5 * noise)[None, :, None]),
            "SII",
            3,
            core.Exact(),
            budget=1024,
        ).set_interactions()
        frame = found.strongest(5, size=3)
        truth = dict(zip(exact.sets, exact.values[0, :, 0], strict=True))
        for row in frame.itertuples():
            players = tuple(int(name.split()[1]) for name in row.features)
            held.append(row.lower <= truth[players] <= row.upper)
        assert (np.diff(np.abs(frame["value"])) <= 0).all(), seed
    assert np.mean(held) >= 0.9


# --- semivalues ---

SIZES_OF_SIX = {
    "shapley": np.full(6, 1 / 6),
    "banzhaf": scipy.stats.binom(5, 0.5).pmf(np.arange(6)),
    ("beta", 4, 1): scipy.stats.betabinom(5, 1, 4).pmf(np.arange(6)),
    (0.0, 0.0, 1.0, 0.0, 0.0, 0.0): np.eye(6)[2],
}
"""The shares of coalitions of 0 to 5 others; of Beta(4, 1) most are small."""

each_semivalue = pytest.mark.parametrize(("index", "shares"), SIZES_OF_SIX.items(), ids=str)


def semivalues_of(game, index, estimator, **options):
    settings = core.Settings(interactions=checked_semivalues(index), **options)
    return core.estimate(game, estimator, settings)


@each_semivalue
def test_semivalues_are_exact_where_all_coalitions_are_known(index, shares):
    game = random_game(6, n_rows=2, n_outputs=2)
    estimate = semivalues_of(game, index, core.OddGP(), seed=0, budget=64)
    truth = [semivalues_by_sizes(shares, 6, game.value_of(row)) for row in range(2)]
    np.testing.assert_allclose(estimate.values, truth, atol=1e-10)
    assert estimate.interactions is None and not estimate.standard_errors.any()


@pytest.mark.parametrize(
    ("index", "shares", "estimator"),
    [
        (*of_index, estimator)
        for place, of_index in enumerate(SIZES_OF_SIX.items())
        for estimator in (
            [core.RandomOrder(), core.RandomOrder(antithetic=False)][place % 2],
            core.Semivalue(),
        )
    ],
    ids=str,
)
def test_semivalues_of_draws_are_unbiased_with_right_errors(index, shares, estimator):
    game = random_game(6)
    truth = semivalues_by_sizes(shares, 6, game.value_of(0))[:, 0]
    found = [semivalues_of(game, index, estimator, seed=s, budget=56) for s in range(150)]
    values = np.array([one.values[0, :, 0] for one in found])
    stated = np.sqrt(np.mean([one.standard_errors[0, :, 0] ** 2 for one in found], axis=0))
    spread = values.std(axis=0, ddof=1)
    assert (np.abs(values.mean(axis=0) - truth) < 5 * spread / np.sqrt(150) + 1e-12).all()
    np.testing.assert_allclose(stated.mean(), spread.mean(), rtol=0.25, atol=1e-12)


@pytest.mark.parametrize("budget", [8, 12, 32])
@each_semivalue
def test_the_process_errs_less_than_its_bars(index, shares, budget):
    game = smooth_game(6, n_rows=12, seed=2)
    truth = np.array([semivalues_by_sizes(shares, 6, game.value_of(row)) for row in range(12)])
    held = []
    for seed in range(4):
        estimate = semivalues_of(game, index, core.OddGP(), seed=seed, budget=budget)
        lower, upper = estimate.interval()
        held.append((lower <= truth) & (truth <= upper))
        errors = np.abs(estimate.values - truth)
    # Of such games with six players, intervals hold .85 to .92, with a standard error of .02 here.
    assert np.mean(held) > 0.8
    assert budget < 32 or errors.sum() < 0.1 * np.abs(truth).sum()


@pytest.mark.parametrize("n_players", [13, 30, 60])
@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
def test_functions_of_how_many_are_present_do_not_hide_who_they_are(index, n_players):
    effects = np.random.default_rng(n_players).lognormal(size=n_players) / n_players
    saturating = 1 - np.exp(-5 * np.arange(n_players + 1) / n_players)

    def value(coalitions):
        return saturating[coalitions.sum(axis=1)] + 0.3 * coalitions @ effects

    game = FunctionGame(value, n_players)
    shares = np.full(n_players, 1 / n_players)
    if index == "banzhaf":
        shares = scipy.stats.binom(n_players - 1, 0.5).pmf(np.arange(n_players))
    truth = 0.3 * effects + shares @ np.diff(saturating)
    found = semivalues_of(game, index, core.OddGP(), seed=0, budget=4 * n_players)
    errors = found.values[0, :, 0] - truth
    assert np.linalg.norm(errors) < 0.2 * np.linalg.norm(truth)
    assert np.ptp(errors) < 1e-3 * np.ptp(truth)
    lower, upper = found.interval()
    assert np.mean((lower[0, :, 0] <= truth) & (truth <= upper[0, :, 0])) > 0.9


@pytest.mark.parametrize("n_players", [13, 30])
@pytest.mark.parametrize("per_player", [1, 2, 4])
def test_banzhaf_values_of_games_that_saturate(n_players, per_player):
    effects = np.random.default_rng(n_players).lognormal(size=n_players)
    effects *= 6 / effects.sum()
    game = FunctionGame(lambda coalitions: 1 - np.exp(-(coalitions @ effects)), n_players)
    others = (1 + np.exp(-effects)) / 2  # the mean factor of a player
    truth = (1 - np.exp(-effects)) * others.prod() / others
    bound = {1: 1, 2: 0.6, 4: 0.24}[per_player]  # single players after the halves: .3 at 4
    for seed in range(2):
        options = {"seed": seed, "budget": per_player * n_players}
        found = semivalues_of(game, "banzhaf", core.OddGP(), **options).values[0, :, 0]
        assert np.linalg.norm(found - truth) < bound * np.linalg.norm(truth)


@pytest.mark.parametrize(
    "index", ["moebius", ("beta", 0, 1), ("beta", "a", 1), [0.5, 0.6], [-0.5, 1.5], 3, []]
)
def test_semivalues_that_are_none_are_refused(index):
    with pytest.raises(InvalidArgumentError, match="index must be"):
        checked_semivalues(index)


def test_weights_for_other_numbers_of_players_are_refused_before_any_evaluation():
    game = random_game(6)
    with pytest.raises(InvalidArgumentError, match="0 to 5; got 2 weights for 6"):
        semivalues_of(game, [0.5, 0.5], core.OddGP(), seed=0, budget=40)
    assert not game.asked
