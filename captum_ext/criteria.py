"""Criteria of captum's attributions: complexity, sensitivity, faithfulness and accuracy.

Attributions have the shape of the inputs, a tensor or a tuple of tensors. Criteria are tensors with
one number per example, (B,), in double precision. `infidelity` is captum's function.
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
from shapley_adapters.criteria import (
    CoalitionErrors,
    Curve,
    Neighbourhood,
    Sensitivity,
    fit_errors,
)
from shapley_adapters.criteria.sensitivity import Distance
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.games.value_functions import ValueFunctionOrName, checked_log_probability

from .aggregates.base_explainers import DrawnInputs, arguments_for, arrays_of
from .argument_types import Attributions, Baselines, FeatureMask, ForwardFunction, Inputs, Target
from .attributions.coalition_attribution import AttributeCall, CoalitionAttribution
from .conditional import ConditionalBaselines

__all__ = [
    "CoalitionErrors",
    "Curve",
    "Neighbourhood",
    "Sensitivity",
    "absolute_error",
    "complexity",
    "deletion_curve",
    "energy_score",
    "faithfulness",
    "fit_errors",
    "infidelity",
    "insertion_curve",
    "masked_log_odds",
    "monotonicity",
    "mse_v",
    "ranking_accuracy",
    "sensitivity",
]

OF_GROUPS = ("shared", "sum")


def complexity(attributions: Attributions) -> Tensor:
    """Return the entropy of the features' shares, in nats; lower is simpler.

    See `shapley_adapters.criteria.attribution_arrays`.

    Examples
    --------
    >>> import torch
    >>> from captum_ext.criteria import complexity
    >>> complexity(torch.tensor([[1.0, -1.0], [3.0, 0.0]])).round(decimals=3)
    tensor([0.6930, 0.0000], dtype=torch.float64)
    """
    return _tensor(core.complexity(_flat(attributions)))


def absolute_error(attributions: Attributions, exact: Attributions) -> Tensor:
    """Return the sum of the absolute errors of all features; lower is better."""
    return _tensor(core.absolute_error(_flat(attributions), _flat(exact)))


def ranking_accuracy(
    attributions: Attributions, exact: Attributions, *, order: str = "value"
) -> Tensor:
    """Return the share of ranks that are right, where rank m has the weight 1/m.

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
    """Return how well sums of attributions correlate with losses of output; higher is better.

    See `shapley_adapters.criteria.faithfulness`, also for the other parameters.

    Parameters
    ----------
    attributions : Tensor or tuple of Tensors
        Attributions of one output, in the shape of the inputs.
    forward_func, inputs, baselines, target, additional_forward_args, feature_mask
        As in captum's methods.
    of_groups : {"shared", "sum"}
        How to compute the attribution of a group of `feature_mask`. `"shared"`: all features of the
        group have the same number, as perturbation methods return it. `"sum"`: the sum over the
        group's features, for methods without groups.
    """
    game, values = _judged(
        attributions,
        _call(forward_func, inputs, baselines, target, additional_forward_args, feature_mask),
        of_groups,
    )
    correlations = core.faithfulness(
        values, game, subset_size=subset_size, n_subsets=n_subsets, seed=seed
    )
    return _tensor(correlations)


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
    """Return how often a feature adds no more than the feature before it; higher is better.

    See `shapley_adapters.criteria.monotonicity`, and `faithfulness` for the parameters.
    """
    call = _call(forward_func, inputs, baselines, target, additional_forward_args, feature_mask)
    game, values = _judged(attributions, call, of_groups)
    return _tensor(core.monotonicity(values, game))


def mse_v(
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = None,
    target: Target = None,
    additional_forward_args: object = None,
    feature_mask: FeatureMask = None,
    *,
    n_coalitions: int = 200,
    seed: int | None = 0,
) -> CoalitionErrors:
    """Return how well values of coalitions predict the output; lower is better.

    Compares baselines, such as distributions of absent features: see
    `shapley_adapters.criteria.mse_v`, also for the other parameters.

    Parameters
    ----------
    forward_func, inputs, baselines, target, additional_forward_args, feature_mask
        As in captum's methods. The inputs should be examples that the distribution was not fitted
        to.
    """
    call = _call(forward_func, inputs, baselines, target, additional_forward_args, feature_mask)
    return core.mse_v(call.game, n_coalitions=n_coalitions, seed=seed)


def energy_score(
    inputs: Tensor,
    baselines: ConditionalBaselines,
    *,
    n_coalitions: int = 200,
    seed: int | None = 0,
) -> CoalitionErrors:
    """Return how well a distribution's draws predict absent features; lower is better.

    See `shapley_adapters.criteria.energy_score`, also for the other parameters.

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
    return core.energy_score(rows, baselines.draws.drawn, n_coalitions=n_coalitions, seed=seed)


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
    """Return the curve of the output while features join, the largest attributions first.

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
    """Return the curve of the output while features leave, the largest attributions first.

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
        For the class `target`, by default the class that the model predicts.
    """
    log_probability = checked_log_probability(value_function)
    call = _call(
        forward_func,
        inputs,
        baselines,
        target,
        additional_forward_args,
        feature_mask,
        log_probability,
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
    drawn_inputs = DrawnInputs(inputs, target, forward_func, arguments, [attribute])
    drawn_inputs.check(neighbourhood)

    def explain(rows: FloatArray, owners: IntArray) -> FloatArray:
        targets = {} if target is None else {"target": drawn_inputs.target_of(owners)}
        further = arguments_for(attribute, drawn_inputs.arguments)
        return _flat(attribute(drawn_inputs.tensor(rows), **targets, **further))

    return core.measured_sensitivity(
        explain,
        drawn_inputs.predict,
        drawn_inputs.rows,
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
) -> AttributeCall:
    method = CoalitionAttribution(forward_func, seed=0, value_function=value_function)
    return method.checked_call(inputs, baselines, target, additional, feature_mask, None)


def _judged(
    attributions: Attributions, call: AttributeCall, of_groups: str
) -> tuple[Any, FloatArray]:
    """Return the game, and the attribution of each player, (B, M)."""
    checked_choice("of_groups", of_groups, OF_GROUPS)
    inputs, groups = call.game.inputs, call.game.groups
    arrays = arrays_of("attributions", attributions)
    input_shapes = [tuple(tensor.shape) for tensor in inputs]
    if [array.shape for array in arrays] != input_shapes:
        raise InvalidArgumentError(
            f"attributions have shapes {[array.shape for array in arrays]}; attributions of one "
            f"output must have the shapes of the inputs, {input_shapes}."
        )
    n_rows = len(arrays[0])
    total = np.zeros((n_rows, groups.n_players))
    count = np.zeros((n_rows, groups.n_players))
    rows = np.arange(n_rows)[:, None]
    flat = [array.reshape(n_rows, -1) for array in arrays]
    for values, players in zip(flat, groups.players, strict=True):
        np.add.at(total, (rows, players), values)
        np.add.at(count, (rows, players), 1.0)
    game = call.game if call.valued is None else call.valued
    if of_groups == "sum":
        return game, total
    shared = total / np.maximum(count, 1)
    for values, players in zip(flat, groups.players, strict=True):
        rounding = 1e-6 * np.abs(values).max()
        if not np.allclose(shared[rows, players], values, rtol=1e-4, atol=rounding):
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
