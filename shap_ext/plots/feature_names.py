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
    return [without_surrogates(str(name)) for name in names]


def without_formulas(name: str) -> str:
    """Return a name in which matplotlib sees no formulas."""
    return name.replace("$", r"\$")


def drawable(name: str) -> str:
    """Return a name that matplotlib can draw: a formula as it is, what is no formula as text."""
    from matplotlib.mathtext import MathTextParser

    name = without_surrogates(name)
    try:
        MathTextParser("path").parse(name)
    except ValueError:
        return without_formulas(name)
    return name


def without_surrogates(text: str) -> str:
    """Return a text that can be encoded: halves of characters become question marks."""
    return text.encode(errors="replace").decode()
