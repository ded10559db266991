"""Formats of exported networks, which are read without this package."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..arguments import checked_choice
from ..errors import InvalidArgumentError, required_packages
from .exported_graph import ExportedGraph

ENTRY = "shapley_ext.json"
"""The name of the metadata in a file."""

INPUTS = ("rows", "active", "total")
RESULTS = ("attributions", "gaps")

Inputs = Sequence[Tensor]
Results = list[npt.NDArray[Any]]


def format_of(path: str | Path, chosen: str | None) -> str:
    """Return the format of a file: the one that is chosen, or that of the path's end.

    Raises
    ------
    InvalidArgumentError
        If the path has another end, and no format is chosen.
    """
    if chosen is not None:
        return checked_choice("format", chosen, tuple(_WRITERS))
    end = Path(path).suffix
    if end not in _ENDS:
        raise InvalidArgumentError(
            f"path={str(path)!r} ends in {end!r}, which names no format. Let it end in "
            f"{', '.join(_ENDS)}, or pass format= one of {', '.join(map(repr, _WRITERS))}."
        )
    return _ENDS[end]


def write(
    file_format: str, path: Path, graph: ExportedGraph, inputs: Inputs, metadata: str
) -> None:
    """Write the graph with its metadata; `inputs` are those of some rows."""
    _WRITERS[file_format](path, graph, tuple(inputs), metadata)


def results_of(file_format: str, path: Path, inputs: Inputs) -> Results:
    """Return the results of a file for some rows, as a reader of the file gets them."""
    return _READERS[file_format](path, inputs)


def _write_program(path: Path, graph: ExportedGraph, inputs: Any, metadata: str) -> None:
    with _without_warnings():
        program = torch.export.export(graph, inputs, dynamic_shapes=_dynamic_shapes())
        with path.open("wb") as file:
            torch.export.save(program, file, extra_files={ENTRY: metadata})


def _read_program(path: Path, inputs: Inputs) -> Results:
    with _without_warnings(), path.open("rb") as file:
        module = torch.export.load(file).module()
    with torch.no_grad():
        return [result.numpy() for result in module(*inputs)]


def _write_script(path: Path, graph: ExportedGraph, inputs: Any, metadata: str) -> None:
    with _without_warnings(), torch.no_grad():  # TorchScript is deprecated in new versions of torch
        trace: Any = torch.jit.trace  # has no types
        traced = trace(graph, inputs, check_trace=False)
        torch.jit.save(traced, str(path), _extra_files={ENTRY: metadata})


def _read_script(path: Path, inputs: Inputs) -> Results:
    with _without_warnings():
        load: Any = torch.jit.load
        module = load(str(path))
        with torch.no_grad():
            return [result.numpy() for result in module(*inputs)]


def _write_onnx(path: Path, graph: ExportedGraph, inputs: Any, metadata: str) -> None:
    with required_packages("format='onnx' needs onnx and onnxscript", extra="onnx"):
        import onnx
        import onnxscript

        del onnxscript
    with _without_warnings(), torch.no_grad():
        program = torch.onnx.export(
            graph,
            inputs,
            input_names=list(INPUTS),
            output_names=list(RESULTS),
            dynamic_shapes=_dynamic_shapes(),
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export returned no program")
    model = program.model_proto
    onnx.helper.set_model_props(model, {ENTRY: metadata})
    path.write_bytes(model.SerializeToString())


def _read_onnx(path: Path, inputs: Inputs) -> Results:
    from onnx.reference import ReferenceEvaluator

    named = {name: tensor.numpy() for name, tensor in zip(INPUTS, inputs, strict=True)}
    results: Results = ReferenceEvaluator(str(path)).run(None, named)
    return [np.asarray(result) for result in results]


def _dynamic_shapes() -> tuple[dict[int, Any], ...]:
    """Return the dimensions of the inputs that are not fixed: the number of rows."""
    n_rows = torch.export.Dim("n_rows")
    return tuple({0: n_rows} for _ in INPUTS)


class _without_warnings(warnings.catch_warnings):  # noqa: N801  used as a function
    """Ignore the warnings of torch's exporters, about their own deprecations and progress."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.simplefilter("ignore")
        return entered


_ENDS = {".pt2": "pt2", ".pt": "torchscript", ".onnx": "onnx"}
_WRITERS: Mapping[str, Callable[[Path, ExportedGraph, Any, str], None]] = {
    "pt2": _write_program,
    "torchscript": _write_script,
    "onnx": _write_onnx,
}
_READERS: Mapping[str, Callable[[Path, Inputs], Results]] = {
    "pt2": _read_program,
    "torchscript": _read_script,
    "onnx": _read_onnx,
}
