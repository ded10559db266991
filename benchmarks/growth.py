"""How time and memory grow with rows, players, evaluations, outputs and background rows.

    python benchmarks/growth.py [--quick] [--only SERIES …] [--estimators NAME …] [--players 13]
        [--chunk-size 1000] [--figure FILE] [--limit S] [--cpu]

Each cell explains by shap.Explainer in a process of its own. The model is a product of matrices and
a square, so that nearly all time is ours; its own time is subtracted. Memory is the highest of the
process less that before the call. One size changes at a time, the others are those of DEFAULTS. The
power is that with which our time for all rows grows since the size before: 1 is in proportion. A
series ends where a cell takes longer than the limit or is refused, with the reason. About ten
minutes. With --chunk-size, rows are streamed from a file to a file in such chunks, instead of
explained in one call. With --cpu, the time of the processor is measured, which other programs
change little.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ESTIMATORS = ("randomorder", "leastsquares", "shear", "oddgp")
NETWORK = "simshap"
"""A trained network, which is measured where the command names it."""

OPTIONS: dict[str, dict[str, Any]] = {
    "shear": {"cooperators": "random"},
    NETWORK: {"student": "mlp", "epochs": 5},
}
"""Options of the explainers."""

_MOST_WRITTEN = 10**4
"""Rows that are written to a file at once."""


@dataclass(frozen=True)
class Cell:
    """What is explained by one process.

    Attributes
    ----------
    estimator : str
        The name of the algorithm in shap.
    rows, players, per_player, outputs, background : int
        The sizes; `per_player` counts evaluations.
    chunk_size : int, optional
        Rows of a chunk of a stream; None explains all in one call.
    clock : str
        The function of `time` that measures.
    """

    estimator: str = "oddgp"
    rows: int = 100
    players: int = 13
    per_player: int = 16
    outputs: int = 1
    background: int = 1
    chunk_size: int | None = None
    clock: str = "perf_counter"

    @property
    def budget(self) -> int:
        """Evaluations of a row, with the two end points."""
        return self.per_player * self.players + 2


DEFAULTS = Cell()

SERIES: dict[str, tuple[int, ...]] = {
    "rows": (100, 1_000, 10_000, 100_000, 1_000_000),
    "players": (10, 30, 100, 300, 1_000, 3_000),
    "per_player": (4, 16, 64, 256),
    "outputs": (1, 10, 100),
    "background": (1, 10, 100, 1_000),
}
"""The sizes of each series."""

ROWS_OF_SERIES = {"players": 2, "per_player": 20, "outputs": 20, "background": 20}
"""Rows where another size grows."""

LABELS = {
    "rows": "rows",
    "players": "features (2 rows)",
    "per_player": "evaluations per feature (20 rows)",
    "outputs": "outputs (20 rows)",
    "background": "background rows (20 rows)",
}
"""The axes of the figure."""

QUICK = {"rows": 10_000, "players": 300, "per_player": 64, "outputs": 10, "background": 100}
"""The largest sizes with --quick."""


@dataclass(frozen=True)
class Cost:
    """What a process took.

    Attributes
    ----------
    seconds : float
        The time of the call.
    model_seconds : float
        The time in the model.
    megabytes : float
        The highest memory above that before the call.
    """

    seconds: float
    model_seconds: float
    megabytes: float


class Model:
    """A cheap model that measures its own time."""

    def __init__(self, cell: Cell) -> None:
        rng = np.random.default_rng(0)
        self.weights = rng.normal(size=(cell.players, cell.outputs)) / math.sqrt(cell.players)
        self.clock: Callable[[], float] = getattr(time, cell.clock)
        self.seconds = 0.0

    def __call__(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the outputs, (n, K), or (n,) of one output."""
        started = self.clock()
        outputs: npt.NDArray[Any] = table @ self.weights
        outputs += outputs**2
        self.seconds += self.clock() - started
        return outputs if outputs.shape[1] > 1 else outputs[:, 0]


def measure(cell: Cell) -> Cost:
    """Explain in this process, once."""
    import shap

    import shap_ext  # noqa: F401 # it makes shap know the algorithms

    rng = np.random.default_rng(1)
    background = rng.normal(size=(cell.background, cell.players))
    model = Model(cell)
    options = dict(OPTIONS.get(cell.estimator, {}))
    call: dict[str, Any] = {"max_evals": cell.budget, "silent": True}
    if cell.estimator == NETWORK:
        options["training_data"] = rng.normal(size=(1000, cell.players))
        del call["max_evals"]
    masker = shap.maskers.Independent(background, max_samples=cell.background)  # 100 by default
    explainer = shap.Explainer(model, masker, algorithm=cell.estimator, seed=0, **options)
    if cell.estimator == NETWORK:
        explainer.fit(silent=True)
        model.seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        rows, out = Path(folder) / "rows.npy", Path(folder) / "values.parquet"
        if cell.chunk_size is None:
            table = rng.normal(size=(cell.rows, cell.players))
            explain = partial(explainer, table, **call)
        else:
            write_rows(rows, cell, rng)
            call["chunk_size"] = cell.chunk_size
            explain = partial(explainer.explain_stream, rows, out, **call)
        before, started = _highest_megabytes(), model.clock()
        explain()
        seconds = model.clock() - started
        return Cost(seconds, model.seconds, _highest_megabytes() - before)


