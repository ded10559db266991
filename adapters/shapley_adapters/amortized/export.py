"""Exporting trained networks: files that torch or an ONNX runtime reads without this package."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..arguments import checked_choice
from ..array_types import IntArray
from ..atomic_files import replaced
from ..errors import InvalidArgumentError, required_packages
from ..reports.call_record import used_versions
from .amortized import AmortizedShapley
from .explainer_network import ExplainerNetwork, tensor_of
from .objectives import method_of
from .regressors import refuse_to_write

ENTRY = "shapley_ext.json"
"""The name of the metadata in a file."""

INPUTS = ("rows", "active", "total")

RESULTS = ("attributions", "gaps")

Inputs = Sequence[Tensor]

Results = list[npt.NDArray[Any]]

_ENDS = {".pt2": "pt2", ".pt": "torchscript", ".onnx": "onnx"}

_ROUNDING = 1e-5
"""Largest difference between the file's results and the network's, relative to the largest."""

_MEANINGS = {
    "rows": "The rows, numbers as they are: the graph standardises them. NaN is not allowed.",
    "active": "Players that may get an attribution. Pass true everywhere, unless a player is known "
    "to have no effect. With a reference, players equal to it in single precision get 0 anyway.",
    "total": "v(N) - v(empty) of each row: the model's output minus that of the reference, after "
    "the link and the value function, or the surrogate's output; see values. The "
    "attributions then sum to it: the gap is shared equally among the active players. Pass NaN to "
    "leave the network's attributions as they are.",
    "attributions": "One number per player and output, in units of the model's output.",
    "gaps": "total minus the sum of the network's own attributions; NaN where total is NaN.",
}


@dataclass(frozen=True)
class ReferenceInputs:
    """The values of absent features, as the network would see them.

    Attributes
    ----------
    rows : array, (B, …)
        One or several reference rows; the model's output is averaged over several.
    players : array, (…)
        The player of each number of a row.
    """

    rows: npt.NDArray[np.generic]
    players: IntArray


class ExportedGraph(nn.Module):
    """A trained network with all steps before and after it that need no model.

    Parameters
    ----------
    explainer : ExplainerNetwork
        The trained network, which standardises its inputs and scales its outputs.
    reference : ReferenceInputs, optional
        Players whose numbers all equal the reference get exactly 0. None: only the players that
        `active` excludes do.
    """

    first: Tensor
    varies: Tensor
    players: Tensor

    def __init__(self, explainer: ExplainerNetwork, reference: ReferenceInputs | None) -> None:
        super().__init__()
        self.explainer = explainer
        self.has_reference = reference is not None
        rows = torch.zeros(1, 1)
        players = torch.zeros(1, dtype=torch.long)
        if reference is not None:
            rows = tensor_of(reference.rows).flatten(1)
            players = tensor_of(reference.players).reshape(-1).long()
        self.register_buffer("first", rows[:1].clone())
        self.register_buffer("varies", (rows != rows[:1]).any(dim=0, keepdim=True))
        self.register_buffer("players", players)

    def forward(self, rows: Tensor, active: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """Return attributions, (B, M, K), and the gaps that were shared, (B, K).

        Parameters
        ----------
        rows : Tensor, (B, …)
            The network's inputs.
        active : bool Tensor, (B, M)
            The players that may get an attribution; all, if nothing else is known.
        total : Tensor, (B, K)
            v(N) − v(∅), to which the attributions shall sum; NaN for the network's own sum.
        """
        if self.has_reference:
            active = active & self._differing(rows, active)
        attributions = self.explainer(rows, active).double()
        gaps = total - attributions.sum(dim=1)
        counts = active.sum(dim=1, keepdim=True).clamp(min=1)
        shared = torch.where(torch.isnan(gaps), torch.zeros_like(gaps), gaps) / counts
        return attributions + shared[:, None] * active[:, :, None], gaps

    def results(self, inputs: Sequence[Tensor]) -> list[npt.NDArray[np.float64]]:
        """Return the attributions and the gaps as arrays."""
        with torch.no_grad():
            return [result.numpy() for result in self(*inputs)]

    def _differing(self, rows: Tensor, active: Tensor) -> Tensor:
        """Return the players with a number other than in the reference, (B, M)."""
        differs = (rows.flatten(1) != self.first) | self.varies
        none = torch.zeros_like(active, dtype=torch.float32)
        return none.index_add(1, self.players, differs.float()) > 0


def example_inputs(
    probes: Tensor, n_players: int, n_outputs: int, n_rows: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return inputs of the graph for `n_rows` rows, which repeat the stored rows."""
    rows = probes[torch.arange(n_rows) % len(probes)]
    rows = rows.float() if rows.is_floating_point() else rows
    active = torch.ones(n_rows, n_players, dtype=torch.bool)
    total = torch.linspace(-1.0, 1.0, n_rows * n_outputs, dtype=torch.float64)
    return rows, active, total.reshape(n_rows, n_outputs)


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


