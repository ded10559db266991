"""Whether `oddgp` says how much of its attributions is the prior, with one or two evaluations each.

    python benchmarks/small_budgets.py [--quick]

For games of 20, 50 and 100 players, and budgets of one and two evaluations per player: the error
that the share of the prior predicts, the actual one, and how often 95 % and 68 % intervals contain
the exact values. Errors are relative to the differences between the exact values of a game.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import shapley_adapters as core
from shapley_adapters.errors import ShapleyExtWarning

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Value = Callable[[BoolArray], FloatArray]
Maker = Callable[[int, np.random.Generator], tuple[Value, FloatArray | None]]
"""Number of players and random numbers to a game, and its Shapley values if there is a formula."""

_ORDERS = 30_000
"""Players in the orders that give the Shapley values of other games."""


def additive(n_players: int, rng: np.random.Generator) -> tuple[Value, FloatArray]:
    """Return the sum of normal weights."""
    weights = rng.normal(size=n_players)
    return (lambda z: z @ weights), weights


def sparse(n_players: int, rng: np.random.Generator) -> tuple[Value, FloatArray]:
    """Return the sum of four normal weights; the other players have no effect."""
    weights = np.where(rng.permutation(n_players) < 4, rng.normal(size=n_players), 0.0)
    return (lambda z: z @ weights), weights


def quadratic(n_players: int, rng: np.random.Generator) -> tuple[Value, FloatArray]:
    """Return weights and interactions of all pairs."""
    weights, pairs = rng.normal(size=n_players), rng.normal(size=(n_players, n_players))
    pairs = np.triu(pairs, 1) * 3 / np.sqrt(n_players)
    shapley_values = weights + (pairs + pairs.T).sum(axis=1) / 2
    return (lambda z: z @ weights + ((z @ pairs) * z).sum(axis=1)), shapley_values


def unanimity(n_players: int, rng: np.random.Generator) -> tuple[Value, FloatArray]:
    """Return thirty unanimity games of one to four players."""
    sets = [rng.choice(n_players, rng.integers(1, 5), replace=False) for _ in range(30)]
    weights, shapley_values = rng.normal(size=30), np.zeros(n_players)
    for members, weight in zip(sets, weights, strict=True):
        shapley_values[members] += weight / len(members)

    def value(z: BoolArray) -> FloatArray:
        present = np.stack([z[:, members].all(axis=1) for members in sets], axis=1)
        return np.asarray(present @ weights)

    return value, shapley_values


def largest(n_players: int, rng: np.random.Generator) -> tuple[Value, FloatArray]:
    """Return the largest of uniform numbers: an airport game."""
    numbers = np.sort(rng.uniform(size=n_players))
    steps = np.diff(numbers, prepend=0.0) / np.arange(n_players, 0, -1)
    return (lambda z: (z * numbers).max(axis=1)), np.cumsum(steps)


def network(n_players: int, rng: np.random.Generator) -> tuple[Value, None]:
    """Return a tanh network of 24 units."""
    inner = rng.normal(size=(n_players, 24)) * 3 / np.sqrt(n_players)
    inner *= rng.normal(size=(n_players, 1))
    offsets, outer = rng.normal(size=(2, 24))
    return (lambda z: np.tanh(z @ inner + offsets) @ outer), None


def trees(n_players: int, rng: np.random.Generator) -> tuple[Value, None]:
    """Return forty trees of depth four; some players are split at more often."""
    row, reference = rng.normal(size=(2, n_players))
    chances = 1 / np.arange(1, n_players + 1)
    players = [
        rng.choice(n_players, 4, p=chances / chances.sum(), replace=False) for _ in range(40)
    ]
    cuts, leaves = rng.normal(size=(40, 4)), rng.normal(size=(40, 16))

    def value(z: BoolArray) -> FloatArray:
        total = np.zeros(len(z))
        for members, cut, leaf in zip(players, cuts, leaves, strict=True):
            above = np.where(z[:, members], row[members], reference[members]) > cut
            total += leaf[above @ (1 << np.arange(4))]
        return total

    return value, None


def vote(n_players: int, rng: np.random.Generator) -> tuple[Value, None]:
    """Return a vote of random shares that needs more than half of all."""
    shares = rng.integers(1, 10, size=n_players)
    return (lambda z: (z @ shares > shares.sum() / 2).astype(float)), None


GAMES: dict[str, Maker] = {
    "additive": additive,
    "additive, four players": sparse,
    "quadratic": quadratic,
    "tanh network": network,
    "trees": trees,
    "unanimity, 30 of 1 to 4": unanimity,
    "largest (airport)": largest,
    "vote": vote,
}


@dataclass
class Games:
    """Games of the same players, as the core takes them."""

    functions: list[Value]
    n_players: int
    evaluations_per_batch: int = 4096

    @property
    def n_rows(self) -> int:
        """The number of games."""
        return len(self.functions)

    def active_players(self) -> BoolArray:
        """Return that all players are active."""
        return np.ones((self.n_rows, self.n_players), dtype=bool)

    def __call__(self, rows: npt.NDArray[np.intp], coalitions: BoolArray) -> FloatArray:
        """Return the values, (P, 1), of coalitions, each of its game."""
        values = np.empty((len(rows), 1))
        for row in np.unique(rows):
            values[rows == row, 0] = self.functions[row](coalitions[rows == row])
        return values


def by_orders(value: Value, n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return Shapley values from random orders and their reverses."""
    total, n_orders = np.zeros(n_players), _ORDERS // n_players
    steps = np.tril(np.ones((n_players + 1, n_players), dtype=bool), -1)
    for _ in range(n_orders):
        order = rng.permutation(n_players)
        for ordered in (order, order[::-1]):
            total[ordered] += np.diff(value(steps[:, np.argsort(ordered)]))
    return total / (2 * n_orders)


