"""Explanations of streams of rows, which no memory has to hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from shapley_adapters.arguments import checked_flag
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.frames import pandas_frame
from shapley_adapters.streams.arrow import is_arrow
from shapley_adapters.streams.explained_stream import (
    ExplainedBlock,
    StreamCall,
    explain_stream,
)
from shapley_adapters.streams.files import checked_out
from shapley_adapters.streams.identity import option_texts, text_of
from shapley_adapters.streams.row_blocks import Block, join_tables
from shapley_adapters.streams.sources import is_sliced, items_of, n_rows_known, opened
from shapley_adapters.torch_support.tensor_arrays import array_of, is_tensor

from ..argument_types import Outputs, Rows
from ..inputs.backgrounds import Background
from ..inputs.datasets import table_of_row
from ..inputs.models import inner_model
from ..results.streamed_explanations import StreamedExplanations
from ..shap_internals import is_op_chain
from .model_explainer import ModelExplainer

BAR_DELAY = 10.0
"""Seconds until a progress bar appears, as in shap."""


@write_constructor
class StreamExplainer(ModelExplainer):
    """Base of the explainers that explain streams of rows."""

    name = "coalitions"
    last_estimate: Any = field(default=None, init=False)

    def explain_stream(
        self,
        rows: Rows | str | Path | Iterator[Any],
        out: str | Path,
        *,
        checkpoint: bool = False,
        chunk_size: int | None = None,
        batched: bool = True,
        max_evals: int | str = "auto",
        error_bounds: bool = False,
        batch_size: int | str = "auto",
        outputs: Outputs = None,
        silent: bool = False,
        tolerance: float | str | None = None,
        check_additivity: bool = False,
        interactions: bool | str = False,
    ) -> StreamedExplanations:
        """Explain rows chunk after chunk, and write the values to files as they come.

        The values are those of `explainer(X)` for all rows at once. Memory does not grow with the
        number of rows.

        Parameters
        ----------
        rows : array, memory map, DataFrame, sparse matrix, path, object of pyarrow, or iterable
            The rows. A path ends in `.npy`, `.parquet`, `.arrow` or `.feather`, or is a folder of
            Parquet files. Each item of another iterable, such as a generator or a DataLoader, is
            a valid argument of `explainer(X)`: a batch of rows, or one row of a table.
        out : str or Path
            Where the values go. The end of the name chooses the format: `.npy` for an array that
            `np.load(out, mmap_mode="r")` opens, with other results in files beside it; `.parquet`
            or `.arrow` for a folder with a file for each chunk (needs pyarrow).
        checkpoint : bool
            Whether to go on with the results that a stopped call wrote to `out`. The result is
            then the same, bit for bit, as without a stop. A checkpoint of other rows, another
            model, another seed or other options is refused. Without a seed of its own, the
            explainer takes the seed of the checkpoint.
        chunk_size : int, optional
            Rows that are explained together and then written. By default at most 1,000. Up to so
            many rows are lost by a stop. The values do not depend on it.
        batched : bool
            Whether the items of an iterable are batches. False: each item is one row, without an
            axis for rows.
        max_evals, error_bounds, batch_size, outputs, silent, tolerance, check_additivity
            As in `explainer(X)`. `outputs` must be indices.
        interactions : False
            Not for streams, whose files hold attributions.

        Returns
        -------
        StreamedExplanations
            The values, which are read from the files when they are needed.

        Raises
        ------
        CheckpointError
            If `out` exists already, or is a checkpoint of another call.
        """
        if is_op_chain(outputs):
            raise InvalidArgumentError(
                "outputs must be a list of indices for a stream, so that all rows have the same."
            )
        if interactions is not False:
            raise InvalidArgumentError(
                f"interactions={interactions!r} is not supported by explain_stream, whose files "
                "hold attributions. Call explainer(X, interactions=True) for a part of the rows "
                "at a time, and store its values."
            )
        options = {
            "max_evals": max_evals,
            "error_bounds": error_bounds,
            "outputs": outputs,
            "tolerance": tolerance,
        }
        checked_flag("batched", batched)
        if isinstance(rows, tuple):
            raise InvalidArgumentTypeError(
                "rows is a tuple, which may be the inputs of a model with several inputs. Streams "
                "take models with one input; pass a list or a generator of batches."
            )
        source = opened(rows)
        call = StreamCall(
            host="shap",
            blocks=lambda size: self._blocks(source, size, batched),
            explain=lambda block: self._explained_block(
                self(
                    *block,
                    **options,
                    batch_size=batch_size,
                    silent=True,
                    check_additivity=check_additivity,
                )
            ),
            join=join_tables,
            take_seed=self._take_seed,
            options=lambda: self._identity(options),
            out=out,
            checkpoint=checkpoint,
            chunk_size=chunk_size,
            n_rows=n_rows_known(source),
            progress_delay=None if checked_flag("silent", silent) else BAR_DELAY,
            name=self.name,
        )
        journal = explain_stream(call)
        again = source if is_sliced(source) else None
        return StreamedExplanations(checked_out(out), journal, again)

    def _blocks(self, rows: Any, size: int, batched: bool) -> Iterator[Block]:
        """Yield the batches of a source as tables."""
        for item in items_of(rows, size):
            yield (self._table_of(item, batched),)

    def _table_of(self, item: Any, batched: bool) -> Any:
        """Return an item of a stream as a table of rows."""
        item = item.to_pandas() if is_arrow(item) else pandas_frame(_only_part(item), "rows")
        if not batched:
            row = item if isinstance(item, pd.Series) else np.asarray(array_of(item))
            is_cells = isinstance(item, pd.Series)
            return table_of_row(row, self._background_dtypes) if is_cells else row[None]
        single = table_of_row(item, self._background_dtypes)
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

    def _explained_block(self, explained: Any) -> ExplainedBlock:
        """Return the arrays of an Explanation for the files."""
        names = explained.feature_names
        is_ragged = explained.values.dtype == object
        if is_ragged or (names is not None and any(isinstance(name, list) for name in names)):
            raise InvalidArgumentError(
                "rows: each row has features of its own, such as tokens, which do not fit into a "
                "table of values. Explain them by explainer(X), chunk after chunk."
            )
        arrays = {"values": explained.values, "base_values": explained.base_values}
        bounds = {
            "standard_errors": explained.error_std,
            "lower_bounds": explained.lower_bounds,
            "upper_bounds": explained.upper_bounds,
        }
        arrays |= {name: bound for name, bound in bounds.items() if bound is not None}
        arrays["evaluations"] = np.asarray(self.last_estimate.evaluations, dtype=np.int64)
        output_names = explained.output_names
        about = {
            "seed": self.seed,
            "method": self.name,
            "feature_names": None if names is None else [_plain(name) for name in names],
            "output_names": None if output_names is None else list(map(str, output_names)),
        }
        return ExplainedBlock(arrays, _columns(arrays, about), about)

    def _identity(self, options: dict[str, Any]) -> dict[str, str]:
        """Return texts that identify the calls of this explainer with these options."""
        # The model and the masker follow; networks are trained or loaded by the first call, and the
        # numbers do not depend on workers.
        left_out = ("model", "masker", "trained", "n_jobs")
        texts = {"explainer": type(self).__name__, "model": text_of(inner_model(self.model))}
        texts |= option_texts(self, left_out)
        background = Background.of_masker(self.masker, self._background_dtypes)
        texts["masker"] = text_of(self.masker if background is None else background.values)
        return texts | {name: text_of(value) for name, value in options.items()}

    def _take_seed(self, seed: int) -> None:
        """Take the seed of a checkpoint if the user has chosen none."""
        if self.seed == self._drawn_seed:
            self.seed = self._drawn_seed = seed


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


def _plain(name: Any) -> str | int:
    return int(name) if isinstance(name, (int, np.integer)) else str(name)
