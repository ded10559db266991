"""Scores of cooperation: from differences of values, from arrays, and which way is taken."""

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.cooperators.choices import checked_cooperators
from shapley_adapters.cooperators.scores import difference_coalitions, difference_scores
from shapley_adapters.errors import DerivativeError, InvalidArgumentError, ShapleyExtWarning
from shapley_adapters.estimators.shear.estimator import strongest
from tests.helpers.optional import torch
from tests.helpers.reference_games import (
    FunctionGame,
    asked_for_estimate,
    product_game,
    random_game,
)


def shear(game, cooperators, budget=None, **options):
    settings = core.Settings(seed=0, budget=budget)
    return core.estimate(game, core.Shear(cooperators=cooperators, **options), settings)


def n_distinct(game, result):
    """Return how many were asked for, each once but for those that look for random answers."""
    asked = asked_for_estimate(game, result)
    assert len(set(asked)) == len(asked)
    return len(asked)


def test_difference_scores_are_their_definition():
    game = random_game(5, n_rows=2, n_outputs=3)
    coalitions = difference_coalitions(5)
    values = game.values[:, coalitions @ (1 << np.arange(5))]
    scores = difference_scores(game.values[:, -1], values, 5)
    for row, i, j in np.ndindex(2, 5, 5):
        value = game.value_of(row)
        everyone = frozenset(range(5))
        cross = value(everyone) - value(everyone - {i}) - value(everyone - {j})
        cross = cross + value(everyone - {i, j})
        # Twice, as Eq. 11 counts the second derivative and its transpose; over all outputs.
        expected = 0 if i == j else 2 * np.abs(cross).sum()
        assert scores[row, i, j] == pytest.approx(expected, abs=1e-12)


def test_strongest_first_and_ties_to_the_player_that_stands_first():
    scores = np.array([[[0, 1, 5, 1], [2, 0, 2, 2], [0, 0, 0, 0], [1, 3, 2, 0]]], dtype=float)
    assert strongest(scores, 2).tolist() == [[[2, 1], [0, 2], [0, 1], [1, 2]]]


@pytest.mark.parametrize(
    ("cooperators", "error", "text"),
    [
        ("hesian", InvalidArgumentError, "one of 'auto', 'hessian'"),
        (np.ones(4), InvalidArgumentError, r"shape \(M, M\).*got \(4,\)"),
        (-np.ones((4, 4)), InvalidArgumentError, "not negative"),
        (np.full((4, 4), np.nan), InvalidArgumentError, "finite"),
        (object(), InvalidArgumentError, "got object"),
        ([["a", "b"], ["c", "d"]], InvalidArgumentError, "got list"),
    ],
)
def test_cooperators_that_cannot_be_used_are_refused(cooperators, error, text):
    with pytest.raises(error, match=text):
        checked_cooperators(cooperators)


@pytest.mark.parametrize("shape", [(5, 5), (2, 6, 6), (1, 6, 6)])
def test_arrays_must_fit_the_game(shape):
    with pytest.raises(InvalidArgumentError, match=r"must be \(6, 6\) or \(3, 6, 6\)"):
        shear(random_game(6, n_rows=3), np.ones(shape), budget=40)


def test_arrays_of_one_row_each_are_used_row_by_row():
    game = random_game(6, n_rows=3)
    scores = np.random.default_rng(1).random((3, 6, 6))
    scores += scores.transpose(0, 2, 1)
    together = shear(game, scores, budget=40)
    assert together.cooperators.tolist() == ["array"] * 3
    for row in range(3):
        alone = random_game(6)
        alone.values = game.values[row : row + 1]
        np.testing.assert_allclose(
            shear(alone, scores[row], budget=40).values[0], together.values[row], atol=1e-12
        )


def test_the_diagonal_of_an_array_does_not_matter_and_the_array_is_left_alone():
    game, scores = random_game(6), np.random.default_rng(1).random((6, 6))
    with_diagonal = scores + 100 * np.eye(6)
    kept = with_diagonal.copy()
    np.testing.assert_array_equal(
        shear(game, with_diagonal, budget=40).values, shear(game, scores, budget=40).values
    )
    np.testing.assert_array_equal(with_diagonal, kept)


@pytest.mark.parametrize("way", ["hessian", "gradient"])
def test_derivatives_of_games_without_any_are_refused(way):
    with pytest.raises(DerivativeError, match=r"not a torch module.*'difference'"):
        shear(random_game(7), way, budget=90)


@pytest.mark.parametrize(
    ("budget", "source"),
    # 8 players: 36 coalitions lack one or two; with that of all players, 37.
    [(74, "difference"), (73, "random")],
)
def test_auto_takes_differences_where_they_cost_at_most_half_the_budget(budget, source):
    game = random_game(8)
    result = shear(game, "auto", budget=budget)
    assert result.cooperators.tolist() == [source]
    assert n_distinct(game, result) == result.evaluations[0] <= budget


