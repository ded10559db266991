"""Estimators for features with neighbours, on graphs and on trees, losing cells first.

    python benchmarks/graphs.py [--parts near trees curves] [--quick] [--docs]

*near*: what a graph of the players adds to `oddgp` on molecules, digits and texts. Errors are root
mean squares over the players; a regression over 2,000 evaluations a player gives the truth, whose
variance is taken off. Ratios are geometric means over the inputs. Falls are the mean log-odds that
the predicted class loses while the players of the largest attributions are taken away, up to half
of them, beside L-Shapley and Myerson values.
*trees*: errors of `hierarchy` and shap's Partition at equal evaluations, on three kinds of games.
Both estimate the Owen values of the same binary tree of 256 players, which are known.
*curves*: how much of a value is taken by the first ten players of an explanation, deleted one after
the other, and how much they give where no others are, on average; 1 is what the ten largest of
converged Shapley values take and give. Beside Partition: shap's KernelExplainer, `oddgp`, and
occlusion, which takes one evaluation a player.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pages
import pandas as pd
import shap
import torch
from data_files import FOLDERS
from games import FloatArray, LargeGame, converged, taken_and_given
from large_models import digit_game, text_game
from neighbour_models import Item, build, log_odds
from peers import Answer, CountedGame, Explain, by_kernel, by_ours, explain, with_tree
from scipy.special import expit
from torch import nn

import shap_ext
from shap_ext import PlayerGraph
from shapley_adapters import PlayerTree
from shapley_adapters.hierarchies.default_trees import tree_of_places

sys.path.append(str(Path(__file__).resolve().parents[1] / "docs" / "examples"))
import molecules

# --- graphs ---

BUDGETS = (2, 4, 8, 16)
_MOST_WORDS, _SQUARE, _OF_CURVES = 60, 4, 8
_METHODS = {
    "`oddgp`": ("oddgp", False),
    "with `graph=`": ("oddgp", True),
    "L-Shapley": ("lshapley", True),
    "Myerson": ("myerson", True),
}
"""Algorithms, and whether they get the graph."""


class Task(NamedTuple):
    """A game, and the graph of its players."""

    values: Callable[[Any], FloatArray]
    graph: PlayerGraph

    def explain(self, method: str, per_player: int) -> FloatArray:
        """Return the values of a method of ours, (M,)."""
        algorithm, has_graph = _METHODS[method]
        given, n = {"graph": self.graph} if has_graph else {}, self.graph.n_players
        explainer = shap.Explainer(
            self.values, np.zeros((1, n)), algorithm=algorithm, seed=0, **given
        )
        return explainer(np.ones((1, n)), max_evals=per_player * n, silent=True).values[0]


def _log_ratio(task: Task, truth: LargeGame, per_player: int) -> float:
    """Return the logarithm of the error with the graph over that without."""
    own = (truth.standard_errors**2).sum()
    without, with_graph = (
        max(((task.explain(method, per_player) - truth.exact) ** 2).sum() - own, own)
        for method in list(_METHODS)[:2]
    )
    return float(np.log(with_graph / without) / 2)


def _fall(task: Task, method: str) -> float:
    """Return the mean fall of the log-odds while the first half of the players is taken away."""
    ranks = np.argsort(np.argsort(-task.explain(method, _OF_CURVES), kind="stable"))
    values = task.values(ranks >= np.arange(task.graph.n_players // 2 + 1)[:, None])
    return float((values[0] - values[1:]).mean())


def _of_item(model: nn.Module, item: Item, graph: PlayerGraph) -> Task:
    """Return the game of an input."""
    with torch.no_grad():
        predicted = int(model(item.inputs).argmax())
    return Task(lambda present: log_odds(model, item, present > 0.5, predicted), graph)


def _texts(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Task]]]:
    for name, key in (("AG's News, words", "ag_news"), ("Yahoo! Answers, words", "yahoo")):
        case = build(key, arguments.data, arguments.cache, 200)
        items = [item for item in case.items if 20 <= item.n_players <= _MOST_WORDS]
        chosen = items[: arguments.inputs]
        tasks = [_of_item(case.model, item, PlayerGraph.line(item.n_players)) for item in chosen]
        yield name, tasks


def _digits(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Task]]]:
    case = build("mnist", arguments.data, arguments.cache, arguments.inputs)
    side = case.items[0].shape[0]
    squares = torch.arange(side) // _SQUARE
    players = (squares[:, None] * (side // _SQUARE) + squares).reshape(-1)
    graph = PlayerGraph.grid((side // _SQUARE, side // _SQUARE))
    items = [
        replace(item, mask=players[item.mask], n_players=graph.n_players) for item in case.items
    ]
    yield "digits, 49 squares", [_of_item(case.model, item, graph) for item in items]


def _molecules(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Task]]]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        all_molecules = molecules.from_mutag(arguments.data / "mutag" / "mutag.npz")
        order = np.random.default_rng(3).permutation(len(all_molecules)).tolist()
        network = molecules.train([all_molecules[place] for place in order[40:]])
    held_out = [all_molecules[place] for place in order[:40]]
    held_out = [one for one in held_out if 14 <= len(one.elements) <= 24]
    yield "MUTAG, atoms", [_of_molecule(network, one) for one in held_out[: arguments.inputs]]


def _of_molecule(network: nn.Module, molecule: molecules.Molecule) -> Task:
    n_atoms = len(molecule.elements)
    sign = 1.0 if float(network(*molecules.together([molecule]))) > 0 else -1.0

    def values(present: Any) -> FloatArray:
        atoms = molecule.atoms[None] * torch.from_numpy(present > 0.5).float()[:, :, None]
        starts = n_atoms * torch.arange(len(present))
        bonds = (molecule.edge_index[:, None] + starts[:, None]).reshape(2, -1)
        numbers = torch.arange(len(present)).repeat_interleave(n_atoms)
        logits = network(atoms.reshape(-1, atoms.shape[2]), bonds, numbers)
        return sign * logits.double().numpy()

    edges = molecule.edge_index.numpy().T
    return Task(values, PlayerGraph.from_edges(n_atoms, edges))


def near(arguments: argparse.Namespace) -> None:
    """Report errors with the graph over those without, and falls of the log-odds."""
    lines = []
    texts = () if arguments.quick else _texts(arguments)
    for name, tasks in (*_molecules(arguments), *_digits(arguments), *texts):
        truths = [converged(task.values, task.graph.n_players) for task in tasks]
        ratios = [
            np.exp(np.mean(list(map(partial(_log_ratio, per_player=each), tasks, truths))))
            for each in BUDGETS
        ]
        falls = (np.mean([_fall(task, method) for task in tasks]) for method in _METHODS)
        shown = " / ".join(pages.short(ratio, 2) for ratio in ratios)
        lines.append((-max(ratios), name, shown, ", ".join(f"{fall:.2f}" for fall in falls)))
    head = [
        f"{arguments.inputs} inputs of each",
        f"ratio at {' / '.join(map(str, BUDGETS))} evaluations per feature",
        f"fall at {_OF_CURVES}: {', '.join(_METHODS)}",
    ]
    pages.report(arguments, "graphs-near", pages.table(head, (line[1:] for line in sorted(lines))))


# --- trees ---

N_PLAYERS, SIDE = 256, 16
_SHOWN = (60, 500, 2000)
"""Evaluations of the page's table."""

