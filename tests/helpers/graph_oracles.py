"""The oracles on graphs: values straight from their definitions, sharing no code with the package.

Graphs are networkx graphs of the players 0, …, M − 1; games are functions of a set of players.
"""

from itertools import combinations
from math import comb, factorial

import networkx as nx
import numpy as np

from tests.helpers.brute_force import shapley_values


def neighbourhood(graph, node, order):
    """Return the nodes within `order` edges of `node`, in the order of their numbers."""
    return sorted(nx.single_source_shortest_path_length(graph, node, cutoff=order))


def local_game(graph, node, order, value, context):
    """Return the nodes of a neighbourhood and its game, the others absent or present."""
    near = neighbourhood(graph, node, order)
    outside = frozenset(graph) - frozenset(near) if context == "kept" else frozenset()
    return near, lambda members: np.asarray(value(frozenset(members) | outside))


def l_shapley(graph, value, order, context="removed"):
    """Return the L-Shapley values, Definition 1."""
    found = []
    for node in sorted(graph):
        near, inside = local_game(graph, node, order, value, context)

        def renumbered(members, near=near, inside=inside):
            return inside(near[place] for place in members)

        found.append(shapley_values(len(near), renumbered)[near.index(node)])
    return np.array(found)


def subsets(members):
    members = list(members)
    return [c for size in range(len(members) + 1) for c in combinations(members, size)]


def c_shapley(graph, value, order, weighting="myerson", context="removed", marginals="removal"):
    """Return the C-Shapley values, Definition 2, with either coefficient and either marginal."""
    found = []
    for node in sorted(graph):
        near, inside = local_game(graph, node, order, value, context)
        total = np.zeros_like(inside(()), dtype=float)
        for others in subsets(set(near) - {node}):
            members = {node, *others}
            if not nx.is_connected(graph.subgraph(members)):
                continue
            u = len(members)
            around = {n for m in members for n in graph[m]} & set(near) - members
            b = len(around)
            weight = factorial(u - 1) * factorial(b) / factorial(u + b)
            if weighting == "paper":
                weight = 2 / ((u + 2) * (u + 1) * u)
            if marginals == "removal":
                step = inside(members) - inside(members - {node})
            else:
                step = inside(members) - inside(())
                for component in nx.connected_components(graph.subgraph(members - {node})):
                    step = step - (inside(component) - inside(()))
            total = total + weight * step
        found.append(total)
    return np.array(found)


def restricted(graph, value):
    """Return Myerson's game: components of a coalition act apart."""

    def of_components(members):
        nobody = np.asarray(value(frozenset()))
        parts = nx.connected_components(graph.subgraph(members))
        return nobody + sum(np.asarray(value(frozenset(part))) - nobody for part in parts)

    return of_components


def myerson(graph, value):
    """Return the Myerson values: the Shapley values of the restricted game."""
    return shapley_values(len(graph), restricted(graph, value))


def connected_sets(graph, largest):
    """Return the connected sets of up to `largest` nodes."""
    every = [c for size in range(1, largest + 1) for c in combinations(sorted(graph), size)]
    return [frozenset(c) for c in every if nx.is_connected(graph.subgraph(c))]


def regression(sets, value, n_players, kernel="shapley", efficient=False, context="removed"):
    """Return the least squares solution, by its optimality conditions written out."""
    everyone, nobody = frozenset(range(n_players)), frozenset()
    if kernel == "shapley":
        sets = [members for members in sets if len(members) < n_players]
    design = np.array([[float(i in members) for i in range(n_players)] for members in sets])
    n = [len(members) for members in sets]
    weights = np.ones(len(sets))
    if kernel == "shapley":
        weights = np.array(
            [(n_players - 1) / (comb(n_players, s) * s * (n_players - s)) for s in n]
        )

    def worth(members):
        return np.asarray(value(frozenset(members)), dtype=float)

    if context == "removed":
        targets = np.array([worth(members) - worth(nobody) for members in sets])
    else:
        targets = np.array([worth(everyone) - worth(everyone - members) for members in sets])
    normal = design.T @ (weights[:, None] * design)
    right = np.tensordot(design.T * weights, targets, axes=1)
    if efficient:  # with a multiplier for the sum
        ones = np.ones((n_players, 1))
        normal = np.block([[normal, ones], [ones.T, np.zeros((1, 1))]])
        right = np.concatenate([right, (worth(everyone) - worth(nobody))[None]])
    return np.linalg.solve(normal, right)[:n_players]
