"""SVARM: its strata by enumeration of everything that chance may do."""

import itertools
from typing import Any

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.coalitions.tables import end_points
from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.estimators import DesignRequest
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import TableGame, random_game

FORMS = [
    core.SVARM(),
    core.SVARM(paired=False),
    core.SVARM(efficient=False),
    core.SVARM(paired=False, centred=False, efficient=False),
]
each_form = pytest.mark.parametrize("svarm", FORMS, ids=repr)


class GivenOrder:
    """Stands for a random generator that always draws the same order of the players."""

    def __init__(self, order):
        self.order = np.array(order)

    def permuted(self, rows, axis):
        assert axis == 1
        is_of_players = rows.shape[1] == len(self.order)
        return np.tile(self.order, (len(rows), 1)) if is_of_players else rows


def design_by(order, svarm):
    """Return the design that draws one partition of each stratum, by a given order."""
    n_players = len(order)
    budget = svarm.minimum_budget(n_players)
    known = end_points(n_players)
    rng: Any = GivenOrder(order)
    return svarm.design(DesignRequest(n_players, budget, budget, rng, known))


@each_form
@pytest.mark.parametrize("n_players", [4, 5])
def test_the_mean_over_all_orders_is_the_shapley_value(svarm, n_players):
    """Exactly: the only source of chance are the orders, and all of them are tried."""
    game = random_game(n_players, n_rows=2, n_outputs=2)
    bits = 1 << np.arange(n_players)
    total, n_orders = 0.0, 0
    for order in itertools.permutations(range(n_players)):
        design = design_by(order, svarm)
        values = game.values[:, design.table.coalitions[0] @ bits]
        total, n_orders = total + svarm.solve(design, values).values, n_orders + 1
    np.testing.assert_allclose(total / n_orders, game_shapley_values(game), atol=1e-12)


@each_form
@pytest.mark.parametrize("n_players", [7, 8])
def test_sizes_at_the_ends_are_exact(svarm, n_players):
    """Whatever is drawn, for games whose coalitions of other sizes are worth nothing."""
    if svarm.centred:
        svarm = core.SVARM(svarm.paired, False, svarm.efficient)  # or all sizes are worth something
    sizes = (np.arange(2**n_players)[:, None] >> np.arange(n_players) & 1).sum(axis=1)
    is_end = np.isin(sizes, [0, 1, n_players - 1, n_players])
    game = TableGame(random_game(n_players, n_rows=2).values * is_end[:, None])
    settings = core.Settings(seed=0, budget=90, with_errors=True)
    result = core.estimate(game, svarm, settings)
    np.testing.assert_allclose(result.values, game_shapley_values(game), atol=1e-12)
    np.testing.assert_allclose(result.standard_errors, 0, atol=1e-12)


def test_every_evaluation_serves_all_players():
    """The weight of a coalition is the estimate of the game in which it alone is worth 1."""
    n_players = 7
    coalitions = np.eye(2**n_players)[None]  # one output for each coalition
    svarm = core.SVARM(paired=False, centred=False, efficient=False)
    result = core.estimate(TableGame(coalitions), svarm, core.Settings(seed=0, budget=80))
    is_evaluated = (result.values[0] != 0).any(axis=0)
    assert is_evaluated.sum() == result.evaluations[0]
    assert (result.values[0][:, is_evaluated] != 0).sum() >= n_players * (is_evaluated.sum() - 2)


def test_pairs_come_with_their_complements():
    design = design_by(np.random.default_rng(0).permutation(9), core.SVARM())
    coalitions = {row.tobytes() for row in design.table.coalitions[0]}
    assert {(~row).tobytes() for row in design.table.coalitions[0]} == coalitions
    assert len(coalitions) == core.SVARM().minimum_budget(9)


@pytest.mark.parametrize("option", ["paired", "centred", "efficient"])
def test_options_are_flags(option):
    with pytest.raises(InvalidArgumentTypeError, match=option):
        core.SVARM(**{option: 1})  # type: ignore[arg-type] # wrong on purpose
