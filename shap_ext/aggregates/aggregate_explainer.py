"""Base of the explainers that combine others: its members, its call, and the packed result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import shap

from shapley_adapters.aggregation import Aggregate, SpentEvaluations
from shapley_adapters.aggregation.members import (
    checked_members,
    name_of,
    parameters_of,
    share_of_budget,
    shared_budget,
)
from shapley_adapters.arguments import checked_count, checked_flag, count_or_auto
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import with_options_of, write_constructor
from shapley_adapters.criteria.attribution_arrays import plain_array
from shapley_adapters.errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.global_generators import global_generator, state_of
from shapley_adapters.pipeline.result import quantiles
from shapley_adapters.workers import checked_n_jobs

from ..argument_types import Outputs, Rows, Table
from ..explainers.call_options import checked_outputs
from ..explainers.coalition_explainer import CoalitionExplainer
from ..explainers.legacy_calls import check_sums, no_expected_value, shared_value
from ..explainers.model_explainer import ModelExplainer
from ..inputs.datasets import Dataset, plain_rows, table_of_row
from ..inputs.models import inner_model, is_torch_module, prediction_function
from ..results.explanations import base_of_rows, explanation, folded, has_outputs, unfolded
from ..results.record import with_record
from ..shap_internals import background_of, is_op_chain, needed_evaluations

_ON_ARRAYS = ("exact", "permutation", "partition", "additive")
"""Algorithms of shap that call the model with arrays, which torch modules do not take and
estimators do not let them."""

DEFAULT_EXPLAINERS = ("oddgp", "leastsquares", "shear")
MEMBER = (
    "the name of an algorithm, an explainer, a function of the rows, or one of captum's methods"
)


@dataclass(frozen=True)
class Answer:
    """The attributions of rows, by one explainer or combined.

    Attributes
    ----------
    values : array, (R, …) or (R, …, K)
        The attributions.
    base_values : array, (R,) or (R, K), or None
        The values without any feature, if they are known.
    errors, half_widths : array, or None
        Standard errors, and half the widths of the 95 % intervals, which are larger if the errors
        come from few draws. Those of an aggregate are weighted sums over the explainers: upper
        bounds, also where their draws depend on each other.
    template : shap.Explanation or None
        The Explanation of an explainer, from which names are taken.
    data, display_data : array or DataFrame, or None
        Feature values that plots show. Features may be groups of columns.
    """

    values: FloatArray
    base_values: Any
    errors: Any
    half_widths: Any
    template: Any
    data: Any = None
    display_data: Any = None


@dataclass(frozen=True)
class Member:
    """One explainer, ready to be called.

    Attributes
    ----------
    name : str
        The name for messages and plots.
    explainer : callable, or object with `attribute`
        The explainer, function or attribution method.
    random_state : tuple, or None
        The state of NumPy's global generator in which it explains, where shap built it.
    """

    name: str
    explainer: Any
    random_state: Any = None

    @property
    def is_attribution(self) -> bool:
        """Whether it is one of captum's methods."""
        is_explainer = isinstance(self.explainer, shap.Explainer)
        return not is_explainer and callable(getattr(self.explainer, "attribute", None))

    def takes(self, argument: str) -> bool:
        """Return whether the explainer has an argument of this name."""
        function = self.explainer.attribute if self.is_attribution else self.explainer
        return argument in parameters_of(function)

    def explain(self, rows: Table, arguments: Mapping[str, Any]) -> Answer:
        """Explain rows, with those of the arguments that the explainer has."""
        supported = {name: value for name, value in arguments.items() if self.takes(name)}
        rows = rows.copy()  # an explainer or its model may write into them
        try:
            answer = self._answer(rows, supported)
        except ValueError as error:
            needed = None if isinstance(error, BudgetError) else needed_evaluations(error)
            if needed is None:
                raise
            raise BudgetError(
                f"{self.name} needs at least {needed} evaluations for a row: {error}", needed
            ) from error
        if isinstance(answer, (list, tuple)):
            raise InvalidArgumentTypeError(
                f"{self.name} returned {len(answer)} results, one for each input or output; "
                "aggregates need one array or Explanation. Pass a function that picks one."
            )
        values = plain_array(self.name, answer)
        if has_outputs(values, rows) and values.shape[-1] == 1:  # which some explainers keep
            values = values[..., 0]
        if len(values) != len(rows) or not 0 <= values.ndim - np.ndim(rows) <= 1:
            raise InvalidArgumentError(
                f"{self.name} returned values of shape {values.shape} for rows of shape "
                f"{np.shape(rows)}; (rows, features) is needed, or (rows, features, outputs)."
            )
        if not isinstance(answer, shap.Explanation):
            return Answer(values, None, None, None, None)
        base = base_of_rows(answer, folded(values, has_outputs(values, rows)))
        errors, half_widths = answer.error_std, None
        if errors is not None:
            errors = plain_array(f"error_std of {self.name}", errors).reshape(values.shape)
            half_widths = quantiles(0.95) * errors
            if answer.upper_bounds is not None:
                upper = plain_array("upper_bounds", answer.upper_bounds)
                half_widths = upper.reshape(values.shape) - values
        return Answer(values, base, errors, half_widths, answer, answer.data, answer.display_data)

    def _answer(self, rows: Table, arguments: dict[str, Any]) -> Any:
        if self.is_attribution:
            from shapley_adapters.torch_support.array_module import attributions_of_rows

            return attributions_of_rows(self.explainer, np.asarray(rows), arguments)
        if self.random_state is None:
            return self.explainer(rows, **arguments)
        with global_generator(self.random_state):  # as shap left it
            return self.explainer(rows, **arguments)


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
    _kind: ClassVar[type[Any]]

    n_jobs: int | None = None
    explainers: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_n_jobs(self.n_jobs)
        self.last_aggregate: Aggregate | None = None
        self.last_candidates: list[FloatArray] = []
        self.last_evaluations: SpentEvaluations | None = None
        self._last_base_values: FloatArray | None = None
        self._specs()  # refuses explainers that cannot be used, as the next line options
        self._aggregator()

    def _aggregator(self) -> Any:
        """Return the options of this object as those of the core: an aggregator, or a search."""
        return with_options_of(self._kind, self)

    def _specs(self) -> list[Any]:
        """Return the base explainers as the user passed them."""
        explainers = DEFAULT_EXPLAINERS if self.explainers is None else self.explainers
        return checked_members("explainers", explainers, MEMBER, may_be_named=True)

    def _answers(
        self, members: Sequence[Member], rows: Table, arguments: Mapping[str, Any]
    ) -> list[Answer]:
        """Return the answers of all members, of one shape."""
        n_shares = sum(member.takes("max_evals") for member in members)
        with shared_budget("max_evals", n_shares):
            answers = [member.explain(rows, arguments) for member in members]
        self.last_evaluations = SpentEvaluations.from_members(
            (member.name, member.explainer) for member in members
        )
        named = list(zip([member.name for member in members], answers, strict=True))
        if len({answer.values.shape for answer in answers}) > 1:
            shapes = ", ".join(f"{name}: {answer.values.shape}" for name, answer in named)
            raise InvalidArgumentError(
                "the explainers must explain the same features and outputs; their values have the "
                f"shapes {shapes}."
            )
        silent = [name for name, answer in named if answer.errors is None]
        if silent and arguments.get("error_bounds"):
            raise InvalidArgumentError(
                f"error_bounds=True, but {silent[0]} gives no standard errors. Leave it out, or "
                "pass error_bounds=False."
            )
        return answers

    def _combine(
        self, rows: Table, members: Sequence[Member], arguments: Mapping[str, Any]
    ) -> Answer:
        answers = self._answers(members, rows, arguments)
        with_outputs = has_outputs(answers[0].values, rows)
        aggregate = self._aggregator()([folded(answer.values, with_outputs) for answer in answers])
        self.last_aggregate = aggregate
        self.last_candidates = [answer.values for answer in answers]
        errors = half_widths = None
        if arguments.get("error_bounds"):
            weights = aggregate.shared_weights
            if weights is None:
                raise InvalidArgumentError(
                    "error_bounds=True: this aggregate is no fixed linear combination of its "
                    "explainers, so that their standard errors say nothing about it. Pass "
                    "error_bounds=False."
                )
            weighted = list(zip(weights, answers, strict=True))
            errors = sum(weight * answer.errors for weight, answer in weighted)
            half_widths = sum(weight * answer.half_widths for weight, answer in weighted)
        first = next((answer for answer in answers if answer.template is not None), answers[0])
        return replace(
            first,  # of which names and data are
            values=unfolded(aggregate.values, answers[0].values.shape, with_outputs),
            base_values=aggregate.base_values([answer.base_values for answer in answers]),
            errors=errors,
            half_widths=half_widths,
        )

    def _members(self) -> list[Member]:
        return [
            Member(name_of(spec), spec) if not isinstance(spec, str) else self._named_member(spec)
            for spec in self._specs()
        ]

    def _named_member(self, name: str) -> Member:
        """Return the explainer that shap, with our algorithms, builds for a name."""
        taken = ("masker", "link", "feature_names", "output_names", "linearize_link", "seed")
        arguments = {argument: getattr(self, argument) for argument in taken}
        model = self.model if self.model_output == "auto" else self.explained_function.model
        inner = inner_model(model)
        if name in _ON_ARRAYS:
            if is_torch_module(inner) or not callable(inner):
                model = prediction_function(inner)
            arguments["seed"] %= 2**32  # all that NumPy's global generator takes
        with global_generator(state_of(arguments["seed"])):
            explainer = shap.Explainer(model, algorithm=name, **arguments)
            if isinstance(explainer, CoalitionExplainer):  # shap's own know no workers
                explainer.n_jobs = self.n_jobs
            return Member(name, explainer, np.random.get_state())  # noqa: NPY002

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
            raise InvalidArgumentError(
                "main_effects=True, but aggregates have no main effects. Leave it out."
            )
        members = self._members()
        arguments = {"silent": checked_flag("silent", silent), **_budget(members, max_evals)}
        if batch_size != "auto":
            arguments["batch_size"] = checked_count("batch_size", batch_size)
        if checked_flag("error_bounds", error_bounds):
            arguments["error_bounds"] = True
        is_summed = checked_flag("check_additivity", check_additivity)
        row = table_of_row(X, self._background_dtypes)
        rows = _plain_rows(X if row is None else row, "X")
        if np.ndim(rows) < 2 or len(rows) == 0:
            raise InvalidArgumentError(f"X has shape {np.shape(rows)}: a table of rows is needed.")
        answer = self._combine(rows, members, arguments)
        self._last_base_values = answer.base_values
        if is_summed:
            values = folded(answer.values, has_outputs(answer.values, rows))  # (R, K, M) or (R, M)
            values = np.moveaxis(values.reshape(len(rows), -1, values.shape[-1]), 1, 2)
            base = answer.base_values.reshape(len(rows), -1)
            check_sums(values, base, self._model_explainer().outputs_of(rows), self.name)
        result = self._explanation(answer, rows, outputs, error_bounds, time.time() - started)
        return with_record(result if row is None else result[0], self, started, None)

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

    def _explanation(
        self, answer: Answer, rows: Table, outputs: Outputs, error_bounds: bool, seconds: float
    ) -> Any:
        values, template = answer.values, answer.template
        with_outputs = has_outputs(values, rows)
        fields = {"base_values": answer.base_values}
        if error_bounds:
            fields["lower_bounds"] = values - answer.half_widths
            fields["upper_bounds"] = values + answer.half_widths
            fields["error_std"] = answer.errors
        names, features = self.output_names, self.feature_names
        if hasattr(rows, "columns"):
            features = [str(column) for column in rows.columns]
        if template is not None:
            names = template.output_names if names is None else names
            features = template.feature_names if template.feature_names is not None else features
        shape = values.shape[:-1] if with_outputs else values.shape
        data = answer.data if np.shape(answer.data) == shape else np.asarray(rows)
        if outputs is not None:
            indices = _checked_outputs(outputs, values.shape[-1] if with_outputs else 0)
            values = values[..., indices]
            fields = {name: field[..., indices] for name, field in fields.items()}
            names = None if names is None else [list(names)[index] for index in indices]
        return explanation(
            values,
            data=data,
            display_data=answer.display_data,
            feature_names=features,
            output_names=names if with_outputs else None,
            compute_time=seconds,
            **fields,
        )


