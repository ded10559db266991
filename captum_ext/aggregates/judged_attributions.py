"""Attributions, games and draws as the criteria of the core take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import shapley_adapters.criteria as core
from shapley_adapters.arguments import checked_choice
from shapley_adapters.array_types import FloatArray
from shapley_adapters.criteria import Neighbourhood, Sensitivity
from shapley_adapters.criteria.coalition_errors import Draw
from shapley_adapters.criteria.sensitivity import Distance
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.games.value_functions import (
    ValueFunction,
    ValueFunctionOrName,
    checked_log_probability,
)

from ..argument_types import Attributions, Baselines, FeatureMask, ForwardFunction, Inputs, Target
from ..attributions.coalition_attribution import AttributeCall, CoalitionAttribution
from ..conditional import ConditionalBaselines
from .base_explainers import arguments_for, arrays_of, drawn_inputs

OUTPUTS = ValueFunction("raw")
"""What most criteria judge: the outputs as they are."""


def values(attributions: Attributions) -> tuple[FloatArray]:
    """Return attributions of all inputs side by side, (B, M).

    Parameters
    ----------
    attributions : Tensor or tuple of Tensors, (B, …)
        The attributions of B examples.

    Examples
    --------
    >>> import torch
    >>> from captum_ext.criteria import complexity
    >>> complexity(torch.tensor([[1.0, -1.0], [3.0, 0.0]])).round(decimals=3)
    tensor([0.6930, 0.0000], dtype=torch.float64)
    """
    return (_flat(attributions),)


def values_and_exact(attributions: Attributions, exact: Attributions) -> tuple[Any, Any]:
    """Return both, (B, M).

    Parameters
    ----------
    attributions, exact : Tensor or tuple of Tensors, (B, …)
        The attributions of B examples, and the exact ones.
    """
    return _flat(attributions), _flat(exact)


def values_and_game(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = None,
    target: Target = None,
    additional_forward_args: object = None,
    feature_mask: FeatureMask = None,
    *,
    value_function: ValueFunctionOrName = "log_probability",
    of_groups: str = "shared",
) -> tuple[FloatArray, Any]:
    """Return the attribution of each player, (B, M), and the game.

    Parameters
    ----------
    attributions : Tensor or tuple of Tensors
        Attributions of one output, in the shape of the inputs.
    forward_func, inputs, baselines, target, additional_forward_args, feature_mask
        As in captum's methods.
    value_function : "log_probability" or ValueFunction
        For the class `target`, by default the class that the model predicts.
    of_groups : {"shared", "sum"}
        How to compute the attribution of a group of `feature_mask`. `"shared"`: all features of the
        group have the same number, as perturbation methods return it. `"sum"`: the sum over the
        group's features, for methods without groups.
    """
    if value_function is not OUTPUTS:
        value_function = checked_log_probability(value_function)
    given = inputs, baselines, target, additional_forward_args, feature_mask
    call = _call(value_function, forward_func, *given)
    checked_choice("of_groups", of_groups, ("shared", "sum"))
    groups = call.game.groups
    arrays = arrays_of("attributions", attributions)
    input_shapes = [tuple(tensor.shape) for tensor in call.game.inputs]
    if [array.shape for array in arrays] != input_shapes:
        raise InvalidArgumentError(
            f"attributions have shapes {[array.shape for array in arrays]}; attributions of one "
            f"output must have the shapes of the inputs, {input_shapes}."
        )
    n_rows = len(arrays[0])
    flat = [array.reshape(n_rows, -1) for array in arrays]
    values = np.concatenate(flat, axis=1)
    players = [np.broadcast_to(one, (n_rows, one.shape[1])) for one in groups.players]
    places = np.arange(n_rows)[:, None], np.concatenate(players, axis=1)
    total, count = np.zeros((2, n_rows, groups.n_players))
    np.add.at(total, places, values)
    game = call.game if call.valued is None else call.valued
    if of_groups == "sum":
        return total, game
    np.add.at(count, places, 1.0)
    shared = total / np.maximum(count, 1)
    rounding = np.concatenate([np.full(each.shape[1], 1e-6 * np.abs(each).max()) for each in flat])
    if not np.allclose(shared[places], values, rtol=1e-4, atol=rounding):
        raise InvalidArgumentError(
            "attributions differ within groups of feature_mask. Pass of_groups='sum', which adds "
            "them up."
        )
    return shared, game


def games(
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = None,
    target: Target = None,
    additional_forward_args: object = None,
    feature_mask: FeatureMask = None,
) -> tuple[Any]:
    """Return the game of examples.

    Parameters
    ----------
    forward_func, inputs, baselines, target, additional_forward_args, feature_mask
        As in captum's methods. The inputs should be examples that the distribution was not fitted
        to.
    """
    arguments = inputs, baselines, target, additional_forward_args, feature_mask
    return (_call(OUTPUTS, forward_func, *arguments).game,)


def rows_and_draws(inputs: Tensor, baselines: ConditionalBaselines) -> tuple[FloatArray, Draw]:
    """Return examples as rows, (B, D), and the draws of absent features of a distribution.

    Parameters
    ----------
    inputs : Tensor, (B, …)
        Examples that the distribution was not fitted to.
    baselines : distribution of `captum_ext.conditional`
        The distribution.
    """
    if not isinstance(baselines, ConditionalBaselines):
        raise InvalidArgumentTypeError(
            "baselines must be a distribution of captum_ext.conditional; got "
            f"{type(baselines).__name__}. Sampled takes a function of yours."
        )
    baselines.baselines_of((inputs,))  # checks the shapes
    rows = inputs.detach().cpu().double().reshape(len(inputs), -1).numpy()
    return rows, baselines.draws.drawn


def tensor(values: FloatArray) -> Tensor:
    """Return the numbers of a criterion as captum's metrics do."""
    return torch.from_numpy(np.asarray(values))


