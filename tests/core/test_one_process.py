"""The one process of `oddgp`: its averages, covariances, fit and posterior against plain sums."""

from fractions import Fraction
from itertools import combinations
from math import comb, inf

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from scipy.optimize import minimize_scalar

from shapley_adapters.estimators.odd_gp import design, games, posterior, search, sparse_sets
from shapley_adapters.estimators.odd_gp.fitting import Fit, fitted
from shapley_adapters.estimators.odd_gp.prior import EVEN, ODD, Prior, SparseSets, Values
from shapley_adapters.interactions.indices import Family, index_of, single_players
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import TableGame
from tests.helpers.semivalue_oracles import all_sets, averages, members_of, products_of
from tests.helpers.zoo import GAMES, tabulated

M = 6
SETS = all_sets(M)
EVERY = np.where(members_of(SETS, M), 1.0, -1.0)
"""All coalitions, the last one of all players."""

FAMILIES = [(1.0, 1.0), (inf, inf), (1.0, 2.0), (2.0, 2.0), (3.0, 1.5)]
each_family = pytest.mark.parametrize("family", FAMILIES)
each_order = pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
each_parity = pytest.mark.parametrize("parity", [None, ODD, EVEN])


def index_of_order(order, family):
    """Return the averages of all sets of `order` players by a Beta distribution."""
    named = Family("BII", order) if inf in family else Family("beta", order, family)
    return index_of(named, (order,), M)


def spread(n_players, n_pairs, seed=0):
    """Return the coalition of all players and chosen pairs, as signs."""
    members = design.chosen_pairs(n_players, n_pairs, np.random.default_rng(seed))
    return np.where(np.concatenate([np.ones((1, n_players), bool), members]), 1.0, -1.0)


def some_coalitions(n, parity):
    """Return coalitions of which none is twice, without complements: the known ones first."""
    players, nobody = EVERY[[-1]], EVERY[[0]]
    others = EVERY[1:-1][EVERY[1:-1, 0] > 0]
    others = np.random.default_rng(0).permutation(others)
    known = [nobody, players] if parity is None else [players]
    return np.concatenate([*known, others])[:n], len(known)


def some_prior(parity, n=14, n_outputs=1, **options):
    """Return a prior of random values, and hyperparameters."""
    rng = np.random.default_rng(3)
    signs, n_known = some_coalitions(n, parity)
    values = rng.normal(size=(len(signs), n_outputs))
    errors = None
    if options.pop("has_errors", False):
        root = rng.normal(size=(len(signs), len(signs)))
        errors = root @ root.T / len(signs)
    data = Values(signs, values, parity, n_known, errors, 7.0)
    prior = Prior(data, has_function_of_size=True, **options)
    return prior, prior.centre + 0.5 * prior.sd * rng.normal(size=len(prior.centre))


def written_out(prior, h):
    """Return the covariances of the coefficients of all sets, the constant included."""
    at = prior.variances(h)
    variances = np.zeros(len(SETS))
    for variance, tau, parity in zip(at.components, at.tau, prior.parities, strict=True):
        is_of = [len(set_) % 2 == parity and len(set_) >= 2 for set_ in SETS]
        shares = np.array([tau[list(set_)].prod() for set_ in SETS]) * is_of
        variances += variance * shares / shares.sum()
    if prior.data.parity != EVEN:
        variances[1 : M + 1] += at.strengths
    if prior.data.parity != ODD:
        variances[0] += 100.0
    for set_, variance in zip(prior.sparse.players.tolist(), prior.sparse.variances, strict=True):
        variances[SETS.index(tuple(set_))] += variance
    degrees = [k for k in range(1, 25) if prior.data.parity in (None, k % 2)]
    polynomials = np.stack([Chebyshev.basis(k)(EVERY.mean(axis=1)) * k**-1.5 for k in degrees])
    of_functions = polynomials @ products_of(EVERY, SETS) / len(SETS)
    return np.diag(variances) + at.of_size * of_functions.T @ of_functions


