"""The criteria: against loops by definition, and what must hold of any of them."""

from typing import Any

import numpy as np
import pytest

from shapley_adapters.criteria import (
    Neighbourhood,
    absolute_error,
    complexity,
    deletion_curve,
    faithfulness,
    insertion_curve,
    masked_log_odds,
    measured_sensitivity,
    monotonicity,
    ranking_accuracy,
    sensitivity,
)
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    NonFiniteValueError,
    ShapleyExtWarning,
)
from tests.helpers import criteria_oracle
from tests.helpers.reference_games import FunctionGame, additive_game, from_function, random_game
from tests.helpers.tolerances import Tolerances

EXACT: Tolerances = {"rtol": 0, "atol": 1e-12}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# --- complexity and accuracy ---


@pytest.mark.parametrize("n", [1, 2, 5, 1000])
def test_complexity_at_its_ends(n):
    assert complexity(np.eye(n)[0]) == 0
    np.testing.assert_allclose(complexity(np.ones(n)), np.log(n), **EXACT)
    assert complexity(np.zeros(n)) == 0


def test_complexity_knows_no_scale_sign_or_order():
    values = numbers(5, 6)
    same = complexity(values)
    for other in (values * 1e300, values * 1e-300, -values, values[:, ::-1]):
        np.testing.assert_allclose(complexity(other), same, **EXACT)


def test_errors_and_rankings_of_attributions():
    values, exact = numbers(30, 5), numbers(30, 5, seed=1)
    values[:10] = exact[:10] + 0.1 * values[:10]
    expected = [criteria_oracle.ranking_accuracy(v, e) for v, e in zip(values, exact, strict=True)]
    assert len(set(np.round(expected, 6))) > 5
    np.testing.assert_allclose(ranking_accuracy(values, exact), expected, **EXACT)
    np.testing.assert_allclose(absolute_error(values, exact), abs(values - exact).sum(1), **EXACT)
    np.testing.assert_array_equal(ranking_accuracy(exact, exact), 1.0)
    by_size = ranking_accuracy(abs(values), abs(exact))
    np.testing.assert_array_equal(ranking_accuracy(values, exact, order="magnitude"), by_size)


# --- criteria of games ---


@pytest.mark.parametrize("size", [1, 2, 4])
def test_faithfulness_over_all_subsets(size):
    game, values = random_game(5, n_rows=3), numbers(3, 5)
    found = faithfulness(values, game, subset_size=size, n_subsets=100)
    expected = [
        criteria_oracle.subset_faithfulness(values[row], game.value_of(row), size)
        for row in range(3)
    ]
    np.testing.assert_allclose(found, expected, **EXACT)
    assert len(set(game.asked)) == len(game.asked)  # nothing is evaluated twice


def test_faithfulness_over_drawn_subsets_is_near_that_over_all():
    """A correlation of n drawn subsets has a standard error of about (1 − ρ²)/√n."""
    game, values = random_game(12, n_rows=4), numbers(4, 12)
    game.values += 0.7 * ((np.arange(2**12)[:, None] >> np.arange(12)) % 2 @ values.T).T[..., None]
    exact = faithfulness(values, game, subset_size=5, n_subsets=10**6)  # 792 subsets
    drawn = np.array(
        [faithfulness(values, game, subset_size=5, n_subsets=100, seed=s) for s in range(30)]
    )
    assert (drawn.std(axis=0) > 0.01).all()
    error = (1 - exact**2) / np.sqrt(100 * 30)
    assert (abs(drawn.mean(axis=0) - exact) < 5 * error).all()
    assert (abs(exact) < 0.98).all()


def test_drawn_subsets_are_distinct_of_one_size_and_repeatable():
    asked = []

    def note(coalitions):
        asked.append(coalitions)
        return coalitions.sum(axis=1)

    game = FunctionGame(note, 40, n_rows=2)
    values = numbers(2, 40)
    first = faithfulness(values, game, subset_size=7, n_subsets=60, seed=3)
    kept = np.concatenate(asked)
    removed = kept[(~kept).sum(axis=1) > 0]
    assert set((~removed).sum(axis=1)) == {7}
    assert len(np.unique(removed, axis=0)) == 60 == len(removed) / 2
    again = faithfulness(values, game, subset_size=7, n_subsets=60, seed=3)
    np.testing.assert_array_equal(first, again)
    one = faithfulness(values[1:], FunctionGame(note, 40), subset_size=7, n_subsets=60, seed=3)
    np.testing.assert_allclose(first[1:], one, **EXACT)  # a row does not depend on the others


def test_equal_attributions_correlate_with_nothing():
    game = random_game(5)
    assert faithfulness(np.full((1, 5), 0.1), game, subset_size=3) == 0
    assert faithfulness(numbers(1, 5), from_function(lambda z: z[:, 0] * 0 + 3, 5)) == 0


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_monotonicity_takes_no_rounding_for_a_difference(precision, offset):
    game = from_function(lambda z: (0.1 * z + offset / 12).astype(precision).sum(axis=1), 12)
    assert monotonicity(np.full((1, 12), 0.1), game) == 1
    falling = from_function(lambda z: offset + z @ (1 + 1e-2 * np.arange(12)), 12)
    assert monotonicity(np.arange(12.0)[None], falling) == 1
    assert monotonicity(-np.arange(12.0)[None], falling) == 0


