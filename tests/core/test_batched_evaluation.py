"""Full batches, each pair once, memory that runs out, values that are checked."""

import numpy as np
import pytest

from shapley_adapters.coalitions.tables import CoalitionTable, all_coalitions
from shapley_adapters.errors import ModelOutputError, NonFiniteValueError
from shapley_adapters.games.evaluation import Evaluator, Request
from tests.helpers.reference_games import FunctionGame, TableGame, random_game


class CrampedGame(TableGame):
    """A game that has memory for a few evaluations at a time only."""

    def __init__(self, limit, error, values):
        super().__init__(values)
        self.limit, self.error = limit, error
        self.n_refused = 0

    def __call__(self, rows, coalitions):
        if len(rows) > self.limit:
            self.n_refused += 1
            raise self.error
        return super().__call__(rows, coalitions)


def shared_request(rows, n_players):
    """Ask for all coalitions in each of `rows`."""
    table = CoalitionTable(all_coalitions(n_players)[None], np.array([2**n_players]))
    return Request(np.asarray(rows), table)


def ragged_request(rows, n_players, counts, seed=0):
    """Ask for `counts` random coalitions, others in each row."""
    rng = np.random.default_rng(seed)
    coalitions = rng.random((len(rows), max(counts), n_players)) < 0.5
    return Request(np.asarray(rows), CoalitionTable(coalitions, np.asarray(counts)))


def looked_up(game, row, coalitions):
    return game.values[row, coalitions @ (1 << np.arange(game.n_players))]


def test_values_stand_where_their_row_and_coalition_stand():
    game = random_game(4, n_rows=5, n_outputs=2)
    shared, ragged = shared_request([3, 1], 4), ragged_request([0, 4, 2], 4, [5, 0, 7])
    of_shared, of_ragged = Evaluator(game, batch_size=6)([shared, ragged])
    np.testing.assert_array_equal(of_shared, game.values[[3, 1]])
    assert of_ragged.shape == (3, 7, 2)
    for place, (row, count) in enumerate(zip([0, 4, 2], [5, 0, 7], strict=True)):
        coalitions = ragged.table.coalitions[place, :count]
        np.testing.assert_array_equal(of_ragged[place, :count], looked_up(game, row, coalitions))


def test_players_that_take_part_are_put_in_their_places():
    game = random_game(5, n_rows=2)
    players = np.array([[0, 2, 3], [1, 2, 4]])
    table = CoalitionTable(all_coalitions(3)[None], np.array([8]))
    (values,) = Evaluator(game)([Request(np.array([1, 0]), table, players, 5)])
    for place, row in enumerate([1, 0]):
        wide = np.zeros((8, 5), dtype=bool)
        wide[:, players[place]] = all_coalitions(3)
        np.testing.assert_array_equal(values[place], looked_up(game, row, wide))


def test_batches_are_full_across_requests_and_each_pair_is_asked_once():
    game = random_game(4, n_rows=5)
    counts = [3, 0, 8]
    requests = [shared_request([0, 3], 4), ragged_request([1, 2, 4], 4, counts)]
    told = []
    Evaluator(game, batch_size=10, on_progress=told.append)(requests)
    assert game.batch_sizes == [10, 10, 10, 10, 3]  # 2 · 16 + 11
    assert told == game.batch_sizes
    wanted = [(row, place) for row in (0, 3) for place in range(16)]
    for row, count, table in zip([1, 2, 4], counts, requests[1].table.coalitions, strict=True):
        wanted += [(row, place) for place in (table[:count] @ (1 << np.arange(4))).tolist()]
    assert sorted(game.asked) == sorted(wanted)


def test_the_game_says_how_large_a_batch_is_unless_the_user_does():
    game = random_game(3, evaluations_per_batch=3)
    Evaluator(game)([shared_request([0], 3)])
    assert game.batch_sizes == [3, 3, 2]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't allocate memory"
        ),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ],
)
def test_a_batch_too_large_for_memory_is_halved_and_stays_halved(error):
    values = random_game(5, n_rows=3).values
    game = CrampedGame(7, error, values)
    (found,) = Evaluator(game, batch_size=50)([shared_request([0, 1, 2], 5)])
    np.testing.assert_array_equal(found, values)
    assert game.n_refused == 3  # 50, 25, 12
    assert game.batch_sizes == [6] * 16  # none of the 96 evaluated twice


def test_memory_too_small_for_a_single_evaluation_is_the_users_to_know():
    game = CrampedGame(0, MemoryError("really"), random_game(3).values)
    with pytest.raises(MemoryError, match="really"):
        Evaluator(game, batch_size=4)([shared_request([0], 3)])


@pytest.mark.parametrize("error", [RuntimeError("shapes do not match"), ValueError("no")])
def test_other_errors_pass_through_at_once(error):
    game = CrampedGame(0, error, random_game(3).values)
    with pytest.raises(type(error), match=str(error)):
        Evaluator(game, batch_size=4)([shared_request([0], 3)])
    assert game.n_refused == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_named(bad):
    game = random_game(3, n_rows=4, n_outputs=3)
    game.values[2, 0b101, 1] = bad
    with pytest.raises(NonFiniteValueError, match=r"row 2, output 1.*players \[0, 2\]") as raised:
        Evaluator(game, batch_size=7)([shared_request(range(4), 3)])
    assert str(bad) in str(raised.value)
    assert isinstance(raised.value, ArithmeticError)


def test_models_that_return_another_number_of_values_are_refused():
    class Reducing(TableGame):
        def __call__(self, rows, coalitions):
            return super().__call__(rows, coalitions)[:1]

    with pytest.raises(ModelOutputError, match="returned 1 for 8 evaluations"):
        Evaluator(Reducing(random_game(3).values))([shared_request([0], 3)])


@pytest.mark.parametrize("n_outputs", [[0], [1, 2], [2, 2, 1]])
def test_numbers_of_outputs_are_checked_across_calls(n_outputs):
    left = iter(n_outputs)
    game = FunctionGame(lambda coalitions: np.zeros((len(coalitions), next(left))), 3)
    evaluator = Evaluator(game, batch_size=8)
    message = "no number" if n_outputs == [0] else r"\(\d,\) first and \(\d,\) later"
    for _ in n_outputs[:-1]:
        evaluator([shared_request([0], 3)])
    with pytest.raises(ModelOutputError, match=message):
        evaluator([shared_request([0], 3)])
