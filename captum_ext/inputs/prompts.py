"""Prompts of language models with parts to explain."""

from __future__ import annotations

from typing import Any

import captum.attr
import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError


def check_prompt(inp: Any, kinds: tuple[Any, ...]) -> None:
    """Refuse what is no prompt of one of captum's kinds, or has no parts to tell apart.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If it cannot be explained.
    """
    if not isinstance(inp, kinds):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise InvalidArgumentTypeError(f"inp must be one of {names}; got {type(inp).__name__}.")
    n_least = 2 if isinstance(inp, captum.attr.TextTokenInput) else 1
    if inp.n_itp_features < n_least:
        raise InvalidArgumentError(
            f"inp has {inp.n_itp_features} parts to explain and needs {n_least}: the attribution "
            "of a single token is the difference that its absence makes. Pass a longer text."
        )
    for index, mask in enumerate(getattr(inp, "mask_list", None) or ()):
        if not mask.any():
            raise InvalidArgumentError(f"inp.mask_list[{index}] has no pixels. Leave it out.")


def players_of_parts(inp: Any, feature_mask: Tensor | None) -> IntArray:
    """Return the player of each text that captum shows for a prompt, (N,)."""
    players = np.arange(inp.n_itp_features)
    if feature_mask is not None:
        ids = feature_mask.reshape(-1).cpu().numpy()
        players = np.unique(ids, return_inverse=True)[1].reshape(-1)
    of_texts = inp.format_attr(torch.from_numpy(players)[None])  # slots of a template in groups
    return np.asarray(of_texts[0].numpy(), dtype=np.intp)
