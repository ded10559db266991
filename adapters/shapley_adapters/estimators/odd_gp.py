"""Odd Gaussian-process regression: the posterior of the Shapley values, given some values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..arguments import checked_choice
from ..array_types import FloatArray, IntArray, ScoreArray, ValueArray
from ..coalition_sets import CoalitionTable, buy, pack
from ..cooperator_choices import checked_prior
from ..designs import DesignRequest, Estimator, Solution
from ..evidence import best_of_grid
from ..kernel_draws import CoalitionDraws
from ..odd_kernels import OddKernels, Ratios
from ..odd_posteriors import Posterior, posterior, ratios_around
from ..outstanding_interactions import Outstanding, find_outstanding
from ..spread_designs import spread_pairs
from ..weight_learning import Prior, learned, log_weights_from_scores

WEIGHTS = ("learned", "equal")

_LEARNED_FROM = 240
"""Pairs that weights are learned from: the first, which are the most telling."""

_DENSE_PAIRS = 1536
"""Up to here, all values are conditioned on exactly; beyond, through the first so many."""

_SHARE_LEARNED = 0.5
"""Degrees of freedom that a learned weight takes; its prior takes the rest."""


@dataclass(frozen=True)
class OddDesign:
    """Pairs of complements, and what is known of the weights of each row beforehand.

    Attributes
    ----------
    draws : CoalitionDraws
        The pairs, shared by all rows.
    log_weights : array, (R, M), or None
        Where the logarithms of the weights are expected to be.
    """

    draws: CoalitionDraws
    log_weights: FloatArray | None

    @property
    def table(self) -> CoalitionTable:
        """The distinct coalitions."""
        return self.draws.table

    def within(self, n_coalitions: int) -> OddDesign:
        """Return the design that the first coalitions make."""
        return replace(self, draws=self.draws.within(n_coalitions))

    def of_rows(self, places: IntArray) -> OddDesign:
        """Return the design of some of the rows."""
        if self.log_weights is None:
            return self
        return replace(self, log_weights=self.log_weights[places])


@dataclass(frozen=True)
class OddGP(Estimator[OddDesign]):
    """Gaussian-process regression on the odd part of the game.

    The prior knows how strongly each player takes part in interactions, and how strong these are
    by degree; both are learned from the values of the row by their marginal likelihood. The
    posterior mean is linear in the values given these, efficient exactly, and shrinks: it is not
    unbiased over the choice of coalitions. Standard errors are posterior standard deviations; they
    speak of what the values leave open about the game.

    Parameters
    ----------
    weights : {"learned", "equal"}
        Whether players have weights of their own in interactions. Equal ones let rows share their
        factorisations, which is faster for many rows.
    cooperators : {None, "auto", "hessian", "gradient", "difference"} or array
        What computes the players' scores that serve as a prior of the weights; None for no prior.
    """

    weights: str = "learned"
    cooperators: str | ScoreArray | None = None

    def __post_init__(self) -> None:
        checked_choice("weights", self.weights, WEIGHTS)
        checked_prior(self.cooperators, self.weights)

    @property
    def score_source(self) -> str | ScoreArray | None:
        """How the scores of the prior are computed; what derivatives do not tell, values will."""
        return checked_prior(self.cooperators, self.weights)

    @property
    def is_drawn_by_labels(self) -> bool:
        """Hardly anything else is drawn."""
        return True

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one pair and the end points."""
        del n_players, with_errors  # the prior fills in what the values leave open
        return 4

    def useful_budget(self, n_players: int) -> int:
        """Return two evaluations a player, which pay for each single player and its complement.

        With fewer, most of an attribution is the equal share that the prior gives: measured with 20
        to 100 players, relative errors are .4 to .9 below, .07 to .5 from there on.
        """
        return 2 * n_players

    def memory(self, n_players: int, budget: int) -> int:
        """Return what the coalitions take, and the kernels of all pairs that are solved exactly."""
        n_dense = min(budget // 2, _DENSE_PAIRS)
        return (10 * budget + 700 * n_dense) * n_players

    def design(self, request: DesignRequest) -> OddDesign:
        """Choose the pairs that tell most; which player plays which part is drawn."""
        members = spread_pairs(request.n_players, (request.budget - 2) // 2, request.rng)
        units = np.stack([members, ~members], axis=1)
        purchase = buy(request.known, pack(units)[None], request.budget)
        n = purchase.n_units[0]
        draws = CoalitionDraws(purchase.table, purchase.positions[0, :n], members[:n])
        if request.scores is None or request.informed is None or not request.informed.any():
            return OddDesign(draws, None)
        return OddDesign(draws, log_weights_from_scores(request.scores))

    def solve(self, design: OddDesign, values: ValueArray) -> Solution:
        """Return the posterior means and standard deviations of all rows and outputs."""
        n_rows, _, n_outputs = values.shape
        members = design.draws.members
        n_players = members.shape[1]
        total = (values[:, 1] - values[:, 0]) / 2  # the odd part at all players together
        targets = np.concatenate(
            [total[:, None], design.draws.targets(values, centred=False)], axis=1
        )
        flat = np.ascontiguousarray(targets.transpose(1, 0, 2)).reshape(targets.shape[1], -1)
        size = np.sqrt((flat**2).mean(axis=0))
        is_something = size > 0
        means, variances = np.zeros((2, n_players, flat.shape[1]))
        if is_something.any():
            signs = np.where(
                np.concatenate([np.ones((1, n_players), dtype=bool), members]), 1.0, -1.0
            )
            scaled = flat[:, is_something] / size[is_something]
            known = design.log_weights
            if known is not None:
                known = np.repeat(known, n_outputs, axis=0)[is_something]
            found = self._posterior(signs, scaled, known)
            means[:, is_something] = found.means * size[is_something]
            variances[:, is_something] = found.variances * size[is_something] ** 2
        attributions = means.reshape(n_players, n_rows, n_outputs).transpose(1, 0, 2)
        # What rounding leaves of the efficiency residual.
        residual = 2 * total[:, None] - attributions.sum(axis=1, keepdims=True)
        errors = np.sqrt(variances).reshape(n_players, n_rows, n_outputs).transpose(1, 0, 2)
        return Solution(attributions + residual / n_players, errors)

    def _posterior(
        self, signs: FloatArray, targets: FloatArray, known: FloatArray | None
    ) -> Posterior:
        """Return the posterior for targets, (n, B), of mean square 1."""
        n_players = signs.shape[1]
        few = slice(0, _LEARNED_FROM + 1)
        starts = best_of_grid(signs[few], targets[few])
        means, variances = np.empty((2, n_players, targets.shape[1]))
        n_learned = _SHARE_LEARNED * n_players if self.weights == "learned" else 0.0
        for places, prior in self._priors(signs[few], targets[few], starts, known):
            own, ratios = Outstanding.none(), prior.ratios
            kernels = OddKernels.at(signs[:_DENSE_PAIRS], prior.weights)
            if self.weights == "learned":
                own, ratios = find_outstanding(kernels, targets[:_DENSE_PAIRS, places[0]], ratios)
            choices = ratios_around(ratios)
            found = posterior(signs, targets[:, places], kernels, choices, n_learned, own)
            means[:, places], variances[:, places] = found.means, found.variances
        return Posterior(means, variances)

    def _priors(
        self,
        signs: FloatArray,
        targets: FloatArray,
        starts: list[Ratios],
        known: FloatArray | None,
    ) -> Iterator[tuple[list[int], Prior]]:
        """Yield priors and the places of the targets that they are for."""
        if self.weights == "equal":
            equal = np.ones(signs.shape[1])
            for start in dict.fromkeys(starts):
                places = [place for place, own in enumerate(starts) if own == start]
                yield places, Prior(equal, start)
        else:
            for place, prior in enumerate(learned(signs, targets, starts, known)):
                yield [place], prior
