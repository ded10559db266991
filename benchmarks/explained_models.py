"""A model, the rows to explain, their players, and what their values are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shap
from games import FloatArray, IntArray, ModelGame, TabulatedGame, tabulate
from network_training import InputArray

import shap_ext  # noqa: F401  makes shap.Explainer know our algorithms


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

    def evaluated(self) -> ModelGame:
        """Return the games of all rows, evaluated when asked."""
        return ModelGame(self.model.predict, self.rows, self.reference, self.player_of_column)

    def tabulated(self) -> TabulatedGame:
        """Return the games of all rows, by the values of all coalitions."""
        return tabulate(self.model.predict, self.rows, self.reference, self.player_of_column)

    def explainer(self, algorithm: str, seed: int, **options: Any) -> Any:
        """Return an explainer of ours, as shap makes it."""
        return shap.Explainer(
            self.model,
            self.reference,
            algorithm=algorithm,
            seed=seed,
            feature_names=self.column_names,
            groups=self.groups,
            **options,
        )


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
    """A model, its name in tables, and the Shapley values of its rows."""

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
