"""Dense layers, which several networks have."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from torch import nn


def dense_layers(sizes: Sequence[int], n_outputs: int) -> list[nn.Module]:
    """Return linear layers from `sizes[0]` inputs to `n_outputs`, with ELU after each but the last.

    `sizes` are the number of inputs and the sizes of the hidden layers.
    """
    hidden = [
        layer
        for first, second in itertools.pairwise(sizes)
        for layer in (nn.Linear(first, second), nn.ELU())
    ]
    return [*hidden, nn.Linear(sizes[-1], n_outputs)]
