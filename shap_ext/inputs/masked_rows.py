"""Rows to explain, each with what masks it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapley_adapters.array_types import BoolArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..shap_internals import masks_each_place_alone, masks_neighbours
from .exact_comparison import same
from .locks import lock_of

Mask = npt.NDArray[np.bool_]


@dataclass
class MaskedRow:
    """A row whose inputs stay as they are, as `shap.maskers.Fixed` has it.

    Attributes
    ----------
    inputs : tuple
        The row's own inputs of the model.
    """

    inputs: tuple[Any, ...]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shape of the mask of each input."""
        return [(0,) for _ in self.inputs]

    @property
    def names(self) -> list[list[str] | None]:
        """Names of each input's features, where the masker knows them."""
        return [None for _ in self.inputs]

    @property
    def shown(self) -> list[Any]:
        """What plots show of each input, such as the tokens of a text; None for it as it is."""
        return [None for _ in self.inputs]

    @property
    def has_neighbours(self) -> list[bool]:
        """Whether places of each input that are next to each other are neighbours, as words are."""
        return [False for _ in self.inputs]

    @cached_property
    def n_places(self) -> int:
        """Length of the mask."""
        return int(sum(np.prod(shape) for shape in self.shapes))

    def null_places(self) -> BoolArray:
        """Tell which places of the mask change nothing, by equality of what they mask."""
        return np.zeros(self.n_places, dtype=bool)

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return the masked inputs, each with any number of rows, which nobody writes to."""
        return tuple([one] for one in self.inputs)


@dataclass
class CalledRow(MaskedRow):
    """A row masked by a masker that is called.

    Attributes
    ----------
    masker : callable
        Takes a mask and the inputs.
    is_own : bool
        Whether nobody else calls the masker, and what it returns is not written to later.
    """

    masker: Any
    is_own: bool

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shape of the mask of each input; that of the input where the masker does not tell."""
        if callable(getattr(self.masker, "mask_shapes", None)):
            return [tuple(shape) for shape in self._asked(self.masker.mask_shapes)]
        return [tuple(np.shape(one)) for one in self.inputs]

    @property
    def names(self) -> list[list[str] | None]:
        """Names that the masker gives, such as tokens."""
        if callable(getattr(self.masker, "feature_names", None)):
            return [
                [str(name) for name in names] for names in self._asked(self.masker.feature_names)
            ]
        return [None for _ in self.inputs]

    @property
    def shown(self) -> list[Any]:
        """What the masker makes of the inputs for plots."""
        if callable(getattr(self.masker, "data_transform", None)):
            return list(self._asked(self.masker.data_transform))
        return [None for _ in self.inputs]

    @property
    def has_neighbours(self) -> list[bool]:
        """Whether the masker is for texts or images."""
        return [masks_neighbours(self.masker) for _ in self.shapes]

    def null_places(self) -> BoolArray:
        """Confirm what the masker claims; where places are masked alone, compare them all."""
        if masks_each_place_alone(self.masker):
            (hidden,) = self(np.zeros(self.n_places, dtype=bool))
            return same(hidden.ravel(), np.asarray(self.inputs[0]).ravel())
        null = np.zeros(self.n_places, dtype=bool)
        if callable(getattr(self.masker, "invariants", None)):
            # shap's own claims are made by np.isclose, and for separators that it does mask.
            claimed = np.asarray(self._asked(self.masker.invariants), dtype=bool)
            null |= claimed.reshape(-1, self.n_places).all(axis=0)
            everything = np.ones(self.n_places, dtype=bool)
            whole = self(everything) if null.any() else ()
            for place in np.flatnonzero(null):
                but_one = everything.copy()
                but_one[place] = False
                null[place] = _are_same(self(but_one), whole)
        return null

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return what the masker makes of the inputs."""
        if self.is_own:
            masked = self.masker(mask, *self.inputs)
        else:
            # It may write into the row, and later into what it returned.
            with lock_of(self.masker):
                masked = self.masker(mask, *_copied(self.inputs))
                if not getattr(self.masker, "immutable_outputs", False):
                    masked = _copied(masked)
        return self._checked(masked)

    def _asked(self, method: Callable[..., Any]) -> Any:
        if self.is_own:
            return method(*self.inputs)
        with lock_of(self.masker):
            return copy.deepcopy(method(*_copied(self.inputs)))

    def _checked(self, masked: Any) -> tuple[Any, ...]:
        if masked is None:
            raise InvalidArgumentTypeError(
                f"masker {type(self.masker).__name__} returned None instead of masked rows."
            )
        parts = masked if isinstance(masked, tuple) else (masked,)
        for part, own in zip(parts, self.inputs, strict=False):
            if np.ndim(own) > 0 and np.ndim(part) == np.ndim(own):
                raise InvalidArgumentError(
                    f"masker must return masked rows, one more dimension than its input's "
                    f"{np.shape(own)}; it returned {np.shape(part)}. Add it by masked[None]."
                )
        return parts


@dataclass
class TabularRow(MaskedRow):
    """A row whose absent columns take the values of background rows.

    Attributes
    ----------
    row, background : arrays, (D,) and (B, D)
        Present and absent values, of one type.
    dress : callable
        Turns masked rows into what the model takes.
    """

    row: npt.NDArray[Any]
    background: npt.NDArray[Any]
    dress: Callable[[npt.NDArray[Any]], Any]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """One place for each column."""
        return [self.row.shape]

    def null_places(self) -> BoolArray:
        """Tell which columns equal all background rows."""
        return np.asarray(same(self.background, self.row[None]).all(axis=0))

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return one masked row for each background row."""
        return (self.dress(np.where(mask, self.row, self.background)),)


