"""Boosted trees, whose Shapley values are exact by interventional TreeSHAP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import shap
from coalition_games import FloatArray
from data_files import data_file, parts
from explained_models import ExplainedModel, Margin, ReferenceValues
from network_training import LabelArray
from sklearn.datasets import load_breast_cancer

BANKRUPTCY_FILE = "taiwan_bankruptcy/taiwan_bankruptcy.csv.gz"
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


def bankruptcy(folder: Path, n_rows: int) -> tuple[ExplainedModel, ReferenceValues]:
    """Return Taiwanese companies, 94 players; the reference is one that did not go bankrupt.

    Companies that went bankrupt and others take turns among the explained rows.
    """
    X, labels, names = bankruptcy_table(folder)
    places = parts(len(X))
    train, test = places["training"], places["test"]
    classifier = _classifier(X[train], labels[train])
    accuracy = float((classifier.predict(X[test]) == labels[test]).mean())
    reference = X[train[labels[train] == 0][:1]]
    rows = X[in_turns(labels, test)]
    return _explained(classifier, accuracy, rows, reference, names, n_rows)


def training_companies(folder: Path) -> FloatArray:
    """Return the companies that the trees were trained on, (R, D)."""
    X, _, _ = bankruptcy_table(folder)
    rows: FloatArray = X[parts(len(X))["training"]]
    return rows


def bankruptcy_table(folder: Path) -> tuple[FloatArray, LabelArray, list[str]]:
    """Read the columns that vary, the labels and the names of the columns."""
    table = pd.read_csv(data_file(folder, BANKRUPTCY_FILE))
    labels = table.pop("bankrupt").to_numpy(np.int64)
    table = table.loc[:, table.nunique() > 1]
    return table.to_numpy(np.float64), labels, [name.strip() for name in table]


def in_turns(labels: LabelArray, places: Any) -> Any:
    """Return places with label 1 and label 0 in turns, as many of each as the rarer has."""
    ones, zeros = (places[labels[places] == label] for label in (1, 0))
    n_each = min(len(ones), len(zeros))
    return np.stack([ones[:n_each], zeros[:n_each]], axis=1).ravel()


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
    values = explainer.shap_values(rows)
    # Older versions of shap give a list with the values of each class.
    return np.asarray(values[1] if isinstance(values, list) else values, dtype=np.float64)
