"""Loading weights of files into a network, after comparing their shapes.

The header describes the network. It is first built without memory for weights, so that a network
that does not fit the file is refused before it uses memory.
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
            "module of that class as network=; a copy of it gets the weights."
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
        needed = "network=" if is_users else "the network that its header describes"
        raise InvalidArgumentError(
            f"The weights in {file.path} do not fit {needed}: {name.removeprefix(prefix)} is "
            f"{_spoken(stored_shapes.get(name))} in the file and "
            f"{_spoken(needed_shapes.get(name))} in the network."
        )


def _spoken(tensor: tuple[tuple[int, ...], torch.dtype] | None) -> str:
    return "missing" if tensor is None else f"{tensor[0]} of {tensor[1]}"
