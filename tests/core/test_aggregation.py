"""Aggregators on arrays: against enumeration and definition, and what each of them promises."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import scipy.optimize

from shapley_adapters.aggregation import (
    Aggregate,
    Centroid,
    Convex,
    LowComplexity,
    NeighbourIndex,
    NeighbourSearch,
    averaged_over_neighbours,
    kemeny_young,
    learned_weights,
)
from shapley_adapters.aggregation.convex import (
    criterion_loss,
    sensitivity_loss,
    unfaithfulness_loss,
)
from shapley_adapters.criteria import complexity
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.brute_force import shapley_values
from tests.helpers.reference_games import random_game
from tests.helpers.tolerances import Tolerances

EXACT: Tolerances = {"rtol": 0, "atol": 1e-12}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# --- AVA ---


def brute_neighbours(row, points, k, distance, leave_out=False):
    away = sorted((distance(row, point), place) for place, point in enumerate(points))
    return [pair for pair in away if pair[0] > 0 or not leave_out][:k]


METRICS = {
    "euclidean": lambda a, b: np.sqrt(((a - b) ** 2).sum()),
    "manhattan": lambda a, b: abs(a - b).sum(),
    "chebyshev": lambda a, b: abs(a - b).max(),
    "cosine": lambda a, b: 1 - a @ b / np.sqrt((a @ a) * (b @ b)),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n_columns", [3, 40])  # scikit-learn searches a tree, or all points
@pytest.mark.parametrize("at_zero", ["only", "leave_out"])
def test_neighbours_are_the_nearest(metric, n_columns, at_zero):
    points, rows = numbers(60, n_columns), numbers(5, n_columns, seed=1)
    if metric != "cosine":  # which has rounding instead of zeros
        rows[0] = points[7]
        points[9] = points[7]
    search = NeighbourSearch(n_neighbors=4, metric=metric, at_zero=at_zero)
    found = NeighbourIndex(points, search).nearest(rows)
    for row, places, distances in zip(rows, found.indices, found.distances, strict=True):
        expected = brute_neighbours(row, points, 4, METRICS[metric], at_zero == "leave_out")
        np.testing.assert_array_equal(places, [place for _, place in expected])
        np.testing.assert_allclose(distances, [away for away, _ in expected], atol=1e-12)


def test_points_without_a_distance_are_no_neighbours():
    points = np.concatenate([np.random.default_rng(0).normal(size=(6, 4)), np.ones((1, 4))])
    index = NeighbourIndex(points, NeighbourSearch(n_neighbors=6, metric="correlation"))
    assert 6 not in index.nearest(points[:2] + 0.1).indices
    with pytest.raises(InvalidArgumentError, match="n_neighbors=7"):
        NeighbourIndex(points, NeighbourSearch(n_neighbors=7, metric="correlation")).nearest(
            points[:2] + 0.1
        )


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("n_columns", [4, 20])  # scikit-learn searches a tree, or all points
@pytest.mark.parametrize("at_zero", ["only", "leave_out"])
def test_ties_are_cut_by_place_whatever_other_rows_ask(metric, n_columns, at_zero):
    """With whole numbers many points are equally far, at the cut, too."""
    drawn = np.random.default_rng(3)
    points = drawn.integers(0, 3, size=(200, n_columns)).astype(float)
    points[:, 4:] = 0
    points[100:110] = points[7]  # a row with many points at its own place
    index = NeighbourIndex(points, NeighbourSearch(n_neighbors=5, metric=metric, at_zero=at_zero))
    together = index.nearest(points[:50])
    for row in range(50):
        alone = index.nearest(points[row : row + 1])
        np.testing.assert_array_equal(alone.indices[0], together.indices[row])
        expected = brute_neighbours(points[row], points, 5, METRICS[metric], at_zero != "only")
        np.testing.assert_array_equal(alone.indices[0], [place for _, place in expected])


def test_a_function_as_distance_need_not_obey_the_triangle_inequality():
    def to_the_sixth(a, b):
        return ((a - b) ** 6).sum()

    # Of these, scikit-learn's tree by default misses neighbours of five rows.
    drawn = np.random.default_rng(0)
    points, rows = drawn.normal(size=(1000, 3)), drawn.normal(size=(30, 3))
    found = NeighbourIndex(points, NeighbourSearch(n_neighbors=3, metric=to_the_sixth)).nearest(
        rows
    )
    for row, places in zip(rows, found.indices, strict=True):
        expected = brute_neighbours(row, points, 3, to_the_sixth)
        np.testing.assert_array_equal(places, [place for _, place in expected])


def test_parameters_of_the_distance_arrive():
    points, rows = numbers(50, 3), numbers(4, 3, seed=1)
    search = NeighbourSearch(n_neighbors=3, metric="minkowski", metric_params={"p": 3})
    found = NeighbourIndex(points, search).nearest(rows)
    expected = np.sort((abs(rows[:, None] - points) ** 3).sum(2) ** (1 / 3), axis=1)[:, :3]
    np.testing.assert_allclose(found.distances, expected)


def test_small_distances_far_from_the_origin_are_exact():
    """Where differences of squares would round them to zero."""
    points = 1e6 + np.eye(40)[:6] * 1e-3 * np.arange(1, 7)[:, None]
    found = NeighbourIndex(points, NeighbourSearch(n_neighbors=6)).nearest(np.full((1, 40), 1e6))
    np.testing.assert_array_equal(found.indices, [np.arange(6)])
    np.testing.assert_allclose(found.distances, [1e-3 * np.arange(1, 7)], rtol=1e-6)


def weights_at(*away, **options):
    """Return the weights of points on a line at these distances of a row."""
    search = NeighbourSearch(n_neighbors=len(away), **options)
    return NeighbourIndex(np.array(away)[:, None], search).nearest(np.zeros((1, 1))).weights[0]


def test_weights_by_distance():
    np.testing.assert_allclose(weights_at(1.0, 2.0, 4.0, normalized=False), [1, 1 / 2, 1 / 4])
    np.testing.assert_allclose(weights_at(1.0, 2.0, 4.0), [4 / 7, 2 / 7, 1 / 7])
    smooth = weights_at(0.0, 1.0, 3.0, normalized=False, smoothing=1.0)
    np.testing.assert_allclose(smooth, [1, 1 / 2, 1 / 4])


def test_weights_at_distance_zero_are_the_limit():
    np.testing.assert_array_equal(weights_at(0.0, 0.0, 3.0), [0.5, 0.5, 0])
    np.testing.assert_array_equal(weights_at(0.0, 1.0, 1.0), [1, 0, 0])
    np.testing.assert_allclose(weights_at(1e-12, 1e-12, 3.0), [0.5, 0.5, 0], atol=1e-11)
    np.testing.assert_allclose(weights_at(1e-150, 1.0, 1.0), [1, 0, 0], atol=1e-11)
    line, search = np.array([[1.0], [2.0]]), NeighbourSearch(n_neighbors=2, normalized=False)
    with pytest.raises(InvalidArgumentError, match="row 1 .*leave_out.*smoothing.*normalized=True"):
        NeighbourIndex(line, search).nearest(np.array([[3.0], [1.0]]))


def test_base_values_are_averaged_with_the_weights_of_those_that_tell_theirs():
    values, bases = numbers(2, 3), [np.array([1.0, 2.0]), None, np.array([4.0, 8.0])]
    weighted = Aggregate(values, np.array([0.25, 0.5, 0.25]))
    np.testing.assert_allclose(weighted.base_values(bases), [2.5, 5.0], **EXACT)
    lopsided = Aggregate(values, np.array([0.1, 0.6, 0.3]))
    np.testing.assert_allclose(lopsided.base_values(bases), [3.25, 6.5], **EXACT)
    of_silent_ones = Aggregate(values, np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(of_silent_ones.base_values(bases), [2.5, 5.0], **EXACT)
    np.testing.assert_array_equal(weighted.base_values([None, None, None]), [0, 0])
    ranks = Centroid("kendall")([np.array([[1.0, 2.0]]), np.array([[2.0, 3.0]])])
    np.testing.assert_array_equal(ranks.base_values([np.ones(1), np.ones(1)]), [0])


@pytest.mark.parametrize("normalized", [True, False])
def test_ava_explains_the_averaged_game(normalized):
    """Theorem 1: Σ_z w_z φ(v_z) are the Shapley values of the one game Σ_z w_z v_z."""
    games = random_game(5, n_rows=30)
    points, rows = numbers(30, 2), numbers(3, 2, seed=1)
    search = NeighbourSearch(n_neighbors=4, normalized=normalized)
    near = NeighbourIndex(points, search).nearest(rows)
    weights = near.weights
    explained = np.array([shapley_values(5, games.value_of(z))[:, 0] for z in range(30)])
    found = averaged_over_neighbours(weights, explained[near.indices])
    for row in range(3):
        pairs = list(zip(weights[row], near.indices[row], strict=True))

        def averaged(coalition, pairs=pairs):
            return sum(w * games.value_of(z)(coalition) for w, z in pairs)

        np.testing.assert_allclose(found[row], shapley_values(5, averaged)[:, 0], **EXACT)


# --- centroids ---


def total(g, candidates, order, power):
    return (np.linalg.norm(candidates - g, ord=order, axis=1) ** power).sum()


def test_mean_and_median_are_the_centroids_of_the_poster():
    candidates = numbers(5, 3, 4)
    np.testing.assert_allclose(Centroid("l2")(candidates).values, candidates.mean(0), **EXACT)
    np.testing.assert_array_equal(Centroid("l1")(candidates).values, np.median(candidates, 0))
    np.testing.assert_array_equal(Centroid(1.0)(candidates).values, np.median(candidates, 0))


@pytest.mark.parametrize(
    ("order", "power"),
    [(2, 1), (2, 3), (2, 1.5), (1.5, 1), (3, 2), (4, 1), *((q, q) for q in (1.2, 1.5, 2, 3, 8))],
)
@pytest.mark.parametrize("seed", [0, 3, 5])
@pytest.mark.every_combination
def test_centroids_have_no_descent(order, power, seed):
    """A convex function without a direction of descent is at its minimum.

    Of a norm to its own power, each feature has a minimum of its own.
    """
    candidates = numbers(5, 1, 4, seed=seed) * 10**seed
    (found,) = Centroid(order, power)(candidates).values
    points = candidates[:, 0]
    least = total(found, points, order, power)
    for tried in [*points, points.mean(0), np.median(points, 0)]:
        assert least <= total(tried, points, order, power) * (1 + 1e-12)
    for step in numbers(200, 4, seed=9):
        for size in (1e-3, 1e-2, 0.1, 1):
            moved = found + 10**seed * size * step
            assert total(moved, points, order, power) >= least * (1 - 1e-9)


@pytest.mark.parametrize("order", [1.5, 2, 3])
@pytest.mark.parametrize(("size", "n_features"), [(1e-6, 4), (1.0, 4), (1e6, 2000)])
def test_medians_between_opposite_points_are_exact(order, size, n_features):
    """Of the corners of a convex quadrilateral: where the diagonals meet, for every such norm."""
    where, first, second = numbers(3, n_features, seed=5) * size
    corners = [where + first, where - 0.3 * first, where + second, where - 2.5 * second]
    found = Centroid(order, 1)(np.array(corners)[:, None]).values[0]
    np.testing.assert_allclose(found, where, rtol=0, atol=1e-12 * size)


def test_the_geometric_median_may_be_a_candidate():
    candidates = np.array([[[0.0, 0.0]], [[1.0, 0.0]], [[-1.0, 0.3]], [[0.1, 5.0]], [[0.0, -4.0]]])
    (found,) = Centroid("l2", 1)(candidates).values
    np.testing.assert_array_equal(found, [0.0, 0.0])
    twice = np.array([[[1.0, 0.0]], [[3.0, 1.0]], [[1.0, 0.0]]])
    np.testing.assert_array_equal(Centroid("l2", 1)(twice).values, [[1.0, 0.0]])


@pytest.mark.parametrize("distance", ["l1", "l2", 3, "kendall"])
def test_centroids_of_equal_candidates_and_of_one(distance):
    one = numbers(1, 3, 4)
    for candidates in (one, np.repeat(one, 4, axis=0)):
        found = Centroid(distance)(candidates).values
        expected = one[0].argsort(1).argsort(1) + 1.0 if distance == "kendall" else one[0]
        np.testing.assert_allclose(found, expected, **EXACT)


def test_scales_make_candidates_comparable():
    candidates = numbers(3, 2, 4)
    blown_up = candidates * np.array([1.0, 1e3, 1e-3])[:, None, None]
    for scale in ("l1", "l2", "max"):
        even, uneven = (Centroid(scale=scale)(c).values for c in (candidates, blown_up))
        directions = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (even, uneven)]
        np.testing.assert_allclose(directions[0], directions[1], atol=1e-12)
    apart = Centroid()(blown_up).values
    assert abs(apart / np.linalg.norm(apart, axis=1, keepdims=True) - directions[0]).max() > 0.1


# --- Kemeny and Young ---


def kendall(order, keys):
    """Return the pairs that `keys` rank otherwise; ties count half."""
    votes = 0.0
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            votes += (keys[:, second] > keys[:, first]).sum()
            votes += 0.5 * (keys[:, second] == keys[:, first]).sum()
    return votes


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ties", [False, True])
def test_consensus_rankings_are_optimal(seed, ties):
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(int(rng.integers(2, 6)), 6))
    if ties:
        keys = keys.round()
    found = kemeny_young(keys)
    least = min(kendall(order, keys) for order in permutations(range(6)))
    assert found.distance == kendall(found.order.tolist(), keys) == least
    assert sorted(found.order.tolist()) == list(range(6))
    assert found.is_optimal
    assert abs(found.bound - least) < 1e-6


def test_many_features_that_agree_are_ranked_exactly():
    keys = np.arange(300.0) + 0.4 * numbers(5, 300)
    found = kemeny_young(keys)
    assert found.is_optimal
    np.testing.assert_array_equal(Centroid("kendall")(keys[:, None]).values[0], found.scores)
    assert found.scores[found.order[0]] == 300


def test_larger_blocks_are_refused_unless_an_approximation_will_do():
    keys = numbers(4, 90)
    with pytest.raises(InvalidArgumentError, match="89 features,.* 60.* approximate=True"):
        kemeny_young(keys)
    found = kemeny_young(keys, approximate=True)
    assert not found.is_optimal
    assert 0 < found.gap < 0.2 * found.distance
    assert found.distance == kendall(found.order.tolist(), keys)
    borda = np.argsort(-keys.argsort(1).argsort(1).sum(0), kind="stable")
    assert found.distance < kendall(borda.tolist(), keys)


# --- convex combinations ---


def test_convex_combinations():
    candidates = numbers(3, 4, 5)
    found = Convex([2, 1, 1])(candidates)
    np.testing.assert_allclose(
        found.values, np.einsum("g,grm->rm", [0.5, 0.25, 0.25], candidates), **EXACT
    )
    np.testing.assert_array_equal(found.weights, [0.5, 0.25, 0.25])
    np.testing.assert_allclose(Convex()(candidates).values, candidates.mean(0), **EXACT)
    with pytest.raises(InvalidArgumentError, match="must explain the same rows and features"):
        Convex()([candidates[0], candidates[1, :, :2]])


def loss_of_moves(seed=0):
    return sensitivity_loss(numbers(3, 40, 6, 5, seed=seed), numbers(40, 6) > -1.5)


def losses():
    game, candidates = random_game(6, n_rows=20), numbers(3, 20, 6)
    from shapley_adapters.criteria.faithfulness import subsets_of_size

    subsets = subsets_of_size(6, 2, 100, 0)
    everyone = game.values[:, -1]
    places = (~subsets) @ (1 << np.arange(6))
    lost = everyone - game.values[:, places, 0]
    return {
        "complexity": criterion_loss(candidates, complexity),
        "sensitivity": loss_of_moves(),
        "faithfulness": unfaithfulness_loss(candidates, subsets, lost),
        "own": criterion_loss(candidates, lambda g: abs(g - 0.3).sum(1)),
    }


@pytest.mark.parametrize("name", losses())
def test_learned_weights_are_no_worse_than_any_candidate_or_grid_point(name):
    """On these inputs; the grid of all weights in steps of 1/20 stands for the minimum."""
    loss = losses()[name]
    found = learned_weights(loss, 3)
    assert (found.weights >= 0).all()
    np.testing.assert_allclose(found.weights.sum(), 1, **EXACT)
    assert (found.loss.mean() <= found.candidate_losses.mean(axis=1) + 1e-15).all()
    grid = [np.array([i, j, 20 - i - j]) / 20 for i in range(21) for j in range(21 - i)]
    least = min(loss(weights).mean() for weights in grid)
    if name == "complexity":  # has kinks where attributions are zero
        assert found.loss.mean() <= least + 0.02 * np.ptp([loss(w).mean() for w in grid])
    else:
        assert found.loss.mean() <= least + 1e-9


def test_losses_say_what_the_criterion_says():
    weights = np.array([0.2, 0.5, 0.3])
    combination = Convex(weights)(numbers(3, 20, 6)).values
    np.testing.assert_allclose(losses()["complexity"](weights), complexity(combination), **EXACT)


# --- lowering complexity ---

LOWERING = [LowComplexity("descent"), LowComplexity("shrinking")]


def is_in_hull(point, vertices):
    """Solve for the weights by linear programming, which shares nothing with the algorithm."""
    found = scipy.optimize.linprog(
        np.zeros(len(vertices)),
        A_eq=np.vstack([vertices.T, np.ones(len(vertices))]),
        b_eq=np.append(point, 1),
    )
    return found.status == 0


@pytest.mark.parametrize("lower", LOWERING, ids=lambda a: a.method)
@pytest.mark.parametrize(("seed", "shape"), [(0, (2, 3)), (4, (3, 6)), (1, (5, 4)), (2, (4, 1))])
def test_lowered_explanations_keep_their_promises(lower, seed, shape):
    candidates = numbers(shape[0], 20, shape[1], seed=seed) * 10.0 ** (seed - 2)
    found = lower(candidates)
    assert (complexity(found.values) <= complexity(candidates)).all()
    low, high = candidates.min(0), candidates.max(0)
    assert ((found.values >= low) & (found.values <= high)).all()
    if lower.method == "shrinking":
        assert (found.weights >= 0).all()
        rebuilt = np.einsum("rg,grm->rm", found.weights, candidates)
        np.testing.assert_allclose(rebuilt, found.values, atol=1e-12 * 10.0 ** (seed - 2))
        for row in range(20):
            size = np.abs(candidates[:, row]).max()
            assert is_in_hull(found.values[row] / size, candidates[:, row] / size)


@pytest.mark.parametrize("lower", LOWERING, ids=lambda a: a.method)
def test_lowering_lowers(lower):
    """Three random candidates of six features, 200 times: strictly lower in most cases."""
    candidates = numbers(3, 200, 6)
    least = complexity(candidates).min(axis=0)
    assert (complexity(lower(candidates).values) < least - 1e-3).mean() > 0.5


def test_candidates_that_agree_in_sign_have_the_lowest_of_them_in_their_hull():
    candidates = abs(numbers(4, 30, 5))
    found = LowComplexity("shrinking")(candidates)
    lowest = complexity(candidates).argmin(axis=0)
    np.testing.assert_array_equal(found.values, candidates[lowest, np.arange(30)])
    # No combination is lower, as 2,000 random ones show; the box has lower points.
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=2000)
    tried = complexity(np.einsum("wg,grm->wrm", weights, candidates))
    assert (tried.min(axis=0) >= complexity(found.values)).all()
    assert (complexity(LowComplexity()(candidates).values) < complexity(found.values)).mean() > 0.5


def test_two_candidates_have_the_exact_minimum_of_their_segment():
    candidates = numbers(2, 50, 4)
    values = LowComplexity("shrinking")(candidates).values
    found = complexity(values)
    is_inside = found < complexity(candidates).min(axis=0)
    assert is_inside.any()
    assert (values[is_inside] == 0).any(axis=1).all()  # where a sign changes, exactly
    t = np.linspace(0, 1, 4001)[:, None, None]
    on_grid = complexity((1 - t) * candidates[0] + t * candidates[1]).min(axis=0)
    assert (found <= on_grid + 1e-12).all()


@pytest.mark.parametrize("lower", LOWERING, ids=lambda a: a.method)
def test_opposite_candidates_do_not_end_in_no_explanation(lower):
    one = numbers(1, 10, 4)
    found = lower(np.concatenate([one, -one])).values
    assert (abs(found).max(axis=1) > 0).all()
    assert (complexity(found) <= complexity(one[0]) + 1e-12).all()
    silent = lower(np.concatenate([one, np.zeros_like(one)])).values
    np.testing.assert_array_equal(complexity(silent), 0)  # as low as the lowest candidate


@pytest.mark.parametrize("factor", [1, 3, 7])
def test_candidates_given_twice_leave_no_room_for_no_explanation(factor):
    """Between a and −ca lies 0, up to the rounding of each coordinate."""
    a = numbers(20, 6, seed=4)
    lowered = LowComplexity("shrinking")([a, a, -factor * a])
    assert (abs(lowered.values).sum(1) > 0.99 * abs(a).sum(1)).all()
    np.testing.assert_allclose(complexity(lowered.values), complexity(a), atol=1e-12)


@pytest.mark.parametrize("lower", LOWERING, ids=lambda a: a.method)
def test_rows_are_lowered_one_by_one_and_in_any_order(lower):
    candidates = numbers(3, 10, 5)
    whole = lower(candidates).values
    np.testing.assert_array_equal(whole[::-1], lower(candidates[:, ::-1]).values)
    np.testing.assert_array_equal(whole[3:4], lower(candidates[:, 3:4]).values)
    shaped = lower(candidates.reshape(3, 5, 2, 5)).values
    np.testing.assert_array_equal(shaped.reshape(10, 5), whole)


# --- wrong calls ---

none: Any = None
three: Any = 3
LINE = np.ones((3, 2))


def near(n_neighbors, **options):
    return NeighbourIndex(LINE, NeighbourSearch(n_neighbors=n_neighbors, **options))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Centroid("l3"), "'l3'"),
        (lambda: Centroid(0.5), "1 ≤ q"),
        (lambda: Centroid(none), "None"),
        (lambda: Centroid("l2", 0.5), "one minimum"),
        (lambda: Centroid("l1", 2), "power=1 for the median"),
        (lambda: Centroid("kendall", 2), "power must be 1"),
        (lambda: Centroid(scale="big"), "'none', 'l1'"),
        (lambda: Centroid()([]), "candidates are missing"),
        (lambda: Centroid()([LINE, np.ones((1, 3))]), r"\[\(3, 2\), \(1, 3\)\]"),
        (lambda: Centroid()([np.array([[np.inf]])]), r"candidates\[0\]"),
        (lambda: Convex([1, -1]), "not negative"),
        (lambda: Convex([1, 1])(np.ones((3, 2, 2))), "3 candidates"),
        (lambda: LowComplexity("jump"), "'descent', 'shrinking'"),
        (lambda: LowComplexity(n_steps=0), "n_steps"),
        (lambda: LowComplexity(tolerance=1), "tolerance"),
        (lambda: NeighbourSearch(n_neighbors=0), "n_neighbors"),
        (lambda: NeighbourSearch(metric=three), "int"),
        (lambda: NeighbourSearch(smoothing=-1), "smoothing"),
        (lambda: NeighbourSearch(at_zero="drop"), "'only', 'leave_out'"),
        (lambda: near(4), "the data have 3 rows"),
        (lambda: near(2, metric="near"), "metric='near'"),
        (lambda: near(2, at_zero="leave_out").nearest(LINE[:1]), "only 0 rows"),
        (
            lambda: learned_weights(criterion_loss(numbers(2, 3, 4), lambda g: 1.0), 2),
            "3 finite numbers",
        ),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, words):
    kind = InvalidArgumentTypeError if words in ("None", "int") else InvalidArgumentError
    with pytest.raises(kind, match=words):
        call()
