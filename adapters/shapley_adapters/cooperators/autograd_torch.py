"""Derivatives of models that may not support them. Needs torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from ..errors import DerivativeError, ShapleyExtError
from ..games.evaluation import ran_out_of_memory

_Result = TypeVar("_Result")

_HINTS = {
    "scaled_dot_product": (
        "Fused attention is differentiable only once; call the model inside "
        "torch.nn.attention.sdpa_kernel(SDPBackend.MATH) to use another implementation."
    ),
    "inference tensors": "The model was built or loaded under torch.inference_mode.",
    "use_reentrant": "Checkpoint with use_reentrant=False.",
}


@contextmanager
def derivatives_allowed() -> Iterator[None]:
    """Enable derivatives even if the caller has disabled them."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def attempted() -> Iterator[None]:
    """Convert any error of the model during differentiation to a DerivativeError.

    Models may raise any error if their input requires a gradient. An error with another cause
    occurs again when coalitions are evaluated. Errors of memory are raised unchanged, because
    smaller batches may avoid them.
    """
    try:
        yield
    except ShapleyExtError:
        raise
    except Exception as error:
        if ran_out_of_memory(error):
            raise
        raise DerivativeError(
            f"The derivatives of the model cannot be taken ({type(error).__name__}: "
            f"{_brief(error)})."
        ) from error


def with_or_without_cudnn(call: Callable[[], _Result]) -> _Result:
    """Return `call()`; repeat it without cuDNN if cuDNN's recurrent layers refuse a derivative.

    These layers have derivatives in training mode only, and no second derivatives. PyTorch's own
    recurrent layers have both.
    """
    try:
        return call()
    except DerivativeError as error:
        text = str(error).lower()
        if "cudnn" not in text or "rnn" not in text or not torch.backends.cudnn.enabled:
            raise
    torch.backends.cudnn.enabled = False
    try:
        return call()
    finally:
        torch.backends.cudnn.enabled = True


def holds_custom_functions(outputs: torch.Tensor) -> bool:
    """Return whether `outputs` depend on a `torch.autograd.Function` written in Python.

    The derivative of such a function may not be differentiable again, and PyTorch raises no error.
    """
    visited, waiting = set(), [outputs.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in visited:
            continue
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return True
        visited.add(node)
        waiting += [following for following, _ in node.next_functions]
    return False


def _brief(error: Exception) -> str:
    """Return the first line of an error, and a hint if its cause is known."""
    text = str(error)
    first = text.strip().partition("\n")[0].rstrip(".")
    hints = [hint for part, hint in _HINTS.items() if part in text.lower()]
    return ". ".join([first, *(hint.rstrip(".") for hint in hints)])
