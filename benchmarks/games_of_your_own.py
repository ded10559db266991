"""Games whose players are no features: training rows, passages, and 2 to 5,000 players.

    python benchmarks/games_of_your_own.py [--seeds 3] [--parts rows passages sizes] [--quick]
        [--docs]

*rows*: accuracy of ridge classifiers, trained on groups of rows of scikit-learn's breast-cancer set
and digits; a fifth of the groups has wrong labels. Beside the recipes of pyDVL: truncated Monte
Carlo, Beta-Shapley values by orders, Banzhaf values by maximum sample reuse.
Errors are relative to long runs by orders, each index to its own.
*passages*: log-probability of an answer by the language model of the page, three passages have it;
beside ContextCite: lasso of the logit, random halves, penalty .01. Leaving one out takes M + 1
evaluations, whatever the budget.
*sizes*: errors at .25, 1 and 8 evaluations a player.
All contenders evaluate as many coalitions. Cells where a peer is better come first. About ten
minutes on one core.
"""

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pages
import pandas as pd
from games import BoolArray, FloatArray, IntArray, Values, attention, in_blocks, relative_error
from peers import limit_of
from scipy.stats import betabinom, binom
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import Lasso
from sklearn.preprocessing import scale
from sklearn.utils import shuffle

from shap_ext import explain_game

PAGE = pages.ROOT / "docs" / "games_of_your_own.md"
CANCER, DIGITS = load_breast_cancer, load_digits
ROWS = ((CANCER, 200, 20), (DIGITS, 500, 50), (CANCER, 100, 100), (DIGITS, 1000, 100))
"""Data, rows and players."""
PASSAGES = (12, 24, 48)
INDICES = ("shapley", "banzhaf", ("beta", 16, 1))
PER_PLAYER = (1, 2, 4, 8)
CELL = ["game", "per player"]


def size_weights(index: object, n_players: int) -> FloatArray:
    """Return how often a player joins 0, …, M - 1 others, by index."""
    sizes = np.arange(n_players)
    if index == "banzhaf":
        return np.asarray(binom(n_players - 1, 0.5).pmf(sizes))
    _, a, b = index if isinstance(index, tuple) else ("beta", 1, 1)
    return np.asarray(betabinom(n_players - 1, b, a).pmf(sizes))


