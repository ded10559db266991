"""The pipeline: chunks of rows, players set aside, budgets, errors, seeds."""

import dataclasses
import re
from unittest.mock import Mock

import numpy as np
import pytest
from tqdm.auto import tqdm

import shapley_adapters as core
from shapley_adapters.errors import BudgetError, InvalidArgumentError, ShapleyExtError
from shapley_adapters.pipeline import one_round
from shapley_adapters.pipeline import run as running
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.estimator_table import ESTIMATORS, OF_CLASSES, OF_KINDS, over
from tests.helpers.reference_games import (
    FunctionGame,
    TableGame,
    asked_for_estimate,
    random_game,
    smooth_game,
    with_null_players,
)

RANDOM = [row for row in ESTIMATORS if not row.is_exact]
SOLVE_ROWS_TOGETHER = (core.LeastSquares, core.Shear)
HAS_ERRORS = [row for row in RANDOM if row.options.get("complement") != "none"]

FEW = "ignore:.* is little for"
"""What the least budget of oddgp makes it say."""


def needed(row, game, with_errors=False):
    """Return the number of evaluations that the refusal of a budget of 1 asks for."""
    with pytest.raises(BudgetError) as raised:
        row.estimate(game, budget=1, with_errors=with_errors)
    match = re.search(r"needs at least (\d+) evaluations", str(raised.value))
    assert match is not None
    return int(match[1])


@over(OF_KINDS[:2])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_blocks_of_rows_change_no_bit(row, n_outputs, monkeypatch):
    active = np.ones((6, 6), dtype=bool)
    active[[1, 4], 2] = False
    game = with_null_players(random_game(6, n_rows=6, n_outputs=n_outputs), active)
    whole = row.estimate(game, budget=row.budget(6, 55))
    n_calls = len(game.batch_sizes)
    for block_bytes in (1, 7_500 * (1 + n_outputs) // 2):  # one row, and some
        monkeypatch.setattr(running, "_BLOCK_BYTES", block_bytes)
        game.batch_sizes.clear()
        in_blocks = row.estimate(game, budget=row.budget(6, 55))
        assert len(game.batch_sizes) >= n_calls + 2  # three blocks at least
        np.testing.assert_array_equal(in_blocks.values, whole.values)
        np.testing.assert_array_equal(in_blocks.standard_errors, whole.standard_errors)
        np.testing.assert_array_equal(in_blocks.degrees_of_freedom, whole.degrees_of_freedom)
        np.testing.assert_array_equal(in_blocks.evaluations, whole.evaluations)


@over([*OF_KINDS[:2], *(row for row in OF_CLASSES if row.estimator in SOLVE_ROWS_TOGETHER)])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_row_has_the_same_bits_with_and_without_other_rows(row, n_outputs):
    """Streams and workers split the rows of a call; the numbers may not depend on the split."""
    game = smooth_game(9, n_rows=7, n_outputs=n_outputs)
    budget = row.budget(9, 150)
    whole = row.estimate(game, budget)
    for rows in (slice(0, 1), slice(1, 3), slice(3, 7)):
        part = row.estimate(TableGame(game.values[rows]), budget)
        for name in ("values", "standard_errors", "degrees_of_freedom", "empty_values"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows])


@over(OF_KINDS[:2])
def test_players_set_aside_get_nothing_and_free_the_budget(row):
    rng = np.random.default_rng(0)
    active = np.zeros((4, 9), dtype=bool)
    for own, n_active in zip(active, [5, 9, 6, 5], strict=True):
        own[rng.permutation(9)[:n_active]] = True
    game = with_null_players(random_game(9, n_rows=4), active)
    result = row.estimate(game, budget=100)
    assert (result.values[~active] == 0).all()
    assert (result.standard_errors[~active] == 0).all()
    # 2^5 and 2^6 coalitions fit a budget of 100, 2^9 do not.
    is_full = active.sum(axis=1) < 9
    assert result.evaluations[is_full].tolist() == [32, 64, 32]
    exact = game_shapley_values(TableGame(game.values))
    np.testing.assert_allclose(result.values[is_full], exact[is_full], atol=1e-12)
    assert (result.standard_errors[is_full] == 0).all()
    assert (result.cooperators[is_full] == "").all()
    assert 50 < result.evaluations[1] <= 100
    assert np.abs(result.values - exact)[1].max() > 1e-3


@over(OF_KINDS[:2])
def test_rows_that_set_players_aside_are_estimated_like_the_smaller_game(row):
    active = np.array([True, False, True, True, True, False, True, True, True])
    smaller = random_game(7, n_outputs=2)
    places = np.arange(2**9)[:, None] >> np.flatnonzero(active) & 1
    values = smaller.values[:, places @ (1 << np.arange(7))]
    large = row.estimate(TableGame(values, active=active[None]), budget=90)
    small = row.estimate(smaller, budget=90)
    np.testing.assert_allclose(large.values[:, active], small.values, atol=1e-12)
    np.testing.assert_allclose(large.standard_errors[:, active], small.standard_errors, atol=1e-12)
    assert large.evaluations == small.evaluations


