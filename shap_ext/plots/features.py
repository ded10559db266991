"""Names and order of the features in plots."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.cluster
import scipy.spatial
import shap

from shapley_adapters.array_types import FloatArray

from ..argument_types import Explanation
from ..shap_internals import merged_nodes, order_by_clusters, resolved_order


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


Members = list[list[int]]
"""The features of each line, from the top; the last line may be the sum of all other features."""


def lines_of_features(order: Any, n_lines: int | None, *, group_rest: bool = True) -> Members:
    """Return the features of each line for features in an order.

    Parameters
    ----------
    order : sequence of int, or of lists of int
        The features, or merged features, from the most important.
    n_lines : int or None
        The largest number of lines; None for all.
    group_rest : bool
        Whether the last line is the sum of all others that do not fit.
    """
    groups = [[int(feature) for feature in np.atleast_1d(group)] for group in order]
    if n_lines is None or n_lines >= len(groups):
        return groups
    if not group_rest:
        return groups[:n_lines]
    rest = [feature for group in groups[n_lines - 1 :] for feature in group]
    return [*groups[: n_lines - 1], rest]


def order_of_bars(
    values: FloatArray, order: Any, n_lines: int | None, tree: FloatArray | None, cutoff: float
) -> list[list[int]]:
    """Return the features of each bar in shap's order, with clusters merged where shap merges.

    Parameters
    ----------
    values : array, (C, M)
        The lengths of the bars of each cohort.
    order : OpChain, Explanation or array
        shap's `order`.
    n_lines : int or None
        shap's `max_display`.
    tree : array or None
        The clustering.
    cutoff : float
        Features at smaller distances stay together.
    """
    groups = [[feature] for feature in range(values.shape[1])]
    n_shown = len(groups) if n_lines is None else min(n_lines, len(groups))
    while True:
        ranks = [np.argsort(resolved_order(order, shap.Explanation(row))) for row in values]
        features = np.argsort(np.mean(ranks, axis=0))
        if tree is None:
            break
        sizes = np.abs(values).mean(axis=0)
        distances = scipy.spatial.distance.squareform(scipy.cluster.hierarchy.cophenet(tree))
        features = order_by_clusters(distances, tree, sizes, cutoff, features)
        is_cut = n_shown < len(features)
        if not is_cut or distances[features[n_shown - 1], features[n_shown - 2]] > cutoff:
            break
        tree, kept, merged = merged_nodes(sizes, tree)
        values = values.copy()
        values[:, kept] += values[:, merged]
        values = np.delete(values, merged, axis=1)
        groups[kept] += groups.pop(merged)
    return [groups[feature] for feature in features]
