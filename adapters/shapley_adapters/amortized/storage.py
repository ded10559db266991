"""Trained explainers as files.

The files contain no code: networks are built by name, or passed by the user who loads a file.

The header describes the network. It is first built without memory for weights, so that a network
that does not fit the file is refused before it uses memory.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..array_types import ValueArray
from ..errors import InvalidArgumentError
from .efficiency_gaps import HeldOutGaps
from .embedding_network import EmbeddingNetwork
from .explainer_network import ExplainerNetwork
from .fitting import in_single_precision
from .network_files import Fields, NetworkFile, read_file, write_file
from .networks import NETWORKS, build
from .objectives import TARGETS, method_of
from .regressors import BoostedTrees, refuse_to_write
from .stated_errors import LIMITS, LIMITS_OF_SIZES, StatedErrors
from .training import EpochMetrics, TrainedNetwork, Training
from .unlike_rows import MOST_ROWS, ReferenceRows

PROBES = 8
"""Number of stored rows."""


_BUFFERS = ("centre", "spread", "scale", "empty")

_OF_ERRORS = ("reference_rows", "error_sizes")
"""Tensors beside the network's, from which its standard errors are computed."""

_REMEDIES = {
    "simshap": "algorithm='simshap' (shap) or SimShap (captum)",
    "fastshap": "algorithm='fastshap' (shap) or FastShap (captum)",
}


@dataclass(frozen=True)
class Fingerprint:
    """Some rows, and the model's values of them, such as v(∅) and v(N).

    Attributes
    ----------
    inputs : Tensor, (R, …)
        The network's inputs for the rows.
    values : array, (R, n, K)
        The model's values.
    owner : str
        "explainer" or "surrogate", for messages.
    """

    inputs: Tensor
    values: ValueArray
    owner: str = "explainer"

    @classmethod
    def from_rows(
        cls, inputs: Any, empty: ValueArray, grand_minus_empty: ValueArray
    ) -> Fingerprint:
        """Return the fingerprint of the first training rows."""
        inputs_of_probes = torch.as_tensor(np.asarray(inputs[:PROBES]).copy())
        values = np.stack([empty[:PROBES], empty[:PROBES] + grand_minus_empty[:PROBES]], axis=1)
        return cls(inputs_of_probes, values)

    def check(self, values: ValueArray) -> None:
        """Refuse a model with other values, (R, 2, K), of the same rows."""
        if values.shape != self.values.shape:
            raise InvalidArgumentError(
                f"The {self.owner} was trained on a model with {self.values.shape[2]} outputs; "
                f"this one has {values.shape[2]}."
            )
        size = np.abs(self.values).max()
        gap = np.abs(values - self.values).max()
        if not gap <= 1e-4 * size:
            raise InvalidArgumentError(
                f"The {self.owner} was trained on another model, or with another reference: on "
                f"{len(values)} stored rows, values differ by up to {gap:.3g}; the largest value "
                f"is {size:.3g}. Load it with the model and the reference it was trained with, or "
                "train again."
            )


@dataclass(frozen=True)
class Blueprint:
    """How a network is built.

    Attributes
    ----------
    name : str
        A name of `NETWORKS`, or the class of the user's own module.
    options : mapping
        Options of a network given by its name.
    input_shape : sequence of int
        Shape of one input.
    n_players, n_outputs : int
        Shape of its result for an input.
    """

    name: str
    options: Mapping[str, Any]
    input_shape: Sequence[int]
    n_players: int
    n_outputs: int


