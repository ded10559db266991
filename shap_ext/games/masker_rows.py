"""Masked rows from the maskers that users pass."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters.array_types import BoolArray
from shapley_adapters.errors import InvalidArgumentError, row_number, warn_user
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..argument_types import Masker
from ..inputs.backgrounds import background_dataset, model_input_maker, table_and_background
from ..inputs.datasets import Dataset
from ..inputs.masked_rows import JointRow, MaskedRow, MaskerRow, RowWithTarget, TabularRow, lock_of
from ..maskers import ConditionalMasker, Superpixels, TextSegments
from ..maskers.conditional import DrawnRow, SplitRow
from ..shap_internals import arguments_of, image_shape, inner_masker, inpaints, own_copy

RowMaker = Callable[[int], MaskedRow]


class Targeted:
    """A masker beside whose masked rows the model gets a target of each row's own."""

    def __init__(self, masker: Callable[..., Any], targets: Sequence[Any]) -> None:
        self.masker = masker
        self.targets = targets

    def __call__(self, mask: BoolArray, *inputs: npt.NDArray[Any]) -> Any:
        """Mask the inputs."""
        return self.masker(mask, *inputs)


def with_targets(masker: Masker, datasets: Sequence[Dataset]) -> tuple[Any, list[Dataset]]:
    """Take the target texts into the masker, which shap takes as second input of text models."""
    if not isinstance(masker, shap.maskers.OutputComposite) or len(datasets) != 2:
        return masker, list(datasets)
    return Targeted(masker.masker, datasets[1].values), [datasets[0]]


def masked_rows(masker: Masker, datasets: Sequence[Dataset], is_module: bool) -> list[MaskedRow]:
    """Return each row with its masker.

    Each row gets its own copy of a masker of shap, because these remember the latest row: neither
    other rows nor other threads are in its way.

    Parameters
    ----------
    masker : callable
        The masker of all inputs.
    datasets : sequence of Dataset
        The rows of each input.
    is_module : bool
        Whether the model is a torch module, which takes no frames.
    """
    make = _row_maker(masker, datasets, is_module)
    rows = []
    for index in range(datasets[0].n_rows):
        row = make(index)
        _check_readable(row, index)
        rows.append(row)
    return rows


def _row_maker(masker: Masker, datasets: Sequence[Dataset], is_module: bool) -> RowMaker:
    """Return the function that builds the masked row of an index."""
    if type(masker) is shap.maskers.Fixed:
        return lambda row: MaskedRow(_inputs(datasets, row))
    if isinstance(masker, (Superpixels, TextSegments)):
        values = datasets[0].values
        return lambda row: masker.row(values[row], f"X, row {row_number(row)},")
    if isinstance(masker, ConditionalMasker):
        return _tabular(masker.background, datasets, is_module, masker)
    if type(masker) is shap.maskers.Composite:
        return _joint(masker, datasets, is_module)
    if type(masker) is shap.maskers.Impute:
        raise InvalidArgumentError(
            "masker Impute only stores its arguments. Pass shap_ext.maskers.Gaussian(background), "
            "which draws absent columns given the present ones."
        )
    if isinstance(masker, Targeted) or inner_masker(masker) is not None:
        return _accompanied(masker, datasets, is_module)
    background = background_dataset(masker)
    if background is not None and background.weights is not None:
        raise InvalidArgumentError(
            "masker is part of another masker and holds rows with weights, as shap.kmeans returns "
            "them. Pass it alone, or a masker of its rows: shap.maskers.Independent(summary.data)."
        )
    if background is not None:
        return _tabular(background, datasets, is_module)
    _check_called(masker, datasets)

    def called(row: int) -> MaskerRow:
        copied = own_copy(masker)
        inputs = _inputs(datasets, row)
        return MaskerRow(inputs, masker if copied is None else copied, is_own=copied is not None)

    return called


def _inputs(datasets: Sequence[Dataset], row: int) -> tuple[Any, ...]:
    return tuple(dataset.values[row] for dataset in datasets)


def _joint(
    masker: shap.maskers.Composite, datasets: Sequence[Dataset], is_module: bool
) -> RowMaker:
    counts = arguments_of(masker)
    if sum(counts) != len(datasets):
        raise InvalidArgumentError(
            f"masker Composite takes {sum(counts)} inputs; {len(datasets)} datasets were passed."
        )
    for inner in masker.maskers:
        _refuse_drawn(inner)
    makers, first = [], 0
    for inner, count in zip(masker.maskers, counts, strict=True):
        makers.append(_row_maker(inner, datasets[first : first + count], is_module))
        first += count
    return lambda row: JointRow(_inputs(datasets, row), [make(row) for make in makers])


