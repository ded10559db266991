"""Rows that a user passes, with the game that is estimated for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..inputs.backgrounds import (
    background_dataset,
    check_columns,
    model_input_maker,
    table_and_background,
)
from ..inputs.column_groups import ColumnGroups, PlayerLayout, make_groups, zero_background
from ..inputs.datasets import Dataset, checked_dataset
from ..inputs.masked_rows import InputMask, MaskedRow
from ..inputs.models import empty_table, in_native_frames, inner_model, is_torch_module
from ..maskers import ConditionalMasker
from ..results.explanations import Part
from ..shap_internals import keeps_row_between_calls
from .links import LinkedAverage
from .masker_game import MaskerGame, TargetedTextGame
from .masker_rows import masked_rows, with_targets
from .table_games import SparseGame, TabularGame, in_one_type


@dataclass(frozen=True)
class ExplainedRows:
    """The rows of one call: their game, and the features that each input shows."""

    game: TabularGame | SparseGame | MaskerGame
    parts: list[Part]
    groups: ColumnGroups | None
    layout: PlayerLayout


@dataclass
class ExplainedRowsMaker:
    """Builds `ExplainedRows` from datasets, by the options of an explainer, for a model."""

    explainer: Any
    model: Any

    def __call__(self, args: tuple[Any, ...]) -> ExplainedRows:
        """Check the rows and make their game."""
        if not args:
            raise InvalidArgumentTypeError("X is missing: pass the rows to explain.")
        explainer = self.explainer
        self.masker, self.groups = explainer.masker, explainer.groups
        self.predict: Any = inner_model(self.model)
        self.is_module = is_torch_module(self.predict)
        self.average = LinkedAverage(explainer.link)
        masker_table = explainer._masker_table
        background = background_dataset(self.masker, explainer._background_dtypes)
        is_drawn = isinstance(self.masker, ConditionalMasker)
        is_table = background is not None or self.masker is None or is_drawn
        example = self.masker.background if is_drawn else background
        has_frames = masker_table is not None or not isinstance(args[0], np.ndarray)
        convert = example.in_types if has_frames and example is not None else None
        datasets = [
            checked_dataset(data, index, is_table, convert=convert)
            for index, data in enumerate(args)
        ]
        lengths = [dataset.n_rows for dataset in datasets]
        if len(set(lengths)) > 1:
            raise InvalidArgumentError(
                f"The inputs must have the same number of rows; they have {lengths}."
            )
        if self.is_module:
            from shapley_adapters.torch_support.array_module import (
                ArrayModule,
                warn_in_training_mode,
            )

            warn_in_training_mode(self.predict)
            self.predict = ArrayModule(self.predict)
        if self.masker is None:
            background = zero_background(datasets)
        if background is None:
            rows = self._from_masker(datasets)
        elif len(datasets) > 1:
            raise InvalidArgumentError(
                f"{len(datasets)} datasets were passed, but the masker's background is one "
                "table. Pass a function of a mask and the inputs as masker=."
            )
        else:
            shape = datasets[0].row_shape  # that of a table has one dimension
            mask = InputMask(shape, has_neighbours=len(shape) > 1)
            rows = self._rows_alike(datasets, [[mask] * datasets[0].n_rows], background)
        if not has_frames:
            return rows
        tables = [] if self.masker is None else [masker_table]
        predict = in_native_frames(rows.game.predict, [*tables, empty_table(args[0])])
        if predict is rows.game.predict:
            return rows
        return replace(rows, game=replace(rows.game, predict=predict))

    def _from_masker(self, datasets: Sequence[Dataset]) -> ExplainedRows:
        masker, explained = with_targets(self.masker, datasets)
        rows = masked_rows(masker, explained, self.is_module)
        masks = list(zip(*(row.masks for row in rows), strict=True))
        if all(row.n_entries == 0 for row in rows):
            raise InvalidArgumentError(
                f"masker {type(self.masker).__name__} has no players; there is nothing to explain."
            )
        are_painted = any(of_input[0].segments is not None for of_input in masks)
        are_ragged = any(len({mask.shape for mask in of_input}) > 1 for of_input in masks)
        are_named = any(of_input[0].names is not None for of_input in masks)
        are_named = are_named and self.explainer.feature_names is None and self.groups is None
        if are_painted or are_ragged or are_named:
            return self._rows_apart(explained, rows, masks)
        is_drawn = isinstance(self.masker, ConditionalMasker)
        background = self.masker.background if is_drawn else None
        return self._rows_alike(explained, masks, background, rows)

    def _rows_alike(
        self,
        datasets: Sequence[Dataset],
        masks: Sequence[Sequence[InputMask]],
        background: Any,
        rows: Sequence[MaskedRow] | None = None,
    ) -> ExplainedRows:
        """Return rows with the same features; those of a table where no `rows` mask themselves."""
        shapes = [of_input[0].shape for of_input in masks]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        # The names of all columns are the rows', else the user's, else the background's.
        of_rows = datasets[0].columns if len(datasets) == 1 else None
        of_background = None if background is None else background.columns
        known = of_rows, self.explainer.feature_names, of_background
        names = next((names for names in known if names is not None), None)
        if names is None:
            names = []
            for dataset, shape in zip(datasets, shapes, strict=True):
                size, columns = int(np.prod(shape)), dataset.columns
                if columns is None or size != len(columns):
                    numbers = range(len(names), len(names) + size)
                    columns = [f"Feature {column}" for column in numbers]
                names.extend(columns)
        elif len(names) != ends[-1]:
            raise InvalidArgumentError(
                f"feature_names holds {len(names)} names, but X has {ends[-1]} columns."
            )
        groups = make_groups(self.groups, names)
        game: Any
        if rows is None:
            game = self._table_game(background, datasets[0], groups.players)
        else:
            game = self._masker_game(rows, [groups.players] * len(rows), len(groups.names))
        of_inputs = np.split(groups.players, ends[:-1])
        of_row = [part.reshape(shape) for part, shape in zip(of_inputs, shapes, strict=True)]
        layout = PlayerLayout(
            [of_row] * len(masks[0]),
            [of_input[0].has_neighbours for of_input in masks],
            len(groups.names),
            groups.names,
        )
        return ExplainedRows(game, self._parts(datasets, masks, groups), groups, layout)

    def _rows_apart(
        self,
        datasets: Sequence[Dataset],
        rows: Sequence[MaskedRow],
        masks: Sequence[Sequence[InputMask]],
    ) -> ExplainedRows:
        """Return rows with features of their own, such as texts."""
        for name in ("groups", "feature_names"):
            if getattr(self.explainer, name) is not None:
                raise InvalidArgumentError(
                    f"{name} cannot be used: each row of X has features of its own, such as tokens "
                    "or segments."
                )
        sizes = np.array([[int(np.prod(mask.shape)) for mask in row.masks] for row in rows])
        firsts = [0, *np.cumsum(sizes.max(axis=0)).tolist()]
        players_of_rows = [
            np.concatenate([first + np.arange(n) for first, n in zip(firsts, of_row, strict=False)])
            for of_row in sizes
        ]
        parts = []
        for dataset, of_input, first in zip(datasets, masks, firsts, strict=False):
            shapes = [mask.shape for mask in of_input]
            segments = [mask.segments for mask in of_input if mask.segments is not None]
            data = dataset.plot_values([mask.plot_data for mask in of_input])
            shown = data, None, _names(of_input)
            parts.append(Part(first, shapes, *shown, segments or None))
        layout = PlayerLayout(
            list(zip(*(part.places() for part in parts), strict=True)),
            [of_input[0].has_neighbours for of_input in masks],
            firsts[-1],
        )
        game = self._masker_game(rows, players_of_rows, firsts[-1])
        return ExplainedRows(game, parts, None, layout)

    def _parts(
        self,
        datasets: Sequence[Dataset],
        masks: Sequence[Sequence[InputMask]],
        groups: ColumnGroups,
    ) -> list[Part]:
        """Return what each input shows of rows with the same features."""
        if groups.any_joint:
            if len(datasets) > 1:
                raise InvalidArgumentError("groups needs a model with one input.")
            data, shape = datasets[0].plot_values(), masks[0][0].shape
            of_groups = [(len(groups.names),)] * len(data)
            if isinstance(self.groups, np.ndarray) and len(shape) > 1:  # labels of superpixels
                segments = [groups.players.reshape(shape)] * len(data)
                return [Part(0, of_groups, data, None, groups.names, segments)]
            numbers, labels = groups.summarize(data.reshape(len(data), -1))
            return [Part(0, of_groups, numbers, labels, groups.names)]
        parts, first = [], 0
        for dataset, of_input in zip(datasets, masks, strict=True):
            shape = of_input[0].shape
            end = first + int(np.prod(shape))
            names = groups.names[first:end] if len(shape) == 1 else None
            data = dataset.plot_values([mask.plot_data for mask in of_input])
            parts.append(Part(first, [shape] * len(of_input), data, None, names))
            first = end
        return parts

    def _table_game(
        self, background: Dataset, dataset: Dataset, players: IntArray
    ) -> TabularGame | SparseGame:
        """Return the game of rows against a background of the same columns in the same order."""
        predict, is_module = self.predict, self.is_module
        average = replace(self.average, background_weights=background.weights)
        linearize = self.explainer.linearize_link
        if dataset.is_sparse:
            check_columns(dataset.row_shape[0], dataset, background)
            if not background.is_sparse and background.values.dtype.kind not in "biufc":
                raise InvalidArgumentTypeError(
                    "X is sparse, but masker's background holds values that are not numbers. Pass "
                    "X as a DataFrame like the background."
                )
            rows, absent = in_one_type(dataset.values, background.values)
            return SparseGame(
                predict=predict,
                rows=rows,
                background=absent,
                players=players,
                average=average,
                to_model_input=(lambda part: part.toarray()) if is_module else (lambda part: part),
                is_dense_for_model=is_module,
                linearize_link=linearize,
            )
        rows, absent, row_shape = table_and_background(dataset, background)
        if is_module:
            if rows.dtype.kind not in "biuf":
                raise InvalidArgumentTypeError(
                    "X holds values that are not numbers, which a torch module cannot take. Encode "
                    "them."
                )
            rows, absent = map(predict.in_precision, (rows, absent))  # once, not in each batch
        return TabularGame(
            predict=predict,
            rows=rows,
            background=absent,
            players=players,
            average=average,
            to_model_input=model_input_maker(background, dataset, row_shape, is_module),
            module=predict if is_module else None,
            row_shape=row_shape,
            linearize_link=linearize,
        )

    def _masker_game(
        self, rows: Sequence[MaskedRow], players_of_rows: Sequence[IntArray], n_players: int
    ) -> MaskerGame:
        """Return the game of rows that mask themselves."""
        kind = TargetedTextGame if keeps_row_between_calls(self.predict) else MaskerGame
        linked = self.average, self.explainer.linearize_link
        return kind(self.predict, rows, players_of_rows, n_players, *linked)


def _names(masks: Sequence[InputMask]) -> list[Any] | None:
    """Return the names of each row's features; None where they are pixels."""
    if any(len(mask.shape) != 1 for mask in masks):
        return None
    return [
        [f"Feature {column}" for column in range(mask.shape[0])]
        if mask.names is None
        else mask.names
        for mask in masks
    ]
