"""What hosts do by default beside `best`.

    python benchmarks/best_choices.py [--quick] [--seed 0] [--docs]

For each of eight users, shap or captum by default and `best`: errors Σ|φ̂ − φ| over Σ|φ|,
with φ from all coalitions of the function that is explained, seconds of the second call, and the
words on the screen (warnings of this package). A host that refuses says so in place of an error.
Models and data are scikit-learn's, or drawn from the seed.
"""

import re
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import lightgbm
import numpy as np
import pages
import pandas as pd
import shap
import torch
from captum.attr import ShapleyValueSampling
from games import TabulatedGame, all_coalitions, relative_error
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier

import captum_ext
import shap_ext  # noqa: F401  registers the algorithms
from shapley_adapters.errors import ShapleyExtWarning

N_COLUMNS = 10
_EXACT = 1e-9
Row = dict[str, Any]
"""A line of the table of users."""


def exact(value: Callable[[np.ndarray], np.ndarray], n_players: int) -> np.ndarray:
    """Return Shapley values, (M, K), of a function of coalitions, (n, M)."""
    parts = np.array_split(all_coalitions(n_players), 64)
    values = np.concatenate([value(part) for part in parts]).reshape(2**n_players, -1)
    return TabulatedGame(values.T, n_players).shapley_values().T


def exact_rows(function: Callable[[Any], Any], rows: Any, background: Any) -> np.ndarray:
    """Return Shapley values, (R, M, K), of rows whose absent columns are the background's."""
    is_frame = isinstance(rows, pd.DataFrame)
    present, absent = np.asarray(rows), np.asarray(background)

    def value_of(row: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        def value(bits: np.ndarray) -> np.ndarray:
            masked: Any = np.where(bits[:, None], row, absent).reshape(-1, present.shape[1])
            if is_frame:
                masked = pd.DataFrame(masked, columns=rows.columns).astype(rows.dtypes)
            outputs = np.asarray(function(masked), dtype=float)
            return outputs.reshape(len(bits), len(absent), -1).mean(axis=1)

        return value

    return np.stack([exact(value_of(row), present.shape[1]) for row in present])


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the answer of the second call, and its seconds."""
    call()
    started = time.perf_counter()
    return call(), time.perf_counter() - started


def compared(
    host: Callable[[], Any], ours: Callable[[], Any], best: Any, wanted: np.ndarray
) -> Row:
    """Return the line of a host's call and of ours, by the explainer `best`."""
    try:
        theirs, their_seconds = timed(host)
        their_error = relative_error(np.reshape(theirs, wanted.shape), wanted)
    except Exception as refusal:  # of any kind: what the user sees
        print(f"refused: {type(refusal).__name__}")
        their_error = their_seconds = float("nan")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, seconds = timed(ours)
    words = {str(one.message) for one in caught if issubclass(one.category, ShapleyExtWarning)}
    # What `best` says that it chose, in a few words.
    name = re.sub(r"2\^\d+ ", "", re.split("[:,]", best.last_estimate.choice)[0])
    return {
        "its error": their_error, "its seconds": their_seconds,
        "best": f"`{name}`" if name.islower() and " " not in name else name,
        "error": relative_error(np.reshape(found, wanted.shape), wanted), "seconds": seconds,
        "words": " / ".join(sorted(words)) or "none",
    }  # fmt: skip


def of_shap(
    model: Any, function: Any, rows: Any, background: Any, seed: int, by: Any = None
) -> Row:
    """Return the line of a table: shap by default, of what `by` is, beside `best` of the model."""
    wanted, theirs = exact_rows(function, rows, background), model if by is None else by
    best = shap.Explainer(model, background, algorithm="best", seed=seed)

    def host() -> Any:
        return shap.Explainer(theirs, background, seed=seed)(rows).values

    return compared(host, lambda: best(rows).values, best, wanted)


def cancer() -> tuple[pd.DataFrame, np.ndarray]:
    """Return ten columns of scikit-learn's breast-cancer data, and the classes."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, :N_COLUMNS], y.to_numpy()


def categories(seed: int) -> Row:
    """LightGBM with a column of categories."""
    X, y = cancer()
    size = np.where(X.iloc[:, 3] > X.iloc[:, 3].median(), "large", "small")
    X = X.assign(size=pd.Categorical(size)).iloc[:, -N_COLUMNS:]
    model = lightgbm.LGBMClassifier(n_estimators=50, verbose=-1, random_state=seed).fit(X, y)
    return of_shap(model, partial(model.predict, raw_score=True), X[100:103], X[:50], seed)


def boosted(seed: int) -> Row:
    """XGBoost."""
    import xgboost

    X, y = cancer()
    model = xgboost.XGBClassifier(n_estimators=50, random_state=seed).fit(X, y)
    return of_shap(model, partial(model.predict, output_margin=True), X[100:103], X[:50], seed)


def missing(seed: int) -> Row:
    """HistGradientBoosting, and rows with NaN."""
    X, y = cancer()
    X = X.mask(np.random.default_rng(seed).random(X.shape) < 0.1)  # a tenth of the cells
    model = HistGradientBoostingClassifier(max_iter=50, random_state=seed).fit(X, y)
    return of_shap(model, model.decision_function, X[100:103], X[:50], seed)


def many_classes(seed: int) -> Row:
    """A network with 100 classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, N_COLUMNS))
    y = np.argmax(X @ rng.normal(size=(N_COLUMNS, 100)), axis=1)
    model = MLPClassifier((64,), max_iter=30, random_state=seed).fit(X, y)
    function = model.predict_proba
    return of_shap(model, function, X[100:103], X[:50], seed, function)


