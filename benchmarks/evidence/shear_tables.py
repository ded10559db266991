"""The tables and the network of the SHEAR paper, as the authors' code prepares them.

Continuous columns and one-hot columns are standardised; missing is a category. The network is
softplus, with two hidden layers of 64; the explained output is the logit of class 1. Absent columns
take their mean, which is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch
from data_files import parts
from games import FloatArray, IntArray, TabulatedGame, tabulate
from network_training import InputArray, LabelArray, accuracy, trained_network
from torch import Tensor, nn

from .items import Setting


@dataclass(frozen=True)
class TableFile:
    """A table: its file, the label that is class 1, and the columns that are dropped."""

    name: str
    title: str
    file: str
    label: str
    positive: str
    dropped: tuple[str, ...] = ()


CENSUS = TableFile("census", "Census Income", "adult/adult.csv.gz", "income", ">50K", ("fnlwgt",))
BANK = TableFile("bank", "bank marketing", "bank_marketing/bank_marketing.csv.gz", "y", "yes")


@dataclass(frozen=True)
class ExplainedTable:
    """A trained network, the rows to explain, and their games.

    Attributes
    ----------
    table : TableFile
        The file of the data.
    network : nn.Module
        Inputs to two logits.
    rows : array, (R, D)
        Encoded rows of the test part.
    player_of_column : array, (D,)
        The player of each column.
    players : list of str
        The names of the players.
    accuracy : float
        On the test part.
    is_margin : bool
        Whether f¹ − f⁰ is explained, or else f¹.
    """

    table: TableFile
    network: nn.Module
    rows: InputArray
    player_of_column: IntArray
    players: list[str]
    accuracy: float
    is_margin: bool = False

    @property
    def reference(self) -> InputArray:
        """The values of absent columns, (1, D)."""
        return np.zeros_like(self.rows[:1])

    @property
    def settings(self) -> dict[str, str]:
        """What the page says of all this."""
        output = "f¹ − f⁰" if self.is_margin else "logit of class 1"
        return {
            "data": self.table.title,
            "network": f"softplus, accuracy {self.accuracy:.3f}, {output}",
            "rows": str(len(self.rows)),
        }

    def predict(self, inputs: InputArray) -> FloatArray:
        """Return the explained output, (B,)."""
        with torch.no_grad():
            output = self._output(torch.as_tensor(inputs, dtype=torch.float32))
        return output.numpy().astype(np.float64)

    def _output(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)
        return logits[:, 1] - logits[:, 0] if self.is_margin else logits[:, 1]

    def game(self) -> TabulatedGame:
        """Return the values of all coalitions of all rows."""
        return tabulate(self.predict, self.rows, self.reference, self.player_of_column)

    def cross_contributions(self) -> FloatArray:
        """Return η of Eq. 11, (R, M, M): the largest of the blocks of two players' columns."""
        x = torch.as_tensor(self.rows)
        of_row = torch.func.hessian(lambda row: self._output(row[None])[0])
        hessians = torch.func.vmap(of_row, chunk_size=16)(x).detach().abs().numpy()
        distances = np.abs(self.rows)
        cross = hessians * distances[:, :, None] * distances[:, None, :]
        starts = np.flatnonzero(np.diff(self.player_of_column, prepend=-1))
        blocks = np.maximum.reduceat(np.maximum.reduceat(cross, starts, axis=1), starts, axis=2)
        blocks[:, np.eye(len(self.players), dtype=bool)] = 0.0
        scores: FloatArray = blocks.astype(np.float64)
        return scores


def explained_table(
    table: TableFile, setting: Setting, n_rows: int, *, is_margin: bool = False
) -> ExplainedTable:
    """Read and encode a table, train the network or read it from the cache, and take rows."""
    frame = pd.read_csv(setting.data / table.file).drop(columns=list(table.dropped))
    labels: LabelArray = (frame.pop(table.label) == table.positive).to_numpy(np.int64)
    blocks = {
        name: column.to_frame().astype(np.float64)
        if pd.api.types.is_numeric_dtype(column)
        else pd.get_dummies(column.fillna("missing"), prefix=name).astype(np.float64)
        for name, column in frame.items()
    }
    encoded = pd.concat(blocks.values(), axis=1).to_numpy(np.float64)
    indices = parts(len(encoded), setting.seed)
    of_training = encoded[indices["training"]]
    spread = of_training.std(axis=0)
    scaled = (encoded - of_training.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    inputs = {part: scaled[rows].astype(np.float32) for part, rows in indices.items()}
    targets = {part: labels[rows] for part, rows in indices.items()}
    make = partial(_softplus_network, scaled.shape[1])
    network = trained_network(
        f"{table.name}-softplus", make, inputs, targets, setting.cache, setting.seed
    )
    sizes = [block.shape[1] for block in blocks.values()]
    return ExplainedTable(
        table=table,
        network=network,
        rows=inputs["test"][:n_rows],
        player_of_column=np.repeat(np.arange(len(sizes)), sizes),
        players=[str(name) for name in blocks],
        accuracy=accuracy(network, inputs["test"], targets["test"]),
        is_margin=is_margin,
    )


def _softplus_network(n_columns: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_columns, 64), nn.Softplus(), nn.Linear(64, 64), nn.Softplus(), nn.Linear(64, 2)
    )
