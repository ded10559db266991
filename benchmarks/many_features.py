"""Many features, few evaluations: errors beside peers, losing cells first, and a picture a task.

    python benchmarks/many_features.py [--quick] [--players 50 200 500] [--tasks texts contexts]
        [--games 5] [--shapiq-python NAME/bin/python] [--docs] [--kept]

50 to 2,000 players and .25 to 8 evaluations each; all contenders get the same number of evaluations
of the same game. Tasks:

- *sparse sums*, *dense sums*: overlapping games of up to 10 players; a tenth of the players, or
  all, are in some of them. Values by enumeration of the small games.
- *pooling*: a network of words with filters that are pooled by their maximum. Closed form.
- *attention*: one query, softmax, one fixed token. Values by quadrature, to 1e-12.
- *texts*: AG's News (50 words), Yahoo! Answers (100), IMDB (200, 500); words are deleted, tf-idf
  of words and pairs of words, a network of 64 units, log-odds. Values: 2,000 evaluations a player.
- *digits*: 196 squares, grey where absent, a network of 128 units. Values as for texts.
- *contexts*: sentences from which a transparent stand-in for a language model copies a headline.
  Values: 20,000 random orders.

For each contender: error Σ |φ̂ − φ| / Σ |φ|; how many of the ten largest attributions are among
its ten largest; what deleting its first 1 to 10 players takes from the value, over what deleting
those of φ takes; the share of its 95 % intervals that hold. The values of shap's Partition are
others than Shapley's: only its ten largest and its deletions count. A cell is a task, a number of
players and of evaluations; it loses where `oddgp` errs more than the best peer.

About ten minutes on one core. `--players 50 100 200 500 --games 2` takes an hour, 2,000 players
more. `--docs` writes results and pictures, too; `--kept` reads the results that it wrote last,
rather than measuring.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pages
import pandas as pd
from data_files import FOLDERS, data_folder
from games import LargeGame, attention, pooling_network, relative_error, sub_games, taken_and_given
from large_models import TEXT_SETS, context_game, digit_game, text_game
from matplotlib.figure import Figure
from peers import OURS, PARTITION, ShapiqWorker, all_contenders, explain

KEPT = pages.RESULTS / "many_features.csv"
PER_PLAYER = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
CELL = ["task", "players", "per player"]
BEST = "best peer"


def tasks(data: Path) -> dict[str, Callable[[int, int], LargeGame]]:
    """Return what makes a game of each task from a number of players and a seed."""
    return {
        "sparse sums": partial(sub_games, share=0.1),
        "dense sums": sub_games,
        "pooling": pooling_network,
        "attention": attention,
        "texts": partial(text_game, data),
        "digits": partial(digit_game, data),
        "contexts": partial(context_game, data),
    }


def sizes(task: str, players: list[int]) -> list[int]:
    """Return the numbers of players that a task has, for those that are asked for."""
    if task == "digits":
        return [196] if 200 in players else []
    return [n for n in players if task != "texts" or n in TEXT_SETS]


def measured_tasks(options: argparse.Namespace) -> pd.DataFrame:
    """Return a line for each game, number of evaluations and contender that takes it."""
    worker = ShapiqWorker(options.shapiq_python) if options.shapiq_python else None
    contenders, made, lines = all_contenders(worker), tasks(options.data), []
    cells = [(task, n) for task in options.tasks for n in sizes(task, options.players)]
    for seed, ((task, n_players), game_seed) in enumerate(product(cells, range(options.games))):
        game = made[task](n_players, game_seed)
        best = taken_and_given(game, game.exact)[0]
        top = set(np.argsort(-np.abs(game.exact))[:10])
        for each, (name, contender) in product(PER_PLAYER, contenders.items()):
            found = explain(contender, game, max(4, round(each * n_players)), seed)
            if found is not None:
                n_found = len(top & set(np.argsort(-np.abs(found.values))[:10]))
                taken = taken_and_given(game, found.values)[0] / best
                error = relative_error(found.values, game.exact)
                line = (task, n_players, each, name, seed, error, n_found, taken, found.inside)
                lines.append(line)
        print(f"measured: {task}, {n_players} players", flush=True)
    scored = ["error", "top 10", "deletion", "coverage"]
    return pd.DataFrame(lines, columns=[*CELL, "method", "seed", *scored])


def mean_errors(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean error of each method in each cell, and of the best peer."""
    table = results[results["method"] != PARTITION].pivot_table(
        index=CELL, columns="method", values="error", sort=False
    )
    peers = table.drop(columns=list(OURS), errors="ignore")
    table["best"] = peers.idxmin(axis=1)
    table[BEST] = peers.min(axis=1)
    return table


