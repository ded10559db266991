"""Attribution methods made of an estimator, also of those of other packages."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Unpack

from shapley_adapters.arguments import checked_choice, checked_count, checked_flag
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.estimators.protocol import Estimator
from shapley_adapters.estimators.registered import class_from_estimator
from shapley_adapters.torch_support.array_module import warn_in_training_mode
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..captum_internals import BaselineType, TargetType, TensorOrTupleOfTensorsGeneric
from ..games.model_outputs import OneValueForBatchError
from .call_options import OPTIONS, ByName
from .coalition_attribution import CoalitionAttribution
from .shared_parameters import TEXTS

if TYPE_CHECKING:
    from shapley_adapters.global_importance.losses import LossFunction
    from shapley_adapters.global_importance.result import GlobalImportance


@write_constructor
class SamplingAttribution(CoalitionAttribution):
    """Base of the methods made of an estimator: all but networks."""

    independent_rows: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_flag("independent_rows", self.independent_rows)
        self._estimator()  # refuses options that cannot be used

    @OPTIONS.documented("importance")
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
        n_examples: int | None = None,
        population: bool = False,
        **options: Unpack[ByName],
    ) -> GlobalImportance:
        """Return the importance of each feature over a data set, with standard errors.

        The examples are a sample. Standard errors hold both its randomness and that of the
        coalitions. Each example has random coalitions of its own.

        Parameters
        ----------
        inputs, baselines, target, additional_forward_args, feature_mask
            As in `attribute`.
        kind : {"mean_absolute", "mean", "loss"}
            What is averaged over examples. `"mean_absolute"`: absolute attributions; standard
            errors include the bias by the errors of the examples. `"mean"`: the attributions.
            `"loss"`: by how much a feature lowers the loss of the prediction (SAGE).
        labels : Tensor or array, (B,), optional
            The labels, for `kind="loss"`.
        loss : {"squared_error", "cross_entropy"} or callable, optional
            The loss, for `kind="loss"`. A function of predictions and labels, as NumPy arrays, that
            returns one loss for each. Cross entropy needs a forward function that returns
            probabilities, and labels that are indices of classes.
        n_examples : int, optional
            How many examples to draw at random. By default all.
        population : bool
            Whether the examples are all that there are. Those that are not drawn are then the only
            uncertainty of the sample, and there is none if all are drawn.
        **options
            The options of `attribute`.

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
            If `n_samples` is too small; the message has the minimum.

        Examples
        --------
        >>> import torch
        >>> from captum_ext import RandomOrder
        >>> x = torch.tensor([[1.0, 2.0], [-3.0, 0.0], [2.0, 1.0]])
        >>> method = RandomOrder(lambda x: x[:, 0] - x[:, 1], seed=0)
        >>> method.global_importance(x, population=True).values
        array([2., 1.])
        """
        from shapley_adapters.global_importance.losses import LossGame, check_no_loss, checked_loss
        from shapley_adapters.global_importance.result import TITLES, GlobalImportance

        by_position = {"n_samples": n_samples, "perturbations_per_eval": perturbations_per_eval}
        fields, further = OPTIONS.read("importance", by_position | options)
        checked_choice("kind", kind, tuple(TITLES))
        is_population = checked_flag("population", population)
        call = self.checked_call(
            inputs, baselines, target, additional_forward_args, feature_mask, perturbations_per_eval
        )
        if further["perturbations_per_eval"] is not None:
            fields["batch_size"] = call.game.evaluations_per_batch
        settings = self._settings(call.game, fields)
        game: Any = call.game if call.valued is None else call.valued
        if kind == "loss":
            if target is not None:
                raise InvalidArgumentError(
                    f"target={target!r} selects an output, but kind='loss' needs all of them. "
                    "Leave out target, and pass labels."
                )
            n_rows, array = call.game.n_rows, array_of(labels)
            labelled = checked_loss(loss, array, n_rows, "labels", self.value_function)
            game = LossGame(call.game, labelled)
        else:
            check_no_loss(kind, loss=loss, labels=labels)
        warn_in_training_mode(self.forward_func)
        try:
            return GlobalImportance.from_game(
                game,
                self._estimator(),
                settings,
                kind,
                n_rows=None if n_examples is None else checked_count("n_examples", n_examples),
                is_population=is_population,
            )
        except OneValueForBatchError:
            raise InvalidArgumentError(
                "forward_func returns one value for the whole batch; global_importance needs an "
                "output for each example."
            ) from None


@functools.cache
def attribution_class(estimator: type[Estimator[Any]]) -> type[SamplingAttribution]:
    """Return an attribution method that estimates by an estimator of your own.

    The method has the name of the estimator class, and its options as keyword-only arguments beside
    those that all methods share. It works as the methods of this package do: with budgets,
    tolerances, standard errors, feature masks and baselines. Equal estimator classes give the same
    method.

    Parameters
    ----------
    estimator : type
        A class with the methods of `shapley_adapters.estimators.Estimator`, usually a frozen
        dataclass. To be pickled, it must be importable.

    Returns
    -------
    type
        The attribution method, a subclass of `captum.attr.PerturbationAttribution`.

    Raises
    ------
    InvalidArgumentTypeError
        If it is not the class of an estimator, or its options cannot be passed by name.
    InvalidArgumentError
        If an option has a name that the method uses itself, such as `seed`.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import attribution_class
    >>> from shapley_adapters import RandomOrder  # stands for an estimator of your own
    >>> Method = attribution_class(RandomOrder)
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> method = Method(lambda x: x.sum(1) ** 2, antithetic=True, seed=0)
    >>> method.attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """
    recipe = (attribution_class, (estimator,))
    return class_from_estimator(SamplingAttribution, "", estimator, TEXTS, recipe)
