"""Kinds of games whose parameters are drawn as well: quotas, estates, costs, networks, ensembles.

A value that is chosen for one quota or one distribution of costs shows on the others.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from coalition_games import FloatArray
from zoo_games import GAMES, shares_of_vote
from zoo_models import Maker, all_coalitions

_POINTS = 300
"""Points that an ensemble classifies."""


def _vote(n_players: int, rng: np.random.Generator, lowest: float, highest: float) -> FloatArray:
    """Return a vote of random shares that needs more than a quota of all."""
    shares, quota = shares_of_vote(n_players, rng), rng.uniform(lowest, highest)
    values: FloatArray = (all_coalitions(n_players) @ shares > quota * shares.sum()).astype(float)
    return values


def _bankruptcy(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return what is left of an estate for some creditors after all others are paid in full."""
    claims = rng.lognormal(size=n_players)
    estate = rng.uniform(0.2, 0.9) * claims.sum()
    values: FloatArray = np.maximum(estate - ~all_coalitions(n_players) @ claims, 0.0)
    return values


def _airport(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return the largest of lognormal costs."""
    costs = rng.lognormal(sigma=rng.uniform(0.5, 2.0), size=n_players)
    values: FloatArray = (all_coalitions(n_players) * costs).max(axis=1)
    return values


def _ensemble(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return the accuracy of the majority of models, each right with its own probability."""
    difficulty = rng.normal(size=(_POINTS, 1))  # that all models share
    skills = rng.normal(0.4, 0.6, size=n_players)
    correct = np.where(skills + rng.normal(size=(_POINTS, n_players)) > difficulty, 1, -1)
    votes = all_coalitions(n_players).astype(float) @ correct.T
    values: FloatArray = ((votes > 0) + 0.5 * (votes == 0)).mean(axis=1)
    return values


def _distances(n_nodes: int, rng: np.random.Generator) -> FloatArray:
    """Return the distances of random points in a square, each times a random detour."""
    points = rng.uniform(size=(n_nodes, 2))
    detours = rng.uniform(1, 4, size=(n_nodes, n_nodes))
    distances: FloatArray = np.linalg.norm(points[:, None] - points, axis=2)
    return distances * np.minimum(detours, detours.T)


def _shortest_path(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return how much shorter a path between two nodes is where it may pass through players."""
    lengths, present = _distances(n_players + 2, rng), all_coalitions(n_players)
    lengths[-2, -1] = lengths[-1, -2] = 2 * lengths.max()  # most paths pass through players
    paths = np.repeat(lengths[None, -2], len(present), axis=0)  # from the first end
    absent = np.pad(~present, ((0, 0), (0, 2)))
    for _ in range(n_players):
        starts = np.where(absent, np.inf, paths)
        paths = np.stack([(starts + to_node).min(axis=1) for to_node in lengths.T], axis=1)
    return np.asarray(lengths[-2, -1] - paths[:, -1])


def _spanning_tree(n_players: int, rng: np.random.Generator) -> FloatArray:
    """Return the length of the shortest tree of players and a source, by Prim's algorithm."""
    lengths, present = _distances(n_players + 1, rng), all_coalitions(n_players)
    is_left = np.pad(present, ((0, 0), (0, 1)))
    to_tree = np.repeat(lengths[None, -1], len(present), axis=0)
    values = np.zeros(len(present))
    for _ in range(n_players):
        open_lengths = np.where(is_left, to_tree, np.inf)
        nearest = open_lengths.argmin(axis=1)
        added = open_lengths.min(axis=1)
        values += np.where(np.isfinite(added), added, 0.0)
        is_left[np.arange(len(present)), nearest] = False
        to_tree = np.minimum(to_tree, lengths[nearest])
    return values


_QUOTAS = (0.5, 0.6, 0.7, 0.8, 0.95)

DRAWN: dict[str, Maker] = {
    **{
        f"vote, quota {low} to {high}": partial(_vote, lowest=low, highest=high)
        for low, high in pairwise(_QUOTAS)
    },
    "bankruptcy": _bankruptcy,
    "airport, lognormal": _airport,
    "ensemble": _ensemble,
    "shortest path": _shortest_path,
    "spanning tree": _spanning_tree,
}
"""The kinds whose parameters are drawn."""


def drawn_tables(kind: str, n_players: int, n_games: int, seed: int) -> FloatArray:
    """Return the values of all coalitions of some games of any kind, (R, 2^M)."""
    kinds = DRAWN | GAMES
    rng = np.random.default_rng([seed, list(kinds).index(kind)])
    return np.stack([kinds[kind](n_players, rng) for _ in range(n_games)])
