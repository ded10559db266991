"""Checks of captum's arguments, in captum's words."""

from __future__ import annotations

import numbers
from typing import Any

import torch
from torch import Tensor

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError


def checked_inputs(inputs: Any) -> tuple[Tensor, ...]:
    """Return `inputs` as a tuple of tensors of the same, positive number of examples."""
    tensors = inputs if isinstance(inputs, tuple) else (inputs,)
    for index, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise InvalidArgumentTypeError(
                f"inputs must be a tensor or a tuple of tensors; inputs[{index}] is "
                f"{type(tensor).__name__}. Convert it with torch.as_tensor."
            )
        if tensor.dim() == 0:
            raise InvalidArgumentError(
                f"inputs[{index}] has no dimensions; the first one must count the examples. Use "
                "x[None]."
            )
        if tensor.is_complex():
            raise InvalidArgumentTypeError(
                f"inputs[{index}] is complex; split it into real and imaginary parts."
            )
    lengths = [len(tensor) for tensor in tensors]
    if not lengths or lengths[0] == 0:
        raise InvalidArgumentError("inputs holds no examples; at least one is needed.")
    if len(set(lengths)) > 1:
        raise InvalidArgumentError(
            f"inputs must all have the same number of examples; got {lengths}."
        )
    return tuple(tensor.detach() for tensor in tensors)


def checked_baselines(baselines: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return `baselines` as one tensor for each input, in its type and on its device.

    Raises
    ------
    InvalidArgumentError
        If there are too few or too many, if a shape does not fit, or if an input of whole numbers
        would have to cut a fractional baseline.
    """
    if baselines is None:
        given: tuple[Any, ...] = (None,) * len(inputs)
    else:
        given = baselines if isinstance(baselines, tuple) else (baselines,)
    if len(given) != len(inputs):
        raise InvalidArgumentError(
            f"baselines must hold one entry for each of the {len(inputs)} inputs; got {len(given)}."
        )
    return tuple(
        _baseline(one, tensor, index)
        for index, (one, tensor) in enumerate(zip(given, inputs, strict=True))
    )


def _baseline(baseline: Any, tensor: Tensor, index: int) -> Tensor:
    if baseline is None:
        return torch.zeros_like(tensor[:1])
    if isinstance(baseline, numbers.Real):
        # In double precision, so that a float64 input gets the number that was written.
        dtype = torch.float64 if isinstance(baseline, float) else None
        number = torch.as_tensor(baseline, dtype=dtype)
        return _cast(number, tensor, index).expand(1, *tensor.shape[1:])
    if not isinstance(baseline, Tensor):
        raise InvalidArgumentTypeError(
            f"baselines[{index}] must be a number or a tensor; got {type(baseline).__name__}."
        )
    if baseline.dim() == 0:
        return _cast(baseline, tensor, index).expand(1, *tensor.shape[1:])
    if baseline.shape[1:] != tensor.shape[1:] or len(baseline) not in (1, len(tensor)):
        raise InvalidArgumentError(
            f"baselines[{index}] has shape {tuple(baseline.shape)}; it must be that of its input, "
            f"{tuple(tensor.shape)}, or have 1 as its first dimension."
        )
    return _cast(baseline.detach(), tensor, index)


def _cast(baseline: Tensor, tensor: Tensor, index: int) -> Tensor:
    """Bring a baseline to its input's type, unless that would do more than round it."""
    if baseline.is_complex():
        raise InvalidArgumentTypeError(f"baselines[{index}] is complex; its input is not.")
    cast = baseline.to(device=tensor.device, dtype=tensor.dtype)
    if tensor.is_floating_point():
        is_kept = bool((cast.isfinite().cpu() | ~baseline.isfinite().cpu()).all())
    else:
        is_kept = torch.equal(cast.to(baseline.dtype), baseline.to(tensor.device))
    if not is_kept:
        raise InvalidArgumentError(
            f"baselines[{index}] holds values that {tensor.dtype} cannot; convert the inputs to "
            "floating point, or choose a baseline of their type."
        )
    return cast


def checked_target(target: Any, n_examples: int) -> Any:
    """Return `target` if it has one of captum's forms and fits the number of examples."""
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
            "target must be None, an int, a tuple, a list or a tensor of whole numbers; got "
            f"{type(target).__name__}."
        )
    raise InvalidArgumentError(
        f"target must have one entry for each of the {n_examples} examples, or be a single "
        f"number; got {tuple(target.shape) if isinstance(target, Tensor) else len(target)}."
    )
