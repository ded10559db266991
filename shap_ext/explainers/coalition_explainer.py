"""Base of all explainers: it checks shap's arguments and returns an Explanation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast

import numpy as np
import shap

from shapley_adapters import Estimate, Game, Settings, estimate
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.estimators.protocol import Estimator
from shapley_adapters.games.evaluation import Evaluator
from shapley_adapters.games.value_functions import (
    ValuedGame,
    ValueFunction,
    ValueFunctionOrName,
    checked_value_function,
)
from shapley_adapters.graphs.causal_graph import read_causal_graph
from shapley_adapters.graphs.reading import Structure
from shapley_adapters.interactions.result import (
    SemivalueIndex,
    SetInteractions,
    checked_semivalues,
    checked_sets,
)
from shapley_adapters.pipeline.estimate import NO_BUDGET_OF_NETWORKS, budget_of
from shapley_adapters.pipeline.run import CallBudget
from shapley_adapters.pipeline.settings import fewer_players
from shapley_adapters.workers import checked_n_jobs

from ..argument_types import Groups, Rows
from ..games.explained_rows import ExplainedRows, ExplainedRowsMaker
from ..inputs.backgrounds import background_dataset, first_rows
from ..inputs.column_groups import checked_groups
from ..inputs.datasets import table_of_row
from ..inputs.models import ExplainedFunction, GameOfModel, inner_model, prediction, warn_of_classes
from ..maskers import ConditionalMasker
from ..results.explanations import explanations
from ..results.hierarchies import store_hierarchy
from ..results.interactions import interaction_explanation, joined_names
from ..results.record import with_record
from ..shap_internals import background_of, is_op_chain
from .call_options import OPTIONS, ExplainerOptions
from .legacy_calls import check_sums, no_expected_value, shared_value
from .model_explainer import ModelExplainer
from .player_trees import trees_of_rows

if TYPE_CHECKING:
    from shapley_adapters.batch_function import BatchFunction

    from ..results.streamed_explanations import StreamedExplanations


@write_constructor
class CoalitionExplainer(ModelExplainer):
    """Base of the explainers that evaluate coalitions of features.

    Attributes
    ----------
    seed : int
        Seed of all random choices, drawn from the operating system where none was given. Each call
        starts from it, so that equal calls give equal explanations.
    last_estimate : Estimate or None
        The estimate of the latest call and its number of evaluations.
    """

    independent_rows = False
    # Set by `options_from`.
    name = "coalitions"
    structure: ClassVar[str | None] = None
    _make: ClassVar[Callable[..., Estimator[Any]]]
    _option_names: ClassVar[tuple[str, ...]] = ()
    _evaluates_coalitions = True
    _way = "call"

    groups: Groups | None = None
    value_function: ValueFunctionOrName = "raw"
    n_jobs: int | None = None
    last_estimate: Estimate | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.explained_function  # raises its errors now, not in the first call
        warn_of_classes(inner_model(self.model))
        checked_groups(self.groups)
        checked_n_jobs(self.n_jobs)
        _check_value_function(checked_value_function(self.value_function), self.link)

    def _estimator(self) -> Estimator[Any]:
        """Return the estimator with the options of this object."""
        return self._make(**{name: getattr(self, name) for name in self._option_names})

    def _estimate(self, game: Game, args: tuple[Any, ...], settings: Settings) -> Estimate:
        """Estimate the values of `game`, made of the datasets `args`."""
        del args
        return estimate(game, self._estimator(), settings)

    def _estimator_of_call(self, settings: Settings) -> Estimator[Any]:
        """Return the estimator of a call with these settings."""
        del settings
        return self._estimator()

    def _graph(self, explained: ExplainedRows) -> Structure | Sequence[Structure] | None:
        """Return the graph or hierarchy of the players, for explainers with a structure."""
        options: Any = self
        layout = explained.layout
        if self.structure == "hierarchy":
            return trees_of_rows(options.hierarchy, explained, self.masker)
        if self.structure == "causes":
            return read_causal_graph(options.order, options.graph, layout.n_players, layout.names)
        if self.structure == "distances" and options.graph is None:
            return None
        return layout.graph(options.graph)

    @OPTIONS.documented("call")
    def __call__(self, *args: Rows, **options: Unpack[ExplainerOptions]) -> Any:
        """Explain the model's output for each row.

        Parameters
        ----------
        *args : array, DataFrame or tensor, (R, …)
            The rows, one dataset per input of the model. A single row of a table may be passed as a
            Series or as an array of one dimension.
        **options
            The options of the call.

        Returns
        -------
        shap.Explanation
            Values (R, M), or (R, M, K) for K outputs, in the units of the link; a list of
            explanations where the model has several inputs. For one row, values (M,) or (M, K), as
            in `explainer(X)[0]`. With `interactions`, one explanation of values (R, M, M) or
            (R, M, M, K), as TreeExplainer's: half of the interaction of a pair at both of its
            entries, main effects on the diagonal, and rows of the matrix that sum to the Shapley
            values.

        Raises
        ------
        AdditivityError
            If `check_additivity=True` and the attributions do not sum to the model's output.
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used; the message names it.
        BudgetError
            If `max_evals` or `max_seconds` is too small for the method; the message names the
            minimum.
        NonFiniteValueError
            If the model returns NaN or an infinite number.
        """
        started = time.time()
        fields, further = OPTIONS.read(self._way, options)
        request, outputs = fields["interactions"], further["outputs"]
        if fields["trace"]:
            fields["with_errors"] = True
            if request is not None:
                raise InvalidArgumentError(
                    "trace=True stores first estimates of attributions, not of interactions; ask "
                    "for one of trace and interactions in a call."
                )
        error_bounds = fields["with_errors"]
        row = self._row_of_table(args)
        args = args if row is None else (row,)
        explained = self.explained_rows(args)
        settings = self._settings(explained, fields)
        game = self._valued(explained)
        result = self._estimate(game, args, settings)
        unit = self.explained_function.unit
        if isinstance(game, ValuedGame):
            unit = game.value_function.kind
        if self.link is not shap.links.identity:
            unit = f"{unit}, link {getattr(self.link, '__name__', self.link)}"
        self.last_estimate = result = replace(result, unit=unit)
        if further["check_additivity"] and not (request and request.are_semivalues):
            self._check_sums(result)
        n_outputs = result.values.shape[2]
        if outputs is not None and not is_op_chain(outputs) and max(outputs) >= n_outputs:
            raise InvalidArgumentError(
                f"outputs={list(outputs)} names outputs beyond the model's {n_outputs}, counted "
                "from 0."
            )
        # Rows may have outputs of their own, such as the tokens of a text.
        output_names = game.output_names or self._checked_output_names(game, n_outputs)
        shown: dict[str, Any] = {
            "error_bounds": error_bounds,
            "outputs": outputs,
            "output_names": output_names,
            "compute_time": time.time() - started,
        }
        if result.interactions is not None and result.interactions.request.are_pairs:
            results: Any = interaction_explanation(
                result, result.interactions, explained.parts, **shown
            )
        else:
            clustering, groups = getattr(self.masker, "clustering", None), explained.groups
            is_joint = len(explained.parts) > 1 or (groups is not None and groups.any_joint)
            if is_joint or not isinstance(clustering, np.ndarray):
                clustering = None
            else:  # a copy: bar plots read it by SciPy, and older versions need a writable array
                clustering = np.repeat(clustering[None], len(result.values), axis=0)
            results = explanations(result, explained.parts, clustering=clustering, **shown)
            if result.unions is not None:
                is_shown = all(explained.layout.has_neighbours)
                graph, names, parts = settings.graph, output_names, explained.parts
                store_hierarchy(results, result, graph, parts, outputs, names, is_shown)
        results = with_record(results, self, started, result)
        return results if row is None else results[0]

    def _settings(self, explained: ExplainedRows, fields: dict[str, Any]) -> Settings:
        """Return the settings of a call whose options gave `fields`."""
        part, *others = explained.parts
        shape = () if others or part.segments is not None else part.shapes[0]
        superpixels = "masker=shap_ext.maskers.Superpixels(50)"
        remedy = fewer_players(explained.layout.n_players, shape, superpixels)
        return Settings(
            seed=cast("int", self.seed),  # drawn by the constructor
            graph=self._graph(explained) if self.structure else None,
            independent_rows=self.independent_rows,
            n_jobs=self.n_jobs,
            name=self.name,
            budget_name="max_evals",
            fewer_players=getattr(self.model, "fewer_players", remedy),
            **fields,
        )

    def _row_of_table(self, args: tuple[Any, ...]) -> Any:
        """Return one row of a table as a table; None where there are several rows."""
        if len(args) == 1 and isinstance(self.masker, ConditionalMasker):
            return table_of_row(args[0], self.masker.background.dtypes)
        if len(args) == 1 and (self.masker is None or background_of(self.masker) is not None):
            return table_of_row(args[0], self._background_dtypes)  # of one row, as of many
        return None

    @OPTIONS.documented("budget")
    def budget_of(self, *args: Rows, **options: Unpack[ExplainerOptions]) -> CallBudget:
        """Return how many evaluations and rows of the model a call takes at most.

        The model is not called. Where it costs money, a call costs the sum of the rows times the
        price of a row.

        Parameters
        ----------
        *args : array, DataFrame or tensor, (R, …)
            The rows, as in a call of the explainer.
        **options
            The options that decide the budget.

        Returns
        -------
        named tuple
            `evaluations` and `model_rows` of each row, (R,): evaluations times background rows.
            At most 5 % more, or four, look for random answers. Without `max_evals`, `best` may
            evaluate all coalitions instead, where that takes less time.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError, BudgetError
            If the call would refuse an argument, or if a network explains.

        Examples
        --------
        >>> import numpy as np, shap_ext
        >>> explainer = shap_ext.OddGPExplainer(lambda x: x[:, 0] ** 2, np.zeros((10, 20)))
        >>> explainer.budget_of(np.ones((3, 20)), max_evals=100).model_rows
        array([1000, 1000, 1000])
        """
        if not self._evaluates_coalitions:
            raise InvalidArgumentError(NO_BUDGET_OF_NETWORKS)
        fields, _ = OPTIONS.read("budget", options)
        row = self._row_of_table(args)
        explained = self.explained_rows(args if row is None else (row,))
        settings = self._settings(explained, fields)
        return budget_of(self._valued(explained), self._estimator_of_call(settings), settings)

    @OPTIONS.documented("interactions")
    def shap_interaction_values(
        self, X: Rows, *, index: str = "shapley", **options: Unpack[ExplainerOptions]
    ) -> Any:
        """Return the interactions of all pairs of features alone, as TreeExplainer does.

        Parameters
        ----------
        X : array, DataFrame or Series
            The rows, or one row: a Series, or an array of one dimension.
        index : str
            The index of interaction; see `set_interactions`.
        **options
            Those of a call of the explainer, such as `max_evals`.

        Returns
        -------
        array, (R, M, M) or (R, M, M, K)
            The values of `explainer(X, interactions=index)`. One row gives (M, M) or (M, M, K).
        """
        return self._with_request((X,), index, options).values

    def _with_request(self, args: tuple[Rows, ...], request: Any, options: Any) -> Any:
        """Explain rows by what another method than a call asks for."""
        OPTIONS.read("interactions", options)
        return self(*args, **{**options, "interactions": request})

    @OPTIONS.documented("interactions")
    def semivalues(
        self, *args: Rows, index: SemivalueIndex = "banzhaf", **options: Unpack[ExplainerOptions]
    ) -> Any:
        """Explain rows by another semivalue than the Shapley value.

        A semivalue is a weighted mean of what a feature adds to coalitions of others. Only Shapley
        values sum to the model's output less the base value.

        Parameters
        ----------
        *args
            The rows, as in a call of the explainer.
        index : str, tuple or sequence of float
            `"banzhaf"`: all coalitions have the same weight. `("beta", a, b)`: Beta-Shapley values
            (Kwon and Zou, 2022); with a > b, small coalitions count more. M weights: those of
            coalitions of 0, …, M − 1 other features, all of a size together; their sum is 1.
        **options
            Those of a call of the explainer, such as `max_evals` and `error_bounds`.

        Returns
        -------
        shap.Explanation
            As of a call of the explainer. `oddgp`, `best` and `randomorder` estimate semivalues;
            other methods of Shapley values have them where all coalitions are evaluated.

        Examples
        --------
        >>> import numpy as np, shap_ext
        >>> explainer = shap_ext.OddGPExplainer(lambda x: x.max(axis=1), np.zeros((1, 3)))
        >>> explainer.semivalues(np.array([[1.0, 2.0, 4.0]])).values
        array([[0.25, 0.75, 2.75]])
        """
        return self._with_request(args, checked_semivalues(index), options)

    @OPTIONS.documented("interactions")
    def set_interactions(
        self,
        *args: Rows,
        index: str = "k-SII",
        order: int = 3,
        **options: Unpack[ExplainerOptions],
    ) -> SetInteractions:
        """Return the interactions of all sets of up to `order` features.

        They need no further evaluations than the attributions. `last_estimate.to_shapiq()` then
        converts them to an object of shapiq.

        Parameters
        ----------
        *args
            The rows, as in a call of the explainer.
        index : str
            `"shapley"` (`"SII"`), `"shapley_taylor"` (`"STII"`), `"faithful_shapley"` (`"FSII"`),
            `"banzhaf"` (`"BII"`), `"faithful_banzhaf"` (`"FBII"`), `"moebius"` (`"Moebius"`), or
            `"k-SII"`: n-Shapley values, whose sum over all sets is the model's output less the base
            value.
        order : int
            The most features in a set, at most 5.
        **options
            Those of a call of the explainer, such as `max_evals`.

        Returns
        -------
        SetInteractions
            Values and standard errors of all sets; `strongest()` lists the largest.

        Examples
        --------
        >>> import numpy as np, shap_ext
        >>> explainer = shap_ext.OddGPExplainer(lambda x: x[:, :3].prod(axis=1), np.zeros((1, 8)))
        >>> found = explainer.set_interactions(np.full((1, 8), 2.0), index="moebius", order=3)
        >>> found.strongest(1)[["features", "value"]]
                                    features  value
        0  (Feature 0, Feature 1, Feature 2)    8.0
        """
        found = self._with_request(args, checked_sets(index, order), options)
        parts = found if isinstance(found, list) else [found]
        estimate: Any = self.last_estimate
        named: SetInteractions = estimate.set_interactions(joined_names(parts))
        return named

    @OPTIONS.documented("batch")
    def batch_function(
        self,
        example: Any,
        *,
        features: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        prefix: str = "shap_",
        **options: Unpack[ExplainerOptions],
    ) -> BatchFunction:
        """Return a function from a batch of a table to a batch of attributions.

        For engines that own the data: `mapInPandas` of Spark, `map_partitions` of Dask and
        `map_batches` of Ray Data. The function can be pickled, and its columns are known
        beforehand. Each process loads the model once.

        Parameters
        ----------
        example : DataFrame or pyarrow.Table
            A batch of at least one row, such as `table.head(1)`. Its first row is explained once.
        features : sequence of str, optional
            The columns to explain, in the order of the model's; by default all that are not kept.
        keep : sequence of str
            Columns that are copied to the result, such as an identifier.
        prefix : str
            The beginning of the names of the new columns.
        error_bounds : bool
            Whether the result has columns of standard errors.
        **options
            The options of the call of the explainer.

        Returns
        -------
        BatchFunction
            Its result has the kept columns, a column `shap_<feature>` per feature,
            `shap_error_<feature>` with `error_bounds`, and `shap_base_value`. For several outputs,
            names end with `_<output>`.

        Examples
        --------
        >>> import numpy as np, pandas as pd, shap_ext
        >>> table = pd.DataFrame({"id": [7, 8], "x": [1.0, 2.0], "y": [3.0, 5.0]})
        >>> explainer = shap_ext.RandomOrderExplainer(lambda x: x[:, 0] * x[:, 1], np.zeros((1, 2)))
        >>> explain = explainer.batch_function(table.head(1), keep=["id"])
        >>> explain(table)
           id  shap_x  shap_y  shap_base_value
        0   7     1.5     1.5              0.0
        1   8     5.0     5.0              0.0
        """
        from ..streams import batch_function

        OPTIONS.read("batch", options)
        return batch_function(self, example, features, keep, prefix, dict(options))

    @OPTIONS.documented("stream")
    def explain_stream(
        self,
        rows: Rows | str | Path | Iterator[Any],
        out: str | Path,
        *,
        checkpoint: bool = False,
        chunk_size: int | None = None,
        batched: bool = True,
        **options: Unpack[ExplainerOptions],
    ) -> StreamedExplanations:
        """Explain rows chunk after chunk, and write the values to files as they come.

        The values are those of `explainer(X)` for all rows at once. Memory does not grow with the
        number of rows.

        Parameters
        ----------
        rows : array, memory map, DataFrame, sparse matrix, path, object of pyarrow, or iterable
            The rows. A path ends in `.npy`, `.csv`, `.parquet`, `.arrow` or `.feather`, or is a
            folder of Parquet files. Each item of another iterable, such as a generator or a
            DataLoader, is a valid argument of `explainer(X)`: a batch of rows, or one row of a
            table.
        out : str or Path
            The folder where the values go, in one file for each chunk. The end of the name chooses
            the format: `.npz` of NumPy, `.parquet` (needs pyarrow) or `.csv`.
        checkpoint : bool
            Whether to go on with the results that a stopped call wrote to `out`. The result is
            then the same, bit for bit, as without a stop. A checkpoint of other rows, another
            model, another seed or other options is refused. Without a seed of its own, the
            explainer takes the seed of the checkpoint.
        chunk_size : int, optional
            Rows that are explained together and then written. By default at most 1,000. Up to so
            many rows are lost by a stop. The values do not depend on it.
        batched : bool
            Whether the items of an iterable are batches. False: each item is one row, without an
            axis for rows.
        **options
            The options of the call of the explainer.

        Returns
        -------
        StreamedExplanations
            The values, which are read from the files when they are needed.

        Raises
        ------
        CheckpointError
            If `out` exists already, or is a checkpoint of another call.
        """
        from ..streams import explain_stream

        return explain_stream(
            self,
            rows,
            out,
            checkpoint=checkpoint,
            chunk_size=chunk_size,
            batched=batched,
            options=OPTIONS.complete("stream", options),
        )

    def outputs_of(self, *args: Rows) -> FloatArray:
        """Return the values of the rows with all features present, (R, K)."""
        game = self.explained_rows(args).game
        full = np.ones((1, game.n_players), dtype=bool)
        outputs: FloatArray = Evaluator(game).values_of(full)[:, 0]
        return outputs

    def _check_sums(self, estimate: Estimate) -> None:
        check_sums(estimate.values, estimate.empty_values, estimate.grand_values, self.name)

    def _empty_value(self) -> FloatArray:
        last = self.last_estimate
        shared = None if last is None else shared_value(last.empty_values)
        if shared is not None:
            return shared
        if last is not None or not checked_value_function(self.value_function).is_raw:
            raise no_expected_value("it may differ from row to row.")
        if self.masker is None:
            raise no_expected_value("there is no masker. Explain some rows first.")
        background = background_dataset(self.masker, self._background_dtypes)
        if background is None:
            raise no_expected_value(
                f"with the masker {type(self.masker).__name__} it may differ from row to row."
            )
        game = self.explained_rows((first_rows(self.masker, background),)).game
        no_players = np.zeros((1, game.n_players), dtype=bool)
        empty: FloatArray = Evaluator(game).values_of(no_players)[0, 0]
        return empty

    def _valued(self, explained: ExplainedRows) -> Game:
        """Return the game of the outputs, or of the value function of the outputs."""
        if self.value_function == "raw":
            return explained.game
        value_function = checked_value_function(self.value_function)
        if value_function.is_raw:
            return explained.game
        weights = explained.game.background_weights
        return ValuedGame(explained.game, value_function, background_weights=weights)

    @property
    def explained_function(self) -> ExplainedFunction:
        """What is explained of the model; value functions are those of predictions."""
        if self.value_function == "raw" or self.model_output != "auto":
            return super().explained_function
        is_raw = checked_value_function(self.value_function).is_raw
        return super().explained_function if is_raw else prediction(self.model)

    def explained_rows(self, args: tuple[Any, ...], model: Any = None) -> ExplainedRows:
        """Return the rows of a call with their game, of this model or of another one."""
        model = self.explained_function.model if model is None else model
        return ExplainedRowsMaker(self, model)(args)

    def _checked_output_names(self, game: Game, n_outputs: int) -> Sequence[str] | None:
        if isinstance(game, ValuedGame):
            return None  # they name the classes, of which one value was made
        names: Sequence[str] | None = self.output_names
        if names is None:
            names = getattr(inner_model(self.model), "output_names", None)
        if names is None:
            columns = game.output_shape.names if isinstance(game, GameOfModel) else None
            own = (self.explained_function.classes, columns)
            return next((one for one in own if one is not None and len(one) == n_outputs), None)
        if names is not None and len(names) != n_outputs:
            raise InvalidArgumentError(
                f"output_names holds {len(names)} names, but the model has {n_outputs} outputs."
            )
        return names


def _check_value_function(value_function: ValueFunction, link: object) -> None:
    if not value_function.is_raw and link is not shap.links.identity:
        raise InvalidArgumentError(
            f"value_function={value_function.kind!r} makes values of the outputs themselves; leave "
            "link=shap.links.identity, or explain the raw outputs through the link."
        )
