"""A network from a masked row to the outputs of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..amortized.explainer_network import are_whole, centre_and_spread
from ..amortized.networks import build
from ..array_types import BoolArray, ValueArray

_ROWS_AT_ONCE = 2**14


class SurrogateNetwork(nn.Module):
    """A network that sees a row with absent places put out, and which places these are.

    Numbers are standardised, and absent ones are 0, their mean. The marks of present places come
    beside them: as more channels of an image, (2 C, H, W), more numbers of each token of a
    sequence of embeddings, (T, 2 D), or a second row, (2, …). Whole numbers that name tokens have
    no marks; absent ones are replaced by `absent`.

    Parameters
    ----------
    network : Module
        From what it sees, (B, …), to raw outputs, (B, K), or (B, n, K), whose mean is taken.
    centre, spread : Tensors
        Mean and size of the numbers of a row; empty where they are whole.
    offset, scale : Tensors, (K,)
        What raw outputs are multiplied by and added to.
    absent : Tensor, scalar
        The whole number that stands for absent ones.
    is_distribution : bool
        Whether outputs are probabilities: their raw forms go through a softmax.
    is_sequence : bool
        Whether rows are sequences, whose places the first axis counts.
    """

    centre: Tensor
    spread: Tensor
    offset: Tensor
    scale: Tensor
    absent: Tensor

    def __init__(
        self,
        network: nn.Module,
        centre: Tensor,
        spread: Tensor,
        offset: Tensor,
        scale: Tensor,
        absent: Tensor,
        is_distribution: bool,
        is_sequence: bool,
    ) -> None:
        super().__init__()
        self.network = network
        for name, value in (("centre", centre), ("spread", spread)):
            self.register_buffer(name, value.float())
        for name, value in (("offset", offset), ("scale", scale)):
            self.register_buffer(name, value.double())
        self.register_buffer("absent", absent)
        self.is_distribution = is_distribution
        self.is_sequence = is_sequence

    @classmethod
    def around(
        cls, make: Any, rows: Any, outputs: ValueArray, absent: int, is_distribution: bool
    ) -> SurrogateNetwork:
        """Return the network that `make` builds for rows, with the sizes of rows and outputs.

        `make` is a module, or a function of the shape of what it sees.
        """
        centre, spread = torch.zeros(0), torch.zeros(0)
        if not are_whole(rows):
            centre, spread = centre_and_spread(rows)
        mean, size = outputs.mean(axis=0), outputs.std(axis=0)
        offset = np.log(np.maximum(mean, 1e-9)) if is_distribution else mean
        scale = np.ones_like(size) if is_distribution else np.where(size > 0, size, 1.0)
        is_sequence = getattr(make, "is_sequence", False)
        made = cls(
            nn.Identity(),
            centre,
            spread,
            torch.as_tensor(offset),
            torch.as_tensor(scale),
            torch.tensor(absent),
            is_distribution,
            is_sequence,
        )
        is_ready = isinstance(make, nn.Module)
        made.network = make if is_ready else make(made.seen_shape(rows.shape[1:]))
        return made

    @property
    def is_of_tokens(self) -> bool:
        """Whether rows are whole numbers that name tokens."""
        return not self.centre.numel()

    def seen(self, x: Tensor, present: Tensor) -> Tensor:
        """Return what the network sees of rows, (B, …), of which places are `present`."""
        if self.is_of_tokens:
            return torch.where(present, x, self.absent.to(x))
        x = torch.where(present, (x.float() - self.centre) / self.spread, 0.0)
        marks = present.to(x)
        if self.is_sequence:
            return torch.cat([x, marks], dim=-1)
        return torch.cat([x, marks], dim=1) if x.dim() == 4 else torch.stack([x, marks], dim=1)

    def seen_shape(self, row_shape: Sequence[int]) -> list[int]:
        """Return the shape of what the network sees of a row."""
        return seen_shape(row_shape, self.is_of_tokens, self.is_sequence)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        """Return outputs, (B, K), or logarithms of probabilities, in double precision."""
        told: Tensor = self.network(self.seen(x, present))
        told = told.mean(dim=1) if told.dim() == 3 else told
        raw = told.double() * self.scale + self.offset
        return torch.log_softmax(raw, dim=1) if self.is_distribution else raw

    def outputs(self, rows: Any, present: BoolArray) -> ValueArray:
        """Return the outputs of rows, (n, K), of which places are present, both (n, …)."""
        parts = [told.numpy() for told in self._told(rows, present)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.scale)))

    def _told(self, rows: Any, present: BoolArray) -> Iterator[Tensor]:
        self.eval()
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            x = torch.as_tensor(np.ascontiguousarray(rows[part]))
            with torch.no_grad():
                told = self(x, torch.as_tensor(present[part]))
            yield told.exp() if self.is_distribution else told


def seen_shape(row_shape: Sequence[int], is_of_tokens: bool, is_sequence: bool) -> list[int]:
    """Return the shape of what a network sees of a row: numbers have marks beside them."""
    shape = list(row_shape)
    if is_of_tokens:
        return shape
    if is_sequence:
        return [*shape[:-1], 2 * shape[-1]]
    return [2 * shape[0], *shape[1:]] if len(shape) == 3 else [2, *shape]


class NamedNetwork:
    """Builds a network of `NETWORKS` for outputs in place of attributions."""

    def __init__(self, name: str, n_outputs: int, options: Mapping[str, Any]) -> None:
        self.name, self.n_outputs, self.options = name, n_outputs, dict(options)

    @property
    def is_sequence(self) -> bool:
        """Whether the network takes sequences."""
        return self.name == "tokens"

    def __call__(self, shape: list[int]) -> nn.Module:
        """Return the network for inputs of a shape."""
        # Token networks say something of each token, of which the mean is taken.
        n_places = shape[0] if self.is_sequence else 1
        return build(self.name, shape, n_places, self.n_outputs, self.options)