# --- averages ---


@each_family
@each_order
def test_averages_are_those_of_enumeration(family, order):
    index = index_of_order(order, family)
    numbers = np.random.default_rng(order).normal(size=len(SETS))
    table = dict(zip(map(frozenset, SETS), numbers, strict=True))
    expected = averages(M, table.__getitem__, order, family)
    weights = index.weights_of_part(EVERY > 0, None)
    np.testing.assert_allclose(weights.T @ numbers, expected, rtol=0, atol=1e-8)
    # As a function of the coefficients of products of signs.
    coefficients = products_of(EVERY, SETS).T @ numbers / len(SETS)
    counts = np.concatenate([index.of_sets(np.array([set_], dtype=int)) for set_ in SETS])
    np.testing.assert_allclose(counts.T @ coefficients, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("family", "order", "parity"),
    [
        (family, order, (ODD, EVEN)[(place + order) % 2])
        for place, family in enumerate(FAMILIES)
        for order in range(1, 6)
    ],
)
def test_covariances_are_sums_over_sets(family, order, parity):
    index, rng = index_of_order(order, family), np.random.default_rng(order)
    tau = rng.uniform(0.05, 0.95, size=M)
    signs = rng.choice([-1.0, 1.0], size=(5, M))
    sets = [s for s in SETS if len(s) >= 2 and len(s) % 2 == parity]
    counts = np.concatenate([index.of_sets(np.array([s])) for s in sets])
    own = np.array([tau[list(s)].prod() for s in sets])
    found = index.covariances(signs, tau[None], np.ones(1), parity)
    expected = products_of(signs, sets) * own @ counts
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    found = index.variances(tau[None], np.ones(1), parity)
    np.testing.assert_allclose(found, own @ counts**2, rtol=1e-10, atol=1e-10)


@each_family
@each_parity
def test_sums_of_squares_are_over_all_but_the_ends(family, parity):
    index = index_of_order(2, family)
    members = EVERY[1:-1] > 0
    weights = index.weights_of_part(members, parity)
    total = (weights**2).sum(axis=0) * (1 if parity is None else 0.5)
    np.testing.assert_allclose(index.sums_of_squares(parity), total, rtol=1e-10)


@pytest.mark.parametrize("n_players", [3, 40, 1100, 2000])
def test_weights_of_more_coalitions_than_floating_point_numbers_hold(n_players):
    others = n_players - 1
    weights = [Fraction(1, n_players * comb(others, size)) for size in range(n_players)]
    # A coalition of one to M − 1 players has the first, or minus the second of these weights.
    squares = [comb(others, size) * weight**2 for size, weight in enumerate(weights)]
    expected = float(sum(squares[:-1], Fraction()) + sum(squares[1:], Fraction()))
    assert single_players(n_players).sums_of_squares(None) == pytest.approx(expected, rel=1e-10)
    signs = np.where(np.random.default_rng(0).random((3, n_players)) < 0.5, 1.0, -1.0)
    for tau in (0.01, 0.95):
        strengths = np.full((1, n_players), tau)
        found = single_players(n_players).covariances(signs, strengths, np.ones(1), ODD)
        assert np.isfinite(found).all()


# --- the prior and its evidence ---


