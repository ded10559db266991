"""Regressions of attributions that the package does not have, to compare its networks with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from coalition_games import FloatArray
from sklearn.ensemble import HistGradientBoostingRegressor
from torch import Tensor, nn

import shap_ext
from shapley_adapters.amortized.embedding_network import EmbeddingNetwork
from shapley_adapters.amortized.unlike_rows import mixed_rows


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


class BoostedLabels:
    """Gradient boosting of the labels, 100 trees for each feature."""

    def __init__(
        self,
        model: Callable[[FloatArray], FloatArray],
        reference: FloatArray,
        inputs: Callable[[FloatArray], npt.NDArray[Any]],
    ) -> None:
        self.model, self.reference, self.inputs = model, reference, inputs
        self.trees: list[HistGradientBoostingRegressor | None] = []

    def fit(self, rows: FloatArray, n_mixed: int) -> None:
        """Fit to labels of rows, and of mixed rows."""
        n_features = rows.shape[1]
        rows = np.concatenate([rows, mixed_rows(rows, np.arange(n_features), n_mixed, 0)])
        oddgp = shap_ext.OddGPExplainer(self.model, self.reference, weights="equal", seed=0)
        labels = oddgp(rows, max_evals=max(64, 8 * n_features), silent=True).values
        inputs = self.inputs(rows)
        for feature, values in enumerate(labels.T):
            is_active = rows[:, feature] != self.reference[0, feature]
            self.trees.append(self._one(inputs[is_active], values[is_active]))

    @staticmethod
    def _one(inputs: FloatArray, values: FloatArray) -> HistGradientBoostingRegressor | None:
        if len(inputs) < 40 or not np.ptp(values):
            return None
        trees = HistGradientBoostingRegressor(
            max_leaf_nodes=15, early_stopping=False, random_state=0
        )
        return trees.fit(inputs, values)

    def predicted(self, rows: FloatArray) -> FloatArray:
        """Return attributions, which do not sum to the model's output."""
        inputs = self.inputs(rows)
        columns = [np.zeros(len(rows)) if t is None else t.predict(inputs) for t in self.trees]
        values: FloatArray = np.stack(columns, axis=1) * (rows != self.reference)
        return values

    def explain(self, rows: FloatArray) -> FloatArray:
        """Return attributions that sum to the model's output."""
        values, is_active = self.predicted(rows), rows != self.reference
        missing = self.model(rows) - self.model(self.reference) - values.sum(axis=1)
        shares: FloatArray = is_active * (missing / is_active.sum(axis=1).clip(1))[:, None]
        return values + shares