def rows_of_dataset(dataset: Any, purpose: str) -> Any:
    """Return a table of rows that a user passed, or the background of a masker."""
    data = _plain_rows(dataset, "dataset")
    data = data if isinstance(data, (np.ndarray, pd.DataFrame)) else background_of(data)
    if np.ndim(data) < 2 or data.shape[0] == 0:
        raise InvalidArgumentError(
            f"dataset= is needed, a table of the rows {purpose}, unless masker= is one."
        )
    return data


def _plain_rows(rows: Any, name: str) -> Any:
    rows = plain_rows(rows, name)
    return Dataset(rows).array() if isinstance(rows, (list, tuple)) else rows


def _budget(members: Sequence[Member], max_evals: object) -> dict[str, int]:
    total = count_or_auto("max_evals", max_evals)
    if total is None:
        return {}
    for member in members:
        if isinstance(member.explainer, shap.KernelExplainer):
            raise InvalidArgumentError(
                f"max_evals={total} cannot limit {member.name}, whose call takes no budget of "
                "this name and spends thousands of evaluations. Pass a function with a budget "
                "in its place: lambda rows: explainer.shap_values(rows, nsamples=100)."
            )
    n_shares = sum(member.takes("max_evals") for member in members)
    return {"max_evals": share_of_budget("max_evals", total, n_shares, "explainers")}


def _checked_outputs(outputs: Outputs, n_outputs: int) -> list[int]:
    indices: Any = checked_outputs("outputs", outputs)
    if is_op_chain(indices) or max(indices) >= n_outputs:
        raise InvalidArgumentError(
            f"outputs={outputs!r} must be indices of some of the model's {n_outputs} outputs, "
            "counted from 0, the same for all rows. A model with one output needs no outputs=."
        )
    return list(indices)
