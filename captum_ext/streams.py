"""Attributions of streams of rows, which no memory has to hold, and of batches of frames."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from shapley_adapters.arguments import checked_flag
from shapley_adapters.batch_function import BatchAttributions, BatchFunction, make_batch_function
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.frames import floats_from_frame
from shapley_adapters.row_sources import Block, n_rows_known, n_rows_of, opened
from shapley_adapters.streamed_values import ExplainedBlock
from shapley_adapters.streams import StreamCall, explain_stream, option_texts, text_of
from shapley_adapters.torch_support.tensor_arrays import array_of

from .argument_types import Baselines, FeatureMask, Inputs, Target
from .inputs.forward_arguments import as_tuple
from .inputs.streamed_rows import StreamedRows, check_shared, identity_of
from .results.tensor_results import StreamedAttributions, array_name


def attribute_stream(
    method: Any,
    rows: Inputs | str | Path | Iterable[Any],
    out: str | Path,
    *,
    roles: Sequence[str] | None,
    baselines: Baselines,
    target: Target,
    additional_forward_args: object,
    feature_mask: FeatureMask,
    checkpoint: bool,
    chunk_size: int | None,
    batched: bool,
    options: dict[str, Any],
) -> StreamedAttributions:
    """Attribute outputs for rows chunk after chunk, to files; see `CoalitionAttribution`."""
    shared = {
        "baselines": baselines,
        "target": target,
        "additional_forward_args": additional_forward_args,
        "feature_mask": feature_mask,
    }
    show_progress = options.pop("show_progress")
    options["repeats"] = None if options["repeats"] == 1 else options["repeats"]  # of networks
    check_shared(shared, roles)
    source = StreamedRows(opened(rows), roles, checked_flag("batched", batched))
    passed_options = {name: value for name, value in options.items() if value not in (None, False)}
    options.pop("perturbations_per_eval")  # does not change the values
    _check_options(method, passed_options)
    call = StreamCall(
        host="captum",
        blocks=source.blocks,
        explain=lambda block: _explained_block(method, source, block, shared, passed_options),
        explainer=method,
        options=lambda: _identity(method, {**identity_of(shared), **options, "roles": roles}),
        out=out,
        checkpoint=checkpoint,
        chunk_size=chunk_size,
        n_rows=n_rows_known(source.rows),
        progress_delay=0.0 if show_progress else None,
        name=method.get_name(),
    )
    return StreamedAttributions(explain_stream(call))


def _check_options(method: Any, passed_options: dict[str, Any]) -> None:
    """Refuse options that the `attribute` of this class does not have."""
    parameters = inspect.signature(type(method).attribute).parameters
    unknown = [name for name in passed_options if name not in parameters]
    if unknown:
        raise InvalidArgumentError(
            f"{' and '.join(unknown)} cannot be chosen for {method.get_name()}, which explains "
            "by one pass of a network. Leave out arguments that attribute does not have."
        )


def _explained_block(
    method: Any,
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
    answer = method.attribute(**arguments, **passed_options)
    with_errors = bool(passed_options.get("return_standard_error"))
    results = {"values": answer[0] if with_errors else answer}
    if with_errors:
        results["standard_errors"] = answer[1]
    arrays = {
        array_name(name, index): array_of(tensor)
        for name, tensors in results.items()
        for index, tensor in enumerate(as_tuple(tensors))
    }
    if len(arrays["values"]) != n_rows_of(block) or len(method.last_estimate.values) == 0:
        raise InvalidArgumentError(
            "forward_func returns one value for a whole batch, which a stream in chunks does "
            "not have. Return one output per example."
        )
    arrays["base_values"] = method.last_estimate.empty_values
    arrays["evaluations"] = np.asarray(method.last_estimate.evaluations, dtype=np.int64)
    about = {"seed": method.seed, "method": method.get_name(), "is_tuple": source.is_tuple}
    return ExplainedBlock(arrays, {}, about)


def _identity(method: Any, arguments: dict[str, Any]) -> dict[str, str]:
    """Return texts that identify the calls of this method with these arguments."""
    # Networks are trained or loaded by the first call; numbers do not depend on workers.
    texts = {"method": type(method).__name__} | option_texts(method, ("trained", "n_jobs"))
    return texts | {name: text_of(value) for name, value in arguments.items()}


def batch_function(
    method: Any,
    example: Any,
    features: Sequence[str] | None,
    keep: Sequence[str],
    prefix: str,
    options: dict[str, Any],
) -> BatchFunction:
    """Return a function from a batch of a table to attributions; see `CoalitionAttribution`."""
    explain = FrameAttribution.from_method(method, options)
    return make_batch_function(explain, example, features, keep, prefix)


@dataclass(frozen=True)
class FrameAttribution:
    """Attributes the output to the columns of frames.

    Attributes
    ----------
    method : method of captum_ext
        The method.
    options : dict
        The arguments of `attribute` that differ from the defaults.
    dtype : torch.dtype
        The precision of the inputs.
    """

    method: Any
    options: dict[str, Any]
    dtype: torch.dtype

    @classmethod
    def from_method(cls, method: Any, options: dict[str, Any]) -> FrameAttribution:
        """Return the method without its latest estimate and without workers of its own."""
        twin = copy.copy(method)
        twin.last_estimate, twin.n_jobs = None, 1
        options_of_call = {
            name: value
            for name, value in options.items()
            if value is not None and value is not False
        }
        return cls(twin, options_of_call, _precision_of(method.forward_func))

    def __call__(self, rows: pd.DataFrame) -> BatchAttributions:
        """Attribute for the rows of a frame of features."""
        method = copy.copy(self.method)  # threads may share the object, not the latest estimate
        inputs = torch.tensor(floats_from_frame(rows), dtype=self.dtype)
        method.attribute(inputs, **self.options)
        estimate = method.last_estimate
        if estimate is None or len(estimate.values) != len(rows):
            raise InvalidArgumentError(
                "batch_function needs a forward_func that returns an output for each row."
            )
        n_outputs = estimate.values.shape[2]
        has_errors = "return_standard_error" in self.options
        return BatchAttributions(
            estimate.values,
            estimate.standard_errors if has_errors else None,
            estimate.empty_values,
            list(map(str, rows.columns)),
            None if n_outputs == 1 else list(map(str, range(n_outputs))),
        )


def _precision_of(forward_func: Any) -> torch.dtype:
    """Return the precision of a module's parameters, or torch's default."""
    module = getattr(forward_func, "__self__", forward_func)
    if isinstance(module, torch.nn.Module):
        for parameter in module.parameters():
            if parameter.is_floating_point():
                return parameter.dtype
    return torch.get_default_dtype()
