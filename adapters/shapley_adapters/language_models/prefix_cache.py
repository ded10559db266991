"""Tokens with which all prompts of a pass begin, read once by a causal language model."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

_FEWEST_TOKENS = 16
"""Fewer tokens than these are read with each prompt: a pass of their own would take as long."""

_MOST_BYTES = 2**30
"""Memory of what is kept for the prompts of one pass; with more, each prompt is read whole."""


@dataclass
class PrefixCache:
    """What a model keeps of the tokens with which many prompts begin.

    Whether a model may go on from what it has kept is decided by its numbers: two prompts are read
    in both ways, and logits that differ by more than rounding rule it out. Nothing is kept from one
    pass to the next, between which the user may change the weights.

    Attributes
    ----------
    model : torch.nn.Module
        The model, which takes `past_key_values`.
    rounding : float
        The relative rounding error of its numbers.
    """

    model: Any
    rounding: float
    _is_right: bool | None = field(default=None, init=False)

    def logits(self, arguments: dict[str, Any], limit: int) -> Tensor:
        """Return the logits of one pass.

        Parameters
        ----------
        arguments : dict
            Those of the model: tokens (P, L) with their mask, padded on the right.
        limit : int
            The first position whose logits are asked for, which is read with each prompt.
        """
        ids = arguments["input_ids"]
        n_shared = min(_n_shared(ids), limit)
        if self._is_right is False or len(ids) == 1 or n_shared < _FEWEST_TOKENS:
            return self._whole(arguments)
        if self._is_right is None:
            first_rows = {**arguments, "input_ids": ids[:2]}
            first_rows["attention_mask"] = arguments["attention_mask"][:2]
            self._is_right = self._goes_on(first_rows, n_shared)
        found = self._continued(arguments, n_shared) if self._is_right else None
        return self._whole(arguments) if found is None else found

    def _goes_on(self, arguments: dict[str, Any], n_shared: int) -> bool | None:
        """Return whether both ways give the same logits; None if that was not tried."""
        found = self._continued(arguments, n_shared)
        if found is None:
            return None
        whole = self._whole(arguments)
        n_common = min(whole.shape[1], found.shape[1])
        is_read = arguments["attention_mask"][:, -n_common:, None].bool()
        differences = (whole[:, -n_common:] - found[:, -n_common:]).abs() * is_read
        return bool(differences.max() <= self.rounding**0.5 * whole.abs().max())

    def _whole(self, arguments: dict[str, Any]) -> Tensor:
        logits: Tensor = self.model(**arguments).logits
        return logits

    def _continued(self, arguments: dict[str, Any], n_shared: int) -> Tensor | None:
        """Return the logits behind the shared tokens; None where the model keeps too much."""
        ids = arguments["input_ids"]
        kept = self.model(input_ids=ids[:1, :n_shared], use_cache=True).past_key_values
        if not hasattr(kept, "batch_repeat_interleave"):
            return None
        if _n_bytes(kept) * len(ids) * ids.shape[1] / n_shared > _MOST_BYTES:
            return None
        rest = {**arguments, "input_ids": ids[:, n_shared:], "use_cache": True}
        logits: Tensor = self.model(**rest, past_key_values=_repeated(kept, len(ids))).logits
        return logits


def _n_shared(ids: Tensor) -> int:
    """Return with how many equal tokens all rows begin."""
    differs = (ids != ids[:1]).any(dim=0)
    return int(differs.int().argmax()) if bool(differs.any()) else ids.shape[1]


def _repeated(kept: Any, count: int) -> Any:
    """Return a copy for `count` prompts, to which the model may add."""
    twin = copy.deepcopy(kept)
    twin.batch_repeat_interleave(count)
    return twin


def _n_bytes(kept: Any) -> int:
    """Return the memory that tensors of a cache take."""
    if isinstance(kept, Tensor):
        return kept.nbytes
    if isinstance(kept, (tuple, list)):
        return sum(map(_n_bytes, kept))
    return sum(map(_n_bytes, vars(kept).values())) if hasattr(kept, "__dict__") else 0
