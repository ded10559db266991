"""Which features shap's bar and beeswarm plots draw in which line."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.cluster
import scipy.spatial
import shap

from shapley_adapters.array_types import FloatArray

from ..shap_internals import merged_nodes, order_by_clusters, resolved_order

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
    values: FloatArray, order: Any, n_lines: int | None, tree: Any, cutoff: float
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
