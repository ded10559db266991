"""Dense layers, which several networks have."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from torch import nn

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"elu": nn.ELU, "relu": nn.ReLU}
"""The functions between layers, by their names."""


def dense_layers(sizes: Sequence[int], n_outputs: int, activation: str = "elu") -> list[nn.Module]:
    """Return linear layers from `sizes[0]` inputs to `n_outputs`, with functions between them.

    `sizes` are the number of inputs and the sizes of the hidden layers.
    """
    hidden = [
        layer
        for first, second in itertools.pairwise(sizes)
        for layer in (nn.Linear(first, second), ACTIVATIONS[activation]())
    ]
    return [*hidden, nn.Linear(sizes[-1], n_outputs)]
