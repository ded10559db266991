"""The explainers that an aggregate is made of: names, explainers, functions, captum's methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters.aggregation.base_explainers import latest_evaluations, name_of, parameters_of
from shapley_adapters.array_types import FloatArray
from shapley_adapters.criteria.attribution_arrays import plain_array
from shapley_adapters.errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.pipeline.result import quantiles

from ..argument_types import ExplainerLike, Explanation, Table
from ..explainers.coalition_explainer import CoalitionExplainer
from ..inputs.explained_function import prediction_function
from ..inputs.models import inner_model, is_torch_module
from ..results.explanations import has_outputs
from ..shap_internals import global_generator, needed_evaluations, state_of

_ON_ARRAYS = ("exact", "permutation", "partition", "additive")
"""Algorithms of shap that call the model with arrays, which torch modules do not take and
estimators do not let them."""


@dataclass(frozen=True)
class ExplainerResult:
    """The answer of one base explainer.

    Attributes
    ----------
    values : array, (R, …) or (R, …, K)
        Its attributions.
    base_values : array, (R,) or (R, K), or None
        The values without any feature, if the explainer returns them.
    errors : array, or None
        Standard errors, if the explainer returns them.
    half_widths : array, or None
        Half the widths of its 95 % intervals. They are larger if the errors come from few draws.
    explanation : shap.Explanation or None
        The whole answer, if it is an Explanation.
    n_evaluations : int or None
        The evaluations of all rows, if the explainer counts them.
    """

    values: FloatArray
    base_values: FloatArray | None
    errors: FloatArray | None
    half_widths: FloatArray | None
    explanation: Any
    n_evaluations: int | None


@dataclass(frozen=True)
class BaseExplainer:
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
        return not isinstance(self.explainer, shap.Explainer) and callable(
            getattr(self.explainer, "attribute", None)
        )

    def takes(self, argument: str) -> bool:
        """Return whether the explainer has an argument of this name."""
        function = self.explainer.attribute if self.is_attribution else self.explainer
        return argument in parameters_of(function)

    def explain(self, rows: Table, arguments: Mapping[str, Any]) -> ExplainerResult:
        """Explain rows, with those of the arguments that the explainer has."""
        supported = {name: value for name, value in arguments.items() if self.takes(name)}
        rows = rows.copy()  # an explainer or its model may write into them
        try:
            answer = self._answer(rows, supported)
        except BudgetError:
            raise
        except ValueError as error:
            needed = needed_evaluations(error)
            if needed is None:
                raise
            raise BudgetError(
                f"{self.name} needs at least {needed} evaluations for a row: {error}", needed
            ) from error
        return self._result(answer, rows)

    def _answer(self, rows: Table, arguments: dict[str, Any]) -> Any:
        if self.is_attribution:
            from shapley_adapters.torch_support.array_module import attributions_of_rows

            return attributions_of_rows(self.explainer, np.asarray(rows), arguments)
        if self.random_state is not None:
            with global_generator(self.random_state):  # as shap left it
                return self.explainer(rows, **arguments)
        return self.explainer(rows, **arguments)

    def plot_data(self, rows: Table, values: FloatArray) -> tuple[Any, Any]:
        """Return rows as plots show them beside values, and their labels, without explaining."""
        if isinstance(self.explainer, CoalitionExplainer):
            part = self.explainer.explained_rows((rows,)).parts[0]
            return part.data, part.display_data
        data = np.asarray(rows)
        return (data if values.shape[: data.ndim] == data.shape else None), None

    def _result(self, answer: object, rows: Table) -> ExplainerResult:
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
        explanation = answer if isinstance(answer, shap.Explanation) else None
        base, errors, half_widths = None, None, None
        if explanation is not None and explanation.base_values is not None:
            base = _base_values(explanation.base_values, values, rows)
        if explanation is not None and explanation.error_std is not None:
            errors = plain_array(f"error_std of {self.name}", explanation.error_std)
            errors = errors.reshape(values.shape)
            half_widths = _half_widths(explanation, values, errors)
        n_evaluations = latest_evaluations(self.explainer)
        return ExplainerResult(values, base, errors, half_widths, explanation, n_evaluations)


def check_explainer(name: str, explainer: object) -> None:
    """Raise an error if the object cannot explain rows."""
    is_object = not isinstance(explainer, type)
    is_callable = callable(explainer) or hasattr(explainer, "attribute")
    if isinstance(explainer, str) or (is_object and is_callable):
        return
    raise InvalidArgumentTypeError(
        f"{name} must be the name of an algorithm, an explainer, a function of the rows, or one of "
        f"captum's methods; got {explainer!r}."
    )


def base_explainer_of(
    spec: ExplainerLike, *, n_jobs: int | None = None, **arguments: Any
) -> BaseExplainer:
    """Return a base explainer from its name or from the object that the user passed."""
    if isinstance(spec, str):
        model = inner_model(arguments["model"])
        if spec in _ON_ARRAYS and (is_torch_module(model) or not callable(model)):
            arguments["model"] = prediction_function(model)
        if spec in _ON_ARRAYS and arguments.get("seed") is not None:
            arguments["seed"] %= 2**32  # all that NumPy's global generator takes
        with global_generator(state_of(arguments.get("seed"))):
            explainer = shap.Explainer(algorithm=spec, **arguments)
            if isinstance(explainer, CoalitionExplainer):  # shap's own know no workers
                explainer.n_jobs = n_jobs
            return BaseExplainer(spec, explainer, np.random.get_state())  # noqa: NPY002
    return BaseExplainer(name_of(spec), spec)


def _half_widths(explanation: Explanation, values: FloatArray, errors: FloatArray) -> FloatArray:
    """Return half-widths from the bounds of an Explanation, or else from its standard errors."""
    if explanation.upper_bounds is None:
        return quantiles(0.95) * errors
    upper = plain_array("upper_bounds", explanation.upper_bounds)
    return upper.reshape(values.shape) - values


def _base_values(base_values: npt.ArrayLike, values: FloatArray, rows: Table) -> FloatArray:
    """Return base values as (R,) or (R, K); some explainers give one for all rows."""
    base = np.asarray(base_values, dtype=np.float64)
    shape = (len(values), values.shape[-1]) if has_outputs(values, rows) else (len(values),)
    if base.size == int(np.prod(shape)):
        return base.reshape(shape)
    spread: FloatArray = np.broadcast_to(base, shape).copy()
    return spread