@each_parity
def test_the_kernel_is_the_sum_over_sets(parity):
    size = 3 if parity == ODD else 2
    own = SparseSets(np.array([range(size), range(2, 2 + size)]), np.array([0.3, 1.7]))
    prior, h = some_prior(parity, sparse=own)
    features = products_of(prior.data.signs, SETS)
    others = products_of(EVERY[3:9], SETS)
    covariances, at = written_out(prior, h), prior.variances(h)
    expected = features @ covariances @ others.T
    np.testing.assert_allclose(prior.kernel(at, EVERY[3:9]), expected, rtol=1e-9, atol=1e-9)
    is_noisy = np.arange(len(features)) >= prior.data.n_known
    expected = features @ covariances @ features.T + np.diag(at.noise * is_noisy + 1e-9)
    np.testing.assert_allclose(prior.covariance(at), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"n_outputs": 2},
        {"centres": np.arange(M) / 3},
        {"are_labels": True},
        {"has_errors": True},
        {"has_errors": True, "has_sparse": True},
    ],
    ids=str,
)
@each_parity
def test_the_evidence_has_the_gradient_of_differences(parity, options):
    options = dict(options)
    if options.pop("has_sparse", False):
        size = 3 if parity == ODD else 2
        options["sparse"] = SparseSets(np.arange(size)[None], np.array([0.3]))
    prior, h = some_prior(parity, **options)
    _, gradient = prior.evidence(h)
    for at in range(len(h)):
        step = 1e-5 * (np.arange(len(h)) == at)
        slope = (prior.evidence(h + step)[0] - prior.evidence(h - step)[0]) / 2e-5
        assert gradient[at] == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_the_evidence_is_that_of_the_normal_distribution():
    """With the scale at its best, differences of log densities."""
    from scipy.stats import multivariate_normal

    prior, h = some_prior(ODD)
    values, at = prior.data.values[:, 0], [h, prior.centre]
    densities = []
    for one in at:
        covariance = prior.covariance(prior.variances(one))
        scale = values @ np.linalg.solve(covariance, values) / len(values)
        densities.append(multivariate_normal.logpdf(values, cov=scale * covariance))
    found = prior.evidence(at[0])[0] - prior.evidence(at[1])[0]
    assert found == pytest.approx(densities[0] - densities[1], abs=1e-6)


def test_learning_finds_who_interacts():
    """A product of players 0, 1, 2 beside single players whose effects are all alike."""
    signs = spread(10, 80)
    values = signs.sum(axis=1) / 10 + signs[:, :3].prod(axis=1)
    prior = Prior(Values(signs, values[:, None], ODD, 1))
    fit = fitted(prior)
    assert [sorted(one) for one in fit.prior.sparse.players.tolist()] == [[0, 1, 2]]
    assert fit.prior.evidence(fit.h)[0] > prior.evidence(prior.centre)[0] + 5


# --- sparse sets ---


def test_variances_of_sets_are_those_of_most_evidence():
    """Each of them by a search, given the others, whatever the order in which they came."""
    rng = np.random.default_rng(0)
    columns = rng.choice([-1.0, 1.0], size=(200, 6))
    noise = rng.normal(size=200)
    values = columns @ [0.8, 0, 0.4, 0, 0, -1.5] + noise
    factor = np.eye(200)
    found = sparse_sets.sparse_variances(factor, values[:, None], columns, 6, 1.0)
    assert (found > 0).tolist() == [True, False, True, False, False, True]
    # The scale of the noise is what is left, as the values are.
    for place in np.flatnonzero(found):

        def loss(log_variance, place=place):
            variances = np.where(np.arange(6) == place, np.exp(log_variance), found)
            covariance = np.eye(200) + columns * variances @ columns.T
            energy = values @ np.linalg.solve(covariance, values)
            return (np.linalg.slogdet(covariance)[1] + 200 * np.log(energy)) / 2

        best = minimize_scalar(loss, bounds=(-9, 5), method="bounded").x
        assert abs(np.log(found[place]) - best) < 2 * sparse_sets._CHANGE
    none = sparse_sets.sparse_variances(factor, values[:, None], columns, 10**60, 1.0)
    assert not none.any()  # chance finds as much among so many


def test_little_stands_out_where_the_prior_is_right():
    """Of fifty games drawn from it, with 165 triples each."""
    rng, signs = np.random.default_rng(0), spread(11, 120)
    prior = Prior(Values(signs, np.zeros((121, 1)), ODD, 1))
    h = prior.centre.copy()
    h[11:15] = np.log([0.3, 0.1, 0.1, 0.02])
    root, counts = np.linalg.cholesky(prior.covariance(prior.variances(h))), []
    for _ in range(50):
        values = root @ rng.normal(size=(121, 1))
        one = Prior(Values(signs, values, ODD, 1))
        counts.append(len(sparse_sets.find_sparse_sets(one, h).players))
    assert np.mean(counts) < 2.0


