"""Whether the mean of `oddgp` with `unbiased=True` over many seeds is the exact value.

    python benchmarks/unbiased_means.py [--players 7] [--per-player 8] [--seeds 2000]
        [--weights learned equal] [--kinds vote "tanh network"]

For one game of each kind, Hotelling's T² of the mean error over seeds: n times the squared mean
errors, relative to their covariance over the seeds, with one dimension less than players because
errors sum to 0. Without bias, T² has an F distribution, which gives the p-values. They are
corrected by Holm's method for the number of games. Games whose errors are rounding are left out.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.stats
from coalition_games import FloatArray, TabulatedGame
from zoo_cells import core_game
from zoo_games import GAMES, tabulated

import shapley_adapters as core

_ROUNDING = 1e-8
"""Errors below this, relative to the values, are rounding."""

_LEVEL = 0.05
"""Chance that unbiased estimates of all games together are called biased."""


def main() -> None:
    """Print T², p-values and a verdict for each game."""
    arguments = _arguments()
    table = np.concatenate([tabulated(kind, arguments.players, 1) for kind in arguments.kinds])
    exact = TabulatedGame(table, arguments.players).shapley_values()
    for weights in arguments.weights:
        off = _errors(table, exact, arguments, weights)
        print(
            f"\n{weights} weights, {arguments.players} players, {arguments.per_player} evaluations "
            f"a player, {arguments.seeds} seeds\n"
        )
        _print_tests(arguments.kinds, off, exact)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--players", type=int, default=7)
    parser.add_argument("--per-player", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--weights", nargs="+", default=["learned", "equal"])
    parser.add_argument("--kinds", nargs="+", choices=list(GAMES), default=list(GAMES))
    return parser.parse_args()


def _errors(
    table: FloatArray, exact: FloatArray, arguments: argparse.Namespace, weights: str
) -> FloatArray:
    """Return the errors of all seeds, (S, R, M)."""
    game, n_players = core_game(table, arguments.players), arguments.players
    budget = arguments.per_player * n_players
    errors = np.empty((arguments.seeds, *exact.shape))
    for seed in range(arguments.seeds):
        settings = core.Settings(seed=seed, budget=budget)
        found = core.estimate(game, core.OddGP(weights, unbiased=True), settings)
        errors[seed] = found.values[:, :, 0] - exact
    return errors


def _print_tests(kinds: list[str], off: FloatArray, exact: FloatArray) -> None:
    """Print a row for each game, the least p-value first, and the verdict."""
    sizes = np.abs(off).mean(axis=(0, 2)) / np.abs(exact).mean(axis=1)
    tested = np.flatnonzero(sizes > _ROUNDING)
    tests = {kinds[game]: (*_hotelling(off[:, game]), sizes[game]) for game in tested.tolist()}
    ordered = sorted(tests.items(), key=lambda item: item[1][1])
    print("| game | T² | p | p by Holm | error over mean value | mean error over mean value |")
    print("|---|---|---|---|---|---|")
    least = 0.0
    for index, (kind, (statistic, chance, size)) in enumerate(ordered):
        least = max(least, min(1.0, (len(ordered) - index) * chance))
        game = kinds.index(kind)
        bias = np.abs(off[:, game].mean(axis=0)).mean() / np.abs(exact[game]).mean()
        print(
            f"| {kind} | {statistic:.1f} | {chance:.3f} | {least:.2f} | {size:.4f} | {bias:.4f} |"
        )
    chances = [chance for _, (_, chance, _) in ordered]
    is_biased = len(chances) * min(chances) < _LEVEL
    uniform = scipy.stats.kstest(chances, "uniform").pvalue
    verdict = "biased" if is_biased else "no bias found"
    print(f"\n{verdict}; the p-values are uniform: p = {uniform:.2f}")


def _hotelling(off: FloatArray) -> tuple[float, float]:
    """Return T² of the mean of errors, (S, M), and its p-value; errors sum to 0."""
    n_seeds, kept = len(off), off[:, :-1]
    scales = np.maximum(kept.std(axis=0), np.finfo(float).tiny)
    scaled = kept / scales
    covariance = np.cov(scaled.T)
    mean = scaled.mean(axis=0)
    values, vectors = np.linalg.eigh(covariance)
    is_random = values > 1e-10 * values.max()
    along = mean @ vectors[:, is_random]
    statistic = float(n_seeds * (along**2 / values[is_random]).sum())
    n_free = int(is_random.sum())
    ratio = statistic * (n_seeds - n_free) / (n_free * (n_seeds - 1))
    return statistic, float(scipy.stats.f.sf(ratio, n_free, n_seeds - n_free))


if __name__ == "__main__":
    main()
