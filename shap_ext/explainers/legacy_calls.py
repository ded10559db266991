"""The older calls of shap's explainers: `shap_values` and `expected_value`."""

from __future__ import annotations

from typing import Any

import numpy as np

from shapley_adapters.arguments import checked_flag, count_or_auto
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import (
    AdditivityError,
    InvalidArgumentError,
    NoExpectedValueError,
    row_number,
)

from ..argument_types import Rows

_ROUNDING = 1e-6
"""Relative tolerance of sums, because models in single precision round."""


def shap_values(
    explainer: Any,
    X: Rows,
    nsamples: int | str,
    max_evals: int | str | None,
    silent: bool,
    check_additivity: bool,
    l1_reg: object,
    gc_collect: bool,
) -> Any:
    """Return the attributions alone, as shap's KernelExplainer does; see `ModelExplainer`."""
    if l1_reg not in (None, "auto", False, 0):
        raise InvalidArgumentError(
            f"l1_reg={l1_reg!r} selects features by lasso, which these estimators do not do: "
            "they estimate all features. Leave out l1_reg."
        )
    if checked_flag("gc_collect", gc_collect):
        raise InvalidArgumentError(
            "gc_collect=True has no effect here: rows are evaluated together, in batches of "
            "bounded memory. Leave it out; for smaller batches call the explainer itself with "
            "batch_size=."
        )
    if max_evals is not None and nsamples != "auto":
        raise InvalidArgumentError(
            f"nsamples={nsamples!r} and max_evals={max_evals!r} are two budgets; pass one."
        )
    n_inner = count_or_auto("nsamples", nsamples)
    budget: int | str = "auto" if max_evals is None else max_evals
    if n_inner is not None:
        budget = n_inner + 2  # the empty coalition and that of all features
    try:
        explained = explainer(X, max_evals=budget, silent=silent, check_additivity=check_additivity)
    except InvalidArgumentError as error:
        if n_inner is None or not str(error).startswith("max_evals="):
            raise
        raise type(error)(f"nsamples={nsamples} means max_evals={budget}: {error}") from error
    if isinstance(explained, list):
        return [part.values for part in explained]
    return explained.values


def shared_value(values: FloatArray | None) -> FloatArray | None:
    """Return the row that all rows of (R, K) are equal to, (K,), or None if they differ."""
    if values is None or not len(values) or not (values == values[0]).all():
        return None
    return values[0]


def no_expected_value(reason: str) -> NoExpectedValueError:
    """Return the error for a missing expected value, with the reason and a remedy."""
    return NoExpectedValueError(
        f"expected_value is not known: {reason} The base_values of an explanation hold it for "
        "each row."
    )


def check_sums(values: FloatArray, empty: FloatArray, grand: FloatArray, name: str) -> None:
    """Refuse attributions, (R, M, K), that do not sum from the empty to the grand value, (R, K).

    Raises
    ------
    AdditivityError
        With the row that is furthest off.
    """
    sums = empty + values.sum(axis=1)
    scale = np.abs(values).sum(axis=1) + np.abs(empty) + np.abs(grand)
    excess = np.abs(sums - grand) - _ROUNDING * scale
    row, output = np.unravel_index(np.argmax(excess), excess.shape)
    if excess[row, output] > 0:
        raise AdditivityError(
            f"check_additivity=True: the attributions and base value of row {row_number(row)}, "
            f"output {output}, sum to {sums[row, output]:.6g}, but the model's output is "
            f"{grand[row, output]:.6g}. The method {name!r} does not hold this sum with these "
            "options. Pass efficient=True where the explainer has this option, choose another "
            "algorithm such as 'oddgp', or leave out check_additivity."
        )


def dict_of_row(answer: Any) -> dict[str, Any]:
    """Return the explanations of one row as the dict of shap's `explain_row`."""
    parts = answer if isinstance(answer, list) else [answer]
    n_output_axes = np.ndim(parts[0].base_values) - 1
    shapes = [part.values.shape[1 : part.values.ndim - n_output_axes] for part in parts]
    flat = [
        part.values[0].reshape(int(np.prod(shape)), *part.values.shape[1 + len(shape) :])
        for part, shape in zip(parts, shapes, strict=True)
    ]
    base = parts[0].base_values[0]
    return {
        "values": np.concatenate(flat),
        "expected_values": base,
        "mask_shapes": shapes,
        "main_effects": None,
        "clustering": None if parts[0].clustering is None else parts[0].clustering[0],
        "error_std": None if parts[0].error_std is None else parts[0].error_std[0],
        "output_names": parts[0].output_names,
        "output_indices": np.arange(len(base)) if np.ndim(base) else None,
    }
