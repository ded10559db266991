"""Trained explainers as files.

The files contain no code: networks are built by name, or passed by the user who loads a file. They
are first built without memory for weights, and refused if those of the file do not fit.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..array_types import ValueArray
from ..errors import InvalidArgumentError
from .embedding_network import EmbeddingNetwork
from .fitting import in_single_precision
from .network_files import refusing
from .networks import NETWORKS, build

PROBES = 8
"""Number of stored rows."""


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
    def from_rows(cls, inputs: Any, values: ValueArray, owner: str = "explainer") -> Fingerprint:
        """Return the fingerprint of the first rows."""
        return cls(torch.as_tensor(np.asarray(inputs[:PROBES]).copy()), values[:PROBES], owner)

    def check(self, values: ValueArray) -> None:
        """Refuse a model with other values, (R, n, K), of the same rows."""
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
    """What network, with what options.

    Attributes
    ----------
    network : str
        A name of `NETWORKS`, or the class of the user's own module.
    options : mapping
        Options of a network given by its name.
    input_shape : sequence of int
        Shape of one input.
    n_players, n_outputs : int
        Shape of its result for an input.
    host : mapping
        Data of the host for the file.
    """

    network: str
    options: Mapping[str, Any]
    input_shape: Sequence[int]
    n_players: int
    n_outputs: int
    host: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        sizes = [*self.input_shape, self.n_players, self.n_outputs]
        if len(sizes) < 3 or not all(1 <= size < 2**31 for size in sizes):
            raise ValueError(f"no network has the sizes {sizes}")

    def check(self, fingerprint: Fingerprint, n_values: int) -> None:
        """Raise a ValueError if rows, or their values, have other shapes than the network's."""
        inputs, values, n_rows = fingerprint.inputs, fingerprint.values, len(fingerprint.inputs)
        needed = [(n_rows, *self.input_shape), (n_rows, n_values, self.n_outputs)]
        if [inputs.shape, values.shape] != needed or not 1 <= n_rows <= PROBES:
            raise ValueError("its stored rows do not fit its header")

    def skeleton(self, path: Path | str, owner: str, user_module: nn.Module | None) -> nn.Module:
        """Return the network of a file, without memory, or a copy of the user's module."""
        if user_module is not None:
            return copy.deepcopy(user_module).float()
        if self.network not in NETWORKS:
            raise InvalidArgumentError(
                f"{path} holds weights of a {self.network:.100}, which is not one of our networks. "
                "Pass a module of that class as student= (network= of a Surrogate); a copy gets "
                "the weights."
            )
        with refusing(path, owner), torch.device("meta"), in_single_precision():
            if self.network == "trees":
                raise ValueError("files hold no trees")
            shape = self.n_players, self.n_outputs
            return build(self.network, self.input_shape, *shape, self.options)


@dataclass(frozen=True)
class Description(Blueprint):
    """The network and the training of an explainer.

    Attributes
    ----------
    target : str
        The target of the training, one of `TARGETS`.
    seed : int
        Seed of the training; the same seed gives the same network.
    settings : dict of str to str
        The other settings of the training, and the name of their preset.
    """

    target: str
    seed: int
    settings: dict[str, str]


def with_weights(
    path: Path | str, kind: str, owner: nn.Module, weights: Mapping[str, Tensor]
) -> None:
    """Give a network and its scales the weights of a file; refuse those that do not fit it."""
    needed, found = (
        {name: f"{tuple(tensor.shape)} of {tensor.dtype}" for name, tensor in tensors.items()}
        for tensors in (owner.state_dict(), weights)
    )
    if unfit := needed.items() ^ found.items():
        name, _ = min(unfit)
        raise InvalidArgumentError(
            f"The weights in {path} do not fit the module that was passed, or the network of its "
            f"header: {name} is {found.get(name, 'missing')} in the file and "
            f"{needed.get(name, 'missing')} in the network. Train and save again."
        )
    with refusing(path, kind):
        owner.load_state_dict(weights, assign=True)
        for module in owner.eval().modules():
            if isinstance(module, EmbeddingNetwork):
                module.check_weights()
