"""Odd Gaussian-process regression: the posterior of the Shapley values, given some values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ..arguments import checked_choice
from ..array_types import FloatArray, ValueArray
from ..coalition_sets import buy, pack
from ..designs import DesignRequest, Solution
from ..evidence import GRID, Ratios, best_of_grid, learned, log_evidence
from ..kernel_draws import CoalitionDraws
from ..odd_kernels import OddKernels, attribution_covariances
from ..spread_designs import spread_pairs

WEIGHTS = ("learned", "equal")

_LEARNED_FROM = 160
"""Pairs that weights are learned from: the first, which are the most telling."""

_AROUND = (0.3, 1.0, 3.0)
"""Factors of the learned ratio of degree 3 that the posterior averages over."""


@dataclass(frozen=True)
class OddGP:
    """Gaussian-process regression on the odd part of the game.

    The prior knows how strongly each player takes part in interactions, and how strong these are
    by degree; both are learned from the values of the row by their marginal likelihood. The
    posterior mean is linear in the values given these, efficient exactly, and shrinks: it is not
    unbiased over the choice of coalitions. Standard errors are posterior standard deviations; they
    speak of what the values leave open about the game.

    Parameters
    ----------
    weights : {"learned", "equal"}
        Whether players have weights of their own. Equal ones make all rows share one
        factorisation, which is faster for many rows.
    """

    weights: str = "learned"

    def __post_init__(self) -> None:
        checked_choice("weights", self.weights, WEIGHTS)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one pair and the end points."""
        del n_players, with_errors  # the prior fills in what the values leave open
        return 4

    def design(self, request: DesignRequest) -> CoalitionDraws:
        """Choose the pairs that tell most; which player plays which part is drawn."""
        members = spread_pairs(request.n_players, (request.budget - 2) // 2, request.rng)
        units = np.stack([members, ~members], axis=1)
        purchase = buy(request.known, pack(units)[None], request.budget)
        n = purchase.n_units[0]
        return CoalitionDraws(purchase.table, purchase.positions[0, :n], members[:n])

    def solve(self, design: CoalitionDraws, values: ValueArray) -> Solution:
        """Return the posterior means and standard deviations of all rows and outputs."""
        n_rows, _, n_outputs = values.shape
        n_players = design.members.shape[1]
        total = (values[:, 1] - values[:, 0]) / 2  # the odd part at all players together
        targets = np.concatenate([total[:, None], design.targets(values, centred=False)], axis=1)
        flat = np.ascontiguousarray(targets.transpose(1, 0, 2)).reshape(targets.shape[1], -1)
        size = np.sqrt((flat**2).mean(axis=0))
        is_something = size > 0
        means, variances = np.zeros((2, n_players, flat.shape[1]))
        if is_something.any():
            signs = np.where(
                np.concatenate([np.ones((1, n_players), dtype=bool), design.members]), 1.0, -1.0
            )
            scaled = flat[:, is_something] / size[is_something]
            found = self._posteriors(signs, scaled)
            means[:, is_something] = found[0] * size[is_something]
            variances[:, is_something] = found[1] * size[is_something] ** 2
        attributions = means.reshape(n_players, n_rows, n_outputs).transpose(1, 0, 2)
        # What rounding leaves of the efficiency residual.
        residual = 2 * total[:, None] - attributions.sum(axis=1, keepdims=True)
        errors = np.sqrt(variances).reshape(n_players, n_rows, n_outputs).transpose(1, 0, 2)
        return Solution(attributions + residual / n_players, errors)

    def _posteriors(self, signs: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances, (M, B) each, for targets, (n, B), of mean square 1."""
        n_players = signs.shape[1]
        if self.weights == "equal":
            return _mixture(signs, targets, np.ones(n_players), list(GRID), n_learned=3)
        few = slice(0, _LEARNED_FROM + 1)
        starts = best_of_grid(signs[few], targets[few])
        means, variances = np.empty((2, n_players, targets.shape[1]))
        for place, start in enumerate(starts):
            target = targets[:, place : place + 1]
            weights, ratios = learned(signs[few], target[few, 0], start)
            around = [replace(ratios, third=ratios.third * factor) for factor in _AROUND]
            mean, variance = _mixture(signs, target, weights, around, n_learned=n_players + 3)
            means[:, place], variances[:, place] = mean[:, 0], variance[:, 0]
        return means, variances


def _mixture(
    signs: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    choices: list[Ratios],
    n_learned: int,
) -> tuple[FloatArray, FloatArray]:
    """Average the posteriors over choices of the ratios, by their evidence.

    Parameters
    ----------
    n_learned : int
        How many hyperparameters the targets have been used to learn. The scale is estimated with
        so many degrees of freedom less, which widens the errors of small budgets.
    """
    n = len(signs)
    kernels = OddKernels.at(signs, weights)
    covariances, variances = attribution_covariances(signs, weights)
    scores, means, spreads = [], [], []
    for ratios in choices:
        factor = scipy.linalg.cholesky(ratios.covariance(kernels), lower=True)
        whitened = scipy.linalg.solve_triangular(factor, targets, lower=True)  # (n, B)
        seen = scipy.linalg.solve_triangular(factor, ratios.combine(covariances).T, lower=True)
        scale = (whitened**2).sum(axis=0) / max(n - n_learned, n / 3)
        left = np.maximum(ratios.combine(variances) - (seen**2).sum(axis=0), 0.0)  # (M,)
        scores.append(log_evidence(factor, targets) + ratios.log_prior())
        means.append(seen.T @ whitened)
        spreads.append(left[:, None] * scale)
    chances = np.exp(np.array(scores) - np.max(scores, axis=0))
    chances = (chances / chances.sum(axis=0))[:, None]  # (G, 1, B)
    mean = (chances * means).sum(axis=0)
    variance = (chances * (np.array(spreads) + (np.array(means) - mean) ** 2)).sum(axis=0)
    return mean, variance
