"""Absent features after an intervention that sets the present ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..array_types import BoolArray, FloatArray
from ..errors import InvalidArgumentError
from ..graphs.causal_graph import CausalEdges, CausalGraph, CausalOrder, read_causal_graph
from .gaussian import Gaussian

Confounded: TypeAlias = "bool | Sequence[Any]"
"""For all components, or True and False for each entry of an order, or some nodes of a graph."""


@dataclass
class CausalGaussian(Gaussian):
    """A normal distribution in which setting a feature does not change its causes.

    Features are drawn one component after the other, each given the features of the components that
    are its causes. Present features of the same component count, too, if these influence each
    other; not if all of them have a common cause that is not observed (Heskes et al., 2020, section
    4, equation 6). Draws are linear in the present features and in normal numbers, so that the
    matrices of `Gaussian` are composed.

    Attributes
    ----------
    graph : CausalGraph
        The components of features and their causes.
    is_confounded : array of bool, (components,)
        Whether the features of a component have a common cause that is not observed.
    """

    graph: CausalGraph = field(kw_only=True)
    is_confounded: BoolArray = field(kw_only=True)

    @classmethod
    def fitted_to_graph(
        cls,
        data: npt.NDArray[Any],
        names: Sequence[Any] | None = None,
        *,
        order: CausalOrder | None,
        graph: CausalEdges | None,
        confounded: Confounded,
    ) -> CausalGaussian:
        """Return the distribution with the mean and the covariance of rows, (N, D).

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If the order does not hold each column once, the graph has a cycle, or as in
            `Gaussian.fitted`.
        """
        normal = Gaussian.fitted(data, names)
        n_columns = data.shape[1]
        causal = read_causal_graph(order, graph, n_columns, names)
        flags = _flags(confounded, causal, order is not None, names)
        return cls(normal.mean, normal.covariance, graph=causal, is_confounded=flags)

    def _conditional_matrices(self, keys: npt.NDArray[Any]) -> FloatArray:
        known, absent = np.split(keys, 2, axis=1)
        identity = np.eye(known.shape[1])
        matrices = np.where(known[:, None], identity, 0.0)
        for component, causes in enumerate(self.graph.causes):
            is_own = self.graph.members([component])
            given = (known | absent) & self.graph.members(causes)
            if not self.is_confounded[component]:
                given |= known & is_own
            drawn = absent & is_own
            own = super()._conditional_matrices(np.concatenate([given, drawn], axis=1))
            matrices = matrices + own @ (matrices + np.where(drawn[:, None], identity, 0.0))
        return matrices


def _flags(
    confounded: Confounded, graph: CausalGraph, is_order: bool, names: Sequence[Any] | None
) -> BoolArray:
    """Return which components have a common cause that is not observed."""
    n_components = len(graph.components)
    if isinstance(confounded, (bool, np.bool_)):
        return np.full(n_components, bool(confounded))
    if is_order:
        given = list(confounded)
        if len(given) == n_components and all(isinstance(flag, (bool, np.bool_)) for flag in given):
            return np.array(given, dtype=bool)
        raise InvalidArgumentError(
            f"confounded must be True or False, for all components of order or for each of the "
            f"{n_components}; got {confounded!r}."
        )
    numbers = {name: index for index, name in enumerate(() if names is None else names)}
    members = [set(component) for component in graph.components]
    flags = np.zeros(n_components, dtype=bool)
    for node in confounded if isinstance(confounded, (list, tuple, set)) else [confounded]:
        features = {
            numbers.get(f, f) for f in (node if isinstance(node, (list, tuple)) else [node])
        }
        if features not in members:
            raise InvalidArgumentError(
                f"confounded holds {node!r}, which is no node of graph. Pass True, False, or a "
                "list of nodes, each a tuple of features."
            )
        flags[members.index(features)] = True
    return flags
