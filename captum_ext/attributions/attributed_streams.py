"""Attributions of streams of rows, which no memory has to hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from captum.attr import PerturbationAttribution

from shapley_adapters.arguments import checked_flag
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.streams.explained_stream import (
    ExplainedBlock,
    StreamCall,
    explain_stream,
)
from shapley_adapters.streams.files import checked_out
from shapley_adapters.streams.identity import option_texts, text_of
from shapley_adapters.streams.row_blocks import Block, n_rows_of
from shapley_adapters.streams.sources import n_rows_known, opened
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..argument_types import Baselines, FeatureMask, Inputs, Target
from ..inputs.forward_arguments import as_tuple
from ..inputs.streamed_rows import StreamedRows, check_shared, identity_of, join_tensors
from ..results.streamed_attributions import StreamedAttributions, array_name
from .method_names import NamedAttribution


class StreamAttribution(NamedAttribution, PerturbationAttribution):  # type: ignore[misc] # captum is untyped
    """Base of the attribution methods that explain streams of rows."""

    _drawn_seed: int | None = None
    if TYPE_CHECKING:  # fields of the subclasses
        attribute: Callable[..., Any]
        seed: int | None
        last_estimate: Any

    def attribute_stream(
        self,
        rows: Inputs | str | Path | Iterable[Any],
        out: str | Path,
        *,
        roles: Sequence[str] | None = None,
        baselines: Baselines = None,
        target: Target = None,
        additional_forward_args: object = None,
        feature_mask: FeatureMask = None,
        n_samples: int | None = None,
        perturbations_per_eval: int | None = None,
        checkpoint: bool = False,
        chunk_size: int | None = None,
        batched: bool = True,
        show_progress: bool = False,
        return_standard_error: bool = False,
        tolerance: float | str | None = None,
    ) -> StreamedAttributions:
        """Attribute outputs for rows chunk after chunk, and write attributions to files.

        The attributions are those of `attribute` for all rows at once. Memory does not grow with
        the number of rows.

        Parameters
        ----------
        rows : Tensor, tuple of Tensors, array, memory map, path, object of pyarrow, or iterable
            The rows. A path ends in `.npy`, `.parquet`, `.arrow` or `.feather`, or is a folder of
            Parquet files. Each item of another iterable, such as a DataLoader or a generator, is a
            batch: a tensor, or a tuple of tensors for several inputs.
        out : str or Path
            Where attributions go. The end of the name chooses the format: `.npy` for an array that
            `np.load(out, mmap_mode="r")` opens, with other results in files beside it; `.parquet`
            or `.arrow` for a folder with a file for each chunk (needs pyarrow).
        roles : sequence of str, optional
            The roles of the parts of a batch, such as `("inputs", "target")`: names of arguments of
            `attribute` with an entry for each row, or `"unused"`. By default all are inputs; a
            batch that is a list of several parts needs roles. Streamed
            `additional_forward_args` come after those that are given as an argument.
        baselines, target, additional_forward_args, feature_mask
            As in `attribute`, the same for all rows. Mark a distribution of baselines by
            `BaselineDistribution`, and tensors among `additional_forward_args` by `Shared`.
        n_samples, perturbations_per_eval, return_standard_error, tolerance
            As in `attribute`.
        checkpoint : bool
            Whether to go on with the results that a stopped call wrote to `out`. The result is
            then the same, bit for bit, as without a stop. A checkpoint of other rows, another
            model, another seed or other arguments is refused. Without a seed of its own, the
            method takes the seed of the checkpoint.
        chunk_size : int, optional
            Rows that are explained together and then written. By default at most 1,000. Up to so
            many rows are lost by a stop. The attributions do not depend on it.
        batched : bool
            Whether the items of an iterable are batches. False: each item is one row, without the
            dimension that counts the rows.
        show_progress : bool
            Whether to show a progress bar over the rows.

        Returns
        -------
        StreamedAttributions
            The attributions, which are read from the files when they are needed.

        Raises
        ------
        CheckpointError
            If `out` exists already, or is a checkpoint of another call.
        """
        shared = {
            "baselines": baselines,
            "target": target,
            "additional_forward_args": additional_forward_args,
            "feature_mask": feature_mask,
        }
        options = {
            "n_samples": n_samples,
            "return_standard_error": checked_flag("return_standard_error", return_standard_error),
            "tolerance": tolerance,
        }
        check_shared(shared, roles)
        source = StreamedRows(opened(rows), roles, checked_flag("batched", batched))
        all_options = {**options, "perturbations_per_eval": perturbations_per_eval}
        passed_options = {
            name: value for name, value in all_options.items() if value not in (None, False)
        }
        self._check_options(passed_options)
        call = StreamCall(
            host="captum",
            blocks=source.blocks,
            explain=lambda block: self._explained_block(source, block, shared, passed_options),
            join=join_tensors,
            take_seed=self._take_seed,
            options=lambda: self._identity({**identity_of(shared), **options, "roles": roles}),
            out=out,
            checkpoint=checkpoint,
            chunk_size=chunk_size,
            n_rows=n_rows_known(source.rows),
            progress_delay=0.0 if checked_flag("show_progress", show_progress) else None,
            name=self.get_name(),
        )
        return StreamedAttributions(checked_out(out), explain_stream(call))

    def _check_options(self, passed_options: dict[str, Any]) -> None:
        """Refuse options that the `attribute` of this class does not have."""
        parameters = inspect.signature(type(self).attribute).parameters
        unknown = [name for name in passed_options if name not in parameters]
        if unknown:
            raise InvalidArgumentError(
                f"{' and '.join(unknown)} cannot be chosen for {self.get_name()}, which explains "
                "by one pass of a network. Leave out arguments that attribute does not have."
            )

    def _explained_block(
        self,
        source: StreamedRows,
        block: Block,
        shared: dict[str, Any],
        passed_options: dict[str, Any],
    ) -> ExplainedBlock:
        """Explain a block of rows by `attribute`, and return arrays for the files."""
        of_rows = source.arguments(block)
        further = (
            *as_tuple(shared["additional_forward_args"]),
            *of_rows.pop("additional_forward_args", ()),
        )
        arguments = {**shared, **of_rows, "additional_forward_args": further or None}
        answer = self.attribute(**arguments, **passed_options)
        with_errors = bool(passed_options.get("return_standard_error"))
        results = {"values": answer[0] if with_errors else answer}
        if with_errors:
            results["standard_errors"] = answer[1]
        arrays = {
            array_name(name, index): array_of(tensor)
            for name, tensors in results.items()
            for index, tensor in enumerate(as_tuple(tensors))
        }
        if len(arrays["values"]) != n_rows_of(block) or len(self.last_estimate.values) == 0:
            raise InvalidArgumentError(
                "forward_func returns one value for a whole batch, which a stream in chunks does "
                "not have. Return one output per example."
            )
        arrays["base_values"] = self.last_estimate.empty_values
        arrays["evaluations"] = np.asarray(self.last_estimate.evaluations, dtype=np.int64)
        about = {"seed": self.seed, "method": self.get_name(), "is_tuple": source.is_tuple}
        return ExplainedBlock(arrays, {}, about)

    def _identity(self, arguments: dict[str, Any]) -> dict[str, str]:
        """Return texts that identify the calls of this method with these arguments."""
        # Networks are trained or loaded by the first call; numbers do not depend on workers.
        texts = {"method": type(self).__name__} | option_texts(self, ("trained", "n_jobs"))
        return texts | {name: text_of(value) for name, value in arguments.items()}

    def _take_seed(self, seed: int) -> None:
        """Take the seed of a checkpoint if the user has chosen none."""
        if self.seed == self._drawn_seed:
            self.seed = self._drawn_seed = seed