def image_through_shap(seed: int) -> Row:
    """Digits of 8 x 8 pixels, as squares of 2 x 4 pixels."""
    images, labels = load_digits(return_X_y=True)
    model = MLPClassifier((50,), max_iter=100, random_state=seed).fit(images, labels)
    squares = (np.arange(8)[:, None] // 4 * 4 + np.arange(8) // 2).ravel()  # 8 players

    def function(masked: Any) -> Any:
        return model.predict_proba(np.asarray(masked).reshape(-1, 64))

    def value(bits: np.ndarray) -> np.ndarray:
        return np.asarray(function(np.where(bits[:, squares], images[0], 0.0)))

    def host() -> Any:
        masker = shap.maskers.Image(np.zeros((8, 8, 1)))
        image = images[:1].reshape(1, 8, 8, 1)
        pixels = shap.Explainer(function, masker, seed=seed)(image).values.reshape(64, 10)
        return np.stack([pixels[squares == index].sum(axis=0) for index in range(8)])

    groups = {f"square {index}": np.flatnonzero(squares == index).tolist() for index in range(8)}
    best = shap.Explainer(function, np.zeros((1, 64)), algorithm="best", seed=seed, groups=groups)
    return compared(host, lambda: best(images[:1]).values, best, exact(value, 8)[None])


def network(net: Any, x: Any, mask: Any, seed: int) -> Row:
    """Return the line of captum's Shapley values by default, and ours."""
    index = torch.arange(x[0].numel()).reshape(x.shape) if mask is None else mask
    n_players, flat = int(index.max()) + 1, index.reshape(-1).numpy()
    firsts = [int(np.flatnonzero(flat == player)[0]) for player in range(n_players)]

    def value(bits: np.ndarray) -> np.ndarray:
        present = torch.as_tensor(bits[:, flat]).reshape(-1, *x.shape[1:])
        with torch.no_grad():
            return np.asarray(net(x * present), dtype=float)

    def of_players(method: Any) -> Callable[[], Any]:
        options = {} if mask is None else {"feature_mask": mask}
        return lambda: method.attribute(x, **options).detach().reshape(-1).numpy()[firsts]

    torch.manual_seed(seed)
    best = captum_ext.Best(net, seed=seed)
    host, ours = of_players(ShapleyValueSampling(net)), of_players(best)
    return compared(host, ours, best, exact(value, n_players)[:, 0])


def image_through_captum(seed: int) -> Row:
    """An image by 16 superpixels."""
    torch.manual_seed(seed)
    convolution = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 1),
        torch.nn.Flatten(0),
    ).eval()
    squares = torch.arange(16).reshape(4, 4).repeat_interleave(8, 0).repeat_interleave(8, 1)
    mask = squares.expand(1, 3, 32, 32).contiguous()
    image = torch.rand(1, 3, 32, 32)
    return network(convolution, image, mask, seed)


