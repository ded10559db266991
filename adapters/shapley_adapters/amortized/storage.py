"""Trained explainers as files: weights as safetensors, all else as JSON beside them in the file.

Nothing in such a file is code: networks are built by name, or handed over by who loads.
"""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from ..array_types import ValueArray
from ..errors import InvalidArgumentError
from .explainer_network import ExplainerNetwork
from .networks import NETWORKS, build
from .training import Record, Trained

_FORMAT = 1

_PROBES = 8
"""How many rows are kept to tell by whether a model is the one that was explained."""

_BUFFERS = ("centre", "spread", "scale", "empty")


@dataclass(frozen=True)
class Description:
    """What a trained explainer was built with.

    Attributes
    ----------
    network : str
        A name of `NETWORKS`, or the class of the user's own module.
    options : dict
        Its options.
    input_shape : list of int
        Shape of one of its inputs.
    n_players, n_outputs : int
        Shape of what it returns for a row.
    target : str
        What it was trained towards.
    seed : int
        Seed of the training, which makes the same network again.
    host : dict
        What the host needs to know of the outputs.
    """

    network: str
    options: dict[str, Any]
    input_shape: list[int]
    n_players: int
    n_outputs: int
    target: str
    seed: int
    host: dict[str, Any] = field(default_factory=dict)

    def build(self, own: nn.Module | None) -> nn.Module:
        """Return the bare network; the user's own where the file does not hold how to build it."""
        if own is not None:
            return copy.deepcopy(own)
        if self.network not in NETWORKS:
            raise InvalidArgumentError(
                f"The file holds weights of a {self.network}, which is none of ours. Pass a module "
                "of that class as network=; a copy of it gets them."
            )
        return build(self.network, self.input_shape, self.n_players, self.n_outputs, self.options)


@dataclass(frozen=True)
class Fingerprint:
    """Some rows, and what the model made of them, such as v(∅) and v(N)."""

    inputs: Tensor
    values: ValueArray
    owner: str = "explainer"

    @classmethod
    def of(cls, inputs: Any, empty: ValueArray, rise: ValueArray) -> Fingerprint:
        """Take the first rows of those that were trained on."""
        kept = torch.as_tensor(np.ascontiguousarray(inputs[:_PROBES]))
        values = np.stack([empty[:_PROBES], empty[:_PROBES] + rise[:_PROBES]], axis=1)
        return cls(kept, values)

    def check(self, values: ValueArray) -> None:
        """Refuse a model that makes other values, (R, 2, K), of the same rows."""
        if values.shape != self.values.shape:
            raise InvalidArgumentError(
                f"The {self.owner} was trained on a model with {self.values.shape[2]} outputs; "
                f"this one has {values.shape[2]}."
            )
        size = np.abs(self.values).max()
        gap = np.abs(values - self.values).max()
        if gap > 1e-4 * size:
            raise InvalidArgumentError(
                f"The {self.owner} was trained on another model, or with another reference: on "
                f"{len(values)} rows that it keeps, values differ by up to {gap:.3g}, their size "
                f"being {size:.3g}. Load it with the model and the reference it was trained with, "
                "or train anew."
            )


@dataclass(frozen=True)
class Saved:
    """What a file holds."""

    trained: Trained
    description: Description
    fingerprint: Fingerprint


def save(path: Path | str, saved: Saved) -> None:
    """Write a trained explainer to a file."""
    trained = saved.trained
    tensors = {f"explainer.{k}": v for k, v in trained.network.state_dict().items()}
    tensors["probe.inputs"] = saved.fingerprint.inputs
    tensors["probe.values"] = torch.as_tensor(saved.fingerprint.values)
    about = {
        "description": asdict(saved.description),
        "history": [asdict(record) for record in trained.history],
        "evaluations": trained.evaluations,
        "validation_evaluations": trained.validation_evaluations,
    }
    write_file(path, "explainer", tensors, about)


def load(path: Path | str, network: nn.Module | None = None) -> Saved:
    """Read a trained explainer.

    Raises
    ------
    InvalidArgumentError
        If the file is none of ours, of a newer version, or its weights do not fit `network`.
    """
    about, tensors = read_file(path, "explainer")
    description = Description(**about["description"])
    state = state_of(tensors, "explainer.")
    explainer = ExplainerNetwork(description.build(network), *(state[name] for name in _BUFFERS))
    load_weights(path, explainer, state)
    return Saved(
        Trained(
            explainer,
            [Record(**record) for record in about["history"]],
            about["evaluations"],
            about["validation_evaluations"],
        ),
        description,
        Fingerprint(tensors["probe.inputs"], tensors["probe.values"].numpy()),
    )


def write_file(path: Path | str, kind: str, tensors: dict[str, Tensor], about: Any) -> None:
    """Write tensors, and what can be said of them in JSON, to a file of some kind."""
    header = json.dumps({"format": _FORMAT, "kind": kind, **about})
    contiguous = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    safetensors.torch.save_file(contiguous, str(path), {"shapley_ext": header})


def read_file(path: Path | str, kind: str) -> tuple[Any, dict[str, Tensor]]:
    """Return what `write_file` wrote.

    Raises
    ------
    InvalidArgumentError
        If the file is none of ours, of another kind, or of a newer version.
    """
    try:
        with safetensors.safe_open(str(path), "pt") as file:
            about = json.loads((file.metadata() or {})["shapley_ext"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise InvalidArgumentError(f"{path} is not a file of a trained {kind}.") from error
    if about["format"] > _FORMAT:
        raise InvalidArgumentError(
            f"{path} was written by a newer version (format {about['format']}; this one reads up "
            f"to {_FORMAT}). Update shapley-ext."
        )
    found = about.get("kind", "explainer")
    if found != kind:
        raise InvalidArgumentError(f"{path} is not a file of a trained {kind}, but of a {found}.")
    return about, tensors


def state_of(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the weights among the tensors of a file, under the names that the module knows."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def load_weights(path: Path | str, module: nn.Module, state: dict[str, Tensor]) -> None:
    """Give a module the weights of a file."""
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise InvalidArgumentError(f"The weights in {path} do not fit network=: {error}") from error
    module.eval()
