"""Weights of files, given to a network after their shapes have been compared.

A header says how a network is built. It is built without memory first, so that one that does not
fit the weights in the file is refused before it takes any.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import InvalidArgumentError
from .fitting import in_single_precision
from .network_files import NetworkFile
from .networks import NETWORKS, build


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
        Shape of what it returns for an input.
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
    own: nn.Module | None,
) -> tuple[nn.Module, dict[str, Tensor]]:
    """Return the bare network with its weights, and all tensors of the file.

    Parameters
    ----------
    file : NetworkFile
        The file.
    owner : str
        What the names of the weights begin with.
    buffers : sequence of str
        The owner's tensors other than the weights, whose shapes are known to be right.
    blueprint : Blueprint
        How the network is built, as the header says.
    own : Module, optional
        The user's module in place of a named network; a copy gets the weights.

    Raises
    ------
    InvalidArgumentError
        If the weights do not fit the network that the header describes, or the user's own.
    """
    network = _without_memory(file, blueprint) if own is None else own
    prefix = f"{owner}.network."
    others = {"probe.inputs", "probe.values", *(f"{owner}.{name}" for name in buffers)}
    unknown = [name for name in file.shapes if not name.startswith(prefix) and name not in others]
    if unknown:
        file.refuse(f"it has a tensor {unknown[0]!r:.100}")
    _check_shapes(file, prefix, network, own is not None)
    tensors = file.tensors(may_be_missing=[f"{owner}.empty"])
    network = network.to_empty(device="cpu") if own is None else copy.deepcopy(own).float()
    network.load_state_dict(state_of(tensors, prefix))
    return network.eval(), tensors


def state_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the weights among the tensors of a file, under the names that the module knows."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _without_memory(file: NetworkFile, blueprint: Blueprint) -> nn.Module:
    name, options = blueprint.name, blueprint.options
    if name not in NETWORKS:
        raise InvalidArgumentError(
            f"{file.path} holds weights of a {name}, which is none of ours. Pass a module of that "
            "class as network=; a copy of it gets them."
        )
    # A layer has tensors in the file. Layers without any would take time, if no memory.
    depths = [len(one) if isinstance(one, list) else 0 for one in options.values()]
    depth = options.get("depth")
    if max([*depths, depth if isinstance(depth, int) else 0]) > len(file.shapes):
        file.refuse(f"it has {len(file.shapes)} tensors, fewer than layers")
    try:
        with torch.device("meta"), in_single_precision():
            return build(
                name, blueprint.input_shape, blueprint.n_players, blueprint.n_outputs, options
            )
    except (RuntimeError, TypeError, ValueError, OverflowError, IndexError) as error:
        raise InvalidArgumentError(
            f"{file.path} cannot be used: no network can be built as its header says ({error}). "
            "Train and save again."
        ) from error


def _check_shapes(file: NetworkFile, prefix: str, network: nn.Module, is_own: bool) -> None:
    """Refuse weights that a network does not have, or has in other shapes or types."""
    wanted = {
        prefix + name: (
            tuple(tensor.shape),
            torch.float32 if tensor.is_floating_point() else tensor.dtype,
        )
        for name, tensor in network.state_dict().items()
    }
    found = {name: one for name, one in file.shapes.items() if name.startswith(prefix)}
    differing = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
    if differing:
        name = differing[0]
        needed = "network=" if is_own else "the network that its header describes"
        raise InvalidArgumentError(
            f"The weights in {file.path} do not fit {needed}: {name.removeprefix(prefix)} is "
            f"{_spoken(found.get(name))} in the file and {_spoken(wanted.get(name))} in the "
            "network."
        )


def _spoken(tensor: tuple[tuple[int, ...], torch.dtype] | None) -> str:
    return "missing" if tensor is None else f"{tensor[0]} of {tensor[1]}"
