"""Errors, intervals and the strongest of interactions of pairs, beside shapiq, losing cells first.

    python benchmarks/interactions.py [--quick] [--games "tanh network" trees-30 conjunctions-50]
        [--per-player 8 16 32 64] [--rows 16] [--largest 3] [--shapiq-python NAME/bin/python]
        [--docs]

Of each kind of game and number of evaluations a player: the error Σ|Î − I| over Σ|I| of each
method; how many of the ten strongest pairs are among the ten that it finds; how many of the pairs,
and of the ten strongest that it finds, are in the 95 % intervals of `oddgp`. The ratio is that of
its error to the least of shapiq. The index is Shapley's.

Networks and Adult (with its data) have 12 and 13 players and are enumerated. The trees have 30:
absent features follow the branches by their shares of training rows, so that TreeExplainer's
interactions are exact. *conjunctions-50* and so on are sums of heavy-tailed effects of so many
players and of half as many conjunctions of two to four players (with `--largest 3`, those of four
lose their last): the interaction of a pair is the sum of w / (|T| − 1) over the conjunctions T that
hold it.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pages
import pandas as pd
import shap
from data_files import FOLDERS
from games import BoolArray, FloatArray, Values, all_coalitions, joined, relative_error
from models import adult
from peers import Approximator, ShapiqWorker, UnusableBudgetError, fixed
from sklearn.datasets import load_breast_cancer
from zoo_games import tabulated

import shapley_adapters as core
from shapley_adapters.interactions.enumeration import enumerated
from shapley_adapters.interactions.result import InteractionRequest

TITLES = {
    "tanh network": "tanh network, 12 features",
    "ReLU network": "ReLU network, 12 features",
    "trees-30": "boosted trees, 30 features",
    "adult": "network on Adult, 13 features",
}
GAMES = (*TITLES, "conjunctions-50", "conjunctions-100", "conjunctions-200")
DOCUMENTED = (
    "--games 'tanh network' 'ReLU network' trees-30 adult --shapiq-python ENVIRONMENT/bin/python",
    "--games conjunctions-50 conjunctions-100 conjunctions-200 --rows 3 --per-player 2 4 8 "
    "--shapiq-python ENVIRONMENT/bin/python",
)
_COUNTED = 10
_SHOWN = (8, 16)
"""Evaluations a player of the page's table of errors."""


_of_pairs = partial(fixed, index="SII")
PEERS = (
    _of_pairs("KernelSHAPIQ", pairing_trick=True),
    _of_pairs("InconsistentKernelSHAPIQ", pairing_trick=True),
    _of_pairs("SVARMIQ", top_order=True),
    _of_pairs("SHAPIQ", top_order=True),
    _of_pairs("PermutationSamplingSII", top_order=True),
    _of_pairs("ProxySHAP", proxy_model="lightgbm"),
    _of_pairs("ProxySHAP", "xgboost", proxy_model="xgboost"),
)
OF_MANY = (
    # Without the search of hyperparameters, which takes minutes.
    _of_pairs("ProxySPEX", max_order=2, hpo=False, pairing_trick=True),
    _of_pairs("SPEX", max_order=2),
)


class PairGames(NamedTuple):
    """Games with their exact interactions.

    Attributes
    ----------
    values_of : list of callables
        Coalitions, (C, M), to values, (C,), of each game.
    n_players : int
        M.
    truth : array, (R, P)
        The Shapley interactions.
    peers : sequence of Approximator
        Who takes part of shapiq.
    """

    values_of: Sequence[Values]
    n_players: int
    truth: FloatArray
    peers: Sequence[Approximator] = PEERS


def _of_tables(tables: FloatArray) -> PairGames:
    n_players = int(np.log2(tables.shape[1]))
    places, every = 1 << np.arange(n_players), all_coalitions(n_players)
    index = InteractionRequest("SII").index(n_players)
    truth = enumerated(index, every, tables[:, :, None])[:, :, 0]
    values_of = [lambda present, table=table: table[present @ places] for table in tables]
    return PairGames(values_of, n_players, truth)


