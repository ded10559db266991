"""Which columns or pixels are one player: groups, such as one-hot blocks, and layouts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse

from shapley_adapters import PlayerGraph
from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError, warn_user
from shapley_adapters.graphs.reading import GRAPH_FORMS, GraphLike, read_graphs

from ..argument_types import Groups
from .datasets import Dataset


@dataclass(frozen=True)
class ColumnGroups:
    """The players of a table.

    Attributes
    ----------
    names : list of str
        Name of each player.
    columns : list of arrays
        The columns of each player.
    column_names : list of str
        Name of each column.
    players : array, (D,)
        The player of each column.
    any_joint : bool
        Whether any player has more than one column.
    """

    names: list[str]
    columns: list[IntArray]
    column_names: list[str]
    players: IntArray
    any_joint: bool

    def summarize(
        self, data: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.object_]]:
        """Return one number and one label per player and row, for plots.

        For a single column it is its value. For a block in which exactly one column is 1 and the
        others are 0, it is the index of that column, and the label is its name. For other blocks
        the number is NaN, and the label is the number of columns.
        """
        shape = (len(data), len(self.columns))
        numbers, labels = np.full(shape, np.nan), np.empty(shape, dtype=object)
        for player, columns in enumerate(self.columns):
            if len(columns) == 1:
                labels[:, player] = data[:, columns[0]]
                numbers[:, player] = _numbers(data[:, columns])[:, 0]
                continue
            block = _numbers(data[:, columns])
            hot = block.argmax(axis=1)
            n_ones, n_zeros = (block == 1).sum(axis=1), (block == 0).sum(axis=1)
            is_one_hot = (n_ones == 1) & (n_zeros == len(columns) - 1)
            prefix, own = self.names[player], [self.column_names[column] for column in columns]
            short = [name.removeprefix(prefix).lstrip("_=:. ") or name for name in own]
            names = np.array(short, dtype=object)
            numbers[:, player] = np.where(is_one_hot, hot, np.nan)
            labels[:, player] = np.where(is_one_hot, names[hot], f"{len(columns)} columns")
        return numbers, labels


def _numbers(columns: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return columns as numbers; NaN for cells that are not numbers."""
    if columns.dtype.kind in "biuf":
        return columns.astype(np.float64)
    frame = pd.DataFrame(columns).apply(pd.to_numeric, errors="coerce")
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def make_groups(groups: Groups | None, column_names: Sequence[Any]) -> ColumnGroups:
    """Convert the user's `groups` to players; each column without a group is a player.

    Parameters
    ----------
    groups : mapping of names to columns, array of labels, or None
        Columns by name, or by index; or a label of each entry of a row.
    column_names : sequence
        Names of all columns.
    """
    if isinstance(groups, np.ndarray):
        of_entries = labels_of_entries(groups, len(column_names))
        found = np.unique(of_entries)
        groups = {f"Group {label}": np.flatnonzero(of_entries == label).tolist() for label in found}
    names = [str(name) for name in column_names]
    by_name: dict[Any, list[int]] = {}
    for index, name in enumerate(column_names):
        by_name.setdefault(name, []).append(index)
    owner: dict[int, str] = {}
    for group, members in [] if groups is None else checked_groups(groups):
        for member in members:
            column = _column_index(member, by_name, len(names), group)
            if column in owner:
                raise InvalidArgumentError(
                    f"groups puts column {names[column]!r} into both {owner[column]!r} and "
                    f"{group!r}. Name it in one of them only."
                )
            owner[column] = group
    alone = {names[column] for column in range(len(names)) if column not in owner}
    for group in owner.values():
        if group in alone:
            raise InvalidArgumentError(
                f"groups names a player {group!r}, which is also the name of a column. "
                "Choose another name for the group."
            )
    # Players are in the order of their first columns; a single column has its index as key.
    owners = np.array([owner.get(column, column) for column in range(len(names))], dtype=object)
    players, keys = pd.factorize(owners)
    player_names = [names[key] if isinstance(key, int) else key for key in keys]
    ends = np.cumsum(np.bincount(players))
    columns = np.split(np.argsort(players, kind="stable"), ends[:-1])
    any_joint = len(columns) < len(names)
    return ColumnGroups(player_names, columns, names, players, any_joint)


def labels_of_entries(labels: npt.NDArray[np.integer[Any]], n_entries: int) -> IntArray:
    """Return the label of each entry of a row, (n_entries,).

    Labels (H, W) of an image (H, W, C) are those of all its channels.

    Raises
    ------
    InvalidArgumentError
        If there are not as many labels as entries or pixels.
    """
    n_channels, left = divmod(n_entries, max(1, labels.size))
    if left or not n_channels or (n_channels > 1 and labels.ndim != 2):
        raise InvalidArgumentError(
            f"groups holds labels of the shape {labels.shape}, for rows of {n_entries} entries. "
            "Pass one for each entry, or for each pixel, (H, W), of images (H, W, C)."
        )
    return np.repeat(labels.reshape(-1), n_channels)


