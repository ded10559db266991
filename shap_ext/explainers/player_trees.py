"""The hierarchy of the players of each row: the user's, the masker's, or one of words or places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shapley_adapters import PlayerTree
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.hierarchies.default_trees import tree_of_words
from shapley_adapters.hierarchies.reading import HIERARCHY_FORMS, HierarchyLike, read_hierarchy

from ..games.explained_rows import ExplainedRows
from ..shap_internals import inner_masker, own_copy

_MOST_CLUSTERED_TOKENS = 1000
"""Tokens up to which shap clusters a text, which takes a second; the time grows with the square."""


def trees_of_rows(
    hierarchy: HierarchyLike | None, explained: ExplainedRows, masker: Any
) -> PlayerTree | Sequence[PlayerTree]:
    """Return the tree of all rows, or one for each row.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the hierarchy is none of the players, or is missing and there is no default.
    """
    layout = explained.layout
    if hierarchy is None:
        trees = _default_trees(explained, masker)
        if trees is not None:
            return trees
    return read_hierarchy(hierarchy, layout.players, layout.n_players, layout.names)


def _default_trees(explained: ExplainedRows, masker: Any) -> PlayerTree | list[PlayerTree] | None:
    """Return the trees of maskers with a clustering, and of texts; None for those of places."""
    layout, (part, *others) = explained.layout, explained.parts
    inner = inner_masker(masker) or masker
    clustering = getattr(own_copy(inner) or inner, "clustering", None)
    is_joint = explained.groups is not None and explained.groups.any_joint
    is_alone = not (others or is_joint or part.segments is not None)
    if is_alone and isinstance(clustering, np.ndarray):
        return PlayerTree.from_linkage(clustering)
    words = part.feature_names if explained.groups is None and is_alone else None
    if words is not None and all(layout.has_neighbours):
        trees: list[PlayerTree] = []
        for row, (of_row, (players,)) in enumerate(zip(words, layout.players, strict=True)):
            if callable(clustering) and 1 < len(of_row) <= _MOST_CLUSTERED_TOKENS:
                tree = PlayerTree.from_linkage(clustering(*explained.game.rows[row].inputs))
            else:
                tree = tree_of_words(of_row)
            trees.append(tree.embedded(players, layout.n_players))
        return trees
    if not all(layout.has_neighbours):
        raise InvalidArgumentError(
            "hierarchy is missing: the columns of a table have no order. Pass hierarchy=, "
            f"{HIERARCHY_FORMS}; or shap.maskers.Partition(data), which clusters the columns."
        )
    return None
