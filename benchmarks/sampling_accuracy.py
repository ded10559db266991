"""How accurate SVARM and Owen sampling are, beside random orders and least squares.

    python benchmarks/sampling_accuracy.py

Two cheap games of 12 players, with exact Shapley values by enumeration: random networks of one
hidden layer, and sums of products of three players.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from coalition_games import BoolArray, FloatArray, IntArray
from core_games import CoreGame

import shapley_adapters as core
from shapley_adapters.errors import BudgetError

N_PLAYERS, N_ROWS = 12, 20
PER_PLAYER = (4, 8, 16, 32, 64)
ESTIMATORS: dict[str, Any] = {
    "random order": core.RandomOrder(),
    "least squares": core.LeastSquares(),
    "SVARM": core.SVARM(),
    "SVARM, as published": core.SVARM(paired=False, centred=False, efficient=False),
    "Owen": core.Owen(),
    "Owen, not antithetic": core.Owen(antithetic=False),
}


def networks() -> Callable[[IntArray, BoolArray], FloatArray]:
    """Return the values of networks with random weights, one for each row."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(N_ROWS, N_PLAYERS, 16)) * 2 / np.sqrt(N_PLAYERS)
    biases, last = rng.normal(size=(N_ROWS, 16)), rng.normal(size=(N_ROWS, 16))

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        sums = np.einsum("pm,pmh->ph", coalitions.astype(float), hidden[rows])
        values: FloatArray = (np.tanh(sums + biases[rows]) * last[rows]).sum(axis=1)
        return values

    return values_of


def products() -> Callable[[IntArray, BoolArray], FloatArray]:
    """Return the values of sums of 20 products of three players, one sum for each row."""
    rng = np.random.default_rng(1)
    triples = rng.permuted(np.tile(np.arange(N_PLAYERS), (N_ROWS, 20, 1)), axis=2)[..., :3]
    weights = rng.normal(size=(N_ROWS, 20))

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        has_all = coalitions[np.arange(len(rows))[:, None, None], triples[rows]].all(axis=2)
        values: FloatArray = (has_all * weights[rows]).sum(axis=1)
        return values

    return values_of


def mean_error(game: CoreGame, estimator: Any, budget: int, n_seeds: int) -> float:
    """Return the mean absolute error over rows, players and seeds; NaN for too small a budget."""
    exact = core.estimate(game, core.Exact(), core.Settings(seed=0)).values
    try:
        estimates = [
            core.estimate(game, estimator, core.Settings(seed=seed, budget=budget)).values
            for seed in range(n_seeds)
        ]
    except BudgetError:
        return np.nan
    return float(np.mean([np.abs(values - exact).mean() for values in estimates]))


def main() -> None:
    """Print the errors of each game, and how they compare with those of random orders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    n_seeds = parser.parse_args().seeds
    for title, values_of in (("networks", networks()), ("products of three", products())):
        game = CoreGame(values_of, N_PLAYERS, N_ROWS)
        print(f"\n{title}: mean absolute error, in brackets over that of random orders")
        print(f"{'':22}" + "".join(f"{f'N={n}':>17}" for n in PER_PLAYER))
        budgets = [n * N_PLAYERS + 2 for n in PER_PLAYER]
        reference = [mean_error(game, core.RandomOrder(), b, n_seeds) for b in budgets]
        for name, estimator in ESTIMATORS.items():
            errors = [mean_error(game, estimator, budget, n_seeds) for budget in budgets]
            pairs = zip(errors, reference, strict=True)
            print(f"{name:22}" + "".join(f"{e:10.4f} ({e / r:4.2f})" for e, r in pairs))


if __name__ == "__main__":
    main()
