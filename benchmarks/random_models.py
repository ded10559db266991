"""How often 95 % intervals hold the true attributions of models that answer at random.

    python benchmarks/random_models.py [--quick]

Games of 5, 8 and 12 players with main effects, products of two and three players. Noise is added
to each answer: of equal size, or growing with the players that are present; its standard deviation
is .001 to 10 times that of the game's values. And answers that are 0 or 1, with a chance. Each cell
is over 30 games. Cells outside .92 to .98 come first. Needs no data.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import shap

import shap_ext  # noqa: F401 # it registers our algorithms
from shapley_adapters.coalitions.tables import all_coalitions, size_weights

FloatArray = npt.NDArray[np.float64]
Value = Callable[[FloatArray], FloatArray]

LEVELS = (0.001, 0.01, 0.1, 1.0, 10.0)
ALGORITHMS = ("oddgp", "leastsquares", "randomorder", "owen", "svarm", "shear")
BUDGETS = ((5, 200), (8, 200), (12, 200), (12, 1000))
N_GAMES = 30


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
    coalitions = all_coalitions(n_players)
    present, absent = size_weights(n_players)
    sizes = coalitions.sum(axis=1)
    operator = np.where(coalitions, present[sizes][:, None], -absent[sizes][:, None])
    values = value(coalitions.astype(float))
    attributions: FloatArray = operator.T @ values
    return attributions, float(values.std())


def random_model(value: Value, sd: float, kind: str, level: float, seed: int) -> Value:
    """Return a model that answers at random, with these values as means."""
    rng = np.random.default_rng(seed)

    def answer(x: FloatArray) -> FloatArray:
        if kind == "labels":
            return (rng.random(len(x)) < value(x)).astype(float)
        scale = 1.0 if kind == "equal" else 0.1 + x[:, 0] + x.mean(axis=1) ** 2
        noise: FloatArray = level * sd * scale * rng.normal(size=len(x))
        return value(x) + noise

    return answer


def cell(
    algorithm: str, n_players: int, budget: int, kind: str, level: float, repeats: int
) -> tuple[float, float]:
    """Return how often intervals hold, and the mean error relative to the attributions."""
    inside, errors = [], []
    for seed in range(N_GAMES):
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
        inside.append((lower[0, :, 0] <= exact) & (exact <= upper[0, :, 0]))
        errors.append(np.abs(estimate.values[0, :, 0] - exact).sum() / np.abs(exact).sum())
    return float(np.mean(inside)), float(np.mean(errors))


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="two methods, one budget")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    algorithms, budgets = (ALGORITHMS[:2], BUDGETS[1:2]) if options.quick else (ALGORITHMS, BUDGETS)
    noises = [(kind, level) for kind in ("equal", "growing") for level in LEVELS]
    rows = []
    for algorithm in algorithms:
        for n_players, budget in budgets:
            for kind, level in [*noises, ("labels", 1.0)]:
                for repeats in (1, 2):
                    found = cell(algorithm, n_players, budget, kind, level, repeats)
                    rows.append((found, algorithm, n_players, budget, kind, level, repeats))
    holds = [0.92 <= row[0][0] <= 0.98 for row in rows]
    is_close = [row[0][0] >= 0.88 for row in rows]
    print(f"{np.mean(holds):.0%} of {len(rows)} cells hold 92 to 98 %, {np.mean(is_close):.0%} at")
    print(f"least 88 %; the mean over cells is {np.mean([row[0][0] for row in rows]):.3f}.\n")
    for repeats in (1, 2):
        means = [row[0][0] for row in rows if row[6] == repeats and row[4] != "labels"]
        labels = [row[0][0] for row in rows if row[6] == repeats and row[4] == "labels"]
        print(f"repeats={repeats}: {np.mean(means):.3f}; labels {np.mean(labels):.3f}")
    print("\n| held | method | players | evaluations | noise | level | repeats | error |")
    print("|---|---|---|---|---|---|---|---|")
    rows.sort(key=lambda row: row[0][0])
    for found, algorithm, n_players, budget, kind, level, repeats in rows:
        print(
            f"| {found[0]:.2f} | `{algorithm}` | {n_players} | {budget:,} | {kind} | {level:g} "
            f"| {repeats} | {found[1]:.3g} |"
        )


if __name__ == "__main__":
    main()
