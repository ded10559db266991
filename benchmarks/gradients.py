"""Values and input gradients of networks, beside values alone and three methods of captum.

    python benchmarks/gradients.py [--rows 2] [--seeds 2] [--pairs] [--quick] [--docs]

Networks of torch, trained from seeds on which nothing was chosen. The price is in evaluations
a feature, at least ten: a forward and backward pass counts as three. Errors are Σ|error| / Σ|φ|, in
the geometric mean over rows and seeds. `held`: how often 95 % intervals hold. The seconds are those
of a row. The truth is a regression over 2,000 evaluations a feature. ShapleyValueSampling takes one
order at least. Cells in which gradients err most, beside values alone, come first. `--pairs`:
Shapley interactions of 16 groups of features, beside values alone and all coalitions.
"""

import warnings
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import captum.attr
import numpy as np
import pages
import pandas as pd
import torch
from games import FloatArray, all_coalitions, converged, relative_error, share_inside
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_sample_images,
    make_classification,
)
from torch import nn

from captum_ext import OddGP
from shapley_adapters.interactions.enumeration import enumerated
from shapley_adapters.interactions.result import InteractionRequest
from shapley_adapters.pipeline.result import quantiles

GROUPS, OF_PAIRS = 16, (1.5, 2, 3, 4, 6, 12)
BUDGETS = (0.25, 0.5, 1, 2, 3, 4, 8, 16)
PASS, FEWEST = 3, 10
OURS: dict[str, Any] = {
    "gradients": lambda net, seed: OddGP(net, seed=seed, gradients=True),
    "values alone": lambda net, seed: OddGP(net, seed=seed, gradients=False),
}
CAPTUM: dict[str, Any] = {
    "IntegratedGradients": lambda n, n_players: {"n_steps": n // PASS},
    "KernelShap": lambda n, n_players: {"n_samples": n, "perturbations_per_eval": 64},
    "ShapleyValueSampling": lambda n, n_players: {"n_samples": max(1, n // n_players)},
}
METHODS = [*OURS, *CAPTUM]


class Tokens(nn.Module):
    """A transformer, a GRU or a language model over tokens: words, times or patches."""

    def __init__(self, size: int, kind: str, n_tokens: int) -> None:
        super().__init__()
        self.size, self.kind = size, kind
        self.embed = nn.Linear(size, 32)
        self.place = nn.Parameter(torch.randn(n_tokens, 32) / 4)
        if kind == "GRU":
            self.body: nn.Module = nn.GRU(32, 32, batch_first=True)
        else:
            layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
            self.body = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.embed(x.reshape(len(x), -1, self.size)) + self.place
        if self.kind == "GRU":
            return self.head(self.body(tokens)[0][:, -1])
        if self.kind == "transformer":
            return self.head(self.body(tokens).mean(dim=1))
        causal = nn.Transformer.generate_square_subsequent_mask(len(self.place))
        return self.head(self.body(tokens, mask=causal)[:, -1]).log_softmax(dim=1)


class Nodes(nn.Module):
    """A network of three rounds of messages on a ring with chords."""

    def __init__(self, n_nodes: int) -> None:
        super().__init__()
        ring = torch.roll(torch.eye(n_nodes), 1, dims=0) + torch.roll(torch.eye(n_nodes), 7, dims=0)
        self.near = (torch.eye(n_nodes) + ring + ring.T) / 5
        self.rounds = nn.ModuleList(nn.Linear(size, 32) for size in (4, 32, 32))
        self.head = nn.Linear(32, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = x.reshape(len(x), -1, 4)
        for one in self.rounds:
            found = one(self.near @ found).relu()
        return self.head(found.mean(dim=1))


def photographs(activation: type[nn.Module], side: int = 20) -> nn.Module:
    """Return a convolutional network of colour images."""
    return nn.Sequential(
        nn.Unflatten(1, (3, side, side)),
        nn.Conv2d(3, 12, 3, padding=1), activation(), nn.AvgPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), activation(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(24 * (side // 4) ** 2, 32), activation(), nn.Linear(32, 4),
    )  # fmt: skip


def dense(n: int, activation: nn.Module, n_layers: int = 2) -> nn.Module:
    """Return a network of dense layers."""
    layers = [nn.Linear(n, 64), activation]
    for _ in range(n_layers - 1):
        layers += [nn.Linear(64, 64), activation]
    return nn.Sequential(*layers, nn.Linear(64, 10))


def squares(side: int, size: int, n_colours: int = 1) -> torch.Tensor:
    """Return the mask of an image whose features are squares of pixels."""
    place = torch.arange(side) // size
    return (place[:, None] * (side // size) + place).ravel().repeat(n_colours)[None]


WORDS, TIMES, NODES = 24, 48, 30
OF_SENTENCES, OF_SERIES = torch.arange(WORDS * 8)[None] // 8, torch.arange(TIMES * 2)[None] // 2
OF_NODES, OF_TEXTS = torch.arange(NODES * 4)[None] // 4, torch.arange(20 * 6 * 8)[None] // 48
NETWORKS: dict[str, tuple[str, Any, torch.Tensor | None]] = {
    "MLP GELU, made (40)": ("made", lambda: dense(40, nn.GELU()), None),
    "MLP ReLU of 5 layers, made (40)": ("made", lambda: dense(40, nn.ReLU(), 5), None),
    "MLP SiLU of 4 layers, cancer (30)": ("cancer", lambda: dense(30, nn.SiLU(), 4), None),
    "transformer, sentences (24)": (
        "sentences",
        lambda: Tokens(8, "transformer", WORDS),
        OF_SENTENCES,
    ),
    "GRU, sentences (24)": ("sentences", lambda: Tokens(8, "GRU", WORDS), OF_SENTENCES),
    "GRU, series (48)": ("series", lambda: Tokens(2, "GRU", TIMES), OF_SERIES),
    "CNN GELU, photographs (25)": ("photographs", lambda: photographs(nn.GELU), squares(20, 4, 3)),
    "CNN ReLU, photographs (100)": ("photographs", lambda: photographs(nn.ReLU), squares(20, 2, 3)),
    "CNN ReLU, larger ones (196)": ("larger", lambda: photographs(nn.ReLU, 28), squares(28, 2, 3)),
    "MLP tanh, digits (64)": ("digits", lambda: dense(64, nn.Tanh()), None),
    "graph network, nodes (30)": ("nodes", lambda: Nodes(NODES), OF_NODES),
    "language model of random weights, sentences (20)": (
        "texts",
        lambda: Tokens(8, "language model", 120),
        OF_TEXTS,
    ),
}


def data_of(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows, and labels if a network learns; the baselines are the means of rows."""
    rng = np.random.default_rng(0)
    if name == "made":
        x, y = make_classification(2000, 40, n_informative=15, n_classes=4, random_state=0)
    elif name == "sentences":  # 20 words are good or bad, and the last 4 turn the next one
        words = rng.integers(60, size=(3000, WORDS))
        sign = np.where(words < 10, 1, np.where(words < 20, -1, 0))
        sign[:, 1:] *= np.where(words[:, :-1] >= 56, -1, 1)
        x = rng.normal(size=(60, 8))[words].reshape(len(words), -1)
        y = np.sign(sign.sum(axis=1)) + 1
    elif name == "series":  # two channels: a wave of one of three speeds, and noise
        y, time = rng.integers(3, size=2000), np.arange(TIMES)
        wave = np.sin(time * (0.2 + 0.1 * y[:, None]) + 6 * rng.random((2000, 1)))
        x = np.stack([wave, 0 * wave], axis=2) + rng.normal(size=(2000, TIMES, 2)) / 2
        x = x.reshape(2000, -1)
    elif name == "nodes":  # do neighbours mostly agree?
        x = rng.normal(size=(2000, NODES, 4))
        y = (x[..., 0] * np.roll(x[..., 0], 1, axis=1)).sum(axis=1) > 0
        x, y = x.reshape(2000, -1), y.astype(int)
    elif name == "texts":
        return torch.tensor(rng.normal(size=(200, 20 * 6 * 8)), dtype=torch.float32), torch.zeros(0)
    elif name == "digits":
        x, y = load_digits(return_X_y=True)
        x = x / 16
    elif name in ("photographs", "larger"):  # squares of the two halves of two of them
        pictures, y = load_sample_images().images, rng.integers(4, size=2000)
        size = 60 if name == "photographs" else 84
        down, right = rng.integers(130, size=2000) + 200 * (y % 2), rng.integers(550, size=2000)
        parts = [
            pictures[kind // 2][at : at + size : 3, to : to + size : 3].transpose(2, 0, 1)
            for kind, at, to in zip(y, down, right, strict=True)
        ]
        x = np.array(parts).reshape(2000, -1) / 255
    else:
        x, y = load_breast_cancer(return_X_y=True)
        x = (x - x.mean(axis=0)) / x.std(axis=0)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def trained(name: str, seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """Return a network that has learned its data, these, and the mask of its features."""
    of_data, make, mask = NETWORKS[name]
    x, y = data_of(of_data)
    torch.manual_seed(seed)
    net = make()
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(12 if len(y) else 0):
        for part in torch.split(torch.randperm(len(x)), 64):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(net(x[part]), y[part]))
            optimizer.step()
    return net.eval(), x, torch.arange(x.shape[1])[None] if mask is None else mask


def games_of(name: str, seed: int, n_rows: int, n_groups: int | None = None) -> Iterator[Any]:
    """Yield a network, a row, the other arguments of captum, the number of players, and a game."""
    net, x, mask = trained(name, seed)
    base, n_players = x.mean(dim=0, keepdim=True), int(mask.max()) + 1
    if n_groups is not None:
        mask, n_players = mask * n_groups // n_players, n_groups
    rows = np.random.default_rng(seed).choice(len(x), n_rows, replace=False)
    for row in rows.tolist():
        one = x[row : row + 1]
        target = int(net(one).argmax())

        def f(present: Any, one: Any = one, target: int = target) -> FloatArray:
            with torch.no_grad():
                inputs = torch.where(torch.from_numpy(present)[:, mask[0]], one, base)
                return net(inputs)[:, target].double().numpy()

        arguments = {"baselines": base, "target": target, "feature_mask": mask}
        yield net, one, arguments, n_players, f


def cells_of_pairs(name: str, seed: int, n_rows: int) -> Iterator[tuple[Any, ...]]:
    """Yield a budget, a method, its error, whether intervals hold, and seconds, for each row."""
    every = all_coalitions(GROUPS)
    index = InteractionRequest("SII").index(GROUPS)
    for net, one, arguments, _, f in games_of(name, seed, n_rows, GROUPS):
        values = np.concatenate([f(part) for part in np.array_split(every, 64)])
        exact = enumerated(index, every, values[None, :, None])
        for budget, method in product(OF_PAIRS, OURS):
            explainer = OURS[method](net, seed)
            explainer.interactions(one, n_samples=round(budget * GROUPS), **arguments)
            found = explainer.last_estimate
            pairs, freedom = found.interactions, found.degrees_of_freedom
            widths = quantiles(0.95, pairs.freedom(freedom)) * pairs.standard_errors
            held = (np.abs(pairs.values - exact) <= widths).mean()
            yield budget, method, relative_error(pairs.values, exact), held, found.seconds.own


def cells_of(name: str, seed: int, n_rows: int) -> Iterator[tuple[Any, ...]]:
    """Yield a budget, a method, its error, whether intervals hold, and seconds, for each row."""
    for net, one, of_call, n_players, f in games_of(name, seed, n_rows):
        exact, mask = converged(f, n_players).exact, of_call.pop("feature_mask")
        for budget, method in product(BUDGETS, METHODS):
            n, is_ours = max(FEWEST, round(budget * n_players)), method in OURS
            explainer = OURS[method](net, seed) if is_ours else getattr(captum.attr, method)(net)
            arguments = {"n_samples": n} if is_ours else CAPTUM[method](n, n_players)
            is_grouped = method != "IntegratedGradients"
            groups = {"feature_mask": mask} if is_grouped else {}
            found = explainer.attribute(one, **arguments, **of_call, **groups)
            sums: Any = np.bincount(mask[0], found.detach().double().numpy()[0], n_players)
            if is_grouped:  # they repeat what a group gets
                sums = sums / np.bincount(mask[0], minlength=n_players)
            held, seconds = np.nan, np.nan
            if is_ours:
                held = share_inside(explainer.last_estimate, exact[None], slack=0)
                seconds = explainer.last_estimate.seconds.own
            yield budget, method, relative_error(sums, exact), held, seconds


def main() -> None:
    """Print all cells, those first in which gradients err most, and means by budget."""
    options = pages.read_options(__doc__, "", "--pairs", rows=2, seeds=2, pairs=False)
    if options.quick:
        options.rows = options.seeds = 1
    warnings.simplefilter("ignore")
    found = [
        (name, *cell)
        for name in list(NETWORKS)[: 1 if options.quick else None]
        for seed in range(200, 200 + options.seeds)
        for cell in (cells_of_pairs if options.pairs else cells_of)(name, seed, options.rows)
    ]
    columns = ["network", "budget", "method", "error", "held", "seconds"]
    table = pd.DataFrame(found, columns=columns)
    table["log"] = np.log(table["error"])
    means = table.pivot_table(["log", "held", "seconds"], columns[:2], "method")
    errors = np.exp(means["log"])
    errors.insert(0, "ratio", errors["gradients"] / errors["values alone"])
    if not options.pairs:
        best = errors[list(CAPTUM)].min(axis=1)
        errors.insert(1, "over captum's best", errors["gradients"] / best)
    for score, method in product(("held", "seconds"), OURS):
        errors[f"{score}, {method}"] = means[score, method]
    pd.set_option("display.width", 250, "display.max_rows", None, "display.max_columns", None)
    print(errors.sort_values("ratio", ascending=False).round(3))
    by_budget = errors.groupby("budget")
    summary = np.exp(np.log(errors).groupby("budget").mean())
    for ratio in errors.columns.intersection(["ratio", "over captum's best"]):
        summary[f"worst {ratio}"] = by_budget[ratio].max()
    summary["least held"] = by_budget["held, gradients"].min()
    print(summary.round(3))
    if options.pairs:
        pages.report(options, "gradients-of-pairs", sentence_of_pairs(summary))
    else:
        pages.report(options, "gradients", sentence(summary))


def sentence_of_pairs(summary: pd.DataFrame) -> str:
    """Return by what gradients multiply the error of interactions, for the page."""
    worst = summary["worst ratio"]
    return (
        "With `gradients=True`, they multiply the error of interactions of pairs by "
        f"{listed(pages.short(ratio, 2) for ratio in summary['ratio'])} at "
        f"{listed(map('{:g}'.format, summary.index))} evaluations per feature (the same networks "
        f"with {GROUPS} groups of features, `--pairs`), in a single network by up to "
        f"{pages.short(worst.max(), 2)}, at {worst.idxmax():g}. In each network, 95 % intervals "
        f"hold {pages.short(summary['least held'].min(), 2)} of them or more."
    )


def sentence(summary: pd.DataFrame) -> str:
    """Return by what gradients multiply the error, for the page."""
    shown = summary[summary.index >= 0.5]
    factors = listed(pages.short(ratio, 2) for ratio in shown["ratio"])
    worst = summary["worst ratio"]
    beside = summary["over captum's best"].map(pages.short)
    return (
        f"Gradients multiply the error by {factors} at {listed(map('{:g}'.format, shown.index))} "
        "evaluations per feature (twelve networks, `python benchmarks/gradients.py`), in a single "
        f"network by up to {pages.short(worst.max(), 2)}, at {worst.idxmax():g}. Over that of the "
        "best of captum's `IntegratedGradients`, `KernelShap` and `ShapleyValueSampling`, it is "
        f"{beside[0.5]} at 0.5, {beside[2]} at 2, {beside[4]} at 4 and {beside[16]} at 16."
    )


def listed(texts: Iterable[str]) -> str:
    """Return texts in a sentence."""
    *first, last = texts
    return f"{', '.join(first)} and {last}"


if __name__ == "__main__":
    main()
