"""The memory and the time of streams: rows from a file, values to a file, in bounded memory.

Each case runs in a process of its own, whose peak of resident memory is printed. The model is
cheap and the budget small, because only memory that grows with the rows is of interest.

    python benchmarks/streams.py [--quick] [--formats npz parquet csv]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

CASES = {
    "10⁶ rows × 13 features": (10**6, 13, 32),
    "10⁴ rows × 1,000 features": (10**4, 1000, 200),
    "50 rows × 1,000 features": (50, 1000, 16_000),
}
"""Rows, features and budget. The last has the default budget of so many features."""

QUICK = {
    "10⁴ rows × 13 features": (10**4, 13, 32),
    "20 rows × 1,000 features": (20, 1000, 200),
}
LIMIT_MB = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    parser.add_argument("--formats", nargs="+", default=["npz", "parquet"])
    parser.add_argument("--case", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        path, out, budget, how = arguments.case
        print(json.dumps(measured(Path(path), Path(out), int(budget), how)))
        return
    print(f"{'case':<28}{'budget':>7}  {'call':<10}{'seconds':>9}{'peak MB':>9}")
    for name, (n_rows, n_features, budget) in (QUICK if arguments.quick else CASES).items():
        for how in [*arguments.formats, "one call"]:
            found = in_process(n_rows, n_features, budget, how)
            is_over = how != "one call" and found["peak_mb"] >= LIMIT_MB
            numbers = f"{found['seconds']:>9.1f}{found['peak_mb']:>9.0f}"
            print(f"{name:<28}{budget:>7}  {how:<10}{numbers}{'  OVER 1 GB' * is_over}")


def in_process(n_rows: int, n_features: int, budget: int, how: str) -> dict[str, float]:
    """Return the time and the peak of memory of one case, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        write_rows(rows, n_rows, n_features)
        out = Path(folder) / f"values.{how.replace(' ', '_')}"
        case = ["--case", str(rows), str(out), str(budget), how]
        done = subprocess.run(
            [sys.executable, __file__, *case], check=True, capture_output=True, text=True
        )
        return dict(json.loads(done.stdout))


def write_rows(path: Path, n_rows: int, n_features: int) -> None:
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, "w+", np.float64, (n_rows, n_features))
    for start in range(0, n_rows, 10**4):
        part = rows[start : start + 10**4]
        part[:] = rng.normal(size=part.shape)
    rows.flush()


def measured(path: Path, out: Path, budget: int, how: str) -> dict[str, float]:
    """Explain the rows of a file, and return the seconds and the peak of memory."""
    import shap

    import shap_ext  # noqa: F401  adds the algorithms

    rows = np.load(path, mmap_mode="r")
    background = np.zeros((1, rows.shape[1]))
    options = {"unbiased": True}  # it takes the smallest budgets
    explainer = shap.Explainer(cheap, background, algorithm="leastsquares", seed=0, **options)
    arguments = {"max_evals": budget, "silent": True}
    started = time.perf_counter()
    if how == "one call":
        explainer(np.asarray(rows), **arguments)
    else:
        stream = explainer.explain_stream(path, out, **arguments)
        if stream.n_rows != len(rows):
            raise RuntimeError(f"{stream.n_rows} rows were explained, not {len(rows)}.")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": time.perf_counter() - started, "peak_mb": peak / 1024}


def cheap(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the product of two columns, plus a third one."""
    values: npt.NDArray[np.float64] = X[:, 0] * X[:, 1] + X[:, 2]
    return values


if __name__ == "__main__":
    main()
