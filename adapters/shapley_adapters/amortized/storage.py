"""Trained explainers, and other dataclasses, as files: safetensors, with JSON in their header.

Reading runs no code: networks are built by name, or passed by the user who loads a file. They are
first built without memory for weights, and refused if those of the file do not fit. A digest covers
all contents. Each field of the JSON must have the type that the dataclass gives it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import reprlib
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from ..array_types import ValueArray
from ..atomic_files import replaced
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from .fitting import ModuleT, in_single_precision
from .networks import NETWORKS, build

FORMAT, _KEY = 8, "shapley_ext"

_REMEDY = "Copy the original file again, or train and save again."

_UNFIT = (
    *(ArithmeticError, AttributeError, ImportError, LookupError, RecursionError, RuntimeError),
    *(TypeError, ValueError, safetensors.SafetensorError, pickle.UnpicklingError),
)
"""Errors that reading a file, or building what it describes, raises where it was changed."""

T = TypeVar("T")


def digest(*parts: Any) -> str:
    """Return a digest of arrays, tensors, and other objects by their `repr`."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        is_array = isinstance(part, (np.ndarray, Tensor))
        array = np.ascontiguousarray(part if is_array else repr(part))
        hasher.update(f"{array.dtype}{array.shape}".encode())
        content: Any = array.reshape(-1).view(np.uint8) if array.size else b""
        hasher.update(content)
    return hasher.hexdigest()


@contextmanager
def refusing(path: Path | str, kind: str, remedy: str = _REMEDY) -> Iterator[None]:
    """Refuse a file where the block, which uses its contents, fails."""
    try:
        yield
    except _UNFIT as error:
        raise InvalidArgumentError(
            f"{path} is damaged, or not a file of kind {kind!r}: {error!s:.500}. {remedy}"
        ) from error


def write_file(path: Path | str, kind: str, content: Any) -> None:
    """Write a dataclass to a file of some kind; of a network in it, the weights.

    Raises
    ------
    InvalidArgumentTypeError
        If it holds an option that cannot be written as JSON, or that is too long.
    """
    tensors: dict[str, Tensor] = {}
    try:
        about = {"format": FORMAT, "kind": kind, **_split(content, "", tensors)}
        text = json.dumps(about)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentTypeError(
            f"The network cannot be saved: {error}. Use only numbers, texts and lists in "
            "student_options= (network_options= of a Surrogate), and only numbers and texts as "
            "names of columns."
        ) from error
    metadata = {_KEY: text, "digest": digest(text, *chain(*sorted(tensors.items())))}
    with replaced(path) as part:
        part.write_bytes(safetensors.torch.save(tensors, metadata))


def read_file(path: Path | str, kind: str, content: type[T], remedy: str = _REMEDY) -> T:
    """Read a dataclass that `write_file` wrote; of a network in it, the weights by their names.

    Raises
    ------
    InvalidArgumentError
        If the file was not written by this package, has another kind or version, or was changed.
    """
    with refusing(path, kind, remedy):
        # Not by `safe_open`, whose tensors torch makes from a sequence: an interrupt that comes
        # meanwhile would be a ValueError.
        data = Path(path).read_bytes()
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        tensors = safetensors.torch.load(data)
        if metadata["digest"] != digest(metadata[_KEY], *chain(*sorted(tensors.items()))):
            raise ValueError("its contents do not have the digest that was saved with them")
        about = json.loads(metadata[_KEY])
        found = about.pop("kind"), about.pop("format")
        if found != (kind, FORMAT):
            raise ValueError(
                f"it is of kind {found[0]!r:.20} and format {found[1]!r:.20}; this version reads "
                f"format {FORMAT}. Explainers are loaded by trained= (shap) or load_trained "
                "(captum), surrogates by Surrogate.load"
            )
        read: T = typed(content, about, "", tensors)
        if tensors:
            raise ValueError(f"it has an unknown tensor, {min(tensors):.100}")
    return read


