"""Random draws of each row's own, on which other rows have no influence."""

from datetime import datetime

import numpy as np
import pandas as pd
import pytest

import shapley_adapters as core
from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.games.fingerprints import fingerprint
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.estimator_table import ESTIMATORS, OF_CLASSES, OF_KINDS, over
from tests.helpers.reference_games import TableGame, smooth_game

N_PLAYERS, BUDGET = 8, 100
DRAWN = [row for row in ESTIMATORS if not row.is_exact and row.options.get("complement") != "none"]


class RowsOfGame(TableGame):
    """Games with a name each, which makes their draws."""

    def __init__(self, values, names, **options):
        super().__init__(values, **options)
        self.names = names

    def row_fingerprints(self):
        return [fingerprint(name) for name in self.names]


def rows_of_one_game(names, n_outputs=1, **options):
    """Return the same game for each name, so that rows differ in nothing but their draws."""
    values = smooth_game(N_PLAYERS, n_outputs=n_outputs).values
    return RowsOfGame(np.repeat(values, len(names), axis=0), names, **options)


@over(OF_KINDS)
def test_other_rows_their_order_and_the_batch_do_not_matter(row):
    names = ["a", "b", "c", "d", "a"]
    together = row.estimate(rows_of_one_game(names), BUDGET, independent_rows=True)
    np.testing.assert_array_equal(together.values[0], together.values[4])
    # Odd pairs of 8 players are one of a few hundred sets: those of "a" and "b" are the same.
    assert not np.allclose(together.values[0], together.values[2])
    turned = row.estimate(
        rows_of_one_game(["d", "c", "a", "b"]), BUDGET, independent_rows=True, batch_size=7
    )
    alone = row.estimate(rows_of_one_game(["c"]), BUDGET, independent_rows=True)
    for name in ("values", "standard_errors"):
        wanted = getattr(together, name)
        order = [3, 2, 0, 1]
        np.testing.assert_allclose(getattr(turned, name), wanted[order], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(getattr(alone, name)[0], wanted[2], rtol=1e-9, atol=1e-9)
    assert (together.evaluations <= BUDGET).all()


def test_estimators_say_whether_they_are_unbiased():
    promised = {row.id: row.is_unbiased for row in DRAWN}
    assert {row.id: row.build().is_unbiased for row in DRAWN} == promised


@over([row for row in OF_CLASSES[1:] if row.is_unbiased])
@pytest.mark.slow
def test_unbiased_over_rows(row):
    names = [f"row {number}" for number in range(row.n_seeds(600))]
    game = rows_of_one_game(names)
    found = row.estimate(game, BUDGET, independent_rows=True).values[:, :, 0]
    exact = game_shapley_values(smooth_game(N_PLAYERS))[0, :, 0]
    errors = found.std(axis=0, ddof=1) / np.sqrt(len(names))
    assert (np.abs(found.mean(axis=0) - exact) < 4.5 * errors + 1e-9).all()


@over(OF_KINDS)
def test_batches_stay_full(row):
    names = [f"row {number}" for number in range(10)]
    game = rows_of_one_game(names, evaluations_per_batch=64)
    row.estimate(game, BUDGET, independent_rows=True)
    sampled = [size for size in game.batch_sizes if size > 2 * len(names)]
    assert sum(size == 64 for size in sampled) >= len(sampled) - 2


def test_a_tolerance_stops_each_row_by_its_own_draws():
    game = rows_of_one_game(["a", "b", "c"])
    settings = core.Settings(
        seed=0, budget=200, independent_rows=True, tolerance=core.Tolerance(0.3)
    )
    together = core.estimate(game, core.RandomOrder(), settings)
    alone = core.estimate(rows_of_one_game(["b"]), core.RandomOrder(), settings)
    np.testing.assert_array_equal(together.values[1], alone.values[0])
    assert together.evaluations[1] == alone.evaluations[0]


def test_a_game_without_fingerprints_is_refused():
    with pytest.raises(InvalidArgumentTypeError, match="row_fingerprints"):
        core.estimate(smooth_game(8), core.OddGP(), core.Settings(seed=0, independent_rows=True))


# --- fingerprints ---


def test_numbers_count_by_their_values():
    row = np.array([1, 0, -3])
    wanted = fingerprint(row)
    for same in (row.astype(np.float32), row.astype(">f8"), row.astype(np.int8), -(-1.0 * row)):
        assert fingerprint(same) == wanted
    assert fingerprint(np.array([np.nan])) == fingerprint(-np.array([np.nan]))
    assert fingerprint(np.asfortranarray(np.eye(3) + 1)) == fingerprint(np.eye(3) + 1)


def test_different_contents_have_different_fingerprints():
    contents = [
        *((np.array([1.0, 2.0]),), (np.array([[1.0, 2.0]]),), (np.array([2.0, 1.0]),), (1.0, 2.0)),
        *(("ab", "c"), ("a", "bc"), (["a", "bc"],), (b"abc",), ("abc",), (None,), ("",), ()),
        *((np.array(["x", None], dtype=object),), (np.array(["x", "None"], dtype=object),)),
        *((pd.Timestamp("2020-01-01"),), (datetime(2021, 1, 1),), ({"a": 1},), ({"b": 1},)),
        *((np.array(["2020-01-01"], dtype="M8[D]"),), (np.array([1 + 2j]),), (np.array([2 + 1j]),)),
    ]
    assert len({fingerprint(*one) for one in contents}) == len(contents)


def test_fingerprints_are_the_same_in_every_process():
    assert fingerprint(np.arange(3.0), "text", None).hex() == "40fb3da9cf8a2aa6cde90a8c6ca3736c"


def test_what_has_no_stable_content_is_refused():
    with pytest.raises(InvalidArgumentTypeError, match="independent_rows.*object"):
        fingerprint(object())
