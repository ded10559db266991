"""Base of the games of tables, dense or sparse, whose rows are masked by background rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import shap

from shapley_adapters.array_types import CoalitionArray, FloatArray, IntArray, ValueArray
from shapley_adapters.games.evaluation import OutputShape
from shapley_adapters.games.value_functions import Reduction

from ..argument_types import Table
from ..inputs.models import GameOfModel, as_outputs, new_shape
from .links import LinkedAverage


@dataclass(kw_only=True)
class MaskedTable(GameOfModel):
    """Rows whose absent columns take the values of background rows.

    Attributes
    ----------
    predict : callable
        The model, of tables (n, D) that `to_model_input` has converted.
    rows, background : arrays or sparse matrices in csr form, (R, D) and (B, D)
        Present and absent values, of one type.
    players : array, (D,)
        The player of each column.
    average : LinkedAverage
        How outputs of background rows become one value.
    to_model_input : callable
        Converts (n, D) to the input of the model: another shape, or a DataFrame.
    linearize_link : bool
        Whether background rows are weighted so that additive models stay additive.
    n_rows, n_players : int
        Number of rows to explain, and of players.
    """

    predict: Callable[[Any], Any]
    rows: Any
    background: Any
    players: IntArray
    average: LinkedAverage
    to_model_input: Callable[[Any], Any]
    linearize_link: bool = True
    n_rows: int = field(init=False)
    n_players: int = field(init=False)
    _shape: OutputShape = field(default_factory=new_shape, init=False, repr=False)

    has_common_empty_value: ClassVar[bool] = True
    """A row whose columns are all absent is the background, whichever row it is."""

    def __post_init__(self) -> None:
        self.n_rows = int(self.rows.shape[0])
        self.n_players = int(self.players.max()) + 1
        if self.linearize_link and self.average.link is not shap.links.identity:
            self.average = self.average.linearized_at(self._outputs(self.background.copy()))

    @property
    def background_weights(self) -> FloatArray | None:
        """Weight of each background row, 1 in all; None where they are equal."""
        return self.average.background_weights

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), averaged over the background."""
        outputs = self._outputs(self._masked(rows, coalitions))  # (P·B, K)
        return self.average(outputs.reshape(len(rows), self.background.shape[0], -1))

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values that `reduce` makes of the outputs for the background rows."""
        outputs = self._outputs(self._masked(rows, coalitions))  # (P·B, K)
        return reduce(outputs.reshape(len(rows), self.background.shape[0], -1), rows)

    def _masked(self, rows: IntArray, coalitions: CoalitionArray) -> Any:
        """Return the masked rows, (P·B, D)."""
        raise NotImplementedError

    def _outputs(self, table: Table) -> ValueArray:
        """Call the model with a table that nothing else uses, because it may write into it."""
        return as_outputs(self.predict(self.to_model_input(table)), table.shape[0], self._shape)
