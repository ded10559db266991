"""Conversion of users' hierarchies to trees of players, one for all rows or one for each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..array_types import IntArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from .default_trees import tree_of_places
from .player_tree import PlayerTree

HIERARCHY_FORMS = (
    "nested lists of features, a linkage of SciPy, masks of segments from coarse to fine, a "
    "PlayerTree, or one for each row"
)

HierarchyLike: TypeAlias = "PlayerTree | npt.NDArray[Any] | Sequence[Any] | Mapping[Any, Any]"
"""A hierarchy that users pass."""


def read_hierarchy(
    hierarchy: Any,
    layouts: Sequence[Sequence[IntArray]],
    n_players: int,
    names: Sequence[Hashable] | None = None,
) -> PlayerTree | list[PlayerTree]:
    """Return the tree of the players, or one for each row, from the argument `hierarchy`.

    Parameters
    ----------
    hierarchy : PlayerTree, array, nested lists, mapping, list, or None
        For None, halves of the axes of the inputs. An array is a linkage of SciPy. A list of arrays
        or tensors in the shape of the input, or of tuples of them, is one of masks.
    layouts : sequence of sequences of arrays
        For each row, or once for all rows: the player of each entry of each input, in the shape of
        the input.
    n_players : int
        The number of players.
    names : sequence, optional
        Names of the players, which may stand for them in nested lists.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If it is no hierarchy of these players.
    """
    if isinstance(hierarchy, (list, tuple)) and all(isinstance(t, PlayerTree) for t in hierarchy):
        if not hierarchy:
            raise InvalidArgumentError(f"hierarchy is empty; pass {HIERARCHY_FORMS}.")
        players = [np.unique(np.concatenate([p.ravel() for p in row])) for row in layouts]
        if len(players) == 1:
            players *= len(hierarchy)
        if len(players) != len(hierarchy):
            raise InvalidArgumentError(
                f"hierarchy holds {len(hierarchy)} trees, but there are {len(players)} rows."
            )
        return [
            _checked(tree, len(of_row)).embedded(of_row, n_players)
            for tree, of_row in zip(hierarchy, players, strict=True)
        ]
    if hierarchy is None or _is_list_of_masks(hierarchy, layouts[0]):
        trees: dict[Any, PlayerTree] = {}
        of_rows = []
        for layout in layouts:
            key = tuple((players.shape, players.tobytes()) for players in layout)
            if key not in trees:
                trees[key] = (
                    tree_of_places(layout, n_players)
                    if hierarchy is None
                    else _tree_of_masks(hierarchy, layout, n_players)
                )
            of_rows.append(trees[key])
        return of_rows[0] if len(trees) == 1 else of_rows
    if isinstance(hierarchy, PlayerTree):
        return _checked(hierarchy, n_players)
    if isinstance(hierarchy, np.ndarray):
        return _checked(PlayerTree.from_linkage(hierarchy), n_players)
    if not isinstance(hierarchy, (list, tuple, Mapping)):
        raise InvalidArgumentTypeError(
            f"hierarchy must be {HIERARCHY_FORMS}; got {type(hierarchy).__name__}."
        )
    return PlayerTree.from_nested(hierarchy, n_players, names)


def _checked(tree: PlayerTree, n_players: int) -> PlayerTree:
    if tree.n_players != n_players:
        raise InvalidArgumentError(
            f"hierarchy has {tree.n_players} players, but there are {n_players}."
        )
    return tree


def _is_list_of_masks(hierarchy: object, layout: Sequence[IntArray]) -> bool:
    """Return whether the items of a list are arrays as large as the input, or tuples of them."""
    if not isinstance(hierarchy, (list, tuple)) or not hierarchy:
        return False
    masks = [level if isinstance(level, tuple) else (level,) for level in hierarchy]
    return all(
        len(level) == len(layout) and all(hasattr(mask, "shape") for mask in level)
        for level in masks
    )


def _tree_of_masks(masks: Sequence[Any], layout: Sequence[IntArray], n_players: int) -> PlayerTree:
    """Return the tree of nested segments of the inputs."""
    levels = []
    for level, mask in enumerate(masks):
        parts = mask if isinstance(mask, tuple) else (mask,)
        labels = np.full(n_players, -1, dtype=np.int64)
        for part, players in zip(parts, layout, strict=True):
            of_entries = _in_shape(part, players.shape, level)
            labels[players] = of_entries
            if (labels[players] != of_entries).any():
                player = int(players[labels[players] != of_entries][0])
                raise InvalidArgumentError(
                    f"hierarchy[{level}] divides feature {player} between two segments. Pass masks "
                    "whose segments consist of whole features."
                )
        levels.append(labels)
    return PlayerTree.from_labels(levels)


def _in_shape(mask: Any, shape: tuple[int, ...], level: int) -> IntArray:
    """Return a mask of whole numbers in the shape of an input."""
    labels = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if labels.dtype.kind not in "iu":
        raise InvalidArgumentTypeError(
            f"hierarchy[{level}] must hold whole numbers, the segment of each entry; got "
            f"{labels.dtype}."
        )
    while labels.ndim > len(shape) and labels.shape[0] == 1:  # an axis of examples
        labels = labels[0]
    if labels.ndim == len(shape) - 1 and labels.shape == shape[:-1]:
        labels = labels[..., None]  # pixels of images with their channels last
    try:
        of_entries: IntArray = np.broadcast_to(labels, shape)
    except ValueError:
        raise InvalidArgumentError(
            f"hierarchy[{level}] has the shape {np.shape(mask)}, which does not broadcast to the "
            f"input's {shape}. A list of unions must hold lists of features."
        ) from None
    return of_entries
