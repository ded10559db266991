"""A model, the rows to explain, their players, and what their values are."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from coalition_games import FloatArray, IntArray, ModelGame
from network_training import InputArray
from torch import Tensor, nn


@dataclass(frozen=True)
class ExplainedModel:
    """A trained model and the rows to explain, as flat tables of columns.

    Attributes
    ----------
    model : Explained or Margin
        The model and the output that is explained: a module where it is a network, else a
        function; `predict` takes arrays in both cases.
    rows : array, (R, D)
        Encoded rows of the test part.
    reference : array, (1, D)
        What absent columns are set to.
    column_names : list of str
        Names of the encoded columns.
    groups : dict of str to list of str
        The players: name and columns of each.
    player_of_column : array, (D,)
        The player of each column.
    accuracy : float
        Share of the test part that the model tells right.
    """

    model: Any
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
    def is_network(self) -> bool:
        """Whether the model has derivatives."""
        return isinstance(self.model, nn.Module)

    @property
    def feature_mask(self) -> Tensor:
        """The players as captum takes them, (1, D)."""
        return torch.as_tensor(self.player_of_column)[None]

    def evaluated(self) -> ModelGame:
        """Return the games of all rows, evaluated when asked."""
        return ModelGame(self.model.predict, self.rows, self.reference, self.player_of_column)


@dataclass(frozen=True)
class ReferenceValues:
    """What estimates are compared with.

    Attributes
    ----------
    values : array, (R, M)
        The Shapley values.
    errors : array, (R, M)
        Standard errors, 0 where the values are exact.
    source : str
        How they were found, in a few words.
    """

    values: FloatArray
    errors: FloatArray
    source: str

    @classmethod
    def exact(cls, values: FloatArray, source: str) -> ReferenceValues:
        """Return values that are exact."""
        return cls(values, np.zeros_like(values), source)

    @property
    def absolute_error(self) -> float:
        """What they add to an absolute error, summed over players: the mean over rows.

        The mean of the absolute value of a normal number is √(2/π) standard deviations.
        """
        return float(np.sqrt(2 / np.pi) * self.errors.sum(axis=1).mean())


@dataclass(frozen=True)
class Case:
    """A model of the benchmark.

    Attributes
    ----------
    name, title : str
        What it is called on the command line, and in tables.
    explained : ExplainedModel
        The model and its rows.
    shapley : ReferenceValues
        What the estimates are compared with.
    """

    name: str
    title: str
    explained: ExplainedModel
    shapley: ReferenceValues


class Margin:
    """The margin of a boosted-tree classifier, the log-odds of class 1."""

    def __init__(self, booster: Any) -> None:
        self.booster = booster

    def __call__(self, x: npt.NDArray[Any]) -> FloatArray:
        """Return the margin, (B,)."""
        margin: FloatArray = self.booster.predict(x, raw_score=True, num_threads=1)
        return margin

    def predict(self, x: npt.NDArray[Any]) -> FloatArray:
        """Return the margin, (B,)."""
        return self(x)


class Clock:
    """How long and on how many rows a model ran."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.n_rows_run = 0

    def timed(self, explained: ExplainedModel) -> ExplainedModel:
        """Return the same with a model that this clock watches."""
        watched = _TimedModule if explained.is_network else _TimedFunction
        fields: Mapping[str, Any] = {**vars(explained), "model": watched(explained.model, self)}
        return ExplainedModel(**fields)

    def run(self, function: Any, x: Any) -> Any:
        """Call the function and write down what it took."""
        started = time.perf_counter()
        output = function(x)
        self.seconds += time.perf_counter() - started
        self.n_rows_run += len(x)
        return output


class _TimedFunction:
    def __init__(self, model: Any, clock: Clock) -> None:
        self.model, self.clock = model, clock

    def __call__(self, x: npt.NDArray[Any]) -> FloatArray:
        output: FloatArray = self.clock.run(self.model, x)
        return output

    predict = __call__


class _TimedModule(nn.Module):
    def __init__(self, model: nn.Module, clock: Clock) -> None:
        super().__init__()
        self.model = model
        self.clock = clock

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.clock.run(self.model, x)
        return output

    def predict(self, x: npt.NDArray[Any]) -> FloatArray:
        output: FloatArray = self.clock.run(self.model.predict, x)
        return output
