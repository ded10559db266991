"""Values that are means of draws: the means, and the errors that they leave."""

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.coalitions.tables import CoalitionTable, complements
from shapley_adapters.estimators.draws import Draws
from shapley_adapters.estimators.exact import full_design, solve_full
from shapley_adapters.estimators.graph import c_shapley_regression
from shapley_adapters.estimators.graph.c_shapley import CShapley
from shapley_adapters.estimators.graph.c_shapley_regression import ConnectedRegression
from shapley_adapters.estimators.graph.l_shapley import LShapley
from shapley_adapters.estimators.graph.myerson import Myerson
from shapley_adapters.estimators.protocol import GraphView
from shapley_adapters.estimators.value_errors import ValueErrors
from shapley_adapters.graphs.reading import read_graph
from shapley_adapters.interactions.enumeration import enumerated, enumerated_variances
from shapley_adapters.interactions.result import checked_sets
from tests.helpers.brute_force import shapley_values
from tests.helpers.reference_games import request_of

M, B = 5, 12


def all_coalitions():
    return full_design(M).table


def games_of_rows(n_rows=2, n_outputs=1, seed=0):
    """Return the values of all coalitions for each background row, (R, 2^M, B, K)."""
    rng = np.random.default_rng(seed)
    signs = np.where(all_coalitions().coalitions[0], 1.0, -1.0)
    effects = rng.normal(size=(n_rows, M, B, n_outputs))
    other = rng.normal(size=(n_rows, 2**M, B, n_outputs))
    return np.einsum("cm,rmbk->rcbk", signs, effects) + 0.1 * other


def draws_of(rng, n_of_each, n_coalitions=2**M):
    """Return draws of all coalitions, the same for complements, and all for the ends."""
    coalitions = all_coalitions().coalitions[0, :n_coalitions]
    drawn = np.zeros((n_coalitions, B), dtype=bool)
    for one, other in zip(*complements(coalitions), strict=True):
        drawn[one, rng.permutation(B)[:n_of_each]] = True
        drawn[other] = drawn[one]
    drawn[:2] = True
    return drawn[None]


def test_coalitions_without_their_complement_stand_alone():
    first, second = complements(all_coalitions().coalitions[0, :3])
    assert (first.tolist(), second.tolist()) == ([1, 2], [0, -1])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("is_unbiased", [False, True])
def test_all_draws_give_the_mean_without_errors(weighted, is_unbiased):
    values, table = games_of_rows(n_outputs=2), all_coalitions()
    weights = np.random.default_rng(1).dirichlet(np.ones(B)) if weighted else None
    draws = Draws(B, True, weights, is_unbiased)
    flat = values.reshape(2, 2**M, -1)
    means, errors = draws.means(flat, table, np.ones((1, 2**M, B), dtype=bool))
    expected = np.average(values, axis=2, weights=weights)
    np.testing.assert_allclose(means, expected, atol=1e-12)
    assert not errors.variances.any()


