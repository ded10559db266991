"""Few evaluations for many players: the design and the posterior of values without complements."""

from itertools import combinations

import numpy as np
import pytest
from scipy import linalg, stats

import shapley_adapters as core
from shapley_adapters.estimators.odd_gp.estimands import ShapleyValues
from shapley_adapters.estimators.odd_gp.kernels import Kernel, Prior
from shapley_adapters.estimators.odd_gp.posterior import PriorChoice, posterior
from shapley_adapters.estimators.odd_gp.sparse_interactions import SparseInteractions
from shapley_adapters.estimators.odd_gp.sparse_main_effects import (
    MainEffects,
    _BesideOthers,
    main_effects,
)
from shapley_adapters.estimators.odd_gp.values_design import pairs_after_singles, spread_values
from shapley_adapters.estimators.odd_gp.values_posterior import (
    _Regression,
    posterior_of_values,
    similar_outputs,
)
from shapley_adapters.estimators.odd_gp.values_prior import (
    _LARGER_SIZES,
    _ROUNDING,
    CONSTANT,
    ErrorCovariances,
    Products,
    SizeFactors,
    Variances,
    sums_over_sets,
)
from shapley_adapters.estimators.protocol import DesignRequest
from shapley_adapters.estimators.value_errors import ValueErrors
from tests.helpers.brute_force import shapley_values
from tests.helpers.reference_games import FunctionGame

ODD_GP = "shapley_adapters.estimators.odd_gp"
FACTORS = [SizeFactors(), SizeFactors(tilt=0.5, curvature=1.0)]


pytestmark = pytest.mark.filterwarnings("ignore:budget=")


def ends(n_players):
    return np.arange(2)[:, None] * np.ones((1, n_players), dtype=int) > 0


def small_games(n_players, seed, decay=0.4):
    """Return a sum of random games of two to five players each, and its Shapley values.

    A game is a sum of products of signs. That of a set T gives 2 / |T| to each member, if |T| is
    odd. Few players are in many games, as words that matter are in a text.
    """
    rng = np.random.default_rng(seed)
    shares = rng.pareto(1.5, size=n_players) + 0.05
    sets, coefficients, attributions = [], [], np.zeros(n_players)
    for _ in range(n_players):
        members = rng.choice(n_players, rng.integers(2, 6), replace=False, p=shares / shares.sum())
        for size in range(1, len(members) + 1):
            of_size = list(combinations(members.tolist(), size))
            effects = rng.normal(size=len(of_size)) * decay ** (size - 1) / np.sqrt(len(of_size))
            sets += of_size
            coefficients += effects.tolist()
            for chosen, effect in zip(of_size, effects, strict=True):
                attributions[list(chosen)] += 2 * effect / size * (size % 2)

    def values(coalitions):
        signs = np.where(coalitions, 1.0, -1.0)
        products = [signs[:, list(chosen)].prod(axis=1) for chosen in sets]
        return np.array(coefficients) @ np.array(products)

    return values, attributions


def estimate(values, n_players, budget, seed=0, weights="learned", n_rows=1, **settings):
    game = FunctionGame(values, n_players, n_rows=n_rows)
    return core.estimate(
        game, core.OddGP(weights), core.Settings(seed=seed, budget=budget, **settings)
    )


def error_of(found, exact):
    return np.abs(found.values[0, :, 0] - exact).sum() / np.abs(exact).sum()


def written_out(n_players, prior, factors, weights, strengths):
    """Return the prior set by set: games at all coalitions, (2^M, T), and their variances, (T,).

    Each column is a game whose coefficient is independent of the others.
    """
    strengths = np.ones(n_players) if strengths is None else strengths
    places = np.arange(2**n_players)
    signs = np.where((places[:, None] >> np.arange(n_players)) & 1, 1.0, -1.0)
    by_size = {2: prior.pairs, 3: prior.triples}
    by_size |= {size: prior.larger / len(_LARGER_SIZES) for size in _LARGER_SIZES}
    games, variances = [np.ones(len(signs))], [CONSTANT]
    for size, variance in by_size.items():
        sets = [list(chosen) for chosen in combinations(range(n_players), size)]
        products = np.array([strengths[chosen].prod() for chosen in sets])
        games += [signs[:, chosen].prod(axis=1) for chosen in sets]
        variances += (variance * products / products.sum()).tolist()
    sums, weighted = signs.sum(axis=1), signs @ np.sqrt(strengths / n_players)
    games += [weighted, (weighted**2 - 1) / np.sqrt(2)]
    variances += 2 * [prior.sizes]
    games += list((factors.at(sums, n_players)[:, None] * signs).T)
    return signs, np.array(games).T, np.array([*variances, *weights])


