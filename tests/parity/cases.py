"""What the parity table holds: kinds of input and model, as users hand them to a host."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from tests.helpers.brute_force import shapley_values


@dataclass(frozen=True)
class Case:
    """One kind of input with one model.

    Attributes
    ----------
    run : callable
        Takes a row of the estimator table, a budget and a seed; returns the host's result and
        its numbers as players have them, (R, M, K).
    games : list of callables
        The game of each row as a function of a set of players, for the oracle. They mask by
        themselves and share nothing with the package.
    n_players : int
        M.
    draw : callable
        Draws the host's result by the host's own plot or visualiser.
    """

    run: Callable[[Any, int, int], tuple[Any, np.ndarray]]
    games: list[Callable[[frozenset], Any]]
    n_players: int
    draw: Callable[[Any], None]

    def exact(self):
        """Return the Shapley values by their definition, (R, M, K)."""
        values = np.array([shapley_values(self.n_players, game) for game in self.games])
        return values.reshape(len(self.games), self.n_players, -1)


@dataclass(frozen=True)
class Kind:
    """A line of the parity table.

    Attributes
    ----------
    host : str
        "shap" or "captum".
    inputs, model : str
        What is handed over.
    build : callable
        Makes the case.
    atol : float
        How far the numbers may be from those compared with, where all coalitions are evaluated.
    reason : str
        Why so far.
    """

    host: str
    inputs: str
    model: str
    build: Callable[[], Case]
    atol: float = 1e-10
    reason: str = "sums of up to 2^M values of order one, in float64"

    def __str__(self):
        return f"{self.host}, {self.inputs}, {self.model}"


def show_with(plot):
    """Return a function that draws a result by `plot` and checks that there is something to see."""

    def draw(result):
        plt.close("all")
        plot(result)
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert figures, "the plot made no figure"
        drawn = [a for f in figures for a in f.axes if a.has_data() or a.patches or a.images]
        assert drawn, "the figure is empty"
        for figure in figures:
            figure.canvas.draw()
        plt.close("all")

    return draw
