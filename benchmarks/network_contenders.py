"""Networks that the package does not have, to compare its students with."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shapley_adapters.amortized.embedding_network import EmbeddingNetwork


class Transformer(nn.Module):
    """Attention over features, as in the FT-Transformer (Gorishniy et al., 2021)."""

    def __init__(self, n_features: int, width: int = 32, n_layers: int = 2) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.empty(n_features, width))
        self.offsets = nn.Parameter(torch.empty(n_features, width))
        nn.init.normal_(self.slopes)
        nn.init.normal_(self.offsets)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return attributions, (B, M, 1), of rows, (B, M)."""
        tokens = nn.functional.elu(x[:, :, None] * self.slopes + self.offsets)
        attributions: Tensor = self.head(self.layers(tokens))
        return attributions


class LittleDecay(EmbeddingNetwork):
    """The network of piecewise-linear functions with the weight decay of other networks."""

    weight_decay = 1e-4
