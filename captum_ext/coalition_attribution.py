"""What all attribution classes share: captum's arguments in, tensors out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias

from captum.attr import PerturbationAttribution
from torch import Tensor

from shapley_adapters import Estimate, PlayerGraph, Settings, estimate
from shapley_adapters.arguments import checked_count, checked_flag, checked_seed
from shapley_adapters.array_types import AttributionArray, ScoreArray
from shapley_adapters.designs import Estimator
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.tolerances import checked_tolerance
from shapley_adapters.torch_modules import warn_in_training_mode
from shapley_adapters.value_functions import checked_value_function

from .captum_internals import (
    BaselineType,
    TargetType,
    TensorOrTupleOfTensorsGeneric,
    counted_usage,
)
from .class_values import ClassValueGame, class_value_game
from .feature_groups import from_feature_mask
from .forward_function_game import BatchGame, ForwardFunctionGame, OneValueForBatchError
from .inputs import checked_baselines, checked_inputs, checked_target
from .tensor_results import as_tensors


class CoalitionAttribution(PerturbationAttribution):  # type: ignore[misc] # captum is untyped
    """Base of the attribution methods that evaluate coalitions of features.

    Attributes
    ----------
    seed : int
        Seed of all random choices, drawn from the operating system where none was given. Each call
        of `attribute` starts from it, so that equal calls give equal attributions.
    last_estimate : Estimate or None
        What the latest call of `attribute` estimated and spent, in terms of players.
    """

    last_estimate: Estimate | None

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
    ) -> None:
        if not callable(forward_func):
            raise InvalidArgumentTypeError(
                f"forward_func must be callable; got {type(forward_func).__name__}."
            )
        super().__init__(forward_func)
        self.seed = checked_seed(seed)
        checked_value_function(value_function)
        self.value_function = value_function
        self.last_estimate = None

    def _estimator(self) -> Estimator[Any]:
        """Return the estimator with the options of this object."""
        raise NotImplementedError

    def _cooperators(self) -> str | ScoreArray | None:
        return None

    def _graph(self, game: ForwardFunctionGame) -> PlayerGraph | list[PlayerGraph] | None:
        """Return the graph of the players, for estimators that need one."""
        del game
        return None

    @counted_usage
    def attribute(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        baselines: BaselineType = None,
        target: TargetType = None,
        additional_forward_args: object = None,
        feature_mask: TensorOrTupleOfTensorsGeneric | None = None,
        n_samples: int | None = None,
        perturbations_per_eval: int | None = None,
        return_standard_error: bool = False,
        show_progress: bool = False,
        tolerance: float | str | None = None,
    ) -> Any:
        """Attribute the output of the forward function to its inputs.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensors
            The inputs; the first dimension counts the B examples.
        baselines : scalar, Tensor, tuple of them, or callable, optional
            Values of absent features. A number; a tensor with one row, or with one for each
            example; or a distribution, with any other number of rows or marked by
            `BaselineDistribution`: then the output is averaged over the rows, and an evaluation
            costs a row of the forward function for each of them. A callable is called once, with
            the inputs if it takes an argument, and may return any of these. Zero by default.
        target : int, tuple, Tensor or list, optional
            Which output to explain, in any of captum's forms. Without it, all outputs are
            explained at once.
        additional_forward_args : any, optional
            Further arguments of the forward function. Tensors whose first dimension is B follow
            their example; all others go in as they are.
        feature_mask : Tensor or tuple of Tensors, optional
            Whole numbers that say which features go together, across tensors, too. By default each
            number of an example is a feature.
        n_samples : int, optional
            The budget: how many coalitions are evaluated for each example. By default 16 a
            feature, at least 500; where it pays for all 2^M coalitions, the result is exact.
        perturbations_per_eval : int, optional
            How many masked copies of all examples go into one forward pass at most. By default
            the first batches are timed, and batches grow as long as this saves time.
        return_standard_error : bool
            Whether to return the standard errors, too.
        show_progress : bool
            Whether to show a progress bar.
        tolerance : float or str, optional
            The standard error at which an example needs no further evaluations: a number in units
            of the output, or a percentage of the distance between the example's largest and
            smallest attribution, as in `"1%"`. `n_samples` stays the limit, by default twenty times
            as high; examples that reach it first are warned of.

        Returns
        -------
        Tensor or tuple of Tensors
            Attributions with the shape, type and device of the inputs. Outputs of several
            dimensions come first: (B, output shape, shape of an example). If the forward
            function returns one value for the batch, the first dimension is 1. All features of a
            group get the attribution of the group.
        Tensor or tuple of Tensors
            With `return_standard_error`, the standard errors in the same form.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used; the message names it.
        BudgetError
            If `n_samples` is too small for the method; the message says what it needs.
        NonFiniteValueError
            If the forward function returns NaN or an infinite number.
        """
        call = self.checked_call(
            inputs, baselines, target, additional_forward_args, feature_mask, perturbations_per_eval
        )
        checked_flag("return_standard_error", return_standard_error)
        settings = Settings(
            seed=self.seed,
            budget=None if n_samples is None else checked_count("n_samples", n_samples),
            cooperators=self._cooperators(),
            with_errors=return_standard_error,
            tolerance=checked_tolerance(tolerance),
            progress_delay=0.0 if checked_flag("show_progress", show_progress) else None,
            name=self.get_name(),
            budget_name="n_samples",
        )
        settings = replace(settings, graph=self._graph(call.game))
        warn_in_training_mode(self.forward_func)
        game, result = call.estimate(self._estimator(), settings)
        self.last_estimate = result
        attributions = call.formatted(game, result.values)
        if not return_standard_error:
            return attributions
        return attributions, call.formatted(game, result.standard_errors)

    def attribute_future(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse: forward functions that return futures are not supported."""
        raise NotImplementedError(f"attribute_future is not implemented for {self.get_name()}.")

    def checked_call(
        self,
        inputs: Any,
        baselines: Any,
        target: Any,
        additional: Any,
        feature_mask: Any,
        perturbations_per_eval: int | None,
    ) -> Call:
        """Return the games of a call of `attribute`, its arguments checked."""
        tensors = checked_inputs(inputs)
        target = checked_target(target, len(tensors[0]))
        value_function = checked_value_function(self.value_function)
        if additional is None:
            additional = ()
        if perturbations_per_eval is not None:
            checked_count("perturbations_per_eval", perturbations_per_eval)
        game = ForwardFunctionGame(
            forward_func=self.forward_func,
            inputs=tensors,
            baselines=checked_baselines(baselines, tensors, inputs),
            groups=from_feature_mask(feature_mask, tensors),
            target=target if value_function.is_raw else None,
            additional_forward_args=additional if isinstance(additional, tuple) else (additional,),
            perturbations_per_eval=perturbations_per_eval,
        )
        valued = None if value_function.is_raw else class_value_game(game, value_function, target)
        return Call(game, valued, isinstance(inputs, tuple))


