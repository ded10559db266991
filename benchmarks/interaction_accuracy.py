"""Errors and intervals of interactions of pairs, beside every approximator of shapiq for them.

    python benchmarks/interaction_accuracy.py [--quick] [--model trees-13 trees-30]
        [--per-player 8 16 32 64] [--shapiq-python PATH]

The error is Σ|Î − I| over Σ|I|, over all pairs and games. The ratio is that of `oddgp` to the best
of shapiq, which the table names. `cover` is the share of interactions in the 95 % intervals of
`oddgp`, and `width` the mean standard error over the mean |I|. The index is Shapley's;
RegressionFSII estimates its own, whose exact values are another truth.

Networks and Adult (with its data) have 12 and 13 players and are enumerated. The trees have 13 and
30 players: absent features follow the branches by their shares of training rows, so that
TreeExplainer's interactions are exact.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import adult
import lightgbm
import numpy as np
import shap
from coalition_games import BoolArray, FloatArray
from data_files import add_folder_arguments
from shapiq_contenders import Approximator, ShapiqWorker, UnusableBudgetError
from sklearn.datasets import load_breast_cancer
from zoo_games import tabulated
from zoo_models import all_coalitions

import shapley_adapters as core
from shapley_adapters.interactions.enumeration import enumerated
from shapley_adapters.interactions.result import InteractionRequest

PEERS = (
    Approximator("KernelSHAPIQ", lambda n, b: {"index": "SII", "pairing_trick": True}),
    Approximator("InconsistentKernelSHAPIQ", lambda n, b: {"index": "SII", "pairing_trick": True}),
    Approximator("SVARMIQ", lambda n, b: {"index": "SII", "top_order": True}),
    Approximator("SHAPIQ", lambda n, b: {"index": "SII", "top_order": True}),
    Approximator("PermutationSamplingSII", lambda n, b: {"index": "SII", "top_order": True}),
    Approximator("ProxySHAP", lambda n, b: {"index": "SII", "proxy_model": "lightgbm"}),
    Approximator("ProxySHAP", lambda n, b: {"index": "SII", "proxy_model": "xgboost"}, "xgboost"),
)
FAITHFUL = Approximator("RegressionFSII", lambda n, b: {"pairing_trick": True})


@dataclass
class PairGames(core.Game):
    """Games with their exact interactions.

    Attributes
    ----------
    name : str
        The name in the table.
    n_players : int
        M.
    values_of : list of callables
        Coalitions, (C, M), to values, (C,), of each game.
    truth : array, (R, P)
        The Shapley interactions.
    faithful : array, (R, P), or None
        The faithful interactions, where the games are enumerated.
    """

    name: str
    n_players: int
    values_of: list[Callable[[BoolArray], FloatArray]]
    truth: FloatArray
    faithful: FloatArray | None = None

    evaluations_per_batch = 4096

    @property
    def n_rows(self) -> int:
        """The number of games."""
        return len(self.values_of)

    def __call__(self, rows: Any, coalitions: BoolArray) -> FloatArray:
        """Return the values, (C, 1), of coalitions of rows, for the core."""
        values = np.empty((len(rows), 1))
        for row in np.unique(rows):
            values[rows == row, 0] = self.values_of[row](coalitions[rows == row])
        return values


def _of_tables(name: str, tables: FloatArray) -> PairGames:
    n_players = int(np.log2(tables.shape[1]))
    places = 1 << np.arange(n_players)
    every = all_coalitions(n_players)
    index = InteractionRequest("SII").index(n_players)
    truth = enumerated(index, every, tables[:, :, None])[:, :, 0]

    def of(table: FloatArray) -> Callable[[BoolArray], FloatArray]:
        return lambda coalitions: table[coalitions @ places]

    games = [of(table) for table in tables]
    return PairGames(name, n_players, games, truth, _faithful(every, tables))


def _faithful(every: BoolArray, tables: FloatArray) -> FloatArray:
    """Return faithful Shapley interactions of order 2 (Tsai, Yeh and Ravikumar, JMLR 2023)."""
    n = every.shape[1]
    sizes = every.sum(axis=1)
    weights = np.array([0.0, *(1 / (comb(n, s) * s * (n - s)) for s in range(1, n)), 0.0])[sizes]
    weights[(sizes == 0) | (sizes == n)] = 1e6 * weights.max()
    z = every.astype(float)
    features = np.stack([z[:, i] * z[:, j] for i, j in combinations(range(n), 2)], axis=1)
    roots = np.sqrt(weights)[:, None]
    design = roots * np.concatenate([np.ones((len(z), 1)), z, features], axis=1)
    faithful: FloatArray = np.linalg.lstsq(design, roots * tables.T, rcond=None)[0][n + 1 :].T
    return faithful


def _trees(name: str, X: FloatArray, y: FloatArray, n_rows: int) -> PairGames:
    trees = lightgbm.LGBMRegressor(n_estimators=60, num_leaves=15, verbose=-1, n_jobs=1)
    trees.fit(X[n_rows:], y[n_rows:])
    matrices = shap.TreeExplainer(trees).shap_interaction_values(X[:n_rows])
    first, second = np.triu_indices(X.shape[1], 1)
    roots = [info["tree_structure"] for info in trees.booster_.dump_model()["tree_info"]]

    def of(row: FloatArray) -> Callable[[BoolArray], FloatArray]:
        return lambda coalitions: sum(_mean_output(root, row, coalitions) for root in roots)

    return PairGames(
        name, X.shape[1], [of(row) for row in X[:n_rows]], 2 * matrices[:, first, second]
    )


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


def _synthetic(n_players: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, n_players))
    waves = np.sin(2 * X[:, 2]) * (X[:, 3] > 0) + X[:, 4] * (X[:, 5] > 0.3) * (X[:, 6] < 0)
    return X, X[:, 0] * X[:, 1] + waves + 0.3 * X @ rng.normal(size=n_players)


def games_of(name: str, n_rows: int, arguments: argparse.Namespace) -> PairGames:
    """Return the games of a model."""
    if name == "trees-13":
        return _trees(name, *_synthetic(13), n_rows)
    if name == "trees-30":
        X, labels = load_breast_cancer(return_X_y=True)
        return _trees(name, X, labels.astype(float), n_rows)
    if name == "adult":
        return _of_tables(
            name, adult.prepare(arguments.data, arguments.cache, n_rows).tabulated().table
        )
    return _of_tables(name, tabulated(name, 12, n_rows))


def _error(found: FloatArray, truth: FloatArray) -> float:
    return float(np.abs(found - truth[: len(found)]).sum() / np.abs(truth[: len(found)]).sum())


def _by_peer(peer: Approximator, games: PairGames, worker: ShapiqWorker, budget: int) -> FloatArray:
    found = [
        worker.explain(peer, values_of, games.n_players, budget, row, of_size=2)[0]
        for row, values_of in enumerate(games.values_of)
    ]
    return np.array(found)


def _peer_errors(
    games: PairGames, worker: ShapiqWorker | None, budget: int
) -> Iterator[tuple[str, float]]:
    """Yield the name and the error of each approximator that can use the budget."""
    if worker is None:
        return
    contenders = [(peer, games.truth) for peer in PEERS]
    if games.faithful is not None:
        contenders.append((FAITHFUL, games.faithful))
    for peer, truth in contenders:
        try:
            yield peer.name, _error(_by_peer(peer, games, worker, budget), truth)
        except UnusableBudgetError as error:
            print(f"    {peer.name} at {budget}: {error}")


def compare(games: PairGames, worker: ShapiqWorker | None, per_player: int) -> None:
    """Print the lines of one number of evaluations a player."""
    budget = per_player * games.n_players
    settings = core.Settings(seed=0, budget=budget, interactions=InteractionRequest("SII"))
    started = time.perf_counter()
    pairs = core.estimate(games, core.OddGP(), settings).interactions
    seconds = time.perf_counter() - started
    assert pairs is not None
    values, errors = pairs.values[:, :, 0], pairs.standard_errors[:, :, 0]
    ours = _error(values, games.truth)
    cover = (np.abs(values - games.truth) <= 1.96 * errors + 1e-9).mean()
    width = errors.mean() / np.abs(games.truth).mean()
    others = dict(_peer_errors(games, worker, budget))
    least = core.LeastSquares()
    if budget >= least.interaction_budget(games.n_players):
        of_least = core.estimate(games, least, settings).interactions
        assert of_least is not None
        others["leastsquares (ours)"] = _error(of_least.values[:, :, 0], games.truth)
    peers = {name: error for name, error in others.items() if name.startswith("shapiq")}
    best = min(peers, key=lambda name: peers[name]) if peers else ""
    ratio = f"{ours / peers[best]:.2f} of {best}" if best else "no peers"
    print(
        f"{games.name:12} {per_player:3}  oddgp {ours:.4f}  ratio {ratio}  cover {cover:.3f}  "
        f"width {width:.3f}  {1e3 * seconds / games.n_rows:.0f} ms a game"
    )
    print(
        "    " + ", ".join(f"{name.removeprefix('shapiq ')} {e:.3f}" for name, e in others.items())
    )


def main() -> None:
    """Print errors, ratios and intervals for all models and budgets."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add_folder_arguments(parser)
    models = ["tanh network", "ReLU network", "trees-13", "trees-30", "adult"]
    parser.add_argument("--model", nargs="+", default=models)
    parser.add_argument("--per-player", nargs="+", type=int, default=[8, 16, 32, 64])
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--quick", action="store_true", help="4 games, two budgets")
    parser.add_argument("--shapiq-python", type=Path, help="a Python that has shapiq; see README")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.per_player = 4, [8, 16]
    worker = ShapiqWorker(arguments.shapiq_python) if arguments.shapiq_python else None
    print(
        f"shapiq {worker.version}" if worker else "No peers: pass --shapiq-python, see README.md."
    )
    for name in arguments.model:
        if name == "adult" and not arguments.data.is_dir():
            print("adult: left out, there is no folder of data; pass --data")
            continue
        games = games_of(name, arguments.rows, arguments)
        for per_player in arguments.per_player:
            compare(games, worker, per_player)
    if worker is not None:
        worker.close()


if __name__ == "__main__":
    main()