def _trees(n_rows: int) -> PairGames:
    X, labels = load_breast_cancer(return_X_y=True)
    trees = lightgbm.LGBMRegressor(n_estimators=60, num_leaves=15, verbose=-1, n_jobs=1)
    trees.fit(X[n_rows:], labels[n_rows:].astype(float))
    matrices = shap.TreeExplainer(trees).shap_interaction_values(X[:n_rows])
    first, second = np.triu_indices(X.shape[1], 1)
    roots = [info["tree_structure"] for info in trees.booster_.dump_model()["tree_info"]]

    def value(row: FloatArray, coalitions: BoolArray) -> Any:
        return sum(_mean_output(root, row, coalitions) for root in roots)

    games, truth = [partial(value, row) for row in X[:n_rows]], 2 * matrices[:, first, second]
    return PairGames(games, X.shape[1], truth)


def _mean_output(node: dict[str, Any], row: FloatArray, coalitions: BoolArray) -> Any:
    """Return the mean output of a tree by coalitions; absent features follow training rows."""
    if "leaf_value" in node:
        return np.full(len(coalitions), node["leaf_value"])
    sides = [node["left_child"], node["right_child"]]
    outputs = [_mean_output(side, row, coalitions) for side in sides]
    counts = [side.get("leaf_count", side.get("internal_count")) for side in sides]
    mean = (counts[0] * outputs[0] + counts[1] * outputs[1]) / sum(counts)
    feature = node["split_feature"]
    taken = outputs[0 if row[feature] <= node["threshold"] else 1]
    return np.where(coalitions[:, feature], taken, mean)


