"""How time and memory grow with rows, players, evaluations, outputs, background rows and batches.

    python benchmarks/growth.py [--quick] [--only SERIES …] [--estimators NAME …] [--players 13]
        [--chunk-size 1000] [--limit S] [--cpu]

Each cell is one call in a process of its own; its memory is the highest of the process less that
before the call. One size changes at a time. The model is a product of matrices and a square, so
that nearly all time is ours; its own time is subtracted. The power is that with which our time for
all rows grows since the size before: 1 is in proportion. A series ends where a cell takes longer
than the limit or is refused, with the reason. About ten minutes. With --chunk-size, rows are
streamed from a file to a file. With --cpu, the time of the processor is measured, which other
programs change little.

*image* and *prompt*: what a call holds by the size of its batches, 0 for the default. A network of
convolutions explains an image of 3 × 224 × 224 by 49 squares with 256 evaluations; a GPT-2 of 4
layers with 50,000 words explains an answer of 10 tokens to a prompt of 100 with 200.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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
DEFAULTS: dict[str, Any] = {
    "rows": 100, "players": 13, "per player": 16, "outputs": 1, "background": 1,
}  # fmt: skip
SERIES: dict[str, tuple[int, ...]] = {
    "rows": (100, 1_000, 10_000, 100_000, 1_000_000),
    "players": (10, 30, 100, 300, 1_000, 3_000),
    "per player": (4, 16, 64, 256),
    "outputs": (1, 10, 100),
    "background": (1, 10, 100, 1_000),
    "image": (0, 1, 16, 64),
    "prompt": (0, 1, 8, 32),
}
ROWS_OF_SERIES = {"players": 2, "per player": 20, "outputs": 20, "background": 20}
"""Rows where another size grows."""

Explained = tuple[Callable[[], object], "Model"]
"""What explains, and the model, which knows its own time."""


class Model:
    """A cheap model that measures its own time."""

    def __init__(self, n_players: int, n_outputs: int, clock: Callable[[], float]) -> None:
        rng = np.random.default_rng(0)
        self.weights = rng.normal(size=(n_players, n_outputs)) / math.sqrt(n_players)
        self.clock, self.seconds = clock, 0.0

    def __call__(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the outputs, (n, K), or (n,) of one output."""
        started = self.clock()
        outputs: npt.NDArray[Any] = table @ self.weights
        outputs += outputs**2
        self.seconds += self.clock() - started
        return outputs if outputs.shape[1] > 1 else outputs[:, 0]


def of_table(cell: dict[str, Any], model: Model, folder: Path) -> Callable[[], object]:
    """Return what explains rows of a table by an algorithm of shap."""
    import shap

    import shap_ext  # noqa: F401 # it makes shap know the algorithms

    rng, estimator, n_players = np.random.default_rng(1), cell["estimator"], cell["players"]
    masker = shap.maskers.Independent(
        rng.normal(size=(cell["background"], n_players)), max_samples=cell["background"]
    )
    options = dict(OPTIONS.get(estimator, {}))
    call: dict[str, Any] = {"max_evals": cell["per player"] * n_players + 2, "silent": True}
    if estimator == NETWORK:
        options["training_data"] = rng.normal(size=(1000, n_players))
        del call["max_evals"]
    explainer = shap.Explainer(model, masker, algorithm=estimator, seed=0, **options)
    if estimator == NETWORK:
        explainer.fit(silent=True)
        model.seconds = 0.0
    if not cell["chunk size"]:
        return partial(explainer, rng.normal(size=(cell["rows"], n_players)), **call)
    path = folder / "rows.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.float64, shape=(cell["rows"], n_players))
    for start in range(0, len(rows), 10**4):
        rows[start : start + 10**4] = rng.normal(size=rows[start : start + 10**4].shape)
    rows.flush()
    call["chunk_size"] = cell["chunk size"]
    return partial(explainer.explain_stream, path, folder / "values.parquet", **call)


def of_image(size: int | None) -> Callable[[], object]:
    """Return what explains an image by squares of 32 × 32 pixels."""
    import torch
    from torch import nn

    from captum_ext import OddGP, superpixels

    torch.manual_seed(0)
    image = torch.rand(1, 3, 224, 224)
    network = nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 1)),
    ).eval()
    squares = {"feature_mask": superpixels(image, (7, 7)), "perturbations_per_eval": size}
    return partial(OddGP(network, seed=0).attribute, image, n_samples=256, **squares)


