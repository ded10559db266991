"""Rows to explain, each with its masker."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapley_adapters.array_types import BoolArray, IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from ..shap_internals import masks_entries_independently, masks_neighbours
from .datasets import same

_registering = threading.Lock()

_locks: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

Mask = npt.NDArray[np.bool_]


def lock_of(thing: object) -> Any:
    """Return the lock of an object: the same for all explainers and threads that share it.

    The caller must keep a reference to `thing` while it holds the lock, so that no other object can
    have the same id. A thread may take the lock twice, for example in a masker that calls an
    explainer.
    """
    with _registering:
        lock = _locks.get(id(thing))
        if lock is None:
            lock = _locks[id(thing)] = threading.RLock()
        return lock


@dataclass
class MaskedInputs:
    """The model's inputs for some masks of a row.

    Attributes
    ----------
    masks : array, (n,)
        The indices of the masks.
    parts : tuple
        Each input, with the rows of one mask after another; equally many of each mask. Those of a
        single mask may have one row for several of another part.
    """

    masks: IntArray
    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        self.parts = as_arrays(self.parts)
        self.n_rows = max(map(len, self.parts))

    def with_one_each(self, indices: IntArray) -> MaskedInputs:
        """Return one of the rows of each mask, given their indices, (n,)."""
        n_masks = len(self.masks)
        rows = np.arange(n_masks) * (self.n_rows // n_masks) + indices
        chosen = [
            part
            if len(part) != self.n_rows
            else (part.iloc if hasattr(part, "iloc") else part)[rows]
            for part in self.parts
        ]
        return MaskedInputs(self.masks, tuple(chosen))


@dataclass(frozen=True)
class InputMask:
    """The mask of one input of a row.

    Attributes
    ----------
    shape : tuple of int
        The shape of the mask.
    names : list of str, or None
        Names of its features, if the masker has them.
    plot_data : object
        Data of the input for plots, such as the tokens of a text; None for the input itself.
    segments : array of int, or None
        The place in the mask of each number of the input, if attributions are painted on it. None
        if they have the shape of the mask.
    has_neighbours : bool
        Whether adjacent entries are neighbours, like words.
    """

    shape: tuple[int, ...]
    names: list[str] | None = None
    plot_data: Any = None
    segments: IntArray | None = None
    has_neighbours: bool = False


@dataclass
class MaskedRow:
    """A row whose inputs are not masked, as with `shap.maskers.Fixed`.

    Attributes
    ----------
    inputs : tuple
        The model's inputs for the row.
    """

    inputs: tuple[Any, ...]

    draws_values: ClassVar[bool] = False
    """Whether masked rows are random: those of `repeated(i)` are another repetition."""

    def repeated(self, repeat: int) -> MaskedRow:
        """Return the row with the draws of another repetition; itself, if it has no draws."""
        return self

    @cached_property
    def masks(self) -> list[InputMask]:
        """The mask of each input."""
        return [InputMask((0,)) for _ in self.inputs]

    @cached_property
    def n_entries(self) -> int:
        """Length of the mask."""
        return int(sum(np.prod(mask.shape) for mask in self.masks))

    @property
    def has_refits(self) -> bool:
        """Whether `log_ratios(masks)` says how masked rows depend on data, as those of a game."""
        return False

    def null_entries(self) -> BoolArray:
        """Return which entries of the mask change nothing, because masked values are equal."""
        return np.zeros(self.n_entries, dtype=bool)

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return the masked inputs, each with any number of rows; they are not changed later."""
        return tuple([part] for part in self.inputs)

    def masked(self, masks: Mask) -> list[MaskedInputs]:
        """Return the masked inputs of masks, (n, length of a mask), in their order."""
        return [MaskedInputs(np.array([i]), self(mask)) for i, mask in enumerate(masks)]

    def masked_once(self, masks: Mask, backgrounds: IntArray) -> list[MaskedInputs]:
        """Return one of the masked rows of each mask, given their indices, (n,)."""
        return [one.with_one_each(backgrounds[one.masks]) for one in self.masked(masks)]


