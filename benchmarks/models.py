"""Models of tables with their rows and Shapley values: perceptrons, boosted trees, and Adult.

The Shapley values of boosted trees are exact by TreeSHAP. Adult is the benchmark of Wang et al.
(ICML 2022), Appendices F and H.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import pandas as pd
import shap
import torch
from data_files import data_file, in_turns, parts
from games import FloatArray, IntArray, ModelGame, TabulatedGame, converged
from network_training import Explained, InputArray, LabelArray, accuracy, trained_network
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import QuantileTransformer
from torch import nn

import shap_ext  # noqa: F401  makes shap.Explainer know our algorithms


@dataclass(frozen=True)
class Table:
    """A table of numbers, two classes of rows, and how it is split.

    Attributes
    ----------
    values : array, (n, D)
        All rows.
    labels : array, (n,)
        0 or 1 for each.
    names : list of str
        Names of the columns.
    seed : int
        Another one, another split.
    """

    values: FloatArray
    labels: LabelArray
    names: list[str]
    seed: int = 0

    @cached_property
    def parts(self) -> dict[str, IntArray]:
        """Places of the rows of each part."""
        return parts(len(self.values), self.seed)

    @cached_property
    def scores(self) -> InputArray:
        """Normal scores of the ranks among the training part, (n, D)."""
        return normal_scores(self.values[self.parts["training"]])(self.values)

    def explained(self) -> IntArray:
        """Return places of the test part, labels 1 and 0 in turns."""
        return in_turns(self.labels, self.parts["test"])


def normal_scores(training: FloatArray) -> Callable[[Any], InputArray]:
    """Return a function of rows: trees see no more, and networks cannot learn from heavy tails."""
    ranks = QuantileTransformer(output_distribution="normal", n_quantiles=500, random_state=0)
    ranks.fit(training)
    return lambda rows: np.clip(ranks.transform(rows), -3, 3).astype(np.float32)


def companies(folder: Path) -> Table:
    """Read Taiwanese companies, 94 columns, and whether they went bankrupt."""
    return _read(folder, "taiwan_bankruptcy/taiwan_bankruptcy.csv.gz", "bankrupt", [])


def news(folder: Path) -> Table:
    """Read articles of a news site, 57 columns, and whether they were shared often.

    In single precision: TreeSHAP rounds thresholds, which many ratios lie close to.
    """
    left_out = ["url", "timedelta", "shares"]
    table = _read(folder, "online_news/online_news.csv.gz", "popular", left_out)
    return replace(table, values=table.values.astype(np.float32).astype(np.float64))


def _read(folder: Path, name: str, label: str, left_out: list[str]) -> Table:
    """Read the columns that vary."""
    table = pd.read_csv(data_file(folder, name)).drop(columns=left_out)
    labels = table.pop(label).to_numpy(np.int64)
    table = table.loc[:, table.nunique() > 1]
    names = [column.strip() for column in table]
    return Table(table.to_numpy(np.float64), labels, names)


@dataclass(frozen=True)
class ExplainedModel:
    """A trained model and the rows to explain, as flat tables of columns.

    Attributes
    ----------
    model : Explained or Margin
        The model and the output that is explained: a module where it is a network, else a
        function; `predict` takes arrays in both cases.
    rows : array, (R, D)
        Encoded rows of the test part.
    reference : array, (1, D)
        What absent columns are set to.
    groups : dict of str to list of str
        The players: name and columns of each.
    accuracy : float
        Share of the test part that the model tells right.
    """

    model: Any
    rows: InputArray
    reference: InputArray
    groups: dict[str, list[str]]
    accuracy: float

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self.groups)

    @property
    def column_names(self) -> list[str]:
        """Names of the encoded columns."""
        return [name for block in self.groups.values() for name in block]

    @property
    def player_of_column(self) -> IntArray:
        """The player of each column, (D,)."""
        return np.repeat(np.arange(self.n_players), [len(one) for one in self.groups.values()])

    def evaluated(self) -> ModelGame:
        """Return the games of all rows, evaluated when asked."""
        return ModelGame(self.model.predict, self.rows, self.reference, self.player_of_column)

    def tabulated(self) -> TabulatedGame:
        """Return the games of all rows, by the values of all coalitions."""
        return self.evaluated().tabulated()

    def explainer(self, algorithm: str, seed: int, **options: Any) -> Any:
        """Return an explainer of ours, as shap makes it."""
        return shap.Explainer(
            self.model,
            self.reference,
            algorithm=algorithm,
            seed=seed,
            feature_names=self.column_names,
            groups=self.groups,
            **options,
        )


@dataclass(frozen=True)
class Case:
    """A model, its name in tables, and the Shapley values of its rows.

    Attributes
    ----------
    exact : array, (R, M)
        The Shapley values.
    error : float
        What they add to an absolute error, summed over players: the mean over rows.
    """

    title: str
    explained: ExplainedModel
    exact: FloatArray
    error: float = 0.0


class Margin:
    """The margin of a boosted-tree classifier, the log-odds of class 1."""

    def __init__(self, booster: Any) -> None:
        self.booster = booster

    def __call__(self, x: npt.NDArray[Any]) -> FloatArray:
        """Return the margin, (B,)."""
        return self.booster.predict(x, raw_score=True, num_threads=1)

    predict = __call__


# --- perceptrons ---

ACTIVATIONS = {"elu": nn.ELU, "relu": nn.ReLU, "softplus": nn.Softplus}
Parts = Mapping[str, npt.NDArray[Any]]
"""The training, validation and test part of something."""


def explained_perceptron(
    name: str,
    inputs: Parts,
    labels: Parts,
    rows: InputArray,
    groups: dict[str, list[str]],
    cache: Path,
    activation: str = "relu",
    seed: int = 0,
) -> ExplainedModel:
    """Return the margin of a network of two hidden layers of 64, trained now or before.

    Absent columns take the mean of the training part.
    """
    between, n_columns = ACTIVATIONS[activation], rows.shape[1]

    def make() -> nn.Module:
        return nn.Sequential(
            nn.Linear(n_columns, 64), between(), nn.Linear(64, 64), between(), nn.Linear(64, 2)
        )

    network = trained_network(f"{name}-{activation}", make, inputs, labels, cache, seed)
    return ExplainedModel(
        Explained(network).eval().requires_grad_(False),
        rows,
        inputs["training"].mean(axis=0, keepdims=True),
        groups,
        accuracy(network, inputs["test"], labels["test"]),
    )


def table_network(name: str, table: Table, cache: Path, n_rows: int) -> ExplainedModel:
    """Return rows by normal scores of their ranks.

    `name` is what the trained network is kept by.
    """
    inputs = {part: table.scores[places] for part, places in table.parts.items()}
    labels = {part: table.labels[places] for part, places in table.parts.items()}
    rows, groups = table.scores[table.explained()[:n_rows]], {one: [one] for one in table.names}
    return explained_perceptron(name, inputs, labels, rows, groups, cache)


# --- boosted trees ---

_LEAST_RIGHT = 0.95
"""TreeSHAP rounds thresholds to single precision; rows that this puts on their other side are left
out, and there must be few."""


def breast_cancer(n_rows: int) -> tuple[ExplainedModel, FloatArray]:
    """Return scikit-learn's breast-cancer set, 30 players, with one training row as reference."""
    X, labels = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32).astype(np.float64)
    names = list(load_breast_cancer().feature_names)
    classifier = _classifier(X[:400], labels[:400])
    accuracy = float((classifier.predict(X[400:]) == labels[400:]).mean())
    return _explained(classifier, accuracy, X[400:], X[5:6], names, n_rows)


