"""How often 95 % intervals hold the true attributions of models that answer at random.

    python benchmarks/random_models.py [--quick] [--games 30]

Games of 5, 8 and 12 players with main effects, products of two and three players. Noise is added
to each answer: of equal size, or growing with the players that are present; its standard deviation
is .001 to 10 times that of the game's values. Or it is in 5 % of the answers. And answers that are
0 or 1, with a chance. Each cell
is over 30 games. Players of a game have errors in common, so that the standard error of a cell is
that of the means of its games. A cell loses if it is outside .92 to .98 by more than two of these;
such cells come first. Needs no data.

A further table: what looking for noise costs a model that is deterministic, whose values it must
not change.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import shap
from coalition_games import FloatArray, TabulatedGame
from zoo_models import all_coalitions

import shap_ext  # noqa: F401 # it registers our algorithms

Value = Callable[[FloatArray], FloatArray]

LEVELS = (0.001, 0.01, 0.1, 1.0, 10.0)
ALGORITHMS = ("oddgp", "leastsquares", "randomorder", "shear")
BUDGETS = ((5, 200), (8, 200), (12, 110), (12, 200), (12, 1000))
N_GAMES = 30
LEAST, MOST = 0.92, 0.98


@dataclass(frozen=True)
class Cell:
    """How often intervals hold in a cell, its standard error, and the mean relative error."""

    held: float
    standard_error: float
    error: float
    labels: tuple[Any, ...]

    @property
    def beyond(self) -> float:
        """How many standard errors it is outside the limits; negative within them."""
        outside = max(LEAST - self.held, self.held - MOST)
        return outside / max(self.standard_error, 1e-3)


def drawn_game(n_players: int, seed: int) -> Value:
    """Return a game of coalitions, (n, M)."""
    rng = np.random.default_rng(seed)
    main, pairs = rng.normal(size=n_players), 0.3 * rng.normal(size=(n_players, n_players))
    triples, weights = rng.integers(n_players, size=(6, 3)), 0.5 * rng.normal(size=6)

    def value(x: FloatArray) -> FloatArray:
        found: FloatArray = x @ main + ((x @ pairs) * x).sum(axis=1) / 2
        for weight, (i, j, k) in zip(weights, triples, strict=True):
            found = found + weight * x[:, i] * x[:, j] * x[:, k]
        return found

    return value


def enumerated(value: Value, n_players: int) -> tuple[FloatArray, float]:
    """Return the exact attributions, and the standard deviation of all values."""
    values = value(all_coalitions(n_players).astype(float))
    return TabulatedGame(values[None], n_players).shapley_values()[0], float(values.std())


def random_model(value: Value, sd: float, kind: str, level: float, seed: int) -> Value:
    """Return a model that answers at random, with these values as means."""
    rng = np.random.default_rng(seed)

    def answer(x: FloatArray) -> FloatArray:
        if kind == "labels":
            return (rng.random(len(x)) < value(x)).astype(float)
        scale = 1.0 if kind != "growing" else 0.1 + x[:, 0] + x.mean(axis=1) ** 2
        if kind == "rare":
            scale = (rng.random(len(x)) < 0.05).astype(float)
        noise: FloatArray = level * sd * scale * rng.normal(size=len(x))
        return value(x) + noise

    return answer


def cell(
    algorithm: str,
    n_players: int,
    budget: int,
    kind: str,
    level: float,
    repeats: int,
    n_games: int = N_GAMES,
) -> Cell:
    """Return how often intervals hold, and the mean error relative to the attributions."""
    inside, errors = [], []
    for seed in range(n_games):
        value = drawn_game(n_players, seed)
        exact, sd = enumerated(value, n_players)
        if kind == "labels":
            plain, spread = value, sd

            def value(x: FloatArray, plain: Value = plain, sd: float = spread) -> FloatArray:
                chances: FloatArray = 1 / (1 + np.exp(-plain(x) / sd))
                return chances

            exact, sd = enumerated(value, n_players)
        model = random_model(value, sd, kind, level, 1000 + seed)
        background = np.zeros((1, n_players))
        explainer = shap.Explainer(model, background, algorithm=algorithm, seed=seed)
        explainer(np.ones((1, n_players)), max_evals=budget, repeats=repeats, silent=True)
        estimate = explainer.last_estimate
        lower, upper = estimate.interval()
        inside.append(np.mean((lower[0, :, 0] <= exact) & (exact <= upper[0, :, 0])))
        errors.append(np.abs(estimate.values[0, :, 0] - exact).sum() / np.abs(exact).sum())
    spread = np.std(inside, ddof=1) / np.sqrt(n_games)
    labels = algorithm, n_players, budget, kind, level, repeats
    return Cell(float(np.mean(inside)), float(spread), float(np.mean(errors)), labels)


def print_costs(algorithms: tuple[str, ...]) -> None:
    """Print what looking for noise adds to the rows of a model that is deterministic."""
    print("\n| method | more rows | values are equal |\n|---|---|---|")
    background, x = np.zeros((1, 12)), np.ones((1, 12))
    value, n_rows = drawn_game(12, 0), 0

    def model(x: FloatArray) -> FloatArray:
        nonlocal n_rows
        n_rows += len(x)
        return value(x)

    for algorithm in algorithms:
        counts, values = [], []
        for is_checked in (True, False):  # models in training mode are not checked
            n_rows, model.is_in_training_mode = 0, not is_checked  # type: ignore[attr-defined]
            explainer = shap.Explainer(model, background, algorithm=algorithm, seed=0)
            values.append(explainer(x, max_evals=200, silent=True).values)
            counts.append(n_rows)
        is_equal = np.array_equal(*values)
        print(f"| `{algorithm}` | {counts[0] / counts[1] - 1:.1%} | {is_equal} |")


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="two methods, one budget")
    parser.add_argument("--games", type=int, default=N_GAMES, help="games of a cell")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    algorithms, budgets = (ALGORITHMS[:2], BUDGETS[1:2]) if options.quick else (ALGORITHMS, BUDGETS)
    noises = [(kind, level) for kind in ("equal", "growing") for level in LEVELS]
    cells = [
        cell(algorithm, n_players, budget, kind, level, repeats, options.games)
        for algorithm in algorithms
        for n_players, budget in budgets
        for kind, level in [*noises, ("rare", 1.0), ("rare", 10.0), ("labels", 1.0)]
        for repeats in (1, 2)
    ]
    holds = [one.beyond <= 2 for one in cells]
    print(f"{np.mean(holds):.1%} of {len(cells)} cells hold 92 to 98 % within two standard errors,")
    print(
        f"{np.mean([one.beyond <= 0 for one in cells]):.0%} without these; the mean over cells is "
    )
    print(f"{np.mean([one.held for one in cells]):.3f}, the mean standard error of a cell ")
    print(f"{np.mean([one.standard_error for one in cells]):.3f}.\n")
    for repeats in (1, 2):
        of_repeats = [one for one in cells if one.labels[5] == repeats]
        means = [one.held for one in of_repeats if one.labels[3] != "labels"]
        labels = [one.held for one in of_repeats if one.labels[3] == "labels"]
        print(f"repeats={repeats}: {np.mean(means):.3f}; labels {np.mean(labels):.3f}")
    print("\n| loses | held | method | players | evaluations | noise | level | repeats | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    cells.sort(key=lambda one: (one.beyond <= 2, one.held))
    for one in cells:
        algorithm, n_players, budget, kind, level, repeats = one.labels
        print(
            f"| {'yes' if one.beyond > 2 else ''} | {one.held:.2f} ± {one.standard_error:.2f} "
            f"| `{algorithm}` | {n_players} | {budget:,} | {kind} | {level:g} | {repeats} "
            f"| {one.error:.3g} |"
        )
    print_costs(algorithms)


if __name__ == "__main__":
    main()
