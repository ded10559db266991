"""The dots of shap's plots, and the rows that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapley_adapters.array_types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Dots:
    """Dots of a plot.

    Attributes
    ----------
    x, y : array, (D,)
        Their positions.
    shades : array, (D,)
        The numbers that shap shows as colours; NaN for dots without.
    colours : array, (D, 4)
        Their colours.
    """

    x: FloatArray
    y: FloatArray
    shades: FloatArray
    colours: Any

    @classmethod
    def from_collections(cls, collections: Sequence[Any]) -> Dots:
        """Return the dots of some collections of matplotlib."""
        parts = [_collection_dots(collection) for collection in collections]
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def where(self, are_wanted: BoolArray) -> Dots:
        """Return some of the dots."""
        return Dots(
            self.x[are_wanted],
            self.y[are_wanted],
            self.shades[are_wanted],
            self.colours[are_wanted],
        )


def _collection_dots(
    collection: Any,
) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
    """Return positions, numbers and colours of the dots of a collection."""
    positions: FloatArray = np.ma.filled(
        np.ma.asarray(collection.get_offsets(), dtype=float), np.nan
    )
    positions = positions.reshape(-1, 2)
    collection.update_scalarmappable()
    colours = collection.get_facecolor()
    shades = collection.get_array()
    if shades is None:
        shades = np.full(len(positions), np.nan)
    return (
        positions[:, 0],
        positions[:, 1],
        np.ma.filled(np.ma.asarray(shades, dtype=float), np.nan),
        np.broadcast_to(colours, (len(positions), 4)) if len(colours) else np.empty((0, 4)),
    )


def rows_of_dots(
    dots: Sequence[FloatArray], rows: Sequence[FloatArray]
) -> tuple[IntArray, IntArray]:
    """Pair the dots with the rows: shap draws the rows in a random order.

    Parameters
    ----------
    dots, rows : sequences of arrays
        Numbers of each dot and of each row, first those that decide, such as the attributions,
        then those for ties, such as the feature values. Ties in all of them are dots that look the
        same.

    Returns
    -------
    tuple of arrays
        Indices of dots, and the indices of their rows.
    """
    return np.lexsort(tuple(reversed(dots))), np.lexsort(tuple(reversed(rows)))
