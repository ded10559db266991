"""The priors that a posterior averages over, instead of the fitted one alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import comb

import numpy as np

from ...array_types import BoolArray, FloatArray
from ...coalitions.sizes import smaller_sizes
from .kernels import OddKernel, Prior, bounded_strengths
from .marginal_likelihood import Features, covariance_of, log_evidence, log_prior, whiten
from .posterior import PriorChoice
from .prior_fitting import StrengthPrior
from .sparse_triples import SparseInteractions

_FITTED = ((1.0, (1.0, 10.0)), (1.7, (0.1,)))
_EQUAL = ((1.0, (1.0, 10.0)),)
_HALF_WAY = ((1.0, (1.0,)),)
_EQUAL_ALONE = ((1.0, (1.0, 10.0)), (1.7, (0.1,)))
"""Factors of the level of the strengths, each with factors of the noise."""

_COST_OF_FITTING, _COST_OF_HALF = 0.5, 0.35
"""Each fitted strength lowers the logarithm of the prior probability of a choice by this much."""

_FEW_PAIRS, _MORE_INTERACTIONS = 2, 10.0
"""With at most so many pairs per player, there is also a choice with so many times the variance of
interactions. So few values hardly show interactions: the prior that explains them best may be
almost additive, and its errors too small."""

_JUMP_STRENGTHS, _MOST_JUMP_STRENGTH = 3.0, 0.9
_JUMP_INTERACTIONS, _JUMP_NOISE, _JUMP_NOISE_FACTORS = 1.0, 10.0, (1.0, 0.3)
_JUMP_UNEVENNESS, _JUMP_COMMON, _JUMP_LOG_CHANCE = 3.0, 0.2, 2.0
"""Choices for games that jump where about half of the players are present, as votes do: equal
strengths times the number of players, their bound, the variance of interactions, the noise and its
factors; how the noise depends on sizes, and the variance of the effect that all players share; see
`Prior`. Other choices take the jumps for large effects of single players."""

_TRIPLES_LEVEL, _TRIPLES_NOISE, _TRIPLES_LOG_CHANCE = 0.03, (1.0, 0.03, 0.001), -1.0
"""Choices for smooth games, whose interactions are almost all of three players: the sum of the
strengths, factors of the noise, and the logarithm of their probability over that of the choice with
larger sets."""

_FEWEST_PLAYERS_OF_TWOS = 5
"""With fewer players, the complements of two are two players, or one."""

_LEAST_CHANCE, _MOST_CHOICES = 1e-3, 2
"""With many values, only the likeliest choices given the first values are used: at most so many,
whose probability is at least this share of that of the likeliest choice."""

DECIDING, _LEAST_DECIDED_CHANCE = 700, 0.1
"""With more values than this, the first ones decide once more which choices are likely. Mostly one
choice remains, which takes half of the time of two. A choice of a smaller probability than this
given some values has almost none given all."""


def choices_around(
    kernel: OddKernel, fitted: Prior, start: Prior, expectation: StrengthPrior
) -> Iterator[PriorChoice]:
    """Return choices with fitted strengths, with those of the start, and with half-way ones.

    If the values hardly distinguish the strengths, or the game is symmetric, fitted strengths have
    larger errors than equal strengths.

    Parameters
    ----------
    kernel : OddKernel
        At the fitted strengths.
    fitted, start : Prior
        With the fitted strengths, and with those that the fit started from.
    expectation : StrengthPrior
        The prior of the strengths.
    """
    signs, centres = kernel.signs, expectation.centres
    logarithms = np.log(fitted.strengths)
    level = logarithms.mean(axis=-1, keepdims=True)
    off = (logarithms - level - centres) / expectation.spread
    cost, n_players = 0.5 * (off**2).sum(axis=-1), signs.shape[1]
    yield from _with_levels(kernel, fitted, _FITTED, -cost - _COST_OF_FITTING * n_players)
    kernel = OddKernel.of_stack(signs, start.strengths)
    yield from _with_levels(kernel, start, _EQUAL, 0.0)
    halves = np.exp(level + 0.5 * (logarithms - level + centres))
    half_way = Prior(bounded_strengths(halves), fitted.interactions, fitted.noise)
    kernel = OddKernel.at(signs, half_way.strengths)
    log_chance = -0.25 * cost - _COST_OF_HALF * n_players
    yield from _with_levels(kernel, half_way, _HALF_WAY, log_chance)
    yield from _with_more_interactions(signs, start)
    yield from _with_jumps(signs, start.strengths.shape)
    if has_all_twos(signs):
        yield from _with_triples(signs, fitted, -cost - _COST_OF_FITTING * n_players)
        yield from _with_triples(signs, start, 0.0)


def choices_of_equal(start: Prior, n_pairs: int) -> list[tuple[Prior, float]]:
    """Return choices for a stack of games with equal strengths.

    Each comes with the logarithm of its prior probability, without `log_prior`.
    """
    priors = []
    for level, noise_factors in _EQUAL_ALONE:
        strengths = bounded_strengths(level * start.strengths)
        for factor in noise_factors:
            priors.append(Prior(strengths, start.interactions, start.noise * factor))
    if n_pairs <= _FEW_PAIRS * start.strengths.shape[-1]:
        priors.append(_more_interactions(start))
    jumping = [
        (replace(prior, noise=prior.noise * factor), _JUMP_LOG_CHANCE)
        for prior in _jump_priors(start.strengths.shape, n_pairs)
        for factor in _JUMP_NOISE_FACTORS
    ]
    return [(prior, 0.0) for prior in priors] + jumping


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


def _with_more_interactions(signs: FloatArray, start: Prior) -> Iterator[PriorChoice]:
    """Return a choice with more interactions than the start has, if there are few values."""
    n_pairs, n_players = len(signs) - 1, signs.shape[1]
    if n_pairs <= _FEW_PAIRS * n_players:
        yield PriorChoice(OddKernel.at(signs, start.strengths), _more_interactions(start))


def _more_interactions(start: Prior) -> Prior:
    return Prior(start.strengths, start.interactions * _MORE_INTERACTIONS, start.noise)


def _with_jumps(signs: FloatArray, shape: tuple[int, ...]) -> Iterator[PriorChoice]:
    """Return choices for games that jump, for a stack with strengths (R, M).

    They are the same for all games, so that their kernel is computed once.
    """
    for prior in _jump_priors(shape, len(signs) - 1):
        kernel = OddKernel.of_stack(signs, prior.strengths)
        yield PriorChoice(kernel, prior, _JUMP_NOISE_FACTORS, _JUMP_LOG_CHANCE)


def _jump_priors(shape: tuple[int, ...], n_pairs: int) -> list[Prior]:
    """Return the prior of games that jump, for strengths (R, M), if the values can show jumps.

    With no more pairs than players, the pairs are single players, whose values show none.
    """
    n_games, n_players = shape
    if n_pairs <= n_players:
        return []
    level = min(_JUMP_STRENGTHS / n_players, _MOST_JUMP_STRENGTH)
    strengths = bounded_strengths(np.full(shape, level))
    interactions, noise = (np.full(n_games, number) for number in (_JUMP_INTERACTIONS, _JUMP_NOISE))
    return [Prior(strengths, interactions, noise, _JUMP_UNEVENNESS, _JUMP_COMMON)]


def has_all_twos(signs: FloatArray) -> bool:
    """Return whether all coalitions of two players, or their complements, are among the signs."""
    n_players = signs.shape[1]
    n_twos = np.count_nonzero(smaller_sizes(signs > 0) == 2)
    return bool(n_players >= _FEWEST_PLAYERS_OF_TWOS and n_twos == comb(n_players, 2))


def _with_triples(
    signs: FloatArray, prior: Prior, log_chance: float | FloatArray
) -> Iterator[PriorChoice]:
    """Return choices whose interactions are almost all of three players.

    They have the probability of `prior`, whatever their level and noise. Coalitions of one and two
    players determine the Shapley values of such games, so that nothing else is needed to be exact.
    """
    shares = prior.strengths / prior.strengths.sum(axis=-1, keepdims=True)
    strengths = bounded_strengths(_TRIPLES_LEVEL * shares)
    kernel = OddKernel.at(signs, strengths)
    log_chance = log_chance + _TRIPLES_LOG_CHANCE + log_prior(prior)
    for factor in _TRIPLES_NOISE:
        of_triples = Prior(strengths, prior.interactions, prior.noise * factor)
        yield PriorChoice(kernel, of_triples, log_chance=log_chance - log_prior(of_triples))


def likely_choices(
    choices: list[PriorChoice],
    targets: FloatArray,
    sparse: list[SparseInteractions],
    signs: FloatArray,
) -> list[list[PriorChoice]]:
    """Return the choices for each game that are likely, given its first values.

    Parameters
    ----------
    choices : list of PriorChoice
        For a stack of games, with kernels between the first coalitions.
    targets : array, (R, n)
        The values of the games.
    sparse : list of SparseInteractions
        The interactions with separate variances, of each game.
    signs : array, (n, M)
        All coalitions.
    """
    scores = _scores(choices, targets, sparse)  # (G, R)
    is_likely = are_likely(scores, _LEAST_CHANCE)
    likely = [_of_game(game, choices, is_likely[:, game]) for game in range(len(sparse))]
    if len(signs) <= DECIDING:
        return likely
    return [
        _decided(of_game, targets[[game]], [sparse[game]], signs[:DECIDING])
        for game, of_game in enumerate(likely)
    ]


def _scores(
    choices: list[PriorChoice], targets: FloatArray, sparse: list[SparseInteractions]
) -> FloatArray:
    """Return the logarithms of the probabilities of choices, given the values of their kernels.

    There is a row for each factor of the noise of each choice, (G, R). The kernels are between the
    same coalitions.
    """
    signs = choices[0].kernel.signs
    values = np.ascontiguousarray(targets[:, : len(signs), None])
    features = Features(SparseInteractions.stack(sparse).features(signs))
    scores = []
    for choice in choices:
        for prior in choice.priors():
            covariances = covariance_of(choice.kernel, prior, features)
            evidence = log_evidence(*whiten(covariances, values))[:, 0]
            scores.append(evidence + log_prior(prior) + choice.log_chance)
    return np.array(scores)


def _of_game(game: int, choices: list[PriorChoice], is_likely: BoolArray) -> list[PriorChoice]:
    """Return the likely choices of one game of a stack.

    Parameters
    ----------
    is_likely : array, (G,)
        For each factor of the noise of each choice.
    """
    of_game, start = [], 0
    for choice in choices:
        n_factors = len(choice.noise_factors)
        kept = is_likely[start : start + n_factors]
        start += n_factors
        factors = tuple(np.array(choice.noise_factors)[kept].tolist())
        if factors:
            of_game.append(choice.of_game(game, factors))
    return of_game


def _decided(
    choices: list[PriorChoice],
    targets: FloatArray,
    sparse: list[SparseInteractions],
    signs: FloatArray,
) -> list[PriorChoice]:
    """Return the choices of one game that remain likely, given some more values, (1, n)."""
    if sum(len(choice.noise_factors) for choice in choices) == 1:
        return choices
    more = [choice.at(signs) for choice in choices]
    scores = _scores(more, targets, sparse)[:, 0]
    return _of_game(0, choices, are_likely(scores))


def are_likely(scores: FloatArray, least_chance: float = _LEAST_DECIDED_CHANCE) -> BoolArray:
    """Return which choices are likely, given the logarithms of their probabilities, (G, ...).

    Those that are less probable than the best one by the least chance are not.
    """
    ordered = np.sort(scores, axis=0)
    bound = np.maximum(ordered[-1] + np.log(least_chance), ordered[-_MOST_CHOICES])
    is_likely: BoolArray = scores >= bound
    return is_likely
