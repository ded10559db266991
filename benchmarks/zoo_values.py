"""Games of the zoo with their exact Shapley values, also of more players than can be tabulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np
from coalition_games import BoolArray, FloatArray, IntArray, TabulatedGame
from core_games import CoreGame
from zoo_games import TERMS, shares_of_vote, tabulated

_MOST_TABULATED = 20
"""Number of players up to which the values of all coalitions are kept."""


@dataclass(frozen=True)
class ZooGames:
    """Some games of a kind and their exact Shapley values.

    Attributes
    ----------
    values_of : callable
        Rows, (P,), and a coalition of each, (P, M), to values, (P,).
    exact : array, (R, M)
        The Shapley values.
    """

    values_of: Callable[[IntArray, BoolArray], FloatArray]
    exact: FloatArray

    @property
    def n_players(self) -> int:
        """M, the number of players."""
        return int(self.exact.shape[1])

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """Return the values of all games, (R, C), of coalitions, (1, C, M)."""
        n_games, n_coalitions = len(self.exact), coalitions.shape[1]
        rows = np.repeat(np.arange(n_games), n_coalitions)
        values = self.values_of(rows, np.tile(coalitions[0], (n_games, 1)))
        return values.reshape(n_games, n_coalitions)

    def for_core(self) -> CoreGame:
        """Return the games as the core takes them."""
        return CoreGame(self.values_of, self.n_players, len(self.exact))


def games_of(name: str, n_players: int, n_games: int) -> ZooGames:
    """Return some games of a kind; few kinds have exact values with many players."""
    if n_players > _MOST_TABULATED:
        if name not in _LARGE:
            known = ", ".join(_LARGE)
            raise SystemExit(
                f"{name} has no exact values with more than {_MOST_TABULATED} players; these "
                f"have: {known}"
            )
        return _LARGE[name](n_players, n_games)
    return tabulated_games(tabulated(name, n_players, n_games), n_players)


def tabulated_games(table: FloatArray, n_players: int) -> ZooGames:
    """Return games, given the values of all coalitions, (R, 2^M)."""
    powers = 1 << np.arange(n_players)

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        values: FloatArray = table[rows, coalitions @ powers]
        return values

    return ZooGames(values_of, TabulatedGame(table, n_players).shapley_values())


def _large_votes(n_players: int, n_games: int) -> ZooGames:
    rng = np.random.default_rng(0)
    shares = np.stack([shares_of_vote(n_players, rng) for _ in range(n_games)])

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        in_favour = (coalitions * shares[rows]).sum(axis=1)
        values: FloatArray = (in_favour > shares[rows].sum(axis=1) / 2).astype(float)
        return values

    return ZooGames(values_of, np.stack([values_of_vote(of_game) for of_game in shares]))


def _large_airports(n_players: int, n_games: int) -> ZooGames:
    """Return maxima of uniform numbers: each step of the sorted numbers is shared by the larger."""
    numbers = np.random.default_rng(0).uniform(size=(n_games, n_players))

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        values: FloatArray = (coalitions * numbers[rows]).max(axis=1)
        return values

    order = np.argsort(numbers, axis=1)
    steps = np.diff(np.take_along_axis(numbers, order, axis=1), axis=1, prepend=0.0)
    shares = np.cumsum(steps / np.arange(n_players, 0, -1), axis=1)
    exact = np.empty_like(numbers)
    np.put_along_axis(exact, order, shares, axis=1)
    return ZooGames(values_of, exact)


def _large_unanimities(name: str, n_players: int, n_games: int) -> ZooGames:
    """Return sums of unanimity games, whose members share each value."""
    rng = np.random.default_rng(0)
    of_games = [list(TERMS[name](n_players, rng)) for _ in range(n_games)]
    exact = np.zeros((n_games, n_players))
    for game, terms in enumerate(of_games):
        for members, value in terms:
            exact[game, members] += value / len(members)

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        values = np.zeros(len(rows))
        for game in np.unique(rows):
            indices = np.flatnonzero(rows == game)
            present = coalitions[indices]
            for members, value in of_games[game]:
                values[indices] += value * present[:, members].all(axis=1)
        return values

    return ZooGames(values_of, exact)


def values_of_vote(shares: IntArray) -> FloatArray:
    """Return the Shapley values of a vote, by counting the coalitions of each size and share."""
    n_players, total = len(shares), int(shares.sum())
    values = np.zeros(n_players)
    for player, own in enumerate(shares):
        counts = np.zeros((n_players, total + 1))
        counts[0, 0] = 1.0
        for other in np.delete(shares, player):
            counts[1:, other:] += counts[:-1, : total + 1 - other].copy()
        in_favour = np.arange(total + 1)
        is_decided = (2 * in_favour <= total) & (2 * (in_favour + own) > total)
        weights = [1 / (n_players * comb(n_players - 1, size)) for size in range(n_players)]
        values[player] = weights @ counts[:, is_decided].sum(axis=1)
    return values


_LARGE: dict[str, Callable[[int, int], ZooGames]] = {
    "vote": _large_votes,
    "airport (max)": _large_airports,
    **{name: partial(_large_unanimities, name) for name in TERMS},
}
"""Kinds whose Shapley values are known for any number of players."""
