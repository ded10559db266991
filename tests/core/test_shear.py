"""What makes SHEAR what it is: its cooperators, its pairs, its draws, its budget."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.estimators.shear.estimator import cooperator_count, stratum_weights
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import (
    FunctionGame,
    TableGame,
    product_game,
    random_game,
    request_of,
    smooth_game,
)


def symmetric_scores(n_players, n_rows=1, seed=0):
    scores = np.random.default_rng(seed).random((n_rows, n_players, n_players))
    return scores + scores.transpose(0, 2, 1)


def design_of(scores, budget, seed=0, **options):
    """Return the design for `scores`, (R, M, M), and `budget`."""
    n_rows, n_players = scores.shape[:2]
    request = request_of(
        n_players, budget, seed, scores=scores, has_scores=np.ones(n_rows, dtype=bool)
    )
    return core.Shear(**options).design(request)


def units_of(design, row=0):
    """Return players, subsets and coalitions, (U, 2 contexts, without and with, M), of a row."""
    n_units = design.n_units[row]
    coalitions = design.table.coalitions[row][design.positions[row, :n_units]]
    player, subset = np.divmod(design.strata[:n_units], len(design.stratum_weights))
    return player, subset, coalitions.reshape(n_units, 2, 2, -1)


def estimates(game, n_seeds, budget, scores, **options):
    """Return the values, (seeds, R, M, K), of `n_seeds` runs."""
    shear = core.Shear(**options, cooperators=scores)
    return np.array(
        [
            core.estimate(game, shear, core.Settings(seed=seed, budget=budget)).values
            for seed in range(n_seeds)
        ]
    )


def standardized(values, expected):
    """Return how many standard errors the means over seeds lie away from what is expected."""
    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return (values.mean(axis=0) - expected) / spread


# --- cooperators and strata ---


@pytest.mark.parametrize("n_players", [8, 13, 40])
@pytest.mark.parametrize("log_n", [2, 3, 4, 5, 6])
def test_n_evaluations_a_player_pay_for_log2_of_half_of_them(n_players, log_n):
    n_evaluations = n_players * 2**log_n
    assert cooperator_count(n_players, n_evaluations) == log_n - 1
    assert cooperator_count(n_players, n_evaluations - 1) == max(1, log_n - 2)
    budget = n_evaluations + 2
    if budget < 2**n_players:
        design = design_of(symmetric_scores(n_players), budget)
        assert len(design.stratum_weights) == 2 ** (log_n - 2)  # subsets in pairs
        assert (design.draws >= 1).all()


@pytest.mark.parametrize("n_cooperators", range(1, 7))
def test_stratum_weights_are_those_of_the_game_of_a_player_and_its_cooperators(n_cooperators):
    k = n_cooperators
    expected = []
    for number in range(2 ** (k - 1)):
        s = number.bit_count()
        expected.append(2 * factorial(s) * factorial(k - s) / factorial(k + 1))  # Eq. 12
    np.testing.assert_allclose(stratum_weights(k), expected, rtol=1e-12)
    assert stratum_weights(k).sum() == pytest.approx(1)


def test_table_1_of_the_paper():
    """M = 6, i = 1, N = 8: cooperators {2, 3}, subsets in binary order, n + n' = N/2 + 1 paired."""
    scores = np.zeros((1, 6, 6))
    scores[0, 0, [2, 1]] = scores[0, [2, 1], 0] = [2, 1]  # player 1 of the paper is number 0 here
    player, subset, units = units_of(design_of(scores, budget=6 * 8 + 2))
    own = units[(player == 0)][:2]
    assert subset[player == 0][:2].tolist() == [0, 1]
    contexts = [own[0, 0, 0], own[1, 0, 0], own[1, 1, 0], own[0, 1, 0]]  # n = 1, 2, 3, 4
    of_cooperators = [np.flatnonzero(context[1:3]).tolist() for context in contexts]
    assert of_cooperators == [[], [0], [1], [0, 1]]  # ∅, {2}, {3}, {2, 3}
    others = np.array([context[3:] for context in contexts])
    assert (others[0] == ~others[3]).all()
    assert (others[1] == ~others[2]).all()
    assert not any(context[0] for context in contexts)


@pytest.mark.parametrize("antithetic", [True, False])
def test_contexts_of_a_unit(antithetic):
    n_players, n_cooperators = 9, 3
    scores = symmetric_scores(n_players, n_rows=2)
    scores[:, np.eye(n_players, dtype=bool)] = -1
    design = design_of(scores, budget=n_players * 16 + 2, antithetic=antithetic)
    n_other_complements = 0
    for row in range(2):
        player, subset, units = units_of(design, row)
        assert (np.sort(player[: n_players * 4]) == np.repeat(np.arange(n_players), 4)).all()
        assert (subset[: n_players * 4] == np.tile(np.arange(4), n_players)).all()
        for i, number, (first, second) in zip(player, subset, units, strict=True):
            for without, with_player in (first, second):
                assert np.flatnonzero(without != with_player).tolist() == [i]
                assert with_player[i]
            # The weakest cooperator is the lowest bit.
            cooperators = np.argsort(-scores[row, i])[:n_cooperators][::-1]
            assert first[0, cooperators] @ (1 << np.arange(n_cooperators)) == number
            assert (first[0, cooperators] == ~second[0, cooperators]).all()
            others = np.setdiff1d(np.arange(n_players), [i, *cooperators])
            n_other_complements += (first[0, others] == ~second[0, others]).all()
    n_units = design.n_units.sum()
    assert n_other_complements == n_units if antithetic else n_other_complements < n_units / 2


