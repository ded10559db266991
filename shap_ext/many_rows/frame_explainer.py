"""An explainer with the options of its call, for batches of a table."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from shapley_adapters.batches.batch_function import (
    BatchAttributions,
    BatchFunction,
    make_batch_function,
)
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.frames import with_floats

from ..inputs.datasets import frame_values


def batch_function(
    explainer: Any,
    example: Any,
    features: Sequence[str] | None,
    keep: Sequence[str],
    prefix: str,
    options: dict[str, Any],
) -> BatchFunction:
    """Return a function from a batch of a table to attributions; see `CoalitionExplainer`."""
    takes_frames = explainer._background_dtypes is not None
    explain = ShapFrameExplainer.from_explainer(explainer, options, takes_frames)
    return make_batch_function(explain, example, features, keep, prefix)


@dataclass(frozen=True)
class ShapFrameExplainer:
    """Explains the rows of frames.

    Attributes
    ----------
    explainer : explainer of shap_ext
        The explainer.
    options : dict
        The arguments of its call.
    takes_frames : bool
        Whether it gets frames, rather than arrays.
    """

    explainer: Any
    options: dict[str, Any]
    takes_frames: bool

    @classmethod
    def from_explainer(
        cls, explainer: Any, options: dict[str, Any], takes_frames: bool
    ) -> ShapFrameExplainer:
        """Return the explainer without its latest estimate and without workers of its own."""
        twin = copy.copy(explainer)
        twin.last_estimate, twin.n_jobs = None, 1
        return cls(twin, options, takes_frames)

    def __call__(self, rows: pd.DataFrame) -> BatchAttributions:
        """Explain the rows of a frame of features."""
        data = rows if self.takes_frames else frame_values(with_floats(rows))
        explanation = self.explainer(data, silent=True, **self.options)
        if isinstance(explanation, list):
            raise InvalidArgumentError(
                "batch_function explains models of one table; this model has several inputs."
            )
        has_own_names = (
            self.explainer.groups is not None or self.explainer.feature_names is not None
        )
        names = explanation.feature_names if has_own_names or self.takes_frames else rows.columns
        return _attributions(explanation, list(map(str, names)))


def _attributions(explanation: Any, players: list[str]) -> BatchAttributions:
    values = np.asarray(explanation.values)
    base_values = np.asarray(explanation.base_values)
    has_outputs = values.ndim == 3
    errors = explanation.error_std
    outputs = explanation.output_names if has_outputs else None
    if has_outputs and outputs is None:
        outputs = range(values.shape[2])
    return BatchAttributions(
        values if has_outputs else values[:, :, None],
        errors if errors is None or has_outputs else np.asarray(errors)[:, :, None],
        base_values if has_outputs else base_values[:, None],
        players,
        None if outputs is None else list(map(str, outputs)),
    )
