"""How far networks that explain are from the exact values, by what their training spent.

SimSHAP, Figure 2 and Tables 3 to 8 in small, on Adult (13 players), on companies (94 players) and
on digits (49 squares of pixels):

    python tests/benchmarks/amortized_accuracy.py [--model table] [--epochs 30] [--only WORD …]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import shap
import torch
from amortized_cases import TEST_ROWS, AmortizedCase, prepare_amortized
from amortized_figure import Curve, Learned, draw
from cases import add_case_settings
from coalition_games import FloatArray
from contenders import our_explainer
from core_games import CoreGame
from explained_models import ExplainedModel
from scipy.special import expit

import shap_ext
from shap_ext.explainers.amortized_explainer import AmortizedExplainer
from shapley_adapters.criteria import deletion_curve, insertion_curve

_PER_PLAYER = (3, 4, 6, 8, 16, 32)
_WIDE = "labels 1/10, three layers of 512"
_KERNEL = "kernel"
_PERMUTATION = "shap permutation"
_ODDGP = "oddgp, equal weights"
"""Learning the weights of each row takes longer than all else here where there are many players."""


def main() -> None:
    """Train all contenders, and print their errors beside those of estimators row by row."""
    arguments = _arguments()
    torch.set_num_threads(1)
    amortized = prepare_amortized(arguments)
    case = amortized.case
    exact = case.shapley.values
    print(
        f"{case.title}: {case.explained.n_players} players, {len(amortized.rows)} training rows, "
        f"{len(exact)} test rows ({case.shapley.source}), {arguments.epochs} epochs, one thread.\n"
        f"evaluations: coalitions a training row. l1, l2: mean over test rows of Σ|φ̂ − φ| and of "
        f"√Σ(φ̂ − φ)². Mean Σ|φ|: {np.abs(exact).sum(axis=1).mean():.2f}."
    )
    if case.shapley.absolute_error > 0:
        print(f"The values themselves are known to a Σ of {case.shapley.absolute_error:.3f}.")
    judge = _Judge(case.explained) if amortized.is_image else None
    print(f"\n{'contender':44}{'evaluations':>12}{'l1':>8}{'l2':>8}{'training s':>12}", end="")
    print(f"{'µs a row':>10}{'' if judge is None else '  insertion  deletion'}")
    learned = [
        _learned(name, kind, options, arguments, amortized, judge)
        for name, kind, options in _contenders(arguments, amortized)
        if not arguments.only or any(word in name for word in arguments.only)
    ]
    _verdicts({one.name: one.error for one in learned})
    print("\nEstimators, one row after the other")
    curves = [
        _estimators(name, amortized, judge)
        for name in (_KERNEL, _PERMUTATION, "leastsquares", _ODDGP)
    ]
    for one in learned:
        _compare_with_kernel(one, curves[0])
    if arguments.figure is not None:
        draw(learned, curves, case.title, arguments.figure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=tuple(TEST_ROWS), default="adult-elu")
    add_case_settings(parser)
    parser.add_argument("--rows", type=int, help="training rows; 8000 of Adult, else all")
    parser.add_argument("--test-rows", type=int)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0, help="of training")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="contenders by parts of names")
    parser.add_argument("--figure", type=Path, help="where to draw the curves")
    arguments = parser.parse_args()
    if arguments.rows is None and arguments.model.startswith("adult"):
        arguments.rows = 8000
    return arguments


def _contenders(
    arguments: argparse.Namespace, amortized: AmortizedCase
) -> list[tuple[str, type[AmortizedExplainer], dict[str, Any]]]:
    """Return name, class and options; the first five spend the same."""
    sim, fast = shap_ext.SimShapExplainer, shap_ext.FastShapExplainer
    per_epoch = _evaluations_per_epoch(arguments, amortized)
    in_all = per_epoch * arguments.epochs
    n_mixed = 9 * len(amortized.rows)
    paper = {"labels": "simsemivalue", "evaluations": per_epoch}
    wide = {"network_options": {"widths": (512,) * 3}}
    found: list[tuple[str, type[AmortizedExplainer], dict[str, Any]]] = [
        ("FastSHAP", fast, {"evaluations": per_epoch}),
        ("SimSHAP as in the paper", sim, paper),
        ("SimSHAP, control variate", sim, paper | {"labels": "controlled"}),
        ("SimSHAP, oddgp labels", sim, {"evaluations": in_all}),
        (
            "SimSHAP, oddgp labels, mixed rows",
            sim,
            {"evaluations": in_all // 10, "n_mixed_rows": n_mixed},
        ),
        ("SimSHAP, oddgp labels, 1/10", sim, {"evaluations": in_all // 10}),
        (
            "SimSHAP, least-squares labels, 1/10",
            sim,
            {"evaluations": in_all // 10, "labels": "leastsquares"},
        ),
        ("paper, not in pairs", sim, paper | {"paired": False}),
        ("paper, 8 coalitions a row and epoch", sim, paper | {"evaluations": 8}),
        ("paper, 256 rows a step", sim, paper | {"rows_per_step": 256}),
        ("paper, learning rate 3e-4", sim, paper | {"learning_rate": 3e-4}),
        (
            "labels 1/10, learning rate 3e-4",
            sim,
            {"evaluations": in_all // 10, "learning_rate": 3e-4},
        ),
        (_WIDE, sim, {"evaluations": in_all // 10} | wide),
    ]
    return [one for one in found if one[0] != _WIDE or not amortized.is_image]


def _evaluations_per_epoch(arguments: argparse.Namespace, amortized: AmortizedCase) -> int:
    """Return 32, or as many as make a tenth of all enough for least squares."""
    least = 2 * amortized.case.explained.n_players + 4
    epochs: int = arguments.epochs
    return max(32, -(-10 * least // epochs))


def _learned(
    name: str,
    kind: type[AmortizedExplainer],
    options: dict[str, Any],
    arguments: argparse.Namespace,
    amortized: AmortizedCase,
    judge: _Judge | None,
) -> Learned:
    """Train a contender, and print its line."""
    explained, exact = amortized.case.explained, amortized.case.shapley.values
    started = time.perf_counter()
    explainer = kind(
        explained.model,
        explained.reference,
        feature_names=explained.column_names,
        groups=explained.groups,
        training_data=amortized.rows,
        epochs=arguments.epochs,
        seed=arguments.seed,
        **amortized.options,
        **options,
    ).fit()
    seconds = time.perf_counter() - started
    values = explainer(explained.rows, silent=True).values
    many = amortized.rows[:4096]
    pace = _seconds(lambda: explainer.stream(many, silent=True)) / len(many)
    trained = explainer.trained.trained
    spent = trained.evaluations / len(amortized.rows)
    l1, l2 = _errors(values, exact)
    print(f"{name:44}{spent:12.0f}{l1:8.3f}{l2:8.3f}{seconds:12.0f}{pace * 1e6:10.1f}", end="")
    print("" if judge is None else judge.line(values), flush=True)
    return Learned(name, l1, pace, [record.absolute_error for record in trained.history])


def _estimators(name: str, amortized: AmortizedCase, judge: _Judge | None) -> Curve:
    """Print errors and times of an estimator over budgets."""
    explained, exact = amortized.case.explained, amortized.case.shapley.values
    budgets, errors, paces = [], [], []
    if name == _PERMUTATION:  # it compiles on its first call
        _shap_s_own(name, explained, _PER_PLAYER[0] * explained.n_players)
    for per_player in _PER_PLAYER:
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


def _verdicts(errors: dict[str, float]) -> None:
    """Compare with FastSHAP where both took part."""
    for name, at, wanted in (
        ("SimSHAP, oddgp labels, 1/10", "a tenth of its evaluations", 1.0),
        ("SimSHAP, oddgp labels, mixed rows", "equal evaluations", 0.5),
    ):
        if {name, "FastSHAP"} <= errors.keys():
            ratio = errors[name] / errors["FastSHAP"]
            verdict = "met" if ratio <= wanted else "MISSED"
            print(f"Error over FastSHAP's at {at}: {ratio:.2f}, at most {wanted}: {verdict}.")


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
