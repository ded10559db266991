"""Trainings in processes that are killed, started by the tests as a script.

Prints as JSON how many attempts were killed, and whether each training that was resumed ended with
the weights of one without a stop. Every third attempt is stopped by Ctrl-C (SIGINT) instead.

    python killed_trainings.py FOLDER HOST LABELS N SEED
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import shapley_adapters.amortized.amortized  # noqa: F401  here, so that no attempt spends its time on it
from tests.helpers.killed_streams import forked, status_of

N_FEATURES = 5
X = np.random.default_rng(0).normal(size=(120, N_FEATURES)).astype(np.float32)
OPTIONS: dict[str, Any] = {"epochs": 25, "rows_per_step": 16, "seed": 3, "evaluations": 16}
INTERRUPTED = 77
"""The status of a process that ends by KeyboardInterrupt."""


def trainings_of_shap(labels: str) -> Callable:
    import shap_ext

    def model(x):
        return np.tanh(x).sum(axis=1) + x[:, 0] * x[:, 1]

    def train(folder):
        explainer = shap_ext.SimShapExplainer(
            model, X[:1] * 0, training_data=X, labels=labels, folder=folder, **OPTIONS
        )
        return explainer.fit(silent=True).trained

    return train


def trainings_of_captum(labels: str) -> Callable:
    import torch

    import captum_ext

    def model(x):
        return torch.tanh(x).sum(dim=1) + x[:, 0] * x[:, 1]

    def train(folder):
        method = captum_ext.SimShap(model, labels=labels, folder=folder, **OPTIONS)
        return method.fit(torch.as_tensor(X)).trained

    return train


def weights(trained: Any) -> bytes:
    tensors = trained.trained.network.state_dict().values()
    return b"".join(tensor.numpy().tobytes() for tensor in tensors)


def written(train: Callable, folder: Path, result: Path) -> None:
    """Train, and write the weights; say by the status whether Ctrl-C arrived as it should."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result.write_bytes(weights(train(folder)))
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)


def main() -> None:
    folder, host, labels, n, seed = sys.argv[1:]
    train = {"shap": trainings_of_shap, "captum": trainings_of_captum}[host](labels)
    result = Path(folder) / "weights"
    started = time.perf_counter()
    if status_of(forked(partial(written, train, Path(folder) / "whole", result))) != 0:
        raise RuntimeError("the uninterrupted training failed")
    seconds = time.perf_counter() - started
    wanted = result.read_bytes()
    print(json.dumps(killed(train, Path(folder), int(n), int(seed), seconds, wanted)))


def killed(
    train: Callable, folder: Path, n: int, seed: int, seconds: float, wanted: bytes
) -> dict[str, Any]:
    """Stop trainings until `n` stops have hit, and compare each that ends."""
    rng = np.random.default_rng(seed)
    counts = {"killed": 0, "interrupted": 0, "finished": 0, "resumed": 0}
    is_same, attempt = True, 0
    while counts["killed"] + counts["interrupted"] < n or not counts["finished"]:
        of_training = folder / f"training {counts['finished']}"
        result = folder / "weights of attempt"
        child = forked(partial(written, train, of_training, result))
        kind = signal.SIGINT if attempt % 3 == 2 else signal.SIGKILL
        if counts["killed"] + counts["interrupted"] < n:
            time.sleep(rng.uniform(0.02, 0.7) * seconds)
            os.kill(child, kind)
        counts["resumed"] += any(of_training.glob("training-*"))
        status, attempt = status_of(child), attempt + 1
        counts["killed"] += status == -signal.SIGKILL
        counts["interrupted"] += status in (INTERRUPTED, -signal.SIGINT)
        if status == 0:
            counts["finished"] += 1
            is_same &= result.read_bytes() == wanted
        elif status not in (-signal.SIGKILL, -signal.SIGINT, INTERRUPTED):
            raise RuntimeError(f"attempt {attempt} ended with {status}")
    return counts | {"same": is_same}


if __name__ == "__main__":
    main()
