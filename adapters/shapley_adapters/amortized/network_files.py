"""Files of trained networks: tensors as safetensors, all else as JSON in the header, a checksum.

Reading runs no code. The header is bounded and checked, and the checksum compared, before any
tensor is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from .header_fields import Fields

FORMAT = 2

_MOST_HEADER_BYTES = 2**23
_MOST_VALUES = 500_000
"""Bounds of the header, by which no file can take much memory."""

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
class NetworkFile:
    """A file whose checksum is right.

    Attributes
    ----------
    path : str
        Where it is.
    about : dict
        Its header, of which only the format and the kind have been checked.
    shapes : dict
        Shape and type of each tensor.
    """

    path: str
    about: dict[str, Any]
    shapes: dict[str, tuple[tuple[int, ...], torch.dtype]]

    def fields(self, names: Sequence[str]) -> Fields:
        """Return the header, which must hold these fields."""
        return Fields.of(self.path, "header", self.about, ("format", "kind", *names))

    def check_tensor(
        self, name: str, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[torch.dtype]
    ) -> tuple[int, ...]:
        """Refuse a tensor that has none of these shapes or types; returns its shape."""
        if name not in self.shapes:
            self.refuse(f"its tensor {name} is missing")
        shape, dtype = self.shapes[name]
        if shape not in shapes or dtype not in dtypes:
            self.refuse(f"its tensor {name} has shape {shape} and type {dtype}")
        return shape

    def probe_shape(self, row_shape: Sequence[int], value_shape: Sequence[int], most: int) -> None:
        """Refuse a file whose kept rows do not have these shapes; there are 1 to `most` rows."""
        allowed = [(n, *row_shape) for n in range(1, most + 1)]
        n_rows = self.check_tensor("probe.inputs", allowed, tuple(_DTYPES.values()))[0]
        self.check_tensor("probe.values", [(n_rows, *value_shape)], (torch.float64,))

    def tensors(self, may_be_missing: Sequence[str] = ()) -> dict[str, Tensor]:
        """Return the tensors; refuses numbers that are not finite, but for those that may be."""
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
    """Write tensors, and what can be said of them in JSON, to a file of some kind.

    Raises
    ------
    InvalidArgumentTypeError
        If something of `about` cannot be written as JSON.
    InvalidArgumentError
        If the header is too large to be read again.
    """
    whole = {"format": FORMAT, "kind": kind, **about}
    try:
        header = json.dumps(whole, default=_plain)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentTypeError(
            f"The network cannot be saved: {error}. Pass numbers, texts and lists as "
            "network_options=, and tables whose columns have such names."
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
    made = _field(hashlib.sha256(data).hexdigest())
    data[start : start + len(made)] = made
    Path(path).write_bytes(data)


def read_file(path: Path | str, kind: str) -> NetworkFile:
    """Return what `write_file` wrote.

    Raises
    ------
    InvalidArgumentError
        If the file is none of ours, of another kind or version, or was changed.
    """
    raw = _header(path, kind)
    entries = _parsed(raw, path, kind)
    metadata = entries.get("__metadata__")
    texts = metadata if isinstance(metadata, dict) else {}
    about = _parsed(texts.get(_KEY), path, kind)
    _check_format(about.get("format"), path, kind)
    _check_checksum(path, raw, texts.get(_CHECKSUM))
    found = about.get("kind")
    if found != kind:
        loader = _LOADERS.get(found if isinstance(found, str) else "")
        remedy = f" Load it by {loader}." if loader else ""
        raise InvalidArgumentError(
            f"{path} is not a file of a trained {kind}, but of a {found!s:.100}.{remedy}"
        )
    return NetworkFile(str(path), about, _shapes(path, kind))


def _header(path: Path | str, kind: str) -> bytes:
    """Return the bytes of the header, if it is there and not too long."""
    with open(path, "rb") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        n_header = int.from_bytes(file.read(8), "little")
        if n_bytes < 8 or n_header > min(n_bytes - 8, _MOST_HEADER_BYTES):
            _refuse_foreign(path, kind)
        return file.read(n_header)


def _parsed(text: Any, path: Path | str, kind: str) -> dict[str, Any]:
    """Return an object of JSON, whose size is looked at before it is parsed."""
    if not isinstance(text, (str, bytes)) or _n_values(text) > _MOST_VALUES:
        _refuse_foreign(path, kind)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse_foreign(path, kind, error)
    if not isinstance(found, dict):
        _refuse_foreign(path, kind)
    return found


def _n_values(text: str | bytes) -> int:
    """Return a bound on how many values a text of JSON holds."""
    if isinstance(text, bytes):
        return sum(text.count(mark) for mark in (b",", b"[", b"{"))
    return sum(text.count(mark) for mark in ",[{")


def _refuse_foreign(path: Path | str, kind: str, cause: Exception | None = None) -> NoReturn:
    raise InvalidArgumentError(
        f"{path} is not a file of a trained {kind}, or it is damaged. Copy it again from where it "
        "is whole, or train and save again."
    ) from cause


def _check_format(found: Any, path: Path | str, kind: str) -> None:
    if not isinstance(found, int) or isinstance(found, bool):
        _refuse_foreign(path, kind)
    if found > FORMAT:
        raise InvalidArgumentError(
            f"{path} was written by a newer version (format {found}; this one reads format "
            f"{FORMAT}). Update shapley-ext."
        )
    if found < FORMAT:
        raise InvalidArgumentError(
            f"{path} was written by an older version (format {found}; this one reads format "
            f"{FORMAT}), without a checksum. Train and save again."
        )


def _check_checksum(path: Path | str, header: bytes, found: Any) -> None:
    """Refuse a file of which any bit is not as it was written."""
    if not isinstance(found, str) or _checksum(path, header, found) != found:
        raise InvalidArgumentError(
            f"{path} is damaged: its contents do not have the checksum that was saved with them. "
            "Copy it again from where it is whole, or train and save again."
        )


def _checksum(path: Path | str, header: bytes, found: str) -> str | None:
    """Return the checksum of the contents, in which that of the file itself counts as zeros."""
    if len(found) != len(_NO_CHECKSUM) or header.count(_field(found)) != 1:
        return None
    made = hashlib.sha256()
    with open(path, "rb") as file:
        made.update(file.read(8))
        made.update(header.replace(_field(found), _field(_NO_CHECKSUM)))
        file.seek(8 + len(header))
        while block := file.read(_BLOCK):
            made.update(block)
    return made.hexdigest()


def _field(checksum: str) -> bytes:
    """Return how the checksum stands in the header."""
    return f'"{_CHECKSUM}":"{checksum}"'.encode()


def _shapes(path: Path | str, kind: str) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Return shape and type of all tensors, without reading them."""
    try:
        with safetensors.safe_open(str(path), "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {
                name: (tuple(one.get_shape()), _DTYPES[one.get_dtype()])
                for name, one in slices.items()
            }
    except (safetensors.SafetensorError, KeyError) as error:
        _refuse_foreign(path, kind, error)


def _plain(value: Any) -> Any:
    """Return numbers and arrays of NumPy as JSON has them."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
