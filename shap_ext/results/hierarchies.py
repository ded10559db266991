"""The values of unions in an Explanation, in the form of shap's Partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shapley_adapters import Estimate, PlayerTree
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.pipeline.result import quantiles

from ..argument_types import Outputs
from ..inputs.datasets import packed
from ..shap_internals import set_clustering, set_tracked
from .bounded_explanation import UNIONS
from .explanations import OutputSelection, Part


def store_hierarchy(
    explanation: Any,
    estimate: Estimate,
    trees: Any,
    parts: Sequence[Part],
    outputs: Outputs,
    output_names: Sequence[Any] | None,
    is_shown: bool,
) -> None:
    """Store the tree of each row and the values of its nodes in an Explanation.

    `clustering` is the tree as a linkage; `hierarchical_values` has a number for each of its
    2 M − 1 nodes: the value of a player, or of a union that is not split, and 0 at all others.
    shap's text plot then shows the unions that are not split as phrases. Attributions of several
    inputs, and those that are painted on pixels, have no tree of their own. Tables, which are not
    `is_shown`, have one where the masker has: shap's beeswarm plot fails with a clustering.
    """
    all_unions, errors = estimate.unions, estimate.union_errors
    if all_unions is None or errors is None or len(parts) > 1 or parts[0].segments is not None:
        return
    if not is_shown and explanation.clustering is None:
        return
    sizes = [int(np.prod(shape)) for shape in parts[0].shapes]
    n_nodes = [2 * size - 1 for size in sizes]
    of_rows = [trees] * len(sizes) if isinstance(trees, PlayerTree) else trees
    keys = list(zip(of_rows, sizes, strict=True))
    made = {(tree, size): tree.to_linkage(size) for tree, size in dict.fromkeys(keys)}
    linkages = [made[key] for key in keys]
    n_rows, _, n_outputs = estimate.values.shape
    numbers = np.zeros((3, n_rows, max(n_nodes), n_outputs))
    lowest = estimate.degrees_of_freedom.min(axis=1, initial=np.inf)  # those of the orders
    widths = errors * quantiles(0.95, lowest)[:, None]
    for row, (linkage, size) in enumerate(zip(linkages, sizes, strict=True)):
        unions = all_unions[row, :size]
        nodes = nodes_of_unions(linkage, unions)
        for union in np.unique(unions[unions >= 0]).tolist():
            members = np.flatnonzero(unions == union) if nodes[union] >= size else [union]
            numbers[0, row, nodes[union]] = estimate.values[row, members].sum(axis=0)
            numbers[1, row, nodes[union]] = widths[row, union]
            numbers[2, row, nodes[union]] = errors[row, union]
    selection = OutputSelection.from_names(estimate, outputs, output_names)
    of_outputs: list[Any] = []
    for number in numbers:
        selected = zip(selection.values(number), n_nodes, strict=True)
        of_outputs.append([of_row[:n] for of_row, n in selected])
    are_alike = len({of_row.shape for of_row in of_outputs[0]}) == 1
    values, *bounds = [np.stack(one) for one in of_outputs] if are_alike else of_outputs
    explanation.hierarchical_values = values
    if explanation.lower_bounds is not None:
        for name, bound in zip(UNIONS, bounds, strict=True):
            set_tracked(explanation, name, bound, 1 + bound[0].ndim)
    set_clustering(explanation, packed(linkages))


def nodes_of_unions(linkage: FloatArray, unions: IntArray) -> dict[int, int]:
    """Return the node of a linkage that holds each union: all of its players, and no others.

    Parameters
    ----------
    linkage : array, (M − 1, 4)
        The linkage.
    unions : array, (M,)
        The union of each player; −1 for players of none, which may be in any node.
    """
    labels = [*unions.tolist(), *[-1] * len(linkage)]
    nodes = {label: player for player, label in enumerate(labels[: len(unions)]) if label >= 0}
    mixed = -2
    for row, (first, second) in enumerate(linkage[:, :2].astype(np.intp).tolist()):
        node, own, other = len(unions) + row, labels[first], labels[second]
        if own in (other, -1):
            labels[node] = other
        else:
            labels[node] = own if other == -1 else mixed
        if labels[node] >= 0:
            nodes[labels[node]] = node
    return nodes
