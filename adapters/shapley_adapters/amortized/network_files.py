"""Files of trained networks: tensors as safetensors, other data as JSON in the header, a checksum.

Reading runs no code. The size and the content of the header and the checksum are checked before
any tensor is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from ..atomic_files import replaced
from ..errors import InvalidArgumentError, InvalidArgumentTypeError

_LARGEST = 2**63 - 1
_LARGEST_SIZE = 2**31 - 1
_MOST_AXES = 8
_LONGEST_TEXT = 1000


FORMAT = 4

_MOST_HEADER_BYTES = 2**23

_MOST_VALUES = 500_000
"""Bounds of the header, so that no file can use much memory."""

_KEY, _CHECKSUM = "shapley_ext", "sha256"

_NO_CHECKSUM = "0" * 64

_BLOCK = 2**20

_LOADERS = {
    "explainer": "trained= (shap) or load_trained (captum)",
    "surrogate": "Surrogate.load",
}

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True)
class Fields:
    """An object of JSON, whose fields are read one by one.

    Attributes
    ----------
    path : str
        The file.
    location : str
        Path of the object in the header, for messages.
    values : dict
        The fields.
    """

    path: str
    location: str
    values: dict[str, Any]

    @classmethod
    def from_value(
        cls, path: str, location: str, value: Any, names: Sequence[str] | None = None
    ) -> Fields:
        """Return the fields of `value`; if `names` is given, they must have exactly these names."""
        if not isinstance(value, dict):
            refuse_header(path, location, "an object", value)
        if names is not None and set(value) != set(names):
            refuse_header(path, location, f"an object of {', '.join(sorted(names))}", sorted(value))
        return cls(path, location, value)

    def part(self, name: str, names: Sequence[str] | None = None) -> Fields:
        """Return a field that is an object."""
        return Fields.from_value(self.path, self._location(name), self.values.get(name), names)

    def parts(self, name: str, names: Sequence[str]) -> list[Fields]:
        """Return a field that is a list of objects."""
        value: Any = self.values.get(name)
        if not isinstance(value, list):
            self.refuse(name, "a list")
        return [Fields.from_value(self.path, self._location(name), entry, names) for entry in value]

    def whole_number(self, name: str, smallest: int = 0, largest: int | None = _LARGEST) -> int:
        """Return a field that is a whole number."""
        value: Any = self.values.get(name)
        if not _is_whole(value) or value < smallest or (largest is not None and value > largest):
            self.refuse(name, f"a whole number from {smallest} on")
        return int(value)

    def size(self, name: str) -> int:
        """Return a field that is the length of an axis."""
        return self.whole_number(name, 1, _LARGEST_SIZE)

    def shape(self, name: str, n_numbers: int | None = None) -> list[int]:
        """Return a field that is the shape of an array, with `n_numbers` entries if given.

        No axis has length 0. If `n_numbers` is None, there is at least one axis.
        """
        value: Any = self.values.get(name)
        smallest = 0 if n_numbers is not None else 1
        if not is_shape(value, smallest):
            self.refuse(name, "a shape")
        if n_numbers is not None and math.prod(value) != n_numbers:
            self.refuse(name, f"a shape of {n_numbers} numbers")
        return list(value)

    def number(self, name: str, smallest: float = -math.inf, largest: float = math.inf) -> float:
        """Return a field that is a number; NaN is allowed only if `smallest` is −inf."""
        value: Any = self.values.get(name)
        is_within = _is_number(value) and smallest <= value <= largest and value < math.inf
        if not _is_number(value) or (smallest > -math.inf and not is_within):
            needed = "a number" if smallest == -math.inf else f"a number from {smallest} on"
            self.refuse(name, needed if largest == math.inf else f"{needed}, up to {largest}")
        return float(value)

    def numbers(self, name: str) -> list[float]:
        """Return a field that is a list of positive numbers."""
        value: Any = self.values.get(name)
        if not isinstance(value, list) or not all(
            _is_number(entry) and 0 < entry < math.inf for entry in value
        ):
            self.refuse(name, "a list of positive numbers")
        return [float(entry) for entry in value]

    def text(self, name: str, choices: Sequence[str] | None = None) -> str:
        """Return a field that is a text; if `choices` is given, it must be one of them."""
        value: Any = self.values.get(name)
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
            self.refuse(name, "a text")
        if choices is not None and value not in choices:
            self.refuse(name, f"one of {', '.join(choices)}")
        return str(value)

    def refuse(self, name: str, needed: str) -> NoReturn:
        """Refuse the file because of one of the fields."""
        refuse_header(self.path, self._location(name), needed, self.values.get(name))

    def _location(self, name: str) -> str:
        return f"{self.location}.{name}"


def refuse_header(path: str, location: str, needed: str, value: Any) -> NoReturn:
    """Refuse a file because of an entry of its header.

    Raises
    ------
    InvalidArgumentError
        Always.
    """
    raise InvalidArgumentError(
        f"{path} cannot be used: {location} in its header must be {needed}; it is "
        f"{reprlib.repr(value)}. The file was changed after it was saved; train and save again."
    )


def is_shape(value: Any, least_axes: int = 0) -> bool:
    """Return whether a JSON value is the shape of an array that is not empty."""
    return (
        isinstance(value, list)
        and least_axes <= len(value) <= _MOST_AXES
        and all(_is_whole(entry) and 1 <= entry <= _LARGEST_SIZE for entry in value)
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    is_finite_whole = _is_whole(value) and abs(value) <= _LARGEST
    return is_finite_whole or isinstance(value, float)


@dataclass(frozen=True)
class NetworkFile:
    """A file whose checksum is right.

    Attributes
    ----------
    path : str
        The path.
    about : dict
        The header. Only its format and its kind have been checked.
    shapes : dict
        Shape and type of each tensor.
    """

    path: str
    about: dict[str, Any]
    shapes: dict[str, tuple[tuple[int, ...], torch.dtype]]

    def fields(self, names: Sequence[str]) -> Fields:
        """Return the header, which must hold these fields."""
        return Fields.from_value(self.path, "header", self.about, ("format", "kind", *names))

    def check_tensor(
        self, name: str, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[torch.dtype]
    ) -> tuple[int, ...]:
        """Return the shape of a tensor; refuse it if it has none of these shapes or types."""
        if name not in self.shapes:
            self.refuse(f"its tensor {name} is missing")
        shape, dtype = self.shapes[name]
        if shape not in shapes or dtype not in dtypes:
            self.refuse(f"its tensor {name} has shape {shape} and type {dtype}")
        return shape

    def probe_shape(
        self, row_shape: Sequence[int], value_shape: Sequence[int], largest: int
    ) -> None:
        """Refuse a file unless it stores 1 to `largest` rows and values of these shapes."""
        allowed = [(n, *row_shape) for n in range(1, largest + 1)]
        n_rows = self.check_tensor("probe.inputs", allowed, tuple(_DTYPES.values()))[0]
        self.check_tensor("probe.values", [(n_rows, *value_shape)], (torch.float64,))

    def tensors(self, may_be_missing: Sequence[str] = ()) -> dict[str, Tensor]:
        """Return the tensors; refuse NaN and infinite numbers, except in `may_be_missing`."""
        with safetensors.safe_open(self.path, "pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in self.shapes}
        for name, tensor in tensors.items():
            if name not in may_be_missing and not torch.isfinite(tensor).all():
                self.refuse(f"its tensor {name} holds NaN or infinite numbers")
        return tensors

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the file.

        Raises
        ------
        InvalidArgumentError
            Always.
        """
        raise InvalidArgumentError(
            f"{self.path} cannot be used: {reason}, which does not fit its header. Train and save "
            "again."
        )