@dataclass(frozen=True)
class ExportContext:
    """What a host knows about the players, outputs and reference of a network.

    Attributes
    ----------
    host : str
        "shap" or "captum".
    players : list of str
        Names of the players.
    outputs : list of str, optional
        Names of the outputs.
    reference : ReferenceInputs, optional
        The reference rows, if they are the same for all rows.
    further : mapping
        Further metadata, as plain data for JSON.
    """

    host: str
    players: list[str]
    outputs: list[str] | None = None
    reference: ReferenceInputs | None = None
    further: Mapping[str, Any] = field(default_factory=dict)


def export(
    explainer: AmortizedShapley, path: str | Path, file_format: str | None, context: ExportContext
) -> None:
    """Write a trained network and its metadata, and compare the file's results with the network's.

    Raises
    ------
    InvalidArgumentError
        If the format is unknown, or the network cannot be exported in it.
    MissingPackageError
        If the format needs a package that is not installed.
    """
    file_format = format_of(path, file_format)
    refuse_to_write(explainer.trained.network.network)
    graph = ExportedGraph(explainer.trained.network, context.reference).eval()
    metadata = json.dumps(_metadata(explainer, file_format, context), allow_nan=False)
    with replaced(path) as part:
        _write_checked(file_format, part, graph, _examples(explainer), metadata)


def _examples(explainer: AmortizedShapley) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return the inputs to export with, which have several rows, and those of other numbers."""
    about, probes = explainer.saved.description, explainer.saved.fingerprint.inputs
    return [example_inputs(probes, about.n_players, about.n_outputs, n) for n in (4, 1, 7)]


def _write_checked(
    file_format: str, path: Path, graph: ExportedGraph, examples: list[Any], metadata: str
) -> None:
    try:
        write(file_format, path, graph, examples[0], metadata)
        found = [results_of(file_format, path, inputs) for inputs in examples]
    except (RuntimeError, ValueError, TypeError) as error:
        raise InvalidArgumentError(
            f"The network cannot be exported as {file_format!r}: {error!s:.500} Pass another "
            "format=, or train a module whose forward does not depend on the numbers of a batch."
        ) from error
    for inputs, results in zip(examples, found, strict=True):
        _check_results(file_format, graph, inputs, results)


def _check_results(file_format: str, graph: ExportedGraph, inputs: Inputs, results: Any) -> None:
    for name, result, needed in zip(RESULTS, results, graph.results(inputs), strict=True):
        bound = _ROUNDING * np.abs(needed).max()
        if result.shape != needed.shape or not np.allclose(result, needed, rtol=0, atol=bound):
            raise InvalidArgumentError(
                f"The network cannot be exported as {file_format!r}: for {len(inputs[0])} rows, "
                f"the file returns other {name} than the network. Its forward seems to depend on "
                "the number of rows. Pass another format=, or train a module without that."
            )


def _metadata(
    explainer: AmortizedShapley, file_format: str, context: ExportContext
) -> dict[str, Any]:
    about, trained = explainer.saved.description, explainer.trained
    n_players, n_outputs = about.n_players, about.n_outputs
    probes = explainer.saved.fingerprint.inputs
    kind = "float32" if probes.is_floating_point() else str(probes.dtype).removeprefix("torch.")
    shapes: dict[str, tuple[str, list[int]]] = {
        "rows": (kind, list(about.input_shape)),
        "active": ("bool", [n_players]),
        "total": ("float64", [n_outputs]),
        "attributions": ("float64", [n_players, n_outputs]),
        "gaps": ("float64", [n_outputs]),
    }
    described = {
        name: {"type": kind, "shape": ["rows", *shape], "meaning": _MEANINGS[name]}
        for name, (kind, shape) in shapes.items()
    }
    return {
        "version": 1,
        "format": file_format,
        "host": context.host,
        "method": method_of(about.target),
        "labels": about.target,
        "settings": about.settings,
        "network": about.network,
        "inputs": {name: described[name] for name in INPUTS},
        "results": {name: described[name] for name in RESULTS},
        "players": context.players,
        "outputs": context.outputs,
        "reference": _reference(context.reference),
        "base_values": [_number(value) for value in trained.network.empty.tolist()],
        "error_on_held_out_rows": min(record.absolute_error for record in trained.history),
        "evaluations": trained.evaluations,
        "versions": used_versions(),
        **context.further,
    }


def _reference(reference: ReferenceInputs | None) -> dict[str, Any] | None:
    if reference is None:
        return None
    rows = reference.rows.astype(object)
    rows[~np.isfinite(reference.rows)] = None  # JSON has no such numbers
    return {"rows": rows.tolist(), "player_of_each_number": reference.players.tolist()}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