def sensitivity(
    attribute: Callable[..., Any],
    inputs: Inputs,
    neighbourhood: Neighbourhood,
    *,
    forward_func: ForwardFunction | None = None,
    target: Target = None,
    distance: Distance = "l2",
    relative: bool = False,
    seed: int | None = 0,
    rows_per_call: int = 1000,
    **arguments: Any,
) -> Sensitivity:
    """Attribute inputs and their neighbours, and return the distances between the attributions.

    μ_M and μ_A of Bhatt, Weller and Moura; see `shapley_adapters.criteria.sensitivity`. With
    `Neighbourhood(radius, keep="all")` and `relative=True` the maximum is the quantity of
    `captum.metrics.sensitivity_max`, with draws of our own.

    Parameters
    ----------
    attribute : callable
        A method's `attribute`.
    inputs : Tensor
        The inputs, of floating-point type.
    neighbourhood : Neighbourhood
        The distance and the number of neighbours, and which of them count.
    forward_func : callable, optional
        Its outputs, for all classes, decide which neighbours count; required unless `keep="all"`.
    target : optional
        As in captum; neighbours are explained for the target of their example.
    distance, relative, seed, rows_per_call
        As in `shapley_adapters.criteria.measured_sensitivity`.
    **arguments
        Arguments of `attribute`; none may have one value per example.

    Returns
    -------
    Sensitivity
        With NumPy arrays.
    """

    def attributed(points: Tensor, targets: Target, further: dict[str, Any]) -> FloatArray:
        with_target = {} if target is None else {"target": targets}
        return _flat(attribute(points, **with_target, **arguments_for(attribute, further)))

    of_host = inputs, target, forward_func, arguments, [attribute]
    return core.measured_sensitivity(
        *drawn_inputs(*of_host, neighbourhood, attributed),
        neighbourhood,
        distance=distance,
        relative=relative,
        seed=seed,
        rows_per_call=rows_per_call,
        with_owners=True,
    )


def _call(
    value_function: ValueFunctionOrName, forward_func: ForwardFunction, *arguments: Any
) -> AttributeCall:
    method: Any = CoalitionAttribution(forward_func, seed=0, value_function=value_function)
    return method.checked_call(*arguments, perturbations_per_eval=None)


def _flat(attributions: Attributions) -> FloatArray:
    arrays = arrays_of("attributions", attributions)
    if any(array.ndim < 2 for array in arrays):
        raise InvalidArgumentError(
            f"attributions have shape {arrays[0].shape}; examples and features are needed. For one "
            "example pass x[None]."
        )
    if any(len(array) == 0 for array in arrays):
        raise InvalidArgumentError("attributions hold no examples; at least one is needed.")
    return np.concatenate([array.reshape(len(array), -1) for array in arrays], axis=1)