def _accompanied(
    masker: Targeted | shap.maskers.FixedComposite | shap.maskers.OutputComposite,
    datasets: Sequence[Dataset],
    is_module: bool,
) -> RowMaker:
    _refuse_drawn(masker.masker)
    make = _row_maker(masker.masker, datasets, is_module)

    def companions(row: int) -> tuple[Any, ...]:
        inputs = _inputs(datasets, row)
        if isinstance(masker, Targeted):
            return (np.array([masker.targets[row]]),)
        if isinstance(masker, shap.maskers.FixedComposite):
            return tuple(np.array([value]) for value in inputs)
        with lock_of(masker.model):  # models of texts keep the latest row, too
            # Copies: the model may write into its input, or reuse the memory of its output.
            output = masker.model(*copy.deepcopy(inputs))
            parts = output if isinstance(output, tuple) else (output,)
            return tuple(copy.deepcopy(array_of(part)) for part in parts)

    return lambda row: RowWithTarget(_inputs(datasets, row), [make(row)], lambda: companions(row))


def _tabular(
    background: Dataset,
    datasets: Sequence[Dataset],
    is_module: bool,
    masker: ConditionalMasker | None = None,
) -> RowMaker:
    """Return what makes rows with the values of a background, or with those that a masker draws."""
    if len(datasets) != 1:
        raise InvalidArgumentError(
            f"{len(datasets)} datasets were passed, but the masker's background is one table. Pass "
            "a function of a mask and the inputs as masker=, or a shap.maskers.Composite."
        )
    (dataset,) = datasets
    _refuse_sparse(dataset, "part of a Composite, or conditional")
    rows, absent, row_shape = table_and_background(dataset, background)
    to_model_input = model_input_maker(background, dataset, row_shape, is_module)
    if masker is None:
        return lambda row: TabularRow(_inputs(datasets, row), rows[row], absent, to_model_input)
    draws = masker.draws
    if rows.dtype.kind == "O" and background.values.dtype.kind != "O":
        try:
            rows = rows.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"X holds values that are not numbers, but the data of the masker are numbers: "
                f"{error}."
            ) from error
    make: Any = DrawnRow
    if masker.is_split:
        columns = dataset.columns if background.columns is None else list(background.columns)
        numbered = [f"Feature {column}" for column in range(rows.shape[1])]
        make = partial(SplitRow, columns=numbered if columns is None else columns)
    return lambda row: make(_inputs(datasets, row), draws.of_row(rows[row]), to_model_input)


def _refuse_drawn(inner: Masker) -> None:
    """Refuse maskers that draw inside others, which do not pass on their repetitions."""
    if isinstance(inner, ConditionalMasker):
        raise InvalidArgumentError(
            f"masker {type(inner).__name__} is part of another masker; pass it alone."
        )


def _check_called(masker: Masker, datasets: Sequence[Dataset]) -> None:
    for dataset in datasets:
        _refuse_sparse(dataset, f"{type(masker).__name__}, which is called with rows")
    shape = image_shape(masker)
    if shape is None:
        return
    for row in datasets[0].values:
        if np.shape(row) not in {shape, (int(np.prod(shape)),)}:
            raise InvalidArgumentError(
                f"X holds an image of shape {np.shape(row)}, but masker Image was built for "
                f"{shape}. Resize the images, or build the masker with their shape."
            )
    if inpaints(masker) and any(map(_is_changed_by_8_bits, datasets[0].values)):
        warn_user(
            "masker Image fills in images of whole numbers from 0 to 255, to which it brings "
            "those of X, even where nothing is absent. Scale X to that range, and in the model "
            "back from it."
        )


def _is_changed_by_8_bits(image: npt.NDArray[Any]) -> bool:
    values = np.asarray(image)
    return bool(((values < 0) | (values > 255) | (values != np.floor(values))).any())


def _refuse_sparse(dataset: Dataset, description: str) -> None:
    if dataset.is_sparse:
        raise InvalidArgumentError(
            f"X is sparse, which needs background rows as masker; this one is {description}. Pass "
            "background rows, or X.toarray()."
        )


def _check_readable(row: MaskedRow, index: int) -> None:
    """Raise an error for rows that shap's maskers cannot read; users' maskers raise their own."""
    try:
        row.masks  # noqa: B018 # it is read to see whether it can be
    except Exception as error:
        if isinstance(row, MaskerRow) and not row.is_own:
            raise
        raise InvalidArgumentError(
            f"X, row {row_number(index)}: the masker cannot read {_brief(row.inputs)} "
            f"({type(error).__name__}: {error}). An empty text has no tokens to explain."
        ) from error


def _brief(inputs: tuple[Any, ...]) -> str:
    text = repr(inputs[0] if len(inputs) == 1 else inputs)
    return text if len(text) <= 60 else f"{text[:57]}..."