def training_rows(
    load: Callable[..., tuple[FloatArray, FloatArray]], n_rows: int, n_players: int, seed: int
) -> tuple[Values, set[int]]:
    """Return the accuracies of models of groups of rows, and the groups whose labels are wrong."""
    X, y = shuffle(*load(return_X_y=True), random_state=seed)
    X, rng = np.c_[scale(X), np.ones(len(X))], np.random.default_rng(seed)
    n_classes = y.max() + 1
    wrong = rng.choice(n_players, n_players // 5, replace=False)
    player = np.arange(n_rows) * n_players // n_rows
    is_wrong = np.isin(player, wrong)
    labels = (y[:n_rows] + is_wrong * rng.integers(1, n_classes, n_rows)) % n_classes
    groups = [(X[:n_rows][player == p], np.eye(n_classes)[labels[player == p]])
              for p in range(n_players)]  # fmt: skip
    grams = np.stack([rows.T @ rows for rows, _ in groups])  # sums of them train a model
    products = np.stack([rows.T @ targets for rows, targets in groups])

    def accuracy(present: BoolArray) -> FloatArray:
        gram = np.tensordot(present.astype(float), grams, 1) + np.eye(X.shape[1])
        weights = np.linalg.solve(gram, np.tensordot(present.astype(float), products, 1))
        found = (X[n_rows:] @ weights).argmax(axis=2) == y[n_rows:]
        return np.asarray(found.mean(axis=1))

    return in_blocks(accuracy, 20 * X.shape[1] ** 2), set(wrong)


def by_orders(
    value: Values, n_players: int, budget: int, seed: int, index: object = "shapley",
    tolerance: float = -1.0,
) -> FloatArray:  # fmt: skip
    """Return weighted means of what players add in random orders, up to a budget.

    With a tolerance, the rest of an order adds nothing once the value of a coalition is so close to
    that of all players, but for the first 40 % (Ghorbani and Zou, 2019, as in pyDVL).
    """
    rng, weights = np.random.default_rng(seed), n_players * size_weights(index, n_players)
    empty, total = value(np.repeat([[False], [True]], n_players, axis=1))
    sums, counts, left = np.zeros(n_players), np.zeros(n_players), budget - 2
    while left > 0:
        order, present = random_order(n_players, rng)
        path = np.append(empty, value(present[:-1][:left]))
        may_end = np.arange(len(path)) >= 0.4 * n_players
        near = np.flatnonzero(may_end & (np.abs(path - total) <= tolerance * abs(total)))
        left -= near[0] if len(near) else len(path) - 1
        if len(near):
            path = np.append(path[: near[0] + 1], np.full(n_players - near[0], path[near[0]]))
        elif len(path) == n_players:
            path = np.append(path, total)
        known = order[: len(path) - 1]
        sums[known] += np.diff(path) * weights[: len(known)]
        counts[known] += 1
    return sums / np.maximum(counts, 1)


def random_order(n_players: int, rng: np.random.Generator) -> tuple[IntArray, BoolArray]:
    """Return an order, and the coalitions of its first 1, …, M players."""
    order = rng.permutation(n_players)
    present = np.zeros((n_players, n_players), dtype=bool)
    present[:, order] = np.tri(n_players, dtype=bool)
    return order, present


def long_run(value: Values, n_players: int, seed: int) -> dict[object, FloatArray]:
    """Return all indices from 1,000 random orders, those of no contender."""
    rng, empty = np.random.default_rng([seed, 1]), value(np.zeros((1, n_players), dtype=bool))[0]
    weights: dict[object, FloatArray] = {
        index: n_players * size_weights(index, n_players) for index in INDICES
    }
    found = {index: np.zeros(n_players) for index in weights}
    for _ in range(1000):
        order, present = random_order(n_players, rng)
        gains = np.diff(value(present), prepend=empty) / 1000
        for index, values in found.items():
            values[order] += gains * weights[index]
    return found


def by_halves(value: Values, n_players: int, budget: int, seed: int) -> FloatArray:
    """Return Banzhaf values by maximum sample reuse (Wang and Jia, 2023)."""
    present = np.random.default_rng(seed).random((budget, n_players)) < 0.5
    values, counts = value(present), present.sum(axis=0)
    having, lacking = values @ present, values @ ~present
    return np.asarray(having / np.maximum(counts, 1) - lacking / np.maximum(budget - counts, 1))


def left_out(value: Values, n_players: int, budget: int, seed: int) -> FloatArray:
    """Return what leaving out each player takes; M + 1 evaluations, whatever the budget."""
    values = value(np.vstack([np.ones(n_players, dtype=bool), ~np.eye(n_players, dtype=bool)]))
    return np.asarray(values[0] - values[1:])


def by_us(value: Values, n_players: int, budget: int, seed: int, **options: Any) -> FloatArray:
    """Return the values of `explain_game`."""
    limit = limit_of(budget)
    found = explain_game(value, n_players, max_evals=limit, seed=seed, silent=True, **options)
    return np.asarray(found.values)


def lasso(value: Values, n_players: int, budget: int, seed: int) -> FloatArray:
    """Return ContextCite's weights of passages from log-probabilities (Cohen-Wang et al., 2024)."""
    present = np.random.default_rng(seed).random((budget, n_players)) < 0.5
    logs = value(present)
    logits = logs - np.log1p(-np.exp(logs))
    return np.asarray(Lasso(alpha=0.01).fit(scale(present.astype(float)), logits / 5).coef_)


OURS = "`explain_game`, Shapley"
Contender = Callable[[Values, int, int, int], FloatArray]
OF_ROWS: dict[str, tuple[object, Contender]] = {
    OURS: ("shapley", by_us),
    "`explain_game`, Banzhaf": ("banzhaf", partial(by_us, index="banzhaf")),
    "`explain_game`, Beta": (INDICES[2], partial(by_us, index=INDICES[2])),
    "truncated Monte Carlo": ("shapley", partial(by_orders, tolerance=0.01)),
    "maximum sample reuse": ("banzhaf", by_halves),
    "Monte Carlo, Beta": (INDICES[2], partial(by_orders, index=INDICES[2])),
}
OF_PASSAGES: dict[str, Contender] = {
    OURS: by_us,
    "`explain_game`, Banzhaf": partial(by_us, index="banzhaf"),
    "lasso (ContextCite)": lasso,
    "leaving one out": left_out,
}
OF_SIZES = (by_us, by_orders, partial(by_us, algorithm="leastsquares"))
"""Ours, and peers: random orders and least squares."""


def rows_task(n_seeds: int) -> pd.DataFrame:
    """Return errors, and the share of the wrong groups among as many of the lowest values."""
    lines = []
    for (load, n_rows, n), seed in product(ROWS, range(n_seeds)):
        value, wrong = training_rows(load, n_rows, n, seed)
        truth = long_run(value, n, seed)
        for each, (name, (index, contender)) in product(PER_PLAYER, OF_ROWS.items()):
            found = contender(value, n, each * n, seed)
            error = relative_error(found, truth[index])
            share = len(wrong & set(np.argsort(found)[: len(wrong)])) / len(wrong)
            data = f"{load.__name__[5:].replace('_', ' ')}, {n_rows:,} rows"
            lines.append((f"{data}, {n} players", each, name, str(index), error, share))
    return pd.DataFrame(lines, columns=[*CELL, "contender", "index", "error", "wrong found"])


def passages_task(n_seeds: int) -> pd.DataFrame:
    """Return how far the log-probability falls without the 1, …, 5 first passages."""
    page, lines = PAGE.read_text("utf-8"), []
    names: dict[str, Any] = {}
    for block in page.split("```python\n")[1:3]:  # the model, and questions
        exec(block.split("```")[0], names)
    for n, seed in product(PASSAGES, range(4 * n_seeds)):
        value, _, has_answer = names["question"](n, seed)
        for each, (name, contender) in product(PER_PLAYER, OF_PASSAGES.items()):
            order = np.argsort(-contender(value, n, each * n, seed))
            present = np.ones((6, n), dtype=bool)
            for k in range(1, 6):
                present[k, order[:k]] = False
            falls = -np.diff(value(present)).cumsum()
            share = has_answer[order[: has_answer.sum()]].mean()
            lines.append((f"{n} passages", each, name, share, *falls))
    return pd.DataFrame(lines, columns=[*CELL, "contender", "found", *range(1, 6)])


def sizes_task() -> pd.DataFrame:
    """Return errors of attention among 2 to 5,000 players, that of the better peer in brackets."""
    cells: dict[str, dict[str, str]] = {}
    for n, each in product((2, 10, 100, 1000, 5000), (0.25, 1, 8)):
        game, budget = attention(n, 0), max(4, round(each * n))
        ours, *peers = (
            relative_error(contender(game.values, n, budget, 0), game.exact)
            for contender in OF_SIZES
        )
        cells.setdefault(f"{each:g}", {})[f"{n:,}"] = f"{ours:.2f} ({min(peers):.2f})"
    return pd.DataFrame(cells).rename_axis("players")


def losing_table(results: pd.DataFrame, score: object, is_error: bool = False) -> str:
    """Return cells by the ratio of ours to the best peer, which is chosen after the fact."""
    means = results.pivot_table(index=CELL, columns="contender", values=score, sort=False)
    peers = means.drop(columns=[name for name in means if "explain_game" in name])
    best = peers.min(axis=1) if is_error else peers.max(axis=1)
    ratio = means[OURS] / best if is_error else best / means[OURS]
    return table(means.assign(ratio=ratio).sort_values("ratio", ascending=False))


def page_table(results: pd.DataFrame, scores: list[Any]) -> str:
    """Return the means of scores over all games."""
    means = results.groupby(["contender", "per player"], sort=False)[scores].mean()
    texts = means.map("{:.2f}".format).agg(", ".join, axis=1).unstack(sort=False)
    return table(texts)


def table(means: pd.DataFrame) -> str:
    """Return a table in Markdown."""
    rows = means.reset_index()
    names = (f"{name:g}" if isinstance(name, float) else name for name in rows.columns)
    forms = {float: "{:.2f}", int: "{:,}"}
    lines = (
        [forms.get(type(entry), "{}").format(entry) for entry in row]
        for row in rows.itertuples(index=False)
    )
    return pages.table(names, lines)


def main() -> None:
    """Measure, print, and write into the documentation."""
    options = pages.read_options(__doc__, seeds=3, parts=["rows", "passages", "sizes"])
    if options.quick:
        options.seeds, options.parts = 1, options.parts[:1]
    warnings.simplefilter("ignore")  # small budgets
    if "rows" in options.parts:
        results = rows_task(options.seeds)
        print(losing_table(results[results["index"] == "shapley"], "error", True), "\n")
        print(losing_table(results, "wrong found"))
        pages.report(options, "training-rows", page_table(results, ["error", "wrong found"]))
    if "passages" in options.parts:
        results = passages_task(options.seeds)
        for score in (1, 5, "found"):
            print(losing_table(results, score), "\n")
        pages.report(options, "passages", page_table(results, [5, "found"]))
    if "sizes" in options.parts:
        pages.report(options, "sizes", table(sizes_task()))


if __name__ == "__main__":
    main()
