"""The names of features, as plots and reports write them."""

from __future__ import annotations

from ..argument_types import Explanation


def names_of_features(explanation: Explanation, n_features: int) -> list[str]:
    """Return the names of the features; of interactions, shap may have one list for each axis."""
    names = explanation.feature_names
    if names is None:
        return [f"Feature {index}" for index in range(n_features)]
    if n_features != len(names) == 2 and len(names[0]) == n_features:
        names = names[0]
    return [str(name) for name in names]


def without_formulas(name: str) -> str:
    """Return a name in which matplotlib sees no formulas."""
    return name.replace("$", r"\$")
