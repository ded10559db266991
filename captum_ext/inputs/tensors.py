"""Tensors that a user passes: what they must be, in the user's words, and as NumPy reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

KNOWN_TO_NUMPY = frozenset(
    [
        *(torch.float64, torch.float32, torch.float16),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    ]
)

_ADVICE = {
    "complex": "split it into real and imaginary parts",
    "quantized": "pass x.dequantize(), and quantize it within forward_func",
    "meta": "which holds no numbers; pass it on a device that does",
}


def parts_of(name: str, argument: Any, n_inputs: int | None = None) -> tuple[Any, ...]:
    """Return the parts of an argument, one for each input.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If it is a list or a dict, which captum takes for no argument with several parts, or if it
        has not as many parts as there are inputs.
    """
    if isinstance(argument, Mapping):
        raise InvalidArgumentTypeError(
            f"{name} must be a tensor or a tuple of tensors; got a {type(argument).__name__}. Pass "
            f"tuple({name}.values()), and a function that makes it anew: forward_func=lambda "
            "*tensors: model(dict(zip(names, tensors))), where names is list(inputs)."
        )
    if isinstance(argument, list):
        has_tensors = any(isinstance(part, Tensor) for part in argument)
        advice = f"tuple({name})" if has_tensors or not argument else f"torch.tensor([{name}])"
        raise InvalidArgumentTypeError(
            f"{name} must be a tensor or a tuple with an entry for each input, {name}[0] and so "
            f"on; got a list. Pass {advice}."
        )
    parts = argument if isinstance(argument, tuple) else (argument,)
    if n_inputs not in (None, len(parts)):
        raise InvalidArgumentError(
            f"{name} must be a tuple of one entry for each of the {n_inputs} inputs; got "
            f"{len(parts)}."
        )
    return parts


def check_tensor(name: str, tensor: object, what: str = "a tensor") -> None:
    """Refuse what is no tensor: `what` is needed."""
    if not isinstance(tensor, Tensor):
        raise InvalidArgumentTypeError(
            f"{name} must be {what}; got {type(tensor).__name__}. Convert it with torch.as_tensor."
        )


def checked_plain(name: str, tensor: Any, what: str = "a tensor") -> Tensor:
    """Return a tensor without derivatives, if its numbers can be replaced one by one."""
    check_tensor(name, tensor, what)
    if kind := special_kind(tensor):
        advice = _ADVICE.get(kind, "pass it dense, and convert it within forward_func")
        raise InvalidArgumentTypeError(f"{name} is a {kind} tensor; {advice}.")
    return tensor.detach().resolve_neg()


def special_kind(tensor: Tensor) -> str:
    """Return in what a tensor differs from a dense one of real numbers; "" if in nothing."""
    if tensor.is_nested:
        return "nested"
    if tensor.layout != torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    kinds = {
        "complex": tensor.is_complex(),
        "quantized": tensor.is_quantized,
        "meta": tensor.is_meta,
    }
    return next((kind for kind, is_so in kinds.items() if is_so), "")


def readable(tensor: Tensor) -> Tensor:
    """Return a tensor that NumPy can read: on the CPU, in float32 for types that NumPy lacks."""
    plain = tensor.detach().cpu().resolve_neg()
    lacks_type = plain.is_floating_point() and plain.dtype not in KNOWN_TO_NUMPY
    return plain.float() if lacks_type else plain


def at_least_half(tensor: Tensor) -> Tensor:
    """Convert floating-point tensors of 8 bits, with which torch cannot compute, to float32."""
    return tensor.float() if tensor.element_size() == 1 else tensor
