"""How often exact values lie within the intervals that estimators state.

    python benchmarks/calibration.py [--models adult-elu adult-relu trees] [--rows 40]

For every randomised estimator of ours, the share of exact values within its intervals of 68 % and
of 95 %, and within 1.96 standard errors, which is less where these are told from few draws.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cases import WITH_EXACT_VALUES, add_case_settings, prepare
from coalition_games import FloatArray
from contenders import our_explainer
from explained_models import Case
from scores import standard_error

from shapley_adapters.errors import BudgetError
from shapley_adapters.pipeline.result import quantiles

PER_PLAYER = (8, 16, 32, 64)
ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "oddgp": ("oddgp", {}),
    "oddgp, equal weights": ("oddgp", {"weights": "equal"}),
    "shear": ("shear", {}),
    "randomorder": ("randomorder", {}),
    "randomorder, not antithetic": ("randomorder", {"antithetic": False}),
    "semivalue": ("semivalue", {}),
    "leastsquares, kernel": ("leastsquares", {}),
    "leastsquares, leverage": ("leastsquares", {"sizes": "leverage"}),
    "leastsquares, no replacement": ("leastsquares", {"replacement": False}),
    "leastsquares, unbiased": ("leastsquares", {"unbiased": True}),
    "leastsquares, not paired": ("leastsquares", {"paired": False}),
    "simsemivalue": ("simsemivalue", {}),
    "simsemivalue as printed": ("simsemivalue", {"paired": False, "centred": False}),
}
NOMINAL = {"68 %": (0.60, 0.76), "95 %": (0.90, 0.98)}
"""Between what the share in the intervals has to lie."""

PLAIN = "1.96 errors"

_ROUNDING = 1e-6
"""Of a row's largest value: what may lie between a value known exactly and the estimate. TreeSHAP
gives single precision."""


@dataclass(frozen=True)
class Coverage:
    """How often an estimator's intervals hold the exact values.

    Attributes
    ----------
    model, estimator : str
        Names of both.
    per_player : int
        N, the evaluations per player.
    shares : dict of str to array, (S, R)
        For each nominal share, the share of a row's players that are covered, by seed.
    error_ratio : float
        Root mean square of the errors over that of the standard errors: above 1, the latter are
        too small.
    """

    model: str
    estimator: str
    per_player: int
    shares: dict[str, FloatArray]
    error_ratio: float

    def is_right(self, nominal: str) -> bool:
        """Tell whether the pooled share lies where it has to."""
        least, most = NOMINAL[nominal]
        return bool(least <= self.shares[nominal].mean() <= most)


def main() -> None:
    """Measure all estimators on all models, print the table and save it."""
    started = time.perf_counter()
    arguments = _arguments()
    found: list[Coverage] = []
    for name in arguments.models:
        case = prepare(name, arguments)
        _print_heading(case, arguments.seeds)
        for per_player in arguments.per_player:
            for estimator in arguments.only:
                coverage = _coverage(case, estimator, per_player, arguments.seeds)
                if coverage is not None:
                    found.append(coverage)
                    _print_line(coverage)
    _print_verdict(found)
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "calibration.csv"
    _save(found, path)
    print(f"Saved {path}. Took {time.perf_counter() - started:.0f} seconds.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--models",
        nargs="+",
        choices=WITH_EXACT_VALUES,
        default=("adult-elu", "adult-relu", "trees"),
        metavar="MODEL",
    )
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--per-player", type=int, nargs="+", default=PER_PLAYER, metavar="N")
    names = tuple(ESTIMATORS)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="ESTIMATOR")
    parser.add_argument("--output", type=Path, default=Path("benchmark_output"))
    add_case_settings(parser)
    return parser.parse_args()


def _coverage(case: Case, estimator: str, per_player: int, n_seeds: int) -> Coverage | None:
    budget = per_player * case.explained.n_players + 2
    shape = (n_seeds, *case.shapley.values.shape)
    errors, stated = np.empty((2, *shape))
    widths = {nominal: np.empty(shape) for nominal in NOMINAL}
    for seed in range(n_seeds):
        explainer = our_explainer(case.explained, *ESTIMATORS[estimator], seed)
        try:
            explanation = explainer(
                case.explained.rows, max_evals=budget, error_bounds=True, silent=True
            )
        except BudgetError as refusal:
            print(f"{per_player:>3} {estimator:30} left out: {refusal}", flush=True)
            return None
        errors[seed] = np.abs(explanation.values - case.shapley.values)
        stated[seed] = explanation.error_std
        widths["95 %"][seed] = explanation.upper_bounds - explanation.values
        freedom = explainer.last_estimate.degrees_of_freedom[..., 0]
        widths["68 %"][seed] = quantiles(0.6827, freedom) * explanation.error_std
    rounding = _ROUNDING * np.abs(case.shapley.values).max(axis=1, keepdims=True)
    shares = {
        nominal: (errors <= width + rounding).mean(axis=2)
        for nominal, width in {**widths, PLAIN: 1.96 * stated}.items()
    }
    ratio = float(np.sqrt((errors**2).mean() / (stated**2).mean()))
    return Coverage(case.name, estimator, per_player, shares, ratio)


def _print_heading(case: Case, n_seeds: int) -> None:
    n_rows, n_players = case.shapley.values.shape
    required = ", ".join(
        f"{100 * least:.0f} to {most:.0%} in those of {nominal}"
        for nominal, (least, most) in NOMINAL.items()
    )
    print(
        f"\n{case.title}: {n_rows} rows, {n_seeds} seeds, {n_players} players; exact values by "
        f"{case.shapley.source}. Required: {required}.\n"
        "all: share over rows, players and seeds ± standard error; rows: between which shares the "
        "middle 80 % of the rows lie; errors: root mean square over that of the standard errors."
    )
    titles = "".join(f"{f'{share}: all':>16}{'rows':>12}" for share in (*NOMINAL, PLAIN))
    print(f"{'N':>3} {'estimator':30}{titles}{'errors':>9}")


def _print_line(coverage: Coverage) -> None:
    cells = ""
    for nominal, shares in coverage.shares.items():
        mark = " " if nominal == PLAIN or coverage.is_right(nominal) else "*"
        lower, upper = np.quantile(shares.mean(axis=0), [0.1, 0.9])
        cells += f"{100 * shares.mean():>9.1f}{mark}±{100 * standard_error(shares):4.1f} "
        cells += f"{f'{100 * lower:.0f}–{100 * upper:.0f}':>12}"
    print(
        f"{coverage.per_player:>3} {coverage.estimator:30}{cells}{coverage.error_ratio:>8.2f}",
        flush=True,
    )


def _print_verdict(found: Sequence[Coverage]) -> None:
    """Print what is out of bounds, marked by * above."""
    print()
    for estimator in dict.fromkeys(coverage.estimator for coverage in found):
        own = [coverage for coverage in found if coverage.estimator == estimator]
        n_right = sum(coverage.is_right(nominal) for coverage in own for nominal in NOMINAL)
        print(f"{estimator:30} {n_right} of {len(own) * len(NOMINAL)} shares as required")


def _save(found: Sequence[Coverage], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        columns = ["share", "standard_error", "lowest_tenth_of_rows"]
        titles = [f"{share} {column}" for share in (*NOMINAL, PLAIN) for column in columns]
        writer.writerow(["model", "per_player", "estimator", *titles, "error_ratio"])
        for coverage in found:
            numbers = [
                f"{number:.5g}"
                for shares in coverage.shares.values()
                for number in (
                    shares.mean(),
                    standard_error(shares),
                    np.quantile(shares.mean(axis=0), 0.1),
                )
            ]
            who = [coverage.model, coverage.per_player, coverage.estimator]
            writer.writerow([*who, *numbers, f"{coverage.error_ratio:.5g}"])


if __name__ == "__main__":
    main()
