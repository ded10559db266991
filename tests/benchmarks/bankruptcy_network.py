"""A perceptron on the companies of `tree_models`, with as many players."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from adult_network import trained_perceptron
from data_files import parts
from explained_models import ExplainedModel
from network_training import Explained, accuracy
from sklearn.preprocessing import QuantileTransformer
from tree_models import bankruptcy_table, in_turns


def bankruptcy_network(folder: Path, cache: Path, n_rows: int) -> ExplainedModel:
    """Return companies by normal scores of their ranks; absent ones take the mean."""
    X, labels, names = bankruptcy_table(folder)
    places = parts(len(X))
    ranks = QuantileTransformer(output_distribution="normal", n_quantiles=500, random_state=0)
    ranks.fit(X[places["training"]])
    scores = np.clip(ranks.transform(X), -3, 3).astype(np.float32)
    inputs = {part: scores[place] for part, place in places.items()}
    known = {part: labels[place] for part, place in places.items()}
    network = trained_perceptron("bankruptcy", inputs, known, "relu", cache)
    return ExplainedModel(
        model=Explained(network).eval().requires_grad_(False),
        rows=scores[in_turns(labels, places["test"])[:n_rows]],
        reference=inputs["training"].mean(axis=0, keepdims=True),
        column_names=names,
        groups={name: [name] for name in names},
        player_of_column=np.arange(len(names)),
        accuracy=accuracy(network, inputs["test"], known["test"]),
    )
