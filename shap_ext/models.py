"""Models in the forms in which users hand them over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
import shap

from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentTypeError, ModelOutputError


def is_torch_module(model: Any) -> TypeGuard[Any]:
    """Tell whether `model` is a torch module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def inner_model(model: Any) -> Any:
    """Return what `shap.models.Model` wraps, or the model itself."""
    # Its subclasses do more than wrap.
    return model.inner_model if type(model) is shap.models.Model else model


def prediction_function(model: Any) -> Callable[..., Any]:
    """Return the function of the inputs that is to be explained.

    Torch modules run without gradients, on arrays. Of models that are not callable,
    `predict_proba` is explained where they have it, else `predict`.
    """
    model = inner_model(model)
    if is_torch_module(model):
        from shapley_adapters.torch_modules import ArrayModule

        return ArrayModule(model)
    if callable(model):
        return model  # type: ignore[no-any-return]
    for method in ("predict_proba", "predict"):
        if callable(getattr(model, method, None)):
            return getattr(model, method)  # type: ignore[no-any-return]
    raise InvalidArgumentTypeError(
        f"model must be callable, or have predict_proba or predict; got {type(model).__name__}. "
        "Pass the function to explain, such as model.predict."
    )


def as_outputs(output: Any, n_rows: int) -> FloatArray:
    """Return what a model returned as an array, (n_rows, K), outputs of more dimensions flattened.

    Raises
    ------
    ModelOutputError
        If there is not one entry for each row.
    """
    if hasattr(output, "detach"):
        output = output.detach().cpu().numpy()
    if np.iscomplexobj(output):
        raise ModelOutputError("The model must return real numbers; it returned complex ones.")
    try:
        values = np.asarray(output, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelOutputError(
            f"The model must return numbers; it returned {type(output).__name__}. Explain a "
            "function that does, such as predict_proba."
        ) from error
    if values.ndim == 0 or len(values) != n_rows:
        raise ModelOutputError(
            f"The model must return one entry for each of its {n_rows} input rows; its output has "
            f"shape {values.shape}."
        )
    return values.reshape(n_rows, -1)
