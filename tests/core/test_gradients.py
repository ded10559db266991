"""Values and gradients in one process: covariances, evidence and posterior against plain sums."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import shapley_adapters as core
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.estimators.odd_gp.fitting import maximised
from shapley_adapters.estimators.odd_gp.gradients import (
    GradientPrior,
    Readings,
    joint_posterior,
    plan_for,
    solved,
)
from shapley_adapters.estimators.odd_gp.prior import EVEN, ODD
from shapley_adapters.interactions.indices import single_players
from shapley_adapters.interactions.result import checked_pairs
from tests.helpers.brute_force import shapley_values
from tests.helpers.interaction_oracles import pair_interactions
from tests.helpers.semivalue_oracles import products_of

each_size = pytest.mark.parametrize("n_players", [4, 5, 6])
each_parity = pytest.mark.parametrize("parity", [ODD, EVEN])


def sets_of(parity, n_players):
    """Return all sets with an odd or even number of players, but the empty one."""
    sizes = range(2 - parity, n_players + 1, 2)
    return [set_ for size in sizes for set_ in combinations(range(n_players), size)]


def slopes_of(z, sets):
    """Return f(z_j = 1) − f(z_j = −1) of the product of each set, (M, sets), at any z."""
    n_players = len(z)
    found = np.zeros((n_players, len(sets)))
    for at, set_ in enumerate(sets):
        for player in set_:
            found[player, at] = 2 * np.prod([z[other] for other in set_ if other != player])
    return found


def curves_at(s):
    """Return the Legendre polynomials of degrees 2, 4, 6 and 8."""
    return [np.polynomial.legendre.legval(s, np.eye(9)[degree]) for degree in (2, 4, 6, 8)]


def some_prior(n_players, n_values=6, seed=1, parity=ODD):
    """Return the prior of random readings, and hyperparameters."""
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random((n_values, n_players)) < 0.5, 1.0, -1.0)
    signs[0] = 1
    degrees = np.array([1.0, 0.0, 0.6, 0.3])[:, None]
    points = np.concatenate([np.repeat(degrees, n_players, axis=1), signs[1:3]])
    points = points if parity == ODD else signs[:3]
    gradients = rng.normal(size=points.shape)
    readings = Readings(signs, rng.normal(size=n_values), points, gradients, parity)
    prior = GradientPrior(readings)
    return prior, prior.centre + 0.3 * prior.sd * rng.normal(size=len(prior.centre))


def written_out(prior, h):
    """Return the coefficients' variances, and products: values, then gradients."""
    signs, n_players = prior.readings.signs, prior.readings.signs.shape[1]
    parity = prior.readings.parity
    sets = sets_of(parity, n_players)
    at = prior.prior.variances(h)
    strengths, of_components = at.strengths, at.components
    variances = np.zeros(len(sets))
    variances[: n_players * parity] = strengths[: n_players * parity]
    for variance, tau in zip(of_components, at.tau, strict=True):
        shares = np.array([tau[list(set_)].prod() * (len(set_) > 1) for set_ in sets])
        variances += variance * shares / shares.sum()
    products = [products_of(signs, sets)]
    products += [slopes_of(z, sets) for z in prior.readings.points]
    return variances, np.concatenate(products), sets


@each_size
@each_parity
def test_covariances_are_those_of_enumeration(n_players, parity):
    prior, h = some_prior(n_players, parity=parity)
    variances, products, _ = written_out(prior, h)
    expected = (products * variances) @ products.T
    # Errors of values; of gradients, each of its own; on the path, a curve, an offset, and inside.
    n, g, n_kinds = prior.n_values, len(prior.readings.points), len(prior.kinds)
    noise = np.exp(h[-n_kinds - n_players - 1])
    shares = np.exp(h[-n_kinds - n_players : -n_kinds])
    shares = 4 * shares / shares.sum()
    of_noise, of_curve, *of_path = np.exp(h[-n_kinds:])
    by_pass = of_noise * np.eye(g)
    if parity == ODD:
        path = np.array([1, 0, 0.6, 0.3])
        curves = sum(0.75 * 0.25**k * np.outer(p, p) for k, p in enumerate(curves_at(path)))
        inside = np.outer(1 - path**2, 1 - path**2)
        by_pass[:4, :4] += of_curve * curves + of_path[0] + of_path[1] * inside
    errors = np.zeros_like(expected)
    errors[range(1, n), range(1, n)] = noise
    errors[n:, n:] = np.kron(by_pass, np.diag(shares))
    if parity == EVEN:
        errors[:n, :n] += 100  # of the level
        points = prior.readings.points.ravel()
        of_curves = of_curve * np.outer(points, points) * np.tile(np.diag(shares), (g, g))
        errors[n:, n:] += of_curves
    errors += 1e-9 * np.eye(len(errors))
    np.testing.assert_allclose(prior.covariance(h), expected + errors, rtol=1e-10, atol=1e-10)


