"""Learning the prior of an odd game from its values: how strongly each player interacts.

The logarithm of the marginal likelihood is stationary where each component of the variance has
found as much energy in the values as it was expected to, given what the values could tell (MacKay,
Bayesian Interpolation, 1992). Each step closes that gap, for all players at once, as far as a prior
on the logarithms lets it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg.lapack
import scipy.special

from .array_types import FloatArray, ScoreArray
from .evidence import CENTRES, SPREADS, factor_of
from .odd_kernels import OddKernels, Ratios, of_weights

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

_TOGETHER = 2**22
"""Bound on the numbers that the shared first step holds at a time."""


@dataclass(frozen=True)
class Prior:
    """Hyperparameters of an odd game: the weights of the players, (M,), and the ratios."""

    weights: FloatArray
    ratios: Ratios


@dataclass(frozen=True)
class Beliefs:
    """What is believed of the logarithms of the weights beforehand: centres, (M,), and spread."""

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
) -> list[Prior]:
    """Return what explains each of the targets.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (n, B)
        Their values, of mean square about 1.
    starts : list of Ratios
        Where to start, for each target.
    centres : array, (B, M), optional
        What the logarithms of the weights are expected to be; all equal where None.
    """
    n_players = signs.shape[1]
    boldness = list(_BOLDNESS)
    spread = _SPREAD if centres is None else _SPREAD_WHERE_KNOWN
    if centres is None:
        centres = np.zeros((targets.shape[1], n_players))
        priors = _from_equal_weights(signs, targets, starts, boldness.pop(0))
    else:
        priors = [
            Prior(np.exp(of_row), start) for of_row, start in zip(centres, starts, strict=True)
        ]
    for place in range(targets.shape[1]):
        for step in boldness:
            balance = _Balance.of(signs, priors[place])
            known = Beliefs(centres[place], spread)
            (priors[place],) = balance.improved(targets[:, place, None], known, step)
    return priors


def _from_equal_weights(
    signs: FloatArray, targets: FloatArray, starts: list[Ratios], boldness: float
) -> list[Prior]:
    """Take the first step, for which all targets of the same start share their matrices."""
    n, n_players = signs.shape
    equal, known = np.ones(n_players), Beliefs(np.zeros(n_players), _SPREAD)
    found: list[Prior | None] = [None] * len(starts)
    size = max(1, _TOGETHER // (n * n_players))
    for start in set(starts):
        balance = _Balance.of(signs, Prior(equal, start))
        places = [place for place, own in enumerate(starts) if own == start]
        for first in range(0, len(places), size):
            some = places[first : first + size]
            steps = balance.improved(targets[:, some], known, boldness)
            for place, prior in zip(some, steps, strict=True):
                found[place] = prior
    return [prior for prior in found if prior is not None]


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
        inverse = _inverse_by(factor_of(kernels, prior.ratios))
        second, fourth = kernels.polynomials[2], kernels.polynomials[4]
        scratch = inverse * second
        plain, of_second = _quadratic(inverse, signs), _quadratic(scratch, signs)
        of_fourth = _quadratic(np.multiply(inverse, fourth, out=scratch), signs)
        sums = np.array([np.vdot(inverse, kernels.polynomials[degree]) for degree in (1, 3, 5)])
        trace = np.trace(inverse) - inverse[0, 0]
        expected = _energies(
            kernels,
            prior.ratios,
            plain[:, None],
            of_second[:, None],
            of_fourth[:, None],
            sums[:, None],
            np.array([trace]),
        )[:, 0]
        return cls(prior, kernels, inverse, expected)

    def improved(self, targets: FloatArray, known: Beliefs, boldness: float) -> list[Prior]:
        """Return the priors after one step, for each of the targets, (n, B)."""
        solved = self.inverse @ targets
        found = self._found(solved) * (len(targets) / (targets * solved).sum(axis=0))
        log_weights, log_ratios = np.log(self.prior.weights), self.prior.ratios.logarithms()
        n_players = len(log_weights)
        at = np.concatenate([log_weights, log_ratios[1:]])
        centres = np.concatenate([known.centres, CENTRES[1:]])
        spreads = np.concatenate([np.full(n_players, known.spread), SPREADS[1:]])
        steps = np.array([boldness] * n_players + [1.0, 1.0])
        moves = _moves(
            self.expected[:, None], found, (at - centres)[:, None], spreads[:, None], steps[:, None]
        )
        return [self._moved(move) for move in moves.T]

    def _found(self, solved: FloatArray) -> FloatArray:
        """Return the energies that `solved`, K⁻¹y, (n, B), hold, up to their common factor."""
        signs, polynomials = self.kernels.signs, self.kernels.polynomials
        n, n_players = signs.shape
        spread = (signs[:, :, None] * solved[:, None, :]).reshape(n, -1)  # (n, M · B)

        def quadratic(matrix: FloatArray) -> FloatArray:
            forms: FloatArray = (spread * (matrix @ spread)).sum(axis=0).reshape(n_players, -1)
            return forms

        sums = [(solved * (polynomials[degree] @ solved)).sum(axis=0) for degree in (1, 3, 5)]
        return _energies(
            self.kernels,
            self.prior.ratios,
            (signs.T @ solved) ** 2,
            quadratic(polynomials[2]),
            quadratic(polynomials[4]),
            np.array(sums),
            (solved[1:] ** 2).sum(axis=0),
        )

    def _moved(self, move: FloatArray) -> Prior:
        """Return the prior whose components have been scaled by the exponential of `move`."""
        n_players = len(self.prior.weights)
        raised = np.log(self.prior.weights) + move[:n_players]
        # The kernels are scaled to variance 1; what their scales gain or lose goes to the ratios.
        scales = of_weights(np.exp(raised))
        old, ratios = self.kernels.scales, self.prior.ratios
        third = ratios.third * scales[3] / old[3] if n_players >= 3 else ratios.third
        fifth, noise = ratios.fifth * np.exp(move[-2]), ratios.noise * np.exp(move[-1])
        if n_players >= 5:
            fifth *= scales[5] / old[5] * ratios.third / third
        noise *= ratios.third / third
        weights = np.exp(np.clip(raised - raised.mean(), -_LIMIT, _LIMIT))
        return Prior(
            weights,
            Ratios(
                float(np.clip(third, 1e-11, 20.0)),
                float(np.clip(fifth, 2e-3, 8.0)),
                float(np.clip(noise, 1e-7, 4e2)),
            ),
        )


def _energies(
    kernels: OddKernels,
    ratios: Ratios,
    plain: FloatArray,
    of_second: FloatArray,
    of_fourth: FloatArray,
    sums: FloatArray,
    trace: FloatArray,
) -> FloatArray:
    """Return Σ G ∘ A for each component A, (M + 2, B), for B matrices G.

    The part of e_k that holds player i is w_i z_i z′_i e_{k−1} of all others, which unrolls into
    polynomials of all, so that all players are done by three matrix products.

    Parameters
    ----------
    plain, of_second, of_fourth : arrays, (M, B)
        z_iᵀ (G ∘ e_k) z_i for k = 0, 2 and 4.
    sums : array, (3, B)
        Σ G ∘ e_k for k = 1, 3 and 5.
    trace : array, (B,)
        Trace of G, but for its first place.
    """
    w = kernels.weights[:, None]
    of_third, of_fifth = kernels.coefficients(ratios)
    on_first, on_third, on_fifth = sums
    third = w * of_second + w**3 * plain - w**2 * on_first
    fifth = w * of_fourth + w**3 * of_second + w**5 * plain - w**2 * on_third - w**4 * on_first
    players = of_third * third + of_fifth * fifth
    others = np.array([of_fifth * on_fifth, ratios.noise_variance * trace])
    # Rounding may leave less than nothing of what is nothing.
    energies: FloatArray = np.maximum(np.concatenate([players, others]), 1e-300)
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


def _quadratic(matrix: FloatArray, signs: FloatArray) -> FloatArray:
    """Return z_iᵀ G z_i for each player, (M,)."""
    forms: FloatArray = (signs * (matrix @ signs)).sum(axis=0)
    return forms


def _inverse_by(factor: FloatArray) -> FloatArray:
    """Return the inverse of the matrix with this lower Cholesky factor."""
    lower, _ = scipy.linalg.lapack.dpotri(factor, lower=1)  # 0 above, as in the factor
    inverse: FloatArray = lower + lower.T
    np.fill_diagonal(inverse, lower.diagonal())
    return inverse