@pytest.mark.parametrize("strengths", [None, np.array([1.75, 1.75, 0.5, 0.5, 0.5, 1.5, 0.5])])
@pytest.mark.parametrize("factors", FACTORS)
def test_the_posterior_is_that_of_the_prior_written_out(factors, strengths):
    n_players, rng = 7, np.random.default_rng(0)
    prior, weights = Variances(0.3, 0.2, 0.4, 0.25), rng.uniform(0.02, 0.5, size=n_players)
    signs, games, variances = written_out(n_players, prior, factors, weights, strengths)
    places = 1 << np.arange(n_players)
    to_values = shapley_values(n_players, lambda members: games[places[list(members)].sum()])
    chosen = np.r_[0, 2**n_players - 1, 1 + rng.permutation(2**n_players - 2)[:30]]
    features, values = games[chosen], rng.normal(size=len(chosen))
    noise = _ROUNDING * (1 + prior.pairs + prior.sizes)
    kernel = features * variances @ features.T + noise * np.eye(len(chosen))
    covariances = to_values * variances @ features.T
    means = covariances @ np.linalg.solve(kernel, values)
    scale = values @ np.linalg.solve(kernel, values) / len(chosen)
    explained = np.einsum("in,ni->i", covariances, np.linalg.solve(kernel, covariances.T))
    strengths = np.ones(n_players) if strengths is None else strengths
    products = Products(signs[chosen] > 0, strengths)
    regression = _Regression.from_values(products, prior, factors, values[:, None])
    effects = MainEffects.given(*regression.of_all.of_games(np.array([0])), weights)
    given = regression.given_effects(products, prior, factors)
    _, *found = regression.attributions(effects, np.array([0]), *given)
    found = [array[:, 0] for array in found]
    np.testing.assert_allclose(found[0], means, atol=1e-8)
    np.testing.assert_allclose(found[1], scale * (to_values**2 @ variances - explained), atol=1e-8)
    log_determinant = (
        regression.half_log_determinant
        + np.linalg.slogdet(np.eye(n_players) + regression.of_all.gram * weights)[1] / 2
    )
    np.testing.assert_allclose(log_determinant, np.linalg.slogdet(kernel)[1] / 2, atol=1e-8)
    assert effects.scale == pytest.approx(scale)


def test_sums_over_sets_are_those_of_products():
    numbers = np.array([-1.0, 0.5, 2.0, 3.0, -0.3])
    expected = [sum(np.prod(chosen) for chosen in combinations(numbers, size)) for size in range(8)]
    found = sums_over_sets([(numbers**size).sum() for size in range(1, 8)])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_strengths_follow_the_effects_within_bounds():
    """One player has at most an eighth of all strengths, the others share what is left."""
    effects = np.full(80, 1e-4)
    effects[:3] = 50.0, 1.0, 1.0
    strengths = Products(ends(80), np.ones(80)).with_strengths(effects).strengths
    np.testing.assert_allclose(strengths.mean(), 1)
    assert strengths[0] == strengths.max() < 0.2 * 80
    assert strengths[1] == strengths[2] > strengths[3] > 0.02


@pytest.mark.parametrize("factors", FACTORS)
def test_attributions_of_effects_that_change_with_the_size(factors):
    n_players = 5
    exact = shapley_values(
        n_players,
        lambda members: (
            (2.0 * (0 in members) - 1)
            * factors.at(np.array(2.0 * len(members) - n_players), n_players)
        ),
    )
    own, other = factors.attributions(n_players)
    np.testing.assert_allclose(exact, [own, *[other] * (n_players - 1)])