def test_without_complements_only_cooperators_are_present():
    scores = symmetric_scores(8)
    player, _, units = units_of(design_of(scores, budget=8 * 8 + 2, complement="none"))
    present = units[:, :, 0].any(axis=1)  # (U, M)
    for i, members in zip(player, present, strict=True):
        assert members.sum() == 2
        others = np.delete(np.arange(8), i)
        strongest = others[np.argsort(-scores[0, i, others])[:2]]
        assert np.flatnonzero(members).tolist() == sorted(strongest)


def test_other_players_are_present_as_often_as_in_a_random_order():
    """Given s of K before the player, another one is with probability (s + 1)/(K + 2).

    And two others are with (s + 1)(s + 2)/((K + 2)(K + 3)): they hang together.
    """
    scores = np.zeros((1, 10, 10))  # ties: the cooperators of player 9 are 0 and 1
    both, single, n_drawn = np.zeros(3), np.zeros(3), np.zeros(3)
    for seed in range(1500):
        player, _, units = units_of(design_of(scores, budget=10 * 8 + 2, seed=seed))
        for first, second in units[:20][player[:20] == 9, :, 0]:
            for context in (first, second):
                size = context[:2].sum()
                n_drawn[size] += 1
                single[size] += context[5]
                both[size] += context[5] and context[6]
    size, k = np.arange(3), 2
    for found, expected in (
        (single / n_drawn, (size + 1) / (k + 2)),
        (both / n_drawn, (size + 1) * (size + 2) / ((k + 2) * (k + 3))),
    ):
        # Independent tosses within a size, 1500 at least; 4 standard deviations. Fair coins
        # would be off by 19 of them, tosses without the common arrival time by 6.
        np.testing.assert_array_less(
            np.abs(found - expected), 4 * np.sqrt(expected * (1 - expected) / n_drawn)
        )


# --- what comes out ---


@pytest.mark.parametrize("complement", ["posterior", "uniform", "none"])
@pytest.mark.parametrize("n_players", [2, 3, 4, 6])
def test_all_others_as_cooperators_give_the_shapley_values(n_players, complement):
    game = random_game(n_players, n_rows=2, n_outputs=2)
    scores = symmetric_scores(n_players, n_rows=2)
    # 2^M for each player, as if nothing were shared; in truth all of them share 2^M.
    design = design_of(scores, n_players * 2**n_players + 2, complement=complement)
    assert design.table.counts.tolist() == [2**n_players] * 2
    places = design.table.coalitions @ (1 << np.arange(n_players))
    values = np.take_along_axis(game.values, places[:, :, None], axis=1)
    solution = core.Shear(complement=complement).solve(design, values)
    np.testing.assert_allclose(solution.values, game_shapley_values(game), atol=1e-10)


N_SEEDS = 400


@pytest.fixture(scope="module")
def indicator_games():
    """All games at once: SHEAR with given scores is linear, so those of one coalition suffice."""
    return TableGame(np.eye(2**6)[None])


@pytest.mark.parametrize(
    ("budget", "options"),
    # One cooperator, two; many duplicates.
    [(26, {}), (60, {}), (45, {"efficient": False}), (26, {"antithetic": False})],
    ids=str,
)
@pytest.mark.slow
def test_posterior_draws_are_unbiased_for_every_game(indicator_games, budget, options):
    """Over 6 · 64 means, |z| > 4.5 happens once in 400 runs of an unbiased estimator."""
    values = estimates(indicator_games, N_SEEDS, budget, symmetric_scores(6)[0], **options)
    is_random = values.std(axis=0) > 1e-12
    exact = game_shapley_values(indicator_games)
    z = standardized(values[:, is_random], exact[is_random])
    assert is_random.sum() > 300
    assert np.abs(z).max() < 4.5
    np.testing.assert_allclose(values.mean(axis=0)[~is_random], exact[~is_random], atol=1e-12)


@pytest.mark.parametrize(
    ("complement", "members_get"),
    # One cooperator: the product needs it, 1/2, and the third, which has arrived before the
    # player with (1 + 1)/(1 + 2) if the cooperator has; a fair coin makes it 1/2.
    [("posterior", 1 / 3), ("uniform", 1 / 4)],
)
@pytest.mark.slow
def test_a_product_of_three_players_with_one_known_cooperator(complement, members_get):
    game = product_game(7, [0, 1, 2])
    scores = np.zeros((7, 7))
    scores[[0, 1, 2], [1, 2, 0]] = 1  # each member knows one of the other two
    values = estimates(game, 400, 7 * 4 + 2, scores, complement=complement, efficient=False)[
        :, 0, :3, 0
    ]
    z = standardized(values, members_get)
    assert np.abs(z).max() < 4
    # Over as many seeds, the wrong one of the two would be far out.
    assert np.abs(standardized(values, 7 / 12 - members_get)).min() > 5


