"""The Adult benchmark of Wang et al. (ICML 2022), Appendices F and H: data, network, players."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from coalition_games import FloatArray, TabulatedGame, tabulate
from data_files import add_folder_arguments, data_file, parts
from explained_models import ExplainedModel
from network_training import OUTPUTS, Explained, InputArray, LabelArray, accuracy
from table_models import ACTIVATIONS, trained_perceptron

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


class AdultBenchmark(ExplainedModel):
    """The network and the rows; absent columns take the mean of the encoded training part."""

    def game(self) -> TabulatedGame:
        """Tabulate all coalitions of all rows."""
        return tabulate(self.model.predict, self.rows, self.reference, self.player_of_column)

    def hessian_scores(self) -> FloatArray:
        """Return what the authors rank cooperators by, (R, M, M).

        For two players, the largest |H_ab| |x_a − r_a| |x_b − r_b| over their columns a and b, with
        the Hessian H of the explained output at the row.
        """
        x = torch.as_tensor(self.rows)
        of_row = torch.func.hessian(lambda row: self.model(row[None])[0])
        hessians = torch.func.vmap(of_row, chunk_size=16)(x).detach().abs().numpy()
        distance = np.abs(self.rows - self.reference)
        cross = hessians * distance[:, :, None] * distance[:, None, :]
        starts = np.flatnonzero(np.diff(self.player_of_column, prepend=-1))
        blocks = np.maximum.reduceat(np.maximum.reduceat(cross, starts, axis=1), starts, axis=2)
        blocks[:, np.eye(self.n_players, dtype=bool)] = 0.0
        return blocks.astype(np.float64)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what chooses the data, the network and the output."""
    parser.add_argument("--activation", choices=tuple(ACTIVATIONS), default="elu")
    parser.add_argument("--explain", choices=OUTPUTS, default="margin")
    add_folder_arguments(parser)


def prepare(arguments: argparse.Namespace, n_rows: int, seed: int = 0) -> AdultBenchmark:
    """Load the data, train the network or read it from the cache, and pick rows.

    Parameters
    ----------
    arguments : argparse.Namespace
        What `add_arguments` asks for.
    n_rows : int
        How many rows of the test part to explain.
    seed : int
        Another one, another split and another network.
    """
    encoded = _encode(arguments.data, seed)
    network = trained_perceptron(
        "adult", encoded.inputs, encoded.labels, arguments.activation, arguments.cache, seed
    )
    return AdultBenchmark(
        model=Explained(network, arguments.explain).eval().requires_grad_(False),
        rows=encoded.inputs["test"][:n_rows],
        reference=encoded.inputs["training"].mean(axis=0, keepdims=True),
        column_names=encoded.column_names,
        groups=encoded.groups,
        player_of_column=np.repeat(
            np.arange(len(encoded.groups)), [len(block) for block in encoded.groups.values()]
        ),
        accuracy=accuracy(network, encoded.inputs["test"], encoded.labels["test"]),
    )


def training_rows(arguments: argparse.Namespace) -> InputArray:
    """Return the encoded rows that the network was trained on."""
    return _encode(arguments.data).inputs["training"]


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