def table_trees(table: Table, n_rows: int) -> tuple[ExplainedModel, FloatArray]:
    """Return a table with one training row of label 0 as reference."""
    X, y, places, test = table.values, table.labels, table.parts["training"], table.parts["test"]
    classifier = _classifier(X[places], y[places])
    accuracy = float((classifier.predict(X[test]) == y[test]).mean())
    reference = X[places[y[places] == 0][:1]]
    return _explained(classifier, accuracy, X[table.explained()], reference, table.names, n_rows)


def _classifier(X: FloatArray, labels: LabelArray) -> Any:
    classifier = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)
    return classifier.fit(X, labels)


def _explained(
    classifier: Any, accuracy: float, rows: Any, reference: Any, names: list[str], n_rows: int
) -> tuple[ExplainedModel, FloatArray]:
    """Return a model of trees, and the Shapley values of its rows by TreeSHAP."""
    margin = Margin(classifier.booster_)
    explainer = shap.TreeExplainer(classifier, reference, feature_perturbation="interventional")
    found = explainer.shap_values(rows, check_additivity=False)  # each row is checked below
    # Older versions of shap give a list with the values of each class.
    values = np.asarray(found[1] if isinstance(found, list) else found, dtype=np.float64)
    is_right = np.abs(values.sum(axis=1) - margin(rows) + margin(reference)) < 1e-5
    if is_right.mean() < _LEAST_RIGHT:
        raise RuntimeError("TreeSHAP explains something other than the margin of the trees.")
    groups = {name: [name] for name in names}
    explained = ExplainedModel(margin, rows[is_right][:n_rows], reference, groups, accuracy)
    return explained, values[is_right][:n_rows]


