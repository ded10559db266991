"""How well values and draws of coalitions predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..arguments import checked_count, checked_seed
from ..array_types import CoalitionArray, FloatArray
from ..errors import InvalidArgumentError
from ..games.evaluation import Evaluator
from ..games.game import Game

_MOST_BITS = 20
"""Up to this many players all coalitions can be listed."""


@dataclass(frozen=True)
class CoalitionErrors:
    """Errors of the values or of the draws of coalitions.

    Attributes
    ----------
    of_rows : array, (R, K)
        The mean over coalitions for each row and output.
    """

    of_rows: FloatArray

    @property
    def mean(self) -> FloatArray:
        """The mean over rows, (K,)."""
        return self.of_rows.mean(axis=0)

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean, (K,), as if the rows were drawn at random."""
        return self.of_rows.std(axis=0, ddof=1) / np.sqrt(len(self.of_rows))

    def __sub__(self, other: CoalitionErrors) -> CoalitionErrors:
        """Return the difference for each row: its standard error is much smaller than theirs."""
        if self.of_rows.shape != other.of_rows.shape:
            raise InvalidArgumentError(
                f"Errors of {self.of_rows.shape} and {other.of_rows.shape} rows and outputs have "
                "no difference; both must be those of the same rows and model."
            )
        return CoalitionErrors(self.of_rows - other.of_rows)


def mse_v(game: Game, *, n_coalitions: int = 200, seed: int | None = 0) -> CoalitionErrors:
    """Return MSE_v: how well values of coalitions predict the output; lower is better.

    The mean of (f(x) − v(S))² over rows and over coalitions S but those of no and of all features
    (Frye et al., 2021; Olsen et al., 2024, section 4). The conditional expectation of the output,
    given the present features, has the least error that there is, so that the criterion chooses
    between distributions of absent features without knowing the true one. It judges the value
    function, not the estimate of its Shapley values, and is no reason to prefer conditional to
    marginal values, which answer another question.

    Where values are drawn, the error of the draws is not counted: two repetitions v₁ and v₂ give
    (f(x) − v₁)(f(x) − v₂), which has the mean of the error without noise.

    Parameters
    ----------
    game : Game
        The games of the rows. Rows that were not used to fit the distribution are best.
    n_coalitions : int
        The coalitions: all, if there are no more, else a random sample of them, the same for all
        games with as many players and the same seed.
    seed : int, optional
        Seed of the sample. None draws one.

    Returns
    -------
    CoalitionErrors
        `mean`, `standard_error`, and `of_rows`. `first - second` is the difference for each row.
    """
    n_coalitions, seed = checked_count("n_coalitions", n_coalitions), checked_seed(seed)
    if game.n_rows < 2 or game.n_players < 2:
        raise InvalidArgumentError(
            f"mse_v needs at least two rows and two features; got {game.n_rows} and "
            f"{game.n_players}."
        )
    coalitions = _inner_coalitions(game.n_players, n_coalitions, np.random.default_rng(seed))
    whole = np.ones((1, game.n_players), dtype=bool)
    n_repeats = 2 if game.draws_values else 1
    repeated = game if n_repeats == 1 else game.repeated(n_repeats)
    values = Evaluator(repeated).values_of(coalitions)
    of_repeats = values.reshape(game.n_rows, n_repeats, len(coalitions), -1)
    off = Evaluator(game).values_of(whole)[:, None] - of_repeats
    return CoalitionErrors((off[:, 0] * off[:, -1]).mean(axis=1))


Draw: TypeAlias = Callable[[FloatArray, CoalitionArray, int], FloatArray]
"""Draws of absent features: a row (D,), coalitions (P, D) and the number of a repetition, whose
draws are independent of others, to rows (P, K, D)."""


def energy_score(
    rows: FloatArray, draw: Draw, *, n_coalitions: int = 200, seed: int | None = 0
) -> CoalitionErrors:
    """Return the energy score of draws of absent features; lower is better.

    E‖Z − x‖ − ½ E‖Z − Z′‖ for the absent features x of a row and independent draws Z and Z′ of
    them (Gneiting and Raftery, 2007, section 4.3), each divided by its standard deviation over the
    rows; the mean over coalitions but those of no and of all features. The true conditional
    distribution has the least score that there is. No model is needed: a distribution that is right
    for one model only, which MSE_v may prefer, does not win.

    Parameters
    ----------
    rows : array, (R, D)
        Rows that the distribution was not fitted to.
    draw : callable
        Its draws.
    n_coalitions, seed
        As for `mse_v`.

    Returns
    -------
    CoalitionErrors
        With one column, in standard deviations. `first - second` is the difference for each row.
    """
    from scipy.spatial.distance import cdist

    n_coalitions, seed = checked_count("n_coalitions", n_coalitions), checked_seed(seed)
    if len(rows) < 2 or rows.shape[1] < 2:
        raise InvalidArgumentError(
            f"energy_score needs at least two rows and two features; got {rows.shape[0]} and "
            f"{rows.shape[1]}."
        )
    spread = rows.std(axis=0)
    spread[spread == 0] = 1.0
    coalitions = _inner_coalitions(rows.shape[1], n_coalitions, np.random.default_rng(seed))
    scores = np.empty((len(rows), 1))
    for index, row in enumerate(rows):
        first, second = (draw(row, coalitions, repeat) / spread for repeat in (0, 1))
        scores[index] = np.mean(
            [
                cdist(own, (row / spread)[None]).mean() - cdist(own, other).mean() / 2
                for own, other in zip(first, second, strict=True)  # present features cancel
            ]
        )
    return CoalitionErrors(scores)


def _inner_coalitions(
    n_players: int, n_coalitions: int, rng: np.random.Generator
) -> CoalitionArray:
    """Return different coalitions, (C, M), but those of no and of all players."""
    if n_players <= _MOST_BITS:
        n_inner = 2**n_players - 2
        numbers = 1 + np.sort(rng.permutation(n_inner)[:n_coalitions])
        return (numbers[:, None] >> np.arange(n_players)) & 1 == 1
    drawn = rng.random((n_coalitions, n_players)) < 0.5
    different: CoalitionArray = np.unique(drawn, axis=0)
    return different[(~different).any(axis=1) & different.any(axis=1)]
