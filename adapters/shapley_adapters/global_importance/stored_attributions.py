"""Global importance from attributions that exist already."""

from __future__ import annotations

import numpy as np

from ..arguments import checked_choice
from ..array_types import AttributionArray
from ..errors import InvalidArgumentError
from .error_parts import KINDS, error_parts
from .estimate_importance import ImportanceEstimate


def importance_of_attributions(
    values: AttributionArray,
    errors: AttributionArray,
    kind: str,
    *,
    errors_cancel: bool,
    is_population: bool,
) -> ImportanceEstimate:
    """Return the mean of attributions over their rows, with its variance.

    Parameters
    ----------
    values, errors : arrays, (R, M, K)
        Attributions and their standard errors.
    kind : {"mean_absolute", "mean"}
        What is averaged.
    errors_cancel : bool
        Whether the errors of the rows are independent and have mean 0.
    is_population : bool
        Whether the rows are all that there are, rather than a sample.
    """
    if checked_choice("kind", kind, KINDS) == "loss":
        raise InvalidArgumentError(
            "kind='loss' needs the model and labels, which attributions do not hold. Call "
            "global_importance of the explainer with X, y and loss."
        )
    if len(values) < 2 and not is_population:
        raise InvalidArgumentError(
            f"global_importance needs at least 2 rows; got {len(values)}. One row has no spread "
            "from which a standard error could be estimated."
        )
    if np.isnan(errors).any():
        raise InvalidArgumentError(
            "The attributions have unknown standard errors (NaN). Explain the rows with a larger "
            "budget, or by a method that has standard errors."
        )
    is_exact = not errors.any()
    parts = error_parts(values, errors, kind, errors_cancel or is_exact)
    variance, freedom = parts.variance(1.0 if is_population else 0.0)
    return ImportanceEstimate(parts, variance, freedom, len(values), len(values), 0, None)