@pytest.mark.parametrize("n_active", [[0], [0, 4], [1], [1, 1], [1, 0, 4, 2]], ids=str)
@pytest.mark.parametrize("n_outputs", [1, 3])
@over(OF_KINDS[:2])
def test_rows_with_few_active_players_or_none(row, n_active, n_outputs):
    """A row that equals its reference, or differs in one feature, is nothing unusual."""
    active = np.arange(4) < np.array(n_active)[:, None]
    game = with_null_players(random_game(4, n_rows=len(active), n_outputs=n_outputs), active)
    result = row.estimate(game, budget=16)
    np.testing.assert_allclose(result.values, game_shapley_values(game), atol=1e-12)


def test_default_budget():
    """All coalitions of up to ten players, as shap's own default."""
    assert [core.default_budget(m) for m in (1, 8, 9, 10)] == [500, 500, 512, 1024]
    assert [core.default_budget(m) for m in (11, 31, 32, 100)] == [500, 500, 512, 1600]
    assert core.default_budget(40, with_tolerance=True) == 12_800
    game = random_game(11)  # more coalitions than the default
    core.estimate(game, core.RandomOrder(), core.Settings(seed=0))
    assert 480 <= len(set(game.asked)) <= 500
    assert ESTIMATORS[0].estimate(random_game(10)).evaluations == 1024


@pytest.mark.parametrize("n_players", [5, 70])
@over([row for row in OF_CLASSES if not row.is_exact])
def test_the_default_budget_suffices(row, n_players):
    game = FunctionGame(lambda z: np.tanh(z.sum(axis=1) / n_players), n_players)
    with_errors = row in HAS_ERRORS
    result = row.estimate(game, with_errors=with_errors)
    assert (result.evaluations <= max(2**5, core.default_budget(n_players), 70 * 71)).all()
    if with_errors:
        assert np.isfinite(result.standard_errors).all()


@pytest.mark.filterwarnings(FEW)
@over(ESTIMATORS)
@pytest.mark.parametrize("n_players", [7, 10])
def test_the_refusal_names_the_promised_budget_which_is_just_enough(row, n_players):
    game = random_game(n_players)
    least = needed(row, game)
    assert 2 < least == row.least(n_players) <= 2**n_players
    row.estimate(game, budget=least)
    with pytest.raises(BudgetError, match=f"budget={least - 1} is too small: the estimator"):
        row.estimate(game, budget=least - 1)


@pytest.mark.filterwarnings(FEW)
@over(HAS_ERRORS)
def test_the_refusal_names_a_budget_that_is_just_enough_for_errors(row):
    n_players = 8
    game = random_game(n_players)
    least = needed(row, game, with_errors=True)
    assert needed(row, game) <= least <= 2**n_players
    assert row.is_posterior or needed(row, game) < least
    with pytest.raises(BudgetError, match="to estimate standard errors"):
        row.estimate(game, budget=least - 1, with_errors=True)
    for seed in range(5):
        errors = row.estimate(game, budget=least, with_errors=True, seed=seed).standard_errors
        assert np.isfinite(errors).all()


@pytest.mark.filterwarnings(FEW)
@over([row for row in OF_CLASSES if row in HAS_ERRORS])
@pytest.mark.parametrize("n_players", [5, 8])
def test_errors_that_were_asked_for_are_never_missing(row, n_players):
    """Whatever budget is accepted, up to that of all coalitions."""
    game = random_game(n_players)
    least = min(needed(row, game, with_errors=True), 2**n_players)
    for budget in range(least, min(2**n_players + 1, least + 60), 3 if n_players < 8 else 8):
        result = row.estimate(game, budget=budget, with_errors=True, seed=budget)
        assert np.isfinite(result.standard_errors).all(), f"budget={budget}"


@pytest.mark.parametrize("n_players", [2, 3, 4])
def test_the_refusal_never_asks_for_more_than_enumeration_costs(n_players):
    """It would be wrong to say that 18 are needed where 16 give the exact answer."""
    game = random_game(n_players)
    asked = {row.id: needed(row, game) for row in ESTIMATORS}
    assert {name: least for name, least in asked.items() if least > 2**n_players} == {}


def test_the_refusal_speaks_the_hosts_words_and_says_what_exactness_costs():
    settings = core.Settings(seed=0, budget=3, name="random order", budget_name="max_evals")
    with pytest.raises(BudgetError) as raised:
        core.estimate(random_game(7), core.RandomOrder(), settings)
    assert str(raised.value) == (
        "max_evals=3 is too small: random order needs at least 4 evaluations for a row of "
        "7 players; 128 make it exact."
    )
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, ShapleyExtError)


def test_a_budget_too_small_for_any_row_is_refused_before_anything_is_evaluated():
    active = np.array([[True] * 7, [True] * 3 + [False] * 4])
    game = TableGame(random_game(7, n_rows=2).values, active=active)
    with pytest.raises(BudgetError, match="7 players"):
        core.estimate(game, core.Semivalue(), core.Settings(seed=0, budget=9))
    assert game.asked == []


