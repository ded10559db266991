"""Batch sizes found by timing: near the best, bounded, and never instead of the user's."""

from typing import Any

import numpy as np
import pytest

import shapley_adapters as core
from shapley_adapters.games.batch_sizes import BatchBounds, TimedBatchSize
from shapley_adapters.games.evaluation import in_batches_of
from tests.helpers.clock import Clock
from tests.helpers.reference_games import TableGame, random_game

BOUNDS = BatchBounds(64, 4096)
COSTS = {
    "each call costs much": lambda n: 5e-3 + 2e-5 * n,
    "each call costs little": lambda n: 1e-4 + 2e-6 * n,
    "only evaluations cost": lambda n: 1e-3 * n,
    "small batches fit the cache": lambda n: 2e-3 + 1e-3 * n * (1 if n <= 64 else 2),
    "tiny batches fit the cache": lambda n: 1e-4 + 1e-3 * n * (1 if n <= 16 else 2),
    "large batches fit the cache": lambda n: 1e-3 + 1e-4 * n * (1 if n <= 1024 else 2),
}


def seconds_of(clock, cost, total, size_at):
    started = clock.now

    def call(start, stop):
        clock.now += cost(stop - start)

    in_batches_of(total, size_at, call)
    return clock.now - started


def best_seconds(cost, total):
    sizes = [2**k for k in range(13)]
    return min(
        (total // size) * cost(size) + (total % size and cost(total % size)) for size in sizes
    )


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
@pytest.mark.parametrize("total", [4_000, 40_000])
def test_the_size_found_is_nearly_as_fast_as_the_best(cost, total, monkeypatch):
    size = TimedBatchSize(BOUNDS)
    size.note(2, cost(2))  # the end points
    spent = seconds_of(Clock(monkeypatch), cost, total, lambda _: size)
    assert spent <= (1.15 if total > 10_000 else 1.4) * best_seconds(cost, total)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
def test_other_programs_do_not_lead_to_bad_sizes(cost, monkeypatch):
    ratios = []
    for seed in range(20):
        rng, size = np.random.default_rng(seed), TimedBatchSize(BOUNDS)
        size.note(2, 1.0)

        def noisy(n, rng=rng):
            return cost(n) * (1 + 2 * rng.random() * (rng.random() < 0.3))

        spent = seconds_of(Clock(monkeypatch), noisy, 40_000, lambda _, size=size: size)
        ratios.append(spent / (1.3 * best_seconds(cost, 40_000)))  # what noise adds on average
    assert np.mean(ratios) < 1.3
    assert np.max(ratios) < 2.1


@pytest.mark.parametrize("total", [400, 700, 1_500, 4_000])
def test_other_sizes_are_tried_only_where_enough_is_left(total, monkeypatch):
    """Twice the size costs as much for each evaluation, so that no trial saves anything."""
    clock, size, n_left_at_trials = Clock(monkeypatch), TimedBatchSize(BOUNDS), []

    def call(start, stop):
        if stop - start == 128:
            n_left_at_trials.append(total - start)
        clock.now += 1e-3 * (stop - start)

    in_batches_of(total, lambda _: size, call)
    assert size.best == 64
    assert min(n_left_at_trials, default=640) > 4 * 128
    assert bool(n_left_at_trials) == (total > 700)


@pytest.mark.parametrize(("slow", "best"), [(1.2, 128), (9.0, 64)])
def test_a_size_that_was_a_little_slower_once_is_timed_again(slow, best, monkeypatch):
    """The first call of twice the size is slower by chance; later ones are faster than others."""
    clock, size, shares = Clock(monkeypatch), TimedBatchSize(BOUNDS), {128: iter([slow])}

    def call(start, stop):
        usual = {64: 1.0, 128: 0.7}.get(stop - start, 1.5)
        clock.now += 1e-3 * (stop - start) * next(shares.get(stop - start, iter([])), usual)

    in_batches_of(2_000, lambda _: size, call)
    assert size.best == best


@pytest.mark.parametrize("factor", [1.12, 1.18, 1.24])
def test_a_slower_size_takes_little_of_a_short_call(factor, monkeypatch):
    """As convolutions over texts: 512 evaluations are slower than 256, and 2,000 are all."""
    shares = {4: 2.0, 64: 1.10, 128: 1.045, 256: 1.0}
    size, sizes = TimedBatchSize(BOUNDS), []
    clock = Clock(monkeypatch)

    def call(start, stop):
        sizes.append(stop - start)
        clock.now += 1e-4 * (stop - start) * shares.get(stop - start, factor)

    in_batches_of(2_000, lambda _: size, call)
    assert sum(one for one in sizes[:-1] if one > 256) <= 512
    assert clock.now <= 1.09 * 1e-4 * 2_000


class TimedGame(TableGame):
    """A game whose memory holds `most` evaluations, each call of which takes a second."""

    batch_bounds = BatchBounds(4, 64)
    clock: Any = None
    most, n_refused = 1000, 0

    def __call__(self, rows, coalitions):
        if self.clock is not None:
            self.clock.now += 1.0
        if len(rows) > self.most:
            self.n_refused += 1
            raise MemoryError
        return super().__call__(rows, coalitions)


def test_batches_grow_within_a_call_and_change_no_value():
    values = random_game(9, n_rows=6).values
    fixed, timed = (kind(values, evaluations_per_batch=1000) for kind in (TableGame, TimedGame))
    settings = core.Settings(seed=0, budget=200)
    expected = core.estimate(fixed, core.least_squares(True, "kernel", True, False), settings)
    found = core.estimate(timed, core.least_squares(True, "kernel", True, False), settings)
    np.testing.assert_array_equal(found.values, expected.values)
    in_batches = [size for size in timed.batch_sizes if size > 1]  # others look for random answers
    assert 4 <= min(in_batches) < max(timed.batch_sizes) <= 64


def test_rows_of_another_length_begin_with_the_size_of_those_before(monkeypatch):
    monkeypatch.setattr(TimedGame, "clock", Clock(monkeypatch))
    active = np.ones((2, 9), dtype=bool)
    active[1, :1] = False
    values = random_game(9, n_rows=2).values
    game = TimedGame(values, active=active, evaluations_per_batch=1000)
    settings = core.Settings(seed=0, budget=200)
    core.estimate(game, core.least_squares(True, "kernel", True, False), settings)
    in_batches = [size for size in game.batch_sizes if size > 1]  # others look for random answers
    assert in_batches[1:4] == [4, 8, 16]
    assert in_batches[4:].count(4) <= 1  # the other row does not begin with 4 again


@pytest.mark.parametrize("with_tolerance", [False, True])
def test_timed_batches_that_do_not_fit_into_memory_are_halved_once(with_tolerance, monkeypatch):
    """Later rounds, and rows of other lengths, begin with a size that fits."""
    monkeypatch.setattr(TimedGame, "clock", Clock(monkeypatch))
    monkeypatch.setattr(TimedGame, "most", 20)  # a large batch takes no longer
    active = np.ones((6, 9), dtype=bool)
    active[3:, 0] = False
    values = random_game(9, n_rows=6).values

    cramped = TimedGame(values, active=active, evaluations_per_batch=1000)
    free = TableGame(values, active=active, evaluations_per_batch=1000)
    tolerance = core.Tolerance(0.15) if with_tolerance else None
    settings = core.Settings(seed=0, budget=200, tolerance=tolerance)
    estimator = core.least_squares(True, "kernel", True, False)
    expected = core.estimate(free, estimator, settings)
    found = core.estimate(cramped, estimator, settings)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.standard_errors, expected.standard_errors)
    np.testing.assert_array_equal(found.evaluations, expected.evaluations)
    assert 10 <= max(cramped.batch_sizes) <= 20
    assert 1 <= cramped.n_refused <= 3