def write_file(
    path: Path | str, kind: str, tensors: Mapping[str, Tensor], about: Mapping[str, Any]
) -> None:
    """Write tensors and a header of JSON to a file of some kind.

    Raises
    ------
    InvalidArgumentTypeError
        If `about` cannot be written as JSON.
    InvalidArgumentError
        If the header is too large to be read again.
    """
    content = {"format": FORMAT, "kind": kind, **about}
    try:
        header = json.dumps(content, default=_plain)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentTypeError(
            f"The network cannot be saved: {error}. Use only numbers, texts and lists in "
            "student_options= (network_options= of a Surrogate), and only numbers and texts as "
            "names of columns."
        ) from error
    contiguous = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
    metadata = {_KEY: header, _CHECKSUM: _NO_CHECKSUM}
    data = bytearray(safetensors.torch.save(contiguous, metadata))
    n_header = int.from_bytes(data[:8], "little")
    if n_header > _MOST_HEADER_BYTES or _n_values(header) > _MOST_VALUES:
        raise InvalidArgumentError(
            f"The options of the network take {n_header} bytes of JSON; at most "
            f"{_MOST_HEADER_BYTES} can be read again."
        )
    start = data.index(_field(_NO_CHECKSUM), 0, 8 + n_header)
    checksum_field = _field(hashlib.sha256(data).hexdigest())
    data[start : start + len(checksum_field)] = checksum_field
    with replaced(path) as part:
        part.write_bytes(data)