def test_posterior_draws_err_less_than_fair_coins():
    """The point of SHEAR; on games like those of networks, with cooperators that are known."""
    game = smooth_game(10, n_rows=6)
    exact = game_shapley_values(game)
    settings = {"n_seeds": 40, "budget": 10 * 16 + 2, "scores": "difference"}
    error = {
        complement: np.abs(estimates(game, complement=complement, **settings) - exact).mean()
        for complement in ("posterior", "uniform", "none")
    }
    assert error["posterior"] < 0.8 * error["uniform"] < error["none"]


# --- the residual ---


def test_the_residual_is_shared_by_scores_without_the_cooperators():
    scores = symmetric_scores(7)
    scores[:, np.eye(7, dtype=bool)] = 0
    scores[:, [3, 5]] = scores[:, :, [3, 5]] = 0  # null players, or additive ones
    shares = design_of(scores, budget=7 * 8 + 2).shares[0]
    left = [np.sort(own)[::-1][2:].sum() for own in scores[0]]  # all but the two strongest
    np.testing.assert_allclose(shares, left / np.sum(left))
    assert (shares[[3, 5]] == 0).all()


def test_the_residual_is_split_equally_where_the_scores_tell_nothing():
    np.testing.assert_allclose(design_of(np.zeros((1, 7, 7)), 40).shares, 1 / 7)
    game = random_game(7)
    values, raw = (
        estimates(game, 1, 60, "random", efficient=efficient)[0, 0, :, 0]
        for efficient in (True, False)
    )
    np.testing.assert_allclose(np.ptp(values - raw), 0, atol=1e-12)
    assert abs((values - raw)[0]) > 1e-3


# --- the budget ---


@pytest.mark.parametrize("n_players", [8, 12, 20, 70])
@pytest.mark.parametrize("per_player", [4, 6, 8, 13, 16])
def test_what_duplicates_free_is_spent(n_players, per_player):
    """Down to less than one unit, of four coalitions, in every row.

    As long as at most half of all coalitions are asked for: beyond, draws find hardly any that
    are new, and the number of draws is bounded.
    """
    budget = n_players * per_player + 2
    assert budget <= 2**n_players / 1.9
    game = FunctionGame(lambda z: z.sum(axis=1), n_players, n_rows=3)
    scores = symmetric_scores(n_players, n_rows=3)
    for seed in range(3):
        settings = core.Settings(seed=seed, budget=budget)
        evaluations = core.estimate(game, core.Shear(cooperators=scores), settings).evaluations
        assert (evaluations <= budget).all()
        assert (evaluations > budget - 4).all()


def test_repeats_go_to_the_strata_that_weigh_most():
    """After a first round; the empty and the full subset weigh most, then sizes 1 and K − 1."""
    scores = symmetric_scores(12)
    design = design_of(scores, budget=12 * 30)  # K = 3, nearly twice what the first round costs
    weights = design.stratum_weights
    draws = design.draws.reshape(12, len(weights)).sum(axis=0)
    assert (design.draws >= 1).all()
    assert draws[weights == weights.max()].min() > draws[weights < weights.max()].max()


def test_a_round_of_repeats_starts_at_a_random_player():
    """Else the first players would be estimated better than the last, whatever the row."""
    repeated = {
        int(np.argmax(design_of(symmetric_scores(9), 4 * 9 + 6, seed=seed).draws))
        for seed in range(60)
    }
    assert len(repeated) > 4


@pytest.mark.parametrize("n_cooperators", [2, 3, 4])
def test_single_draws_take_the_highest_interaction_that_strata_tell_for_noise(
    n_cooperators, monkeypatch
):
    """Of an even number of cooperators: the two subsets of a stratum cancel odd ones out."""
    of_shear = "shapley_adapters.estimators.shear.estimator"
    monkeypatch.setattr(f"{of_shear}.pooled_variances", lambda *variances: variances)
    n_players = 9
    scores = np.zeros((1, n_players, n_players))
    scores[0, 0, 1 : n_cooperators + 1] = np.arange(n_cooperators, 0, -1)  # player 1 the strongest
    budget = 2 + n_players * 2 ** (n_cooperators + 1)
    design = design_of(scores, budget, efficient=False)
    members = design.table.coalitions[0]
    signs = np.where(members, 1.0, -1.0)
    cooperators = range(1, n_cooperators + 1)
    of_noise = set(cooperators) if n_cooperators % 2 == 0 else set(cooperators) - {1}
    for size in range(n_cooperators + 1):
        for chosen in combinations(cooperators, size):
            values = members[:, 0] * signs[:, list(chosen)].prod(axis=1)
            solution = core.Shear(efficient=False).solve(design, values[None, :, None])
            assert (solution.standard_errors[0, 0, 0] > 0) == (set(chosen) == of_noise)