def test_no_errors_where_nothing_is_random():
    """What is left of complement='none' is bias."""
    (row,) = (row for row in ESTIMATORS if row.options.get("complement") == "none")
    game = random_game(7)
    with pytest.raises(InvalidArgumentError, match="draws nothing at random"):
        row.estimate(game, budget=100, with_errors=True)
    assert np.isnan(row.estimate(game, budget=100).standard_errors).all()
    assert (row.estimate(game, budget=128, with_errors=True).standard_errors == 0).all()
    assert (row.estimate(game, with_errors=True).standard_errors == 0).all()  # by default


def test_the_result_tells_end_values_costs_and_seed():
    game = random_game(7, n_rows=3, n_outputs=2)
    result = core.estimate(game, core.RandomOrder(), core.Settings(seed=5, budget=60))
    np.testing.assert_array_equal(result.empty_values, game.values[:, 0])
    np.testing.assert_array_equal(result.grand_values, game.values[:, -1])
    assert result.values.shape == result.standard_errors.shape == (3, 7, 2)
    assert 3 < result.check_evaluations <= 0.05 * 3 * 60
    first, second = game.asked[6:8]  # after the ends of three rows: one coalition twice
    assert first == second
    counts = np.bincount([row for row, _ in asked_for_estimate(game, result)])
    assert result.evaluations.tolist() == counts.tolist()
    assert result.backward_passes.tolist() == [0, 0, 0]
    assert result.cooperators.tolist() == ["", "", ""]
    assert result.seed == 5


@over(OF_KINDS)
def test_a_progress_bar_ends_at_what_was_evaluated(row, capsys):
    """Designs may leave a few evaluations of the budget, as SHEAR's pairs do."""
    game = random_game(9, n_rows=2)
    found = row.estimate(game, budget=199, progress_delay=0.0, name="counted")
    spent = int(found.evaluations.sum())
    shown = capsys.readouterr().err
    assert "counted" in shown and f"{spent}/{spent} " in shown.rpartition("\r")[2]
    row.estimate(random_game(7), budget=60)
    assert capsys.readouterr().err == ""


def test_without_a_budget_a_row_gets_what_its_own_players_need():
    """Not what the longest row of the call needs: its result must not depend on the company."""

    def value(coalitions):
        return np.tanh(coalitions[:, :40] @ np.linspace(-1, 1, 40))

    row = next(row for row in RANDOM if row.id == "random order")
    active = np.arange(60) < np.array([[40], [60]])
    together = row.estimate(FunctionGame(value, 60, n_rows=2, active=active))
    alone = row.estimate(FunctionGame(value, 40))
    np.testing.assert_allclose(together.values[0, :40], alone.values[0], atol=1e-12)
    assert together.evaluations[0] == alone.evaluations[0] <= 640
    assert 900 < together.evaluations[1] <= 960


def test_estimates_print_in_one_line():
    game = random_game(7, n_rows=2, n_outputs=3)
    settings = core.Settings(seed=5, budget=40, with_errors=True)
    shown = repr(core.estimate(game, core.RandomOrder(), settings))
    error = core.estimate(game, core.RandomOrder(), settings).standard_errors.mean()
    assert shown == (
        "Estimate(RandomOrder: 2 rows, 7 players, 3 outputs; 38 evaluations per row; "
        f"mean standard error {error:.3g}; seed 5)"
    )
    active = np.array([[True] * 4, [True, True, False, False]])
    exact = core.estimate(
        with_null_players(random_game(4, n_rows=2), active), core.Exact(), core.Settings(seed=0)
    )
    assert repr(exact) == (
        "Estimate(Exact: 2 rows, 4 players, 1 output; 4 to 16 evaluations per row; "
        "mean standard error 0; seed 0)"
    )
    some = core.estimate(
        with_null_players(random_game(4, n_rows=2), active),
        core.RandomOrder(),
        core.Settings(seed=0, budget=9),
    )
    assert some.enumerated.tolist() == [False, True]
    assert repr(some).startswith("Estimate(RandomOrder, enumeration of 1 row: 2 rows, 4 players")
    unknown = dataclasses.replace(exact, standard_errors=exact.values * np.nan, method="")
    assert "method unknown" in repr(unknown)
    assert "standard errors unknown" in repr(unknown)


def test_a_progress_bar_states_the_remaining_time_by_the_mean_speed(monkeypatch):
    """Solving the equations of a block of rows takes a minute, in which nothing is evaluated."""
    bars = Mock(wraps=tqdm)
    monkeypatch.setattr(one_round, "tqdm", bars)
    settings = core.Settings(seed=0, budget=60, progress_delay=0.0)
    core.estimate(random_game(7), core.LeastSquares(), settings)
    assert bars.call_args.kwargs["smoothing"] == 0


@dataclasses.dataclass(frozen=True)
class WithGradients(core.RandomOrder):
    """An estimator of another package, with an option of the name of one of ours."""

    gradients: str = "auto"


def test_options_of_other_packages_have_any_name():
    game = smooth_game(8, n_rows=2)
    settings = core.Settings(seed=0, budget=60)
    found, expected = (
        core.estimate(game, of(), settings) for of in (WithGradients, core.RandomOrder)
    )
    assert (found.values == expected.values).all()
