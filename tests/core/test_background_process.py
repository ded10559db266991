"""One Gaussian process for the games of all background rows."""

import itertools

import numpy as np
import pytest
import shap

import shap_ext  # noqa: F401 # it registers our algorithms
from shapley_adapters.estimators.odd_gp import background_process
from shapley_adapters.estimators.odd_gp.background_process import BackgroundProcess, Levels, Parts
from tests.helpers.brute_force import shapley_values

M, B = 4, 3
WEIGHTS = np.array([0.5, 0.3, 0.2])


def process_and_oracle(seed=0):
    """Return a process, and the covariances of the values of all coalitions and background rows.

    The oracle sums the products of kernels over all sets of one to three players.
    """
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(B + 1, M))
    process = BackgroundProcess(Levels(columns.T.copy(), np.arange(M), WEIGHTS))
    process.variances, process.noise = np.array([0.7, 0.4, 0.2]), 0.1
    process.weights = np.array([0.4, 1.6, 1.0, 1.0])
    of_levels = np.concatenate([[0.5], 0.5 * WEIGHTS])
    kernels = []
    for column, weight in zip(columns.T, process.weights, strict=True):
        distances = np.abs(column[:, None] - column)
        centring = np.eye(B + 1) - of_levels
        kernel = -centring @ distances @ centring.T
        kernels.append(weight * kernel / (of_levels @ np.diag(kernel)))
    points = [(s, b) for b in range(B) for s in itertools.product([False, True], repeat=M)]

    def covariance(one, other):
        levels = [[0 if p else b + 1 for p in s] for s, b in (one, other)]
        of_players = [kernels[j][levels[0][j], levels[1][j]] for j in range(M)]
        return sum(
            a * sum(np.prod(of_set) for of_set in itertools.combinations(of_players, size))
            for size, a in enumerate(process.variances, start=1)
        )

    return process, points, np.array([[covariance(p, q) for q in points] for p in points])


def linear_maps(points, chosen):
    """Return the odd parts of chosen points, and the attributions, as maps of all values."""
    index = {point: i for i, point in enumerate(points)}
    odd = np.zeros((len(chosen), len(points)))
    for row, (s, b) in enumerate(chosen):
        odd[row, index[s, b]] += 0.5
        odd[row, index[tuple(not p for p in s), b]] -= 0.5
    attributions = np.zeros((M, len(points)))
    for column, (s, b) in enumerate(points):
        members = tuple(np.flatnonzero(s))
        of_one = shapley_values(M, lambda c, m=members: float(tuple(sorted(c)) == m))
        attributions[:, column] = WEIGHTS[b] * np.ravel(of_one)
    return odd, attributions


def parts_of(chosen):
    present = np.array([s for s, _ in chosen])
    return Parts(present, np.array([b for _, b in chosen]), np.array(present.all(axis=1)))


@pytest.mark.parametrize(("n_inducing", "n_numbers"), [(100, 2**17), (9, 1)])
def test_posteriors_equal_those_of_all_values(n_inducing, n_numbers, monkeypatch):
    """A part of the values as the span of the posterior is the projected process."""
    monkeypatch.setattr(background_process, "MOST_INDUCING", n_inducing)
    monkeypatch.setattr(background_process, "_NUMBERS", n_numbers)
    process, points, covariances = process_and_oracle()
    rng = np.random.default_rng(1)
    ends = [((True,) * M, b) for b in range(B)]
    others = [p for p in points if 0 < sum(p[0]) < M]
    chosen = ends + [others[i] for i in rng.permutation(len(others))[:15]]
    odd, attributions = linear_maps(points, chosen)
    targets = rng.normal(size=len(chosen))
    noise = np.where(np.arange(len(chosen)) < B, 0.0, process.noise) + 1e-5
    own, across = odd @ covariances @ odd.T, attributions @ covariances @ odd.T
    prior = attributions @ covariances @ attributions.T
    if n_inducing < len(chosen):
        span = np.linalg.inv(own[:n_inducing, :n_inducing] + 1e-5 * np.eye(n_inducing))
        to_span, of_span = own[:, :n_inducing] @ span, across[:, :n_inducing] @ span
        beside = prior - of_span @ across[:, :n_inducing].T
        own, across = to_span @ own[:n_inducing], of_span @ own[:n_inducing]
        spanned = of_span @ np.linalg.inv(span) @ of_span.T
    else:
        beside, spanned = np.zeros((M, M)), prior
    gain = across @ np.linalg.inv(own + np.diag(noise))
    means, variances = process.attributions(parts_of(chosen), targets, len(chosen))
    np.testing.assert_allclose(means, gain @ targets, atol=1e-9)
    expected = np.diag(spanned - gain @ across.T + beside)
    np.testing.assert_allclose(variances, expected, atol=1e-9)
    wider = process.attributions(parts_of(chosen), 20 * targets, B)[1]
    assert (wider > 4 * variances).all()  # later values are 20 times as far off as expected


N_FEATURES, N_BACKGROUND = 8, 40
RNG = np.random.default_rng(3)
BACKGROUND = RNG.normal(size=(N_BACKGROUND, N_FEATURES))
SLOPES = np.array([3.0, -2.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0])


def model(x):
    x = np.asarray(x, dtype=float)
    return np.tanh(x @ SLOPES / 3) * 4 + x[:, 0] * x[:, 1] + np.abs(x[:, 2])


def explained(limit, seed, algorithm="oddgp", rows=None):
    explainer = shap.Explainer(model, BACKGROUND, algorithm=algorithm, seed=seed)
    rows = np.ones((1, N_FEATURES)) if rows is None else rows
    return explainer(rows, max_model_rows=limit, silent=True), explainer.last_estimate


def fitted_parts(monkeypatch, budget):
    """Return the parts that the process of one row is fitted to."""
    seen = []
    fit = BackgroundProcess.fit

    def kept(self, parts, targets):
        seen.append(parts)
        fit(self, parts, targets)

    monkeypatch.setattr(BackgroundProcess, "fit", kept)
    explained(budget, 0)
    (parts,) = seen
    return parts


def test_a_pair_is_one_value_whichever_half_was_drawn_first(monkeypatch):
    """With eight features, most coalitions are drawn, and many of their complements, too."""
    parts = fitted_parts(monkeypatch, 400)
    halves = np.where(parts.present[:, :1], parts.present, ~parts.present)
    values = {(half.tobytes(), b) for half, b in zip(halves, parts.backgrounds, strict=True)}
    assert len(values) == len(parts.backgrounds)


@pytest.mark.slow
def test_wide_tables_have_no_process():
    """From 1,024 players on, 2^M is no floating-point number."""
    weights, rows = np.random.default_rng(0).normal(size=1030), np.ones((1, 1030))
    background = np.random.default_rng(1).normal(size=(6, 1030))
    explainer = shap.Explainer(lambda x: x @ weights, background, algorithm="oddgp", seed=0)
    found = explainer(rows, max_model_rows=2100, silent=True)
    total = (rows - background.mean(axis=0)) @ weights
    assert found.values.sum() == pytest.approx(total[0])