@each_size
def test_covariances_with_shapley_values_are_those_of_enumeration(n_players):
    prior, h = some_prior(n_players)
    variances, products, sets = written_out(prior, h)
    counts = np.array([[2 / len(s) * (i in s) for i in range(n_players)] for s in sets])
    found, of_index = prior.index_covariances(h, single_players(n_players))
    # The noise of a value, which is a part of the game at a coalition and its complement.
    noise = np.exp(h[n_players + 4])
    weights = []
    for z in prior.readings.signs[1:]:
        one = frozenset(np.flatnonzero(z > 0))
        other = frozenset(range(n_players)) - one
        weights.append(
            shapley_values(n_players, lambda s, a=one, b=other: float(s == a) - (s == b))
        )
    expected = (products * variances) @ counts
    expected[1 : prior.n_values] += noise * np.array(weights)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    assert (of_index >= variances @ counts**2).all()


@each_size
@each_parity
@pytest.mark.parametrize("name", ["shapley", "shapley_taylor", "banzhaf"])
def test_covariances_of_pairs_with_gradients_are_those_of_enumeration(n_players, parity, name):
    prior, h = some_prior(n_players, parity=parity)
    readings = prior.readings
    if parity == ODD:  # in the middle and at coalitions
        points = readings.points[[1, 4, 5]]
        readings = replace(readings, points=points, gradients=readings.gradients[:3])
        prior = GradientPrior(readings)
    variances, products, sets = written_out(prior, h)

    def games(members):
        return products_of(
            np.array([[1.0 if j in members else -1 for j in range(n_players)]]), sets
        )

    counts = np.concatenate(list(pair_interactions(name, n_players, games).values()))
    found = prior.index_covariances(h, checked_pairs("index", name).index(n_players))[0]
    expected = (products * variances) @ counts.T
    of_gradients = slice(prior.n_values, None)
    np.testing.assert_allclose(found[of_gradients], expected[of_gradients], rtol=1e-9, atol=1e-10)


@each_parity
def test_the_evidence_is_that_of_the_normal_distribution_and_has_the_slopes_of_differences(parity):
    prior, h = some_prior(5, parity=parity)
    densities = []
    for one in (h, prior.centre):
        covariance = prior.covariance(one)
        scale = prior.values @ np.linalg.solve(covariance, prior.values) / len(covariance)
        densities.append(multivariate_normal.logpdf(prior.values, cov=scale * covariance))
    difference = prior.evidence(h)[0] - prior.evidence(prior.centre)[0]
    assert difference == pytest.approx(densities[0] - densities[1], abs=1e-6)
    _, gradient = prior.evidence(h)
    for at in range(len(h)):
        step = 1e-4 * (np.arange(len(h)) == at)
        slope = (prior.evidence(h + step)[0] - prior.evidence(h - step)[0]) / 2e-4
        assert gradient[at] == pytest.approx(slope, rel=1e-4, abs=1e-3)