_AnyGame: TypeAlias = ForwardFunctionGame | ClassValueGame | BatchGame


@dataclass(frozen=True)
class Call:
    """One call of `attribute`, its arguments checked; with what is made of its outputs, if any."""

    game: ForwardFunctionGame
    valued: ClassValueGame | None
    is_tuple: bool

    def estimate(self, estimator: Estimator[Any], settings: Settings) -> tuple[_AnyGame, Estimate]:
        """Estimate for each example, or for the batch where it has only one value."""
        is_given = self.game.perturbations_per_eval is not None
        batch_size = self.game.evaluations_per_batch if is_given else None
        batched = replace(settings, batch_size=batch_size)
        game: _AnyGame = self.game if self.valued is None else self.valued
        try:
            return game, estimate(game, estimator, batched)
        except OneValueForBatchError:
            game = self._batch_game()
            return game, estimate(game, estimator, settings)

    def formatted(
        self, game: _AnyGame, per_player: AttributionArray
    ) -> Tensor | tuple[Tensor, ...]:
        """Return amounts of players in the container of the inputs."""
        tensors = as_tensors(
            per_player, self.game.groups, self.game.inputs, game.output_shape, game.output_dtype
        )
        return tensors if self.is_tuple else tensors[0]

    def _batch_game(self) -> BatchGame:
        if self.valued is not None:
            raise InvalidArgumentError(
                f"value_function={self.valued.value_function.kind!r} needs an output for each "
                "class and example, but forward_func returns one value for the whole batch."
            )
        if self.game.perturbations_per_eval not in (None, 1):
            raise InvalidArgumentError(
                "perturbations_per_eval must be 1 where forward_func returns one value for the "
                f"whole batch; got {self.game.perturbations_per_eval}."
            )
        if self.game.groups.differ_by_example:
            raise InvalidArgumentError(
                "feature_mask must be the same for all examples (first dimension 1) where "
                "forward_func returns one value for the whole batch."
            )
        if self.game.target is not None:
            raise InvalidArgumentError(
                "target must be None where forward_func returns one value for the whole batch; "
                f"got {self.game.target!r}."
            )
        return BatchGame(self.game)
