"""A network from a masked row to the outputs of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..amortized.explainer_network import are_whole, centre_and_spread, tensor_of
from ..amortized.networks import build
from ..array_types import BoolArray, ValueArray

_ROWS_AT_ONCE = 2**14


class SurrogateNetwork(nn.Module):
    """A network from masked rows, with marks of the present entries, to outputs of a model.

    Numbers are standardised, and absent ones are set to 0, the mean. The marks, 1 for present and 0
    for absent entries, are added to the input: as additional channels of an image, (2 C, H, W), as
    additional numbers of each token of a sequence of embeddings, (T, 2 D), or as a second row,
    (2, …). Rows of token ids have no marks; absent tokens are replaced by `absent`.

    Parameters
    ----------
    network : Module
        Maps masked rows with their marks, (B, …), to raw outputs, (B, K), or to (B, n, K), which
        are averaged over n.
    centre, spread : Tensors
        Mean and scale of the numbers of a row; empty for token ids.
    offset, scale : Tensors, (K,)
        Raw outputs are multiplied by `scale`, then `offset` is added.
    absent : Tensor, scalar
        The id that replaces absent tokens.
    is_distribution : bool
        Whether outputs are probabilities: a softmax is applied to the raw outputs.
    is_sequence : bool
        Whether rows are sequences, with tokens along the first axis.
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
        """Return the network that `make` builds for rows, with the scales of rows and outputs.

        `make` is a module, or a function of the shape of its inputs.
        """
        centre, spread = torch.zeros(0), torch.zeros(0)
        if not are_whole(rows):
            centre, spread = centre_and_spread(rows)
        mean, size = outputs.mean(axis=0), outputs.std(axis=0)
        offset = np.log(np.maximum(mean, 1e-9)) if is_distribution else mean
        scale = np.ones_like(size) if is_distribution else np.where(size > 0, size, 1.0)
        is_sequence = getattr(make, "is_sequence", False)
        surrogate = cls(
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
        surrogate.network = make if is_ready else make(surrogate.masked_shape(rows.shape[1:]))
        return surrogate

    @property
    def is_of_tokens(self) -> bool:
        """Whether rows are token ids."""
        return not self.centre.numel()

    def masked_inputs(self, x: Tensor, present: Tensor) -> Tensor:
        """Return the inner network's inputs for rows, (B, …), with the entries `present`."""
        if self.is_of_tokens:
            return torch.where(present, x, self.absent.to(x))
        x = torch.where(present, (x.float() - self.centre) / self.spread, 0.0)
        marks = present.to(x)
        if self.is_sequence:
            return torch.cat([x, marks], dim=-1)
        return torch.cat([x, marks], dim=1) if x.dim() == 4 else torch.stack([x, marks], dim=1)

    def masked_shape(self, row_shape: Sequence[int]) -> list[int]:
        """Return the shape of the inner network's input for a row."""
        return masked_shape(row_shape, self.is_of_tokens, self.is_sequence)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        """Return outputs, (B, K), as logarithms if they are probabilities, in double precision."""
        raw_outputs: Tensor = self.network(self.masked_inputs(x, present))
        raw_outputs = raw_outputs.mean(dim=1) if raw_outputs.dim() == 3 else raw_outputs
        scaled = raw_outputs.double() * self.scale + self.offset
        return torch.log_softmax(scaled, dim=1) if self.is_distribution else scaled

    def outputs(self, rows: Any, present: BoolArray) -> ValueArray:
        """Return the outputs, (n, K), for rows and their present entries, both (n, …)."""
        parts = [batch.numpy() for batch in self._batches(rows, present)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.scale)))

    def _batches(self, rows: Any, present: BoolArray) -> Iterator[Tensor]:
        self.eval()
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            x = tensor_of(rows[part])
            with torch.no_grad():
                batch = self(x, torch.as_tensor(present[part]))
            yield batch.exp() if self.is_distribution else batch


def masked_shape(row_shape: Sequence[int], is_of_tokens: bool, is_sequence: bool) -> list[int]:
    """Return the shape of a row with the marks of its present entries; token ids have none."""
    shape = list(row_shape)
    if is_of_tokens:
        return shape
    if is_sequence:
        return [*shape[:-1], 2 * shape[-1]]
    return [2 * shape[0], *shape[1:]] if len(shape) == 3 else [2, *shape]


class NamedNetwork:
    """Builds a network of `NETWORKS` that returns outputs instead of attributions."""

    def __init__(self, name: str, n_outputs: int, options: Mapping[str, Any]) -> None:
        self.name, self.n_outputs, self.options = name, n_outputs, dict(options)

    @property
    def is_sequence(self) -> bool:
        """Whether the network takes sequences."""
        return self.name == "tokens"

    def __call__(self, shape: list[int]) -> nn.Module:
        """Return the network for inputs of a shape."""
        # Token networks return outputs per token, which are averaged.
        n_tokens = shape[0] if self.is_sequence else 1
        return build(self.name, shape, n_tokens, self.n_outputs, self.options)