def checked_groups(groups: object) -> list[tuple[str, Sequence[Any]]]:
    """Return names and columns of `groups`, if it has the right form; columns are not checked."""
    if groups is None or (isinstance(groups, np.ndarray) and groups.dtype.kind in "iu"):
        return []  # labels are checked with the rows
    if not isinstance(groups, Mapping):
        raise InvalidArgumentTypeError(
            "groups must map names to lists of columns, as in {'colour': ['red', 'green']}, or be "
            f"an array of whole numbers, as for superpixels; got {type(groups).__name__}."
        )
    first: dict[str, Any] = {}
    for name, members in groups.items():
        if (other := first.setdefault(str(name), name)) is not name:  # such as 1 and "1"
            raise InvalidArgumentError(
                f"groups names two players {str(name)!r}: {other!r} and {name!r}. Give them names "
                "that differ as texts."
            )
        if isinstance(members, str) or not isinstance(members, (Sequence, np.ndarray)):
            raise InvalidArgumentTypeError(
                f"groups[{name!r}] must be a list of columns; got {members!r}."
            )
        if len(members) == 0:
            raise InvalidArgumentError(f"groups[{name!r}] holds no columns. Leave it out.")
    return [(str(name), members) for name, members in groups.items()]


def _column_index(
    member: object, by_name: Mapping[Any, list[int]], n_columns: int, group: str
) -> int:
    if not isinstance(member, Hashable):
        raise InvalidArgumentTypeError(
            f"groups[{group!r}] must hold names or indices of columns; got {member!r}."
        )
    indices = by_name.get(member, [])
    if len(indices) > 1:
        raise InvalidArgumentError(
            f"groups[{group!r}] names column {member!r}, but {len(indices)} columns have this "
            f"name. Name it by its index, one of {indices}."
        )
    if indices:
        return indices[0]
    if isinstance(member, (int, np.integer)) and 0 <= member < n_columns:
        return int(member)
    raise InvalidArgumentError(
        f"groups[{group!r}] names column {member!r}, which is not among the {n_columns} "
        "columns. Use names of the DataFrame's columns, feature_names, or indices from 0."
    )


def zero_background(datasets: Sequence[Dataset]) -> Dataset:
    """Return the reference of a call without a masker: zeros.

    Raises
    ------
    InvalidArgumentError
        If the rows are not one table of numbers.
    """
    dataset = datasets[0]
    values = dataset.values if dataset.is_sparse else dataset.array()
    if len(datasets) > 1:
        raise InvalidArgumentError(_no_reference(f"{len(datasets)} inputs were passed."))
    of_columns = () if dataset.dtypes is None else dataset.dtypes.items()
    unusable = [
        column
        for column, dtype in of_columns
        if not pd.api.types.is_numeric_dtype(dtype) or dtype.kind == "c"
    ]
    if unusable:
        raise InvalidArgumentError(
            _no_reference(f"The columns {unusable[:5]} hold no real numbers.")
        )
    if dataset.columns is None and values.dtype.kind not in "biuf":
        raise InvalidArgumentError(_no_reference(f"X holds {values.dtype}, not real numbers."))
    warn_user(
        "No masker was given, so absent features are zero. Pass background rows as masker= to "
        "choose another reference."
    )
    shape = 1, int(np.prod(dataset.row_shape))
    if dataset.is_sparse:
        return Dataset(scipy.sparse.csr_matrix(shape, dtype=values.dtype))
    return Dataset(np.zeros(shape, dtype=values.dtype), dataset.columns, dataset.dtypes)


def _no_reference(reason: str) -> str:
    return (
        f"masker=None does not define the values of absent features: {reason} Pass background "
        "rows as masker=, such as a sample of the training data."
    )


@dataclass(frozen=True)
class PlayerLayout:
    """The player of each entry of the inputs.

    Attributes
    ----------
    players : list of sequences of arrays
        For each row, the player of each entry of each input, in the shape of the input.
    has_neighbours : sequence of bool
        Whether adjacent entries of each input are neighbours.
    n_players : int
        The number of players.
    names : list of str, optional
        Names of the players, if all rows have the same.
    """

    players: list[Sequence[IntArray]]
    has_neighbours: Sequence[bool]
    n_players: int
    names: list[str] | None = None

    def graph(self, graph: GraphLike | None) -> PlayerGraph | list[PlayerGraph]:
        """Return the graph of the argument `graph`; for None, the grid of texts and images."""
        if graph is None:
            if not all(self.has_neighbours):
                raise InvalidArgumentError(
                    "graph is missing: without it, neighbours are known only for texts and images, "
                    "with shap.maskers.Text and Image or with backgrounds in their shape. Pass "
                    f"graph=, {GRAPH_FORMS}."
                )
            graph = "grid"
        return read_graphs(graph, self.players, self.n_players, self.names)