def _split(value: Any, place: str, tensors: dict[str, Tensor]) -> Any:
    """Return what JSON holds of a value; its arrays go to `tensors`, by their places in it."""
    if isinstance(value, nn.Module):
        value = value.state_dict()
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _split(entry, f"{place}{key}.", tensors) for key, entry in value.items()}
    if isinstance(value, (np.ndarray, Tensor)):
        tensors[place[:-1]] = torch.as_tensor(value).detach().cpu().contiguous().clone()
        return None
    if isinstance(value, (list, tuple)):
        return [_split(entry, place, tensors) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def typed(kind: Any, value: Any, place: str = "", tensors: dict[str, Tensor] | None = None) -> Any:
    """Return a value of JSON as a type, with the tensors at its places; the opposite of `_split`.

    Raises
    ------
    ValueError
        If it, or one of its fields, has another type; whole numbers are not negative.
    """
    origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    if isinstance(origin, type) and issubclass(origin, nn.Module):
        origin, inner = dict, (str, Tensor)
    if origin in (np.ndarray, Tensor) and tensors and value is None:
        tensor = tensors.pop(place[:-1])
        return tensor if origin is Tensor else tensor.numpy()
    if isinstance(value, dict) and is_dataclass(origin):
        hints = typing.get_type_hints(origin)
        if value.keys() == hints.keys():
            return kind(**{n: typed(hints[n], value[n], f"{place}{n}.", tensors) for n in hints})
    elif isinstance(value, dict) and origin in (dict, Mapping):
        return {k: typed(inner[1], entry, f"{place}{k}.", tensors) for k, entry in value.items()}
    elif isinstance(value, list) and origin in (list, tuple, Sequence):
        entries = [typed(inner[0], entry, place, tensors) for entry in value]
        return tuple(entries) if origin is tuple else entries
    elif type(value) in (int, float) and origin is float:
        return float(value)
    elif origin is Any or (type(value) is origin and (origin is not int or value >= 0)):
        return value
    raise ValueError(f"{place[:-1] or 'its header'} cannot be {reprlib.repr(value)}")


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
                f"The {self.owner} was trained on another model, or with another reference. On "
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

    def network_of(
        self,
        path: Path | str,
        kind: str,
        user_module: nn.Module | None,
        wrap: Callable[..., ModuleT],
        row_shape: Sequence[int],
        weights: Mapping[str, Tensor],
    ) -> ModuleT:
        """Return the network of a file, or a copy of the user's module, with the file's weights.

        `wrap` makes it of the bare network, of two scales of rows and of two of outputs. It is
        built without memory for weights, and refused if those of the file do not fit.
        """
        bare = None if user_module is None else copy.deepcopy(user_module).float()
        if bare is None and self.network not in NETWORKS:
            raise InvalidArgumentError(
                f"{path} holds weights of a {self.network:.100}, which is not one of our networks. "
                "Pass a module of that class as student= (network= of a Surrogate); a copy gets "
                "the weights."
            )
        with refusing(path, kind), torch.device("meta"), in_single_precision():
            if bare is None and self.network == "trees":
                raise ValueError("files hold no trees")
            if bare is None:
                shape = self.input_shape, self.n_players, self.n_outputs
                bare = build(self.network, *shape, self.options)
            shapes = row_shape, row_shape, [self.n_outputs], [self.n_outputs]
            network = wrap(bare, *map(torch.zeros, shapes))
        needed, found = (
            {name: f"{tuple(tensor.shape)} of {tensor.dtype}" for name, tensor in tensors.items()}
            for tensors in (network.state_dict(), weights)
        )
        if unfit := needed.items() ^ found.items():
            name, _ = min(unfit)
            raise InvalidArgumentError(
                f"The weights in {path} do not fit the module that was passed, or the network of "
                f"its header. In the file, {name} is {found.get(name, 'missing')}, in the network "
                f"{needed.get(name, 'missing')}. Train and save again."
            )
        with refusing(path, kind):
            network.load_state_dict(weights, assign=True)
        return network.eval()


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