ADULT_NUMBERS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")


def adult(
    data: Path, cache: Path, n_rows: int, activation: str = "elu", seed: int = 0
) -> ExplainedModel:
    """Load the data, train the network or read it from the cache, and pick rows.

    With another seed, split and network are others.
    """
    inputs, labels, groups = _encoded_adult(data, seed)
    rows = inputs["test"][:n_rows]
    return explained_perceptron("adult", inputs, labels, rows, groups, cache, activation, seed)


def adult_rows(data: Path) -> InputArray:
    """Return the encoded rows that the network was trained on."""
    return _encoded_adult(data)[0]["training"]


def _encoded_adult(folder: Path, seed: int = 0) -> tuple[Parts, Parts, dict[str, list[str]]]:
    """Split into 64 % training, 16 % validation and 20 % test, standardise, encode one-hot."""
    table = pd.read_csv(data_file(folder, "adult/adult.csv.gz")).drop(columns="fnlwgt")
    labels = (table.pop("income") == ">50K").to_numpy(np.int64)
    places = parts(len(table), seed)
    numbers = table[list(ADULT_NUMBERS)].astype(np.float64)
    known = numbers.iloc[places["training"]]
    numbers = (numbers - known.mean()) / known.std()
    blocks = {name: numbers[[name]] for name in numbers} | {
        # Missing is a category like the others.
        name: pd.get_dummies(table[name].fillna("missing"), prefix=name)
        for name in table.columns.drop(list(ADULT_NUMBERS))
    }
    inputs = pd.concat(blocks.values(), axis=1).to_numpy(np.float32)
    return (
        {part: inputs[place] for part, place in places.items()},
        {part: labels[place] for part, place in places.items()},
        {name: list(block) for name, block in blocks.items()},
    )


TITLES = {
    "adult-elu": "Adult, ELU network",
    "adult-relu": "Adult, ReLU network",
    "trees": "breast cancer, boosted trees",
    "table": "Taiwanese bankruptcy, boosted trees",
    "table-net": "Taiwanese bankruptcy, ReLU network",
    "news": "news articles, boosted trees",
    "news-net": "news articles, ReLU network",
}


def prepare(name: str, data: Path, cache: Path, n_rows: int) -> Case:
    """Return a model, its rows and their Shapley values.

    Parameters
    ----------
    name : str
        One of `TITLES`.
    data, cache : Path
        The folder of the data sets, and the one that keeps trained networks.
    n_rows : int
        How many rows to explain.
    """
    torch.set_num_threads(1)
    error = 0.0
    if name.startswith("adult"):
        explained = adult(data, cache, n_rows, name.removeprefix("adult-"))
        exact = explained.tabulated().shapley_values()
    elif name == "trees":
        explained, exact = breast_cancer(n_rows)
    else:
        table = (companies if name.startswith("table") else news)(data)
        if not name.endswith("-net"):
            explained, exact = table_trees(table, n_rows)
        else:
            kept = "bankruptcy" if name == "table-net" else "news"
            explained = table_network(kept, table, cache, n_rows)
            games, n_players = explained.evaluated(), explained.n_players
            found = [converged(partial(games.of_row, row), n_players) for row in range(n_rows)]
            exact = np.array([one.exact for one in found])
            # The mean of the absolute value of a normal number is √(2/π) standard deviations.
            error = np.sqrt(2 / np.pi) * np.mean([one.standard_errors.sum() for one in found])
    if len(explained.rows) < n_rows:
        raise SystemExit(f"--rows {n_rows}: {TITLES[name]} has only {len(explained.rows)}.")
    return Case(TITLES[name], explained, exact, float(error))
