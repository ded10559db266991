"""The Adult benchmark of Wang et al. (ICML 2022), Appendices F and H: data, network, players."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from data_files import data_file, parts
from explained_models import ExplainedModel
from network_training import Explained, InputArray, LabelArray, accuracy
from table_models import trained_perceptron

DATA_FILE = "adult/adult.csv.gz"
CONTINUOUS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
CATEGORICAL = (
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
)


def prepare(
    data: Path, cache: Path, n_rows: int, activation: str = "elu", seed: int = 0
) -> ExplainedModel:
    """Load the data, train the network or read it from the cache, and pick rows.

    Absent columns take the mean of the encoded training part. With another seed, split and network
    are others.
    """
    encoded = _encode(data, seed)
    network = trained_perceptron("adult", encoded.inputs, encoded.labels, activation, cache, seed)
    return ExplainedModel(
        model=Explained(network).eval().requires_grad_(False),
        rows=encoded.inputs["test"][:n_rows],
        reference=encoded.inputs["training"].mean(axis=0, keepdims=True),
        column_names=encoded.column_names,
        groups=encoded.groups,
        player_of_column=np.repeat(
            np.arange(len(encoded.groups)), [len(block) for block in encoded.groups.values()]
        ),
        accuracy=accuracy(network, encoded.inputs["test"], encoded.labels["test"]),
    )


def training_rows(data: Path) -> InputArray:
    """Return the encoded rows that the network was trained on."""
    return _encode(data).inputs["training"]


@dataclass(frozen=True)
class _Encoded:
    inputs: dict[str, InputArray]
    labels: dict[str, LabelArray]
    column_names: list[str]
    groups: dict[str, list[str]]


def _encode(folder: Path, seed: int = 0) -> _Encoded:
    """Split into 64 % training, 16 % validation and 20 % test, standardise, encode one-hot."""
    table = pd.read_csv(data_file(folder, DATA_FILE)).drop(columns="fnlwgt")
    places = parts(len(table), seed)
    numbers = table[list(CONTINUOUS)].astype(np.float64)
    known = numbers.iloc[places["training"]]
    blocks = {
        name: ((numbers[[name]] - known[name].mean()) / known[name].std()) for name in numbers
    }
    for name in CATEGORICAL:
        # Missing is a category like the others.
        blocks[name] = pd.get_dummies(table[name].fillna("missing"), prefix=name)
    encoded = pd.concat(blocks.values(), axis=1)
    inputs, labels = encoded.to_numpy(np.float32), (table["income"] == ">50K").to_numpy(np.int64)
    return _Encoded(
        inputs={part: inputs[place] for part, place in places.items()},
        labels={part: labels[place] for part, place in places.items()},
        column_names=list(encoded),
        groups={name: list(block) for name, block in blocks.items()},
    )