Model = Callable[[Any], Any]


def text(rng: np.random.Generator) -> Model:
    """Return a classifier of texts with few heavy words, which interact with their neighbours."""
    words = 0.4 * rng.standard_t(2, size=N_PLAYERS)
    pairs = 0.4 * rng.standard_t(2, size=N_PLAYERS - 1)
    return lambda x: expit(x @ words + (x[:, 1:] * x[:, :-1]) @ pairs - 1)


def image(rng: np.random.Generator) -> Model:
    """Return a classifier that sees five spots, each if half of it is there."""
    y, x = np.mgrid[:SIDE, :SIDE]
    spots = np.empty((5, N_PLAYERS))
    for spot in spots:
        (row, column), width = rng.uniform(2, SIDE - 2, size=2), rng.uniform(1, 2.5)
        spot[:] = np.exp(-((y - row) ** 2 + (x - column) ** 2) / 2 / width**2).ravel()
    spots /= spots.sum(axis=1, keepdims=True)
    weights = 2 * rng.normal(size=5)

    def classifier(z: Any) -> Any:
        seen = z @ spots.T
        return expit(expit(12 * (seen - 0.5)) @ weights + seen @ weights / 2)

    return classifier


def network(rng: np.random.Generator) -> Model:
    """Return a network of one layer, to which all inputs contribute."""
    first = 1.5 * rng.normal(size=(N_PLAYERS, 32)) / np.sqrt(N_PLAYERS)
    second = rng.normal(size=32) / 6
    return lambda x: np.tanh(x @ first) @ second


KINDS = {"text": text, "image": image, "network": network}


def tree_of(kind: str, n_players: int) -> PlayerTree:
    """Return halves of the words, or of the rows and columns of the image in turn."""
    places = np.arange(n_players)
    if kind not in ("image", "digits"):
        return tree_of_places([places], n_players)
    side = int(np.sqrt(n_players))
    quadrants = tree_of_places([places.reshape(side, side)], n_players)
    return PlayerTree.from_linkage(quadrants.to_linkage(n_players))