def test_the_posterior_is_that_of_the_normal_distribution():
    """The means, and the errors of values that all other readings predict."""
    prior, _ = some_prior(5, n_values=8, seed=4)
    joint = joint_posterior(prior.readings, single_players(5))
    h = maximised(prior, prior.start, 12).h
    covariance, (across, of_index) = (
        prior.covariance(h),
        prior.index_covariances(h, single_players(5)),
    )
    solution = np.linalg.solve(covariance, np.column_stack([across, prior.values]))
    np.testing.assert_allclose(joint.means, across.T @ solution[:, -1], rtol=1e-6)
    variances = of_index - (across * solution[:, :-1]).sum(axis=0)
    ratios = joint.variances / variances
    assert ratios.max() == pytest.approx(ratios.min(), rel=1e-4)
    for left_out in range(1, 8):
        kept = np.arange(len(covariance)) != left_out
        weights = np.linalg.solve(covariance[np.ix_(kept, kept)], covariance[kept, left_out])
        error = prior.values[left_out] - weights @ prior.values[kept]
        assert joint.left_out[left_out - 1] == pytest.approx(error, rel=1e-5)


@pytest.mark.parametrize("budget", [10, 25, 60, 200])
@pytest.mark.parametrize("n_players", [12, 40])
def test_a_plan_spends_its_budget_on_different_pairs(n_players, budget):
    plan = plan_for(n_players, budget, np.random.default_rng(3))
    assert budget - 1 <= plan.n_evaluations <= budget
    halves = np.abs(plan.points).min(axis=1) == 1
    values = np.where(plan.with_values, 1.0, -1.0)
    pairs = np.concatenate([plan.points, values])
    assert (pairs[0] == 1).all()
    both = np.concatenate([pairs, -pairs])
    assert len(np.unique(both, axis=0)) == len(both)
    others = plan.points[~halves]  # all players alike, between the middle and the end
    assert (others == others[:, :1]).all() and (others > 0).all() and (others < 1).all()
    few = len(plan.with_values) + len(plan.points) - len(plan.points) // 2 <= n_players
    assert len(others) == (len(plan.points) // 2 if few else 0)
    if len(others) == 1:  # of Lobatto's quadrature with five nodes, ends and middle among them
        assert others[0, 0] == pytest.approx((3 / 7) ** 0.5)
    again = plan_for(n_players, budget, np.random.default_rng(3))
    assert (again.with_values == plan.with_values).all()


def readings_of(plan, coefficients, sets):
    """Return what a multilinear game without even part says."""
    points = np.insert(plan.points, 1, 0, axis=0)
    at_coalitions = plan.points[np.abs(plan.points).min(axis=1) == 1]
    signs = np.concatenate([at_coalitions, np.where(plan.with_values, 1.0, -1.0)])
    gradients = np.array([slopes_of(z, sets) @ coefficients for z in points])
    return Readings(signs, products_of(signs, sets) @ coefficients, points, gradients)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_few_passes_say_all_of_multilinear_games(scale):
    n_players, rng = 20, np.random.default_rng(0)
    singles = [(player,) for player in range(n_players)]
    effects = scale * rng.normal(size=n_players)
    index = single_players(n_players)
    plan = plan_for(n_players, 10, np.random.default_rng([0]))
    found = solved(readings_of(plan, effects, singles), index)
    np.testing.assert_allclose(found.means, 2 * effects, rtol=1e-8)
    assert not found.variances.any()
    # With one set of three, values and gradients.
    sets = [*singles, (0, 1, 2)]
    coefficients = np.append(effects, 2 * scale)
    expected = 2 * effects
    expected[:3] += 2 / 3 * 2 * scale
    for budget, most in ((25, 0.1), (80, 0.02), (200, 1e-9)):
        plan = plan_for(n_players, budget, np.random.default_rng([0]))
        found = solved(readings_of(plan, coefficients, sets), index)
        assert np.abs(found.means - expected).sum() / np.abs(expected).sum() < most


def test_a_game_without_any_effect_is_zero():
    plan = plan_for(12, 60, np.random.default_rng([0]))
    readings = readings_of(plan, np.zeros(12), [(player,) for player in range(12)])
    found = solved(readings, single_players(12))
    assert not found.means.any()
    assert not found.variances.any()


def test_more_than_512_players_have_no_gradients():
    estimator = core.OddGP(gradients=True)
    assert estimator.uses_gradients(512, 1024) and core.OddGP().uses_gradients(512, 1024)
    assert not core.OddGP().uses_gradients(513, 1026)
    with pytest.raises(InvalidArgumentError, match="more than 512 features"):
        estimator.uses_gradients(513, 1026)
