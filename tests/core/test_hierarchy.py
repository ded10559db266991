"""Owen values of hierarchies: against enumeration, drawn, and refined where it matters."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage, linkage

from shapley_adapters import Hierarchy, PlayerTree, Settings, estimate
from shapley_adapters.errors import BudgetError, InvalidArgumentError, ShapleyExtWarning
from shapley_adapters.hierarchies.default_trees import tree_of_places, tree_of_words
from shapley_adapters.pipeline.settings import checked_tolerance
from tests.helpers.hierarchy_oracle import owen_values
from tests.helpers.reference_games import FunctionGame

N_PLAYERS = 7
WEIGHTS = np.random.default_rng(0).normal(size=(N_PLAYERS, 2))
NESTED = [[0, [1, 5]], 2, [3, 4, 6]]


def curved(coalitions):
    """Return two outputs of coalitions, (n, M), in which all players interact."""
    coalitions = np.asarray(coalitions, dtype=float)
    products = coalitions[:, :1] * coalitions[:, 5:6] * coalitions[:, 3:4]
    return np.tanh(coalitions @ WEIGHTS) + products


class Game(FunctionGame):
    """A game of rows, the second twice the first, which counts its evaluations."""

    n_evaluations = 0

    def __call__(self, rows, coalitions):
        self.n_evaluations += len(rows)
        return super().__call__(rows, coalitions) * (1 + rows[:, None])


def of_set(members):
    return curved(np.isin(np.arange(N_PLAYERS), list(members))[None])[0]


def run(nested=NESTED, budget=200, seed=0, n_rows=1, **options):
    tree = nested
    if not isinstance(nested, PlayerTree):
        tree = PlayerTree.from_nested(nested, N_PLAYERS)
    settings = Settings(seed=seed, budget=budget, graph=tree, **options)
    return estimate(Game(curved, N_PLAYERS, n_rows=n_rows), Hierarchy(), settings)


# --- exact values ---


@pytest.mark.parametrize(
    "nested",
    [NESTED, [[0, 1, 2], [3, [4, [5, 6]]]], [6, [5, [4, [3, [2, [0, 1]]]]]], [*range(N_PLAYERS)]],
    ids=["three levels", "uneven", "chain", "one level"],
)
def test_small_trees_are_exact(nested):
    found = run(nested)
    np.testing.assert_allclose(found.values[0], owen_values(nested, of_set), rtol=0, atol=1e-12)
    assert (found.standard_errors == 0).all()
    np.testing.assert_array_equal(found.unions, [range(N_PLAYERS)])


def test_players_without_effect_are_left_out_of_the_tree():
    active = np.ones((1, N_PLAYERS), dtype=bool)
    active[0, [1, 2]] = False

    def without(coalitions):
        return curved(coalitions & active)

    def value(members):
        return without(np.isin(np.arange(N_PLAYERS), list(members))[None])[0]

    settings = Settings(seed=0, budget=60, graph=PlayerTree.from_nested(NESTED, N_PLAYERS))
    found = estimate(Game(without, N_PLAYERS, active=active), Hierarchy(), settings)
    wanted = owen_values(NESTED, value)
    np.testing.assert_allclose(found.values[0], wanted, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.unions, [[0, -1, -1, 3, 4, 5, 6]])


# --- drawn orders ---


@pytest.mark.parametrize("nested", [NESTED, list(range(N_PLAYERS))], ids=["tree", "one level"])
def test_errors_of_drawn_orders_have_the_right_size(nested):
    exact = owen_values(nested, of_set)
    found = [run(nested, budget=30, seed=seed) for seed in range(60)]
    errors = np.array([one.values[0] - exact for one in found])
    bounds = np.array([one.interval() for one in found])[:, :, 0]
    assert ((bounds[:, 0] <= exact) & (exact <= bounds[:, 1])).mean() > 0.9
    squares = np.array([one.standard_errors[0] ** 2 for one in found])
    # Errors of the players of one seed are alike, and an order and its reverse err less than two.
    assert 0.7 < np.sqrt(squares.sum() / (errors**2).sum()) < 2.5
    assert max(one.evaluations[0] for one in found) <= 30


def text_game(seed, n_words=64):
    """Return a function of coalitions with a few heavy words that interact with neighbours."""
    rng = np.random.default_rng(seed)
    single, pairs = rng.standard_t(2, size=n_words), rng.standard_t(2, size=n_words - 1)

    def value(coalitions):
        c = np.asarray(coalitions, dtype=float)
        return np.tanh(0.2 * (c @ single + (c[:, 1:] * c[:, :-1]) @ pairs))[:, None]

    return value


WORDS = tree_of_places([np.arange(64)], 64)


def refined(seed=0, budget=120, n_rows=1, function=None, **options):
    game = Game(function or text_game(0), 64, n_rows=n_rows)
    settings = Settings(seed=seed, budget=budget, graph=WORDS, **options)
    return game, estimate(game, Hierarchy(), settings)


def test_a_refinement_keeps_the_values_of_unions_and_all_sums():
    _, coarse = refined(budget=60, n_rows=2)
    game, fine = refined(budget=130, n_rows=2)
    assert (coarse.evaluations == 60).all() and (fine.evaluations == 130).all()  # halves cost one
    assert game.n_evaluations <= 1.05 * 2 * 130  # the rest looks for random answers
    for row in range(2):
        total = fine.grand_values[row] - fine.empty_values[row]
        np.testing.assert_allclose(fine.values[row].sum(axis=0), total, atol=1e-12)
        sizes = np.bincount(fine.unions[row], minlength=64)
        assert sizes.max() > 1 and (sizes == 1).any()  # it went down to single words somewhere
        for union in np.unique(fine.unions[row]):
            shares = fine.values[row, fine.unions[row] == union]
            np.testing.assert_allclose(shares, shares[:1] + 0 * shares)
    np.testing.assert_array_equal(fine.unions[0], fine.unions[1])  # twice the same game
    np.testing.assert_allclose(fine.values[1], 2 * fine.values[0], rtol=1e-12)
    assert len(np.unique(fine.unions[0])) > len(np.unique(coarse.unions[0]))


def test_it_splits_where_the_value_is():
    def value(coalitions):
        return (coalitions[:, 41] * (1.0 + coalitions[:, 40]))[:, None]

    _, found = refined(budget=80, function=value)
    assert found.unions[0, 41] == 41
    # Ridges pull what is predicted towards equal shares.
    assert found.values[0, 41, 0] == pytest.approx(1.5, rel=0.03)
    assert found.values[0, 40, 0] == pytest.approx(0.5, rel=0.1)
    assert (found.unions[0] != np.arange(64)).any()  # not all others


def test_intervals_of_refined_values_hold_the_exact_ones():
    inside, found_errors, stated_errors = [], [], []
    for game in range(8):
        function = text_game(game)
        _, exact = refined(seed=99, budget=20000, function=function)
        for seed in range(3):
            _, found = refined(seed=10 * game + seed, budget=150, function=function)
            lower, upper = found.interval()
            inside.append(((lower <= exact.values) & (exact.values <= upper)).mean())
            found_errors.append(np.abs(found.values - exact.values).mean())
            stated_errors.append(found.standard_errors.mean())
    assert np.mean(inside) > 0.9
    # Normal errors have a mean of .8 of their standard deviation; those of texts have long tails.
    assert 0.2 < np.sum(found_errors) / np.sum(stated_errors) < 0.9


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_games_without_differences(power):
    """A constant, and one word alone: no variance has anything to grow with."""
    _, found = refined(function=lambda coalitions: coalitions[:, :1] * power + 1.0)
    np.testing.assert_allclose(found.values[0, 0], power, atol=0.05)
    assert np.isfinite(found.standard_errors).all()
    assert found.values.sum() == pytest.approx(power, abs=1e-12)
    assert power or (found.standard_errors == 0).all()


def test_results_depend_on_the_seed_alone():
    _, first = refined(n_rows=3)
    _, alone = refined(n_rows=1)
    _, other = refined(seed=1)
    np.testing.assert_array_equal(first.unions[0], alone.unions[0])
    np.testing.assert_allclose(first.values[0], alone.values[0], rtol=0, atol=1e-12)
    assert (other.values != alone.values).any()


def test_a_tolerance_ends_the_refinement():
    tolerance = checked_tolerance(0.1)
    _, found = refined(budget=3000, n_rows=2, tolerance=tolerance)
    assert (found.standard_errors <= 0.1 + 1e-12).all()
    assert found.evaluations[0] <= found.evaluations[1] < 3000


def test_traces_are_the_estimates_of_smaller_designs():
    _, found = refined(trace=True)
    known = found.trace.evaluations[0] > 0
    sums = found.trace.values[0, :, known].sum(axis=1)
    total = found.grand_values[0] - found.empty_values[0]
    np.testing.assert_allclose(sums, np.broadcast_to(total, sums.shape), atol=1e-12)


def test_errors_hold_the_noise_of_a_random_model():
    rng = np.random.default_rng(3)

    def noisy(coalitions):
        return np.zeros((len(coalitions), 1)) + 0.1 * rng.normal(size=(len(coalitions), 1))

    with pytest.warns(ShapleyExtWarning, match="not deterministic"):
        _, found = refined(budget=400, function=noisy)
    assert found.value_errors[0, 0] == pytest.approx(0.1, rel=0.5)
    # Each of two pairs of orders differs by four values: a variance of .01.
    assert np.sqrt((found.standard_errors**2).mean()) == pytest.approx(0.07, rel=0.5)


# --- trees ---


def test_trees_of_all_forms_agree():
    table = linkage(np.array([[0.0], [0.1], [5.0], [5.2], [9.0]]))
    tree = PlayerTree.from_linkage(table)
    assert tree.nested() == [[0, 1], [[2, 3], 4]]
    again = PlayerTree.from_nested(tree.nested(), 5)
    assert again.nested() == tree.nested()
    assert is_valid_linkage(again.to_linkage(5))
    np.testing.assert_array_equal(tree.to_linkage(5), table)
    labels = PlayerTree.from_labels([[0, 0, 1, 1, 1], [0, 1, 2, 2, 3]])
    assert labels.nested() == [[0, 1], [[2, 3], 4]]
    assert labels == PlayerTree.from_labels([[5, 5, 9, 9, 9], [0, 1, 2, 2, 3]])
    embedded = labels.embedded(np.array([1, 2, 3, 4, 5]), 6)
    assert embedded.nested() == [0, [1, 2], [[3, 4], 5]]


def test_default_trees():
    pixels = tree_of_places([np.arange(48).reshape(3, 4, 4)], 48).nested()  # channels first
    assert pixels[0] == [[0, 16, 32], [1, 17, 33], [4, 20, 36], [5, 21, 37]]
    assert tree_of_places([np.arange(6)], 6).nested() == [[[0, 1], 2], [[3, 4], 5]]
    assert tree_of_places([np.arange(2), np.arange(2, 4)], 4).nested() == [[0, 1], [2, 3]]
    superpixels = np.array([[0, 0, 1, 1], [0, 0, 1, 2]])
    assert tree_of_places([superpixels], 3).nested() == [0, [1, 2]]
    text = tree_of_words(["Good, ", "not ", "bad. ", "Really! ", "\n\nYes ", "it ", "is."])
    assert text.nested() == [[[0, [1, 2]], 3], [4, 5, 6]]
    assert tree_of_words([f"w{place} " for place in range(9)]).nested() == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        ([[0, 1], [1, 2, 3, 4, 5, 6]], "player 1 in two places"),
        ([[0, 1], [2, 3]], "leaves out 3 of the 7 players"),
        ([[0, 7], [1, 2, 3, 4, 5, 6]], "unknown player, 7"),
        ([[], [0, 1, 2, 3, 4, 5, 6]], "empty union"),
    ],
)
def test_trees_that_are_none_are_refused(nested, message):
    with pytest.raises(InvalidArgumentError, match=message):
        PlayerTree.from_nested(nested, N_PLAYERS)


def test_trees_of_other_games_and_small_budgets_are_refused():
    with pytest.raises(InvalidArgumentError, match="hierarchy has 3 players, but there are 7"):
        run(PlayerTree.from_nested([0, [1, 2]], 3))
    with pytest.raises(BudgetError, match="at least 14 evaluations for an order of the 7 unions"):
        run(list(range(N_PLAYERS)), budget=13)
    bad = linkage(np.arange(4.0)[:, None])
    bad[1, 0] = bad[0, 0]
    with pytest.raises(InvalidArgumentError, match="joins node"):
        PlayerTree.from_linkage(bad)
    with pytest.raises(InvalidArgumentError, match="segment 0 of level 1 lies in several"):
        PlayerTree.from_labels([[0, 0, 1, 1], [0, 1, 0, 1]])


def test_labels_of_many_players_take_little_memory():
    def votes(coalitions):
        return (coalitions[:, :99].sum(axis=1) > 49).astype(float)[:, None]

    n_players = 30_000  # a matrix of all pairs has 7 GB
    tree = tree_of_places([np.arange(n_players)], n_players)
    settings = Settings(seed=0, budget=400, graph=tree)
    found = estimate(Game(votes, n_players), Hierarchy(), settings)
    np.testing.assert_allclose(found.values.sum(), 1)
    assert found.check_evaluations > 0
