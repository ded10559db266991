"""The methods that an aggregate is made of: captum's, ours, and functions."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import captum.attr
import numpy as np
import torch
from torch import Tensor

from shapley_adapters.aggregation.members import name_of, parameters_of, share_of_budget
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


METHOD = (
    "a ready attribution method, such as IntegratedGradients(model), or a function of the inputs"
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
    method: Any, inputs: Inputs, arguments: Mapping[str, Any], through_future: bool = False
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
        attribute = method.attribute_future if through_future else method.attribute
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
        if any(
            isinstance(part, Tensor)
            and not isinstance(part, BaselineDistribution)
            and part.shape[:1] == (n_examples,) != (1,)
            for part in parts
        ):
            raise InvalidArgumentError(
                f"{name} has a row for each of the {n_examples} examples, but it is their "
                "neighbours that are attributed. Pass one row, or a value for all examples."
            )
    return shared


def arrays_of(name: str, attributions: object) -> list[FloatArray]:
    """Return attributions of one or several inputs as arrays."""
    parts = attributions if isinstance(attributions, tuple) else (attributions,)
    return [plain_array(name, part) for part in parts]


class Layout:
    """How attributions of some inputs become arrays with features last, and tensors again.

    Parameters
    ----------
    attributions : Tensor, Explanation, array, or tuple of them
        The first method's attributions.
    inputs : tuple of Tensors
        The inputs.
    """

    def __init__(self, attributions: object, inputs: tuple[Tensor, ...]) -> None:
        parts = attributions if isinstance(attributions, tuple) else (attributions,)
        self._shapes = [array.shape for array in arrays_of("attributions", attributions)]
        are_of_inputs = len(parts) == len(inputs)
        like = inputs if are_of_inputs else inputs[:1] * len(parts)
        kinds = [
            part if isinstance(part, Tensor) else x for part, x in zip(parts, like, strict=True)
        ]
        self._kinds = [(kind.dtype, kind.device) for kind in kinds]
        # Outputs of several dimensions come between the examples and the features.
        extra = len(self._shapes[0]) - inputs[0].dim() if are_of_inputs else 0
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


def drawn_inputs(
    inputs: Inputs,
    target: Target,
    forward_func: ForwardFunction | None,
    arguments: dict[str, Any],
    methods: Sequence[Any],
    neighbourhood: Neighbourhood,
    attribute: Callable[[Tensor, Target, dict[str, Any]], FloatArray],
) -> tuple[Callable[..., FloatArray], Callable[[FloatArray], Any], FloatArray]:
    """Return what explains points by their owners, what predicts them, and the inputs as rows.

    Parameters
    ----------
    inputs : Tensor, or tuple of one
        The inputs, of floating point.
    target
        As captum takes it. Neighbours are explained for the target of their example.
    forward_func : callable or None
        By whose outputs neighbours are kept.
    arguments : dict
        Further arguments of the methods; none may have one entry per example.
    methods : sequence
        The methods that attribute the inputs.
    neighbourhood : Neighbourhood
        The neighbours.
    attribute : callable
        Takes inputs, their target and further arguments, and returns attributions.
    """
    tensor, *others = checked_inputs(inputs)
    n_examples = len(tensor)
    if others or not tensor.is_floating_point():
        raise InvalidArgumentError(
            "sensitivity takes one tensor of floating point as inputs; neighbours of others "
            "cannot be drawn."
        )
    if forward_func is None and neighbourhood.keep != "all":
        raise InvalidArgumentError(
            "forward_func= is needed to find the neighbours that keep the prediction "
            f"(keep={neighbourhood.keep!r})."
        )
    target = checked_target(target, n_examples)
    shared = shared_by_all(methods, arguments, n_examples)

    def restored(rows: FloatArray) -> Tensor:
        # A copy, because models may write into their input.
        return torch.from_numpy(np.array(rows)).to(tensor)

    def explain(rows: FloatArray, owners: IntArray) -> FloatArray:
        own: Any = target
        if isinstance(own, list) and len(own) == n_examples:
            own = [own[owner] for owner in owners]
        elif isinstance(own, Tensor) and own.shape[:1] == (n_examples,):
            own = own[torch.as_tensor(owners)]
        return attribute(restored(rows), own, shared)

    def predict(rows: FloatArray) -> Any:
        if forward_func is None:  # no predictions are asked for
            return np.zeros(len(rows))
        with torch.no_grad():
            outputs = forward_func(restored(rows))
        return array_of_tensor(outputs) if isinstance(outputs, Tensor) else outputs

    return explain, predict, array_of_tensor(tensor)
