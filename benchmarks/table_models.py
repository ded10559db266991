"""Models of tables: perceptrons, and boosted trees, whose Shapley values are exact by TreeSHAP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import shap
from explained_models import ExplainedModel, Margin, ReferenceValues
from games import FloatArray
from network_training import Explained, InputArray, LabelArray, accuracy, trained_network
from sklearn.datasets import load_breast_cancer
from tables import Table
from torch import nn

# --- perceptrons ---

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"elu": nn.ELU, "relu": nn.ReLU}


def perceptron(n_columns: int, activation: str) -> nn.Sequential:
    """Return three layers with 64 hidden units and two logits."""
    between = ACTIVATIONS[activation]
    return nn.Sequential(
        nn.Linear(n_columns, 64), between(), nn.Linear(64, 64), between(), nn.Linear(64, 2)
    )


def trained_perceptron(
    name: str,
    inputs: Mapping[str, InputArray],
    labels: Mapping[str, LabelArray],
    activation: str,
    cache: Path,
    seed: int = 0,
) -> nn.Module:
    """Return the network of a table, trained now or before."""
    make = partial(perceptron, inputs["training"].shape[1], activation)
    return trained_network(f"{name}-{activation}", make, inputs, labels, cache, seed)


def table_network(name: str, table: Table, cache: Path, n_rows: int) -> ExplainedModel:
    """Return rows by normal scores of their ranks; absent ones take the mean.

    `name` is what the trained network is kept by.
    """
    inputs = {part: table.scores[places] for part, places in table.parts.items()}
    labels = {part: table.labels[places] for part, places in table.parts.items()}
    network = trained_perceptron(name, inputs, labels, "relu", cache)
    return ExplainedModel(
        model=Explained(network).eval().requires_grad_(False),
        rows=table.scores[table.explained()[:n_rows]],
        reference=inputs["training"].mean(axis=0, keepdims=True),
        column_names=table.names,
        groups={name: [name] for name in table.names},
        player_of_column=np.arange(len(table.names)),
        accuracy=accuracy(network, inputs["test"], labels["test"]),
    )


# --- boosted trees ---

_SOURCE = "interventional TreeSHAP"

_LEAST_RIGHT = 0.95
"""TreeSHAP rounds thresholds to single precision; rows that this puts on their other side are left
out, and there must be few."""


def breast_cancer(n_rows: int) -> tuple[ExplainedModel, ReferenceValues]:
    """Return scikit-learn's breast-cancer set, 30 players, with one training row as reference."""
    X, labels = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32).astype(np.float64)
    names = list(load_breast_cancer().feature_names)
    classifier = _classifier(X[:400], labels[:400])
    accuracy = float((classifier.predict(X[400:]) == labels[400:]).mean())
    return _explained(classifier, accuracy, X[400:], X[5:6], names, n_rows)


def table_trees(table: Table, n_rows: int) -> tuple[ExplainedModel, ReferenceValues]:
    """Return a table with one training row of label 0 as reference."""
    places = table.parts["training"]
    classifier = _classifier(table.training, table.labels[places])
    test = table.parts["test"]
    accuracy = float((classifier.predict(table.values[test]) == table.labels[test]).mean())
    reference = table.values[places[table.labels[places] == 0][:1]]
    rows = table.values[table.explained()]
    return _explained(classifier, accuracy, rows, reference, table.names, n_rows)


def _classifier(X: FloatArray, labels: LabelArray) -> Any:
    classifier = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1, random_state=0)
    return classifier.fit(X, labels)


def _explained(
    classifier: Any,
    accuracy: float,
    rows: FloatArray,
    reference: FloatArray,
    names: list[str],
    n_rows: int,
) -> tuple[ExplainedModel, ReferenceValues]:
    margin = Margin(classifier.booster_)
    values = _tree_values(classifier, reference, rows)
    is_right = np.abs(values.sum(axis=1) - margin(rows) + margin(reference)) < 1e-5
    if is_right.mean() < _LEAST_RIGHT:
        raise RuntimeError("TreeSHAP explains something other than the margin of the trees.")
    explained = ExplainedModel(
        model=margin,
        rows=rows[is_right][:n_rows],
        reference=reference,
        column_names=names,
        groups={name: [name] for name in names},
        player_of_column=np.arange(len(names)),
        accuracy=accuracy,
    )
    return explained, ReferenceValues.exact(values[is_right][:n_rows], _SOURCE)


def _tree_values(classifier: Any, reference: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the exact values of the margin, (R, M)."""
    explainer = shap.TreeExplainer(classifier, reference, feature_perturbation="interventional")
    values = explainer.shap_values(rows, check_additivity=False)  # `_explained` checks each row
    # Older versions of shap give a list with the values of each class.
    return np.asarray(values[1] if isinstance(values, list) else values, dtype=np.float64)