def measured(maker: Maker, n_players: int, n_games: int, n_seeds: int, per_player: int) -> str:
    """Return a row of the table."""
    rng = np.random.default_rng(0)
    made = [maker(n_players, rng) for _ in range(n_games)]
    exact = np.stack(
        [by_orders(value, n_players, rng) if phi is None else phi for value, phi in made]
    )
    games = Games([value for value, _ in made], n_players)
    spread = ((exact - exact.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    numbers = []
    for seed in range(n_seeds):
        settings = core.Settings(seed=seed, budget=per_player * n_players)
        estimate = core.estimate(games, core.OddGP(), settings)
        error = (((estimate.values[..., 0] - exact) ** 2).sum(axis=1) / spread).mean()
        inside = []
        for confidence in (0.95, 0.68):
            lower, upper = (end[..., 0] for end in estimate.interval(confidence))
            inside.append(((lower <= exact + 1e-9) & (exact <= upper + 1e-9)).mean())
        numbers.append([estimate.prior_shares.mean(), error, *inside])
    share, error, wide, narrow = np.mean(numbers, axis=0)
    return f"{share:.2f} | {share**0.5:.2f} | {error**0.5:.2f} | {wide:.0%} | {narrow:.0%} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few games, to see that it runs")
    is_quick = parser.parse_args().quick
    warnings.filterwarnings("ignore", ".* is little for", ShapleyExtWarning)
    n_games, n_seeds = (2, 1) if is_quick else (8, 3)
    print("| game | players | per player | prior's share | predicted error | error | 95 % | 68 % |")
    print("|---|---|---|---|---|---|---|---|")
    for name, maker in GAMES.items():
        for n_players in (20,) if is_quick else (20, 50, 100):
            for per_player in (1, 2):
                row = measured(maker, n_players, n_games, n_seeds, per_player)
                print(f"| {name} | {n_players} | {per_player} | {row}", flush=True)


if __name__ == "__main__":
    main()