def of_prompt(size: int | None) -> Callable[[], object]:
    """Return what explains an answer of 10 tokens to a prompt of 10 passages of 10 tokens."""
    import torch
    from captum.attr import TextTemplateInput
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    from captum_ext import LLMAttribution, OddGP

    transformers: Any = importlib.import_module("transformers")  # it is untyped
    numbers = Tokenizer(WordLevel({str(i): i for i in range(50_257)}, unk_token="0"))
    numbers.pre_tokenizer = Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=numbers, unk_token="0")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_embd=256, n_layer=4, n_head=4)
    network = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(1, 50_000, (110,)).tolist()
    passages = [" ".join(map(str, tokens[i : i + 10])) for i in range(0, 100, 10)]
    inputs = TextTemplateInput(lambda *kept: " ".join(filter(None, kept)) or "0", passages)
    attribute = LLMAttribution(OddGP(network, seed=0), tokenizer).attribute
    answer = " ".join(map(str, tokens[100:]))
    return partial(attribute, inputs, answer, n_samples=200, perturbations_per_eval=size)


BATCHES = {"image": of_image, "prompt": of_prompt}


def measure(cell: dict[str, Any]) -> dict[str, float]:
    """Explain in this process, once; return our seconds, all seconds, and megabytes."""
    clock = time.process_time if cell["cpu"] else time.perf_counter
    model = Model(cell["players"], cell["outputs"], clock)
    with tempfile.TemporaryDirectory() as folder:
        if cell["series"] in BATCHES:
            explain = BATCHES[cell["series"]](cell[cell["series"]] or None)
        else:
            explain = of_table(cell, model, Path(folder))
        before, started = highest_megabytes(), clock()
        explain()
        seconds = clock() - started
        megabytes = highest_megabytes() - before
    return {"own": seconds - model.seconds, "seconds": seconds, "megabytes": megabytes}


def highest_megabytes() -> float:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def print_series(cell: dict[str, Any], sizes: list[int], limit: float) -> None:
    """Print a line for each size, up to one that takes too long or is refused."""
    name, power, previous = cell["series"], math.nan, (0, 0.0)
    for size in sizes:
        command = [sys.executable, "-W", "ignore", __file__]
        command += ["--cell", json.dumps(cell | {name: size})]
        head = f"{cell['estimator']:14}{name:>12}{size:>9,}"
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
        own = max(cost["own"], 1e-6)
        if previous[0]:
            power = math.log(own / previous[1]) / math.log(size / previous[0])
        previous = size, own
        each = 1e3 * own / (cell | {name: size})["rows"]
        print(
            f"{head}{cost['seconds']:>10.2f}{each:>12.2f}{cost['megabytes']:>10.0f}{power:>8.2f}",
            flush=True,
        )


def main() -> None:
    """Print the series of each estimator."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cell", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", choices=SERIES, default=list(SERIES))
    names = (*ESTIMATORS, NETWORK)
    parser.add_argument("--estimators", nargs="+", choices=names, default=list(ESTIMATORS))
    parser.add_argument("--players", type=int, default=DEFAULTS["players"], help="if others grow")
    parser.add_argument("--chunk-size", type=int, help="stream in chunks of so many rows")
    parser.add_argument("--cpu", action="store_true", help="the time of the processor")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a process")
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes")
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(options.cell)))
        return
    print(
        f"{'estimator':14}{'growing':>12}{'size':>9}{'s in all':>10}{'own ms/row':>12}{'MB':>10}"
        f"{'power':>8}"
    )
    for name in options.only:
        for estimator in options.estimators if name not in BATCHES else ("oddgp",):
            cell = DEFAULTS | {
                "estimator": estimator, "series": name, "players": options.players,
                "chunk size": options.chunk_size, "cpu": options.cpu,
                "rows": ROWS_OF_SERIES.get(name, DEFAULTS["rows"]),
            }  # fmt: skip
            sizes = list(SERIES[name])[: 2 if options.quick else None]
            print_series(cell, sizes, options.limit)


if __name__ == "__main__":
    main()