def conjunctions(n_players: int, largest: int, seed: int) -> tuple[Values, FloatArray]:
    """Return a game of coalitions, (C, M), and its interactions of all pairs, (P,)."""
    rng = np.random.default_rng(seed)
    effects = rng.standard_t(3, size=n_players)
    sizes = rng.choice([2, 2, 3, 4], size=n_players // 2)
    sets = [np.sort(rng.choice(n_players, size, replace=False)[:largest]) for size in sizes]
    weights = 4 * rng.standard_t(3, size=len(sets))
    exact = dict.fromkeys(combinations(range(n_players), 2), 0.0)
    for members, weight in zip(sets, weights, strict=True):
        for players in combinations(members.tolist(), 2):
            exact[players] += weight / (len(members) - 1)

    def values(coalitions: BoolArray) -> FloatArray:
        total = coalitions @ effects
        for members, weight in zip(sets, weights, strict=True):
            total += weight * coalitions[:, members].all(axis=1)
        return np.asarray(total)

    return values, np.array(list(exact.values()))


def games_of(name: str, options: argparse.Namespace) -> PairGames:
    """Return the games of a kind."""
    kind, _, size = name.rpartition("-")
    if kind == "conjunctions":
        drawn = [conjunctions(int(size), options.largest, seed) for seed in range(options.rows)]
        values, exact = zip(*drawn, strict=True)
        return PairGames(values, int(size), np.array(exact), OF_MANY)
    if name == "trees-30":
        return _trees(options.rows)
    if name == "adult":
        explained = adult(options.data, options.cache, options.rows)
        return _of_tables(explained.tabulated().table)
    return _of_tables(tabulated(name, 12, options.rows))


def _scores(found: FloatArray, truth: FloatArray) -> dict[str, float]:
    """Return the error, and the share of the strongest pairs among the strongest found."""
    shared = [
        len(
            set.intersection(
                *({n for n in np.argsort(-np.abs(one))[:_COUNTED] if one[n]} for one in both)
            )
        )
        for both in zip(found, truth, strict=True)
    ]
    return {"error": relative_error(found, truth), "strongest": float(np.mean(shared)) / _COUNTED}


def measured(
    games: PairGames, budget: int, worker: ShapiqWorker | None
) -> dict[str, dict[str, float]]:
    """Return the scores of each method that takes the budget."""
    settings = core.Settings(seed=0, budget=budget, interactions=InteractionRequest("SII"))
    game = joined(games.values_of, games.n_players, 4096)
    pairs: Any = core.estimate(game, core.OddGP(), settings).interactions
    values, errors = pairs.values[:, :, 0], pairs.standard_errors[:, :, 0]
    inside = np.abs(games.truth - values) <= 1.96 * errors + 1e-9
    order = np.argsort(-np.abs(values), axis=1)[:, :_COUNTED]
    strongest = np.take_along_axis(inside, order, axis=1)
    held = {"held": inside.mean(), "held, strongest": strongest.mean()}
    found = {"oddgp": _scores(values, games.truth) | held}
    if worker is None:
        return found
    for peer in games.peers:
        try:
            answers = [
                worker.explain(peer, value, games.n_players, budget, row, of_size=2)
                for row, value in enumerate(games.values_of)
            ]
        except UnusableBudgetError:
            continue
        found[peer.name] = _scores(np.array(answers), games.truth)
    return found


def main() -> None:
    """Print a line for each method in each cell."""
    options = pages.read_options(
        __doc__,
        *DOCUMENTED,
        games=list(GAMES),
        per_player=[8.0, 16, 32, 64],
        rows=16,
        largest=4,
        shapiq_python=None,
        **FOLDERS,
    )
    if options.quick:
        options.games, options.rows, options.per_player = GAMES[::2], 3, [8]
    worker = ShapiqWorker(options.shapiq_python) if options.shapiq_python else None
    cells = []
    for name in options.games:
        games = games_of(name, options)
        for per_player in options.per_player:
            found = measured(games, round(per_player * games.n_players), worker)
            rivals = {peer: one["error"] for peer, one in found.items() if peer != "oddgp"}
            best = min(rivals, key=lambda peer: rivals[peer], default="")
            ratio = found["oddgp"]["error"] / rivals.get(best, np.nan)
            cells.append((ratio, name, per_player, best, pd.DataFrame(found).T))
    cells.sort(key=lambda cell: -np.nan_to_num(cell[0]))
    for ratio, name, per_player, _, table in cells:
        print(f"{name}, {per_player:g} a player: ratio {ratio:.2f}\n{table.round(3)}\n")
    few = [cell for cell in cells if cell[1] in TITLES and cell[2] in _SHOWN]
    many = [cell for cell in cells if cell[1] not in TITLES]
    if few:
        pages.report(options, "interactions", table_of_errors(few))
    if many:
        pages.report(options, "strongest-pairs", table_of_strongest(many))


Cell = tuple[float, str, float, str, pd.DataFrame]
"""A ratio, games, evaluations a player, the best of shapiq, and the scores of all."""


def table_of_errors(cells: list[Cell]) -> str:
    """Return the errors of `oddgp` and of the best of shapiq, and how many intervals hold."""
    lines = []
    for _, name, per_player, best, table in cells:
        errors, held = table["error"], pages.short(table["held"]["oddgp"], 2)
        peer = f"{pages.short(errors.get(best, np.nan))}, {best.removeprefix('shapiq ')}"
        lines.append((TITLES[name], f"{per_player:g}", pages.short(errors["oddgp"]), peer, held))
    head = ("model", "evaluations per feature", "`oddgp`", "best of shapiq")
    return pages.table([*head, "interactions in 95 % intervals"], lines)


def table_of_strongest(cells: list[Cell]) -> str:
    """Return the share of the ten strongest pairs that `oddgp` and the others find."""
    peers = {peer: f"shapiq {peer}" for peer in ("ProxySPEX", "SPEX")}
    lines = []
    for _, name, per_player, _, table in cells:
        found = table["strongest"].reindex(["oddgp", *peers.values()])
        shares = (pages.short(share, 2) or "—" for share in found)
        lines.append((name.rpartition("-")[2], f"{per_player:g}", *shares))
    return pages.table(["players", "evaluations per player", "`oddgp`", *peers], lines)


if __name__ == "__main__":
    main()
