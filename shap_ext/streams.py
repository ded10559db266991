"""Explanations of streams of rows, which no memory has to hold, and of batches of frames."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import shap

from shapley_adapters import streams
from shapley_adapters.arguments import checked_flag
from shapley_adapters.batch_function import BatchAttributions, BatchFunction, make_batch_function
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.frames import pandas_frame, with_floats
from shapley_adapters.row_sources import (
    Block,
    batches_of,
    is_arrow,
    is_sliced,
    n_rows_known,
    opened,
)
from shapley_adapters.streamed_values import ExplainedBlock
from shapley_adapters.streams import StreamCall, option_texts, text_of
from shapley_adapters.torch_support.tensor_arrays import array_of, is_tensor

from .inputs.backgrounds import background_dataset
from .inputs.datasets import frame_values, table_of_row
from .inputs.models import inner_model
from .results.streamed_explanations import StreamedExplanations
from .shap_internals import BAR_DELAY, is_op_chain

_NOT_OF_VALUES = ("batch_size", "check_additivity")
"""Options of a call that do not change the values, so that a checkpoint may go on with others."""


def explain_stream(
    explainer: Any,
    rows: Any,
    out: str | Path,
    *,
    checkpoint: bool,
    chunk_size: int | None,
    batched: bool,
    options: dict[str, Any],
) -> StreamedExplanations:
    """Explain rows chunk after chunk, and write the values to files; see `CoalitionExplainer`."""
    if is_op_chain(options["outputs"]):
        raise InvalidArgumentError(
            "outputs must be a list of indices for a stream, so that all rows have the same."
        )
    silent = options.pop("silent")
    of_values = {name: value for name, value in options.items() if name not in _NOT_OF_VALUES}
    checked_flag("batched", batched)
    if isinstance(explainer.masker, shap.maskers.Text):
        raise _own_features()
    if isinstance(rows, tuple):
        raise InvalidArgumentTypeError(
            "rows is a tuple, which may be the inputs of a model with several inputs. Streams "
            "take models with one input; pass a list or a generator of batches."
        )
    source = opened(rows)
    call = StreamCall(
        host="shap",
        blocks=lambda size: _blocks(explainer, source, size, batched),
        explain=lambda block: _explained_block(
            explainer,
            explainer(*block, **options, silent=True),
        ),
        explainer=explainer,
        options=lambda: _identity(explainer, of_values),
        out=out,
        checkpoint=checkpoint,
        chunk_size=chunk_size,
        n_rows=n_rows_known(source),
        progress_delay=None if checked_flag("silent", silent) else BAR_DELAY,
        name=explainer.name,
    )
    folder = streams.explain_stream(call)
    return StreamedExplanations(folder, source if is_sliced(source) else None)


def _blocks(explainer: Any, rows: Any, size: int, batched: bool) -> Iterator[Block]:
    """Yield the batches of a source as tables."""
    for item in batches_of(rows, size):
        yield (_table_of(explainer, item, batched),)


def _table_of(explainer: Any, item: Any, batched: bool) -> Any:
    """Return an item of a stream as a table of rows."""
    item = item.to_pandas() if is_arrow(item) else pandas_frame(_only_part(item), "rows")
    if not batched:
        row = item if isinstance(item, pd.Series) else np.asarray(array_of(item))
        is_cells = isinstance(item, pd.Series)
        return table_of_row(row, explainer._background_dtypes) if is_cells else row[None]
    single = table_of_row(item, explainer._background_dtypes)
    table = array_of(item if single is None else single)
    if isinstance(table, (list, tuple)):
        table = np.asarray(table)
    if not isinstance(table, (np.ndarray, pd.DataFrame)) and not scipy.sparse.issparse(table):
        raise InvalidArgumentTypeError(
            f"rows: each item must be a batch of rows, as in explainer(X), or a row of a table;"
            f" got {type(item).__name__}."
        )
    if table.ndim == 0:
        raise InvalidArgumentTypeError(f"rows: an item must hold a row or more; got {item!r}.")
    return table


def _explained_block(explainer: Any, explained: Any) -> ExplainedBlock:
    """Return the arrays of an Explanation for the files."""
    names = explained.feature_names
    is_ragged = explained.values.dtype == object
    if is_ragged or (names is not None and any(isinstance(name, list) for name in names)):
        raise _own_features()
    arrays = {"values": explained.values, "base_values": explained.base_values}
    bounds = {
        "standard_errors": explained.error_std,
        "lower_bounds": explained.lower_bounds,
        "upper_bounds": explained.upper_bounds,
    }
    arrays |= {name: bound for name, bound in bounds.items() if bound is not None}
    arrays["evaluations"] = np.asarray(explainer.last_estimate.evaluations, dtype=np.int64)
    if names is not None:
        names = [int(n) if isinstance(n, (int, np.integer)) else str(n) for n in names]
    output_names = explained.output_names
    about = {
        "seed": explainer.seed,
        "method": explainer.name,
        "feature_names": names,
        "output_names": None if output_names is None else list(map(str, output_names)),
    }
    return ExplainedBlock(arrays, _columns(arrays, about), about)


def _own_features() -> InvalidArgumentError:
    return InvalidArgumentError(
        "rows: each row has features of its own, such as tokens, which do not fit into a "
        "table of values. Explain them by explainer(X), chunk after chunk."
    )


def _identity(explainer: Any, options: dict[str, Any]) -> dict[str, str]:
    """Return texts that identify the calls of this explainer with these options."""
    # The model and the masker follow; networks are trained or loaded by the first call, and the
    # numbers do not depend on workers.
    left_out = ("model", "masker", "trained", "n_jobs")
    texts = {"explainer": type(explainer).__name__, "model": text_of(inner_model(explainer.model))}
    texts |= option_texts(explainer, left_out)
    background = background_dataset(explainer.masker, explainer._background_dtypes)
    texts["masker"] = text_of(explainer.masker if background is None else background.values)
    return texts | {name: text_of(value) for name, value in options.items()}


def _only_part(item: Any) -> Any:
    """Return the rows of a batch of a DataLoader, which is a list of tensors."""
    if not isinstance(item, (list, tuple)) or not any(map(is_tensor, item)):
        return item
    if len(item) > 1 and any(part.ndim for part in item if is_tensor(part)):
        raise InvalidArgumentTypeError(
            f"rows: a batch holds {len(item)} tensors, such as inputs and labels. Pass the inputs "
            "alone: explain_stream((x for x, *_ in loader), …)."
        )
    return item[0] if len(item) == 1 else item


def _columns(arrays: dict[str, Any], about: dict[str, Any]) -> dict[str, list[str]]:
    """Return the names of columns for tables, (R, M) or (R, M, K)."""
    features, outputs = about["feature_names"], about["output_names"]
    values = arrays["values"]
    n_outputs = values.shape[2] if values.ndim == 3 else 1
    if features is None or values.ndim > 3 or values.shape[1] != len(features):
        return {}
    if n_outputs > 1 or values.ndim == 3:
        outputs = outputs or [f"Output {index}" for index in range(n_outputs)]
        names = [f"{feature} | {output}" for feature in features for output in outputs]
        of_base = [f"base_value | {output}" for output in outputs]
    else:
        names, of_base = list(map(str, features)), ["base_value"]
    columns = {"values": names, "base_values": of_base}
    suffixes = {
        "standard_errors": "standard error",
        "lower_bounds": "lower bound",
        "upper_bounds": "upper bound",
    }
    for array, suffix in suffixes.items():
        if array in arrays:
            columns[array] = [f"{name} ({suffix})" for name in names]
    return columns


def batch_function(
    explainer: Any,
    example: Any,
    features: Sequence[str] | None,
    keep: Sequence[str],
    prefix: str,
    options: dict[str, Any],
) -> BatchFunction:
    """Return a function from a batch of a table to attributions; see `CoalitionExplainer`."""
    takes_frames = explainer._background_dtypes is not None
    twin = copy.copy(explainer)  # without its latest estimate and workers of its own
    twin.last_estimate, twin.n_jobs = None, 1
    explain = ShapFrameExplainer(twin, options, takes_frames)
    return make_batch_function(explain, example, features, keep, prefix)


@dataclass(frozen=True)
class ShapFrameExplainer:
    """Explains the rows of frames.

    Attributes
    ----------
    explainer : explainer of shap_ext
        The explainer.
    options : dict
        The arguments of its call.
    takes_frames : bool
        Whether it gets frames, rather than arrays.
    """

    explainer: Any
    options: dict[str, Any]
    takes_frames: bool

    def __call__(self, rows: pd.DataFrame) -> BatchAttributions:
        """Explain the rows of a frame of features."""
        data = rows if self.takes_frames else frame_values(with_floats(rows))
        explanation = self.explainer(data, silent=True, **self.options)
        if isinstance(explanation, list):
            raise InvalidArgumentError(
                "batch_function explains models of one table; this model has several inputs."
            )
        has_own_names = (
            self.explainer.groups is not None or self.explainer.feature_names is not None
        )
        names = explanation.feature_names if has_own_names or self.takes_frames else rows.columns
        return _attributions(explanation, list(map(str, names)))


def _attributions(explanation: Any, players: list[str]) -> BatchAttributions:
    values = np.asarray(explanation.values)
    base_values = np.asarray(explanation.base_values)
    has_outputs = values.ndim == 3
    errors = explanation.error_std
    outputs = explanation.output_names if has_outputs else None
    if has_outputs and outputs is None:
        outputs = range(values.shape[2])
    return BatchAttributions(
        values if has_outputs else values[:, :, None],
        errors if errors is None or has_outputs else np.asarray(errors)[:, :, None],
        base_values if has_outputs else base_values[:, None],
        players,
        None if outputs is None else list(map(str, outputs)),
    )