def losing_table(results: pd.DataFrame) -> str:
    """Return how many cells hold each goal, and a line for each in which `oddgp` loses."""
    table = mean_errors(results)
    ours = results[results["method"] == "oddgp"].groupby(CELL, sort=False)["coverage"].mean()
    cells = pd.DataFrame(
        {"oddgp": table["oddgp"], BEST: table[BEST], "which": table["best"],
         "ratio": table["oddgp"] / table[BEST], "coverage": ours}
    ).reset_index()  # fmt: skip
    short, long = cells["coverage"] < 0.9, cells["coverage"] > 0.99
    falls = cells.groupby(CELL[:2], sort=False)["oddgp"].pct_change().dropna() <= 0
    words = (
        f"`oddgp` errs at most as much as the best peer in {(cells['ratio'] <= 1).sum()} of "
        f"{len(cells)} cells (task, players, budget). The ratio of errors has the median "
        f"{cells['ratio'].median():.2f} and is at most {cells['ratio'].max():.2f}. Intervals "
        f"hold less than .90 in {short.sum()}, and more than .99 in {long.sum()}. The error falls "
        f"with twice the evaluations in {falls.sum()} of {len(falls)}. "
        f"{compared_with_partition(results)} The eight cells with the largest ratio:"
    )
    lost = cells.nlargest(8, "ratio")
    rows = (
        (cell.task, f"{cell.players:,}", f"{cell[3]:g}", cell.which, f"{cell.ratio:.2f}",
         f"{cell.coverage:.2f}")
        for cell in lost.itertuples()
    )  # fmt: skip
    head = ["task", "players", "evaluations a player", "best peer", "ratio", "coverage"]
    return f"{words}\n\n{pages.table(head, rows)}"


def compared_with_partition(results: pd.DataFrame) -> str:
    """Return in how many cells `oddgp` finds and deletes as much as shap's Partition."""
    texts = []
    for score in ("top 10", "deletion"):
        table = results.pivot_table(index=CELL, columns="method", values=score)
        both = table[["oddgp", PARTITION]].dropna()
        least = (both["oddgp"] >= both[PARTITION]).sum()
        texts.append(f"by {score} in {least} of {len(both)}")
    return f"It is at least as good as shap's Partition {', '.join(texts)}."


def rule_of_thumb(results: pd.DataFrame) -> str:
    """Return from how many evaluations a player `oddgp` reaches what users ask for."""
    ours = results[results["method"] == "oddgp"].groupby(CELL, sort=False).mean(numeric_only=True)
    reached = {
        "8 of the 10 largest": ours["top 10"] >= 8,
        "error below .5": ours["error"] < 0.5,
        "error below .2": ours["error"] < 0.2,
    }

    def least(good: pd.Series) -> float:
        """Return the smallest budget from which all larger ones reach it, too."""
        from_here = good[::-1].cummin()[::-1]
        return float(good.index[from_here].get_level_values(2).min()) if good.iloc[-1] else np.inf

    def text(budget: float) -> str:
        return "more" if np.isinf(budget) else f"{budget:g}"

    found = pd.DataFrame(
        {name: holds.groupby(CELL[:2], sort=False).agg(least) for name, holds in reached.items()}
    )
    rows = (
        [task, f"{n_players:,}", *map(text, row)] for (task, n_players), row in found.iterrows()
    )
    largest, half, fifth = map(text, found.median())
    return (
        f"**Rule of thumb:** {largest} evaluations per player for the ten largest attributions "
        f"(eight of them are found), {half} for an error below .5, {fifth} for an error below .2. "
        "These are medians of the table: evaluations per player at which `oddgp` reaches each "
        f"goal.\n\n{pages.table(['task', 'players', *reached], rows)}"
    )


STYLES = {
    "oddgp": ("#e8590c", "-"),
    "leastsquares": ("#e8590c", "--"),
    "randomorder": ("#e8590c", ":"),
    "lasso (ContextCite)": ("#4c8bf5", "-"),
    "ridge (LIME)": ("#4c8bf5", "--"),
    "shap, kernel": ("#8a8f98", "--"),
    "shap, permutation": ("#8a8f98", "-"),
    "shapiq, OddSHAP": ("#2f9e6e", "-"),
    "shapiq, ProxySPEX": ("#2f9e6e", "--"),
}


def draw(results: pd.DataFrame, task: str) -> Figure:
    """Draw the errors of a task, a panel for each number of players."""
    tables = {
        f"{task}, {n_players:,} players": of_players.pivot_table(
            index="per player", columns="method", values="error"
        )
        for n_players, of_players in results[results["task"] == task].groupby("players")
    }
    return pages.draw_errors(
        tables, STYLES, strongest="oddgp", xlabel="evaluations per player", n_columns=len(tables),
        lowest=0.03,
    )  # fmt: skip


def main() -> None:
    """Measure, or read what was measured, and print and draw it."""
    options = pages.read_options(
        __doc__,
        "--games 5 --shapiq-python ENVIRONMENT/bin/python",
        players=[50, 200],
        tasks=list(tasks(data_folder())),
        games=1,
        shapiq_python=None,
        kept=False,
        **FOLDERS,
    )
    if options.quick:
        options.players, options.games = [50], 1
    warnings.simplefilter("ignore")  # small budgets, and networks that have not converged
    results = pd.read_csv(KEPT) if options.kept else measured_tasks(options)
    pages.report(options, "beside-others", losing_table(results))
    pages.report(options, "rule-of-thumb", rule_of_thumb(results))
    if options.docs:
        results.to_csv(KEPT, index=False, float_format="%.4g")
        for task in results["task"].unique():
            name = f"many_features_{task.replace(' ', '_')}"
            pages.save_picture(name, partial(draw, results, task))


if __name__ == "__main__":
    main()
