"""Hatching of the cells of a picture, for attributions whose interval contains 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array_types import BoolArray

GREY = "#9a9a9a"
"""The colour of the hatching on light cells."""


def hatch_style(colour: str = GREY) -> dict[str, Any]:
    """Return the properties of hatched patches of matplotlib: lines without a border."""
    return {"hatch": "/////", "edgecolor": colour, "facecolor": "none", "linewidth": 0.0}


def hatch_cells(axes: Any, are_hatched: BoolArray, colour: str = GREY) -> None:
    """Hatch cells of an image; neighbours in a line together, so that the hatching has no seams.

    Parameters
    ----------
    axes : Axes
        The axes with the image; the centre of the cell (i, j) is at x = j, y = i.
    are_hatched : array of bool, (lines, cells)
        The cells to hatch.
    colour : str
        The colour of the hatching.
    """
    for line, cells in enumerate(are_hatched):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], cells.astype(int), [0]])))
        starts, ends = edges[::2], edges[1::2]
        runs = [(start - 0.5, end - start) for start, end in zip(starts, ends, strict=True)]
        if runs:
            axes.broken_barh(runs, (line - 0.5, 1.0), **hatch_style(colour))