def torch_network(seed: int) -> Row:
    """A network of 13 columns."""
    torch.manual_seed(seed)
    dense = torch.nn.Sequential(
        torch.nn.Linear(13, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1), torch.nn.Flatten(0)
    ).eval()
    table = torch.tensor(load_wine().data[:1], dtype=torch.float32)
    return network(dense, (table - table.mean()) / 10, None, seed)


def passages(seed: int) -> Row:
    """A language model of random weights over twelve passages of four words each."""
    torch.manual_seed(seed)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    embedding = torch.nn.Embedding(50, 16)

    class Answer(torch.nn.Module):
        """Log-probability of the answer, for passages whose absent words are the word 0."""

        def forward(self, words: Any) -> Any:
            hidden = encoder(embedding(words.long())).mean(dim=1)
            return torch.log_softmax(hidden @ embedding.weight.T, dim=1)[:, 7]

    prompt = torch.randint(1, 50, (1, 48)).float()
    mask = torch.arange(12).repeat_interleave(4)[None]
    return network(Answer().eval(), prompt, mask, seed)


_CAPTUM = "captum: `ShapleyValueSampling`"
_TREES = "shap: TreeExplainer"
USERS: dict[Callable[[int], Row], tuple[str, str]] = {
    torch_network: ("torch network, 13 columns", _CAPTUM),
    passages: ("language model, 12 passages", _CAPTUM),
    image_through_captum: ("image through captum, 16 squares", _CAPTUM),
    boosted: ("XGBoost", _TREES),
    categories: ("LightGBM with categories", _TREES),
    missing: ("HistGradientBoosting with NaN", _TREES),
    many_classes: ("network with 100 classes", "shap: exact"),
    image_through_shap: ("image through shap, 8 squares", "shap: Partition, sums of its pixels"),
}


def per_cent(error: float) -> str:
    """Return a relative error."""
    return "0" if error < _EXACT else f"{pages.short(100 * error)} %" if error == error else ""


def main() -> None:
    """Report the table of users, those with the largest errors of `best` first."""
    options = pages.read_options(__doc__, seed=0)
    warnings.simplefilter("ignore")
    runs = [torch_network, missing, image_through_shap] if options.quick else list(USERS)
    rows = []
    for run in runs:
        user, default = USERS[run]
        try:
            rows.append({"user": user, "by default": default, **run(options.seed)})
        except ModuleNotFoundError as lacking:
            if options.docs:
                raise
            print(f"SKIPPED {user}: {lacking}")
    table = pd.DataFrame(rows).sort_values("error", ascending=False)
    print(table[["user", "words"]].to_string(index=False))
    is_refused = table["its error"].isna()
    table.loc[is_refused, "by default"] = "shap: refused"
    for column in ("its seconds", "seconds"):
        table[column] = table[column].map(pages.short)
    for column in ("its error", "error"):
        table[column] = table[column].map(per_cent)
    shown = table[["user", "by default", "its error", "its seconds", "best", "error", "seconds"]]
    head = ["user", "by default", "error", "seconds", "`best` chooses", "error", "seconds"]
    pages.report(options, "beside-defaults", pages.table(head, shown.itertuples(index=False)))


if __name__ == "__main__":
    main()
