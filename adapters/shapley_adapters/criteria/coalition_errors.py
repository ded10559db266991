"""How well the values of coalitions predict the output for all features."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Mean squared errors of values of coalitions.

    Attributes
    ----------
    of_rows : array, (R, K)
        The mean over coalitions for each row and output.
    """

    of_rows: FloatArray

    @property
    def mean(self) -> FloatArray:
        """The mean over rows, (K,)."""
        mean: FloatArray = self.of_rows.mean(axis=0)
        return mean

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean, (K,), as if the rows were drawn at random."""
        error: FloatArray = self.of_rows.std(axis=0, ddof=1) / np.sqrt(len(self.of_rows))
        return error

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
    n_repeats = 2 if getattr(game, "draws_values", False) else 1
    repeated = game if n_repeats == 1 else game.repeated(n_repeats)  # type: ignore[attr-defined]
    values = Evaluator(repeated).values_of(coalitions)
    of_repeats = values.reshape(game.n_rows, n_repeats, len(coalitions), -1)
    off = Evaluator(game).values_of(whole)[:, None] - of_repeats
    return CoalitionErrors((off[:, 0] * off[:, -1]).mean(axis=1))


def _inner_coalitions(
    n_players: int, n_coalitions: int, rng: np.random.Generator
) -> CoalitionArray:
    """Return different coalitions, (C, M), but those of no and of all players."""
    if n_players <= _MOST_BITS:
        n_inner = 2**n_players - 2
        numbers = 1 + np.sort(rng.permutation(n_inner)[:n_coalitions])
        inner: CoalitionArray = (numbers[:, None] >> np.arange(n_players)) & 1 == 1
        return inner
    drawn = rng.random((n_coalitions, n_players)) < 0.5
    different: CoalitionArray = np.unique(drawn, axis=0)
    return different[(~different).any(axis=1) & different.any(axis=1)]