def test_auto_leaves_enough_for_the_estimator():
    """With 5 players, half of 32 pays for the differences, but what is left does not suffice."""
    result = shear(random_game(5), "auto", budget=31)
    assert result.cooperators.tolist() == ["random"]


def test_differences_find_the_cooperators_of_an_interaction():
    """With the other two of a product as cooperators, all that matters is enumerated."""
    game = product_game(9, [1, 4, 7])
    values = shear(game, "difference", budget=9 * 8 + 2 + 45).values[0, :, 0]
    expected = np.zeros(9)
    expected[[1, 4, 7]] = 1 / 3
    np.testing.assert_allclose(values, expected, atol=1e-12)
    # Without knowing them, the same estimator is off.
    assert np.abs(shear(game, "random", budget=9 * 8 + 2).values[0, :, 0] - expected).max() > 0.01


# Derivatives that serve some rows only


class WholeNumbers(FunctionGame):
    """A game with derivatives in name, which nothing may ask for."""

    derivative_obstacle = "the rows hold whole numbers"

    def fully_present(self, n_points):
        raise AssertionError


def test_obstacles_are_believed():
    game = WholeNumbers(lambda z: z.prod(axis=1), 7)
    assert shear(game, "auto", budget=90).cooperators.tolist() == ["difference"]
    with pytest.raises(DerivativeError, match="the rows hold whole numbers.*'difference'"):
        shear(game, "hessian", budget=90)


class RowsOfKinds(FunctionGame):
    """A game of tensors, in which each row has a function of its own."""

    derivative_obstacle = None

    def __init__(self, functions, n_players):
        super().__init__(None, n_players, n_rows=len(functions))
        self.functions = functions
        self.calls = []

    def fully_present(self, n_points):
        return torch.ones(n_points, self.n_players, dtype=torch.float64)

    def presence_values(self, rows, presence):
        self.calls.append(rows.tolist())
        made = [self.functions[row](presence[place]) for place, row in enumerate(rows)]
        return torch.stack(made)[:, None]

    def __call__(self, rows, coalitions):
        with torch.no_grad():
            return self.presence_values(rows, torch.as_tensor(coalitions).double()).numpy()


def smooth(z):
    return torch.tanh(z).prod() + z[0] * z[1]


def hidden(z):
    return smooth(z) + (z.detach() ** 2).sum()


def infinite(z):
    return smooth(z) + (z - z.detach()).abs().pow(1.5).sum()


def not_a_number(z):
    return smooth(z) + (z - z.detach()).abs().pow(0.5).sum()


KINDS = {
    "smooth": (smooth, "hessian"),
    "straight": (lambda z: (z.sum() - 6.5).clamp(min=0), "gradient"),
    "infinite curvature": (infinite, "gradient"),
    "infinite slope": (not_a_number, "difference"),
    "flat": (lambda z: torch.round(z.sum() / 3), "difference"),
    "hidden part": (hidden, "difference"),
    "linear": (lambda z: z.sum(), "gradient"),
}


def test_each_row_takes_the_first_way_that_says_something_about_it():
    functions = [function for function, _ in KINDS.values()]
    wanted = [source for _, source in KINDS.values()]
    together = shear(RowsOfKinds(functions, 7), "auto", budget=90)
    assert together.cooperators.tolist() == wanted
    for row, function in enumerate(functions):
        alone = shear(RowsOfKinds([function], 7), "auto", budget=90)
        assert alone.cooperators.tolist() == [wanted[row]]
        np.testing.assert_allclose(alone.values[0], together.values[row], rtol=0, atol=1e-12)


def test_hidden_parts_are_put_up_with_where_differences_do_not_fit():
    functions = [smooth, hidden, not_a_number]
    with pytest.warns(ShapleyExtWarning, match="cooperators='auto'.* 1 rows.*'difference'"):
        result = shear(RowsOfKinds(functions, 7), "auto", budget=40)
    # Of 7 players, differences cost 28; not a number is worse than what hides a part.
    assert result.cooperators.tolist() == ["hessian", "gradient", "random"]


def test_rows_without_finite_derivatives_are_counted_in_the_refusal():
    game = RowsOfKinds([smooth, infinite, infinite], 7)
    with pytest.raises(DerivativeError, match="not finite for 2 rows.*'difference'"):
        shear(game, "hessian", budget=90)
    assert shear(game, "gradient", budget=90).cooperators.tolist() == ["gradient"] * 3


def test_rows_that_are_served_are_not_looked_at_again():
    game = RowsOfKinds([smooth, lambda z: (z.sum() - 6.5).clamp(min=0)], 7)
    result = shear(game, "auto", budget=90)
    assert result.backward_passes.tolist() == [8, 16]
    with_gradients = [rows for rows in game.calls if set(rows) == {1} and len(rows) == 8]
    assert len(with_gradients) == 1