@dataclass
class JointRow(MaskedRow):
    """A row of several inputs, each with its own masker."""

    rows: Sequence[MaskedRow]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of all."""
        return [shape for row in self.rows for shape in row.shapes]

    @property
    def names(self) -> list[list[str] | None]:
        """Names of all."""
        return [names for row in self.rows for names in row.names]

    @property
    def shown(self) -> list[Any]:
        """What plots show of all."""
        return [shown for row in self.rows for shown in row.shown]

    @property
    def has_neighbours(self) -> list[bool]:
        """Whether places of each are neighbours."""
        return [has for row in self.rows for has in row.has_neighbours]

    def null_places(self) -> BoolArray:
        """Join the null places of all."""
        return np.concatenate([row.null_places() for row in self.rows])

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Mask each with its part of the mask."""
        masked: tuple[Any, ...] = ()
        start = 0
        for row in self.rows:
            masked += row(mask[start : start + row.n_places])
            start += row.n_places
        return masked


@dataclass
class AccompaniedRow(MaskedRow):
    """A masked row, beside which the model gets something that depends on the row alone.

    Attributes
    ----------
    row : MaskedRow
        What is masked.
    companions : callable
        Returns what goes with it; called once, when it is first needed.
    """

    row: MaskedRow
    companions: Callable[[], tuple[Any, ...]]
    _found: tuple[Any, ...] | None = field(default=None, init=False)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of what is masked."""
        return self.row.shapes

    @property
    def names(self) -> list[list[str] | None]:
        """Names of what is masked."""
        return self.row.names

    @property
    def shown(self) -> list[Any]:
        """What plots show of what is masked."""
        return self.row.shown

    @property
    def fixed(self) -> tuple[Any, ...]:
        """What goes with the row."""
        if self._found is None:
            self._found = self.companions()
        return self._found

    @property
    def has_neighbours(self) -> list[bool]:
        """Whether places of what is masked are neighbours."""
        return self.row.has_neighbours

    def null_places(self) -> BoolArray:
        """Return the null places of what is masked."""
        return self.row.null_places()

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return the masked row and what goes with it."""
        return self.row(mask) + self.fixed


def _copied(masked: Any) -> Any:
    if isinstance(masked, tuple):
        return tuple(map(_copied, masked))
    if isinstance(masked, np.ndarray) and masked.dtype != object:
        return masked.copy()  # deepcopy takes thrice as long for small rows
    return copy.deepcopy(masked)


def _are_same(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return all(
        np.shape(one) == np.shape(other) and bool(same(_array(one), _array(other)).all())
        for one, other in zip(first, second, strict=True)
    )


def _array(part: Any) -> npt.NDArray[Any]:
    return part.to_numpy(dtype=object) if isinstance(part, pd.DataFrame) else np.asarray(part)
