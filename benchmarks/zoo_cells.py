"""Cells of the benchmarks of games: a kind of game with a number of evaluations a player."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from coalition_games import BoolArray, FloatArray, IntArray
from core_games import CoreGame
from scores import ErrorScore, Ratio
from zoo_games import GAMES

import shapley_adapters as core

_CONFIDENCES = (0.95, 0.6827)
EXACT = 1e-9
"""Errors below this are rounding."""


@dataclass(frozen=True)
class ZooCell:
    """Errors of each estimator on a kind of game, and how often our intervals hold.

    Attributes
    ----------
    name : str
        The kind of game.
    per_player : int
        Evaluations a player.
    errors : dict of str to float
        The error of each estimator.
    inside : tuple of float
        The shares of exact values in 95 % and 68 % intervals.
    """

    name: str
    per_player: int
    errors: dict[str, float]
    inside: tuple[float, float]

    @property
    def ratio(self) -> float:
        """Our error over that of the best of the others."""
        raise NotImplementedError


def core_game(table: FloatArray, n_players: int) -> CoreGame:
    """Return games, given the values of all coalitions, (R, 2^M), as the core takes them."""

    def values_of(rows: IntArray, coalitions: BoolArray) -> FloatArray:
        values: FloatArray = table[rows, coalitions @ (1 << np.arange(n_players))]
        return values

    return CoreGame(values_of, n_players, len(table))


def ratio_of(own: FloatArray, other: FloatArray, least: float) -> Ratio:
    """Return a ratio of mean errors with its 95 % interval, paired by game.

    Parameters
    ----------
    own, other : arrays, (S, R)
        The errors, by seed and game.
    least : float
        Smaller errors count as this.
    """
    first, second = (
        ErrorScore("", 0, np.maximum(errors, least), 0, 0, 0) for errors in (own, other)
    )
    return first.ratio_to(second)


def shares_inside(found: core.Estimate, exact: FloatArray) -> list[float]:
    """Return the shares of exact values, (R, M), in 95 % and in 68 % intervals."""
    intervals = [found.interval(confidence) for confidence in _CONFIDENCES]
    return [
        float(((lower[:, :, 0] - EXACT <= exact) & (exact <= upper[:, :, 0] + EXACT)).mean())
        for lower, upper in intervals
    ]


def print_summary(per_player: int, cells: Sequence[ZooCell]) -> None:
    """Print the median ratio and how often intervals hold, of cells of one budget."""
    cells = [cell for cell in cells if cell.per_player == per_player]
    if not cells:
        return
    ratios = [cell.ratio for cell in cells]
    inside = np.array([cell.inside for cell in cells])
    print(
        f"\n{per_player} a player: median ratio {np.median(ratios):.2f}, largest {max(ratios):.2f};"
        f" in 95 %: mean {inside[:, 0].mean():.3f}, least {inside[:, 0].min():.2f};"
        f" in 68 %: mean {inside[:, 1].mean():.3f}, least {inside[:, 1].min():.2f}"
    )


def argument_parser(
    description: str | None,
    per_player: list[int],
    n_seeds: int,
    more_kinds: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Return the parser of the sizes of a run, with these defaults."""
    kinds = [*GAMES, *more_kinds]
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--players", type=int, default=10)
    parser.add_argument("--per-player", type=int, nargs="+", default=per_player)
    parser.add_argument("--games", type=int, default=10, help="games of each kind")
    parser.add_argument("--seeds", type=int, default=n_seeds)
    parser.add_argument("--kinds", nargs="+", choices=kinds, help="all where none is named")
    return parser
