"""Global importance from Explanations, explainers or models."""

from __future__ import annotations

from typing import Any

import numpy as np
import shap

from shapley_adapters.arguments import checked_flag
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.global_importance.estimate_importance import importance_of_attributions
from shapley_adapters.global_importance.losses import checked_plan

from .argument_types import Explanation
from .results.explanations import folded, with_outputs
from .results.global_importance import ExplainedImportance


def global_importance(
    explanation: Explanation,
    *,
    kind: str = "mean_absolute",
    exact: bool = False,
    population: bool = False,
) -> ExplainedImportance:
    """Return the importance of each feature over the rows of an Explanation, with standard errors.

    `explainer.global_importance(X)` does this with new evaluations. It also chooses rows and
    evaluations for a tolerance, and has the importance for a loss.

    Parameters
    ----------
    explanation : shap.Explanation
        Attributions with standard errors: `explainer(X, error_bounds=True)`. The standard errors of
        the result are small if the errors of the rows cancel: an unbiased estimator with
        `independent_rows=True`. Otherwise they hold the mean standard error of the rows, as if all
        rows had the same error.
    kind : {"mean_absolute", "mean"}
        What is averaged over rows: absolute attributions, or the attributions.
    exact : bool
        Whether the attributions of an Explanation without standard errors are exact, such as those
        of TreeExplainer.
    population : bool
        Whether the rows are all that there are, rather than a sample.

    Returns
    -------
    GlobalImportance
        `values`, `standard_errors`, `interval()`, `to_frame()`, `plot()`, `to_explanation()`.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the explanation has no standard errors and is not `exact`, or if its rows have features
        of their own.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> explainer = shap_ext.EnumerationExplainer(lambda x: x[:, 0] - x[:, 1], np.zeros((1, 2)))
    >>> explanation = explainer(np.array([[1.0, 2.0], [-3.0, 0.0], [2.0, 1.0]]), error_bounds=True)
    >>> shap_ext.global_importance(explanation).values
    array([2., 1.])
    """
    plan = checked_plan(
        kind=kind,
        n_rows=None,
        tolerance=None,
        total=None,
        population=population,
        total_name="total_evals",
    )
    checked_flag("exact", exact)
    if not isinstance(explanation, shap.Explanation):
        raise InvalidArgumentTypeError(
            f"explanation must be a shap.Explanation; got {type(explanation).__name__}. Call "
            "explainer.global_importance(X) to explain rows."
        )
    values = _player_numbers(explanation, explanation.values)
    result = importance_of_attributions(
        values,
        _errors(explanation, exact),
        plan.kind,
        errors_cancel=bool(getattr(explanation, "errors_cancel", False)),
        is_population=plan.is_population,
    )
    return ExplainedImportance.from_estimate(
        result, plan.kind, _names(explanation, values.shape[1]), explanation.output_names
    )


def _errors(explanation: Explanation, exact: bool) -> FloatArray:
    """Return standard errors, (R, M, K); zeros for exact attributions."""
    if explanation.error_std is not None:
        return _player_numbers(explanation, explanation.error_std)
    if not exact:
        raise InvalidArgumentError(
            "explanation has no standard errors. Call our explainers with error_bounds=True. Pass "
            "exact=True if the attributions are exact, such as those of TreeExplainer."
        )
    return np.zeros_like(_player_numbers(explanation, explanation.values))


def _player_numbers(explanation: Explanation, array: Any) -> FloatArray:
    """Return numbers of an Explanation as (R, M, K)."""
    array = np.asarray(array)
    if array.dtype == object or array.ndim < 2:
        raise InvalidArgumentError(
            f"explanation must hold the same features for several rows, (R, M); its values have "
            f"the shape {array.shape} and the type {array.dtype}."
        )
    has_axis = with_outputs(explanation)
    if array.ndim == 3 and array.shape[1] == array.shape[2] and explanation.output_names is None:
        raise InvalidArgumentError(
            f"explanation has the shape {array.shape}, which may be that of interactions. Explain "
            "the rows without interactions=, or set output_names if these are outputs."
        )
    per_output = folded(array.astype(np.float64), has_axis)
    return np.moveaxis(per_output, 1, 2) if has_axis else per_output[..., None]


def _names(explanation: Explanation, n_players: int) -> list[str] | None:
    """Return the names of the features, if there is one for each."""
    names = explanation.feature_names
    if names is None or len(names) != n_players:
        return None
    return list(map(str, names))
