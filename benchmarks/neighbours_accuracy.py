"""How fast the predicted class loses its odds when the features ranked first are masked.

Figures 2 and 3 of Chen et al. (L-Shapley and C-Shapley, ICLR 2019) in small, at 4 d evaluations:

    python benchmarks/neighbours_accuracy.py [--quick] [--cases imdb mnist]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from data_files import add_folder_arguments
from neighbour_contenders import FloatArray, contenders, log_odds
from neighbour_models import CASES, Case, Item, build
from torch import nn

mpl.use("Agg")
import matplotlib.pyplot as plt

SHARES = np.array([0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
_SHOWN = (0.1, 0.2, 0.3, 0.5)
_PER_PLAYER = 4


@dataclass(frozen=True)
class Curves:
    """What one contender reached on one case.

    Attributes
    ----------
    changes : array, (inputs, shares)
        Log-odds of the predicted class after masking, less those before.
    evaluations : float
        What was spent for a player, on average.
    seconds : float
        Time for an input.
    """

    name: str
    changes: FloatArray
    evaluations: float
    seconds: float

    @property
    def mean(self) -> FloatArray:
        """The mean over inputs."""
        mean: FloatArray = self.changes.mean(axis=0)
        return mean

    @property
    def error(self) -> FloatArray:
        """Its standard error."""
        spread: FloatArray = self.changes.std(axis=0, ddof=1)
        error: FloatArray = spread / np.sqrt(len(self.changes))
        return error


def main() -> None:
    """Run all cases, print the tables, and save the picture."""
    arguments = _arguments()
    torch.set_num_threads(1)
    found: list[tuple[Case, list[Curves]]] = []
    for name in arguments.cases:
        case = build(name, arguments.data, arguments.cache, arguments.inputs)
        print(
            f"\n{case.title}: accuracy {case.accuracy:.3f}, {len(case.items)} inputs of "
            f"{np.mean([item.n_players for item in case.items]):.0f} features on average"
        )
        found.append((case, _run(case, arguments)))
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "neighbours_accuracy.png"
    _draw(found, path)
    print(f"\nSaved {path}.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_folder_arguments(parser)
    parser.add_argument("--output", type=Path, default=Path("benchmark_output"))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--inputs", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="5 inputs of each case")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.inputs = 5
    return arguments


def _run(case: Case, arguments: argparse.Namespace) -> list[Curves]:
    print(f"{'':40}{'evaluations':>12}{'ms':>8}" + "".join(f"{s:>16.0%}" for s in _SHOWN))
    made = []
    for name, explain in contenders(case).items():
        changes, spent = [], []
        seconds = 0.0
        for seed, item in enumerate(case.items):
            started = time.perf_counter()
            # The model's output without and with all features is beside the budget.
            attributions, evaluations = explain(
                case.model, item, _PER_PLAYER * item.n_players + 2, seed
            )
            seconds += time.perf_counter() - started
            changes.append(changes_by_masking(case.model, item, attributions))
            spent.append(evaluations / item.n_players)
        curves = Curves(name, np.array(changes), float(np.mean(spent)), seconds / len(case.items))
        made.append(curves)
        _print_line(curves)
    return made


def changes_by_masking(model: nn.Module, item: Item, attributions: FloatArray) -> FloatArray:
    """Return how the log-odds of the predicted class change, for each share of masked features."""
    ranks = np.argsort(np.argsort(-attributions, kind="stable"), kind="stable")
    present = ranks >= np.round(SHARES * item.n_players)[:, None]
    with torch.no_grad():
        target = int(model(item.inputs).argmax())
    odds = log_odds(model, item, present, target)
    changes: FloatArray = odds - odds[0]
    return changes


def _print_line(curves: Curves) -> None:
    places = [int(np.flatnonzero(share == SHARES)[0]) for share in _SHOWN]
    shown = "".join(f"{curves.mean[p]:>9.2f} ± {curves.error[p]:.2f}" for p in places)
    print(f"{curves.name:40}{curves.evaluations:>12.2f}{1e3 * curves.seconds:>8.0f}{shown}")


def _draw(found: Sequence[tuple[Case, list[Curves]]], path: Path) -> None:
    """Draw a panel for each case; lower is better."""
    figure, panels = plt.subplots(
        1, len(found), figsize=(5 * len(found), 4.5), layout="constrained", squeeze=False
    )
    names = list(dict.fromkeys(curves.name for _, made in found for curves in made))
    handles = {}
    for panel, (case, made) in zip(panels[0], found, strict=True):
        for curves in made:
            handles[curves.name] = panel.errorbar(
                100 * SHARES,
                curves.mean,
                curves.error,
                color=f"C{names.index(curves.name)}",
                capsize=2,
            )
        panel.set_title(f"{case.title}\naccuracy {case.accuracy:.2f}")
        panel.set_xlabel("features masked, %")
    panels[0, 0].set_ylabel("change of the log-odds")
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=5)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
