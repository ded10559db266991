"""The methods that an aggregate is made of: captum's, ours, and functions."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import captum.attr
import numpy as np
import torch
from torch import Tensor
from torch.futures import Future

from shapley_adapters.aggregation.base_explainers import name_of, parameters_of, share_of_budget
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.criteria.attribution_arrays import plain_array
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.torch_support.tensor_arrays import array_of_tensor

from ..argument_types import ForwardFunction, Inputs, Method, Target
from ..attributions.coalition_attribution import CoalitionAttribution
from ..inputs.baselines import BaselineDistribution
from ..inputs.checks import checked_inputs, checked_target
from ..inputs.forward_arguments import are_marked, copied, shared_arguments_only, unmarked

_ADDITIONAL = "additional_forward_args"


def checked_methods(name: str, methods: object) -> list[Any]:
    """Return a user's list of methods.

    Raises
    ------
    InvalidArgumentTypeError, InvalidArgumentError
        If it is no list, is empty, or holds something that attributes nothing.
    """
    if isinstance(methods, str) or not isinstance(methods, Sequence):
        raise InvalidArgumentTypeError(
            f"{name} must be a list of attribution methods; got {type(methods).__name__}."
        )
    if len(methods) == 0:
        raise InvalidArgumentError(f"{name} must hold at least one attribution method.")
    for index, method in enumerate(methods):
        check_method(f"{name}[{index}]", method)
    return list(methods)


def check_method(name: str, method: object) -> None:
    """Raise an error if the object cannot attribute."""
    is_object = not isinstance(method, type)
    if not (is_object and (callable(getattr(method, "attribute", None)) or callable(method))):
        raise InvalidArgumentTypeError(
            f"{name} must be an attribution method that is ready, such as "
            f"IntegratedGradients(model), or a function of the inputs; got {method!r}."
        )


def takes(method: object, argument: str) -> bool:
    """Return whether a method, or the method inside a wrapper, has an argument of this name."""
    function = getattr(method, "attribute", method)
    parameters = parameters_of(function)
    if argument in parameters:
        return True
    inner = getattr(method, "attribution_method", None)
    passes_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return passes_on and inner is not None and takes(inner, argument)


def attribute_by(
    method: Method, inputs: Inputs, arguments: Mapping[str, Any], through_future: bool = False
) -> Any:
    """Call a method with those of the arguments that it has; it gets copies of all tensors.

    Returns
    -------
    attributions, or a Future of them
        With `through_future`, the Future of the method's `attribute_future`. A function is called
        in both cases.
    """
    accepted = {name: value for name, value in arguments.items() if takes(method, name)}
    supported = arguments_for(method, accepted)
    inputs = copied(inputs)
    if hasattr(method, "attribute"):
        attribute = _future_door(method) if through_future else method.attribute
        return attribute(inputs, **supported)
    # captum's metrics pass tuples of one, which functions of a tensor do not expect.
    is_wrapped = isinstance(inputs, tuple) and len(inputs) == 1
    return method(inputs[0] if is_wrapped else inputs, **supported)


def arguments_for(method: Method, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies of arguments as a method takes them; models may write into tensors.

    Raises
    ------
    InvalidArgumentError
        If `additional_forward_args` are marked, and the method is one of captum's, which pass marks
        on to the forward function.
    """
    if are_marked(arguments.get(_ADDITIONAL)) and not knows_marks(method):
        if isinstance(object_of(method), captum.attr.Attribution):
            raise InvalidArgumentError(
                f"{_ADDITIONAL} holds Shared or PerExample, which {name_of(method)} does not know. "
                "Make the argument a part of forward_func, such as lambda x: net(x, edge_index)."
            )
        arguments = {**arguments, _ADDITIONAL: unmarked(arguments[_ADDITIONAL])}
    return {name: copied(value) for name, value in arguments.items()}


def knows_marks(method: object) -> bool:
    """Return whether a method, or the method inside a wrapper, reads `Shared` and `PerExample`."""
    instance = object_of(method)
    inner = getattr(instance, "attribution_methods", None)
    inner = inner or getattr(instance, "attribution_method", None)
    if inner is not None:
        return all(map(knows_marks, inner if isinstance(inner, list) else [inner]))
    return isinstance(instance, CoalitionAttribution)


