"""What a training is of: its checkpoints say it, and those of another one are refused."""

from __future__ import annotations

import hashlib
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

    def check(self, path: Path) -> None:
        """Refuse a checkpoint of something else, before anything of it is used.

        Raises
        ------
        InvalidArgumentError
            If the checkpoint is none of ours, or of other options, networks, rows or models.
        """
        found = torch.load(path, map_location="cpu", weights_only=True).get(_KEY)
        if found is None:
            raise InvalidArgumentError(
                f"folder={str(path.parent)!r}: {path.name} is no checkpoint of such a training. "
                "Pass another folder."
            )
        differing = self._differing(found)
        if differing:
            raise InvalidArgumentError(
                f"folder={str(path.parent)!r} holds checkpoints of another training: "
                f"{'; '.join(differing)}. To go on with that one, pass what it was started with; "
                "to train anew, pass another folder, or empty this one."
            )

    def _differing(self, saved: Mapping[str, Mapping[str, Any]]) -> list[str]:
        options, digests, numbers = saved["options"], saved["digests"], saved["numbers"]
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
