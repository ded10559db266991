"""Pipelines of transformers: what can be known to go wrong before they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import shap

from shapley_adapters.errors import InvalidArgumentError, row_number, warn_user

from .masked_rows import MaskedRow


def check_pipeline(model: object, rows: Sequence[MaskedRow]) -> None:
    """Refuse texts that are too long for a pipeline of transformers; warn if it leaves labels out.

    Raises
    ------
    InvalidArgumentError
        If a text, or the text without any of its players, has more tokens than the model reads.
    """
    if not isinstance(model, shap.models.TransformersPipeline):
        return
    pipeline = model.inner_model
    _warn_of_missing_labels(pipeline)
    n_positions = _n_positions(pipeline.model)
    if n_positions is None or getattr(pipeline, "_preprocess_params", {}).get("truncation"):
        return
    for index, row in enumerate(rows):
        for is_present in (True, False):
            (text, *_), *_ = row(np.full(row.n_entries, is_present))
            n_tokens = len(pipeline.tokenizer(str(text))["input_ids"])
            if n_tokens > n_positions:
                raise InvalidArgumentError(
                    f"X, row {row_number(index)}: the {'text' if is_present else 'masked text'} "
                    f"has {n_tokens} tokens; the model reads {n_positions}. Shorten it, "
                    f"{'' if is_present else 'mask by collapse_mask_token=True, '}"
                    "or build the pipeline with truncation=True, which ignores what is behind them."
                )


def _n_positions(network: Any) -> int | None:
    """Return how many tokens fit the table of positions of a network; None if it has none.

    Networks with relative or rotary positions read longer texts, whatever their configuration says.
    """
    modules = network.named_modules() if hasattr(network, "named_modules") else ()
    tables = [
        module
        for name, module in modules
        if name.endswith(("position_embeddings", "embed_positions", "wpe"))
        and hasattr(module, "weight")
    ]
    counts = []
    for table in tables:
        padding = getattr(table, "padding_idx", None)  # positions begin behind it, as in RoBERTa
        first = getattr(table, "offset", 0 if padding is None else padding + 1)
        counts.append(len(table.weight) - first)
    return min(counts, default=None)


def _warn_of_missing_labels(pipeline: Any) -> None:
    """Warn if scores of all but the most likely labels are left out, for which shap writes 0."""
    if getattr(pipeline, "task", "") != "text-classification":
        return
    n_labels = len(pipeline.model.config.id2label)
    n_returned = getattr(pipeline, "_postprocess_params", {}).get("top_k", 1)
    if n_returned is not None and n_returned < n_labels:
        warn_user(
            f"The pipeline returns {n_returned} of its {n_labels} labels, and the scores of the "
            'others are 0 for shap. Build it with pipeline("text-classification", ..., '
            "top_k=None)."
        )
