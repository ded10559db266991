"""Files of dataclasses: arrays and tensors as safetensors, the rest as JSON in their header.

Reading runs no code. A checksum covers every bit. Each field of the JSON must have the type that
the dataclass gives it, so that a header which was changed and signed anew is refused, too.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import reprlib
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from ..atomic_files import replaced
from ..errors import InvalidArgumentError, InvalidArgumentTypeError

FORMAT = 7

_MOST_LETTERS, _MOST_VALUES = 2**23, 500_000
"""Bounds of the header, so that no file can use much memory."""

_KEY, _FIELD, _NO_CHECKSUM = "shapley_ext", b'"sha256":"', b"0" * 64

_MAY_BE_NAN = ("empty", "standard_errors")
"""Ends of the names of tensors that may hold NaN."""

_REMEDY = "Copy the original file again, or train and save again."

_UNFIT = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, RuntimeError),
    *(TypeError, ValueError, safetensors.SafetensorError, pickle.UnpicklingError),
)
"""Errors that reading a file, or building what it describes, raises where it was changed."""

T = TypeVar("T")


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
        text = _bounded(json.dumps(about))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentTypeError(
            f"The network cannot be saved: {error}. Use only numbers, texts and lists in "
            "student_options= (network_options= of a Surrogate), and only numbers and texts as "
            "names of columns."
        ) from error
    metadata = {_KEY: text, "sha256": _NO_CHECKSUM.decode()}
    data = bytearray(safetensors.torch.save(tensors, metadata))
    place, checksum = _checksum(data)
    data[place] = checksum
    with replaced(path) as part:
        part.write_bytes(data)


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
        place, checksum = _checksum(data)
        if bytes(data[place]) != checksum:
            raise ValueError("its contents do not have the checksum that was saved with them")
        header = data[8 : 8 + int.from_bytes(data[:8], "little")]
        about = json.loads(json.loads(_bounded(header.decode()))["__metadata__"][_KEY])
        tensors = safetensors.torch.load(data)
        found = about.pop("kind"), about.pop("format")
        if found != (kind, FORMAT):
            raise ValueError(
                f"it is of kind {found[0]!r:.20} and format {found[1]!r:.20}; this version reads "
                f"format {FORMAT}. Explainers are loaded by trained= (shap) or load_trained "
                "(captum), surrogates by Surrogate.load"
            )
        for name, tensor in tensors.items():
            if not name.endswith(_MAY_BE_NAN) and not torch.isfinite(tensor).all():
                raise ValueError(f"its tensor {name} holds NaN or infinite numbers")
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
        names = [field.name for field in fields(origin)]
        if sorted(value) == sorted(names):
            return kind(**{n: typed(hints[n], value[n], f"{place}{n}.", tensors) for n in names})
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


def _checksum(data: Any) -> tuple[slice, bytes]:
    """Return where the bytes of a file hold their checksum, and the right one."""
    start = bytes(data[: 2 * _MOST_LETTERS]).find(_FIELD) + len(_FIELD)
    place = slice(start, start + len(_NO_CHECKSUM))
    hasher = hashlib.sha256(data[: place.start])
    hasher.update(_NO_CHECKSUM)
    hasher.update(data[place.stop :])
    return place, hasher.hexdigest().encode()


def _bounded(text: str) -> str:
    """Return the text of a header; refuse one that would take much memory."""
    if len(text) > _MOST_LETTERS or sum(map(text.count, ",[{")) > _MOST_VALUES:
        raise ValueError("its header is too long")
    return text