def trees(arguments: argparse.Namespace) -> None:
    """Print the errors on each kind of game, and how often intervals hold."""
    row, background = np.ones((1, N_PLAYERS)), np.zeros((1, N_PLAYERS))
    lines = []
    for kind, make in KINDS.items():
        clustering = tree_of(kind, N_PLAYERS).to_linkage(N_PLAYERS)
        masker = shap.maskers.Partition(background, clustering=clustering)
        for game in range(1 if arguments.quick else 6):
            model = make(np.random.default_rng(game))
            explainer = shap_ext.HierarchyExplainer(model, masker)
            exact = explainer(row, max_evals=50_000, silent=True).values
            for budget in (60, 125, 250, 500, 1000, 2000):
                theirs = shap.explainers.Partition(model, masker)
                np.random.seed(game)  # noqa: NPY002 # shap breaks ties by it
                other = theirs(row, max_evals=budget, silent=True).values
                for seed in range(4):
                    explainer.seed = 4 * game + seed
                    ours = explainer(row, max_evals=budget, error_bounds=True, silent=True)
                    held = (ours.lower_bounds <= exact) & (exact <= ours.upper_bounds)
                    ratios = (
                        np.linalg.norm(found - exact) / np.linalg.norm(exact)
                        for found in (ours.values, other)
                    )
                    lines.append((kind, budget, *ratios, held.mean()))
    columns = ["game", "evaluations", "hierarchy", "Partition", "held"]
    means = pd.DataFrame(lines, columns=columns).groupby(columns[:2]).mean()
    means["ratio"] = means["hierarchy"] / means["Partition"]
    means = means.sort_values("ratio", ascending=False)
    print(f"\n{means.round(2).to_string()}")
    rows = (
        [kind, f"{budget:,}", *(pages.short(one, 2) for one in row)]
        for (kind, budget), row in means[["hierarchy", "Partition", "held"]].iterrows()
        if budget in _SHOWN
    )
    head = ["game", "evaluations", "`hierarchy`", "Partition", "95 % intervals contain"]
    pages.report(arguments, "graphs-trees", pages.table(head, rows))


# --- curves ---

_OF_TABLE = 2
"""Evaluations a player of the page's table."""


def by_occlusion(game: CountedGame, budget: int, _: int) -> Answer:
    """Explain by what each player takes when it leaves alone; all players or none."""
    n_players = game.game.n_players
    if budget < n_players + 1:
        raise ValueError("fewer evaluations than players")
    found = game(np.vstack([np.ones(n_players), 1 - np.eye(n_players)]))
    return Answer(found[0] - found[1:])


def curves(arguments: argparse.Namespace) -> None:
    """Print deletions and insertions on texts and digits."""
    tasks = [("Yahoo! Answers", text_game, 100), ("IMDB", text_game, 200)]
    tasks.append(("digits", digit_game, 196))
    cells = []
    for task, make, n_players in tasks[: 1 if arguments.quick else None]:
        clustering = tree_of(task, n_players).to_linkage(n_players)
        contenders: dict[str, Explain] = {
            "`hierarchy`": with_tree(shap_ext.HierarchyExplainer, clustering),
            "Partition": with_tree(shap.explainers.Partition, clustering),
            "KernelExplainer": partial(by_kernel, l1_reg="num_features(10)"),
            "`oddgp`": partial(by_ours, "oddgp"),
            "occlusion": by_occlusion,
        }
        games = [make(arguments.data, n_players, seed) for seed in range(arguments.inputs)]
        best = np.mean([taken_and_given(game, game.exact) for game in games], axis=0)
        for each in (0.5, 1, 2, 4, 8):
            budget, line = round(each * n_players), {}
            for name, contender in contenders.items():
                found = [explain(contender, game, budget, seed) for seed, game in enumerate(games)]
                answers = [answer.values for answer in found if answer is not None]
                if len(answers) == len(games):
                    line[name] = np.mean(list(map(taken_and_given, games, answers)), axis=0) / best
            lost = max((one / line["`hierarchy`"]).max() for one in line.values())
            shown = {name: ", ".join(pages.short(o, 2) for o in of) for name, of in line.items()}
            cells.append((lost, each, [f"{task}, {n_players}", f"{budget:,}"], shown))
    cells.sort(key=lambda cell: -cell[0])
    for _, _, head, shown in cells:
        print(*head, shown)
    lines = (
        [*head, *(shown.get(name, "") for name in contenders)]
        for _, each, head, shown in cells
        if each == _OF_TABLE
    )
    table = pages.table(["features", "evaluations", *contenders], lines)
    pages.report(arguments, "graphs-curves", table)


PARTS = {"near": near, "trees": trees, "curves": curves}


def main() -> None:
    """Print the tables."""
    arguments = pages.read_options(__doc__, parts=list(PARTS), inputs=10, **FOLDERS)
    if arguments.quick:
        arguments.inputs = 2
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # small budgets
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