# --- the posterior ---


def dense_posterior(prior, h, index, seen=None):
    """Return the means, and variances in units of the scale, by the coefficients of all sets.

    The noise of each coalition, or pair of them, is a part of the game. With `seen`, interactions
    are those that the first values tell apart.
    """
    data, noise = prior.data, prior.variances(h).noise
    counts = np.concatenate([index.of_sets(np.array([set_], dtype=int)) for set_ in SETS])
    of_sets, of_data = written_out(prior, h), products_of(data.signs, SETS)
    to_data = of_data @ of_sets @ of_data.T
    to_index = of_data @ of_sets @ counts
    own, n = np.full(len(data.signs), 1e-9), len(data.signs)
    own[data.n_known :] += noise
    whole = np.diag(counts.T @ of_sets @ counts)
    if seen is not None:
        among = to_data[:seen, :seen] + 1e-9 * np.eye(seen)
        gain = to_data[:, :seen] @ np.linalg.inv(among)
        to_data, to_index = gain @ to_data[:seen], gain @ to_index[:seen]
    weights = index.weights_of_part(data.signs > 0, None)
    all_of_all = index.weights_of_part(EVERY > 0, None)
    if data.parity is not None:
        sign = 1 if data.parity == EVEN else -1
        weights = weights + sign * index.weights_of_part(data.signs < 0, None)
        all_of_all = (all_of_all + sign * index.weights_of_part(EVERY < 0, None))[EVERY[:, 0] > 0]
    is_noise = np.arange(n) >= data.n_known
    to_index = to_index + noise * is_noise[:, None] * weights
    ends = np.abs(EVERY.sum(axis=1)) == M
    if data.parity is not None:
        ends = ends[EVERY[:, 0] > 0]
    whole = whole + noise * (all_of_all[~ends] ** 2).sum(axis=0)
    gains = np.linalg.solve(to_data + np.diag(own), to_index).T
    return gains @ data.values, whole - (gains * to_index.T).sum(axis=1)


INDICES = [
    single_players(M),
    single_players(M, Family("BII", 1)),
    index_of(Family("SII", 2), (2,), M),
    index_of(Family("STII", 3), (3,), M),
    index_of(Family("k-SII", 4), (1, 2, 3, 4), M),
    index_of(Family("FSII", 3), (1, 2, 3), M),
]
"""Shapley and Banzhaf values, interactions of pairs, of three players, and of all sizes."""


@pytest.mark.parametrize(
    ("index", "parity"),
    [(index, parity) for index in INDICES[:2] for parity in (None, ODD)]
    + [(index, parity) for index in INDICES[2:] for parity in (None, EVEN)]
    + [(index, ODD) for index in INDICES[3:]],
)
def test_the_posterior_is_that_of_all_coefficients(index, parity):
    prior, h = some_prior(parity, n=20, n_outputs=2)
    found = posterior.posterior(Fit(prior, h, prior.sparse.players), index)
    means, variances = dense_posterior(prior, h, index)
    np.testing.assert_allclose(found.means, means, atol=1e-6)
    scale = found.variances.sum(axis=0) / variances.sum()  # of the values that others predict
    assert (scale > 0).all()
    np.testing.assert_allclose(found.variances, np.outer(variances, scale), rtol=1e-4, atol=1e-9)


@each_parity
def test_large_designs_are_seen_through_their_first_values(parity, monkeypatch):
    monkeypatch.setattr(posterior, "DENSE", 12)
    monkeypatch.setattr(posterior, "SEEN", 12)
    prior, h = some_prior(parity, n=24)
    index = INDICES[2 if parity == EVEN else 0]
    found = posterior.posterior(Fit(prior, h, prior.sparse.players), index)
    means, _ = dense_posterior(prior, h, index, seen=12)
    np.testing.assert_allclose(found.means, means, atol=3e-5)