def test_several_outputs_are_judged_one_by_one():
    game, values = random_game(5, n_rows=3, n_outputs=2), numbers(3, 2, 5)
    for criterion in (
        lambda v, g: faithfulness(v, g, subset_size=2),
        monotonicity,
        lambda v, g: insertion_curve(v, g).area,
        lambda v, g: deletion_curve(v, g, order="magnitude").area,
    ):
        found = criterion(values, game)
        assert found.shape == (3, 2)
        for output in range(2):
            alone = type(game)(game.values[..., output : output + 1])
            np.testing.assert_allclose(found[:, output], criterion(values[:, output], alone))


def test_curves_in_steps_are_parts_of_the_whole_curve():
    game, values = random_game(9, n_rows=2), numbers(2, 9)
    whole, coarse = insertion_curve(values, game), insertion_curve(values, game, n_steps=3)
    np.testing.assert_array_equal(coarse.fractions, [0, 1 / 3, 2 / 3, 1])
    np.testing.assert_array_equal(coarse.values, whole.values[:, ::3])
    np.testing.assert_allclose(whole.mean, whole.values.mean(0))
    np.testing.assert_allclose(
        whole.standard_error, abs(whole.values[0] - whole.values[1]) / 2, atol=1e-12
    )


def test_masked_log_odds():
    probability = from_function(lambda z: 1 / (1 + np.exp(-(z @ [3.0, -1.0, 0.5]))), 3)
    logs = type(probability)(np.log(probability.values))
    curve = masked_log_odds(np.array([[3.0, -1.0, 0.5]]), logs)
    # The log-odds are the linear score itself: features go in the order 3, 0.5, −1.
    np.testing.assert_allclose(curve.values, [[0, -3.0, -3.5, -2.5]], atol=1e-9)
    certain = masked_log_odds(np.ones((1, 2)), from_function(lambda z: z[:, 0] * 0, 2))
    np.testing.assert_array_equal(certain.values, 0)  # p = 1 throughout: finite
    with pytest.raises(InvalidArgumentError, match="logarithm"):
        masked_log_odds(np.ones((1, 2)), additive_game([1.0, 2.0]))


# --- sensitivity ---


def test_sensitivity_by_definition():
    own, others = numbers(4, 5), numbers(4, 6, 5, seed=1)
    kept = numbers(4, 6, seed=2) > 0
    found = sensitivity(own, others, is_neighbour=kept)
    for row in range(4):
        largest, mean = criteria_oracle.sensitivities(own[row], others[row][kept[row]])
        np.testing.assert_allclose(found.maximum[row], largest, **EXACT)
        np.testing.assert_allclose(found.average[row], mean, **EXACT)
    np.testing.assert_array_equal(found.n_neighbours, kept.sum(axis=1))
    shares = sensitivity(own, others, is_neighbour=kept, relative=True)
    np.testing.assert_allclose(shares.maximum, found.maximum / np.linalg.norm(own, axis=1))


def test_distances_may_be_of_ones_own():
    own, others = numbers(2, 5), numbers(2, 3, 5, seed=1)
    by_name = sensitivity(own, others, distance="linf")
    by_function = sensitivity(own, others, distance=lambda a, b: abs(a - b).max(axis=-1))
    np.testing.assert_array_equal(by_name.maximum, by_function.maximum)
    one = sensitivity(own, others, distance="l1")
    np.testing.assert_allclose(one.maximum, abs(own[:, None] - others).sum(-1).max(1))


def linear(rows):
    return rows * np.arange(1.0, rows.shape[1] + 1)


def test_linear_explanations_have_the_sensitivity_of_their_weights():
    """Of φ = w·x in one column: max |w| r in the limit, and |w| r / 2 on average."""
    around = Neighbourhood(0.1, n_draws=4000, keep="all", columns=[False, True, False])
    found = measured_sensitivity(linear, lambda x: x.sum(1), numbers(2, 3), around)
    assert (found.maximum <= 0.2 + 1e-12).all()
    assert (found.maximum > 0.199).all()
    error = 0.2 / np.sqrt(12 * 4000)
    assert (abs(found.average - 0.1) < 5 * error).all()


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_neighbours_fill_the_radius_evenly(norm):
    """In D dimensions, the distance over the radius, to the power D, is uniform in (0, 1)."""
    near, counted = Neighbourhood(2.0, norm, n_draws=4000).around(numbers(1, 3), 0)
    away = np.linalg.norm(near[0] - numbers(1, 3), ord={"linf": np.inf, "l2": 2}[norm], axis=1)
    uniform = (away / 2.0) ** 3
    assert counted.all()
    assert uniform.max() <= 1 + 1e-12
    assert abs(uniform.mean() - 0.5) < 5 / np.sqrt(12 * 4000)
    assert abs((uniform < 0.1).mean() - 0.1) < 5 * np.sqrt(0.09 / 4000)


