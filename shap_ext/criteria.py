"""Criteria of shap's explanations: complexity, sensitivity, faithfulness and accuracy.

Each takes Explanations or arrays in shap's order of axes, (R, M) or (R, M, K), and returns one
number per row, (R,), or per row and output, (R, K).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import shap

import shapley_adapters.criteria as core
from shapley_adapters.array_types import FloatArray
from shapley_adapters.criteria import (
    CoalitionErrors,
    Curve,
    Neighbourhood,
    Sensitivity,
    fit_errors,
)
from shapley_adapters.criteria.attribution_arrays import plain_array
from shapley_adapters.criteria.sensitivity import Distance
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.frames import pandas_frame
from shapley_adapters.games.model_outputs import as_outputs
from shapley_adapters.games.value_functions import (
    ValuedGame,
    ValueFunctionOrName,
    checked_log_probability,
)

from .aggregates.base_explainers import in_form_of
from .argument_types import (
    Explanation,
    Groups,
    Link,
    Masker,
    Model,
    Rows,
    Table,
    Values,
)
from .explainers.criteria_games import rows_and_draws, rows_with_game
from .inputs.datasets import plain_array_of
from .inputs.explained_function import prediction_function
from .results.explanations import folded, has_outputs, with_outputs

__all__ = [
    "CoalitionErrors",
    "Curve",
    "Neighbourhood",
    "Sensitivity",
    "absolute_error",
    "complexity",
    "deletion_curve",
    "energy_score",
    "faithfulness",
    "fit_errors",
    "insertion_curve",
    "masked_log_odds",
    "monotonicity",
    "mse_v",
    "ranking_accuracy",
    "sensitivity",
]


def complexity(explanation: Explanation | Values) -> FloatArray:
    """Return the entropy of the features' shares, in nats; lower is simpler.

    See `shapley_adapters.criteria.attribution_arrays`.

    Examples
    --------
    >>> import numpy as np
    >>> from shap_ext.criteria import complexity
    >>> complexity(np.array([[1.0, -1.0], [3.0, 0.0]])).round(3)
    array([0.693, 0.   ])
    """
    return core.complexity(_values(explanation))


def absolute_error(explanation: Explanation | Values, exact: Explanation | Values) -> FloatArray:
    """Return the sum of the absolute errors of all features; lower is better."""
    return core.absolute_error(_values(explanation), _values(exact))


def ranking_accuracy(
    explanation: Explanation | Values, exact: Explanation | Values, *, order: str = "value"
) -> FloatArray:
    """Return the share of ranks that are right, where rank m has the weight 1/m.

    See `shapley_adapters.criteria.ranking_accuracy`.
    """
    return core.ranking_accuracy(_values(explanation), _values(exact), order=order)


def faithfulness(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = None,
    *,
    subset_size: int | None = None,
    n_subsets: int = 100,
    seed: int | None = 0,
    link: Callable[[Any], Any] = shap.links.identity,
    groups: Groups | None = None,
) -> FloatArray:
    """Return how well sums of attributions correlate with losses of output; higher is better.

    See `shapley_adapters.criteria.faithfulness`, also for the other parameters.

    Parameters
    ----------
    explanation : shap.Explanation or array
        Values for all outputs of the model.
    model, masker, link, groups
        The arguments of the explainer. Absent features take their values from the masker.
    X : array or DataFrame, (R, …), optional
        The explained rows; by default the data of the explanation.
    """
    return core.faithfulness(
        *_values_and_game(explanation, model, masker, X, link, groups),
        subset_size=subset_size,
        n_subsets=n_subsets,
        seed=seed,
    )


def monotonicity(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = None,
    *,
    link: Callable[[Any], Any] = shap.links.identity,
    groups: Groups | None = None,
) -> FloatArray:
    """Return how often a feature adds no more than the feature before it; higher is better.

    See `shapley_adapters.criteria.monotonicity`, and `faithfulness` for the parameters.
    """
    values, game = _values_and_game(explanation, model, masker, X, link, groups)
    return core.monotonicity(values, game)


def mse_v(
    model: Model,
    masker: Masker,
    X: Rows,
    *,
    n_coalitions: int = 200,
    seed: int | None = 0,
    link: Callable[[Any], Any] = shap.links.identity,
    groups: Groups | None = None,
) -> CoalitionErrors:
    """Return how well values of coalitions predict the output; lower is better.

    Compares maskers, such as distributions of absent features: see
    `shapley_adapters.criteria.mse_v`, also for the other parameters.

    Parameters
    ----------
    model, masker, link, groups
        The arguments of an explainer.
    X : array or DataFrame, (R, …)
        Rows that the masker was not fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from shap_ext import criteria, maskers
    >>> rng = np.random.default_rng(0)
    >>> first = rng.normal(size=2000)
    >>> data = np.column_stack([first, first + 0.1 * rng.normal(size=2000)])
    >>> model = lambda x: x[:, 0] + x[:, 1]
    >>> marginal = criteria.mse_v(model, data[:100], data[1000:])
    >>> conditional = criteria.mse_v(model, maskers.Gaussian(data[:1000]), data[1000:])
    >>> marginal.mean.round(1), conditional.mean.round(2)
    (array([1.1]), array([0.01]))
    """
    game = rows_with_game(model, masker, X, link, groups).game
    return core.mse_v(game, n_coalitions=n_coalitions, seed=seed)


def energy_score(
    masker: Masker, X: Rows, *, n_coalitions: int = 200, seed: int | None = 0
) -> CoalitionErrors:
    """Return how well a masker's draws predict absent features; lower is better.

    Compares distributions of absent features without a model: see
    `shapley_adapters.criteria.energy_score`, also for the other parameters.

    Parameters
    ----------
    masker : masker
        A distribution of `shap_ext.maskers`, or background rows.
    X : array or DataFrame, (R, D)
        Rows of numbers that the masker was not fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from shap_ext import criteria, maskers
    >>> rng = np.random.default_rng(0)
    >>> first = rng.normal(size=2000)
    >>> data = np.column_stack([first, first + 0.1 * rng.normal(size=2000)])
    >>> marginal = criteria.energy_score(data[:100], data[1900:])
    >>> conditional = criteria.energy_score(maskers.Gaussian(data[:1000]), data[1900:])
    >>> marginal.mean.round(1), conditional.mean.round(1)
    (array([0.6]), array([0.1]))
    """
    rows, draw = rows_and_draws(masker, X)
    return core.energy_score(rows, draw, n_coalitions=n_coalitions, seed=seed)


def insertion_curve(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = None,
    *,
    n_steps: int | None = None,
    order: str = "value",
    link: Callable[[Any], Any] = shap.links.identity,
    groups: Groups | None = None,
) -> Curve:
    """Return the curve of the output while features join, the largest attributions first.

    See `shapley_adapters.criteria.insertion_curve`, and `faithfulness` for the parameters.
    """
    values, game = _values_and_game(explanation, model, masker, X, link, groups)
    return core.insertion_curve(values, game, n_steps=n_steps, order=order)


def deletion_curve(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = None,
    *,
    n_steps: int | None = None,
    order: str = "value",
    link: Callable[[Any], Any] = shap.links.identity,
    groups: Groups | None = None,
) -> Curve:
    """Return the curve of the output while features leave, the largest attributions first.

    See `shapley_adapters.criteria.deletion_curve`, and `faithfulness` for the parameters.
    """
    values, game = _values_and_game(explanation, model, masker, X, link, groups)
    return core.deletion_curve(values, game, n_steps=n_steps, order=order)


def masked_log_odds(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = None,
    *,
    value_function: ValueFunctionOrName = "log_probability",
    n_steps: int | None = None,
    order: str = "value",
    groups: Groups | None = None,
) -> Curve:
    """Return the change in log-odds of a class as its largest attributions are masked.

    See `shapley_adapters.criteria.masked_log_odds`.

    Parameters
    ----------
    explanation : shap.Explanation or array, (R, M)
        Attributions of one output, the class of `value_function`.
    model, masker, X, n_steps, order, groups
        As in `insertion_curve`; the model returns probabilities or logits of all classes.
    value_function : "log_probability" or ValueFunction
        The class; by default the class that the model predicts for the row.
    """
    log_probability = checked_log_probability(value_function)
    values, game = _values_and_game(explanation, model, masker, X, shap.links.identity, groups)
    return core.masked_log_odds(
        values,
        ValuedGame(game, log_probability, background_weights=game.background_weights),
        n_steps=n_steps,
        order=order,
    )


def sensitivity(
    explainer: Callable[..., Any],
    X: Rows,
    neighbourhood: Neighbourhood,
    *,
    model: Model | None = None,
    distance: Distance = "l2",
    relative: bool = False,
    seed: int | None = 0,
    rows_per_call: int = 1000,
    **arguments: Any,
) -> Sensitivity:
    """Explain rows and their neighbours, and return the distances between the explanations.

    μ_M and μ_A of Bhatt, Weller and Moura; see `shapley_adapters.criteria.sensitivity`.

    Parameters
    ----------
    explainer : explainer or function
        Takes rows and returns an Explanation or an array.
    X : array or DataFrame of numbers, (R, …)
        The rows.
    neighbourhood : Neighbourhood
        The distance and the number of neighbours, and which of them count.
    model : callable, torch module or estimator, optional
        Its outputs decide which neighbours count; by default the explainer's model.
    distance, relative, seed, rows_per_call
        As in `shapley_adapters.criteria.measured_sensitivity`.
    **arguments
        Arguments of the explainer, such as `max_evals`.
    """
    predictor = getattr(explainer, "model", None) if model is None else model
    if predictor is None:
        raise InvalidArgumentError(
            "model= is missing, and the explainer has no model. Pass model=."
        )
    predict = prediction_function(predictor)
    table = plain_array_of(pandas_frame(X, "X"), "X")
    _check_numbers(table)

    def explain(rows: FloatArray) -> FloatArray:
        values = plain_array("explanations", explainer(in_form_of(table, rows), **arguments))
        return folded(values, has_outputs(values, rows))

    return core.measured_sensitivity(
        explain,
        lambda rows: as_outputs(predict(in_form_of(table, rows)), len(rows)),
        table,
        neighbourhood,
        distance=distance,
        relative=relative,
        seed=seed,
        rows_per_call=rows_per_call,
    )


def _check_numbers(rows: Table) -> None:
    """Refuse columns whose values have no distance."""
    for name, kind in getattr(rows, "dtypes", {}).items() if hasattr(rows, "columns") else ():
        if kind.kind not in "biuf":
            raise InvalidArgumentError(
                f"X: column {name!r} holds {kind}, for which no neighbours can be drawn. Encode it "
                "as numbers, and set these to False in Neighbourhood(columns=)."
            )


def _values(explanation: Explanation | Values) -> FloatArray:
    """Return values with features last, (R, M) or (R, K, M)."""
    values = plain_array("explanation", explanation)
    if values.ndim < 2:
        raise InvalidArgumentError(
            f"explanation has shape {values.shape}; rows and features are needed. For one row of "
            "an Explanation use explanation[:1]."
        )
    is_explanation = isinstance(explanation, shap.Explanation)
    return folded(values, with_outputs(explanation if is_explanation else values))


def _values_and_game(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    rows: Rows | None,
    link: Link,
    groups: Groups | None,
) -> tuple[FloatArray, Any]:
    """Return the values of the players, (R, M) or (R, K, M), and their games."""
    if rows is None and isinstance(explanation, shap.Explanation):
        rows = explanation.data
    if rows is None:
        raise InvalidArgumentError("X is missing, and the explanation has no data. Pass X=rows.")
    explained = rows_with_game(model, masker, rows, link, groups)
    (part,) = explained.parts
    if part.segments is None or np.ndim(plain_array("explanation", explanation)) < 3:
        return _values(explanation), explained.game
    values = part.collect(plain_array("explanation", explanation))
    return folded(values, values.ndim == 3), explained.game