@dataclass
class MaskerRow(MaskedRow):
    """A row masked by calling a masker.

    Attributes
    ----------
    masker : callable
        Takes a mask and the inputs.
    is_own : bool
        Whether the masker is used for this row only, and does not change its results later.
    """

    masker: Any
    is_own: bool

    @cached_property
    def masks(self) -> list[InputMask]:
        """The mask of each input; in the shape of the input if the masker has no shapes."""
        if callable(getattr(self.masker, "mask_shapes", None)):
            shapes = [tuple(shape) for shape in self._ask("mask_shapes")]
        else:
            shapes = [tuple(np.shape(part)) for part in self.inputs]
            self._check_shape(sum(int(np.prod(shape)) for shape in shapes))
        names, data = self._ask("feature_names"), self._ask("data_transform")
        return [
            InputMask(
                shape,
                None if names is None else list(map(str, names[index])),
                None if data is None else data[index],
                has_neighbours=masks_neighbours(self.masker),
            )
            for index, shape in enumerate(shapes)
        ]

    def _check_shape(self, n_entries: int) -> None:
        """Refuse a masker whose `shape` has another number of features than its rows have."""
        shape = self._ask("shape") or getattr(self.masker, "shape", None)
        if isinstance(shape, tuple) and len(shape) == 2 and shape[1] not in (None, n_entries):
            raise InvalidArgumentError(
                f"masker {type(self.masker).__name__} has shape={shape}, and a row {n_entries} "
                "entries. Give it mask_shapes(*inputs), which returns the shape of the mask of "
                f"each input, such as [({shape[1]},)]."
            )

    def null_entries(self) -> BoolArray:
        """Return which entries change nothing: the masker's claims, confirmed by comparison.

        If entries are masked independently, all of them are compared at once.
        """
        if masks_entries_independently(self.masker):
            (hidden,) = self(np.zeros(self.n_entries, dtype=bool))
            return same(hidden.ravel(), np.asarray(self.inputs[0]).ravel())
        null = np.zeros(self.n_entries, dtype=bool)
        if (claims := self._ask("invariants")) is not None:
            # shap claims by np.isclose, and also claims separators that it does mask.
            claimed = np.asarray(claims, dtype=bool)
            null |= claimed.reshape(-1, self.n_entries).all(axis=0)
            full_mask = np.ones(self.n_entries, dtype=bool)
            full_inputs = self(full_mask) if null.any() else ()
            for position in np.flatnonzero(null):
                mask_without = full_mask.copy()
                mask_without[position] = False
                null[position] = _are_same(self(mask_without), full_inputs)
        return null

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return the inputs as the masker masks them."""
        return self._checked(self._results(mask[None])[0])

    def masked(self, masks: Mask) -> list[MaskedInputs]:
        """Return the inputs as the masker masks them, joined where all masks give similar arrays.

        Joined here, they are checked and grouped once for all masks.
        """
        results = self._results(masks)
        if len(results) > 1 and _are_alike(results):
            self._checked(results[0])
            return [MaskedInputs(np.arange(len(masks)), (np.concatenate(results),))]
        return [MaskedInputs(np.array([i]), self._checked(one)) for i, one in enumerate(results)]

    def _results(self, masks: Mask) -> list[Any]:
        """Return what the masker returns for each mask; the masker does not change it later."""
        if self.is_own:
            return [self.masker(mask, *self.inputs) for mask in masks]
        keeps_results = getattr(self.masker, "immutable_outputs", False)
        results = []
        with lock_of(self.masker):  # once for all masks, because it takes a microsecond
            for mask in masks:
                # The masker may write into the row, and later into its result.
                result = self.masker(mask, *_copied(self.inputs))
                results.append(result if keeps_results else _copied(result))
        return results

    @cached_property
    def _input_axes(self) -> list[int]:
        """The number of dimensions of each input."""
        return [np.ndim(model_input) for model_input in self.inputs]

    def _ask(self, name: str) -> Any:
        """Return what a method of the masker says of the inputs; None if it has no such method."""
        method = getattr(self.masker, name, None)
        if not callable(method):
            return None
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
        for part, model_input, n_axes in zip(parts, self.inputs, self._input_axes, strict=False):
            if n_axes > 0 and np.ndim(part) == n_axes:
                raise InvalidArgumentError(
                    f"masker must return masked rows, one more dimension than its input's "
                    f"{np.shape(model_input)}; it returned {np.shape(part)}. Add it by "
                    "masked[None]."
                )
        return parts


@dataclass
class TabularRow(MaskedRow):
    """A row whose absent columns take the values of background rows.

    Attributes
    ----------
    row, background : arrays, (D,) and (B, D)
        Present and absent values, of one type.
    to_model_input : callable
        Converts masked rows to inputs of the model.
    """

    row: npt.NDArray[Any]
    background: npt.NDArray[Any]
    to_model_input: Callable[[npt.NDArray[Any]], Any]

    @cached_property
    def masks(self) -> list[InputMask]:
        """One entry per column."""
        return [InputMask(self.row.shape)]

    def null_entries(self) -> BoolArray:
        """Return which columns equal all background rows."""
        return np.asarray(same(self.background, self.row[None]).all(axis=0))

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return one masked row for each background row."""
        return (self.to_model_input(np.where(mask, self.row, self.background)),)


