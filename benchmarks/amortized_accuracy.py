"""How far networks that explain are from the exact values, by what their training spent.

SimSHAP, Figure 2 and Tables 3 to 8 in small, on Adult (13 players), on companies (94 players), on
news articles (57 players) and on digits (49 squares of pixels). FastSHAP takes part twice: as ours,
and as its authors train it (`fastshap_recipe.py`). Evaluations of validation are counted.

    python benchmarks/amortized_accuracy.py [--model table] [--epochs 30] [--only WORD …]

The processor time of both FastSHAPs, in a minute:

    python benchmarks/amortized_accuracy.py --model adult-elu --rows 1000 --test-rows 4 \
        --epochs 10 --seeds 0 1 2 --only FastSHAP --networks-only
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shap
import torch
from amortized_cases import TEST_ROWS, AmortizedCase, prepare_amortized
from cases import add_case_settings
from coalition_games import FloatArray
from contenders import our_explainer
from core_games import CoreGame
from explained_models import ExplainedModel
from scipy.special import expit
from trained_contenders import FASTSHAP, Trainer, contenders

from shapley_adapters.criteria import deletion_curve, insertion_curve

_PER_PLAYER = (3, 4, 6, 8, 16, 32)
_KERNEL = "kernel"
_PERMUTATION = "shap permutation"
_ODDGP = "oddgp, equal weights"
"""Learning the weights of each row takes longer than all else here where there are many players."""

_QUICK = {"rows": 300, "test_rows": 8, "epochs": 3, "converged_evaluations": 2000}


@dataclass(frozen=True)
class Learned:
    """A trained network.

    Attributes
    ----------
    name : str
        What tables call it.
    seed : int
        Seed of the training.
    error, l2 : float
        Means over test rows of Σ|φ̂ − φ| and of √Σ(φ̂ − φ)².
    evaluations, validation_evaluations : int
        All evaluations of the training, and those of them that validation took.
    training_seconds, validation_seconds : float
        Time of the processor for the training, and for validation in it.
    seconds : float
        Time of a pass for a row.
    areas : str
        Areas under the curves of insertion and deletion; empty for tables.
    """

    name: str
    seed: int
    error: float
    l2: float
    evaluations: int
    validation_evaluations: int
    training_seconds: float
    validation_seconds: float
    seconds: float
    areas: str = ""


@dataclass(frozen=True)
class Curve:
    """An estimator over budgets: evaluations, errors and seconds a row."""

    name: str
    budgets: list[int]
    errors: list[float]
    seconds: list[float]


def main() -> None:
    """Train all contenders, and print their errors beside those of estimators row by row."""
    arguments = _arguments()
    torch.set_num_threads(1)
    amortized = prepare_amortized(arguments)
    case = amortized.case
    exact = case.shapley.values
    size = float(np.abs(exact).sum(axis=1).mean())
    print(
        f"{case.title}: {case.explained.n_players} players, {len(amortized.rows)} training rows, "
        f"{len(exact)} test rows ({case.shapley.source}), {arguments.epochs} epochs, one thread.\n"
        f"l1, l2: mean over test rows of Σ|φ̂ − φ| and of √Σ(φ̂ − φ)². Mean Σ|φ|: {size:.2f}; "
        "relative: l1 divided by it.\n"
        "evaluations: all of them, and how many validation took (share of those for training). "
        "seconds: of the processor."
    )
    if case.shapley.absolute_error > 0:
        print(f"The values themselves are known to a Σ of {case.shapley.absolute_error:.3f}.")
    judge = _Judge(case.explained) if amortized.is_image else None
    learned = _all_learned(arguments, amortized, judge)
    _print_comparison(learned)
    _print_learned(learned, size)
    if arguments.networks_only:
        return
    per_player = _PER_PLAYER[:2] if arguments.quick else _PER_PLAYER
    print("\nEstimators, one row after the other")
    curves = [
        _estimators(name, amortized, judge, per_player)
        for name in (_KERNEL, _PERMUTATION, "leastsquares", _ODDGP)
    ]
    for one in learned:
        _compare_with_kernel(one, curves[0])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=tuple(TEST_ROWS), default="adult-elu")
    add_case_settings(parser)
    parser.add_argument("--rows", type=int, help="training rows; 8000 of Adult, else all")
    parser.add_argument("--test-rows", type=int)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of training")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="contenders by parts of names")
    parser.add_argument("--networks-only", action="store_true", help="no estimators row by row")
    parser.add_argument("--results", type=Path, help="a file that keeps what has been measured")
    parser.add_argument("--quick", action="store_true", help="few rows and epochs, to try it out")
    arguments = parser.parse_args()
    if arguments.quick:
        vars(arguments).update(_QUICK)
    if arguments.rows is None and arguments.model.startswith("adult"):
        arguments.rows = 8000
    return arguments


def _all_learned(
    arguments: argparse.Namespace, amortized: AmortizedCase, judge: _Judge | None
) -> list[Learned]:
    """Train all contenders with all seeds; those in the file of results are not trained again."""
    chosen = {
        name: train
        for name, train in contenders(amortized, arguments.epochs).items()
        if not arguments.only or any(word in name for word in arguments.only)
    }
    of_run = [arguments.model, len(amortized.rows), len(amortized.case.explained.rows)]
    kept = _read(arguments.results)
    learned = []
    for seed in arguments.seeds:
        for name, train in chosen.items():
            key = json.dumps([*of_run, arguments.epochs, seed, name])
            if key not in kept:
                kept[key] = asdict(_learned(name, train, amortized, seed, judge))
                if arguments.results is not None:
                    arguments.results.write_text(json.dumps(kept, indent=1))
            learned.append(Learned(**kept[key]))
    return learned


def _read(results: Path | None) -> dict[str, Any]:
    if results is None or not results.is_file():
        return {}
    kept: dict[str, Any] = json.loads(results.read_text())
    return kept


def _learned(
    name: str, train: Trainer, amortized: AmortizedCase, seed: int, judge: _Judge | None
) -> Learned:
    """Train a contender, and measure its errors on the test rows."""
    explainer = train(amortized, seed)
    values = explainer.explain()
    l1, l2 = _errors(values, amortized.case.shapley.values)
    return Learned(
        name,
        seed,
        l1,
        l2,
        explainer.evaluations,
        explainer.validation_evaluations,
        explainer.seconds,
        explainer.validation_seconds,
        _seconds(explainer.stream) / min(len(amortized.rows), 4096),
        "" if judge is None else judge.line(values),
    )


def _print_comparison(learned: list[Learned]) -> None:
    """Print errors over that of the best FastSHAP of the same seed, the largest ratio first."""
    rivals = [one for one in learned if one.name.startswith(FASTSHAP)]
    if not rivals:
        return
    print("\nError over that of the best FastSHAP, ours or by the authors' recipe")
    print(f"{'contender':52}{'seed':>5}{'ratio':>8}{'evaluations':>13}  best FastSHAP")
    lines = []
    for one in learned:
        of_seed = [rival for rival in rivals if rival.seed == one.seed]
        if one in rivals or not of_seed:
            continue
        best = min(of_seed, key=lambda rival: rival.error)
        spent = one.evaluations / best.evaluations
        lines.append((one.error / best.error, spent, one, best.name))
    for ratio, spent, one, best_name in sorted(lines, key=lambda line: -line[0]):
        verdict = "  WORSE" if ratio > 1 else ""
        print(f"{one.name:52}{one.seed:5d}{ratio:8.2f}{spent:13.2f}  {best_name}{verdict}")


def _print_learned(learned: list[Learned], size: float) -> None:
    """Print costs and errors of all trainings, the largest error first."""
    print(
        f"\n{'contender':52}{'seed':>5}{'l1':>8}{'relative':>9}{'l2':>8}{'evaluations':>13}", end=""
    )
    print(f"{'validation':>18}{'seconds':>9}{'validation':>14}{'µs a row':>10}", end="")
    print("  insertion  deletion" if any(one.areas for one in learned) else "")
    for one in sorted(learned, key=lambda one: -one.error):
        of_training = one.evaluations - one.validation_evaluations
        evaluations = (
            f"{one.validation_evaluations:,} ({one.validation_evaluations / of_training:.3f})"
        )
        training_seconds = one.training_seconds - one.validation_seconds
        seconds = f"{one.validation_seconds:.1f} ({one.validation_seconds / training_seconds:.3f})"
        print(
            f"{one.name:52}{one.seed:5d}{one.error:8.3f}{one.error / size:9.3f}{one.l2:8.3f}"
            f"{one.evaluations:13,}{evaluations:>18}{one.training_seconds:9.1f}{seconds:>14}"
            f"{one.seconds * 1e6:10.1f}{one.areas}"
        )


def _estimators(
    name: str, amortized: AmortizedCase, judge: _Judge | None, all_per_player: tuple[int, ...]
) -> Curve:
    """Print errors and times of an estimator over budgets."""
    explained, exact = amortized.case.explained, amortized.case.shapley.values
    budgets, errors, paces = [], [], []
    if name == _PERMUTATION:  # it compiles on its first call
        _shap_s_own(name, explained, all_per_player[0] * explained.n_players)
    for per_player in all_per_player:
        budget = per_player * explained.n_players + 2
        started = time.perf_counter()
        if name in (_KERNEL, _PERMUTATION):
            values = _shap_s_own(name, explained, budget)
        else:
            options = {"weights": "equal"} if name == _ODDGP else {}
            explainer = our_explainer(explained, name.split(",", maxsplit=1)[0], options, 0)
            values = explainer(explained.rows, max_evals=budget, silent=True).values
        seconds = (time.perf_counter() - started) / len(exact)
        l1, l2 = _errors(values, exact)
        print(f"{name:44}{budget:12d}{l1:8.3f}{l2:8.3f}{'':12}{seconds * 1e6:10.1f}", end="")
        print("" if judge is None else judge.line(values), flush=True)
        budgets.append(budget)
        errors.append(l1)
        paces.append(seconds)
    return Curve(name, budgets, errors, paces)


def _shap_s_own(name: str, explained: ExplainedModel, budget: int) -> FloatArray:
    """Explain with shap's explainers, which know no groups: of a table of row numbers."""
    numbers = np.arange(1.0, len(explained.rows) + 1)[:, None]
    table = np.tile(numbers, (1, explained.n_players))

    def model(x: FloatArray) -> FloatArray:
        present = x > 0
        row = np.maximum(x.max(axis=1).astype(int) - 1, 0)
        columns = present[:, explained.player_of_column]
        masked = np.where(columns, explained.rows[row], explained.reference)
        values: FloatArray = explained.model.predict(masked).reshape(len(x), -1)[:, 0]
        return values

    background = np.zeros((1, explained.n_players))
    if name == _KERNEL:
        np.random.seed(0)  # noqa: NPY002  it draws from the global generator
        explainer = shap.KernelExplainer(model, background)
        values = explainer.shap_values(table, nsamples=budget - 2, l1_reg=False, silent=True)
        return np.asarray(values, dtype=np.float64)
    masker = shap.maskers.Independent(background)
    explainer = shap.PermutationExplainer(model, masker, seed=0)
    values = explainer(table, max_evals=budget, silent=True).values
    return np.asarray(values, dtype=np.float64)


