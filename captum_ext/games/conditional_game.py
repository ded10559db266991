"""A forward function whose absent features are drawn given the present ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from shapley_adapters.array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from shapley_adapters.conditional.draws import ConditionalDraws, RowDraws
from shapley_adapters.conditional.refits import N_FITS
from shapley_adapters.games.evaluation import in_double_precision
from shapley_adapters.games.game import WrappedGame
from shapley_adapters.games.value_functions import Reduction
from shapley_adapters.torch_support.tensor_arrays import array_of

from .forward_function_game import ForwardFunctionGame


@dataclass
class ConditionalGame(ForwardFunctionGame):
    """One game for each example, whose absent features are drawn given the present ones.

    Attributes
    ----------
    draws : ConditionalDraws
        Draws the features of the only input, flattened.
    """

    draws: ConditionalDraws = field(kw_only=True)

    draws_values = True
    derivative_obstacle = "absent features are drawn"

    def __post_init__(self) -> None:
        super().__post_init__()
        table = array_of(self.inputs[0]).reshape(self.n_rows, -1)
        self._draws_of_rows = [self.draws.of_row(row) for row in table]
        self._repeated: dict[tuple[int, int], RowDraws] = {}  # which know their latest draws

    @property
    def has_refits(self) -> bool:
        """Whether the distribution knows the draws of other fits."""
        return self.draws.log_ratios is not None

    def active_players(self) -> BoolArray:
        """Return all players: whatever is present changes the distribution of the others."""
        return np.ones((self.n_rows, self.n_players), dtype=bool)

    def repeated(self, n_repeats: int) -> RepeatedExamples:
        """Return the game whose row r · n + i is repetition i of example r."""
        return RepeatedExamples(self, n_repeats)

    def _outputs(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        return self.outputs_of(rows, coalitions, np.zeros_like(rows))

    def outputs_of(
        self, rows: IntArray, coalitions: CoalitionArray, repeats: IntArray
    ) -> ValueArray:
        """Return the selected outputs for each draw, (P, draws, K), of a repetition of each pair.

        Without absent features, all draws are the same row of the forward function.
        """
        (inputs,), n_draws = self.inputs, self.baselines.n_draws
        masks = self._masks(rows, coalitions)
        table = np.empty((len(rows), n_draws, masks.shape[1]))
        for pairs, draws in self._draws_of_pairs(rows, repeats):
            table[pairs] = draws(masks[pairs])
        is_drawn = np.arange(n_draws) < np.where(masks.all(axis=1), 1, n_draws)[:, None]
        masked = torch.as_tensor(table[is_drawn]).reshape(-1, *inputs.shape[1:]).to(inputs)
        with torch.no_grad():
            selected = self._selected((masked,), np.repeat(rows, is_drawn.sum(axis=1)))
        outputs = in_double_precision("forward_func", array_of(selected))
        places = np.cumsum(is_drawn).reshape(is_drawn.shape) - 1
        return outputs[places]

    def log_ratios_of(
        self, rows: IntArray, coalitions: CoalitionArray, repeats: IntArray
    ) -> FloatArray:
        """Return the logarithms of ratios of densities of each draw, (P, draws, F)."""
        masks = self._masks(rows, coalitions)
        ratios = np.empty((len(rows), self.baselines.n_draws, N_FITS))
        for pairs, draws in self._draws_of_pairs(rows, repeats):
            ratios[pairs] = draws.log_ratios(masks[pairs])
        return ratios

    def _masks(self, rows: IntArray, coalitions: CoalitionArray) -> BoolArray:
        return self.groups.spread(coalitions, rows, 0).reshape(len(rows), -1)

    def _draws_of_pairs(
        self, rows: IntArray, repeats: IntArray
    ) -> Iterator[tuple[IntArray, RowDraws]]:
        """Yield the draws of each repetition of a row, and its pairs."""
        keys, members = np.unique(np.stack([rows, repeats]), axis=1, return_inverse=True)
        for key, (row, repeat) in enumerate(keys.T.tolist()):
            draws = self._draws_of_rows[row].repeated(repeat)
            pairs = np.flatnonzero(members.ravel() == key)
            yield pairs, self._repeated.setdefault((row, repeat), draws)


@dataclass
class RepeatedExamples(WrappedGame):
    """Repetitions of the examples of a game, each with draws of its own, as rows.

    Attributes
    ----------
    game : ConditionalGame
    n_repeats : int
        The repetitions of each example.
    """

    game: ConditionalGame
    n_repeats: int

    @property
    def n_rows(self) -> int:
        """Number of repetitions of all examples."""
        return self.game.n_rows * self.n_repeats

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the selected outputs, (P, K)."""
        return self._outputs(rows, coalitions).mean(axis=1)

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values that `reduce` makes of the outputs, one for each class."""
        return reduce(self._outputs(rows, coalitions), rows)

    def log_ratios(self, rows: IntArray, coalitions: CoalitionArray) -> FloatArray:
        """Return the logarithms of ratios of densities of all draws, (P, D, F)."""
        examples, repeats = np.divmod(rows, self.n_repeats)
        return self.game.log_ratios_of(examples, coalitions, repeats)

    def _outputs(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        examples, repeats = np.divmod(rows, self.n_repeats)
        return self.game.outputs_of(examples, coalitions, repeats)