def test_predictions_are_conditional_means():
    prior, h = some_prior(ODD, n=20)
    others = EVERY[30:40]
    found = posterior.posterior(Fit(prior, h, prior.sparse.players), INDICES[0], others)
    features, of_others = products_of(prior.data.signs, SETS), products_of(others, SETS)
    across = of_others @ written_out(prior, h) @ features.T
    expected = across @ np.linalg.solve(prior.covariance(prior.variances(h)), prior.data.values)
    np.testing.assert_allclose(found.predictions, expected, atol=1e-8)


@pytest.mark.parametrize("n_dense", [10**4, 100])
@pytest.mark.parametrize("is_learned", [True, False])
def test_exact_where_all_pairs_are_known(n_dense, is_learned, monkeypatch):
    """In all kinds of games, whatever the fit says: all at once and through the first values."""
    monkeypatch.setattr(posterior, "DENSE", n_dense)
    monkeypatch.setattr(posterior, "SEEN", n_dense)
    tables = np.concatenate([tabulated(name, 8, 1) for name in GAMES])
    exact = game_shapley_values(TableGame(tables[:, :, None]))[:, :, 0]
    places = np.concatenate([[255], 128 + np.random.default_rng(0).permutation(127)])
    signs = np.where((places[:, None] >> np.arange(8)) & 1, 1.0, -1.0)
    odd = (tables[:, places] - tables[:, 255 - places]) / 2
    of_rows = games.Games(signs, odd[:, :, None], ODD, 1)
    found = games.posteriors(of_rows, single_players(8), 480 * is_learned)
    sizes = np.sqrt((odd**2).mean(axis=1))[:, None]
    off = np.abs(found.means[:, :, 0] - exact) / np.where(sizes > 0, sizes, 1.0)
    assert off.max() < (1e-4 if n_dense > 128 else 1e-2)


def test_other_labels_of_the_players_permute_the_posterior():
    signs, labels = spread(9, 60), np.random.default_rng(1).permutation(9)
    values = np.tanh(signs @ np.random.default_rng(0).normal(size=(9, 3)))
    values = np.moveaxis(values, 1, 0)[:, :, None]
    for is_learned in (True, False):
        first, second = (
            games.posteriors(games.Games(of, values, ODD, 1), single_players(9), 480 * is_learned)
            for of in (signs, signs[:, labels])
        )
        np.testing.assert_allclose(second.means, first.means[:, labels], atol=1e-5)


# --- which coalitions ---


def posterior_variance(signs):
    """Return what is left of the variances of the Shapley values, by the prior of the choice."""
    members, n_players = signs > 0, signs.shape[1]
    index = single_players(n_players)
    own = np.full(len(signs), 0.3)
    own[0] = 1e-9
    kernel, to_index = signs @ signs.T / n_players + np.diag(own), 2 * signs / n_players
    strength = min(4 / n_players, 0.9)
    larger = range(3, n_players + 1, 2)
    share = 0.3 / sum(comb(n_players, size) * strength**size for size in larger)
    for size in larger:
        sets = np.array(list(combinations(range(n_players), size)))
        products = products_of(signs, sets)
        kernel += share * strength**size * products @ products.T
        to_index += share * strength**size * products @ index.of_sets(sets)
    weights = index.weights_of_part(members, None) - index.weights_of_part(~members, None)
    to_index += 0.3 * weights
    return -(np.linalg.solve(kernel, to_index) * to_index).sum()


def test_the_search_adds_the_pair_that_explains_most():
    """Of all 63 pairs of seven players, up to equal ones."""
    n_players = 7
    codes = np.arange(64)
    every = np.where((codes[:, None] >> np.arange(n_players)) & 1, -1.0, 1.0)
    signs = every[:1]
    for members in search.searched_pairs(n_players, 8):
        left = [posterior_variance(np.vstack([signs, one])) for one in every[1:]]
        signs = np.vstack([signs, np.where(members, 1.0, -1.0)])
        assert posterior_variance(signs) <= min(left) + 1e-5 * abs(min(left))