@dataclass
class JointRow(MaskedRow):
    """A row of several inputs, each with its own masker."""

    rows: Sequence[MaskedRow]

    @cached_property
    def masks(self) -> list[InputMask]:
        """The masks of all inputs."""
        return [mask for row in self.rows for mask in row.masks]

    def null_entries(self) -> BoolArray:
        """Return the null entries of all inputs."""
        return np.concatenate([row.null_entries() for row in self.rows])

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return all inputs, each masked by its part of the mask."""
        masked: tuple[Any, ...] = ()
        start = 0
        for row in self.rows:
            masked += row(mask[start : start + row.n_entries])
            start += row.n_entries
        return masked


@dataclass
class RowWithTarget(JointRow):
    """Masked inputs with further ones of the model that are not masked, such as a target text.

    Attributes
    ----------
    companions : callable
        Returns the further inputs; called once, when they are first needed.
    """

    companions: Callable[[], tuple[Any, ...]]

    @cached_property
    def fixed(self) -> tuple[Any, ...]:
        """The further inputs."""
        return self.companions()

    def __call__(self, mask: Mask) -> tuple[Any, ...]:
        """Return the masked inputs and the further ones."""
        return super().__call__(mask) + self.fixed


def as_arrays(masked: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return masked inputs as objects with a shape."""
    return tuple(part if hasattr(part, "shape") else np.asarray(part) for part in masked)


def _copied(masked: Any) -> Any:
    """Return a deep copy."""
    if isinstance(masked, tuple):
        return tuple(map(_copied, masked))
    if isinstance(masked, np.ndarray) and not masked.dtype.hasobject:
        return masked.copy()  # deepcopy takes three times as long for small rows
    return copy.deepcopy(masked)


def _are_alike(results: list[Any]) -> bool:
    """Return whether all results are arrays of one shape and type, with an axis for their rows."""
    shape, dtype = getattr(results[0], "shape", ()), getattr(results[0], "dtype", None)
    return len(shape) > 0 and all(
        type(result) is np.ndarray and result.shape == shape and result.dtype == dtype
        for result in results
    )


def _are_same(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return all(
        np.shape(part) == np.shape(second_part)
        and bool(same(_array(part), _array(second_part)).all())
        for part, second_part in zip(first, second, strict=True)
    )


def _array(part: npt.ArrayLike) -> npt.NDArray[Any]:
    return part.to_numpy(dtype=object) if isinstance(part, pd.DataFrame) else np.asarray(part)
