"""What shap and captum do by default beside `best`, for six tasks: errors and seconds.

    python benchmarks/host_defaults.py [--seed 0]

Models and data are scikit-learn's or drawn from the seed. Errors are Σ|φ̂ − φ| over Σ|φ| with φ
from all coalitions, of the question that the explainer answers. The first call of each explainer
is not timed. Trees are explained as an object; their exact values are those of enumeration of the
same output.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from math import factorial
from typing import Any

import lightgbm
import numpy as np
import shap
import torch
from captum.attr import ShapleyValueSampling
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import captum_ext
import shap_ext  # noqa: F401  registers the algorithms

Row = tuple[str, str, str, float, float, float, float]


def exact(value: Callable[[np.ndarray], np.ndarray], n_players: int) -> np.ndarray:
    """Return Shapley values, (M,), of a function of coalitions, (n, M)."""
    places = np.arange(2**n_players)
    bits = (places[:, None] >> np.arange(n_players)) & 1
    sizes = bits.sum(axis=1)
    values = np.concatenate([value(part.astype(bool)) for part in np.array_split(bits, 64)])
    weights = np.array(
        [
            factorial(s) * factorial(n_players - 1 - s) / factorial(n_players)
            for s in range(n_players)
        ]
    )
    found = np.zeros(n_players)
    for player in range(n_players):
        without = places[bits[:, player] == 0]
        steps = values[without | (1 << player)] - values[without]
        found[player] = (weights[sizes[without]] * steps).sum()
    return found


def exact_rows(
    predict: Callable[[np.ndarray], Any], rows: np.ndarray, background: np.ndarray
) -> np.ndarray:
    """Return Shapley values, (R, M), of rows whose absent columns take the background's values."""

    def value_of(row: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        def value(bits: np.ndarray) -> np.ndarray:
            masked = np.where(bits[:, None], row, background).reshape(-1, rows.shape[1])
            return np.asarray(predict(masked)).reshape(len(bits), -1).mean(axis=1)  # type: ignore[no-any-return]

        return value

    return np.stack([exact(value_of(row), rows.shape[1]) for row in rows])


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the answer of the second call, and its seconds."""
    call()
    started = time.perf_counter()
    return call(), time.perf_counter() - started


def error(found: Any, wanted: np.ndarray) -> float:
    """Return the relative error."""
    found = np.asarray(found, dtype=float).reshape(wanted.shape)
    return float(np.abs(found - wanted).sum() / np.abs(wanted).sum())


def table_of(X: np.ndarray, y: np.ndarray, task: str, seed: int) -> Row:
    """Return the row of a pipeline on a table with 100 background rows."""
    model = make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(20,), max_iter=400, random_state=seed)
    )
    model.fit(X, y)
    background, rows = X[:100], X[100:105]

    wanted = exact_rows(model.predict, rows, background)
    host = shap.Explainer(model.predict, background, seed=seed)
    best = shap.Explainer(model.predict, background, algorithm="best", seed=seed)
    return compared(task, host, best, rows, wanted)


def compared(task: str, host: Any, best: Any, rows: np.ndarray, wanted: np.ndarray) -> Row:
    """Return the row of two explainers of shap."""
    theirs, their_seconds = timed(lambda: host(rows).values)
    ours, our_seconds = timed(lambda: best(rows).values)
    choice = best.last_estimate.choice.split(":")[0].split(",")[0]
    name = type(host).__name__
    return (
        task,
        name,
        choice,
        error(theirs, wanted),
        their_seconds,
        error(ours, wanted),
        our_seconds,
    )


def trees(seed: int) -> Row:
    """Return the row of boosted trees, whose log-odds shap explains by default."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :12]
    model = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, random_state=seed).fit(X, y)
    background, rows = X[:100], X[100:103]

    def log_odds(rows: Any) -> Any:
        return model.predict_proba(rows, raw_score=True)

    wanted = exact_rows(log_odds, rows, background)
    host = shap.Explainer(model, background)
    best = shap.Explainer(model, background, algorithm="best", seed=seed)
    return compared("boosted trees, 12 columns", host, best, rows, wanted)


