"""The priors that a posterior averages over, instead of the fitted one alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...array_types import FloatArray
from .kernels import OddKernel, Prior, bounded_strengths
from .posterior import PriorChoice
from .prior_fitting import StrengthPrior

_FITTED = ((1.0, (1.0, 10.0)), (1.7, (0.1,)))
_EQUAL = ((1.0, (1.0, 10.0)),)
_HALF_WAY = ((1.0, (1.0,)),)
_EQUAL_ALONE = ((1.0, (1.0, 10.0)), (1.7, (0.1,)))
"""Factors of the level of the strengths, and for each of these factors of the noise."""

_COST_OF_FITTING, _COST_OF_HALF = 0.5, 0.35
"""What each fitted strength takes off the logarithm of a prior's chance."""

_MOST_NOISE = 4e2


def choices_around(
    kernel: OddKernel, fitted: Prior, start: Prior, expectation: StrengthPrior
) -> Iterator[PriorChoice]:
    """Return choices for games with fitted strengths: these, those beforehand, and half-way ones.

    Where values hardly tell strengths apart, or the game is symmetric, fitted strengths err more
    than equal ones.

    Parameters
    ----------
    kernel : OddKernel
        At the fitted strengths.
    fitted, start : Prior
        With the fitted strengths, and with those that the fit started from.
    expectation : StrengthPrior
        What is expected of the strengths.
    """
    signs, centres = kernel.signs, expectation.centres
    logarithms = np.log(fitted.strengths)
    level = logarithms.mean(axis=-1, keepdims=True)
    off = (logarithms - level - centres) / expectation.spread
    cost, n_players = 0.5 * (off**2).sum(axis=-1), signs.shape[1]
    yield from _with_levels(kernel, fitted, _FITTED, -cost - _COST_OF_FITTING * n_players)
    kernel = OddKernel.at(signs, start.strengths)
    yield from _with_levels(kernel, start, _EQUAL, 0.0)
    halves = np.exp(level + 0.5 * (logarithms - level + centres))
    half_way = Prior(bounded_strengths(halves), fitted.interactions, fitted.noise)
    kernel = OddKernel.at(signs, half_way.strengths)
    log_chance = -0.25 * cost - _COST_OF_HALF * n_players
    yield from _with_levels(kernel, half_way, _HALF_WAY, log_chance)


def choices_of_equal(kernel: OddKernel, start: Prior) -> Iterator[PriorChoice]:
    """Return choices for games with equal strengths."""
    yield from _with_levels(kernel, start, _EQUAL_ALONE, 0.0)


def _with_levels(
    kernel: OddKernel,
    prior: Prior,
    levels: tuple[tuple[float, tuple[float, ...]], ...],
    log_chance: float | FloatArray,
) -> Iterator[PriorChoice]:
    """Return the choices of some levels; the kernel is that of the first."""
    for level, noise_factors in levels:
        strengths = prior.strengths if level == 1.0 else bounded_strengths(level * prior.strengths)
        moved_kernel = kernel if level == 1.0 else OddKernel.at(kernel.signs, strengths)
        moved = Prior(strengths, prior.interactions, prior.noise)
        yield PriorChoice(moved_kernel, moved, noise_factors, log_chance)
