"""Tables with many columns, as trees and as networks see them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from data_files import data_file, in_turns, parts
from games import FloatArray, IntArray
from network_training import InputArray, LabelArray
from sklearn.preprocessing import QuantileTransformer


@dataclass(frozen=True)
class Table:
    """A table of numbers, two classes of rows, and how it is split.

    Attributes
    ----------
    values : array, (n, D)
        All rows.
    labels : array, (n,)
        0 or 1 for each.
    names : list of str
        Names of the columns.
    seed : int
        Another one, another split.
    """

    values: FloatArray
    labels: LabelArray
    names: list[str]
    seed: int = 0

    @cached_property
    def parts(self) -> dict[str, IntArray]:
        """Places of the rows of each part."""
        return parts(len(self.values), self.seed)

    @property
    def training(self) -> FloatArray:
        """The training part, (R, D)."""
        rows: FloatArray = self.values[self.parts["training"]]
        return rows

    @cached_property
    def scores(self) -> InputArray:
        """Normal scores of the ranks among the training part, (n, D)."""
        ranks = QuantileTransformer(output_distribution="normal", n_quantiles=500, random_state=0)
        scores = ranks.fit(self.training).transform(self.values)
        clipped: InputArray = np.clip(scores, -3, 3).astype(np.float32)
        return clipped

    @property
    def training_scores(self) -> InputArray:
        """The scores of the training part, (R, D)."""
        rows: InputArray = self.scores[self.parts["training"]]
        return rows

    def explained(self) -> IntArray:
        """Return places of the test part, labels 1 and 0 in turns."""
        return in_turns(self.labels, self.parts["test"])


def companies(folder: Path) -> Table:
    """Read Taiwanese companies, 94 columns, and whether they went bankrupt."""
    return _read(folder, "taiwan_bankruptcy/taiwan_bankruptcy.csv.gz", "bankrupt", [])


def news(folder: Path) -> Table:
    """Read articles of a news site, 57 columns, and whether they were shared often.

    In single precision: TreeSHAP rounds thresholds, which many ratios lie close to.
    """
    left_out = ["url", "timedelta", "shares"]
    table = _read(folder, "online_news/online_news.csv.gz", "popular", left_out)
    return replace(table, values=table.values.astype(np.float32).astype(np.float64))


def _read(folder: Path, name: str, label: str, left_out: list[str]) -> Table:
    """Read the columns that vary."""
    table = pd.read_csv(data_file(folder, name)).drop(columns=left_out)
    labels = table.pop(label).to_numpy(np.int64)
    table = table.loc[:, table.nunique() > 1]
    names = [column.strip() for column in table]
    return Table(table.to_numpy(np.float64), labels, names)
