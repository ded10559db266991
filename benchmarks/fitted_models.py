"""Models fitted to drawn data, with 8 to 100 features and known Shapley values.

A seed draws the data, the models and the rows to explain. Values are known by enumeration up to 13
features. With more, those of trees are known by interventional TreeSHAP, and those of networks and
support vector machines by enumeration of each of the groups of features that they are sums over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import shap
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

FloatArray = npt.NDArray[np.float64]
Function = Callable[[FloatArray], FloatArray]

_MOST_ENUMERATED = 13
_N_TRAINING = 1200
_GROUP = 8
"""Features of each network, or support vector machine, of a sum."""

_BACKGROUND = 100


@dataclass(frozen=True)
class FittedModel:
    """A model, rows to explain, the background, and the Shapley values, (R, M)."""

    name: str
    model: Function
    rows: FloatArray
    background: FloatArray
    values: FloatArray


KINDS = ("boosted trees", "forest", "extra trees", "network", "support vectors", "100 rows")


def fitted_model(kind: str, n_features: int, n_rows: int, seed: int) -> FittedModel:
    """Draw data, fit a model of some kind, and compute the values of some of its rows."""
    rng = np.random.default_rng([seed, n_features, KINDS.index(kind)])
    data, target = _drawn_data(n_features, rng)
    rows, training = data[:n_rows], data[n_rows:]
    background = training[rng.integers(len(training))][None]
    if kind == "100 rows":
        background = training[:_BACKGROUND]
    of_training = target[n_rows:]
    if kind in ("network", "support vectors"):
        model, parts = _sum_of_parts(kind, training, of_training, rng)
        values = _values_of_parts(parts, rows, background)
    else:
        trees, model = _fitted_trees(kind, training, of_training, rng)
        if n_features <= _MOST_ENUMERATED and kind != "100 rows":
            values = enumerated(model, rows, background)
        else:
            explainer = shap.TreeExplainer(trees, background)
            values = explainer.shap_values(rows, check_additivity=False)
            values = values[..., 1] if values.ndim == 3 else values
    return FittedModel(kind, model, rows, background, values)


def _drawn_data(n_features: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return correlated features, in single precision, and a target of some of them."""
    factors = rng.normal(size=(n_features, n_features)) * (rng.random(n_features) < 0.3)
    noise = rng.normal(size=(_N_TRAINING, n_features))
    data = noise + 0.7 / np.sqrt(n_features) * rng.normal(size=noise.shape) @ factors
    data = data.astype(np.float32).astype(np.float64)
    target = data @ rng.exponential(size=n_features)
    for _ in range(n_features):
        members = rng.choice(n_features, int(rng.integers(2, 5)), replace=False)
        waves = np.tanh(data[:, members] @ rng.normal(size=len(members)))
        boxes = (data[:, members] > rng.normal(size=len(members)) / 2).all(axis=1)
        products = data[:, members[:2]].prod(axis=1)
        target = target + rng.dirichlet(np.ones(3)) @ [3 * waves, 3 * boxes, products]
    return data, target / target.std()


def _fitted_trees(
    kind: str, data: FloatArray, target: FloatArray, rng: np.random.Generator
) -> tuple[object, Function]:
    state = int(rng.integers(2**31))
    if kind == "forest":
        forest = RandomForestClassifier(30, max_depth=8, random_state=state)
        forest.fit(data, target > np.median(target))
        return forest, lambda rows: forest.predict_proba(rows)[:, 1]
    if kind == "extra trees":
        extra = ExtraTreesRegressor(30, max_depth=9, random_state=state).fit(data, target)
        return extra, extra.predict
    boosted = lightgbm.LGBMRegressor(
        n_estimators=int(rng.integers(40, 120)),
        num_leaves=int(rng.integers(6, 32)),
        verbose=-1,
        n_jobs=1,
        random_state=state,
    ).fit(data, target)
    booster: Any = boosted.booster_
    return boosted, booster.predict


Part = tuple[npt.NDArray[np.intp], Function]
"""Columns, and a function of these."""


def _sum_of_parts(
    kind: str, data: FloatArray, target: FloatArray, rng: np.random.Generator
) -> tuple[Function, list[Part]]:
    """Fit one model of all features, if they are few, or else a sum of models of some each."""
    n_features, parts, remainder = data.shape[1], [], target
    n_parts = 1 if n_features <= _MOST_ENUMERATED else 2 * n_features // _GROUP
    for _ in range(n_parts):
        size = n_features if n_parts == 1 else _GROUP
        columns = rng.choice(n_features, size, replace=False)
        if kind == "network":
            layers = (int(rng.integers(8, 40)),) * int(rng.integers(1, 3))
            activation = str(rng.choice(["relu", "tanh"]))
            fitted = MLPRegressor(
                hidden_layer_sizes=layers,
                activation=activation,
                max_iter=150,
                random_state=int(rng.integers(2**31)),
            )
        else:
            fitted = SVR(C=float(rng.choice([1.0, 10.0])))
        fitted.fit(data[:, columns], remainder)
        remainder = remainder - 0.8 * fitted.predict(data[:, columns])
        parts.append((columns, fitted.predict))

    def model(rows: FloatArray) -> FloatArray:
        return np.asarray(np.sum([part(rows[:, columns]) for columns, part in parts], axis=0))

    return model, parts


def _values_of_parts(parts: list[Part], rows: FloatArray, background: FloatArray) -> FloatArray:
    values = np.zeros(rows.shape)
    for columns, part in parts:
        values[:, columns] += enumerated(part, rows[:, columns], background[:, columns])
    return values


def enumerated(model: Function, rows: FloatArray, background: FloatArray) -> FloatArray:
    """Return the Shapley values of rows, (R, M), by all coalitions."""
    n_features = rows.shape[1]
    codes = np.arange(2**n_features)
    members = (codes[:, None] >> np.arange(n_features)) & 1 == 1
    sizes = members.sum(axis=1)
    orders = np.array([1.0 / _orders(n_features, size) for size in range(n_features)])
    found = np.zeros(rows.shape)
    for row, values in zip(rows, found, strict=True):
        games = np.mean([model(np.where(members, row, absent)) for absent in background], axis=0)
        for player in range(n_features):
            without = np.flatnonzero(~members[:, player])
            steps = games[without + (1 << player)] - games[without]
            values[player] = orders[sizes[without]] @ steps
    return found


def _orders(n_players: int, size: int) -> float:
    """Return how many coalitions of a size a player may join, times the number of players."""
    number = float(n_players)
    for place in range(size):
        number *= (n_players - 1 - place) / (place + 1)
    return number