@pytest.mark.parametrize(("n_players", "n_pairs"), [(8, 20), (13, 26), (13, 104)])
def test_chosen_pairs_explain_more_than_drawn_ones(n_players, n_pairs):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, n_players, size=4 * n_pairs)
    ranks = rng.permuted(np.tile(np.arange(n_players), (4 * n_pairs, 1)), axis=1)
    drawn = (ranks < sizes[:, None]) ^ (ranks[:, :1] < sizes[:, None])
    drawn = rng.permuted(np.unique(drawn[drawn.any(axis=1)], axis=0), axis=0)[:n_pairs]
    drawn = np.where(np.concatenate([np.ones((1, n_players), bool), drawn]), 1.0, -1.0)
    assert posterior_variance(spread(n_players, n_pairs)) < posterior_variance(drawn)


@pytest.mark.parametrize("has_choice", [True, False])
@pytest.mark.parametrize(
    ("n_players", "n_pairs"),
    [(2, 1), (2, 5), (3, 3), (5, 15), (8, 127), (10, 511), (13, 4095), (60, 1500), (300, 40)],
)
def test_pairs_differ_and_are_as_many_as_there_are(n_players, n_pairs, has_choice):
    pairs = design.chosen_pairs(n_players, n_pairs, np.random.default_rng(0), has_choice)
    assert pairs.shape == (min(n_pairs, 2 ** (n_players - 1) - 1), n_players)
    both = np.concatenate([pairs, ~pairs])
    assert len(np.unique(both, axis=0)) == len(both)
    assert both.any(axis=1).all()


def test_both_choices_of_pairs_begin_alike():
    for n_players, n_pairs in ((12, 17), (12, 90), (40, 50)):
        chosen = [
            design.chosen_pairs(n_players, n_pairs, np.random.default_rng(3), has_choice)
            for has_choice in (True, False)
        ]
        n_first = design.n_before_choice(n_players, n_pairs)
        assert n_first >= 8
        np.testing.assert_array_equal(chosen[0][:n_first], chosen[1][:n_first])


def test_a_smaller_choice_opens_a_larger_one():
    for n_players, few, more in ((12, 40, 60), (20, 40, 90)):
        first, longer = (
            design.chosen_pairs(n_players, n, np.random.default_rng(3)) for n in (few, more)
        )
        np.testing.assert_array_equal(first, longer[:few])


@pytest.mark.parametrize("choose", [design.chosen_halves, design.chosen_values])
@pytest.mark.parametrize(("n_players", "n_values"), [(40, 60), (64, 125), (100, 40), (5, 7)])
def test_few_values_are_of_coalitions_that_differ(n_players, n_values, choose):
    members = choose(n_players, n_values, np.random.default_rng(0))
    assert members.shape == (n_values, n_players)
    both = np.concatenate([members, ~members])
    assert len(np.unique(both, axis=0)) == len(both)
    assert both.any(axis=1).all()


def test_any_two_players_are_on_the_same_side_in_half_of_the_coalitions():
    members = design.chosen_halves(63, 62, np.random.default_rng(0))
    signs = np.where(members, 1.0, -1.0)
    gram = signs.T @ signs
    # One or two rows of the matrix are no part of it: those of no or of all players.
    assert np.abs(gram - np.diag(np.diag(gram))).max() <= 4


def test_many_pairs_are_as_many_of_each_size_or_all_of_it():
    members = design.chosen_pairs(14, 3000, np.random.default_rng(0))
    counts = np.bincount(np.minimum(members.sum(axis=1), 14 - members.sum(axis=1)), minlength=8)
    np.testing.assert_array_equal(counts[1:3], [14, 91])
    assert counts[3:].min() > 300
