"""The strongest triples: their interactions, their errors, and what is refused."""

import itertools

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.estimators.odd_gp.strong_triples import strong_triples
from shapley_adapters.interactions.result import pairs_of
from tests.helpers.interaction_oracles import pair_interactions, triple_interactions
from tests.helpers.reference_games import FunctionGame

CONJUNCTIONS = (({0, 1, 2}, 5.0), ({2, 3, 4, 5}, -4.0), ({1, 6}, 3.0), ({0}, 2.0), ({7}, -1.0))
"""Sets of the first eight players and their weights."""


def value_of_set(members):
    return sum(weight for players, weight in CONJUNCTIONS if players <= set(members))


class ConjunctionGame(FunctionGame):
    """A game whose output k of row r is (1 + r + k) times the conjunctions."""

    def __init__(self, n_players, n_rows=1, n_outputs=1, scale=1.0):
        super().__init__(None, n_players, n_rows=n_rows)
        self.n_outputs, self.scale = n_outputs, scale

    def __call__(self, rows, coalitions):
        of_sets = sum(
            weight * coalitions[:, sorted(players)].all(axis=1) for players, weight in CONJUNCTIONS
        )
        return self.scale * of_sets[:, None] * (1 + rows[:, None] + np.arange(self.n_outputs))


def estimated(n_players=40, budget=400, estimator=None, index="shapley", **game):
    settings = core.Settings(seed=0, budget=budget, interactions=index)
    return core.estimate(ConjunctionGame(n_players, **game), estimator or core.OddGP(), settings)


def exact_triples():
    """Return the interactions of triples that are not 0; players beyond the eighth change none."""
    exact = triple_interactions(8, value_of_set)
    return {triple: float(value) for triple, value in exact.items() if abs(value) > 1e-9}


def as_numbers(triples):
    """Return {players: (value, error)} of triples with names such as Feature 3."""
    return {
        tuple(int(name.removeprefix("Feature ")) for name in names): (value, error)
        for names, value, error in triples
    }


def test_all_coalitions_give_the_interactions_of_the_definition():
    exact = exact_triples()
    members = np.array(list(itertools.product([True], *[[True, False]] * 7)))
    values = np.array([[value_of_set(np.flatnonzero(s)) for s in (m, ~m)] for m in members])
    pairs = pair_interactions("shapley", 8, value_of_set)
    of_pairs = np.array([pairs[pair] for pair in zip(*map(list, pairs_of(8)), strict=True)])
    odd = (values[:, 0] - values[:, 1])[None, :, None] / 2
    found = strong_triples(np.where(members, 1.0, -1.0), odd, of_pairs[None, :, None])
    of_row = as_numbers(found.triples_of(0, 0, [f"Feature {player}" for player in range(8)]))
    assert set(of_row) == set(exact)
    for triple, value in exact.items():
        # The noise is at least a 128th of the energy of 128 values, so that the prior shrinks: the
        # triple of 5 by .001, those of −2 by .007.
        assert of_row[triple][0] == pytest.approx(value, rel=1e-2)


def test_few_evaluations_find_the_triples_with_their_signs_and_errors():
    exact, found = exact_triples(), as_numbers(estimated().strongest_triples())
    assert set(exact) <= set(found)
    for triple, (value, error) in found.items():
        assert abs(value - exact.get(triple, 0.0)) < 4 * error
    sizes = [abs(value) for value, _ in found.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert next(iter(found)) == (0, 1, 2)


def test_rows_and_outputs_have_their_own():
    estimate = estimated(n_rows=2, n_outputs=2)
    first = estimate.strongest_triples()
    for row, output in ((0, 1), (1, 0), (1, 1)):
        others = estimate.strongest_triples(row=row, output=output)
        assert others[0].names == first[0].names
        assert others[0].value == pytest.approx((1 + row + output) * first[0].value, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_any_scale_of_values_gives_the_same(scale):
    found, scaled = (estimated(scale=s).strongest_triples() for s in (1.0, scale))
    assert [triple.names for triple in found] == [triple.names for triple in scaled]
    for one, other in zip(found, scaled, strict=True):
        assert other.value == pytest.approx(scale * one.value, rel=1e-6)
        assert other.standard_error == pytest.approx(scale * one.standard_error, rel=1e-4)


def test_players_without_influence_keep_the_numbers_of_the_others(monkeypatch):
    game = ConjunctionGame(40)
    monkeypatch.setattr(game, "active_players", lambda: (np.arange(40) != 9)[None])
    settings = core.Settings(seed=0, budget=400, interactions="shapley")
    found = as_numbers(core.estimate(game, core.OddGP(), settings).strongest_triples())
    assert next(iter(found)) == (0, 1, 2)


def test_names_are_those_of_the_user():
    names = [f"word {player}" for player in range(40)]
    assert estimated().strongest_triples(names)[0].names == ("word 0", "word 1", "word 2")


def test_an_additive_game_has_none():
    game = FunctionGame(lambda coalitions: coalitions @ np.arange(40.0), 40)
    settings = core.Settings(seed=0, budget=400, interactions="shapley")
    assert core.estimate(game, core.OddGP(), settings).strongest_triples() == []


@pytest.mark.parametrize(
    "options", [{"budget": 200}, {"n_players": 20}, {"index": "banzhaf"}], ids=str
)
def test_where_triples_are_not_searched_for_the_message_says_where(options):
    with pytest.raises(InvalidArgumentError, match="six evaluations per player"):
        estimated(**options).strongest_triples()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"row": 1}, "row must be less than 1"),
        ({"output": 1}, "output must be less than 1"),
        ({"names": ["a"]}, "names has 1 names for 40 players"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        estimated().strongest_triples(**options)
