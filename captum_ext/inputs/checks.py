"""Checks of captum's arguments, with messages in captum's terms."""

from __future__ import annotations

import inspect
import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.arguments import check_unmasked
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

from .baselines import BaselineDistribution, Baselines
from .forward_arguments import copied
from .tensors import at_least_half, checked_plain, parts_of


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


def checked_baselines(
    baselines: object, inputs: tuple[Tensor, ...], user_inputs: object = None
) -> Baselines:
    """Return `baselines` in the inputs' types and on their devices.

    Parameters
    ----------
    baselines : None, number, tensor, function, or tuple of the first three
        The argument of the user. A function is called once, with the inputs if it has parameters.
    inputs : tuple of tensors
        The checked inputs.
    user_inputs : tensor or tuple of tensors, optional
        The inputs as the user passed them, for a function.

    Raises
    ------
    InvalidArgumentError
        If there are too few or too many baselines, if a shape does not fit, or if a fractional
        baseline would be rounded to the whole numbers of an input.
    """
    if callable(baselines):
        baselines = _called(baselines, inputs if user_inputs is None else user_inputs)
    baselines = (None,) * len(inputs) if baselines is None else baselines
    parts = parts_of("baselines", baselines, len(inputs))
    tensors = tuple(
        _baseline(part, tensor, index)
        for index, (part, tensor) in enumerate(zip(parts, inputs, strict=True))
    )
    are_drawn = tuple(
        len(baseline) > 1
        and (isinstance(part, BaselineDistribution) or len(baseline) != len(tensor))
        for part, baseline, tensor in zip(parts, tensors, inputs, strict=True)
    )
    return Baselines(tensors, are_drawn, _n_draws(tensors, are_drawn) if any(are_drawn) else 1)


def _called(function: Callable[..., Any], user_inputs: object) -> Any:
    """Call a function that returns baselines, as captum's DeepLiftShap does."""
    baselines = function() if takes_nothing(function) else function(copied(user_inputs))
    if baselines is None or callable(baselines):
        raise InvalidArgumentTypeError(
            "baselines, a function, must return numbers or tensors; it returned "
            f"{type(baselines).__name__}."
        )
    return baselines


def _n_draws(tensors: tuple[Tensor, ...], are_drawn: tuple[bool, ...]) -> int:
    counts = {
        len(baseline) for baseline, is_drawn in zip(tensors, are_drawn, strict=True) if is_drawn
    }
    if len(counts) > 1:
        raise InvalidArgumentError(
            f"baselines holds distributions of {' and '.join(map(str, sorted(counts)))} rows for "
            "several inputs. Their rows belong together, so that their numbers must be equal."
        )
    return counts.pop()


def _baseline(baseline: object, tensor: Tensor, index: int) -> Tensor:
    """Return one baseline with its rows along the first dimension."""
    if baseline is None:
        return torch.zeros_like(tensor[:1])
    if isinstance(baseline, numbers.Real):
        # In double precision, so that a float64 input gets the exact number.
        dtype = torch.float64 if isinstance(baseline, float) else None
        number = torch.as_tensor(baseline, dtype=dtype)
        return _cast(number, tensor, index).expand(1, *tensor.shape[1:])
    name = f"baselines[{index}]"
    plain = checked_plain(name, baseline, "a number or a tensor").as_subclass(Tensor)
    if plain.dim() == 0:
        return _cast(plain, tensor, index).expand(1, *tensor.shape[1:])
    if plain.shape[1:] != tensor.shape[1:] or len(plain) == 0:
        is_row = plain.shape == tensor.shape[1:]
        hint = " For the same row for all examples, pass it as baseline[None]." if is_row else ""
        raise InvalidArgumentError(
            f"{name} has shape {tuple(plain.shape)}; it must be (rows, "
            f"{', '.join(map(str, tensor.shape[1:]))}) for an input of shape "
            f"{tuple(tensor.shape)}: with one row, one for each example, or any other number of "
            f"rows, over which the output is averaged.{hint}"
        )
    return _cast(plain, tensor, index)


def _cast(baseline: Tensor, tensor: Tensor, index: int) -> Tensor:
    """Convert a baseline to its input's type; refuse it if this does more than round it."""
    cast = baseline.to(device=tensor.device, dtype=tensor.dtype)
    if tensor.is_floating_point():
        is_kept = bool((_are_finite(cast) | ~_are_finite(baseline)).all())
    else:
        is_kept = torch.equal(cast.to(baseline.dtype), baseline.to(tensor.device))
    if not is_kept:
        raise InvalidArgumentError(
            f"baselines[{index}] holds values that {tensor.dtype} cannot represent; convert the "
            "inputs to floating point, or choose a baseline of their type."
        )
    return cast


def _are_finite(tensor: Tensor) -> Tensor:
    return at_least_half(tensor).isfinite().cpu()


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
