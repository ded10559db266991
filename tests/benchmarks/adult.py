"""The Adult benchmark of Wang et al. (ICML 2022), Appendices F and H: data, network, players."""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from adult_network import ACTIVATIONS, OUTPUTS, Explained, InputArray, LabelArray, trained_network
from coalition_games import FloatArray, IntArray, TabulatedGame, tabulate
from torch import Tensor

DATA_VARIABLE = "SHAPLEY_EXT_DATA"
DATA_FILE = Path("adult") / "adult.csv.gz"
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
_SEED = 2022


@dataclass(frozen=True)
class AdultBenchmark:
    """A trained network and the rows to explain.

    Attributes
    ----------
    model : Explained
        The network and the output that is explained.
    rows : array, (R, D)
        Encoded rows of the test part.
    reference : array, (1, D)
        Mean of the encoded training part.
    column_names : list of str
        Names of the encoded columns.
    groups : dict of str to list of str
        The players: name and columns of each.
    player_of_column : array, (D,)
        The player of each column.
    accuracy : float
        Share of the test part that the network tells right.
    """

    model: Explained
    rows: InputArray
    reference: InputArray
    column_names: list[str]
    groups: dict[str, list[str]]
    player_of_column: IntArray
    accuracy: float

    @property
    def n_players(self) -> int:
        """Number of players."""
        return len(self.groups)

    @property
    def feature_mask(self) -> Tensor:
        """The players as captum takes them, (1, D)."""
        return torch.as_tensor(self.player_of_column)[None]

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
    parser.add_argument("--data", type=Path, default=data_folder(), help=f"${DATA_VARIABLE}")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "shapley-ext-benchmarks",
        help="folder that keeps trained networks",
    )


def data_folder() -> Path:
    """Return the folder that the environment names, or `shared/data` beside the repository."""
    repository = Path(__file__).resolve().parents[2]
    return Path(os.environ.get(DATA_VARIABLE, repository.parent / "shared" / "data"))


def prepare(arguments: argparse.Namespace, n_rows: int) -> AdultBenchmark:
    """Load the data, train the network or read it from the cache, and pick rows.

    Parameters
    ----------
    arguments : argparse.Namespace
        What `add_arguments` asks for.
    n_rows : int
        How many rows of the test part to explain.
    """
    encoded = _encode(arguments.data)
    network = trained_network(encoded.inputs, encoded.labels, arguments.activation, arguments.cache)
    with torch.no_grad():
        told = network(torch.as_tensor(encoded.inputs["test"])).argmax(dim=1).numpy()
    return AdultBenchmark(
        model=Explained(network, arguments.explain).eval().requires_grad_(False),
        rows=encoded.inputs["test"][:n_rows],
        reference=encoded.inputs["training"].mean(axis=0, keepdims=True),
        column_names=encoded.column_names,
        groups=encoded.groups,
        player_of_column=np.repeat(
            np.arange(len(encoded.groups)), [len(block) for block in encoded.groups.values()]
        ),
        accuracy=float((told == encoded.labels["test"]).mean()),
    )


@dataclass(frozen=True)
class _Encoded:
    inputs: dict[str, InputArray]
    labels: dict[str, LabelArray]
    column_names: list[str]
    groups: dict[str, list[str]]


def _encode(folder: Path) -> _Encoded:
    """Split into 64 % training, 16 % validation and 20 % test, standardise, encode one-hot."""
    table = _read(folder)
    order = np.random.default_rng(_SEED).permutation(len(table))
    n_test, n_validation = round(0.2 * len(table)), round(0.16 * len(table))
    places = {
        "test": order[:n_test],
        "validation": order[n_test : n_test + n_validation],
        "training": order[n_test + n_validation :],
    }
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


def _read(folder: Path) -> pd.DataFrame:
    path = folder / DATA_FILE
    if not path.is_file():
        raise SystemExit(
            f"No file {path}. Name the folder that holds {DATA_FILE} by --data or the environment "
            f"variable {DATA_VARIABLE}."
        )
    return pd.read_csv(path).drop(columns="fnlwgt")
