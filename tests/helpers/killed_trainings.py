"""Trainings in processes that are killed, started by the tests as a script.

Prints as JSON, for each host and its labels, how many attempts were killed, and whether each
training that was resumed ended with the weights of one without a stop. Every third attempt is
stopped by Ctrl-C (SIGINT) instead.

    python killed_trainings.py FOLDER N SEED HOST-LABELS ...
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.killed_streams import forked, status_of

N_FEATURES = 5
X = np.random.default_rng(0).normal(size=(60, N_FEATURES)).astype(np.float32)
OPTIONS: dict[str, Any] = {"epochs": 8, "rows_per_step": 16, "seed": 3, "evaluations": 16}
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
    tensors = trained.network.state_dict().values()
    return b"".join(tensor.numpy().tobytes() for tensor in tensors)


def written(train: Callable, folder: Path, result: Path) -> None:
    """Train, and write the weights; say by the status whether Ctrl-C arrived as it should.

    The signal waits until the block begins, and comes too late after it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        result.write_bytes(weights(train(folder)))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    except BaseException:
        traceback.print_exc()
        raise


def main() -> None:
    folder, n, seed, *cases = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # in processes that are forked
    found = {case: of_case(Path(folder) / case, case, int(n), int(seed)) for case in cases}
    print(json.dumps(found))


def of_case(folder: Path, case: str, n: int, seed: int) -> dict[str, Any]:
    """Stop trainings of a host, with some labels."""
    host, labels = case.split("-")
    train = {"shap": trainings_of_shap, "captum": trainings_of_captum}[host](labels)
    for name in ("first", "second"):  # which import and compile, so that no attempt does
        wanted = weights(train(folder / name))
    started = time.perf_counter()
    train(folder / "third")
    return killed(train, folder, n, seed, time.perf_counter() - started, wanted)


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
        counts["resumed"] += any(of_training.glob("*.safetensors"))
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
