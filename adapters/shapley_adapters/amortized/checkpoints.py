"""Fingerprints of trainings, stored in checkpoints: those of another training are refused."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..array_types import ValueArray
from ..atomic_files import replaced
from ..errors import InvalidArgumentError

_KEY = "shapley_ext"

_MARK = b"shapley_ext sha256 "
"""Precedes the checksum at the end of a checkpoint, which torch ignores when it reads the file."""

_PARTS = ("best_error", "best_weights", "callbacks", "state_dict")

_UNREADABLE = (
    *(AttributeError, EOFError, IndexError, KeyError),
    *(OSError, RuntimeError, TypeError, ValueError),
    pickle.UnpicklingError,
)
"""Errors that `torch.load` raises for a truncated file or one that is not a checkpoint."""

_ROUNDING = 1e-3
"""Largest difference between two runs of the same model, relative to its largest output."""


@dataclass(frozen=True)
class TrainingFingerprint:
    """The options, data and model outputs of a training, by which it is recognised.

    Attributes
    ----------
    options : mapping of str to str
        Options, which must be equal.
    digests : mapping of str to str
        Digests of the network and of the data, which must be equal.
    numbers : mapping of str to array
        Outputs of the model, which must be equal up to rounding.
    """

    options: Mapping[str, str]
    digests: Mapping[str, str]
    numbers: Mapping[str, ValueArray]

    def write(self, checkpoint: dict[str, Any]) -> None:
        """Add this to a checkpoint."""
        numbers = {name: torch.as_tensor(values) for name, values in self.numbers.items()}
        checkpoint[_KEY] = {
            "options": dict(self.options),
            "digests": dict(self.digests),
            "numbers": numbers,
        }

    def read_checkpoint(self, path: Path) -> dict[str, Any]:
        """Return a checkpoint of this training; no code in the file is run.

        Raises
        ------
        InvalidArgumentError
            If the file is damaged, not one of our checkpoints, or one with other options, another
            network, other rows or another model.
        """
        folder = f"folder={str(path.parent)!r}"
        try:
            data = _content(path.read_bytes())
            checkpoint: Any = torch.load(data, map_location="cpu", weights_only=True)
        except _UNREADABLE as error:
            raise InvalidArgumentError(
                f"{folder}: {path.name} is damaged, no checkpoint, or one of an older version; it "
                "cannot be read. Delete the file to train from the start, or pass another folder."
            ) from error
        fingerprint = checkpoint.get(_KEY) if isinstance(checkpoint, dict) else None
        if not isinstance(fingerprint, dict) or not set(_PARTS) <= set(checkpoint):
            raise InvalidArgumentError(
                f"{folder}: {path.name} is not a checkpoint of such a training. Pass another "
                "folder."
            )
        differing = self._differing(fingerprint)
        if differing:
            raise InvalidArgumentError(
                f"{folder} holds checkpoints of another training: {'; '.join(differing)}. To "
                "continue that training, pass its arguments. To start a new one, pass another "
                "folder, or empty this one."
            )
        checked_checkpoint: dict[str, Any] = checkpoint
        return checked_checkpoint

    def _differing(self, saved: Mapping[str, Mapping[str, Any]]) -> list[str]:
        options, digests, numbers = (
            saved.get(part, {}) for part in ("options", "digests", "numbers")
        )
        differences = [
            f"{name} was {options.get(name, 'not given')} and is {value}"
            for name, value in self.options.items()
            if options.get(name) != value
        ]
        differences += [
            f"{k} differs" for k, value in self.digests.items() if digests.get(k) != value
        ]
        for name, values in self.numbers.items():
            if name not in numbers or not are_close(numbers[name].numpy(), values):
                differences.append(f"the model's outputs differ: {name}")
        return differences


def sign_checkpoint(part: Path, path: Path) -> None:
    """Replace the file at `path` by the checkpoint in `part` and its checksum, in one step."""
    data = part.read_bytes()
    with replaced(path) as signed:
        signed.write_bytes(data + _MARK + hashlib.sha256(data).hexdigest().encode())
    part.unlink()


def _content(data: bytes) -> io.BytesIO:
    """Return the bytes before the checksum.

    Raises
    ------
    ValueError
        If the checksum is missing or another one.
    """
    content, mark, checksum = data.rpartition(_MARK)
    if not mark or hashlib.sha256(content).hexdigest().encode() != checksum:
        raise ValueError("the checksum at the end of the file is missing, or that of other bytes")
    return io.BytesIO(content)


def are_close(first: ValueArray, second: ValueArray) -> bool:
    """Return whether outputs of the model are equal up to rounding."""
    if first.shape != second.shape:
        return False
    size = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    return bool(np.abs(first - second).max(initial=0.0) <= _ROUNDING * size)


def digest(*parts: Any) -> str:
    """Return a short digest of arrays, tensors, and other objects by their `repr`."""
    hasher = hashlib.blake2b(digest_size=6)
    for part in parts:
        if isinstance(part, (np.ndarray, Tensor)):
            array = np.ascontiguousarray(np.asarray(part))
            hasher.update(f"{array.dtype}{array.shape}".encode())
            hasher.update(array.data.cast("B") if array.size else b"")
        else:
            hasher.update(repr(part).encode())
        hasher.update(b"\0")
    return hasher.hexdigest()


def network_digest(name: str, options: Mapping[str, Any], network: nn.Module) -> str:
    """Return a digest of a network's layers, without the weights, which training changes."""
    shapes = {layer: tuple(value.shape) for layer, value in network.state_dict().items()}
    return digest(name, dict(options), str(network), shapes)
