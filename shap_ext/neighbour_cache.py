"""Explanations of rows that were needed before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from shapley_adapters.array_types import BoolArray, FloatArray, IntArray

from .members import MemberResult


@dataclass
class NeighbourCache:
    """The explanations of some of the rows of the data.

    Attributes
    ----------
    values, base_values, errors, half_widths : arrays, (D, …), or None
        Of the rows that are known; zero elsewhere. Base values and errors where they are given.
    template : shap.Explanation or None
        An answer to take names from.
    """

    values: FloatArray = field(default_factory=lambda: np.zeros((0,)))
    base_values: FloatArray | None = None
    errors: FloatArray | None = None
    half_widths: FloatArray | None = None
    template: Any = None
    _known: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    _terms: Any = None

    def renew(self, terms: Any) -> None:
        """Drop everything if it was explained on other terms, such as another budget."""
        if terms != self._terms:
            self._known = np.zeros(0, dtype=bool)
            self._terms = terms

    def learn(self, places: IntArray, data: Any, explain: Callable[[Any], MemberResult]) -> None:
        """Explain those rows of the data at `places` that are not known."""
        new = places if len(self._known) == 0 else places[~self._known[places]]
        if len(new) == 0:
            return
        found = explain(rows_at(data, new))
        if len(self._known) == 0:
            self._known = np.zeros(len(data), dtype=bool)
            self.values = np.zeros((len(data), *found.values.shape[1:]))
            self.base_values = _room(found.base_values, len(data))
            self.errors = _room(found.errors, len(data))
            self.half_widths = _room(found.half_widths, len(data))
        self.values[new] = found.values
        if self.base_values is not None:
            self.base_values[new] = found.base_values
        if self.errors is not None:
            self.errors[new] = found.errors
        if self.half_widths is not None:
            self.half_widths[new] = found.half_widths
        self.template = found.explanation
        self._known[new] = True


def rows_at(data: Any, places: IntArray) -> Any:
    """Return rows of an array or a DataFrame."""
    return data.iloc[places] if isinstance(data, pd.DataFrame) else data[places]


def _room(given: FloatArray | None, n_rows: int) -> FloatArray | None:
    return None if given is None else np.zeros((n_rows, *given.shape[1:]))
