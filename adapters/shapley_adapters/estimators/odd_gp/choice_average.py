"""Posteriors of games of many values, averaged over the priors that are likely for each game.

Few values decide which priors are likely. Games with the same prior share the matrices of all
values, which are large: one prior is factored after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ...array_types import FloatArray, IntArray
from .kernels import Prior
from .left_out_values import SizeWeights
from .marginal_likelihood import log_prior
from .posterior import Posterior, mixture

PriorChances = list[tuple[Prior, float]]
"""Priors of one game, each with the logarithm of its probability, without `log_prior`."""


class Solved(Protocol):
    """The posterior of B games by a prior."""

    @property
    def log_evidence(self) -> FloatArray:
        """The logarithm of the marginal likelihood, up to a constant, (B,)."""

    @property
    def means(self) -> FloatArray:
        """Of the attributions, followed by predictions, (M + m, B)."""

    @property
    def variances(self) -> FloatArray:
        """Of the attributions, before their scale, (M, B)."""

    def scale_and_freedom(self, weights: SizeWeights) -> tuple[FloatArray, FloatArray]:
        """Return the factor of the variances, and degrees of freedom, (1, B) each."""


Solver = Callable[[Prior, IntArray], Iterator[tuple[IntArray, Solved]]]
"""A prior of one game and the games that have it to their posteriors, in blocks of these games."""


def average_over_choices(
    choices: Sequence[PriorChances],
    solve: Solver,
    n_means: int,
    n_players: int,
    weights: SizeWeights | None,
    growth: float = 1.0,
) -> Posterior:
    """Return the posterior of games, averaged over the choices of the prior by their evidence.

    The evidence is that of all values. If the covariance is an approximation, so is the evidence:
    it says how well the predictions that are averaged explain these values.

    Parameters
    ----------
    choices : sequence of lists
        The priors to average over, of each of the B games.
    solve : Solver
        Returns the posterior by one prior.
    n_means, n_players : int
        Numbers of means with and without predictions.
    weights : SizeWeights, optional
        Weights of left-out values. Without them, errors have no scale.
    growth : float
        A factor of the variances.
    """
    n_most, n_games = max(map(len, choices)), len(choices)
    scores = np.full((n_most, n_games), -np.inf)  # games with fewer choices have chances of 0
    means = np.zeros((n_most, n_means, n_games))
    variances, of_scale = np.zeros((n_most, n_players, n_games)), np.ones((2, n_most, n_games))
    for use in _uses_of_priors(choices):
        for block, solved in solve(use.prior, use.games):
            places, games = use.places[block], use.games[block]
            log_chances = use.log_chances[block] + log_prior(use.prior)
            scores[places, games] = solved.log_evidence + log_chances
            means[places, :, games] = solved.means.T
            variances[places, :, games] = solved.variances.T
            if weights is not None:
                of_scale[:, places, games] = np.concatenate(solved.scale_and_freedom(weights))
    found = mixture(list(scores), list(means), list(variances))
    if weights is None:
        return found
    scale, freedom = of_scale[:, scores.argmax(axis=0), np.arange(n_games)][:, None]
    return replace(found, variances=found.variances * (scale * growth), freedom=freedom)


@dataclass(frozen=True)
class _Use:
    """A prior of one game, and the games that have it among their choices.

    Attributes
    ----------
    prior : Prior
        With the strengths, (M,).
    games, places : arrays, (B,)
        The games, and the index of the prior among the choices of each.
    log_chances : array, (B,)
        Logarithms of its probabilities, without `log_prior`.
    """

    prior: Prior
    games: IntArray
    places: IntArray
    log_chances: FloatArray


_Key = tuple[bytes, float, float, float, float]


def _key(prior: Prior) -> _Key:
    """Return the strengths and the numbers of a prior of one game, the interactions last."""
    noise, interactions = float(prior.noise), float(prior.interactions)
    return prior.strengths.tobytes(), noise, prior.unevenness, prior.common, interactions


def _uses_of_priors(choices: Sequence[PriorChances]) -> Iterator[_Use]:
    """Yield the use of each prior; those that differ only by their interactions are neighbours."""
    priors: dict[_Key, Prior] = {}
    uses: dict[_Key, list[tuple[int, int, float]]] = {}
    for game, of_game in enumerate(choices):
        for place, (prior, log_chance) in enumerate(of_game):
            key = _key(prior)
            priors[key] = prior
            uses.setdefault(key, []).append((game, place, log_chance))
    for key in sorted(uses):
        games, places, log_chances = zip(*uses[key], strict=True)
        yield _Use(priors[key], np.array(games), np.array(places), np.array(log_chances))
