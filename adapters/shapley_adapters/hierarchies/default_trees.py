"""Trees made from the places of players in an input, and from the words of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..array_types import FloatArray, IntArray
from .player_tree import PlayerTree

_MOST_PARTS = 4
"""Parts of a union of a text; more are put into unions of neighbours."""

_FEW_CHANNELS = 4
"""So many channels of a pixel are the parts of one union; more are halved."""

_END_OF_PARAGRAPH = re.compile(r"\n\s*\n\s*$")
_END_OF_SENTENCE = re.compile(r"[.!?…。！？][\"'”’)\]]*\s*$|\n\s*$")  # as texts have them
_END_OF_CLAUSE = re.compile(r"[,;:–—]\s*$")

_ENDS = (_END_OF_CLAUSE, _END_OF_SENTENCE, _END_OF_PARAGRAPH)


def tree_of_places(layout: Sequence[IntArray], n_players: int) -> PlayerTree:
    """Return the tree of halves of the inputs' axes: quadrants of images, halves of sequences.

    Several inputs are separated first. Then all axes but that of channels are halved together, as
    in a quadtree, down to single places; the channels come last. Channels are the shortest of three
    axes. A player with several entries, such as a superpixel, is at the mean of their places.

    Parameters
    ----------
    layout : sequence of arrays
        The player of each entry of each input, in the shape of the input.
    n_players : int
        The number of players.
    """
    n_axes = max(players.ndim for players in layout)
    places, spans = np.zeros((n_players, n_axes)), np.ones(n_axes)
    levels = [np.zeros(n_players, dtype=np.int64)]
    for index, players in enumerate(layout):
        counts = np.bincount(players.ravel(), minlength=n_players)
        has_entries = counts > 0
        levels[0][has_entries] = index
        coordinates = np.indices(players.shape, sparse=True)
        for target, axis in enumerate(_channels_last(players.shape)):
            of_entries: IntArray = np.broadcast_to(coordinates[axis], players.shape).ravel()
            sums = np.bincount(players.ravel(), of_entries, minlength=n_players)
            places[has_entries, target] = (sums / np.maximum(counts, 1))[has_entries]
            spans[target] = max(spans[target], players.shape[axis])
    n_spatial = n_axes - 1 if n_axes > 2 else n_axes
    _add_halves(levels, places[:, :n_spatial], float(spans[:n_spatial].max()))
    if n_spatial < n_axes and spans[-1] > _FEW_CHANNELS:
        _add_halves(levels, places[:, n_spatial:], float(spans[-1]))
    return PlayerTree.from_labels(levels)


def _channels_last(shape: tuple[int, ...]) -> list[int]:
    """Return the axes of an input, the shortest of three or more at the end."""
    axes = list(range(len(shape)))
    if len(shape) > 2:
        axes.append(axes.pop(int(np.argmin(shape))))
    return axes


def _add_halves(levels: list[IntArray], places: FloatArray, span: float) -> None:
    """Add levels in which all axes are halved, until each place of length 1 is by itself."""
    for level in range(1, int(np.ceil(np.log2(max(span, 1)))) + 1):
        halves = np.floor(places * 2**level / span).astype(np.int64) % 2
        of_axes = halves @ 2 ** np.arange(places.shape[1])
        levels.append(levels[-1] * 2 ** places.shape[1] + of_axes)


def tree_of_words(words: Sequence[str]) -> PlayerTree:
    """Return the tree of a text: words in clauses, sentences and paragraphs.

    Unions of more than four parts have unions of neighbours between them.

    Parameters
    ----------
    words : sequence of str
        The words or tokens, with the spaces and line breaks before or after them.
    """
    unions: list[Any] = list(range(len(words)))
    ends = list(words)  # the last word of each union, with the spaces before the next one
    for place in range(1, len(words)):
        ends[place - 1] += ends[place][: len(ends[place]) - len(ends[place].lstrip())]
    for pattern in _ENDS:
        unions, ends = _joined(unions, ends, pattern)
    return PlayerTree.from_nested(_in_fours(unions), len(words))


def _joined(
    unions: list[Any], ends: list[str], pattern: re.Pattern[str]
) -> tuple[list[Any], list[str]]:
    """Join unions up to and with each one at which a longer union ends."""
    joined: list[Any] = [[]]
    joined_ends: list[str] = []
    for union, end in zip(unions, ends, strict=True):
        joined[-1].append(union)
        is_end = any(one.search(end) for one in _ENDS[_ENDS.index(pattern) :])
        if is_end:
            joined_ends.append(end)
            joined.append([])
    if joined[-1]:
        joined_ends.append(ends[-1])
    else:
        joined.pop()
    return [_in_fours(union) for union in joined], joined_ends


def _in_fours(parts: list[Any]) -> list[Any]:
    """Return at most four parts: neighbours are put together as evenly as possible."""
    while len(parts) > _MOST_PARTS:
        n_groups = -(-len(parts) // _MOST_PARTS)
        ends = np.arange(n_groups + 1) * len(parts) // n_groups
        parts = [parts[start:stop] for start, stop in pairwise(ends)]
    return parts
