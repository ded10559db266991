"""Perceptrons on the tables, with as many players."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from adult_network import trained_perceptron
from explained_models import ExplainedModel
from network_training import Explained, accuracy
from tables import Table


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
