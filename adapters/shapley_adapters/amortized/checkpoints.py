"""What a training is of: its checkpoints say it, and those of another one are refused."""

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
from ..errors import InvalidArgumentError

_KEY = "shapley_ext"

_PARTS = ("best_error", "best_weights", "callbacks", "state_dict")

_UNREADABLE = (
    *(AttributeError, EOFError, IndexError, KeyError),
    *(OSError, RuntimeError, TypeError, ValueError),
    pickle.UnpicklingError,
)
"""What `torch.load` raises for a file that is cut short, or none of its own."""

_ROUNDING = 1e-3
"""Of the largest: by how much numbers of the same model may differ from one run to the next."""


@dataclass(frozen=True)
class Subject:
    """What a training is of.

    Attributes
    ----------
    options : mapping of str to str
        What must be the same.
    digests : mapping of str to str
        The same, of what is too large to be shown: by its `digest`.
    numbers : mapping of str to array
        What must be the same but for rounding: what the model said.
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

    def read(self, path: Path) -> dict[str, Any]:
        """Return a checkpoint of this training; nothing in it is run.

        Raises
        ------
        InvalidArgumentError
            If the file is damaged, no checkpoint of ours, or one of other options, networks, rows
            or models.
        """
        folder = f"folder={str(path.parent)!r}"
        data = io.BytesIO(path.read_bytes())
        try:
            checkpoint: Any = torch.load(data, map_location="cpu", weights_only=True)
        except _UNREADABLE as error:
            raise InvalidArgumentError(
                f"{folder}: {path.name} is damaged, or no checkpoint; it cannot be read. Delete "
                "the file to train from the start, or pass another folder."
            ) from error
        found = checkpoint.get(_KEY) if isinstance(checkpoint, dict) else None
        if not isinstance(found, dict) or not set(_PARTS) <= set(checkpoint):
            raise InvalidArgumentError(
                f"{folder}: {path.name} is no checkpoint of such a training. Pass another folder."
            )
        differing = self._differing(found)
        if differing:
            raise InvalidArgumentError(
                f"{folder} holds checkpoints of another training: {'; '.join(differing)}. To go on "
                "with that one, pass what it was started with; to train anew, pass another folder, "
                "or empty this one."
            )
        made: dict[str, Any] = checkpoint
        return made

    def _differing(self, saved: Mapping[str, Mapping[str, Any]]) -> list[str]:
        options, digests, numbers = (
            saved.get(part, {}) for part in ("options", "digests", "numbers")
        )
        found = [
            f"{name} was {options.get(name, 'not given')} and is {value}"
            for name, value in self.options.items()
            if options.get(name) != value
        ]
        found += [f"{k} differs" for k, value in self.digests.items() if digests.get(k) != value]
        for name, values in self.numbers.items():
            if name not in numbers or not _are_close(numbers[name].numpy(), values):
                found.append(f"what the model said differs: {name}")
        return found


def _are_close(first: ValueArray, second: ValueArray) -> bool:
    if first.shape != second.shape:
        return False
    size = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    return bool(np.abs(first - second).max(initial=0.0) <= _ROUNDING * size)


def digest(*parts: Any) -> str:
    """Return a short digest of arrays, tensors and whatever prints alike."""
    made = hashlib.blake2b(digest_size=6)
    for part in parts:
        if isinstance(part, (np.ndarray, Tensor)):
            array = np.ascontiguousarray(np.asarray(part))
            made.update(f"{array.dtype}{array.shape}".encode())
            made.update(array.data.cast("B") if array.size else b"")
        else:
            made.update(repr(part).encode())
        made.update(b"\0")
    return made.hexdigest()


def network_digest(name: str, options: Mapping[str, Any], network: nn.Module) -> str:
    """Return what tells a network from others: its layers, not its weights, which change."""
    shapes = {place: tuple(value.shape) for place, value in network.state_dict().items()}
    return digest(name, dict(options), str(network), shapes)