def object_of(method: object) -> Any:
    """Return the object whose method, or partial function of a method, is given."""
    while isinstance(method, functools.partial):
        method = method.func
    return getattr(method, "__self__", method)


def completed(attributions: object) -> Any:
    """Return the result of a Future of attributions; other attributions as they are."""
    return attributions.wait() if isinstance(attributions, Future) else attributions


def _future_door(method: object) -> Any:
    """Return `attribute_future` of a method."""
    attribute_future = getattr(method, "attribute_future", None)
    if attribute_future is None:
        raise InvalidArgumentTypeError(
            f"{name_of(method)} has no attribute_future. Use methods that have it, such as those "
            "of captum_ext, or call attribute."
        )
    return attribute_future


def shared_arguments(methods: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for all methods, the budget shared by those that have one.

    Raises
    ------
    InvalidArgumentTypeError
        If no method has an argument of a name.
    """
    for name in arguments:
        if not any(takes(method, name) for method in methods):
            raise InvalidArgumentTypeError(
                f"{name}: none of {', '.join(map(name_of, methods))} has an argument of this name."
            )
    shared = dict(arguments)
    budget = shared.get("n_samples")
    if isinstance(budget, numbers.Integral) and not isinstance(budget, bool):
        n_shares = sum(takes(method, "n_samples") for method in methods)
        shared["n_samples"] = share_of_budget("n_samples", int(budget), n_shares, "methods")
        for method in methods:
            if isinstance(object_of(method), captum.attr.ShapleyValueSampling):
                raise InvalidArgumentError(
                    f"n_samples={budget} is a number of evaluations, and ShapleyValueSampling "
                    "takes orders of the features, each of as many evaluations as features. Use "
                    "RandomOrder, or pass a function that calls its attribute."
                )
    return shared


def shared_by_all(
    methods: Sequence[Any], arguments: Mapping[str, Any], n_examples: int
) -> dict[str, Any]:
    """Return arguments for rows other than the examples: neighbours, or rows of other data.

    Methods that know the mark get further arguments of the forward function as `Shared`: there may
    be as many rows as an argument has entries.

    Raises
    ------
    InvalidArgumentError
        If an argument belongs to the examples.
    """
    shared = dict(arguments)
    for name, argument in arguments.items():
        if name == _ADDITIONAL:
            shared_argument = shared_arguments_only(argument, n_examples)
            shared[name] = shared_argument if all(map(knows_marks, methods)) else argument
            continue
        parts = argument if isinstance(argument, tuple) else (argument,)
        if any(_has_rows(part, n_examples) for part in parts):
            raise InvalidArgumentError(
                f"{name} has a row for each of the {n_examples} examples, but it is their "
                "neighbours that are attributed. Pass one row, or a value for all examples."
            )
    return shared


def _has_rows(argument: Any, n_examples: int) -> bool:
    is_plain = isinstance(argument, Tensor) and not isinstance(argument, BaselineDistribution)
    return is_plain and argument.shape[:1] == (n_examples,) != (1,)


def arrays_of(name: str, attributions: object) -> list[FloatArray]:
    """Return attributions of one or several inputs as arrays."""
    parts = attributions if isinstance(attributions, tuple) else (attributions,)
    return [plain_array(name, part) for part in parts]


class Layout:
    """How attributions of some inputs become arrays with features last, and tensors again.

    Parameters
    ----------
    found : Tensor, Explanation, array, or tuple of them
        The first method's attributions.
    inputs : tuple of Tensors
        The inputs.
    """

    def __init__(self, attributions: object, inputs: tuple[Tensor, ...]) -> None:
        parts = attributions if isinstance(attributions, tuple) else (attributions,)
        arrays = arrays_of("attributions", attributions)
        self._shapes = [array.shape for array in arrays]
        self._kinds = [
            (part.dtype, part.device) if isinstance(part, Tensor) else (x.dtype, x.device)
            for part, x in zip(parts, _repeated(inputs, len(parts)), strict=True)
        ]
        # Outputs of several dimensions come between the examples and the features.
        extra = arrays[0].ndim - inputs[0].dim() if len(parts) == len(inputs) else 0
        self._n_lead = 1 + max(0, extra)
        self.lead = self._shapes[0][: self._n_lead]

    def array(self, name: str, attributions: object) -> FloatArray:
        """Return attributions as (B, …, features), those of all inputs side by side."""
        arrays = arrays_of(name, attributions)
        shapes = [array.shape for array in arrays]
        if shapes != self._shapes:
            raise InvalidArgumentError(
                f"{name} attributes with shapes {shapes}, the first method with {self._shapes}; "
                "they must explain the same inputs and outputs."
            )
        return np.concatenate([a.reshape(*self.lead, -1) for a in arrays], axis=-1)

    def tensors(self, values: FloatArray, as_tuple: bool) -> Any:
        """Undo `array`: return tensors in the type and on the device of the first method's."""
        sizes = [int(np.prod(shape[self._n_lead :])) for shape in self._shapes]
        arrays = np.split(values, np.cumsum(sizes)[:-1], axis=-1)
        parts = tuple(
            torch.from_numpy(array.reshape(-1, *shape[1:]).copy()).to(dtype=kind[0], device=kind[1])
            for array, shape, kind in zip(arrays, self._shapes, self._kinds, strict=True)
        )
        return parts if as_tuple or len(parts) > 1 else parts[0]


def _repeated(inputs: tuple[Tensor, ...], n: int) -> tuple[Tensor, ...]:
    return inputs if len(inputs) == n else inputs[:1] * n


class DrawnInputs:
    """Converter of drawn points to inputs.

    Parameters
    ----------
    inputs : Tensor, or tuple of one
        The inputs, of floating point.
    target
        As captum takes it.
    forward_func : callable or None
        By whose outputs neighbours are kept.
    arguments : dict
        Further arguments of the methods; none may have one entry per example.
    methods : sequence
        The methods that attribute the inputs.

    Attributes
    ----------
    arguments : dict
        Further arguments of the methods, for neighbours.
    """

    def __init__(
        self,
        inputs: Inputs,
        target: Target,
        forward_func: ForwardFunction | None,
        arguments: dict[str, Any],
        methods: Sequence[Any],
    ) -> None:
        tensors = checked_inputs(inputs)
        if len(tensors) > 1 or not tensors[0].is_floating_point():
            raise InvalidArgumentError(
                "sensitivity takes one tensor of floating point as inputs; neighbours of others "
                "cannot be drawn."
            )
        (self._inputs,) = tensors
        self._target = checked_target(target, len(self._inputs))
        self._forward_func = forward_func
        self.arguments = shared_by_all(methods, arguments, len(self._inputs))

    def check(self, neighbourhood: Neighbourhood) -> None:
        """Refuse a neighbourhood that needs predictions where there are none."""
        if self._forward_func is None and neighbourhood.keep != "all":
            raise InvalidArgumentError(
                "forward_func= is needed to find the neighbours that keep the prediction "
                f"(keep={neighbourhood.keep!r})."
            )

    @property
    def rows(self) -> FloatArray:
        """The inputs as an array."""
        return array_of_tensor(self._inputs)

    def tensor(self, rows: FloatArray) -> Tensor:
        """Return points in the type and on the device of the inputs."""
        # A copy, because models may write into their input.
        return torch.from_numpy(np.array(rows)).to(self._inputs)

    def target_of(self, owners: IntArray) -> Any:
        """Return the targets of the examples whose neighbours the points are."""
        target, n_examples = self._target, len(self._inputs)
        if isinstance(target, list) and len(target) == n_examples:
            return [target[owner] for owner in owners]
        if isinstance(target, Tensor) and target.dim() > 0 and len(target) == n_examples:
            return target[torch.as_tensor(owners)]
        return target

    def predict(self, rows: FloatArray) -> Any:
        """Return the outputs for points; zeros where no predictions are asked for."""
        if self._forward_func is None:
            return np.zeros(len(rows))
        with torch.no_grad():
            outputs = self._forward_func(self.tensor(rows))
        return array_of_tensor(outputs) if isinstance(outputs, Tensor) else outputs