def write_rows(path: Path, cell: Cell, rng: np.random.Generator) -> None:
    """Write drawn rows to a file, in parts."""
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (cell.rows, cell.players)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, cell.rows, _MOST_WRITTEN):
            n_rows = min(_MOST_WRITTEN, cell.rows - start)
            rng.normal(size=(n_rows, cell.players)).tofile(file)


def _highest_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cost_in_a_process(cell: Cell, limit: float) -> Cost | str:
    """Explain in a new process; return why there is no cost where there is none."""
    command = [sys.executable, __file__, "--cell", json.dumps(asdict(cell))]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"more than {limit:.0f} s"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


Curve = list[tuple[int, float, float]]
"""Sizes with our milliseconds per row and the megabytes."""


def print_series(name: str, start: Cell, sizes: list[int], limit: float) -> Curve:
    """Print a line for each size, and return the curve."""
    curve: Curve = []
    rows = ROWS_OF_SERIES.get(name, DEFAULTS.rows)
    estimator = start.estimator
    previous: tuple[int, float] | None = None
    power = math.nan
    for size in sizes:
        cell = Cell(**{**asdict(start), "rows": rows, name: size})
        cost = cost_in_a_process(cell, limit)
        if isinstance(cost, str):
            print(f"{estimator:14}{name:>12}{size:>9,}  {cost}", flush=True)
            break
        own = max(cost.seconds - cost.model_seconds, 1e-6)
        if previous is not None:
            power = math.log(own / previous[1]) / math.log(size / previous[0])
        previous = size, own
        curve.append((size, 1e3 * own / cell.rows, cost.megabytes))
        print(
            f"{estimator:14}{name:>12}{size:>9,}{cell.budget:>9,}{cost.seconds:>10.2f}"
            f"{1e3 * own / cell.rows:>12.2f}{cost.megabytes:>10.0f}{power:>8.2f}",
            flush=True,
        )
    return curve


def draw(curves: dict[tuple[str, str], Curve], path: str) -> None:
    """Draw time per row over memory, with a column for each series."""
    import matplotlib.pyplot as plt

    names = [name for name in SERIES if any(name == of_curve for of_curve, _ in curves)]
    figure, axes = plt.subplots(2, len(names), figsize=(3.2 * len(names), 5.5), squeeze=False)
    for (name, estimator), curve in curves.items():
        column = axes[:, names.index(name)]
        sizes, milliseconds, megabytes = zip(*curve, strict=True)
        style = {
            "color": f"C{ESTIMATORS.index(estimator)}",
            "marker": "o",
            "markersize": 3,
        }
        column[0].loglog(sizes, milliseconds, label=estimator, **style)
        column[1].loglog(sizes, np.maximum(megabytes, 1), **style)
        column[1].set_xlabel(LABELS[name])
    axes[0, 0].set_ylabel("our milliseconds per row")
    axes[1, 0].set_ylabel("megabytes")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print the series of each estimator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", choices=SERIES, default=list(SERIES))
    names = (*ESTIMATORS, NETWORK)
    parser.add_argument("--estimators", nargs="+", choices=names, default=list(ESTIMATORS))
    parser.add_argument("--players", type=int, default=DEFAULTS.players, help="if others grow")
    parser.add_argument("--chunk-size", type=int, help="stream in chunks of so many rows")
    parser.add_argument("--cpu", action="store_true", help="the time of the processor")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a process")
    parser.add_argument("--quick", action="store_true", help="without the largest sizes")
    parser.add_argument("--figure", help="a file for the curves")
    arguments = parser.parse_args()
    if arguments.cell:
        print(json.dumps(asdict(measure(Cell(**json.loads(arguments.cell))))))
        return
    print(
        f"{'estimator':14}{'growing':>12}{'size':>9}{'budget':>9}{'s in all':>10}"
        f"{'own ms/row':>12}{'MB':>10}{'power':>8}"
    )
    curves: dict[tuple[str, str], Curve] = {}
    cell = replace(
        DEFAULTS,
        players=arguments.players,
        chunk_size=arguments.chunk_size,
        clock="process_time" if arguments.cpu else "perf_counter",
    )
    for name in arguments.only:
        most = QUICK[name] if arguments.quick else math.inf
        sizes = [size for size in SERIES[name] if size <= most]
        for estimator in arguments.estimators:
            curve = print_series(name, replace(cell, estimator=estimator), sizes, arguments.limit)
            if curve:
                curves[name, estimator] = curve
    if arguments.figure:
        draw(curves, arguments.figure)


if __name__ == "__main__":
    main()
