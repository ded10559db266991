"""`oddgp` with equal weights: matrices are factored once for many rows and calls."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import scipy.linalg

from shapley_adapters.estimators.odd_gp import equal_posterior, prior_grid
from shapley_adapters.estimators.odd_gp.attribution_covariances import (
    interaction_covariances,
    shapley_weights,
    squared_weights,
)
from shapley_adapters.estimators.odd_gp.design import spread_pairs
from shapley_adapters.estimators.odd_gp.estimands import ShapleyValues
from shapley_adapters.estimators.odd_gp.factors import FactorCache, n_bytes, sorted_players
from shapley_adapters.estimators.odd_gp.kernels import Kernel, Prior
from shapley_adapters.estimators.odd_gp.marginal_likelihood import log_prior
from shapley_adapters.estimators.odd_gp.posteriors_of_rows import posteriors_of_rows

DECOMPOSITIONS = (
    (scipy.linalg, "cholesky"),
    (scipy.linalg, "qr"),
    (np.linalg, "cholesky"),
    (np.linalg, "eigh"),
    (np.linalg, "svd"),
)


@pytest.fixture
def cleared_caches():
    prior_grid._cache.clear()
    equal_posterior._cache.clear()


@pytest.fixture
def decompositions(monkeypatch):
    """Count the decompositions of matrices from here on."""
    names = []
    for module, name in DECOMPOSITIONS:
        original = getattr(module, name)

        def counted(*arguments, of=original, called=name, **options):
            names.append(called)
            return of(*arguments, **options)

        monkeypatch.setattr(module, name, counted)
    return names


def design(n_players, n_pairs, seed=0):
    pairs = spread_pairs(n_players, n_pairs, np.random.default_rng(seed))
    return np.where(np.concatenate([np.ones((1, n_players), bool), pairs]), 1.0, -1.0)


def games(signs, n_games, seed=0):
    """Additive games, with noise or interactions of all strengths, of mean square 1."""
    rng = np.random.default_rng(seed)
    additive = signs @ rng.normal(size=(signs.shape[1], n_games))
    strengths = 10.0 ** rng.uniform(-4, 1, size=n_games)
    cubic = np.prod(signs[:, :3], axis=1)[:, None]
    others = np.where(np.arange(n_games) % 2, cubic, rng.normal(size=additive.shape))
    values = additive + strengths * others
    return values / np.sqrt((values**2).mean(axis=0))


def test_a_second_call_decomposes_no_matrix(cleared_caches, decompositions):
    shap = pytest.importorskip("shap")
    pytest.importorskip("shap_ext")
    background, rows = np.zeros((1, 10)), np.random.default_rng(0).normal(size=(8, 10))

    def model(x):
        return x.sum(axis=1) + x[:, 0] * x[:, 1] * x[:, 2]

    def explain(seed):
        explainer = shap.Explainer(model, background, algorithm="oddgp", weights="equal", seed=seed)
        return explainer(rows, max_evals=150, silent=True)

    explain(0)
    assert decompositions
    decompositions.clear()
    explain(0)
    explain(1)  # the same coalitions, with the players in another order
    assert not decompositions


@pytest.mark.parametrize(("n_players", "n_pairs"), [(30, 100), (7, 20), (3, 2), (30, 12), (2, 1)])
def test_the_grid_has_the_evidence_of_the_whole_covariance(n_players, n_pairs):
    signs = design(n_players, n_pairs)
    n, values = len(signs), games(signs, 12) if n_players > 2 else np.ones((2, 1))
    scores = []
    families = prior_grid._families(n_players, False)
    all_priors = [prior for family in families for prior in family if not prior.jumps]
    for prior in all_priors:
        kernel = Kernel.at(signs, prior.strengths)
        own = prior.noise * (np.arange(n) > 0) + 1e-10
        covariance = prior.interactions * (kernel.interactions + np.diag(own)) + kernel.base
        factor = np.linalg.cholesky(covariance)
        energy = (np.linalg.solve(factor, values) ** 2).sum(axis=0)
        half = np.log(np.diagonal(factor)).sum()
        scores.append(-0.5 * n * np.log(energy / n) - half + log_prior(prior))
    found = prior_grid.best_of_grid(signs, values)
    for game, prior in enumerate(found):
        of_game = np.array(scores)[:, game]
        index = next(i for i, other in enumerate(all_priors) if other is prior)
        assert of_game[index] > of_game.max() - 1e-6


@pytest.mark.parametrize(("n_players", "n_pairs"), [(20, 60), (20, 15), (20, 300), (6, 20)])
def test_the_posterior_is_that_of_the_whole_covariance(n_players, n_pairs):
    """For each variance of interactions, means, errors and predictions are those of plain algebra.

    The scale of the errors apart.
    """
    signs, others = design(n_players, n_pairs), design(n_players, 5, seed=1)[1:]
    values, n = games(signs, 9), len(signs)
    strengths = np.full(n_players, 3 / n_players)
    starts = [Prior(strengths, a, 0.1) for a in np.geomspace(1e-9, 3, 9)]
    found = equal_posterior.equal_posterior(signs, values, starts, others)
    errors = equal_posterior.equal_posterior(signs, values, starts, others[:0]).variances
    covariances, variances = interaction_covariances(signs, strengths)
    weights = shapley_weights(signs)
    for game, a in enumerate(np.geomspace(1e-9, 3, 9)):
        own = a * (0.1 * (np.arange(n) > 0) + 1e-10)
        prior = Prior(strengths, a, 0.1)
        covariance = Kernel.at(signs, strengths).combined(prior) + np.diag(own)
        common = a * covariances + 2 / n_players * signs + own[:, None] * weights
        solved = np.linalg.solve(covariance, np.column_stack([values[:, game], common]))
        means = common.T @ solved[:, 0]
        tolerance = 1e-5 if a < 1e-7 else 1e-6  # the plain algebra rounds
        np.testing.assert_allclose(found.means[:, game], means, rtol=0, atol=tolerance)
        with_others = Kernel.at(signs, strengths, others).combined(prior)
        predictions = with_others.T @ solved[:, 0]
        np.testing.assert_allclose(found.predictions[:, game], predictions, rtol=0, atol=tolerance)
        if a < 1e-4:
            continue  # a difference of large numbers
        prior_variance = 4 / n_players + a * variances + 0.1 * a * squared_weights(n_players)
        remaining = prior_variance - (common * solved[:, 1:]).sum(axis=0)
        ratios = errors[:, game] / remaining
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)


@dataclass(frozen=True)
class Numbers:
    """An entry of a cache."""

    numbers: np.ndarray


@dataclass(frozen=True)
class Holder:
    """An entry that holds another dataclass."""

    held: Numbers
    numbers: np.ndarray


def test_rows_have_the_same_results_in_any_company():
    signs = design(30, 249)
    values = games(signs, 70)
    solve = partial(posteriors_of_rows, ShapleyValues(30))
    together = solve(signs, values, "equal")
    for some in ([3], [69, 3, 5], list(range(69, -1, -1))):
        alone = solve(signs, values[:, some], "equal")
        for name in ("means", "variances", "freedom"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(together, name)[:, some])


def test_results_do_not_depend_on_what_is_in_the_cache(cleared_caches):
    signs = design(12, 80)
    values, labels = games(signs, 5), np.random.default_rng(1).permutation(12)
    solve = partial(posteriors_of_rows, ShapleyValues(12))
    first = solve(signs, values, "equal")
    relabelled = solve(signs[:, labels], values, "equal")  # from the cache
    prior_grid._cache.clear()
    equal_posterior._cache.clear()
    computed = solve(signs[:, labels], values, "equal")
    np.testing.assert_array_equal(relabelled.means, computed.means)
    np.testing.assert_array_equal(relabelled.variances, computed.variances)
    np.testing.assert_array_equal(relabelled.means, first.means[labels])


def test_a_cache_keeps_its_bound_and_the_most_recent():
    cache = FactorCache(most_bytes=100)
    made = []

    def entry(key, size=5):
        def compute():
            made.append(key)
            return Numbers(np.zeros(size))

        return cache.get(key, compute)

    entry("a"), entry("b"), entry("a"), entry("c")  # c removes b: two have 80 bytes
    assert made == ["a", "b", "c"]
    entry("a")
    assert made == ["a", "b", "c"]
    entry("b")
    assert made == ["a", "b", "c", "b"]
    entry("large", size=100), entry("large", size=100)
    assert made[-2:] == ["large", "large"]
    entry("b")
    assert made[-1] == "large"


def test_bytes_of_entries_that_hold_others_count():
    numbers = Numbers(np.zeros(5))
    assert n_bytes(numbers) == 40
    assert n_bytes(Holder(numbers, np.zeros(2))) == 56


def test_sorted_players_do_not_depend_on_their_labels():
    signs = design(15, 40)
    labels = np.random.default_rng(0).permutation(15)
    relabelled = signs[:, labels]
    np.testing.assert_array_equal(
        signs[:, sorted_players(signs)], relabelled[:, sorted_players(relabelled)]
    )
