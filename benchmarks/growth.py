"""How time and memory grow with rows, features and batches.

    python benchmarks/growth.py [--quick] [--parts rows players image prompt] [--limit S] [--docs]

Each cell is one call in a process of its own; its memory is the highest of the process less that
before the call. One size changes at a time. The model is a product of a matrix and a square, so
that nearly all time is ours; its own time is subtracted from that of rows. A series ends where a
cell takes longer than the limit or is refused, with the reason. About ten minutes.

*image* and *prompt*: what a call holds by the size of its batches, 0 for the default. A network of
convolutions explains an image of 3 × 224 × 224 by 49 squares with 256 evaluations; a GPT-2 of 4
layers with 50,000 words explains an answer of 10 tokens to a prompt of 100 with 200.
"""

import importlib
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pages
import pandas as pd

ESTIMATORS = ("randomorder", "leastsquares", "shear", "oddgp")
OPTIONS = {"shear": {"cooperators": "random"}}
SERIES: dict[str, tuple[int, ...]] = {
    "rows": (100, 1_000, 100_000, 1_000_000),
    "players": (100, 1_000, 3_000),
    "image": (1, 16, 64, 0),
    "prompt": (1, 8, 32, 0),
}
DEFAULTS = {"rows": {"players": 13}, "players": {"rows": 2}}
PER_PLAYER = 16
COSTS = ("own", "seconds", "megabytes")


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


def of_table(cell: dict[str, Any], model: Model) -> Callable[[], object]:
    """Return what explains rows of a table by an algorithm of shap."""
    import shap

    import shap_ext  # noqa: F401 # it makes shap know the algorithms

    rng, estimator, n_players = np.random.default_rng(1), cell["estimator"], cell["players"]
    masker = shap.maskers.Independent(rng.normal(size=(1, n_players)))
    options = OPTIONS.get(estimator, {})
    explainer = shap.Explainer(model, masker, algorithm=estimator, seed=0, **options)
    rows, budget = rng.normal(size=(cell["rows"], n_players)), PER_PLAYER * n_players + 2
    return partial(explainer, rows, max_evals=budget, silent=True)


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
    model, series = Model(cell.get("players", 1)), cell["series"]
    is_batch = series in BATCHES
    explain = BATCHES[series](cell[series] or None) if is_batch else of_table(cell, model)
    before, started = highest_megabytes(), time.perf_counter()
    explain()
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


def table_of_batches(costs: dict[str, pd.DataFrame]) -> str:
    """Return megabytes by the size of batches."""
    cells = pd.concat(costs).reset_index(names=["series", "place"])
    wide = cells.pivot(index="series", columns="size", values="megabytes").loc[list(costs)]
    sizes = sorted(wide, key=lambda n: n or 1e9)
    texts = wide[sizes].map("{:,.0f}".format).replace("nan", "")
    head = ["coalitions in a batch", *(size or "default" for size in sizes)]
    return pages.table(head, texts.itertuples())


def main() -> None:
    """Print the series of each estimator, and the tables."""
    options = pages.read_options(__doc__, cell="", parts=list(SERIES), limit=60.0)
    if options.cell:
        print(json.dumps(measure(json.loads(options.cell))))
        return
    print(f"{'estimator':14}{'growing':>12}{'size':>9}{'s':>10}{'own s':>10}{'MB':>10}")
    batches = {}
    for name in options.parts:
        found = []
        for estimator in ESTIMATORS if name not in BATCHES else ("oddgp",):
            cell = {"estimator": estimator, "series": name, **DEFAULTS.get(name, {})}
            sizes = list(SERIES[name])[: 2 if options.quick else None]
            found += measured_series(cell, sizes, options.limit)
        costs = pd.DataFrame(found, columns=["estimator", "size", *COSTS])
        if name in BATCHES:
            batches[name] = costs
        else:
            pages.report(options, f"growth-{name}", table_of_costs(name, costs))
    if list(batches) == list(BATCHES):
        pages.report(options, "growth-batches", table_of_batches(batches))


if __name__ == "__main__":
    main()
