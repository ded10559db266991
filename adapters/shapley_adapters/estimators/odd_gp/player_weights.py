"""Learning the prior of an odd game from its values: how strongly each player interacts.

The logarithm of the marginal likelihood is stationary where each component of the variance has
found as much energy in the values as it was expected to, given what the values could tell (MacKay,
Bayesian Interpolation, 1992). Each step closes that gap, for all players at once, as far as a prior
on the logarithms lets it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from ...array_types import FloatArray, ScoreArray
from .kernels import OddKernels, Ratios, of_weights
from .marginal_likelihood import CENTRES, SPREADS, covariance_of, inverse_factors

_SPREAD, _SPREAD_WHERE_KNOWN = 1.0, 0.7
"""Prior standard deviation of the logarithm of a player's weight, around equal weights or around
what is known of them."""

_LEAST_SHARE = 0.01
"""What is added to a player's share in the interactions, of the largest share."""

_BOLDNESS = (3.0, 2.0, 1.5, 1.0, 1.0, 1.0)
"""How much farther than to the fixed point of its own component each step goes, at first because
all move together, and less once they have."""

_LIMIT = 6.0
"""Bound on the logarithm of a weight."""


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of odd games: the weights of the players, (..., M), and the ratios, (...)."""

    weights: FloatArray
    ratios: Ratios


@dataclass(frozen=True)
class Beliefs:
    """What is believed of the logarithms of the weights beforehand: centres, (R, M), and spread."""

    centres: FloatArray
    spread: float


def log_weights_from_scores(scores: ScoreArray) -> FloatArray:
    """Return what scores of the pairs, (R, M, M), say of the logarithms of the weights, (R, M).

    A player's share in all interactions, never taken for nothing.
    """
    shares = scores.sum(axis=2)
    largest = shares.max(axis=1, keepdims=True)
    logarithms = np.log(shares / np.where(largest > 0, largest, 1.0) + _LEAST_SHARE)
    centred: FloatArray = logarithms - logarithms.mean(axis=1, keepdims=True)
    return centred


def learned(
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Ratios],
    centres: FloatArray | None = None,
) -> Prior:
    """Return what explains each of the targets, as a stack.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (R, n)
        Their values, of mean square about 1.
    starts : list of Ratios
        Where to start, for each target.
    centres : array, (R, M), optional
        What the logarithms of the weights are expected to be; all equal where None.
    """
    is_known = centres is not None
    steps = _BOLDNESS[1:] if is_known else _BOLDNESS
    spread = _SPREAD_WHERE_KNOWN if is_known else _SPREAD
    if centres is None:
        centres = np.zeros((len(targets), signs.shape[1]))
    prior, known = Prior(np.exp(centres), Ratios.stack(starts)), Beliefs(centres, spread)
    for step in steps:
        prior = _Balance.of(signs, prior).improved(targets, known, step)
    return prior


@dataclass(frozen=True)
class _Balance:
    """The energy that each component of the variance is expected to have found.

    Components are the interactions that each player takes part in, those of degree 5, and noise.
    The energy of one with covariance A is tr(K⁻¹A), against (n/E) yᵀK⁻¹AK⁻¹y found, with
    E = yᵀK⁻¹y.
    """

    prior: Prior
    kernels: OddKernels
    inverse: FloatArray
    expected: FloatArray

    @classmethod
    def of(cls, signs: FloatArray, prior: Prior) -> _Balance:
        kernels = OddKernels.at(signs, prior.weights)
        roots = inverse_factors(covariance_of(kernels, prior.ratios))
        inverse = roots.swapaxes(1, 2) @ roots
        second, fourth = kernels.polynomials[2], kernels.polynomials[4]
        plain, scratch = _quadratic(inverse, signs), inverse * second
        of_second = _quadratic(scratch, signs)
        of_fourth = _quadratic(np.multiply(inverse, fourth, out=scratch), signs)
        sums = [_inner(inverse, kernels.polynomials[degree]) for degree in (1, 3, 5)]
        trace = np.trace(inverse, axis1=1, axis2=2) - inverse[:, 0, 0]
        expected = _energies(kernels, prior.ratios, plain, of_second, of_fourth, sums, trace)
        return cls(prior, kernels, inverse, expected)

    def improved(self, targets: FloatArray, known: Beliefs, boldness: float) -> Prior:
        """Return the prior after one step, given the targets, (R, n)."""
        solved = (self.inverse @ targets[:, :, None])[:, :, 0]
        energy = (targets * solved).sum(axis=1, keepdims=True)
        found = self._found(solved) * (targets.shape[1] / energy)
        log_weights, log_ratios = np.log(self.prior.weights), self.prior.ratios.logarithms().T
        n_players = log_weights.shape[1]
        at = np.concatenate([log_weights, log_ratios[:, 1:]], axis=1)
        centres = np.concatenate(
            [known.centres, np.broadcast_to(CENTRES[1:], (len(at), 2))], axis=1
        )
        spreads = np.concatenate([np.full(n_players, known.spread), SPREADS[1:]])
        steps = np.array([boldness] * n_players + [1.0, 1.0])
        return self._moved(_moves(self.expected, found, at - centres, spreads, steps))

    def _found(self, solved: FloatArray) -> FloatArray:
        """Return the energies that `solved`, K⁻¹y, (R, n), hold, up to their common factor."""
        signs, polynomials = self.kernels.signs, self.kernels.polynomials
        spread = signs * solved[:, :, None]  # (R, n, M)
        column = solved[:, :, None]
        sums = [_inner(column, polynomials[degree] @ column) for degree in (1, 3, 5)]
        return _energies(
            self.kernels,
            self.prior.ratios,
            (solved[:, None, :] @ signs)[:, 0] ** 2,
            _quadratic(polynomials[2], spread),
            _quadratic(polynomials[4], spread),
            sums,
            (solved[:, 1:] ** 2).sum(axis=1),
        )

    def _moved(self, move: FloatArray) -> Prior:
        """Return the prior whose components have been scaled by the exponential of `move`."""
        n_players = self.prior.weights.shape[1]
        raised = np.log(self.prior.weights) + move[:, :n_players]
        # The kernels are scaled to variance 1; what their scales gain or lose goes to the ratios.
        scales = of_weights(np.exp(raised))
        old, ratios = self.kernels.scales, self.prior.ratios
        third = ratios.third * scales[3] / old[3] if n_players >= 3 else ratios.third
        fifth, noise = ratios.fifth * np.exp(move[:, -2]), ratios.noise * np.exp(move[:, -1])
        if n_players >= 5:
            fifth = fifth * (scales[5] / old[5] * ratios.third / third)
        noise = noise * (ratios.third / third)
        centred = raised - raised.mean(axis=1, keepdims=True)
        return Prior(
            np.exp(np.clip(centred, -_LIMIT, _LIMIT)),
            Ratios(
                np.clip(third, 1e-11, 20.0), np.clip(fifth, 2e-3, 8.0), np.clip(noise, 1e-7, 4e2)
            ),
        )


def _energies(
    kernels: OddKernels,
    ratios: Ratios,
    plain: FloatArray,
    of_second: FloatArray,
    of_fourth: FloatArray,
    sums: list[FloatArray],
    trace: FloatArray,
) -> FloatArray:
    """Return Σ G ∘ A for each component A, (R, M + 2), for a matrix G of each game.

    The part of e_k that holds player i is w_i z_i z′_i e_{k−1} of all others, which unrolls into
    polynomials of all, so that all players are done by three matrix products.

    Parameters
    ----------
    plain, of_second, of_fourth : arrays, (R, M)
        z_iᵀ (G ∘ e_k) z_i for k = 0, 2 and 4.
    sums : list of arrays, (R,) each
        Σ G ∘ e_k for k = 1, 3 and 5.
    trace : array, (R,)
        Trace of G, but for its first place.
    """
    w = kernels.weights
    of_third, of_fifth = (of_degree[:, None] for of_degree in kernels.coefficients(ratios))
    on_first, on_third, on_fifth = (of_degree[:, None] for of_degree in sums)
    third = w * of_second + w**3 * plain - w**2 * on_first
    fifth = w * of_fourth + w**3 * of_second + w**5 * plain - w**2 * on_third - w**4 * on_first
    players = of_third * third + of_fifth * fifth
    others = [of_fifth * on_fifth, (ratios.noise_variance * trace)[:, None]]
    # Rounding may leave less than nothing of what is nothing.
    energies: FloatArray = np.maximum(np.concatenate([players, *others], axis=1), 1e-300)
    return energies


def _moves(
    expected: FloatArray,
    found: FloatArray,
    offset: FloatArray,
    spread: FloatArray,
    boldness: FloatArray,
) -> FloatArray:
    """Return the δ that balances expected − found · exp(−δ / boldness) + 2 (offset + δ) / spread².

    With W Lambert's function: its argument may be huge, so that it is taken by its logarithm.
    """
    slope = 2 / spread**2
    level = (expected + slope * offset) / (slope * boldness)
    inner = scipy.special.wrightomega(np.log(found / (slope * boldness)) + level)
    moves: FloatArray = np.clip(boldness * (inner - level), -_LIMIT, _LIMIT)
    return moves


def _quadratic(matrices: FloatArray, columns: FloatArray) -> FloatArray:
    """Return z_iᵀ G z_i for each game and each column z_i, (R, M)."""
    forms: FloatArray = (columns * (matrices @ columns)).sum(axis=1)
    return forms


def _inner(some: FloatArray, others: FloatArray) -> FloatArray:
    """Return the sums of the products of the entries of two matrices, for each game, (R,)."""
    n_games = len(some)
    products = some.reshape(n_games, 1, -1) @ others.reshape(n_games, -1, 1)
    sums: FloatArray = products[:, 0, 0]
    return sums
