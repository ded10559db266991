"""How time and memory grow with rows and features.

    python benchmarks/growth.py [--quick] [--parts rows players] [--limit S] [--docs]

Each cell is one call in a process of its own; its memory is the highest of the process less that
before the call. One size changes at a time. The model is a product of a matrix and a square, so
that nearly all time is ours; its own time is subtracted from that of rows. A series ends where a
cell takes longer than the limit or is refused, with the reason. About ten minutes.
"""

import json
import math
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pages
import pandas as pd
import shap

import shap_ext  # noqa: F401 # it makes shap know the algorithms

ESTIMATORS = ("randomorder", "leastsquares", "shear", "oddgp")
OPTIONS = {"shear": {"cooperators": "random"}}
SERIES = {"rows": (100, 1_000, 100_000, 1_000_000), "players": (100, 1_000, 3_000)}
DEFAULTS = {"rows": {"players": 13}, "players": {"rows": 2}}
PER_PLAYER = 16


class Model:
    """A cheap model that measures its own time."""

    def __init__(self, n_players: int) -> None:
        rng = np.random.default_rng(0)
        self.weights = rng.normal(size=(n_players, 1)) / math.sqrt(n_players)
        self.seconds = 0.0

    def __call__(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the outputs, (n,)."""
        started = time.perf_counter()
        outputs: npt.NDArray[Any] = table @ self.weights
        outputs += outputs**2
        self.seconds += time.perf_counter() - started
        return outputs[:, 0]


def measure(cell: dict[str, Any]) -> dict[str, float]:
    """Explain in this process, once; return our seconds, all seconds, and megabytes."""
    estimator, n_players, rng = cell["estimator"], cell["players"], np.random.default_rng(1)
    model, masker = Model(n_players), shap.maskers.Independent(rng.normal(size=(1, n_players)))
    options = OPTIONS.get(estimator, {})
    explainer = shap.Explainer(model, masker, algorithm=estimator, seed=0, **options)
    rows = rng.normal(size=(cell["rows"], n_players))
    before, started = highest_megabytes(), time.perf_counter()
    explainer(rows, max_evals=PER_PLAYER * n_players + 2, silent=True)
    seconds = time.perf_counter() - started
    megabytes = highest_megabytes() - before
    return {"own": seconds - model.seconds, "seconds": seconds, "megabytes": megabytes}


def highest_megabytes() -> float:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured_series(cell: dict[str, Any], sizes: list[int], limit: float) -> list[dict[str, Any]]:
    """Print and return the costs of each size, up to one that takes too long or is refused."""
    found: list[dict[str, Any]] = []
    for size in sizes:
        one = cell | {cell["series"]: size}
        command = [sys.executable, "-W", "ignore", __file__, "--cell", json.dumps(one)]
        head = f"{cell['estimator']:14}{cell['series']:>12}{size:>9,}"
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            print(f"{head}  more than {limit:.0f} s", flush=True)
            break
        if done.returncode:
            print(f"{head}  {done.stderr.strip().splitlines()[-1]}", flush=True)
            break
        cost = json.loads(done.stdout.splitlines()[-1])
        found.append({"estimator": cell["estimator"], "size": size, **cost})
        costs = f"{cost['seconds']:>10.2f}{cost['own']:>10.2f}{cost['megabytes']:>10.0f}"
        print(f"{head}{costs}", flush=True)
    return found


def table_of_costs(name: str, costs: pd.DataFrame) -> str:
    """Return own milliseconds a row, or all seconds, with megabytes, by size and estimator."""
    each = costs["seconds"] if name == "players" else 1e3 * costs["own"] / costs["size"]
    texts = costs.assign(text=each.map(pages.short) + costs["megabytes"].map("; {:,.0f}".format))
    cells = texts.pivot(index="size", columns="estimator", values="text").fillna("")
    cells = cells[[one for one in ESTIMATORS if one in cells]].add_prefix("`").add_suffix("`")
    sizes = [f"{size:,}" for size in cells.index]
    if name == "players":
        cells.insert(0, "evaluations", [f"{PER_PLAYER * size + 2:,}" for size in cells.index])
    first = "features" if name == "players" else "rows"
    return pages.table([first, *cells], cells.set_axis(sizes).itertuples())


def main() -> None:
    """Print the series of each estimator, and the tables."""
    options = pages.read_options(__doc__, cell="", parts=list(SERIES), limit=60.0)
    if options.cell:
        print(json.dumps(measure(json.loads(options.cell))))
        return
    print(f"{'estimator':14}{'growing':>12}{'size':>9}{'s':>10}{'own s':>10}{'MB':>10}")
    for name in options.parts:
        found = []
        for estimator in ESTIMATORS:
            cell = {"estimator": estimator, "series": name, **DEFAULTS[name]}
            sizes = list(SERIES[name])[: 2 if options.quick else None]
            found += measured_series(cell, sizes, options.limit)
        costs = pd.DataFrame(found, columns=["estimator", "size", "own", "seconds", "megabytes"])
        pages.report(options, f"growth-{name}", table_of_costs(name, costs))


if __name__ == "__main__":
    main()
