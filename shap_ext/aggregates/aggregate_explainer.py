"""Base of the explainers that combine others: it checks arguments and packs the result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shap

from shapley_adapters.aggregation import Aggregate, SpentEvaluations
from shapley_adapters.aggregation.base_explainers import share_of_budget
from shapley_adapters.arguments import checked_count, checked_flag, count_or_auto
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.frames import pandas_frame
from shapley_adapters.torch_support.tensor_arrays import array_of
from shapley_adapters.workers import checked_n_jobs

from ..argument_types import Explanation, Outputs, Rows, Table
from ..explainers.call_options import checked_outputs
from ..explainers.coalition_explainer import CoalitionExplainer
from ..explainers.legacy_calls import check_sums, no_expected_value, shared_value
from ..explainers.model_explainer import ModelExplainer
from ..inputs.datasets import plain_array_of, table_of_row
from ..results.explanations import explanation, folded, has_outputs
from ..results.record import with_record
from ..shap_internals import is_op_chain
from .base_explainers import BaseExplainer, base_explainer_of


@dataclass(frozen=True)
class Spread:
    """Upper bounds of the errors of an aggregate, in the shape of its values.

    Both are weighted sums over the base explainers. Such a sum is an upper bound, also where the
    draws of the base explainers depend on each other.

    Attributes
    ----------
    errors : array
        Standard errors.
    half_widths : array
        Half the widths of the 95 % intervals.
    """

    errors: FloatArray
    half_widths: FloatArray


@dataclass(frozen=True)
class Combination:
    """The combined explanation of all rows, before it becomes an Explanation.

    Attributes
    ----------
    values : array, (R, …) or (R, …, K)
        The attributions.
    base_values : array, (R,) or (R, K)
        The values without any feature.
    spread : Spread or None
        Bounds of the standard errors and intervals.
    template : shap.Explanation or None
        The answer of one base explainer, from which names are taken.
    data, display_data : array or DataFrame, or None
        Feature values that plots show. Features may be groups of columns.
    """

    values: FloatArray
    base_values: FloatArray
    spread: Spread | None
    template: Any
    data: Any
    display_data: Any


@write_constructor
class AggregateExplainer(ModelExplainer):
    """Base of the explainers that combine others.

    Attributes
    ----------
    seed : int
        Seed of all random choices, and of the explainers that are passed by name.
    last_aggregate : Aggregate or None
        The aggregate of the latest call, with features last. It holds weights and proofs.
    last_candidates : list of arrays
        The values of each base explainer in the latest call, in the shape of the result.
    last_evaluations : SpentEvaluations or None
        What each base explainer spent in the latest call, and which of them are not counted.
    """

    name = "aggregate"

    n_jobs: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_n_jobs(self.n_jobs)
        self.last_aggregate: Aggregate | None = None
        self.last_candidates: list[FloatArray] = []
        self.last_evaluations: SpentEvaluations | None = None
        self._last_base_values: FloatArray | None = None

    def _specs(self) -> list[Any]:
        """Return the base explainers as the user passed them."""
        raise NotImplementedError

    def _combine(
        self, rows: Table, arguments: Mapping[str, Any], error_bounds: bool
    ) -> Combination:
        """Explain rows."""
        raise NotImplementedError

    def _base_explainers(self) -> list[BaseExplainer]:
        has_unit = self.model_output != "auto"
        model = self.explained_function.model if has_unit else self.model
        return [
            base_explainer_of(
                spec,
                model=model,
                masker=self.masker,
                link=self.link,
                feature_names=self.feature_names,
                output_names=self.output_names,
                linearize_link=self.linearize_link,
                seed=self.seed,
                n_jobs=self.n_jobs,
            )
            for spec in self._specs()
        ]

    def __call__(
        self,
        X: Rows,
        *,
        max_evals: int | str = "auto",
        main_effects: bool = False,
        error_bounds: bool = False,
        batch_size: int | str = "auto",
        outputs: Outputs = None,
        silent: bool = False,
        check_additivity: bool = False,
    ) -> Any:
        """Explain the model's output for each row.

        Parameters
        ----------
        X : array or DataFrame, (R, …)
            The rows, or one row: a Series, or an array of one dimension.
        max_evals : int or "auto"
            The budget per explained row, for all base explainers together. Those that take a
            budget get equal shares. By default each one uses its own default.
        main_effects : bool
            Not supported.
        error_bounds : bool
            Whether to return standard errors and 95 % intervals. They are the weighted sums of
            those of the base explainers, which are upper bounds of the error. Only for linear
            aggregates, and only if every base explainer returns them.
        batch_size : int or "auto"
            Passed to the base explainers that have this argument.
        outputs : sequence of int, optional
            Which outputs to show; all by default.
        silent : bool
            Whether to show no progress bars.
        check_additivity : bool
            Whether to refuse attributions that do not sum to the model's output, which costs one
            evaluation per row. Medians, rankings and explanations by neighbours do not sum to it.

        Returns
        -------
        shap.Explanation
            Values (R, M), or (R, M, K) for K outputs. For one row, values (M,) or (M, K), as in
            `explainer(X)[0]`.

        Raises
        ------
        AdditivityError
            If `check_additivity=True` and the attributions do not sum to the model's output.
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used, or the base explainers return values of different
            shapes.
        BudgetError
            If the share of the budget is too small for one base explainer.
        """
        started = time.time()
        if main_effects:
            raise InvalidArgumentError("main_effects=True is not supported by aggregates.")
        arguments = {"silent": checked_flag("silent", silent), **self._budget(max_evals)}
        if batch_size != "auto":
            arguments["batch_size"] = checked_count("batch_size", batch_size)
        if checked_flag("error_bounds", error_bounds):
            arguments["error_bounds"] = True
        is_summed = checked_flag("check_additivity", check_additivity)
        row = table_of_row(X, self._background_dtypes)
        rows = _checked_rows(X if row is None else row)
        combination = self._combine(rows, arguments, error_bounds)
        self._last_base_values = combination.base_values
        if is_summed:
            self._check_sums(combination, rows)
        answer = self._explanation(combination, rows, outputs, time.time() - started)
        return with_record(answer if row is None else answer[0], self, started, None)

    def _check_sums(self, combination: Combination, rows: Table) -> None:
        values = folded(
            combination.values, has_outputs(combination.values, rows)
        )  # (R, K, M) or (R, M)
        values = np.moveaxis(values.reshape(len(rows), -1, values.shape[-1]), 1, 2)
        base = combination.base_values.reshape(len(rows), -1)
        check_sums(values, base, self._model_explainer().outputs_of(rows), self.name)

    def _empty_value(self) -> FloatArray:
        last = self._last_base_values
        if last is None:
            return self._model_explainer()._empty_value()
        value = shared_value(last.reshape(len(last), -1))
        if value is None:
            raise no_expected_value("it differs from row to row.")
        return value

    def _model_explainer(self) -> CoalitionExplainer:
        """Return an explainer of the same model with the same masker, to evaluate it."""
        return CoalitionExplainer(
            self.model, self.masker, self.link, linearize_link=self.linearize_link
        )

    def _budget(self, max_evals: object) -> dict[str, Any]:
        total = count_or_auto("max_evals", max_evals)
        if total is None:
            return {}
        base_explainers = self._base_explainers()
        n_shares = sum(explainer.takes("max_evals") for explainer in base_explainers)
        share = share_of_budget("max_evals", total, n_shares, "explainers", ", or 'auto'")
        for base in base_explainers:
            if isinstance(base.explainer, shap.KernelExplainer):
                raise InvalidArgumentError(
                    f"max_evals={total} cannot limit {base.name}, whose call takes no budget of "
                    "this name and spends thousands of evaluations. Pass a function with a budget "
                    "in its place: lambda rows: explainer.shap_values(rows, nsamples=100)."
                )
        return {"max_evals": share}

    def _explanation(
        self, combination: Combination, rows: Table, outputs: Outputs, seconds: float
    ) -> Any:
        values, base, spread = combination.values, combination.base_values, combination.spread
        template = combination.template
        names = self.output_names
        if names is None and template is not None:
            names = template.output_names
        if outputs is not None:
            indices = _checked_outputs(outputs, values, rows)
            values, base = values[..., indices], base[..., indices]
            if spread is not None:
                spread = Spread(spread.errors[..., indices], spread.half_widths[..., indices])
            names = None if names is None else [list(names)[index] for index in indices]
        return explanation(
            values,
            base_values=base,
            data=combination.data,
            display_data=combination.display_data,
            feature_names=self._names(rows, template),
            output_names=names if has_outputs(values, rows) else None,
            lower_bounds=None if spread is None else values - spread.half_widths,
            upper_bounds=None if spread is None else values + spread.half_widths,
            error_std=None if spread is None else spread.errors,
            compute_time=seconds,
        )

    def _names(self, rows: Table, template: Explanation | None) -> Any:
        if template is not None and template.feature_names is not None:
            return template.feature_names
        columns = getattr(rows, "columns", None)
        return self.feature_names if columns is None else [str(column) for column in columns]


def _checked_rows(rows: Rows) -> Any:
    rows = plain_array_of(array_of(pandas_frame(rows, "X")), "X")
    if isinstance(rows, (list, tuple)):
        try:
            rows = np.asarray(rows)
        except ValueError as error:
            raise InvalidArgumentError(
                "X holds rows of different lengths; a table needs rows of the same length."
            ) from error
    if np.ndim(rows) < 2 or len(rows) == 0:
        raise InvalidArgumentError(f"X has shape {np.shape(rows)}: a table of rows is needed.")
    return rows


def _checked_outputs(outputs: Any, values: FloatArray, rows: Table) -> list[int]:
    if is_op_chain(outputs):
        raise InvalidArgumentTypeError(
            "outputs of an aggregate must be a list of indices of outputs, the same for all rows; "
            f"got {type(outputs).__name__}."
        )
    indices: list[int] = checked_outputs("outputs", outputs)
    n_outputs = values.shape[-1] if has_outputs(values, rows) else 0
    if max(indices) >= n_outputs:
        raise InvalidArgumentError(
            f"outputs={list(outputs)} must name some of the model's {n_outputs} outputs, counted "
            "from 0; a model with one output needs no outputs=."
        )
    return indices