class _Judge:
    """The probability of the class that the model predicts as squares come and go.

    Attributes
    ----------
    signs : array, (R, 1)
        1 where the explained margin is positive, −1 where the other class is predicted.
    """

    def __init__(self, explained: ExplainedModel) -> None:
        game = explained.evaluated()
        self.signs = np.where(explained.model.predict(explained.rows) > 0, 1.0, -1.0)[:, None]
        self.game = CoreGame(
            lambda rows, S: expit(self.signs[rows, 0] * game.of_pairs(rows, S)),
            explained.n_players,
            len(explained.rows),
        )

    def line(self, values: FloatArray) -> str:
        """Return the mean areas under the two curves."""
        ours = values * self.signs
        inserted, deleted = insertion_curve(ours, self.game), deletion_curve(ours, self.game)
        return f"{inserted.area.mean():11.3f}{deleted.area.mean():10.3f}"


def _errors(values: FloatArray, exact: FloatArray) -> tuple[float, float]:
    gap = values - exact
    return float(np.abs(gap).sum(axis=1).mean()), float(np.sqrt((gap**2).sum(axis=1)).mean())


def _seconds(explain: Callable[[], object]) -> float:
    times = []
    for _ in range(7):
        started = time.perf_counter()
        explain()
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def _compare_with_kernel(one: Learned, kernel: Curve) -> None:
    """Say how much faster a network is than the kernel explainer with an error no smaller.

    Of the budgets that were tried, the largest with which the kernel explainer errs more: one that
    matched the error exactly would take longer.
    """
    worse = [place for place, error in enumerate(kernel.errors) if error >= one.error]
    if not worse:
        print(f"{one.name}: shap's kernel explainer errs less at all budgets.")
        return
    at = max(worse, key=lambda place: kernel.budgets[place])
    factor = kernel.seconds[at] / one.seconds
    print(
        f"{one.name}: at least {factor:,.0f} times faster a row than shap's kernel explainer at "
        f"matched error ({kernel.errors[at]:.3f} with {kernel.budgets[at]} evaluations)."
    )


if __name__ == "__main__":
    main()
