"""Base of the attribution methods that draw coalitions."""

from __future__ import annotations

from typing import Any

from shapley_adapters.arguments import checked_flag
from shapley_adapters.constructors import write_constructor
from shapley_adapters.global_importance.losses import LossFunction
from shapley_adapters.global_importance.result import GlobalImportance

from ..captum_internals import BaselineType, TargetType, TensorOrTupleOfTensorsGeneric
from .coalition_attribution import CoalitionAttribution


@write_constructor
class SamplingAttribution(CoalitionAttribution):
    """Base of the methods that draw coalitions: all but enumeration and networks."""

    independent_rows: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_flag("independent_rows", self.independent_rows)
        self._estimator()  # refuses options that cannot be used

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
        from ..many_rows.global_importance import global_importance

        return global_importance(
            self,
            inputs,
            baselines,
            target,
            additional_forward_args,
            feature_mask,
            n_samples,
            perturbations_per_eval,
            kind=kind,
            labels=labels,
            loss=loss,
            tolerance=tolerance,
            total_samples=total_samples,
            n_examples=n_examples,
            population=population,
            show_progress=show_progress,
        )
