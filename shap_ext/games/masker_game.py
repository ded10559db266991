"""Rows masked by any masker as cooperative games."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import shap

from shapley_adapters.array_types import BoolArray, CoalitionArray, FloatArray, IntArray, ValueArray
from shapley_adapters.errors import InvalidArgumentError, row_number
from shapley_adapters.games.batch_sizes import BatchBounds
from shapley_adapters.games.evaluation import ModelCalls, OutputShape, as_outputs, rows_per_batch
from shapley_adapters.games.fingerprints import fingerprint
from shapley_adapters.games.value_functions import Reduction

from ..inputs.masked_rows import MaskedInputs, MaskedRow, RowWithTarget, as_arrays, lock_of
from ..inputs.models import GameOfModel, new_calls, new_shape
from ..models import LanguageModel
from ..shap_internals import row_output_names
from .links import LinkedAverage

_MAX_EVALUATIONS = 256
"""Evaluations of one call: a text of few bytes may fill much of a network's memory."""

_MAX_ROWS_AT_ONCE = 64
"""Rows whose calls are made in one round by models that take one row at a time."""


@dataclass
class MaskerGame(GameOfModel):
    """Rows masked one coalition at a time, evaluated together.

    Rows may have masks of different lengths, as texts do. A row's player of the end of a longer
    row is inactive.

    Attributes
    ----------
    predict : callable
        The model, of masked rows.
    rows : sequence of MaskedRow
        The rows.
    players_of_rows : sequence of arrays, (D_r,)
        The player of each entry of the mask of each row.
    n_rows, n_players : int
        Number of rows, and of players of the longest row.
    average : LinkedAverage
        How the outputs of masked rows become one value.
    """

    predict: Callable[..., Any]
    rows: Sequence[MaskedRow]
    players_of_rows: Sequence[IntArray]
    n_players: int
    average: LinkedAverage
    linearize_link: bool = True
    n_rows: int = field(init=False)
    draws_values: bool = field(init=False)
    _averages: dict[int, LinkedAverage] = field(default_factory=dict, init=False)
    output_shape: OutputShape = field(default_factory=new_shape, init=False, repr=False)
    _calls: ModelCalls = field(default_factory=new_calls, init=False, repr=False)

    has_single_outputs = True

    def __post_init__(self) -> None:
        self.n_rows, self.draws_values = len(self.rows), self.rows[0].draws_values

    def repeated(self, n_repeats: int) -> MaskerGame:
        """Return the game whose row r · n + i is repetition i of row r."""
        rows = [row.repeated(i) for row in self.rows for i in range(n_repeats)]
        players = [players for players in self.players_of_rows for _ in range(n_repeats)]
        return replace(self, rows=rows, players_of_rows=players)

    @property
    def has_refits(self) -> bool:
        """Whether values are means of draws that tell how they depend on data."""
        return self.rows[0].has_refits and self.average.link is shap.links.identity

    def log_ratios(self, rows: IntArray, coalitions: CoalitionArray) -> FloatArray:
        """Return the logarithms of ratios of densities of all draws, (P, D, F)."""
        members = [(row, np.flatnonzero(rows == row)) for row in np.unique(rows)]
        ratios: list[FloatArray] = []
        for row, pairs in members:
            drawn_row: Any = self.rows[row]
            ratios.append(drawn_row.log_ratios(coalitions[pairs][:, self.players_of_rows[row]]))
        return np.concatenate(ratios)[np.argsort(np.concatenate([pairs for _, pairs in members]))]

    @property
    def evaluations_per_batch(self) -> int:
        """How many evaluations fill a batch of bounded memory, computed from one masked row."""
        return min(_MAX_EVALUATIONS, rows_per_batch(self._bytes_each()))

    @property
    def batch_bounds(self) -> BatchBounds:
        """Between which sizes of batches to choose."""
        return BatchBounds.from_bytes(
            self._bytes_each(),
            max_rows=_MAX_EVALUATIONS,
            max_bytes=self.max_input_bytes,
            rows_at_once=getattr(self.predict, "rows_at_once", None),
        )

    def _bytes_each(self) -> int:
        """Return the memory that one masked row takes."""
        return sum(map(_n_bytes, self._arrays(0, is_present=False)))

    def _arrays(self, row: int, *, is_present: bool) -> tuple[Any, ...]:
        """Return the model's input for a row with all of its players, or with none."""
        return as_arrays(self.rows[row](np.full(len(self.players_of_rows[row]), is_present)))

    def active_players(self) -> BoolArray:
        """Return the players that a row has and that its masker changes."""
        active = np.zeros((self.n_rows, self.n_players), dtype=bool)
        rows = zip(self.rows, self.players_of_rows, strict=True)
        for row, (masked_row, players) in enumerate(rows):
            active[row, players[~masked_row.null_entries()]] = True
        return active

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of each row's inputs."""
        return [fingerprint(*row.inputs) for row in self.rows]

    def __call__(self, rows: IntArray, coalitions: CoalitionArray) -> ValueArray:
        """Return the values, (P, K), each the average over its masked rows."""
        if not self.linearize_link or self.average.link is shap.links.identity:
            return MaskerGame.reduced(self, rows, coalitions, lambda out, _: self.average(out))
        return MaskerGame.reduced(self, rows, coalitions, self._linearized_averages)

    @cached_property
    def n_backgrounds(self) -> int:
        """Masked rows of the first row, such as one for each background row."""
        return max(map(len, self._arrays(0, is_present=False)))

    @property
    def sampling_obstacle(self) -> str:
        """Why the average over a part of the masked rows would not do; "" if it does."""
        if self.average.link is shap.links.identity:
            return ""
        return "masked rows are averaged before the link. Leave out link, or raise the budget."

    def outputs_at(
        self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray
    ) -> ValueArray:
        """Return the outputs, (P, K), each for one of the masked rows of its pair."""
        chosen = self._masked(rows, coalitions, backgrounds)
        outputs: list[FloatArray] = []
        pairs: list[IntArray] = []
        for bundles in self._group_by_call(rows, chosen):
            pairs += [bundle.masks for bundle in bundles]
            n_rows = sum(bundle.n_rows for bundle in bundles)
            outputs.append(self._call_model(int(rows[bundles[0].masks[0]]), bundles, n_rows))
        return np.concatenate(outputs)[np.argsort(np.concatenate(pairs))]

    def level_columns(self, row: int) -> tuple[npt.NDArray[Any], IntArray] | None:
        """Return the columns, (B + 1, D), of the row and of its masked rows, and their players.

        None unless the model's only input is a table with a column for each entry of the mask, or
        an image with segments.
        """
        players, segments = self.players_of_rows[row], self.rows[row].masks[0].segments
        present, absent = (self._arrays(row, is_present=is_all) for is_all in (True, False))
        shape = (len(players),) if segments is None else segments.shape
        if len(absent) != 1 or np.shape(absent[0])[1:] != shape:
            return None
        columns = np.concatenate([np.asarray(present[0])[:1], np.asarray(absent[0])])
        if segments is None:
            return columns, players
        return columns.reshape(len(columns), -1), players[segments.ravel()]

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values that `reduce` makes of the outputs for the masked rows of each pair."""
        pairs_in_order, values = zip(
            *(
                (pairs, reduce(outputs, rows[pairs]))
                for pairs, outputs in self._outputs(rows, coalitions)
            ),
            strict=True,
        )
        order = np.argsort(np.concatenate(pairs_in_order))
        return np.concatenate(values)[order]

    def _linearized_averages(self, outputs: FloatArray, rows: IntArray) -> ValueArray:
        values = []
        for row, of_pair in zip(rows.tolist(), outputs, strict=True):
            if row not in self._averages:
                no_players = np.zeros((1, self.n_players), dtype=bool)
                ((_, empty_outputs),) = self._outputs(np.array([row]), no_players)
                self._averages[row] = self.average.linearized_at(empty_outputs[0])
            values.append(self._averages[row](of_pair[None]))
        return np.concatenate(values)

    def _outputs(
        self, rows: IntArray, coalitions: CoalitionArray
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the outputs of pairs with equally many masked rows, (P, B, K), and their indices.

        The model is called as rarely as possible.
        """
        for bundles in self._group_by_call(rows, self._masked(rows, coalitions)):
            pairs = np.concatenate([bundle.masks for bundle in bundles])
            counts = np.concatenate(
                [np.full(len(one.masks), one.n_rows // len(one.masks)) for one in bundles]
            )
            outputs = self._call_model(int(rows[pairs[0]]), bundles, int(counts.sum()))
            starts = np.cumsum(counts) - counts
            for count in sorted(set(counts.tolist())):
                members = np.flatnonzero(counts == count)
                yield pairs[members], outputs[starts[members, None] + np.arange(count)]

    def _masked(
        self, rows: IntArray, coalitions: CoalitionArray, backgrounds: IntArray | None = None
    ) -> list[MaskedInputs]:
        """Return the masked inputs of all pairs, or one of the masked rows of each."""
        masked: list[MaskedInputs] = []
        order = np.argsort(rows, kind="stable")  # all pairs of a row together
        firsts = np.flatnonzero(np.diff(rows[order], prepend=-1))
        for pairs in np.split(order, firsts[1:]):
            row = rows[pairs[0]]
            masks = coalitions[pairs].take(self.players_of_rows[row], axis=1)
            if backgrounds is None:
                masked_row = self.rows[row].masked(masks)
            else:
                masked_row = self.rows[row].masked_once(masks, backgrounds[pairs])
            masked += [replace(inputs, masks=pairs[inputs.masks]) for inputs in masked_row]
        return masked

    def _group_by_call(
        self, rows: IntArray, masked: Sequence[MaskedInputs]
    ) -> list[list[MaskedInputs]]:
        """Group pairs for one call of the model: their arrays have the same shapes and kinds."""
        groups: dict[Any, list[MaskedInputs]] = {}
        for bundle in masked:
            groups.setdefault(tuple(map(_signature, bundle.parts)), []).append(bundle)
        return list(groups.values())

    def _call_model(self, row: int, bundles: Sequence[MaskedInputs], n_rows: int) -> FloatArray:
        """Return the outputs of the pairs, one after another, (P·B, K), in one call if possible."""
        joined = [
            _concatenated([_repeated(bundle.parts[part], bundle.n_rows) for bundle in bundles])
            for part in range(len(bundles[0].parts))
        ]

        def call(part: slice) -> FloatArray:
            inputs = [
                rows[part] if self._calls.take_batches else rows[part].copy() for rows in joined
            ]
            return as_outputs(self._predict(row, inputs), len(inputs[0]), self.output_shape)

        return np.concatenate(self._calls(call, n_rows))

    def _predict(self, row: int, inputs: Sequence[Any]) -> Any:
        return self.predict(*inputs)


@dataclass
class TargetedTextGame(MaskerGame):
    """Rows of a model that takes all rows of a call for variants of one row.

    Such a model scores the row's own target, so that each row has outputs of its own, in number,
    too; rows with fewer than others get zeros behind theirs.
    """

    output_names: list[list[str]] = field(init=False)
    _models: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._models = [copy.copy(self.predict) for _ in self.rows]
        self.output_names = []
        with lock_of(self.predict):  # the copies share tokenizers, whose settings they change
            for index, (model, row) in enumerate(zip(self._models, self.rows, strict=True)):
                self.output_names.append(_checked_names(model, row, index))

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the row that has most."""
        return max(map(len, self.output_names))

    @property
    def evaluations_per_batch(self) -> int:
        """Allow for full calls of many rows, of which each gets its own."""
        return super().evaluations_per_batch * min(self.n_rows, _MAX_ROWS_AT_ONCE)

    @property
    def batch_bounds(self) -> BatchBounds:
        """Allow for batches of many rows, of which each gets calls of its own."""
        n_rows, bounds = min(self.n_rows, _MAX_ROWS_AT_ONCE), super().batch_bounds
        return BatchBounds(n_rows * bounds.first, n_rows * bounds.largest)

    def reduced(self, rows: IntArray, coalitions: CoalitionArray, reduce: Reduction) -> ValueArray:
        """Return the values of outputs that mean the same in all rows."""
        if len(set(map(len, self.output_names))) > 1:
            raise InvalidArgumentError(
                "value_function makes one value of the outputs, but the rows of X have different "
                "outputs. Explain them one at a time, or leave value_function='raw'."
            )
        return super().reduced(rows, coalitions, reduce)

    def _group_by_call(
        self, rows: IntArray, masked: Sequence[MaskedInputs]
    ) -> list[list[MaskedInputs]]:
        groups: dict[Any, list[MaskedInputs]] = {}
        for bundle in masked:
            key = (rows[bundle.masks[0]], *map(_signature, bundle.parts))
            groups.setdefault(key, []).append(bundle)
        full = super().batch_bounds.largest
        return [
            bundles[start : start + full]
            for bundles in groups.values()
            for start in range(0, len(bundles), full)
        ]

    def _predict(self, row: int, inputs: Sequence[Any]) -> Any:
        with lock_of(self.predict):
            outputs = as_outputs(self._models[row](*inputs), len(inputs[0]))
        missing = self.n_outputs - outputs.shape[1]
        return np.pad(outputs, ((0, 0), (0, missing)))


def _checked_names(model: Any, row: MaskedRow, index: int) -> list[str]:
    """Pass its row to a model that stores one; return the names of its outputs."""
    try:
        if not isinstance(row, RowWithTarget):
            raise InvalidArgumentError(
                "masker must give the model its target beside the masked row, as "
                "shap.maskers.OutputComposite and FixedComposite do."
            )
        names = row_output_names(model, row.fixed[-1])
        if isinstance(model, LanguageModel):
            for is_present in (True, False):
                model.check_prompt(row(np.full(row.n_entries, is_present))[0][0])
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"X, row {row_number(index)}: {error}") from error
    if not names:
        raise InvalidArgumentError(
            f"X, row {row_number(index)}: the model generates no text, so that there is no output "
            "to explain. Leave the row out, or pass target texts as second argument."
        )
    return names


def _n_bytes(part: npt.NDArray[Any]) -> int:
    if isinstance(part, pd.DataFrame):
        return int(part.memory_usage().sum())
    return int(getattr(part, "nbytes", 8 * len(part)))


def _signature(part: npt.NDArray[Any]) -> Any:
    """Return a key that is equal for parts that can be joined."""
    if isinstance(part, pd.DataFrame):
        return tuple(part.columns)
    return (*part.shape[1:], part.dtype.kind)


def _repeated(part: npt.NDArray[Any], count: int) -> Any:
    """Bring a part of one row to the number of rows of the others."""
    if len(part) == count:
        return part
    if len(part) != 1:
        raise InvalidArgumentError(
            f"masker returned {len(part)} rows for one input and {count} for another; it must "
            "return as many for each, or a single one."
        )
    if isinstance(part, pd.DataFrame):
        return part.iloc[np.zeros(count, dtype=int)]
    return np.repeat(part, count, axis=0)


def _concatenated(parts: Sequence[Any]) -> Any:
    # Always a copy: the model may write into it, and the masker may return its array again.
    if isinstance(parts[0], pd.DataFrame):
        return pd.concat(parts, ignore_index=True)
    return np.concatenate(parts)