def test_only_neighbours_that_keep_the_prediction_count():
    def two_classes(x):
        return np.stack([x[:, 0], -x[:, 0]], axis=1)

    rows = np.array([[0.05, 1.0], [10.0, 1.0]])
    asked = []

    def explain(x):
        asked.append(x)
        return x

    around = Neighbourhood(0.1, n_draws=200)
    found = measured_sensitivity(explain, two_classes, rows, around)
    near = np.concatenate(asked[1:])
    assert (near[:, 0] > 0).all()
    assert found.n_neighbours[1] == 200
    assert 100 < found.n_neighbours[0] < 190
    by_value = Neighbourhood(0.1, n_draws=200, keep=0.02)
    found = measured_sensitivity(explain, lambda x: x[:, 0], rows, by_value)
    assert (found.n_neighbours < 80).all()
    assert (found.n_neighbours > 5).all()


def test_neighbours_may_be_given():
    points = np.array([[0.0, 0.0], [0.1, 0.0], [0.3, 0.0], [5.0, 5.0], [5.0, 5.2]])
    around = Neighbourhood(0.35, keep="all", points=points)
    with pytest.warns(ShapleyExtWarning, match="1 of 3 rows, such as row 2"):
        found = measured_sensitivity(
            lambda x: x, lambda x: x, np.array([[0.0, 0.0], [5.0, 5.0], [9.0, 9.0]]), around
        )
    np.testing.assert_allclose(found.maximum, [0.3, 0.2, np.nan])
    np.testing.assert_allclose(found.average, [0.2, 0.2, np.nan])
    np.testing.assert_array_equal(found.n_neighbours, [2, 1, 0])


def test_sensitivity_is_repeatable_and_knows_no_batches_or_other_rows():
    rows, around = numbers(4, 3), Neighbourhood(0.1, keep="all")
    whole = measured_sensitivity(linear, lambda x: x, rows, around, seed=1)
    pieces = measured_sensitivity(linear, lambda x: x, rows, around, seed=1, rows_per_call=3)
    swapped = measured_sensitivity(linear, lambda x: x, rows[::-1], around, seed=1)
    other = measured_sensitivity(linear, lambda x: x, rows, around, seed=2)
    memory = np.empty((1000, 3))  # of all answers

    def reusing(x):
        memory[: len(x)] = linear(x)
        return memory[: len(x)]

    in_one = measured_sensitivity(reusing, lambda x: x, rows, around, seed=1, rows_per_call=3)
    np.testing.assert_array_equal(whole.maximum, in_one.maximum)
    np.testing.assert_array_equal(whole.maximum, pieces.maximum)
    np.testing.assert_allclose(whole.maximum, swapped.maximum[::-1], **EXACT)
    assert (whole.maximum != other.maximum).all()


# --- wrong calls ---


ONE, FIVE = np.ones((1, 5)), random_game(5)
NEAR = Neighbourhood(1.0, points=np.ones((4, 2)))
INFINITE = from_function(lambda z: np.where(z[:, 0], np.inf, 0.0), 2)
far: Any = "far"


def first(x):
    return x[:, 0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: complexity([1.0, np.nan]), r"nan at \[1\]"),
        (lambda: ranking_accuracy([1.0], [1.0], order="size"), "'value', 'magnitude'"),
        (lambda: faithfulness(np.ones((2, 4)), FIVE), r"\(1, 5\) is needed"),
        (lambda: faithfulness(ONE[:, :1], random_game(1)), "attributions are of 1 feature"),
        (lambda: faithfulness(ONE, FIVE, subset_size=5), "less than the number of features, 5"),
        (lambda: faithfulness(ONE, random_game(5, n_outputs=2)), "1 outputs, but the model has 2"),
        (lambda: monotonicity(ONE[:, :1], random_game(1)), "several"),
        (lambda: insertion_curve(ONE, FIVE, n_steps=0), "n_steps must be at least 1"),
        (lambda: insertion_curve(ONE[:, :2], INFINITE), "row 0"),
        (lambda: absolute_error(np.ones(3), np.ones(4)), r"exact.*\(4,\)"),
        (lambda: Neighbourhood(0), "radius must be positive"),
        (lambda: Neighbourhood(1.0, "l3"), "'linf', 'l2'"),
        (lambda: Neighbourhood(far), "'far'"),
        (lambda: Neighbourhood(1.0, keep=-1.0), "not negative"),
        (lambda: Neighbourhood(1.0, keep="label"), "'class', 'all'"),
        (
            lambda: measured_sensitivity(linear, lambda x: x[:, 0], ONE, Neighbourhood(1.0)),
            "keep=0.1",
        ),
        (lambda: NEAR.around(ONE, seed=0), "2 numbers each, but rows hold 5"),
        (lambda: sensitivity(0 * ONE, np.ones((1, 3, 5)), relative=True), "row 0 is zero"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call, words):
    error = {"row 0": NonFiniteValueError, "'far'": InvalidArgumentTypeError}
    with pytest.raises(error.get(words, InvalidArgumentError), match=words):
        call()
