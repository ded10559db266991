"""Taking derivatives of models that may not want to be differentiated. Needs torch."""

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
        "Fused attention is differentiable only once; torch.nn.attention.sdpa_kernel("
        "SDPBackend.MATH) around the call takes another form of it."
    ),
    "inference tensors": "The model was built or loaded under torch.inference_mode.",
    "use_reentrant": "Checkpoint with use_reentrant=False.",
}


@contextmanager
def derivatives_allowed() -> Iterator[None]:
    """Take derivatives even where the caller has switched them off."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def attempted() -> Iterator[None]:
    """Say that no derivative can be taken, whatever the model does when one is tried.

    Models fail in all ways when their input carries a gradient. A fault that has nothing to do
    with it comes up again in evaluation. Lack of memory is passed on, to be met by smaller batches.
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
    """Call `call`, without cuDNN where its recurrent layers are what refuses a derivative.

    They differentiate in training mode only, and never twice; PyTorch's own always do.
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
    """Tell whether `outputs` came through a `torch.autograd.Function` written in Python.

    The derivative of such a function may itself be without one, and nothing says so.
    """
    seen, left = set(), [outputs.grad_fn]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return True
        seen.add(node)
        left += [following for following, _ in node.next_functions]
    return False


def _brief(error: Exception) -> str:
    """Return what an error says first, and what follows from it."""
    text = str(error)
    first = text.strip().partition("\n")[0].rstrip(".")
    hints = [hint for part, hint in _HINTS.items() if part in text.lower()]
    return ". ".join([first, *(hint.rstrip(".") for hint in hints)])