def read_file(path: Path | str, kind: str) -> NetworkFile:
    """Read a file that `write_file` wrote.

    Raises
    ------
    InvalidArgumentError
        If the file was not written by this package, has another kind or version, or was changed.
    """
    raw = _header(path, kind)
    entries = _parsed(raw, path, kind)
    metadata = entries.get("__metadata__")
    texts = metadata if isinstance(metadata, dict) else {}
    about = _parsed(texts.get(_KEY), path, kind)
    _check_format(about.get("format"), path, kind)
    _check_checksum(path, raw, texts.get(_CHECKSUM))
    found_kind = about.get("kind")
    if found_kind != kind:
        loader = _LOADERS.get(found_kind if isinstance(found_kind, str) else "")
        remedy = f" Load it by {loader}." if loader else ""
        raise InvalidArgumentError(
            f"{path} is not a file of a trained {kind}, but of a {found_kind!s:.100}.{remedy}"
        )
    return NetworkFile(str(path), about, _shapes(path, kind))


def _header(path: Path | str, kind: str) -> bytes:
    """Return the bytes of the header; refuse files without a header, or with a too long one."""
    with open(path, "rb") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        n_header = int.from_bytes(file.read(8), "little")
        if n_bytes < 8 or n_header > min(n_bytes - 8, _MOST_HEADER_BYTES):
            _refuse_foreign(path, kind)
        return file.read(n_header)


def _parsed(text: Any, path: Path | str, kind: str) -> dict[str, Any]:
    """Return an object of JSON; its size is checked before it is parsed."""
    if not isinstance(text, (str, bytes)) or _n_values(text) > _MOST_VALUES:
        _refuse_foreign(path, kind)
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse_foreign(path, kind, error)
    if not isinstance(parsed, dict):
        _refuse_foreign(path, kind)
    return parsed


def _n_values(text: str | bytes) -> int:
    """Return a bound on how many values a text of JSON holds."""
    if isinstance(text, bytes):
        return sum(text.count(mark) for mark in (b",", b"[", b"{"))
    return sum(text.count(mark) for mark in ",[{")


def _refuse_foreign(path: Path | str, kind: str, cause: Exception | None = None) -> NoReturn:
    raise InvalidArgumentError(
        f"{path} is not a file of a trained {kind}, or it is damaged. Copy the original file "
        "again, or train and save again."
    ) from cause


def _check_format(version: Any, path: Path | str, kind: str) -> None:
    if not isinstance(version, int) or isinstance(version, bool):
        _refuse_foreign(path, kind)
    if version > FORMAT:
        raise InvalidArgumentError(
            f"{path} was written by a newer version (format {version}; this one reads format "
            f"{FORMAT}). Update shapley-ext."
        )
    if version < FORMAT:
        raise InvalidArgumentError(
            f"{path} was written by an older version (format {version}; this one reads format "
            f"{FORMAT}). Train and save again."
        )


def _check_checksum(path: Path | str, header: bytes, checksum: Any) -> None:
    """Refuse a file if any bit of it was changed."""
    if not isinstance(checksum, str) or _checksum(path, header, checksum) != checksum:
        raise InvalidArgumentError(
            f"{path} is damaged: its contents do not have the checksum that was saved with them. "
            "Copy the original file again, or train and save again."
        )


def _checksum(path: Path | str, header: bytes, checksum: str) -> str | None:
    """Return the checksum of the contents, with zeros in place of the stored checksum."""
    if len(checksum) != len(_NO_CHECKSUM) or header.count(_field(checksum)) != 1:
        return None
    hasher = hashlib.sha256()
    with open(path, "rb") as file:
        hasher.update(file.read(8))
        hasher.update(header.replace(_field(checksum), _field(_NO_CHECKSUM)))
        file.seek(8 + len(header))
        while block := file.read(_BLOCK):
            hasher.update(block)
    return hasher.hexdigest()


def _field(checksum: str) -> bytes:
    """Return the bytes of the checksum's field in the header."""
    return f'"{_CHECKSUM}":"{checksum}"'.encode()


def _shapes(path: Path | str, kind: str) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Return shape and type of all tensors, without reading them."""
    try:
        with safetensors.safe_open(str(path), "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {
                name: (tuple(tensor_slice.get_shape()), _DTYPES[tensor_slice.get_dtype()])
                for name, tensor_slice in slices.items()
            }
    except (safetensors.SafetensorError, KeyError) as error:
        _refuse_foreign(path, kind, error)


def _plain(value: Any) -> Any:
    """Return NumPy numbers and arrays as numbers and lists for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
