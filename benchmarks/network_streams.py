"""Rows from Parquet, attributions to Parquet, by a trained network: rows per second, and memory.

The explained model is a small network of torch, the explainer a SimSHAP network of two layers of
256. Each case runs in a process of its own, whose peak of resident memory is printed; training is
not timed. "rows" of `batch_function` are read and written by pyarrow, as engines do.

    python benchmarks/network_streams.py [--quick] [--chunk-sizes 1000 8192]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

N_FEATURES = 20
N_ROWS = (10**4, 10**5, 10**6)
QUICK = (10**3, 10**4)
WAYS = ("shap, efficient", "shap, network alone", "captum, efficient", "batch_function, efficient")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    parser.add_argument("--chunk-sizes", nargs="+", type=int, default=[1000, 8192])
    parser.add_argument("--rows", nargs="+", type=int, default=N_ROWS)
    parser.add_argument("--ways", nargs="+", default=WAYS)
    parser.add_argument("--case", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        rows, out, way, chunk_size = arguments.case
        print(json.dumps(measured(Path(rows), Path(out), way, int(chunk_size))))
        return
    print(f"{'call':<28}{'rows':>9}{'chunk':>7}{'seconds':>9}{'rows a second':>15}{'peak MB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in QUICK if arguments.quick else arguments.rows:
            rows = Path(folder) / f"{n_rows}.parquet"
            write_rows(rows, n_rows)
            for way in arguments.ways:
                for size in arguments.chunk_sizes:
                    report(way, n_rows, size, in_process(rows, way, size))


def report(way: str, n_rows: int, chunk_size: int, found: dict[str, float]) -> None:
    seconds, peak = found["seconds"], found["peak_mb"]
    pace = f"{seconds:>9.1f}{n_rows / seconds:>15,.0f}{peak:>9.0f}"
    print(f"{way:<28}{n_rows:>9,}{chunk_size:>7,}{pace}", flush=True)


def in_process(rows: Path, way: str, chunk_size: int) -> dict[str, float]:
    """Return the time and the peak of memory of one case, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=rows.parent) as folder:
        case = ["--case", str(rows), f"{folder}/values.parquet", way, str(chunk_size)]
        done = subprocess.run(
            [sys.executable, __file__, *case], check=True, capture_output=True, text=True
        )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def write_rows(path: Path, n_rows: int) -> None:
    """Write rows to a Parquet file, in parts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{number}", pa.float32()) for number in range(N_FEATURES)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, 10**4):
            shape = (N_FEATURES, min(10**4, n_rows - start))
            columns = list(rng.normal(size=shape).astype(np.float32))
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def measured(rows: Path, out: Path, way: str, chunk_size: int) -> dict[str, float]:
    """Explain the rows of a file, and return the seconds and the peak of memory."""
    explain = prepared(way, chunk_size)
    started = time.perf_counter()
    explain(rows, out)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": time.perf_counter() - started, "peak_mb": peak / 1024}


def prepared(way: str, chunk_size: int) -> Any:
    """Train a network, and return what explains the rows of a file."""
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(N_FEATURES, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
    ).eval()
    training = np.random.default_rng(1).normal(size=(1000, N_FEATURES)).astype(np.float32)
    host, kind = way.split(", ")
    is_efficient = kind == "efficient"
    if host == "captum":
        return of_captum(net, training, is_efficient, chunk_size)
    return of_shap(net, training, is_efficient, chunk_size, host)


def of_captum(net: Any, training: Any, is_efficient: bool, chunk_size: int) -> Any:
    import torch

    import captum_ext

    method = captum_ext.SimShap(net, student="mlp", epochs=5, seed=0, efficient=is_efficient)
    method.fit(torch.as_tensor(training))
    return lambda rows, out: method.attribute_stream(rows, out, chunk_size=chunk_size)


def of_shap(net: Any, training: Any, is_efficient: bool, chunk_size: int, how: str) -> Any:
    import pandas as pd
    import shap

    import shap_ext  # noqa: F401  adds the algorithms

    background = np.zeros((1, N_FEATURES), dtype=np.float32)
    options: dict[str, Any] = {"training_data": training, "epochs": 5, "efficient": is_efficient}
    options |= {"algorithm": "simshap", "student": "mlp", "seed": 0}
    explainer = shap.Explainer(net, background, **options).fit()
    if how == "shap":
        return lambda rows, out: explainer.explain_stream(
            rows, out, chunk_size=chunk_size, silent=True
        )
    example = pd.DataFrame(training[:1], columns=[f"x{number}" for number in range(N_FEATURES)])
    explain = explainer.batch_function(example)
    return lambda rows, out: map_batches(explain, rows, out, chunk_size)


def map_batches(explain: Any, rows: Path, out: Path, chunk_size: int) -> None:
    """Apply a function to the batches of a file, one after another."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(out, explain.arrow_schema) as writer:
        for batch in batches_of(rows, chunk_size):
            writer.write_batch(explain(batch))


def batches_of(rows: Path, chunk_size: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(rows) as file:
        yield from file.iter_batches(chunk_size)


if __name__ == "__main__":
    main()
