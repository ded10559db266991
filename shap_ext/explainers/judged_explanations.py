"""Explanations, games and draws as the criteria of the core take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import shap

import shapley_adapters.criteria as core
from shapley_adapters.array_types import CoalitionArray, FloatArray
from shapley_adapters.criteria import Neighbourhood, Sensitivity
from shapley_adapters.criteria.attribution_arrays import plain_array
from shapley_adapters.criteria.coalition_errors import Draw
from shapley_adapters.criteria.sensitivity import Distance
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.games.evaluation import as_outputs
from shapley_adapters.games.value_functions import (
    ValuedGame,
    ValueFunction,
    ValueFunctionOrName,
    checked_log_probability,
)

from ..argument_types import Explanation, Groups, Link, Masker, Model, Rows, Table, Values
from ..games.explained_rows import ExplainedRows
from ..inputs.backgrounds import background_dataset, table_and_background
from ..inputs.datasets import Dataset, checked_dataset, plain_rows
from ..inputs.models import prediction_function
from ..maskers import ConditionalMasker
from ..results.explanations import folded, has_outputs, with_outputs
from .coalition_explainer import CoalitionExplainer

OUTPUTS = ValueFunction("raw")
"""What most criteria judge: the outputs as they are."""


def values(explanation: Explanation | Values) -> tuple[FloatArray]:
    """Return values with features last, (R, M) or (R, K, M).

    Parameters
    ----------
    explanation : shap.Explanation or array, (R, …) or (R, …, K)
        The explanation of R rows.

    Examples
    --------
    >>> import numpy as np
    >>> from shap_ext.criteria import complexity
    >>> complexity(np.array([[1.0, -1.0], [3.0, 0.0]])).round(3)
    array([0.693, 0.   ])
    """
    array = plain_array("explanation", explanation)
    if array.ndim < 2 or not array.size:
        raise InvalidArgumentError(
            f"explanation has shape {array.shape}; rows and features are needed. For one row of "
            "an Explanation use explanation[:1]."
        )
    is_explanation = isinstance(explanation, shap.Explanation)
    return (folded(array, with_outputs(explanation if is_explanation else array)),)


def values_and_exact(
    explanation: Explanation | Values, exact: Explanation | Values
) -> tuple[FloatArray, FloatArray]:
    """Return both, with features last.

    Parameters
    ----------
    explanation, exact : shap.Explanation or array, (R, …) or (R, …, K)
        The explanation of R rows, and the exact values.
    """
    return *values(explanation), *values(exact)


def values_and_game(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = None,
    *,
    value_function: ValueFunctionOrName = "log_probability",
    link: Link = shap.links.identity,
    groups: Groups | None = None,
) -> tuple[FloatArray, Any]:
    """Return the values of the players, (R, M) or (R, K, M), and their games.

    Parameters
    ----------
    explanation : shap.Explanation or array
        Values for all outputs of the model, or of the one that is judged.
    model, masker, groups
        The arguments of the explainer. Absent features take their values from the masker.
    X : array or DataFrame, (R, …), optional
        The explained rows; by default the data of the explanation.
    value_function : "log_probability" or ValueFunction
        The class whose attributions are judged; by default the class that the model predicts for
        the row. The model returns probabilities or logits of all classes.
    link : callable, "identity" or "logit"
        That of the explainer.
    """
    if value_function is not OUTPUTS:
        value_function = checked_log_probability(value_function)
    rows = explanation.data if X is None and isinstance(explanation, shap.Explanation) else X
    if rows is None:
        raise InvalidArgumentError("X is missing, and the explanation has no data. Pass X=rows.")
    explained = rows_with_game(model, masker, rows, link, groups)
    (part,) = explained.parts
    game: Any = explained.game
    if isinstance(value_function, ValueFunction) and not value_function.is_raw:
        game = ValuedGame(game, value_function, background_weights=game.background_weights)
    array = plain_array("explanation", explanation)
    if part.segments is None or np.ndim(array) < 3:
        return *values(explanation), game
    collected = part.collect(array)
    return folded(collected, collected.ndim == 3), game


def games(
    model: Model,
    masker: Masker,
    X: Rows,
    *,
    link: Link = shap.links.identity,
    groups: Groups | None = None,
) -> tuple[Any]:
    """Return the games of rows.

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
    return (rows_with_game(model, masker, X, link, groups).game,)


def rows_and_draws(masker: Masker, X: Rows) -> tuple[FloatArray, Draw]:
    """Return rows as numbers, (R, D), and the draws of absent features of a masker.

    Parameters
    ----------
    masker : masker
        A distribution of `shap_ext.maskers`, or background rows.
    X : array or DataFrame, (R, D)
        Rows of numbers that the masker was not fitted to.

    Raises
    ------
    InvalidArgumentTypeError
        If the masker is neither a distribution nor background rows, or the rows hold no numbers.

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
    drawn = masker if isinstance(masker, ConditionalMasker) else None
    background = _background_of(masker) if drawn is None else drawn.background
    table, absent, _ = table_and_background(checked_dataset(X), background)
    if table.dtype.kind not in "biuf" or absent.dtype.kind not in "biuf":
        raise InvalidArgumentTypeError(
            "energy_score measures distances, for which X and the masker must hold numbers. Leave "
            "out texts and categories, or compare maskers by mse_v."
        )
    if drawn is not None:
        return table.astype(np.float64), drawn.draws.drawn

    def of_background(row: FloatArray, masks: CoalitionArray, repeat: int) -> FloatArray:
        del repeat  # the distribution itself: all of its rows
        return np.where(masks[:, None], row, absent)

    return table.astype(np.float64), of_background


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
    table = plain_rows(X, "X")
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


def rows_with_game(
    model: Model,
    masker: Masker,
    rows: Table,
    link: Link = shap.links.identity,
    groups: Groups | None = None,
) -> ExplainedRows:
    """Return rows with their games, with the players that explainers of this package see."""
    explainer = CoalitionExplainer(model, masker, link=link, groups=groups)
    return explainer.explained_rows((rows,))


def in_form_of(example: Any, rows: FloatArray) -> Any:
    """Return rows as a DataFrame where the given ones are one.

    Columns of whole numbers or truth values keep their type as long as the rows keep to it.
    """
    columns = getattr(example, "columns", None)
    if columns is None:
        return rows
    frame = type(example)(rows, columns=columns)
    if not columns.is_unique:
        return frame
    dtypes = {
        name: kind
        for name, kind in example.dtypes.items()
        if kind.kind in "iub" and (frame[name] == frame[name].astype(kind)).all()
    }
    return frame.astype(dtypes)


def _background_of(masker: Masker) -> Dataset:
    explainer = CoalitionExplainer(np.asarray, masker)  # which makes a masker of a table
    background = background_dataset(explainer.masker, explainer._background_dtypes)
    if background is None:
        raise InvalidArgumentTypeError(
            "masker must be a distribution of shap_ext.maskers or background rows; got "
            f"{type(masker).__name__}."
        )
    return background