@pytest.mark.parametrize(("n_players", "n_values"), [(40, 60), (40, 130), (64, 300), (100, 40)])
def test_the_first_coalitions_are_a_smaller_design(n_players, n_values):
    coalitions = spread_values(n_players, n_values, np.random.default_rng(0))
    assert coalitions.shape == (n_values, n_players)
    assert len(np.unique(coalitions, axis=0)) == n_values
    assert coalitions.any(axis=1).all()
    assert not coalitions.all(axis=1).any()
    n_alone = min(n_values, 2 * n_players)
    alone, others = coalitions[:n_alone], coalitions[n_alone : 2 * n_alone]
    np.testing.assert_array_equal(others, ~alone[: len(others)])
    pairs = coalitions[2 * n_alone :]
    np.testing.assert_array_equal(pairs[1::2], ~pairs[: len(pairs) // 2 * 2 : 2])


def test_halves_are_balanced():
    """Among the 64 rows of a matrix, each player is in half, each two players agree in half."""
    coalitions = spread_values(63, 126, np.random.default_rng(0))
    halves = np.where(coalitions[np.arange(len(coalitions)) % 4 != 0][:64], 1.0, -1.0)
    gram = halves.T @ halves
    # One or two rows are not part of it: those of no or of all players.
    assert np.abs(gram - np.diag(np.diag(gram))).max() <= 4


def test_a_mixture_is_chosen_where_few_effects_are_large():
    rng = np.random.default_rng(0)
    n, n_players = 120, 80
    features = np.where(rng.random((n, n_players)) < 0.5, 1.0, -1.0)
    dense = rng.normal(size=n_players) / 9
    sparse = np.where(np.arange(n_players) < 5, 1.0, 0.0)
    gains, errors = [], []
    for effects in (dense, sparse):
        values = (features @ effects + 0.3 * rng.normal(size=n))[:, None]
        arguments = features.T @ features / 0.09, features.T @ values / 0.09
        found = main_effects(*arguments, (values**2).sum(axis=0) / 0.09, n, is_sparse=True)
        gains.append((found[1].log_evidence - found[0].log_evidence)[0])
        errors.append([np.abs(own.means[:, 0] - effects).sum() for own in found])
    assert gains[1] > 5
    assert errors[1][1] < 0.5 * errors[1][0]
    assert errors[0][1] < 1.1 * errors[0][0]


def test_the_posterior_of_a_mixture_is_that_by_enumeration():
    """Four effects, two components each: sixteen normal posteriors, by their probabilities."""
    rng = np.random.default_rng(3)
    n, n_players, scale = 12, 4, 0.5
    variances, proportions = np.array([0.01, 4.0]), np.array([0.7, 0.3])
    features = rng.normal(size=(n, n_players)) + rng.normal(size=(n, 1))
    values = features @ [1.5, 0.0, 0.0, 0.4] + np.sqrt(scale) * rng.normal(size=n)
    logs, all_means, all_squares = [], [], []
    for chosen in np.ndindex(2, 2, 2, 2):
        weights = variances[list(chosen)]
        kernel = scale * (features * weights @ features.T + np.eye(n))
        of_values = stats.multivariate_normal(np.zeros(n), kernel)
        logs.append(of_values.logpdf(values) + np.log(proportions[list(chosen)]).sum())
        means = scale * weights * (features.T @ np.linalg.solve(kernel, values))
        explained = np.einsum("ij,ij->j", features, np.linalg.solve(kernel, features))
        all_means.append(means)
        all_squares.append(means**2 + scale * weights * (1 - scale * weights * explained))
    chances = np.exp(logs - np.max(logs))
    chances /= chances.sum()
    expected, squares = chances @ np.array(all_means), chances @ np.array(all_squares)
    gram, vector = features.T @ features, (features.T @ values)[:, None]
    precisions, shifts = np.full(n_players, 1.0), np.zeros((n_players, 1))
    scales, no_evidence = np.array([scale]), np.zeros(1)
    for _ in range(50):
        factor = linalg.cholesky(gram + np.diag(precisions), lower=True)
        means = linalg.cho_solve((factor, True), vector + shifts)
        found = MainEffects(
            means, factor, scales, no_evidence, 1 / precisions, shifts, proportions[:, None]
        )
        beside = _BesideOthers.from_effects(found, variances)
        precisions, shifts = beside.normal_functions(variances)
    # Expectation propagation is not exact: it differs by less than a tenth of a standard deviation.
    deviations = np.sqrt(squares - expected**2)
    assert (np.abs(found.means[:, 0] - expected) < 0.1 * deviations).all()
    # The effect that is either large or none has no normal function that does as its mixture.
    np.testing.assert_allclose(found.second_moments[:, 0] * scale, squares, rtol=0.3)
    evidence = beside.log_evidence(found)[0] - np.log(np.diagonal(factor)).sum()
    evidence += (
        found.means[:, 0] @ (vector + found.shifts)[:, 0]
        - values @ values
        - n * scale * np.log(scale)
    ) / (2 * scale)
    exact = np.log(np.exp(logs).sum()) + n / 2 * np.log(2 * np.pi)
    assert evidence == pytest.approx(exact, abs=0.2)


@pytest.mark.parametrize("has_variances", [False, True])
def test_the_posterior_of_pairs_is_that_of_the_prior_written_out(has_variances):
    """All coefficients of an odd part of seven players, where single players vary unlike."""
    n_players, rng = 7, np.random.default_rng(0)
    strengths, noise, share = rng.uniform(0.1, 0.6, size=n_players), 0.2, 0.4
    own = rng.uniform(0.02, 0.5, size=n_players) if has_variances else None
    everything = np.where((np.arange(2**n_players)[:, None] >> np.arange(n_players)) & 1, 1.0, -1.0)
    sets = [list(c) for size in (3, 5, 7) for c in combinations(range(n_players), size)]
    products = np.array([strengths[chosen].prod() for chosen in sets])
    singles = np.full(n_players, 1 / n_players) if own is None else own
    variances = np.r_[singles, share * products / products.sum()]
    chosen = np.r_[2**n_players - 1, 64 + rng.permutation(63)[:20]]
    signs = everything[chosen]
    games = np.array([everything[:, c].prod(axis=1) for c in [*[[j] for j in range(7)], *sets]]).T
    # The noise of each pair of complements is a part of the game, but for that of all players.
    of_pairs = np.zeros((2**n_players, 63))
    of_pairs[64:127], of_pairs[63:0:-1] = np.eye(63), -np.eye(63)
    games = np.hstack([games, of_pairs])
    variances = np.r_[variances, np.full(63, share * noise)]
    places = 1 << np.arange(n_players)
    to_values = shapley_values(n_players, lambda members: games[places[list(members)].sum()])
    kernel = games[chosen] * variances @ games[chosen].T + 1e-10 * np.eye(21)
    covariances, values = to_values * variances @ games[chosen].T, rng.normal(size=21)
    expected = covariances @ np.linalg.solve(kernel, values)
    of_one = None if own is None else own[None]
    prior = Prior(strengths[None], np.array([share]), np.array([noise]), singles=of_one)
    choices = [PriorChoice(Kernel.at(signs, strengths[None]), prior)]
    estimand, sparse = ShapleyValues(n_players), [SparseInteractions.empty()]
    found = posterior(estimand, signs, values[None, :, None], choices, 0.0, sparse)
    np.testing.assert_allclose(found.means[0, :, 0], expected, atol=1e-6)
    left = to_values**2 @ variances
    left -= np.einsum("in,ni->i", covariances, np.linalg.solve(kernel, covariances.T))
    ratios = found.variances[0, :, 0] / left  # the scale is common
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)


def test_few_players_who_matter_are_found_by_pairs():
    """Where all single players are alike, the error is .108."""
    n_players, errors, held = 60, [], []
    for seed in range(3):
        few, exact_of_few = small_games(8, seed)
        players = np.random.default_rng(seed).permutation(n_players)[:8]
        exact = np.zeros(n_players)
        exact[players] = exact_of_few
        found = estimate(lambda c, few=few, p=players: few(c[:, p]), n_players, 420, seed)
        errors.append(error_of(found, exact))
        factors = stats.t.ppf(0.975, found.degrees_of_freedom)
        held.append(np.abs(found.values - exact[:, None]) <= factors * found.standard_errors)
    assert np.mean(errors) < 0.08
    assert np.mean(held) > 0.9


@pytest.mark.parametrize(("per_player", "most"), [(0.5, 1.15), (1.0, 0.7), (2.0, 0.5)])
def test_few_players_who_matter_are_found(per_player, most):
    """Of 60 players, 8 play. Where all players share interactions, errors are 1.3, .93 and .72."""
    errors, held = [], []
    for seed in range(4):
        few, exact_of_few = small_games(8, seed)
        players = np.random.default_rng(seed).permutation(60)[:8]
        exact = np.zeros(60)
        exact[players] = exact_of_few
        found = estimate(lambda c, few=few, p=players: few(c[:, p]), 60, int(60 * per_player), seed)
        errors.append(error_of(found, exact))
        factors = stats.t.ppf(0.975, found.degrees_of_freedom)
        held.append(np.abs(found.values - exact[:, None]) <= factors * found.standard_errors)
    assert np.mean(errors) < most
    assert np.mean(held) > 0.88


@pytest.mark.parametrize("weights", ["learned", "equal"])
@pytest.mark.parametrize("per_player", [0.1, 0.5, 2, 3, 7.5])
def test_efficiency_is_exact(weights, per_player):
    values, _ = small_games(40, seed=0)
    found = estimate(values, 40, int(per_player * 40), weights=weights)
    total = values(ends(40)) @ [-1, 1]
    np.testing.assert_allclose(found.values.sum(axis=1), total, atol=1e-10)
    assert (found.standard_errors > 0).all()
    assert found.evaluations[0] <= int(per_player * 40)


def test_estimates_do_not_depend_on_other_rows_or_batches():
    n_players, budget = 60, 100
    first, second = (small_games(n_players, seed)[0] for seed in range(2))

    def both(coalitions):  # sums over batches have other last bits
        return np.round(np.stack([first(coalitions), second(coalitions)], axis=1), 8)

    together = estimate(both, n_players, budget, seed=3, n_rows=3)
    game = FunctionGame(both, n_players, evaluations_per_batch=7)
    alone = core.estimate(game, core.OddGP(), core.Settings(seed=3, budget=budget))
    np.testing.assert_array_equal(together.values[:1], alone.values)
    np.testing.assert_array_equal(together.values[2], together.values[0])
    np.testing.assert_array_equal(together.standard_errors[:1], alone.standard_errors)


def outputs_of_few_players(seeds, n_players=60):
    """Return coalitions and values, (n, K), of games in which 8 players play, and their values."""
    coalitions = np.concatenate(
        [ends(n_players), spread_values(n_players, 178, np.random.default_rng(0))]
    )
    games, attributions = [], []
    for seed in seeds:
        few, exact = small_games(8, seed)
        players = np.random.default_rng(seed).permutation(n_players)[:8]
        games.append(few(coalitions[:, players]))
        attributions.append(np.bincount(players, exact, n_players))
    return coalitions, np.array(games).T, np.array(attributions).T


def test_outputs_alike_share_their_factors(monkeypatch):
    coalitions, values, _ = outputs_of_few_players([1])
    n_solved, from_values = [], _Regression.from_values

    def counted(*arguments):
        n_solved.append(1)
        return from_values(*arguments)

    monkeypatch.setattr(_Regression, "from_values", counted)
    factors = np.array([1.0, -2.0, 0.01, 7.0])
    alone = posterior_of_values(coalitions, values)
    together = posterior_of_values(coalitions, values * factors, n_outputs=4)
    # With and without factors of the sizes, for equal strengths and those by the effects; and for
    # those that are fitted.
    assert len(n_solved) == 2 * (2 * 2 + 1)
    np.testing.assert_allclose(together.means, alone.means * factors, atol=1e-9)
    np.testing.assert_allclose(together.variances, alone.variances * factors**2, rtol=1e-9)


def test_outputs_of_other_players_have_strengths_of_their_own():
    coalitions, values, exact = outputs_of_few_players(range(6))
    errors = [
        np.abs(posterior_of_values(coalitions, values, n_outputs=n).means - exact).sum(axis=0)
        for n in (1, 6)
    ]
    ratios = errors[1] / errors[0]
    assert ratios.mean() < 1.05, ratios


few_choose = pytest.mark.parametrize("most", [100, 14])
"""All outputs choose the priors that they share, or some of them, without the last."""


@few_choose
def test_many_outputs_alike_share_variances_of_effects(most, monkeypatch):
    """40 mixtures of the same games, whose errors are not larger, and one of other players."""
    monkeypatch.setattr(f"{ODD_GP}.values_evidence._MOST_OUTPUTS", most)
    coalitions, other, exact = outputs_of_few_players([5])
    mixing = np.random.default_rng(0).normal(size=(4, 40))
    few = [small_games(8, seed) for seed in range(4)]
    players = np.random.default_rng(0).permutation(60)[:8]
    mixed = np.array([game(coalitions[:, players]) for game, _ in few]).T @ mixing
    truth = np.zeros((60, 41))
    truth[players, :40] = np.array([phi for _, phi in few]).T @ mixing
    truth[:, 40:] = exact
    targets = np.hstack([mixed, other])
    together = posterior_of_values(coalitions, targets, n_outputs=41)
    assert len(similar_outputs(together.means**2)) > 1
    alone = posterior_of_values(coalitions, targets[:, 30:], n_outputs=1)
    errors = [np.abs(together.means[:, 30:] - truth[:, 30:]).sum(axis=0)]
    errors.append(np.abs(alone.means - truth[:, 30:]).sum(axis=0))
    assert errors[0][:-1].sum() < 1.05 * errors[1][:-1].sum()
    assert errors[0][-1] < 1.05 * errors[1][-1]
    held = np.abs(together.means - truth) < 2 * np.sqrt(together.variances)
    assert 0.88 < held.mean() <= 1


def test_rows_do_not_depend_on_each_other():
    """Each chooses its own factors of the sizes, of which some have a tilt and others have none."""
    coalitions, values, _ = outputs_of_few_players(range(30))
    together = posterior_of_values(coalitions, values)
    for row in range(30):
        alone = posterior_of_values(coalitions, values[:, [row]])
        np.testing.assert_array_equal(together.means[:, [row]], alone.means)
        np.testing.assert_array_equal(together.variances[:, [row]], alone.variances)


def test_outputs_of_other_players_stay_separate():
    coalitions, values, exact = outputs_of_few_players(range(24))
    errors = [
        np.abs(posterior_of_values(coalitions, values, n_outputs=n).means - exact).sum()
        for n in (1, 24)
    ]
    assert errors[1] < 1.05 * errors[0]


def test_outputs_that_do_not_choose_follow(monkeypatch):
    """They take a few steps from the variances of the others; without any, the ratio is 1.3."""
    coalitions, values, exact = outputs_of_few_players(range(60))
    errors = []
    for most in (60, 14):
        monkeypatch.setattr(f"{ODD_GP}.values_evidence._MOST_OUTPUTS", most)
        found = posterior_of_values(coalitions, values, n_outputs=60)
        errors.append(np.abs(found.means - exact).sum())
    assert errors[1] < 1.08 * errors[0]


@few_choose
def test_many_outputs_do_not_depend_on_other_rows(most, monkeypatch):
    monkeypatch.setattr(f"{ODD_GP}.values_evidence._MOST_OUTPUTS", most)
    coalitions, values, _ = outputs_of_few_players([0, 1, 2])
    rows = values @ np.random.default_rng(0).normal(size=(3, 72))
    together = posterior_of_values(coalitions, rows, n_outputs=24)
    alone = posterior_of_values(coalitions, rows[:, 24:48], n_outputs=24)
    np.testing.assert_array_equal(together.means[:, 24:48], alone.means)
    np.testing.assert_array_equal(together.variances[:, 24:48], alone.variances)


def mixed_outputs(n_players, n_outputs, seed):
    """Return mixtures of four games of the same 8 players, and their Shapley values, (M, K)."""
    rng = np.random.default_rng(seed)
    players, mixing = rng.permutation(n_players)[:8], rng.normal(size=(4, n_outputs))
    games, attributions = zip(*(small_games(8, 4 * seed + game) for game in range(4)), strict=True)
    exact = np.zeros((n_players, n_outputs))
    exact[players] = np.array(attributions).T @ mixing

    def values(coalitions):  # sums over batches have other last bits
        return np.round(np.array([game(coalitions[:, players]) for game in games]).T @ mixing, 8)

    return values, exact


def test_many_outputs_share_weights_of_pairs(monkeypatch):
    """Where single players say much, pairs come; errors are at most 1.05 of those of their own."""
    n_players, budget, errors, held = 40, 260, np.zeros(2), []
    for seed in range(2):
        values, exact = mixed_outputs(n_players, 12, seed)
        for place, most in enumerate((10, 12)):
            monkeypatch.setattr(f"{ODD_GP}.posteriors_of_rows.MOST_PRIORS", most)
            found = estimate(values, n_players, budget, seed)
            errors[place] += np.abs(found.values[0] - exact).sum()
            held.append(np.abs(found.values[0] - exact) < 2 * found.standard_errors[0])
    assert errors[0] != errors[1]
    assert errors[0] < 1.05 * errors[1]
    assert np.mean(held[::2]) > 0.9


def test_shared_weights_of_pairs_do_not_depend_on_other_rows():
    n_players, budget = 40, 260
    values, _ = mixed_outputs(n_players, 12, seed=0)
    together, alone = (estimate(values, n_players, budget, 3, n_rows=n) for n in (3, 1))
    np.testing.assert_array_equal(together.values[1:2], alone.values)
    np.testing.assert_array_equal(together.standard_errors[1:2], alone.standard_errors)


def test_values_in_blocks_are_almost_as_good(monkeypatch):
    values, exact = small_games(60, seed=0)
    whole = error_of(estimate(values, 60, 240), exact)
    monkeypatch.setattr("shapley_adapters.estimators.odd_gp.values_posterior._MOST_TOGETHER", 100)
    found = estimate(values, 60, 240)
    np.testing.assert_allclose(found.values.sum(), values(ends(60)) @ [-1, 1], atol=1e-10)
    assert error_of(found, exact) < 1.8 * whole  # 60 players have more of them than 100 values


@pytest.mark.slow
def test_errors_fall_with_the_budget_and_intervals_hold():
    """No jump where complements come, and where the values choose other coalitions, at 6."""
    n_players, games = 40, [small_games(40, seed) for seed in range(8)]
    rates, errors, held = (0.5, 1.0, 2.0, 3.0, 4.5, 6.0, 7.5), [], []
    for rate in rates:
        of_rate = []
        for seed, (values, exact) in enumerate(games):
            found = estimate(values, n_players, int(rate * n_players), seed=seed)
            of_rate.append(error_of(found, exact))
            factors = stats.t.ppf(0.975, found.degrees_of_freedom)
            held.append(
                np.abs(found.values[0, :, 0] - exact) < (factors * found.standard_errors)[0, :, 0]
            )
        errors.append(np.mean(of_rate))
    assert (np.diff(errors) < 0.02 * np.array(errors[:-1])).all(), errors
    assert errors[1] < 0.9
    assert errors[-1] < 0.2
    assert 0.88 < np.mean(held) < 0.99


def test_single_players_come_only_where_they_say_much():
    """In a crowded game, one player alone, or all but one, is unlike all others."""
    n_players, estimator = 40, core.OddGP()
    request = DesignRequest(n_players, 300, 300, np.random.default_rng(0), ends(n_players))
    design = estimator.design(request)
    n_first = design.n_before_choice
    assert n_players < n_first < 2 * n_players
    coalitions = design.table.coalitions[0, :n_first]
    values, _ = small_games(n_players, seed=0)
    jumps = 10 * np.random.default_rng(1).normal(size=n_first)
    is_single = np.isin(coalitions.sum(axis=1), (1, n_players - 1))
    rows = np.stack([values(coalitions), values(coalitions) + jumps * is_single])
    local, crowded = estimator.chosen_designs(design, rows[:, :, None])
    assert (local[0].tolist(), crowded[0].tolist()) == ([0], [1])
    for _, chosen in (local, crowded):
        assert chosen.n_before_choice == 0
        np.testing.assert_array_equal(chosen.table.coalitions[0, :n_first], coalitions)
    assert local[1].draws.is_paired
    assert not crowded[1].draws.is_paired
    # Single players are left out, but for those that are drawn among all sizes.
    assert np.count_nonzero(crowded[1].draws.members.sum(axis=1) == 1) < 4


@pytest.mark.parametrize("n_pairs", [50, 300])
def test_pairs_of_many_players_begin_with_single_players(n_pairs):
    pairs = pairs_after_singles(100, n_pairs, np.random.default_rng(0))
    assert pairs.shape == (n_pairs, 100)
    assert (pairs[:100].sum(axis=1) == 1).all()
    assert len(np.unique(np.concatenate([pairs, ~pairs]), axis=0)) == 2 * n_pairs
    sizes = pairs[100:].sum(axis=1)
    is_half = np.abs(sizes - 50) < 20
    assert n_pairs == 50 or 0.5 < is_half.mean() < 0.9


@pytest.mark.parametrize("budget", [240, 300, 480])
def test_traces_begin_with_the_first_pair_that_values_chose(budget):
    values, _ = small_games(40, 0)
    found = estimate(values, 40, budget, trace=True)
    known = ~np.isnan(found.trace.values[0, 0, :, 0])
    assert 0 < known.sum() < len(known)
    np.testing.assert_array_equal(found.trace.values[:, :, -1], found.values)


def test_interactions_keep_pairs():
    values, _ = small_games(40, seed=0)
    found = estimate(values, 40, 120, interactions="shapley")
    assert found.interactions is not None
    assert np.isfinite(found.interactions.values).all()


@pytest.mark.parametrize(("n_players", "budget"), [(30, 60), (40, 640), (200, 3200)])
def test_few_players_and_the_default_budget_keep_their_design(n_players, budget):
    request = DesignRequest(
        n_players, budget, budget, np.random.default_rng(0), ends(n_players), budget_is_default=True
    )
    design = core.OddGP().design(request)
    assert design.draws.is_paired
    assert design.n_before_choice == 0


@pytest.mark.parametrize("noise", [0.3, 3.0, 20.0])
def test_errors_of_values_are_not_part_of_the_game(noise):
    """Also where they are larger than the values, whose standard deviation is 2 to 4."""
    n_players, held = 40, []
    for seed in range(6):
        values, exact = small_games(n_players, seed)
        rng = np.random.default_rng(seed)
        found = estimate(
            lambda coalitions, values=values, rng=rng: (
                values(coalitions) + noise * rng.normal(size=len(coalitions))
            ),
            n_players,
            220,
            seed=seed,
            n_repeats=2,
        )
        factors = stats.t.ppf(0.975, found.degrees_of_freedom)
        deviations = np.abs(found.values - exact[:, None])
        held.append(deviations < factors * found.standard_errors)
    assert np.mean(held) > 0.88


def test_errors_of_a_row_do_not_depend_on_other_rows():
    rng = np.random.default_rng(0)
    coalitions = np.concatenate([ends(35), spread_values(35, 80, rng)])
    values = rng.normal(size=(82, 3))
    variances = rng.uniform(size=(3, 1, 1)) * np.ones((3, 82, 1))
    errors = ErrorCovariances.from_value_errors(
        coalitions, ValueErrors(variances, *np.zeros((2, 3, 82, 1))), np.arange(82)
    )
    together = posterior_of_values(coalitions, values, errors)
    alone = posterior_of_values(coalitions, values[:, 1:2], errors.subset_games(np.array([1])))
    np.testing.assert_array_equal(together.means[:, 1], alone.means[:, 0])
    np.testing.assert_array_equal(together.variances[:, 1], alone.variances[:, 0])


def test_errors_of_complements_depend_on_each_other():
    """Noise of the odd part is opposite, that of the even part the same."""
    coalitions = np.concatenate([ends(4), np.eye(4, dtype=bool)[:2], ~np.eye(4, dtype=bool)[:1]])
    ones = np.ones((1, 5, 1))
    errors = ValueErrors(3 * ones, ones, 0 * ones)
    found = ErrorCovariances.from_value_errors(coalitions, errors, np.arange(5))
    expected = np.diag([0.0, 0.0, 4.0, 4.0, 4.0])
    expected[2, 4] = expected[4, 2] = -2.0
    np.testing.assert_array_equal(found.matrix(slice(0, 5)), expected)
    np.testing.assert_array_equal(found.matrix(slice(1, 4)), expected[1:4, 1:4])


def test_constant_games_have_no_attributions():
    coalitions = np.concatenate([ends(35), spread_values(35, 40, np.random.default_rng(0))])
    found = posterior_of_values(coalitions, np.ones((42, 1)))
    assert not found.means.any()
