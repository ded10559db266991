"""The priors that a posterior averages over, where the fitted one is not alone.

Coalitions of one and two players determine the Shapley values of games whose interactions have at
most three players, so that nothing else is needed to be exact. Where all of them are evaluated,
there are priors of such games.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from ...array_types import FloatArray
from ...coalitions.sizes import smaller_sizes
from .kernels import OddKernel, Prior, bounded_strengths
from .upper_kernel import UpperKernel

_TRIPLES_LEVEL, _TRIPLES_NOISE, _TRIPLES_LOG_CHANCE = 0.1, (1.0, 0.03, 0.001), -1.0
"""Priors whose interactions are almost all of three players: the sum of the strengths, factors of
the noise, and the logarithm of their probability over that of the fitted prior. The level was
measured on fitted models of 9 to 13 features: at .3, errors are up to 1.3 times as large; at .03,
they are as large, but the norm is so small that the last bits of values change the ninth digit of
the solution."""

_LEAST_NOISE = 1e-9
"""Below it, the rounding of such a kernel is more than the noise: it is divided by a small norm."""

_FEWEST_PLAYERS = 5
"""With fewer players, the complements of two are two players, or one."""


@dataclass(frozen=True)
class PriorChoice:
    """A prior of a stack of games, to average over.

    Attributes
    ----------
    kernel : OddKernel or UpperKernel
        Between all coalitions, at the strengths of the prior.
    prior : Prior
        The strengths, the variance of interactions, and the noise.
    log_chance : float
        The logarithm of its probability, over that of the fitted prior.
    """

    kernel: OddKernel | UpperKernel
    prior: Prior
    log_chance: float = 0.0


def choices_around(kernel: OddKernel, fitted: Prior) -> list[PriorChoice]:
    """Return the fitted prior, whose kernel is given, and those of smooth games."""
    choices = [PriorChoice(kernel, fitted)]
    if has_all_twos(kernel.signs):
        shares = fitted.strengths / fitted.strengths.sum(axis=-1, keepdims=True)
        strengths = bounded_strengths(_TRIPLES_LEVEL * shares)
        of_triples = OddKernel.at(kernel.signs, strengths)
        for factor in _TRIPLES_NOISE:
            noise = np.maximum(factor * fitted.noise, _LEAST_NOISE)
            prior = Prior(strengths, fitted.interactions, noise)
            choices.append(PriorChoice(of_triples, prior, _TRIPLES_LOG_CHANCE))
    return choices


def has_all_twos(signs: FloatArray) -> bool:
    """Return whether all coalitions of two players, or their complements, are among the signs."""
    n_players = signs.shape[1]
    n_twos = np.count_nonzero(smaller_sizes(signs > 0) == 2)
    return bool(n_players >= _FEWEST_PLAYERS and n_twos == comb(n_players, 2))
