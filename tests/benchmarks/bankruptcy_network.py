"""A perceptron on the companies of `tree_models`, with as many players."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from adult_network import trained_perceptron
from data_files import parts
from explained_models import ExplainedModel
from network_training import Explained, InputArray, LabelArray, accuracy
from sklearn.preprocessing import QuantileTransformer
from tree_models import bankruptcy_table, in_turns


@dataclass(frozen=True)
class CompanyScores:
    """Companies by normal scores of their ranks.

    Attributes
    ----------
    scores : array, (n, D)
        All companies.
    labels : array, (n,)
        Whether they went bankrupt.
    names : list of str
        Names of the columns.
    """

    scores: InputArray
    labels: LabelArray
    names: list[str]

    @property
    def training(self) -> InputArray:
        """The training part, (R, D)."""
        rows: InputArray = self.scores[parts(len(self.scores))["training"]]
        return rows


def company_scores(folder: Path) -> CompanyScores:
    """Read the companies; ranks are those among the training part."""
    X, labels, names = bankruptcy_table(folder)
    ranks = QuantileTransformer(output_distribution="normal", n_quantiles=500, random_state=0)
    ranks.fit(X[parts(len(X))["training"]])
    return CompanyScores(np.clip(ranks.transform(X), -3, 3).astype(np.float32), labels, names)


def bankruptcy_network(folder: Path, cache: Path, n_rows: int) -> ExplainedModel:
    """Return companies by normal scores of their ranks; absent ones take the mean."""
    companies = company_scores(folder)
    scores, labels, names = companies.scores, companies.labels, companies.names
    places = parts(len(scores))
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
