"""Base of all attribution classes: it checks captum's arguments and returns tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, Unpack, cast

from captum.attr import PerturbationAttribution
from torch import Tensor

from shapley_adapters import Estimate, Settings, estimate
from shapley_adapters.arguments import checked_count, checked_seed
from shapley_adapters.array_types import AttributionArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.estimators.protocol import Estimator
from shapley_adapters.games.value_functions import ValueFunctionOrName, checked_value_function
from shapley_adapters.graphs.causal_graph import read_causal_graph
from shapley_adapters.graphs.reading import Structure
from shapley_adapters.interactions.result import (
    InteractionRequest,
    SemivalueIndex,
    SetInteractions,
    checked_semivalues,
    checked_sets,
)
from shapley_adapters.pipeline.estimate import NO_BUDGET_OF_NETWORKS, budget_of
from shapley_adapters.pipeline.run import CallBudget
from shapley_adapters.pipeline.settings import fewer_players
from shapley_adapters.torch_support.array_module import warn_in_training_mode
from shapley_adapters.workers import checked_n_jobs

from ..argument_types import Baselines, FeatureMask, ForwardFunction, Inputs, Target
from ..captum_internals import BaselineType, TargetType, TensorOrTupleOfTensorsGeneric
from ..conditional import ConditionalBaselines
from ..games.batch_game import BatchGame, ClassValueGame, class_value_game
from ..games.conditional_game import ConditionalGame
from ..games.forward_function_game import CALLS_IN_FLIGHT, ForwardFunctionGame
from ..games.model_outputs import OneValueForBatchError
from ..inputs.baselines import checked_baselines
from ..inputs.checks import checked_inputs, checked_target
from ..inputs.feature_groups import from_feature_mask
from ..inputs.forward_arguments import checked_additional
from ..results.tensor_results import as_group_tensor, as_tensors
from .attribute_methods import (
    NamedAttribution,
    attribute_method,
    future_method,
    graph_of_inputs,
    trees_of_inputs,
)
from .call_options import OPTIONS, AttributeOptions, ByName

if TYPE_CHECKING:
    from shapley_adapters.batch_function import BatchFunction

    from ..results.tensor_results import StreamedAttributions


_AnyGame: TypeAlias = ForwardFunctionGame | ClassValueGame | BatchGame


@write_constructor
class CoalitionAttribution(NamedAttribution, PerturbationAttribution):  # type: ignore[misc] # captum is untyped
    """Base of the attribution methods that evaluate coalitions of features.

    Attributes
    ----------
    seed : int
        Seed of all random choices, drawn from the operating system where none was given. Each call
        of `attribute` starts from it, so that equal calls give equal attributions.
    last_estimate : Estimate or None
        The estimate of the latest call of `attribute`, per player, and its number of evaluations.
    """

    independent_rows = False
    # Set by `options_from`.
    name: ClassVar[str] = ""
    structure: ClassVar[str | None] = None
    _make: ClassVar[Callable[..., Estimator[Any]]]
    _option_names: ClassVar[tuple[str, ...]] = ()
    _evaluates_coalitions = True
    # Of the copy of a call of `interactions`, whose `attribute` reads it.
    _interactions: ClassVar[InteractionRequest | None] = None
    _results: ClassVar[tuple[str, ...]] = ("last_estimate",)
    _calls_in_flight = 0

    forward_func: ForwardFunction = field(kw_only=False)
    seed: int | None = None
    value_function: ValueFunctionOrName = "raw"
    n_jobs: int | None = None
    last_estimate: Estimate | None = field(default=None, init=False)
    _drawn_seed: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if isinstance(self.forward_func, type):
            raise InvalidArgumentTypeError(
                "forward_func must be a function or a module; got the class "
                f"{self.forward_func.__name__}. Pass an object of the class."
            )
        if not callable(self.forward_func):
            raise InvalidArgumentTypeError(
                f"forward_func must be callable; got {type(self.forward_func).__name__}."
            )
        super().__init__(self.forward_func)
        given_seed, self.seed = self.seed, checked_seed(self.seed)
        self._drawn_seed = self.seed if given_seed is None else None
        checked_value_function(self.value_function)
        checked_n_jobs(self.n_jobs)

    def _estimator(self) -> Estimator[Any]:
        """Return the estimator with the options of this object."""
        return self._make(**{name: getattr(self, name) for name in self._option_names})

    def _graph(self, game: ForwardFunctionGame) -> Structure | Sequence[Structure] | None:
        """Return the graph or hierarchy of the players, for methods with a structure."""
        options: Any = self
        if self.structure == "hierarchy":
            return trees_of_inputs(options.hierarchy, game)
        if self.structure == "causes":
            return read_causal_graph(options.order, options.graph, game.n_players)
        if self.structure == "distances" and options.graph is None:
            return None
        return graph_of_inputs(options.graph, game)

    @attribute_method
    @OPTIONS.documented("call")
    def attribute(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        baselines: BaselineType = None,
        target: TargetType = None,
        additional_forward_args: object = None,
        feature_mask: TensorOrTupleOfTensorsGeneric | None = None,
        n_samples: int | None = None,
        perturbations_per_eval: int | None = None,
        **options: Unpack[ByName],
    ) -> Any:
        """Attribute the output of the forward function to its inputs.

        The arguments up to `perturbations_per_eval` have captum's order. captum's classes differ in
        the order of the others, which must be passed by name.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensors
            The inputs; the first dimension counts the B examples.
        baselines : scalar, Tensor, tuple of them, or callable, optional
            Values of absent features. A number; a tensor with one row, or with one row per example;
            or a distribution: a tensor with any other number of rows, or marked by
            `BaselineDistribution`. For a distribution, the output is averaged over its rows, and an
            evaluation runs the forward function once per row. A callable is called once, with the
            inputs if it takes an argument, and may return any of these. Zero by default.
        target : int, tuple, Tensor, list or function, optional
            The output to explain, in any of captum's forms. A function gets the outputs, (P, …),
            of P rows, and returns what is explained, (P,) or (P, …), such as a difference of two
            classes: `lambda outputs: outputs[:, 3] - outputs[:, 5]`. Without a target, all outputs
            are explained at once.
        additional_forward_args : any, optional
            Further arguments of the forward function. Tensors whose first dimension is B have one
            entry per example. All others are passed unchanged, and so are arguments marked by
            `Shared`. Mark by `PerExample` lists, tuples and dicts that hold one entry per example,
            and whole numbers of shape (2, L) for two examples whose columns could be edges.
        feature_mask : Tensor or tuple of Tensors, optional
            Whole numbers, equal for the elements of one feature, also across tensors. By default
            each element of an example is a feature.
        **options
            The options of the call.

        Returns
        -------
        Tensor or tuple of Tensors
            Attributions with the shape and device of the inputs, in the widest of float32 and the
            types of the inputs and the output. Outputs of several dimensions come first:
            (B, output shape, shape of an example). If the forward function returns one value for
            the batch, the first dimension is 1; if it returns a tensor for the batch, with
            `perturbations_per_eval=1`, attributions have the shape
            (output shape, shape of an example). All features of a group get the attribution of the
            group. With `return_input_shape=False`, one tensor whose last dimension has a column for
            each id of the feature mask, from the smallest to the largest; an id that is missing
            gets 0.
        Tensor or tuple of Tensors
            With `return_standard_error`, the standard errors in the same form.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used; the message names it.
        BudgetError
            If `n_samples` or `max_seconds` is too small for the method; the message names the
            minimum.
        NonFiniteValueError
            If the forward function returns NaN or an infinite number.
        ModelOutputError
            If the forward function returns neither one output per example nor one for the batch.
        """
        call = self.checked_call(
            inputs, baselines, target, additional_forward_args, feature_mask, perturbations_per_eval
        )
        by_position = {"n_samples": n_samples, "perturbations_per_eval": perturbations_per_eval}
        fields, further = OPTIONS.read("call", by_position | options)
        if not further["return_input_shape"]:
            call.game.groups.check_columns()
        if further["perturbations_per_eval"] is not None:
            fields["batch_size"] = call.game.evaluations_per_batch
        settings = self._settings(call.game, fields, interactions=self._interactions)
        warn_in_training_mode(self.forward_func)
        estimator = self._estimator()
        game: _AnyGame = call.game if call.valued is None else call.valued
        try:
            result = estimate(game, estimator, settings)
        except OneValueForBatchError:
            game = call.batch_game()
            result = estimate(game, estimator, settings)
        self.last_estimate = result
        attributions = call.formatted(game, result.values, further["return_input_shape"])
        if not settings.with_errors:
            return attributions
        errors = call.formatted(game, result.standard_errors, further["return_input_shape"])
        return attributions, errors

    attribute_future = future_method(attribute)

    def _settings(
        self, game: ForwardFunctionGame, fields: dict[str, Any], **further: Any
    ) -> Settings:
        """Return the settings of a call whose options gave `fields`."""
        is_image = game.groups.is_plain and game.inputs[0].ndim == 4  # (N, C, H, W)
        shape = tuple(game.inputs[0].shape[1:]) if is_image else ()
        superpixels = "feature_mask=captum_ext.superpixels(inputs, 50)"
        return Settings(
            seed=cast("int", self.seed),  # drawn by the constructor
            graph=self._graph(game) if self.structure else None,
            independent_rows=self.independent_rows,
            n_jobs=self.n_jobs,
            name=self.get_name(),
            budget_name="n_samples",
            fewer_players=getattr(
                self.forward_func,
                "fewer_players",
                fewer_players(game.n_players, shape, superpixels),
            ),
            **fields,
            **further,
        )

    @OPTIONS.documented("budget")
    def budget_of(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        baselines: BaselineType = None,
        target: TargetType = None,
        additional_forward_args: object = None,
        feature_mask: TensorOrTupleOfTensorsGeneric | None = None,
        n_samples: int | None = None,
        **options: Unpack[ByName],
    ) -> CallBudget:
        """Return how many evaluations and rows of the forward function `attribute` takes at most.

        The forward function is not called; it must return an output for each example. Where it
        costs money, a call costs the sum of the rows times the price of a row.

        Parameters
        ----------
        inputs, baselines, target, additional_forward_args, feature_mask
            As in `attribute`.
        **options
            The options that decide the budget.

        Returns
        -------
        named tuple
            `evaluations` and `model_rows` of each example, (B,): evaluations times rows of the
            distribution of baselines. At most 5 % more, or four, look for random answers. Without
            `n_samples`, `Best` may evaluate all coalitions instead, where that
            takes less time.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError, BudgetError
            If the call would refuse an argument, or if a network explains.

        Examples
        --------
        >>> import torch
        >>> from captum_ext import OddGP
        >>> OddGP(lambda x: x[:, 0] ** 2).budget_of(torch.ones(3, 20), n_samples=100).model_rows
        array([100, 100, 100])
        """
        if not self._evaluates_coalitions:
            raise InvalidArgumentError(NO_BUDGET_OF_NETWORKS)
        call = self.checked_call(
            inputs, baselines, target, additional_forward_args, feature_mask, None
        )
        fields, _ = OPTIONS.read("budget", {"n_samples": n_samples, **options})
        settings = self._settings(call.game, fields)
        game: _AnyGame = call.game if call.valued is None else call.valued
        return budget_of(game, self._estimator(), settings)

    @OPTIONS.documented("batch")
    def batch_function(
        self,
        example: Any,
        *,
        features: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        prefix: str = "attribution_",
        baselines: BaselineType = None,
        target: TargetType = None,
        **options: Unpack[AttributeOptions],
    ) -> BatchFunction:
        """Return a function from a batch of a table to a batch of attributions.

        For models of tables, and engines that own the data: `mapInPandas` of Spark,
        `map_partitions` of Dask and `map_batches` of Ray Data. The function can be pickled, and its
        columns are known beforehand. Each process loads the model once.

        Parameters
        ----------
        example : DataFrame or pyarrow.Table
            A batch of at least one row, such as `table.head(1)`. Its first row is explained once.
        features : sequence of str, optional
            The columns of the input, in the model's order; by default all that are not kept.
        keep : sequence of str
            Columns that are copied to the result, such as an identifier.
        prefix : str
            The beginning of the names of the new columns.
        baselines, target
            As in `attribute`; the same for all rows.
        return_standard_error : bool
            Whether the result has columns of standard errors.
        **options
            The options of `attribute`.

        Returns
        -------
        BatchFunction
            Its result has the kept columns, a column `attribution_<feature>` per feature,
            `attribution_error_<feature>` with `return_standard_error`, and
            `attribution_base_value`. For several outputs, names end with `_<index>`.
        """
        from ..streams import batch_function

        OPTIONS.read("batch", options)
        arguments = {"baselines": baselines, "target": target, **options}
        return batch_function(self, example, features, keep, prefix, arguments)

    @OPTIONS.documented("interactions", like=attribute)
    def interactions(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        *arguments: Any,
        index: str = "shapley",
        **options: Any,
    ) -> Any:
        """Return the interactions of all pairs of features, from the evaluations of `attribute`.

        `last_estimate` then holds the attributions and the interactions. `last_estimate.to_shapiq`
        converts the interactions to an object of shapiq.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensors
            The examples.
        baselines, target, additional_forward_args, feature_mask
            As in `attribute`.
        index : str
            The index of interaction; see `set_interactions`.
        **options
            The options of `attribute`. The tolerance is one for the attributions.

        Returns
        -------
        Tensor, (B, output shape, M, M)
            A symmetric matrix for each example, in the type and on the device of the inputs: half
            of the interaction of a pair at both of its entries, and main effects on the diagonal.
            Each row of the matrix sums to the attribution of its feature. The M features are those
            of the feature mask, in the order of their ids. Without a mask, they are the numbers of
            an example, those of all inputs one after the other.
        Tensor
            With `return_standard_error`, the standard errors in the same form.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError, BudgetError
            If an argument cannot be used, or the method cannot estimate interactions; the message
            names methods that can.

        Examples
        --------
        >>> import torch
        >>> from captum_ext import OddGP
        >>> x = torch.tensor([[1.0, 2.0, 3.0]])
        >>> OddGP(lambda x: x.sum(dim=1) ** 2, seed=0).interactions(x).round()
        tensor([[[1., 2., 3.],
                 [2., 4., 6.],
                 [3., 6., 9.]]])
        """
        from .interactions import pair_interactions

        return pair_interactions(self, inputs, *arguments, index=index, **options)

    @OPTIONS.documented("call", like=attribute)
    def semivalues(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        *arguments: Any,
        index: SemivalueIndex = "banzhaf",
        **options: Any,
    ) -> Any:
        """Return attributions by another semivalue than the Shapley value.

        A semivalue is a weighted mean of what a feature adds to coalitions of others. Only Shapley
        values sum to the output less that of the baselines.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensors
            The examples.
        baselines, target, additional_forward_args, feature_mask
            As in `attribute`.
        index : str, tuple or sequence of float
            `"banzhaf"`: all coalitions have the same weight. `("beta", a, b)`: Beta-Shapley values
            (Kwon and Zou, 2022); with a > b, small coalitions count more. M weights: those of
            coalitions of 0, …, M − 1 other features, all of a size together; their sum is 1.
        **options
            The options of `attribute`.

        Returns
        -------
        Tensor or tuple of Tensors
            As of `attribute`. `OddGP`, `Best` and `RandomOrder` estimate semivalues; other methods
            of Shapley values have them where all coalitions are evaluated.

        Examples
        --------
        >>> import torch
        >>> from captum_ext import OddGP
        >>> OddGP(lambda x: x.max(dim=1).values).semivalues(torch.tensor([[1.0, 2.0, 4.0]]))
        tensor([[0.2500, 0.7500, 2.7500]])
        """
        from .interactions import estimated_interactions

        request = checked_semivalues(index)
        _, answer = estimated_interactions(self, inputs, *arguments, request=request, **options)
        return answer

    @OPTIONS.documented("interactions", like=attribute)
    def set_interactions(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        *arguments: Any,
        index: str = "k-SII",
        order: int = 3,
        names: Sequence[str] | None = None,
        **options: Any,
    ) -> SetInteractions:
        """Return the interactions of all sets of up to `order` features.

        They need no further evaluations than the attributions. `last_estimate.to_shapiq()` then
        converts them to an object of shapiq.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensors
            The examples.
        baselines, target, additional_forward_args, feature_mask
            As in `attribute`.
        index : str
            `"shapley"` (`"SII"`), `"shapley_taylor"` (`"STII"`), `"faithful_shapley"` (`"FSII"`),
            `"banzhaf"` (`"BII"`), `"faithful_banzhaf"` (`"FBII"`), `"moebius"` (`"Moebius"`), or
            `"k-SII"`: n-Shapley values, whose sum over all sets is the output less that of the
            baselines.
        order : int
            The most features in a set, at most 5.
        names : sequence of str, optional
            The names of the M features.
        **options
            The options of `attribute`.

        Returns
        -------
        SetInteractions
            Values and standard errors of all sets; `strongest()` lists the largest.

        Examples
        --------
        >>> import torch
        >>> from captum_ext import OddGP
        >>> x = torch.full((1, 8), 2.0)
        >>> method = OddGP(lambda x: x[:, :3].prod(dim=1))
        >>> found = method.set_interactions(x, index="moebius", order=3)
        >>> found.strongest(1)[["features", "value"]]
                                    features  value
        0  (Feature 0, Feature 1, Feature 2)    8.0
        """
        from .interactions import estimated_interactions

        request = checked_sets(index, order)
        of_call, _ = estimated_interactions(self, inputs, *arguments, request=request, **options)
        found: SetInteractions = of_call.set_interactions(names)
        return found

    @OPTIONS.documented("stream")
    def attribute_stream(
        self,
        rows: Inputs | str | Path | Iterable[Any],
        out: str | Path,
        *,
        roles: Sequence[str] | None = None,
        baselines: Baselines = None,
        target: Target = None,
        additional_forward_args: object = None,
        feature_mask: FeatureMask = None,
        checkpoint: bool = False,
        chunk_size: int | None = None,
        batched: bool = True,
        **options: Unpack[AttributeOptions],
    ) -> StreamedAttributions:
        """Attribute outputs for rows chunk after chunk, and write attributions to files.

        The attributions are those of `attribute` for all rows at once. Memory does not grow with
        the number of rows.

        Parameters
        ----------
        rows : Tensor, tuple of Tensors, array, memory map, path, object of pyarrow, or iterable
            The rows. A path ends in `.npy`, `.csv`, `.parquet`, `.arrow` or `.feather`, or is a
            folder of Parquet files. Each item of another iterable, such as a DataLoader or a
            generator, is a batch: a tensor, or a tuple of tensors for several inputs.
        out : str or Path
            The folder where attributions go, in one file for each chunk. The end of the name
            chooses the format: `.npz` of NumPy, `.parquet` (needs pyarrow) or `.csv`.
        roles : sequence of str, optional
            The roles of the parts of a batch, such as `("inputs", "target")`: names of arguments of
            `attribute` with an entry for each row, or `"unused"`. By default all are inputs; a
            batch that is a list of several parts needs roles. Streamed
            `additional_forward_args` come after those that are given as an argument.
        baselines, target, additional_forward_args, feature_mask
            As in `attribute`, the same for all rows. Mark a distribution of baselines by
            `BaselineDistribution`, and tensors among `additional_forward_args` by `Shared`.
        checkpoint : bool
            Whether to go on with the results that a stopped call wrote to `out`. The result is
            then the same, bit for bit, as without a stop. A checkpoint of other rows, another
            model, another seed or other arguments is refused. Without a seed of its own, the
            method takes the seed of the checkpoint.
        chunk_size : int, optional
            Rows that are explained together and then written. By default at most 1,000. Up to so
            many rows are lost by a stop. The attributions do not depend on it.
        batched : bool
            Whether the items of an iterable are batches. False: each item is one row, without the
            dimension that counts the rows.
        show_progress : bool
            Whether to show a progress bar over the rows.
        **options
            The options of `attribute`.

        Returns
        -------
        StreamedAttributions
            The attributions, which are read from the files when they are needed.

        Raises
        ------
        CheckpointError
            If `out` exists already, or is a checkpoint of another call.
        """
        from ..streams import attribute_stream

        return attribute_stream(
            self,
            rows,
            out,
            roles=roles,
            baselines=baselines,
            target=target,
            additional_forward_args=additional_forward_args,
            feature_mask=feature_mask,
            checkpoint=checkpoint,
            chunk_size=chunk_size,
            batched=batched,
            options=OPTIONS.complete("stream", options),
        )

    def _prepared_for_futures(self) -> CoalitionAttribution:
        """Return a copy that starts several calls of the forward function before it waits."""
        twin = copy.copy(self)
        twin._calls_in_flight = CALLS_IN_FLIGHT
        return twin

    def checked_call(
        self,
        inputs: Inputs,
        baselines: Baselines,
        target: Target,
        additional: object,
        feature_mask: FeatureMask,
        perturbations_per_eval: int | None,
    ) -> AttributeCall:
        """Return the games of a call of `attribute`, its arguments checked."""
        tensors = checked_inputs(inputs)
        if target is not None:
            target = checked_target(target, len(tensors[0]))
        arguments = () if additional is None else checked_additional(additional, tensors)
        value_function = None
        if self.value_function != "raw":
            value_function = checked_value_function(self.value_function)
        is_raw = value_function is None or value_function.is_raw
        if perturbations_per_eval is not None:
            checked_count("perturbations_per_eval", perturbations_per_eval)
        common: dict[str, Any] = {
            "forward_func": self.forward_func,
            "inputs": tensors,
            "groups": from_feature_mask(feature_mask, tensors),
            "target": target if is_raw else None,
            "additional_forward_args": arguments,
            "perturbations_per_eval": perturbations_per_eval,
            "calls_in_flight": self._calls_in_flight,
        }
        match baselines:
            case (ConditionalBaselines() as only,):  # as of inputs in a tuple
                baselines = only
        if isinstance(baselines, ConditionalBaselines):
            game: ForwardFunctionGame = ConditionalGame(
                **common, baselines=baselines.baselines_of(tensors), draws=baselines.draws
            )
        else:
            game = ForwardFunctionGame(
                **common, baselines=checked_baselines(baselines, tensors, inputs)
            )
        valued = None
        if value_function is not None and not is_raw:
            valued = class_value_game(game, value_function, target)
        return AttributeCall(game, valued, isinstance(inputs, tuple))


@dataclass(frozen=True)
class AttributeCall:
    """The checked arguments of a call of `attribute`: its game and, if any, its value function."""

    game: ForwardFunctionGame
    valued: ClassValueGame | None
    is_tuple: bool

    def formatted(
        self, game: _AnyGame, per_player: AttributionArray, with_input_shape: bool = True
    ) -> Tensor | tuple[Tensor, ...]:
        """Return amounts of players in the container of the inputs, or one for each group."""
        arguments = (
            per_player,
            self.game.groups,
            self.game.inputs,
            game.output_shape,
            game.output_dtype,
        )
        # As in captum, the shape of one result for the batch takes the place of the examples.
        is_of_batch = isinstance(game, BatchGame) and game.output_shape != ()
        if not with_input_shape:
            of_groups = as_group_tensor(*arguments)
            return of_groups[0] if is_of_batch else of_groups
        tensors = as_tensors(*arguments)
        if is_of_batch:
            tensors = tuple(tensor[0] for tensor in tensors)
        return tensors if self.is_tuple else tensors[0]

    def batch_game(self) -> BatchGame:
        """Return the game of a forward function that has only one value for the whole batch."""
        game, where = self.game, "where forward_func returns one value for the whole batch"
        if isinstance(game, ConditionalGame):
            raise InvalidArgumentError(f"baselines cannot be drawn {where}.")
        if self.valued is not None:
            raise InvalidArgumentError(
                f"value_function={self.valued.value_function.kind!r} needs an output for each "
                "class and example, but forward_func returns one value for the whole batch."
            )
        if game.groups.differ_by_example:
            raise InvalidArgumentError(
                f"feature_mask must be the same for all examples (first dimension 1) {where}."
            )
        if game.perturbations_per_eval not in (None, 1):
            raise InvalidArgumentError(
                f"perturbations_per_eval must be 1 {where}; got {game.perturbations_per_eval}."
            )
        if game.target is not None:
            raise InvalidArgumentError(f"target must be None {where}; got {game.target!r}.")
        return BatchGame(game)