def drawn_pairs(rng, n_players, n_pairs, n_backgrounds, n_each):
    """Return a table of the ends and of pairs of complements, and which rows each is drawn with."""
    ends = np.array([[False], [True]]).repeat(n_players, axis=1)
    first = rng.permuted(rng.random((n_pairs, n_players)).argsort(axis=1) < n_players // 2, axis=1)
    first ^= rng.random((n_pairs, n_players)) < 0.2
    first = np.unique(first ^ first[:, :1], axis=0)  # one of each pair
    first = first[~np.isin(first.sum(axis=1), (0, n_players))]
    drawn = rng.random((len(first), n_backgrounds)).argsort(axis=1) < n_each
    coalitions = np.concatenate([ends, np.stack([first, ~first], axis=1).reshape(-1, n_players)])
    table = CoalitionTable(coalitions[None], np.array([len(coalitions)]))
    drawn = np.concatenate([np.ones((2, n_backgrounds), dtype=bool), drawn.repeat(2, axis=0)])
    return table, drawn[None]


@pytest.mark.parametrize("weighted", [False, True])
def test_means_are_those_of_least_squares(weighted):
    """On main effects of each row, with one of the penalties, and on a mean of each coalition."""
    rng = np.random.default_rng(4)
    table, drawn = drawn_pairs(rng, 4, 12, 6, 3)
    weights = rng.dirichlet(np.full(6, 5.0)) if weighted else np.full(6, 1 / 6)
    signs = np.where(table.coalitions[0], 1.0, -1.0)
    values = signs @ rng.normal(size=(4, 6)) + 0.3 * rng.normal(size=(len(signs), 6))
    means, _ = Draws(6, True, weights).means(values.reshape(1, -1, 6), table, drawn)
    first, second = complements(table.coalitions[0], drawn[0])
    odd = (values[first] - values[second]) / 2
    unit, row = np.nonzero(drawn[0, first])
    columns = np.zeros((len(unit), len(first) + 4 * 6))
    columns[np.arange(len(unit)), unit] = 1.0
    for player in range(4):
        place = len(first) + 6 * player + row
        columns[np.arange(len(unit)), place] = signs[first][unit, player]
    errors = []
    for penalty in (0.1, 1.0, 10.0, 100.0, 1000.0):
        ridge = np.diag(np.r_[np.zeros(len(first)), np.tile(penalty * weights, 4)])
        weighted_columns = columns.T * weights[row]
        found = np.linalg.solve(
            weighted_columns @ columns + ridge, weighted_columns @ odd[unit, row]
        )
        effects = found[len(first) :].reshape(4, 6)
        expected = found[: len(first)] + signs[first] @ effects @ weights
        errors.append(np.abs((means[0, first, 0] - means[0, second, 0]) / 2 - expected).max())
    assert min(errors) < 5e-3


@pytest.mark.parametrize(("n_backgrounds", "n_each"), [(20, 4), (100, 5), (100, 50)])
@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_errors_of_means_are_stated_where_rows_differ_by_main_effects(n_backgrounds, n_each, noise):
    squares, variances = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        table, drawn = drawn_pairs(rng, 12, 60, n_backgrounds, n_each)
        signs = np.where(table.coalitions[0], 1.0, -1.0)
        values = signs @ rng.normal(size=(12, n_backgrounds))
        values += noise * rng.normal(size=values.shape)
        means, errors = Draws(n_backgrounds, True).means(
            values.reshape(1, -1, n_backgrounds), table, drawn
        )
        squares.append(((means[0, 2:, 0] - values[2:].mean(axis=1)) ** 2).mean())
        variances.append(errors.variances[0, 2:, 0].mean())
    ratio = np.mean(squares) / np.mean(variances)
    assert 0.5 < ratio < 1.25


@pytest.mark.parametrize("is_unbiased", [False, True])
def test_errors_of_means_are_as_large_as_stated(is_unbiased):
    """Over draws of background rows; and the mean is unbiased where that is asked for."""
    values, table = games_of_rows(n_rows=1, seed=5), all_coalitions()
    exact, (first, second) = values.mean(axis=2), complements(table.coalitions[0])
    offs, variances, parts = [], [], []
    for seed in range(400):
        drawn = draws_of(np.random.default_rng(seed), 5)
        means, errors = Draws(B, True, None, is_unbiased).means(
            values.reshape(1, 2**M, -1), table, drawn
        )
        offs.append((means - exact)[0, 2:, 0])
        variances.append(errors.variances[0, 2:, 0])
        halves = (means - exact)[0, first[1:], 0] / 2, (means - exact)[0, second[1:], 0] / 2
        parts.append(
            [
                (halves[0] - halves[1]) ** 2,
                errors.odd[0, first[1:], 0],
                (halves[0] + halves[1]) ** 2,
                errors.even[0, first[1:], 0],
            ]
        )
    off, stated = np.array(offs), np.array(variances)
    ratio = (off**2).mean() / stated.mean()
    assert 0.75 < ratio < 1.25
    odd, stated_odd, even, stated_even = np.mean(parts, axis=(0, 2))
    assert 0.75 < odd / stated_odd < 1.25 and 0.75 < even / stated_even < 1.25
    z = off.mean(axis=0) / (off.std(axis=0, ddof=1) / np.sqrt(len(off)))
    if is_unbiased:
        assert np.abs(z).max() < 4.5


def test_answers_of_a_random_model():
    """The variance of means of answers; coalitions with one answer have that of the others."""
    table, rng = all_coalitions(), np.random.default_rng(0)
    sizes = table.coalitions[0].sum(axis=1)
    scale = 0.5 + 0.3 * sizes
    drawn = np.zeros((1, 2**M, 4), dtype=bool)
    drawn[:, :, 0] = drawn[:, :2] = drawn[:, 2::4, 1] = True
    off, stated = [], []
    for _ in range(300):
        values = rng.normal(size=(1, 2**M, 4)) * scale[:, None]
        means, errors = Draws(4, False).means(values, table, drawn)
        off.append(means[0, :, 0])
        stated.append(errors.variances[0, :, 0])
    found, expected = np.mean(stated, axis=0), np.var(off, axis=0)
    assert 0.85 < found[2:].mean() / expected[2:].mean() < 1.15
    assert errors.freedom == 0.5 * (drawn[0, 2:].sum(axis=1) - 1).sum()
    labels = rng.integers(2, size=(1, 2**M, 4)).astype(float)
    assert Draws(4, False).means(labels, table, drawn)[1].freedom == 0.5 * drawn[0, 2:].sum()


def random_errors(seed=0):
    rng, table = np.random.default_rng(seed), all_coalitions()
    first, second = complements(table.coalitions[0])
    odd, even = rng.random((2, 1, 2**M, 1))
    for part in (odd, even):
        part[:, second] = part[:, first]
    return ValueErrors(odd, even, np.zeros_like(odd)), first, second


def noisy(errors, first, second, rng, n):
    """Return draws of values with such errors, (n, 2^M)."""
    odd, even = (
        rng.normal(size=(n, len(first))) * np.sqrt(part[0, first, 0])
        for part in (errors.odd, errors.even)
    )
    values = np.zeros((n, 2**M))
    values[:, first], values[:, second] = even + odd, even - odd
    return values


def test_enumeration_states_what_the_errors_of_values_leave():
    """The variance of a weighted sum, against the weights of the definition."""
    design, (errors, first, second) = full_design(M), random_errors()
    coalitions = design.table.coalitions[0]
    solution = solve_full(design, np.zeros((1, 2**M, 1)), errors)
    place = {frozenset(np.flatnonzero(row)): index for index, row in enumerate(coalitions)}
    for player in range(M):
        weights = np.zeros(2**M)
        for index in range(2**M):

            def game(members, index=index):
                return float(place[frozenset(members)] == index)

            weights[index] = shapley_values(M, game)[player].item()
        expected = ((weights[first] - weights[second]) ** 2 * errors.odd[0, first, 0]).sum()
        expected += ((weights[first] + weights[second]) ** 2 * errors.even[0, first, 0]).sum()
        assert solution.standard_errors[0, player, 0] ** 2 == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("index", ["SII", "k-SII", "STII", "FSII", "FBII"])
def test_enumerated_interactions_state_it_too(index):
    design, (errors, first, second) = full_design(M), random_errors(1)
    coalitions = design.table.coalitions[0]
    values = noisy(errors, first, second, np.random.default_rng(2), 4000)
    wanted = checked_sets(index, 3).index(M)
    drawn = enumerated(wanted, coalitions, values[..., None])[..., 0]
    stated = np.sqrt(enumerated_variances(wanted, coalitions, errors.even, errors.odd))[0, :, 0]
    np.testing.assert_allclose(drawn.std(axis=0), stated, rtol=5 * np.sqrt(1 / 8000))


@pytest.mark.parametrize(
    "estimator", [core.LeastSquares(replacement=False), core.OddGP()], ids=["regression", "odd GP"]
)
def test_errors_of_values_are_no_part_of_the_game(estimator):
    """With all pairs but a few, what is left is the error of the values."""
    n_players = 7
    design = estimator.design(request_of(n_players, 120))
    coalitions = design.table.coalitions[0]
    rng = np.random.default_rng(1)
    weights = rng.normal(size=n_players)
    first, second = complements(coalitions)
    sd, inside = 0.3, 0
    variance = np.full((1, len(coalitions), 1), sd**2 / 2)
    variance[:, :2] = 0
    for _ in range(60):
        noise = rng.normal(size=len(coalitions)) * sd
        noise[:2] = 0
        values = (coalitions @ weights + noise)[None, :, None]
        errors = ValueErrors(variance, variance, 0 * variance)
        solution = estimator.solve_with_errors(design, values, errors)
        z = (solution.values[0, :, 0] - weights) / solution.standard_errors[0, :, 0]
        inside += np.mean(np.abs(z) < 1.96)
    assert 0.9 < inside / 60 < 0.995
    assert len(first) == len(second)


def test_tables_of_each_row():
    """Rows with coalitions of their own: as if each were alone."""
    values, table = games_of_rows(n_rows=2, seed=7), all_coalitions()
    drawn = np.concatenate([draws_of(np.random.default_rng(seed), 4) for seed in (0, 1)])
    coalitions = np.repeat(table.coalitions, 2, axis=0)
    draws, flat = Draws(B, True), values.reshape(2, 2**M, -1)
    of_each = CoalitionTable(coalitions, np.array([2**M, 2**M]))
    means, errors = draws.means(flat, of_each, drawn)
    for row in range(2):
        alone, its = draws.means(flat[row : row + 1], table, drawn[row : row + 1])
        np.testing.assert_array_equal(means[row], alone[0])
        np.testing.assert_array_equal(errors.odd[row], its.odd[0])


def covariance_of_values(coalitions, rng):
    """Return a random covariance of values, in which only complements depend on each other.

    And the same as errors.
    """
    n_values, (first, second) = len(coalitions), complements(coalitions)
    covariance = np.zeros((n_values, n_values))
    odd, even, both = np.zeros((3, 1, n_values, 1))
    for one, other in zip(first, second, strict=True):
        root = rng.normal(size=(2, 2))
        of_pair = root @ root.T
        covariance[one, one] = of_pair[0, 0]
        if other < 0:
            odd[:, one] = even[:, one] = of_pair[0, 0] / 2
            continue
        covariance[np.ix_([one, other], [one, other])] = of_pair
        for parts, signs in ((odd, (1, -1)), (even, (1, 1))):
            parts[:, [one, other]] = np.dot(signs, of_pair @ signs) / 4
        both[:, one] = (of_pair[0, 0] - of_pair[1, 1]) / 4
        both[:, other] = -both[:, one]
    return covariance, ValueErrors(odd, even, both)


def test_orders_without_any_error_have_no_limit_of_freedom():
    estimator = core.RandomOrder()
    design = estimator.design(request_of(6, 40, 3))
    none = np.zeros((1, design.table.coalitions.shape[1], 1))
    solution = estimator.solve_with_errors(design, none, ValueErrors(none, none, none, 5.0))
    assert np.isinf(solution.degrees_of_freedom).all()


def on_line(n_players):
    edges = [(node, node + 1) for node in range(n_players - 1)]
    return {"graph_view": GraphView(read_graph(edges, n_players), np.arange(n_players))}


ON_GRAPHS = [
    LShapley(1),
    LShapley(2, context="kept"),
    CShapley(2),
    CShapley(1, marginals="components", context="kept"),
    CShapley(2, weighting="paper"),
    ConnectedRegression(2),
    ConnectedRegression(3, efficient=True, context="kept"),
    Myerson(),
]


@pytest.mark.parametrize("estimator", ON_GRAPHS, ids=repr)
@pytest.mark.parametrize("n_players", [4, 6])
def test_estimators_on_graphs_state_the_variance_of_their_linear_map(
    estimator, n_players, monkeypatch
):
    """The weights of the values are the attributions of the games that are 1 at one of them."""
    monkeypatch.setattr(c_shapley_regression, "_PROBES", 3)  # the last part has fewer
    design = estimator.design(request_of(n_players, 60, 3, **on_line(n_players)))
    coalitions, rng = design.table.coalitions[0], np.random.default_rng(0)
    covariance, errors = covariance_of_values(coalitions, rng)
    weights = estimator.solve(design, np.eye(len(coalitions))[..., None]).values[..., 0]  # (C, M)
    expected = np.einsum("ci,cd,di->i", weights, covariance, weights)
    values = rng.normal(size=(1, len(coalitions), 1))
    solution = estimator.solve_with_errors(design, values, errors)
    np.testing.assert_allclose(solution.standard_errors[0, :, 0] ** 2, expected, rtol=1e-10)
    assert (solution.values == estimator.solve(design, values).values).all()


@pytest.mark.parametrize(
    ("estimator", "budget", "is_pooled"),
    [
        (LShapley(3), 90, False),
        (CShapley(4), 60, False),
        (CShapley(4, marginals="components"), 60, False),
        (Myerson(), 30, False),
        (core.Shear(), 150, True),
        (core.Shear(efficient=False), 150, True),
        (core.Shear(antithetic=False), 150, True),
        (core.Semivalue(), 200, True),
        (core.Semivalue(antithetic=False, efficient=False), 200, True),
        (core.SimSemivalue(centred=False), 200, False),
        (core.SimSemivalue(paired=False, centred=False), 200, False),
        (core.UnbiasedLeastSquares(centred=False), 200, False),
    ],
    ids=repr,
)
def test_sampled_designs_count_each_error_once(estimator, budget, is_pooled):
    """The spread of draws and what is added to it, together, are the variance of the errors.

    The games are nothing but errors, so that the coalitions that were drawn leave none.
    """
    n_players, n_games = 8, 400
    scores = np.random.default_rng(0).random((1, n_players, n_players)).repeat(n_games, axis=0)
    options = on_line(n_players) if estimator.needs_graph else {"scores": scores}
    request = request_of(n_players, budget, 3, has_scores=np.ones(n_games, dtype=bool), **options)
    design = estimator.design(request)
    coalitions, rng = design.table.coalitions[0], np.random.default_rng(1)
    covariance, errors = covariance_of_values(coalitions, rng)
    root = np.linalg.cholesky(covariance + 1e-12 * np.eye(len(covariance)))
    values = (root @ rng.normal(size=(len(root), n_games))).T[..., None]
    of_games = errors.subset_rows(np.zeros(n_games, dtype=int))
    solution = estimator.solve_with_errors(design, values, of_games)
    stated = (solution.standard_errors[..., 0] ** 2).mean(axis=0)
    first = design.subset_rows(np.arange(len(coalitions)))
    weights = estimator.solve(first, np.eye(len(coalitions))[..., None]).values[..., 0]
    true = np.einsum("ci,cd,di->i", weights, covariance, weights)
    if is_pooled:  # over the players, and strata with a single draw
        assert 0.85 < stated.mean() / true.mean() < 1.3
    else:  # squares of normal errors have the relative standard deviation √2
        np.testing.assert_allclose(stated, true, rtol=5 * np.sqrt(2 / n_games))
