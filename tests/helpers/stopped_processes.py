"""Streams and trainings in processes that end before a step on disk, started as a script.

The script imports the packages once and forks a process for each attempt, so that a stop costs
milliseconds. It prints as JSON how many steps there are, and whether what went on after each stop
ended with the bytes of what ran without one.

    python stopped_processes.py FOLDER KIND ENDING
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

N_ROWS, N_FEATURES, CHUNK = 12, 8, 4
X = np.random.default_rng(0).normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
REFERENCE = np.zeros((1, N_FEATURES))


def model(x: Any) -> Any:
    """Return outputs of arrays or tensors."""
    return x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] * x[:, 4] + x[:, 5]


def stream_of_shap(out: Path) -> None:
    import shap_ext

    explainer = shap_ext.ShearExplainer(model, REFERENCE, seed=2)
    options: Any = {"checkpoint": True, "chunk_size": CHUNK, "silent": True}
    explainer.explain_stream(iter(X), out, max_evals=80, error_bounds=True, **options)


def stream_of_captum(out: Path) -> None:
    import torch

    import captum_ext

    method = captum_ext.LeastSquares(model, seed=2)
    options: Any = {"checkpoint": True, "chunk_size": CHUNK, "return_standard_error": True}
    method.attribute_stream(iter(torch.from_numpy(X).split(3)), out, n_samples=80, **options)


def training(labels: str, out: Path) -> None:
    """Train with a folder, and write the weights beside what it holds."""
    import shap_ext

    options: Any = {"epochs": 2, "rows_per_step": 4, "seed": 3, "evaluations": 16}
    explainer = shap_ext.SimShapExplainer(
        model, REFERENCE, training_data=X, labels=labels, folder=out, **options
    )
    tensors = explainer.fit(silent=True).trained.network.state_dict().values()
    (out / "weights").write_bytes(b"".join(tensor.numpy().tobytes() for tensor in tensors))


KINDS: dict[str, Callable[[Path], None]] = {
    "stream of shap": stream_of_shap,
    "stream of captum": stream_of_captum,
    "training on oddgp": partial(training, "oddgp"),
    "training on controlled": partial(training, "controlled"),
}


def contents(run: Callable[[Path], None], out: Path) -> dict[str, bytes]:
    """Run, or go on, and return the bytes of the files of the result."""
    run(out)
    names = ["weights"] if (out / "weights").exists() else [path.name for path in out.iterdir()]
    return {name: (out / name).read_bytes() for name in names}


def stopped(run: Callable[[Path], None], out: Path, n_steps: int) -> bool:
    """Run in a process of its own, which ends before one step on disk if there are so many."""
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status not in (0, 9):
            raise RuntimeError(f"step {n_steps} ended with {status}")
        return status == 9
    left, status = n_steps, 1

    def counted(step: Callable) -> Callable:
        def stop_or_step(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                os._exit(9)
            left -= 1
            return step(*arguments, **options)

        return stop_or_step

    try:
        tqdm.set_lock(threading.RLock())  # its own is shared by forked processes
        for name in ("fsync", "replace", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        run(out)
        status = 0
    finally:
        os._exit(status)


def main() -> None:
    """Stop before the first, the second, … step; go on, and compare."""
    folder, kind, ending = sys.argv[1:]
    run, n_steps, is_same = KINDS[kind], 0, True
    wanted = contents(run, Path(folder) / f"whole{ending}")
    while stopped(run, out := Path(folder) / f"step {n_steps}{ending}", n_steps):
        is_same &= contents(run, out) == wanted
        n_steps += 1
    print(json.dumps({"steps": n_steps, "same": is_same}))


if __name__ == "__main__":
    main()
