"""Global importance of features, by an attribution method."""

from __future__ import annotations

from typing import Any

import numpy as np

from shapley_adapters import Settings
from shapley_adapters.arguments import checked_count, checked_flag, checked_seed
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.games.value_functions import checked_value_function
from shapley_adapters.global_importance.estimate_importance import estimate_importance
from shapley_adapters.global_importance.loss_game import LossGame
from shapley_adapters.global_importance.losses import LossFunction, checked_loss
from shapley_adapters.global_importance.requests import check_no_loss, checked_plan
from shapley_adapters.global_importance.result import GlobalImportance
from shapley_adapters.torch_support.array_module import warn_in_training_mode
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..captum_internals import BaselineType, TargetType, TensorOrTupleOfTensorsGeneric
from ..games.model_outputs import OneValueForBatchError
from .coalition_attribution import AttributeCall, CoalitionAttribution


@write_constructor
class ImportanceAttribution(CoalitionAttribution):
    """Base of the methods that give the importance of features over a data set."""

    def global_importance(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        baselines: BaselineType = None,
        target: TargetType = None,
        additional_forward_args: object = None,
        feature_mask: TensorOrTupleOfTensorsGeneric | None = None,
        n_samples: int | None = None,
        perturbations_per_eval: int | None = None,
        *,
        kind: str = "mean_absolute",
        labels: Any = None,
        loss: str | LossFunction | None = None,
        tolerance: float | str | None = None,
        total_samples: int | None = None,
        n_examples: int | None = None,
        population: bool = False,
        show_progress: bool = False,
    ) -> GlobalImportance:
        """Return the importance of each feature over a data set, with standard errors.

        The examples are a sample. Standard errors hold both its randomness and that of the
        coalitions. Each example has random coalitions of its own.

        Parameters
        ----------
        inputs, baselines, target, additional_forward_args, feature_mask
            As in `attribute`. A smaller number of examples is drawn at random with `n_examples`,
            `tolerance` or `total_samples`.
        n_samples : int, optional
            Evaluations per example. By default `tolerance` or `total_samples` choose it; without
            both it is that of `attribute`.
        perturbations_per_eval, show_progress
            As in `attribute`.
        kind : {"mean_absolute", "mean", "loss"}
            What is averaged over examples. `"mean_absolute"`: absolute attributions, corrected for
            the bias by the errors of the examples. `"mean"`: the attributions. `"loss"`: by how
            much a feature lowers the loss of the prediction (SAGE).
        labels : Tensor or array, (B,), optional
            The labels, for `kind="loss"`.
        loss : {"squared_error", "cross_entropy"} or callable, optional
            The loss, for `kind="loss"`. A function of predictions and labels, as NumPy arrays, that
            returns one loss for each. Cross entropy needs a forward function that returns
            probabilities, and labels that are indices of classes.
        tolerance : float or str, optional
            The largest standard error allowed: a number in units of the result, or a percentage of
            the distance between the largest and the smallest importance, as in `"2%"`. A pilot
            sample chooses examples and evaluations per example; examples are added until it is
            reached.
        total_samples : int, optional
            Evaluations for all examples together. A pilot sample chooses how to divide them.
        n_examples : int, optional
            How many examples to draw; with `tolerance`, at most. By default all.
        population : bool
            Whether the examples are all that there are. Those that are not drawn are then the only
            uncertainty of the sample, and there is none if all are drawn.

        Returns
        -------
        GlobalImportance
            `values`, `standard_errors`, `interval()`, `to_frame()`, `plot()`: a number for each
            feature of the feature mask, in the order of their ids. Without a mask, features are the
            numbers of an example, those of all inputs one after the other.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used; the message names it.
        BudgetError
            If `n_samples` or `total_samples` is too small; the message has the minimum.

        Examples
        --------
        >>> import torch
        >>> from captum_ext import RandomOrder
        >>> x = torch.tensor([[1.0, 2.0], [-3.0, 0.0], [2.0, 1.0]])
        >>> method = RandomOrder(lambda x: x[:, 0] - x[:, 1], seed=0)
        >>> method.global_importance(x, population=True).values
        array([2., 1.])
        """
        plan = checked_plan(
            kind=kind,
            n_rows=n_examples,
            tolerance=tolerance,
            total=total_samples,
            population=population,
            total_name="total_samples",
        )
        call = self.checked_call(
            inputs, baselines, target, additional_forward_args, feature_mask, perturbations_per_eval
        )
        settings = Settings(
            seed=checked_seed(self.seed),
            budget=None if n_samples is None else checked_count("n_samples", n_samples),
            batch_size=None if perturbations_per_eval is None else call.game.evaluations_per_batch,
            graph=self._graph(call.game),
            n_jobs=self.n_jobs,
            progress_delay=0.0 if checked_flag("show_progress", show_progress) else None,
            name=self.get_name(),
            budget_name="n_samples",
        )
        game: Any = call.game if call.valued is None else call.valued
        if plan.kind == "loss":
            game = self._loss_game(call, target, loss, labels)
        else:
            check_no_loss(plan.kind, loss=loss, labels=labels)
        warn_in_training_mode(self.forward_func)
        try:
            result = estimate_importance(game, self._estimator(), settings, plan)
        except OneValueForBatchError:
            raise InvalidArgumentError(
                "forward_func returns one value for the whole batch; global_importance needs an "
                "output for each example."
            ) from None
        return GlobalImportance.of(result, plan.kind, None, None, settings.seed)

    def _loss_game(self, call: AttributeCall, target: Any, loss: Any, labels: Any) -> LossGame:
        """Return the game of the loss of the averaged output."""
        if target is not None:
            raise InvalidArgumentError(
                f"target={target!r} selects an output, but kind='loss' needs all of them. Leave "
                "out target, and pass labels."
            )
        if not checked_value_function(self.value_function).is_raw:
            raise InvalidArgumentError(
                f"value_function={self.value_function!r} is used for the output, but kind='loss' "
                "explains the loss of the output itself. Leave out value_function."
            )
        array = None if labels is None else np.asarray(array_of(labels))
        return LossGame(call.game, checked_loss(loss, array, call.game.n_rows, "labels"))
