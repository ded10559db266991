"""shap's exact explainers of trees and linear models, where they answer the same question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import shap

from shapley_adapters import Estimate
from shapley_adapters.array_types import FloatArray
from shapley_adapters.pipeline.result import blank_estimate

_ROUNDING = 1e-4
"""Largest difference between a model's output and the sum of its attributions, relative to the
outputs: trees of some libraries compute in single precision."""


@dataclass(frozen=True)
class NativeExplainer:
    """What shap explains by default where a model is an object whose structure it knows.

    Attributes
    ----------
    explainer : shap.TreeExplainer or shap.LinearExplainer
        The explainer, with the same background.
    """

    explainer: Any

    @property
    def name(self) -> str:
        """The name of the explainer in shap."""
        return type(self.explainer).__name__

    def outputs(self, rows: Any) -> FloatArray:
        """Return the raw outputs that are explained.

        They are margins or log-odds of boosted trees and linear classifiers, probabilities of
        random forests, and predictions of regressors.
        """
        if self._is_tree:
            return np.asarray(self.explainer.model.predict(rows), dtype=np.float64)
        coefficients = np.asarray(self.explainer.coef)
        outputs: FloatArray = np.asarray(rows) @ coefficients.T + self.explainer.intercept
        return outputs

    @property
    def _is_tree(self) -> bool:
        return isinstance(self.explainer, shap.TreeExplainer)

    def estimate(self, rows: Any, seed: int) -> Estimate | None:
        """Return the exact attributions of rows, or None if they do not sum to the outputs."""
        options = {"check_additivity": False} if self._is_tree else {}
        explained = self.explainer(rows, **options)
        values = np.asarray(explained.values, dtype=np.float64)
        values = values[:, :, None] if values.ndim == 2 else values
        n_rows, n_players, n_outputs = values.shape
        base = np.asarray(explained.base_values, dtype=np.float64).reshape(n_rows, -1)
        ends = np.stack([np.broadcast_to(base, (n_rows, n_outputs))] * 2, axis=1)
        ends[:, 1] += values.sum(axis=1)
        outputs = self.outputs(rows).reshape(n_rows, -1)
        largest = max(1.0, np.abs(outputs).max(initial=0.0))
        if (
            outputs.shape != (n_rows, n_outputs)
            or not np.abs(ends[:, 1] - outputs).max(initial=0.0) <= _ROUNDING * largest
        ):
            return None
        result = blank_estimate(ends, n_players, seed, self.name)
        result.values[:] = values
        result.enumerated[:] = True
        result.evaluations[:] = 0
        return replace(result, choice=f"{self.name}: exact values from the structure of the model")


def native_explainer(model: Any, masker: Any) -> NativeExplainer | None:
    """Return what shap explains by default for a model object; None for models of other kinds.

    The masker must be a plain background.
    """
    if type(masker) is not shap.maskers.Independent or not hasattr(masker, "data"):
        return None
    for kind in (shap.LinearExplainer, shap.TreeExplainer):
        if not kind.supports_model_with_masker(model, masker):
            continue
        try:
            native = NativeExplainer(kind(model, masker))
            native.estimate(masker.data[:1], seed=0)
        except Exception:  # of any kind: then shap has no answer for this model and background
            return None
        return native
    return None