def loaded_network(
    file: NetworkFile,
    owner: str,
    buffers: Sequence[str],
    blueprint: Blueprint,
    user_module: nn.Module | None,
) -> tuple[nn.Module, dict[str, Tensor]]:
    """Return the bare network with its weights, and all tensors of the file.

    Parameters
    ----------
    file : NetworkFile
        The file.
    owner : str
        Prefix of the names of the weights.
    buffers : sequence of str
        The owner's other tensors, whose shapes have been checked already.
    blueprint : Blueprint
        The description of the network in the header.
    user_module : Module, optional
        The user's module instead of a named network; a copy gets the weights.

    Raises
    ------
    InvalidArgumentError
        If the weights do not fit the network that the header describes, or the user's module.
    """
    network = _without_memory(file, blueprint) if user_module is None else user_module
    prefix = f"{owner}.network."
    other_names = {"probe.inputs", "probe.values", *(f"{owner}.{name}" for name in buffers)}
    unknown = [
        name for name in file.shapes if not name.startswith(prefix) and name not in other_names
    ]
    if unknown:
        file.refuse(f"it has a tensor {unknown[0]!r:.100}")
    _check_shapes(file, prefix, network, user_module is not None)
    tensors = file.tensors(may_be_missing=[f"{owner}.empty"])
    network = (
        network.to_empty(device="cpu")
        if user_module is None
        else copy.deepcopy(user_module).float()
    )
    network.load_state_dict(state_of(tensors, prefix))
    return network.eval(), tensors


def state_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors of a file whose names begin with `prefix`, without the prefix."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _without_memory(file: NetworkFile, blueprint: Blueprint) -> nn.Module:
    name, options = blueprint.name, blueprint.options
    if name not in NETWORKS:
        raise InvalidArgumentError(
            f"{file.path} holds weights of a {name}, which is not one of our networks. Pass a "
            "module of that class as student= (network= of a Surrogate); a copy gets the weights."
        )
    # Each layer has tensors in the file; building layers without tensors would only take time.
    widths, depth = options.get("widths"), options.get("depth")
    n_widths = len(widths) if isinstance(widths, list) else 0
    if max(n_widths, depth if isinstance(depth, int) else 0) > len(file.shapes):
        file.refuse(f"it has {len(file.shapes)} tensors, fewer than layers")
    try:
        with torch.device("meta"), in_single_precision():
            return build(
                name, blueprint.input_shape, blueprint.n_players, blueprint.n_outputs, options
            )
    except (RuntimeError, TypeError, ValueError, OverflowError, IndexError) as error:
        raise InvalidArgumentError(
            f"{file.path} cannot be used: the network in its header cannot be built ({error}). "
            "Train and save again."
        ) from error


def _check_shapes(file: NetworkFile, prefix: str, network: nn.Module, is_users: bool) -> None:
    """Refuse weights whose names, shapes or types differ from those of the network."""
    needed_shapes = {
        prefix + name: (
            tuple(tensor.shape),
            torch.float32 if tensor.is_floating_point() else tensor.dtype,
        )
        for name, tensor in network.state_dict().items()
    }
    stored_shapes = {name: shape for name, shape in file.shapes.items() if name.startswith(prefix)}
    differing = sorted(
        name
        for name in {*needed_shapes, *stored_shapes}
        if needed_shapes.get(name) != stored_shapes.get(name)
    )
    if differing:
        name = differing[0]
        needed = (
            "the module that was passed" if is_users else "the network that its header describes"
        )
        raise InvalidArgumentError(
            f"The weights in {file.path} do not fit {needed}: {name.removeprefix(prefix)} is "
            f"{_spoken(stored_shapes.get(name))} in the file and "
            f"{_spoken(needed_shapes.get(name))} in the network."
        )


def _spoken(tensor: tuple[tuple[int, ...], torch.dtype] | None) -> str:
    return "missing" if tensor is None else f"{tensor[0]} of {tensor[1]}"


