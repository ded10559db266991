"""Criteria of captum's attributions: how complex, sensitive, faithful and accurate they are.

Attributions have the shape of the inputs, a tensor or a tuple of them; criteria are tensors with a
number for each example, (B,), in double precision. Infidelity is captum's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from captum.metrics import infidelity
from torch import Tensor

import shapley_adapters.criteria as core
from shapley_adapters.arguments import checked_choice
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.criteria import Curve, Neighbourhood, Sensitivity
from shapley_adapters.criteria.sensitivity import Distance
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.games.value_functions import ValueFunctionOrName, checked_log_probability

from .aggregates.base_explainers import arguments_for, arrays_of
from .aggregates.drawn_inputs import DrawnInputs
from .argument_types import Attributions, Baselines, FeatureMask, ForwardFunction, Inputs, Target
from .attributions.coalition_attribution import Call, CoalitionAttribution

__all__ = [
    "Curve",
    "Neighbourhood",
    "Sensitivity",
    "absolute_error",
    "complexity",
    "deletion_curve",
    "faithfulness",
    "infidelity",
    "insertion_curve",
    "masked_log_odds",
    "monotonicity",
    "ranking_accuracy",
    "sensitivity",
]

OF_GROUPS = ("shared", "sum")


def complexity(attributions: Attributions) -> Tensor:
    """Return the entropy of the features' shares, in nats; less is simpler.

    See `shapley_adapters.criteria.complexity`.

    Examples
    --------
    >>> import torch
    >>> from captum_ext.criteria import complexity
    >>> complexity(torch.tensor([[1.0, -1.0], [3.0, 0.0]])).round(decimals=3)
    tensor([0.6930, 0.0000], dtype=torch.float64)
    """
    return _tensor(core.complexity(_flat(attributions)))


def absolute_error(attributions: Attributions, exact: Attributions) -> Tensor:
    """Return the sum of the absolute errors of all features; less is better."""
    return _tensor(core.absolute_error(_flat(attributions), _flat(exact)))


def ranking_accuracy(
    attributions: Attributions, exact: Attributions, *, order: str = "value"
) -> Tensor:
    """Return the share of places of the ranking that are right, the m-th weighted by 1/m.

    See `shapley_adapters.criteria.ranking_accuracy`.
    """
    return _tensor(core.ranking_accuracy(_flat(attributions), _flat(exact), order=order))


def faithfulness(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = None,
    target: Target = None,
    additional_forward_args: object = None,
    feature_mask: FeatureMask = None,
    *,
    subset_size: int | None = None,
    n_subsets: int = 100,
    seed: int | None = 0,
    of_groups: str = "shared",
) -> Tensor:
    """Return how well sums of attributions follow what the output loses; more is better.

    See `shapley_adapters.criteria.faithfulness`, also for the other parameters.

    Parameters
    ----------
    attributions : Tensor or tuple of Tensors
        Of one output, in the shape of the inputs.
    forward_func, inputs, baselines, target, additional_forward_args, feature_mask
        As captum's methods take them.
    of_groups : {"shared", "sum"}
        What the attribution of a group of `feature_mask` is: the one number that all its features
        have, as perturbation methods give it; or the sum of theirs, for methods that know no
        groups.
    """
    game, values = _judged(
        attributions,
        _call(forward_func, inputs, baselines, target, additional_forward_args, feature_mask),
        of_groups,
    )
    found = core.faithfulness(values, game, subset_size=subset_size, n_subsets=n_subsets, seed=seed)
    return _tensor(found)


def monotonicity(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = None,
    target: Target = None,
    additional_forward_args: object = None,
    feature_mask: FeatureMask = None,
    *,
    of_groups: str = "shared",
) -> Tensor:
    """Return how often the next feature adds no more than the one before; more is better.

    See `shapley_adapters.criteria.monotonicity`, and `faithfulness` for the parameters.
    """
    call = _call(forward_func, inputs, baselines, target, additional_forward_args, feature_mask)
    game, values = _judged(attributions, call, of_groups)
    return _tensor(core.monotonicity(values, game))


def insertion_curve(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = None,
    target: Target = None,
    additional_forward_args: object = None,
    feature_mask: FeatureMask = None,
    *,
    n_steps: int | None = None,
    order: str = "value",
    of_groups: str = "shared",
) -> Curve:
    """Return the output as features come in, the largest attributions first, with its area.

    See `shapley_adapters.criteria.insertion_curve`, and `faithfulness` for the parameters. The
    curve holds arrays.
    """
    call = _call(forward_func, inputs, baselines, target, additional_forward_args, feature_mask)
    game, values = _judged(attributions, call, of_groups)
    return core.insertion_curve(values, game, n_steps=n_steps, order=order)


def deletion_curve(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = None,
    target: Target = None,
    additional_forward_args: object = None,
    feature_mask: FeatureMask = None,
    *,
    n_steps: int | None = None,
    order: str = "value",
    of_groups: str = "shared",
) -> Curve:
    """Return the output as features go, the largest attributions first, with its area.

    See `shapley_adapters.criteria.deletion_curve`, and `faithfulness` for the parameters. The curve
    holds arrays.
    """
    call = _call(forward_func, inputs, baselines, target, additional_forward_args, feature_mask)
    game, values = _judged(attributions, call, of_groups)
    return core.deletion_curve(values, game, n_steps=n_steps, order=order)


def masked_log_odds(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = None,
    target: Target = None,
    additional_forward_args: object = None,
    feature_mask: FeatureMask = None,
    *,
    value_function: ValueFunctionOrName = "log_probability",
    n_steps: int | None = None,
    order: str = "value",
    of_groups: str = "shared",
) -> Curve:
    """Return the change in log-odds of a class as its largest attributions are masked.

    See `shapley_adapters.criteria.masked_log_odds`, and `faithfulness` for the parameters.

    Parameters
    ----------
    value_function : "log_probability" or ValueFunction
        Of the class that `target` names, by default that which the model predicts.
    """
    made = checked_log_probability(value_function)
    call = _call(
        forward_func, inputs, baselines, target, additional_forward_args, feature_mask, made
    )
    game, values = _judged(attributions, call, of_groups)
    return core.masked_log_odds(values, game, n_steps=n_steps, order=order)


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
    """Attribute inputs and their neighbours, and return how far the attributions differ.

    μ_M and μ_A of Bhatt, Weller and Moura; see `shapley_adapters.criteria.sensitivity`. With
    `Neighbourhood(radius, keep="all")` and `relative=True` the maximum is the quantity of
    `captum.metrics.sensitivity_max`, with draws of our own.

    Parameters
    ----------
    attribute : callable
        A method's `attribute`.
    inputs : Tensor
        The inputs, of floating point.
    neighbourhood : Neighbourhood
        Radius, norm, how many neighbours are drawn, and which keep the prediction.
    forward_func : callable, optional
        By whose outputs, all classes of them, neighbours are kept; needed unless `keep="all"`.
    target : optional
        As captum takes it; neighbours are explained for the target of their example.
    distance, relative, seed, rows_per_call
        As in `shapley_adapters.criteria.measured_sensitivity`.
    **arguments
        Are passed on to `attribute`; none may belong to the examples.

    Returns
    -------
    Sensitivity
        Of arrays.
    """
    drawn = DrawnInputs(inputs, target, forward_func, arguments, [attribute])
    drawn.check(neighbourhood)

    def explain(rows: FloatArray, owners: IntArray) -> FloatArray:
        own = {} if target is None else {"target": drawn.target_of(owners)}
        others = arguments_for(attribute, drawn.arguments)
        return _flat(attribute(drawn.tensor(rows), **own, **others))

    return core.measured_sensitivity(
        explain,
        drawn.predict,
        drawn.rows,
        neighbourhood,
        distance=distance,
        relative=relative,
        seed=seed,
        rows_per_call=rows_per_call,
        with_owners=True,
    )


def _call(
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines,
    target: Target,
    additional: object,
    feature_mask: FeatureMask,
    value_function: ValueFunctionOrName = "raw",
) -> Call:
    method = CoalitionAttribution(forward_func, seed=0, value_function=value_function)
    return method.checked_call(inputs, baselines, target, additional, feature_mask, None)


def _judged(attributions: Attributions, call: Call, of_groups: str) -> tuple[Any, FloatArray]:
    """Return the game, and the attribution of each player, (B, M)."""
    checked_choice("of_groups", of_groups, OF_GROUPS)
    inputs, groups = call.game.inputs, call.game.groups
    arrays = arrays_of("attributions", attributions)
    wanted = [tuple(tensor.shape) for tensor in inputs]
    if [array.shape for array in arrays] != wanted:
        raise InvalidArgumentError(
            f"attributions have shapes {[array.shape for array in arrays]}; those of one output "
            f"have the shapes of the inputs, {wanted}."
        )
    n_rows = len(arrays[0])
    total = np.zeros((n_rows, groups.n_players))
    count = np.zeros((n_rows, groups.n_players))
    rows = np.arange(n_rows)[:, None]
    flat = [array.reshape(n_rows, -1) for array in arrays]
    for own, players in zip(flat, groups.players, strict=True):
        np.add.at(total, (rows, players), own)
        np.add.at(count, (rows, players), 1.0)
    game = call.game if call.valued is None else call.valued
    if of_groups == "sum":
        return game, total
    shared = total / np.maximum(count, 1)
    for own, players in zip(flat, groups.players, strict=True):
        if not np.allclose(shared[rows, players], own, rtol=1e-4, atol=1e-6 * np.abs(own).max()):
            raise InvalidArgumentError(
                "attributions differ within groups of feature_mask. Pass of_groups='sum', which "
                "adds them up."
            )
    return game, shared


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


def _tensor(values: FloatArray) -> Tensor:
    return torch.from_numpy(np.asarray(values))