def text(seed: int) -> Row:
    """Return the row of a text of ten words, whose effects depend on their neighbours."""
    rng = np.random.default_rng(seed)
    words = ["the", "film", "is", "not", "at", "all", "bad", "but", "far", "too", "long"][:10]
    weights = dict(zip(words, rng.normal(size=len(words)), strict=True))

    def score(texts: Any) -> np.ndarray:
        scores = []
        for one in texts:
            present = str(one).split()
            value = sum(weights.get(word, 0.0) for word in present)
            pairs = itertools.pairwise(present)
            value += sum(1.5 * np.tanh(weights.get(a, 0) * weights.get(b, 0)) for a, b in pairs)
            scores.append(np.tanh(value / 2))
        return np.array(scores)

    masker = shap.maskers.Text(r"\W+")
    host = shap.Explainer(score, masker, seed=seed)
    best = shap.Explainer(score, masker, algorithm="best", seed=seed)
    row = np.array([" ".join(words)])
    enumeration = shap.Explainer(score, masker, algorithm="enumeration")
    wanted = np.asarray(enumeration(row, max_evals=2**12).values, dtype=float)
    return compared("text, 10 words", host, best, row, wanted)


def network(task: str, net: Any, x: Any, mask: Any, seed: int) -> Row:
    """Return the row of captum's Shapley values by default, and ours."""
    index = torch.zeros_like(x, dtype=torch.long) if mask is None else mask
    if mask is None:
        index = torch.arange(x[0].numel()).reshape(x.shape)
    n_players = int(index.max()) + 1
    flat = index.reshape(-1).numpy()

    def value(bits: np.ndarray) -> np.ndarray:
        present = torch.as_tensor(bits[:, flat]).reshape(-1, *x.shape[1:])
        with torch.no_grad():
            return np.asarray(net(x * present), dtype=float).reshape(len(bits))

    players = exact(value, n_players)
    torch.manual_seed(seed)
    options = {} if mask is None else {"feature_mask": mask}
    host, best = ShapleyValueSampling(net), captum_ext.Best(net, seed=seed)
    theirs, their_seconds = timed(lambda: host.attribute(x, **options))
    ours, our_seconds = timed(lambda: best.attribute(x, **options))
    firsts = [int(np.flatnonzero(flat == player)[0]) for player in range(n_players)]
    estimate: Any = best.last_estimate
    choice = estimate.choice.split(":")[0].split(",")[0]
    errors = [error(one.detach().reshape(-1).numpy()[firsts], players) for one in (theirs, ours)]
    return task, type(host).__name__, choice, errors[0], their_seconds, errors[1], our_seconds


def image_and_networks(seed: int) -> list[Row]:
    """Return rows of an image by 16 superpixels, a network and a prompt of 12 words."""
    torch.manual_seed(seed)
    convolution = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 1),
        torch.nn.Flatten(0),
    ).eval()
    image = torch.rand(1, 3, 32, 32)
    squares = torch.arange(16).reshape(4, 4).repeat_interleave(8, 0).repeat_interleave(8, 1)
    mask = squares.expand(1, 3, 32, 32).contiguous()
    dense = torch.nn.Sequential(
        torch.nn.Linear(13, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1), torch.nn.Flatten(0)
    ).eval()
    table = torch.tensor(load_wine().data[:1], dtype=torch.float32)
    table = (table - table.mean()) / table.std()
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    embedding = torch.nn.Embedding(50, 16)

    class Prompt(torch.nn.Module):
        """Log-probability of the next word, for a prompt whose absent words are the word 0."""

        def forward(self, words: Any) -> Any:
            hidden = encoder(embedding(words.long())).mean(dim=1)
            return torch.log_softmax(hidden @ embedding.weight.T, dim=1)[:, 7]

    prompt = torch.randint(1, 50, (1, 12)).float()
    return [
        network("image, 16 superpixels", convolution, image, mask, seed),
        network("network, 13 columns", dense, table, None, seed),
        network("language model, 12 words", Prompt().eval(), prompt, None, seed),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    warnings.simplefilter("ignore")
    X, y = load_diabetes(return_X_y=True)
    wide, classes = load_wine(return_X_y=True)
    shuffled = np.random.default_rng(seed).permutation(len(wide))
    rows = [
        table_of(X[:, :9], y, "table, 9 columns", seed),
        table_of(wide[shuffled], classes[shuffled].astype(float), "table, 13 columns", seed),
        trees(seed),
        text(seed),
        *image_and_networks(seed),
    ]
    print("| task | by default | error | seconds | `best` | error | seconds |")
    print("|---" * 7 + "|")
    for task, host, choice, *numbers in sorted(rows, key=lambda row: -row[5]):
        theirs, their_seconds, ours, our_seconds = (f"{number:.2g}" for number in numbers)
        print(
            f"| {task} | {host} | {theirs} | {their_seconds} | {choice} | {ours} | {our_seconds} |"
        )


if __name__ == "__main__":
    main()
