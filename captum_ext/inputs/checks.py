"""Checks of captum's arguments, with messages in captum's terms."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.arguments import check_unmasked
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
    "meta": "pass it on a device, with numbers",
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


def no_tensor(name: str, value: object, what: str = "a tensor") -> InvalidArgumentTypeError:
    """Return the error for what is no tensor, where `what` is needed."""
    return InvalidArgumentTypeError(
        f"{name} must be {what}; got {type(value).__name__}. Convert it with torch.as_tensor."
    )


def checked_plain(name: str, tensor: Any, what: str = "a tensor") -> Tensor:
    """Return a tensor without derivatives, if its numbers can be replaced one by one."""
    if not isinstance(tensor, Tensor):
        raise no_tensor(name, tensor, what)
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


def checked_inputs(inputs: object) -> tuple[Tensor, ...]:
    """Return `inputs` as a tuple of tensors of the same, positive number of examples."""
    tensors = []
    for index, part in enumerate(parts_of("inputs", inputs)):
        if part is None:
            raise InvalidArgumentTypeError(
                f"inputs[{index}] is None; a tensor or a tuple of tensors is needed. Leave "
                "it out, and let the function pass it on: forward_func=lambda x: model(x, None)."
            )
        tensor = checked_plain(f"inputs[{index}]", part)
        if tensor.dim() == 0:
            raise InvalidArgumentError(
                f"inputs[{index}] has no dimensions; the first one must count the examples. Use "
                "x[None]."
            )
        tensors.append(tensor)
    lengths = [len(tensor) for tensor in tensors]
    if not lengths or lengths[0] == 0:
        raise InvalidArgumentError("inputs holds no examples; at least one is needed.")
    if len(set(lengths)) > 1:
        raise InvalidArgumentError(
            f"inputs must all have the same number of examples; got {lengths}."
        )
    return tuple(tensors)


def checked_target(target: object, n_examples: int, *, may_be_function: bool = True) -> Any:
    """Return `target` if it has one of captum's forms and fits the number of examples.

    It may also be a function of the outputs. NumPy's whole numbers become ints and its arrays
    become tensors, as captum's selection needs.
    """
    if may_be_function and callable(target) and not isinstance(target, Tensor):
        return target
    for entry in target if isinstance(target, (list, tuple)) else [target]:
        check_unmasked("target", entry)
    target = _without_numpy(target)
    if target is None or (isinstance(target, (int, tuple)) and not isinstance(target, bool)):
        return target
    if isinstance(target, Tensor):
        if target.is_floating_point() or target.dtype == torch.bool:
            raise InvalidArgumentTypeError(
                f"target must hold whole numbers; got {target.dtype}. Use target.long()."
            )
        if target.numel() == 1 or tuple(target.shape) == (n_examples,):
            return target
    elif isinstance(target, list):
        if len(target) == n_examples:
            return target
    else:
        raise InvalidArgumentTypeError(
            "target must be None, an int, a tuple, a list or a tensor of whole numbers"
            f"{', or a function of the outputs' if may_be_function else ''}; got "
            f"{type(target).__name__}."
        )
    raise InvalidArgumentError(
        f"target must have one entry for each of the {n_examples} examples, or be a single "
        f"number; got {tuple(target.shape) if isinstance(target, Tensor) else len(target)}."
    )


def _without_numpy(target: Any) -> Any:
    """Return a target whose NumPy numbers are ints and whose arrays are tensors."""
    if isinstance(target, np.ndarray):
        if target.dtype.kind not in "iu":
            raise InvalidArgumentTypeError(
                f"target must hold whole numbers; got {target.dtype}. Use target.astype(int)."
            )
        return int(target) if target.ndim == 0 else torch.from_numpy(target.astype(np.int64))
    if isinstance(target, list):
        return list(map(_entry_without_numpy, target))
    return target if isinstance(target, Tensor) else _entry_without_numpy(target)


def _entry_without_numpy(entry: Any) -> Any:
    """Return an entry of a list or tuple of targets: an int, or a tuple of ints."""
    if isinstance(entry, tuple):
        return tuple(map(_entry_without_numpy, entry))
    is_flag = isinstance(entry, bool) or getattr(entry, "dtype", None) == torch.bool
    if is_flag or getattr(entry, "ndim", 0):
        return entry
    try:
        return operator.index(entry)
    except TypeError:  # no whole number
        return entry


def takes_nothing(function: Callable[..., Any]) -> bool:
    """Return whether a function has no parameters."""
    try:
        return len(inspect.signature(function).parameters) == 0
    except ValueError:  # builtins have no signature; they do take inputs
        return False


def at_least_half(tensor: Tensor) -> Tensor:
    """Convert floating-point tensors of 8 bits, with which torch cannot compute, to float32."""
    return tensor.float() if tensor.element_size() == 1 else tensor
