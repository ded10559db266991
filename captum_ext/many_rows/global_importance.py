"""Global importance of features, by an attribution method."""

from __future__ import annotations

from typing import Any

import numpy as np

from shapley_adapters import Settings
from shapley_adapters.arguments import checked_count, checked_flag, checked_seed
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.games.value_functions import checked_value_function
from shapley_adapters.global_importance.estimate_importance import estimate_importance
from shapley_adapters.global_importance.losses import (
    LossFunction,
    LossGame,
    check_no_loss,
    checked_loss,
    checked_plan,
)
from shapley_adapters.global_importance.result import GlobalImportance
from shapley_adapters.torch_support.array_module import warn_in_training_mode
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..argument_types import Baselines, FeatureMask, Inputs, Target
from ..games.model_outputs import OneValueForBatchError


def global_importance(
    method: Any,
    inputs: Inputs,
    baselines: Baselines,
    target: Target,
    additional_forward_args: object,
    feature_mask: FeatureMask,
    n_samples: int | None,
    perturbations_per_eval: int | None,
    *,
    kind: str,
    labels: Any,
    loss: str | LossFunction | None,
    tolerance: float | str | None,
    total_samples: int | None,
    n_examples: int | None,
    population: bool,
    show_progress: bool,
) -> GlobalImportance:
    """Return the importance of each feature over a data set; see `SamplingAttribution`."""
    plan = checked_plan(
        kind=kind,
        n_rows=n_examples,
        tolerance=tolerance,
        total=total_samples,
        population=population,
        total_name="total_samples",
    )
    call = method.checked_call(
        inputs, baselines, target, additional_forward_args, feature_mask, perturbations_per_eval
    )
    settings = Settings(
        seed=checked_seed(method.seed),
        budget=None if n_samples is None else checked_count("n_samples", n_samples),
        batch_size=None if perturbations_per_eval is None else call.game.evaluations_per_batch,
        graph=method._graph(call.game) if method.has_graph else None,
        n_jobs=method.n_jobs,
        progress_delay=0.0 if checked_flag("show_progress", show_progress) else None,
        name=method.get_name(),
        budget_name="n_samples",
    )
    game: Any = call.game if call.valued is None else call.valued
    if plan.kind == "loss":
        game = _loss_game(method, call, target, loss, labels)
    else:
        check_no_loss(plan.kind, loss=loss, labels=labels)
    warn_in_training_mode(method.forward_func)
    try:
        result = estimate_importance(game, method._estimator(), settings, plan)
    except OneValueForBatchError:
        raise InvalidArgumentError(
            "forward_func returns one value for the whole batch; global_importance needs an "
            "output for each example."
        ) from None
    return GlobalImportance.from_estimate(result, plan.kind, None, None, settings.seed)


def _loss_game(
    method: Any, call: Any, target: Target, loss: str | LossFunction | None, labels: Any
) -> LossGame:
    """Return the game of the loss of the averaged output."""
    if target is not None:
        raise InvalidArgumentError(
            f"target={target!r} selects an output, but kind='loss' needs all of them. Leave "
            "out target, and pass labels."
        )
    if not checked_value_function(method.value_function).is_raw:
        raise InvalidArgumentError(
            f"value_function={method.value_function!r} is used for the output, but kind='loss' "
            "explains the loss of the output itself. Leave out value_function."
        )
    array = None if labels is None else np.asarray(array_of(labels))
    return LossGame(call.game, checked_loss(loss, array, call.game.n_rows, "labels"))