@dataclass(frozen=True)
class Description:
    """The network, the shapes and the target of a trained explainer.

    Attributes
    ----------
    network : str
        A name of `NETWORKS`, or the class of the user's own module.
    options : dict
        Its options.
    input_shape : list of int
        Shape of one of its inputs.
    n_players, n_outputs : int
        Shape of its result for a row.
    target : str
        The target of the training, one of `TARGETS`.
    seed : int
        Seed of the training; the same seed gives the same network.
    settings : dict of str to str
        The other settings of the training, and the name of their preset.
    host : dict
        Data of the host about the outputs.
    """

    network: str
    options: dict[str, Any]
    input_shape: list[int]
    n_players: int
    n_outputs: int
    target: str
    seed: int
    settings: dict[str, str]
    host: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_header(cls, header: Fields) -> Description:
        """Return the description of a file."""
        return cls(
            header.text("network"),
            header.part("options").values,
            header.shape("input_shape"),
            header.size("n_players"),
            header.size("n_outputs"),
            header.text("target", TARGETS),
            header.whole_number("seed", largest=None),
            _settings(header),
            header.part("host").values,
        )


@dataclass(frozen=True)
class SavedExplainer:
    """The contents of a file."""

    trained: TrainedNetwork
    description: Description
    fingerprint: Fingerprint


def save(path: Path | str, saved: SavedExplainer) -> None:
    """Write a trained explainer to a file.

    Raises
    ------
    InvalidArgumentError
        If the student is a regressor of scikit-learn.
    """
    trained = saved.trained
    refuse_to_write(trained.network.network)
    tensors = {f"explainer.{k}": v for k, v in trained.network.state_dict().items()}
    tensors["explainer.reference_rows"] = trained.reference.rows
    tensors["explainer.error_sizes"] = torch.as_tensor(trained.errors.sizes, dtype=torch.float64)
    tensors["probe.inputs"] = saved.fingerprint.inputs
    tensors["probe.values"] = torch.as_tensor(saved.fingerprint.values, dtype=torch.float64)
    about = {
        "method": method_of(saved.description.target),
        "description": asdict(saved.description),
        "history": [asdict(record) for record in trained.history],
        "evaluations": trained.evaluations,
        "validation_evaluations": trained.validation_evaluations,
        "gaps": asdict(trained.gaps),
        "errors": {name: getattr(trained.errors, name) for name in _names_of_errors()},
    }
    write_file(path, "explainer", tensors, about)


def load(
    path: Path | str, network: nn.Module | None = None, targets: Sequence[str] = TARGETS
) -> SavedExplainer:
    """Read a trained explainer.

    Raises
    ------
    InvalidArgumentError
        If the file is damaged, was not written by this version of the package, has another target
        than `targets`, or its weights do not fit `network`.
    """
    file = read_file(path, "explainer")
    header = file.fields(
        _names_of(TrainedNetwork, "method", "description", without=["network", "reference"])
    )
    description = Description.from_header(header.part("description", _names_of(Description)))
    method = header.text("method", [method_of(description.target)])
    if description.target not in targets:
        remedy = f"Load it by {_REMEDIES[method]}."
        if method == method_of(targets[0]):
            remedy = f"Pass labels={description.target!r}, or leave out preset=."
        raise InvalidArgumentError(
            f"{path} holds a network trained by {method} with labels={description.target!r}, not "
            f"by {method_of(targets[0])} with {' or '.join(map(repr, targets))}. {remedy}"
        )
    history = [
        _record(fields_of_epoch)
        for fields_of_epoch in header.parts("history", _names_of(EpochMetrics))
    ]
    evaluations = header.whole_number("evaluations"), header.whole_number("validation_evaluations")
    gaps = _gaps(header.part("gaps", _names_of(HeldOutGaps)), description.n_outputs)
    explainer, state, fingerprint = _network(file, description, network)
    errors = _errors(
        header.part("errors", _names_of_errors()), state["error_sizes"], description.n_outputs
    )
    reference = ReferenceRows(state["reference_rows"])
    trained = TrainedNetwork(explainer, history, *evaluations, gaps, errors, reference)
    return SavedExplainer(trained, description, fingerprint)


