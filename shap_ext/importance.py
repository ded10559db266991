"""The importance of features over many rows, as shap's bar plot takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shap

from shapley_adapters.arguments import checked_choice, checked_flag
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.global_importance.result import TITLES, GlobalImportance

from .argument_types import Explanation
from .results.explanations import explanation as explanation_of
from .results.explanations import folded, with_outputs


@dataclass(frozen=True, repr=False)
class ExplainedImportance(GlobalImportance):
    """The importance of each feature over a data set, with standard errors, for shap."""

    def to_explanation(self, output: int | None = None) -> Any:
        """Return an Explanation of shape (M,), as that of `explanation.abs.mean(0)`.

        `shap.plots.bar` draws it. It has standard errors (`error_std`) and 95 % intervals
        (`lower_bounds`, `upper_bounds`).

        Parameters
        ----------
        output : int, optional
            The output; needed if there are several.
        """
        lower, upper = (self.output_part(end, output) for end in self.interval())
        return explanation_of(
            self.output_part(self.values, output),
            base_values=0.0,
            data=None,
            feature_names=list(self.names),
            lower_bounds=lower,
            upper_bounds=upper,
            error_std=self.output_part(self.standard_errors, output),
        )


def global_importance(
    explanation: Explanation,
    *,
    kind: str = "mean_absolute",
    exact: bool = False,
    population: bool = False,
) -> ExplainedImportance:
    """Return the importance of each feature over the rows of an Explanation, with standard errors.

    `explainer.global_importance(X)` does this with new evaluations, and has the importance for a
    loss.

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
    if checked_choice("kind", kind, tuple(TITLES)) == "loss":
        raise InvalidArgumentError(
            "kind='loss' needs the model and labels, which attributions do not hold. Call "
            "global_importance of the explainer with X, y and loss."
        )
    is_exact, is_population = checked_flag("exact", exact), checked_flag("population", population)
    if not isinstance(explanation, shap.Explanation):
        raise InvalidArgumentTypeError(
            f"explanation must be a shap.Explanation; got {type(explanation).__name__}. Call "
            "explainer.global_importance(X) to explain rows."
        )
    values = _player_numbers(explanation, explanation.values)
    if explanation.error_std is not None:
        errors = _player_numbers(explanation, explanation.error_std)
    elif is_exact:
        errors = np.zeros_like(values)
    else:
        raise InvalidArgumentError(
            "explanation has no standard errors. Call our explainers with error_bounds=True. Pass "
            "exact=True if the attributions are exact, such as those of TreeExplainer."
        )
    if np.isnan(errors).any():
        raise InvalidArgumentError(
            "The attributions have unknown standard errors (NaN). Explain the rows with a larger "
            "budget, or by a method that has standard errors."
        )
    names = explanation.feature_names
    has_names = names is not None and len(names) == values.shape[1]
    return ExplainedImportance.from_attributions(
        values,
        errors,
        kind,
        errors_cancel=bool(getattr(explanation, "errors_cancel", False)),
        is_population=is_population,
        names=list(map(str, names)) if has_names else None,
        output_names=explanation.output_names,
    )


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