def _network(
    file: NetworkFile, about: Description, user_module: nn.Module | None
) -> tuple[ExplainerNetwork, dict[str, Tensor], Fingerprint]:
    """Return the network and the stored rows, after checking all shapes by the description."""
    row, n_outputs = tuple(about.input_shape), about.n_outputs
    file.probe_shape(row, (2, n_outputs), PROBES)
    centre = file.check_tensor("explainer.centre", [row, (0,)], [torch.float32])
    file.check_tensor("explainer.spread", [centre], [torch.float32])
    file.check_tensor("explainer.scale", [(n_outputs,)], [torch.float32])
    file.check_tensor("explainer.empty", [(n_outputs,)], [torch.float64])
    size = math.prod(row)
    shapes = [(n, size) for n in range(1, MOST_ROWS + 1)]
    file.check_tensor("explainer.reference_rows", shapes, [torch.float32])
    file.check_tensor("explainer.error_sizes", [(about.n_players, n_outputs)], [torch.float64])
    blueprint = Blueprint(about.network, about.options, row, about.n_players, n_outputs)
    bare, tensors = loaded_network(
        file, "explainer", (*_BUFFERS, *_OF_ERRORS), blueprint, user_module
    )
    if isinstance(bare, EmbeddingNetwork) and not bare.functions.are_ordered():
        file.refuse("its tensor explainer.network.functions.knots is not in order")
    if isinstance(bare, BoostedTrees) and not bare.are_columns_known():
        file.refuse("its tensor explainer.network.columns names columns that rows do not have")
    state = state_of(tensors, "explainer.")
    explainer = ExplainerNetwork(bare, *(state[name] for name in _BUFFERS)).eval()
    fingerprint = Fingerprint(tensors["probe.inputs"], tensors["probe.values"].numpy())
    return explainer, state, fingerprint


def _settings(header: Fields) -> dict[str, str]:
    names = list(Training().settings())
    settings = header.part("settings", names)
    return {name: settings.text(name) for name in names}


def _errors(header: Fields, sizes: Tensor, n_outputs: int) -> StatedErrors:
    smallest, largest = LIMITS_OF_SIZES
    if not ((sizes >= smallest) & (sizes <= largest)).all():
        header.refuse("error_sizes", f"numbers from {smallest} to {largest}")
    gap_sizes = header.numbers("gap_sizes")
    if len(gap_sizes) != n_outputs or min(gap_sizes) < smallest or max(gap_sizes) > largest:
        header.refuse("gap_sizes", f"{n_outputs} numbers from {smallest} to {largest}")
    numbers = {name: header.number(name, *limits) for name, limits in LIMITS.items()}
    if numbers["largest"] < numbers["usual"]:
        header.refuse("largest", f"a number from {numbers['usual']} on")
    return StatedErrors(sizes=sizes.double().numpy(), gap_sizes=tuple(gap_sizes), **numbers)


def _names_of_errors() -> list[str]:
    """Return the fields of `StatedErrors` that the header holds."""
    return _names_of(StatedErrors, without=["sizes"])


def _record(header: Fields) -> EpochMetrics:
    return EpochMetrics(
        header.whole_number("epoch", 1),
        header.whole_number("evaluations"),
        header.number("loss"),
        header.number("absolute_error"),
        header.number("squared_error"),
        header.number("standard_error"),
    )


def _gaps(header: Fields, n_outputs: int) -> HeldOutGaps:
    sizes = header.numbers("sizes")
    if len(sizes) != n_outputs:
        header.refuse("sizes", f"{n_outputs} numbers")
    return HeldOutGaps(
        tuple(sizes), header.number("largest", 0.0), header.whole_number("n_rows", 1)
    )


def _names_of(kind: type, *further: str, without: Sequence[str] = ()) -> list[str]:
    """Return the names of the fields of a dataclass, and `further` ones."""
    return [
        *(
            field_of_kind.name
            for field_of_kind in fields(kind)
            if field_of_kind.name not in without
        ),
        *further,
    ]
