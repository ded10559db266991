"""Odd Gaussian-process regression: the posterior of the Shapley values, given some values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...arguments import checked_choice, checked_flag
from ...array_types import CoalitionArray, FloatArray, IntArray, ScoreArray, ValueArray
from ...cooperators.choices import checked_prior
from ...threads.row_threads import map_in_threads
from ..cross_fitting import cross_fitted
from ..kernel_draws import CoalitionDraws, select_draws
from ..pair_folds import FoldedDraws, draw_folds
from ..protocol import Design, DesignRequest, Estimator, Solution
from .attribution_covariances import shapley_weights
from .design import spread_pairs
from .exact_terms import with_exact_games
from .kernels import OddKernel, Prior
from .marginal_likelihood import best_of_grid
from .posterior import Posterior, PriorChoice, posterior, posterior_through_first_values
from .prior_choices import choices_around, choices_of_equal, likely_choices
from .prior_fitting import around_centres, fit_priors, log_weights_from_scores, strength_prior
from .prior_shares import prior_shares
from .sparse_triples import SparseInteractions, find_sparse_interactions

WEIGHTS = ("learned", "equal")

_LEARNED_FROM = 240
"""Pairs that weights are learned from: the first, which are the most telling."""

_SEARCHED_PER_PLAYER, _MOST_SEARCHED = 32, 1024
"""Values that sparse interactions are looked for in, for each player and at most."""

_DENSE_PAIRS, _FIRST_VALUES = 2048, 1024
"""Up to here, all values are conditioned on exactly; beyond, through the first so many."""

_BLOCK_NUMBERS, _MOST_TOGETHER = 300_000, 25
"""Rows are solved in stacks, so that one NumPy operation works on several matrices while another
thread runs: bounds on the numbers in the matrices of a stack, and on its rows."""

_WORTH_SHARING = 8
"""Rows from which on there are two blocks at least, for two threads."""

_FEW_VALUES = 32
"""Rows of fewer values are solved sooner than threads are started."""

_MATRICES, _THREADS_BYTES = 20, 2**30
"""Matrices that a row takes at a time, and a bound on those that all threads take."""

_FREEDOM_OF_FEW = 2.0
"""Degrees of freedom of the errors with at most as many pairs as players, from which the scale of a
game is hardly known: with 20 to 100 players, intervals then hold what they say on most games."""

_COUNTED_PLAYERS = 24
"""Up to here, all pairs may be evaluated."""

_SHARE_LEARNED = 0.5
"""Degrees of freedom that a learned weight takes; its prior takes the rest."""


@dataclass(frozen=True)
class OddDesign(Design):
    """Pairs of complements, and what is known of the weights of each row beforehand.

    Attributes
    ----------
    draws : CoalitionDraws
        The pairs, shared by all rows; with folds where the estimate is unbiased.
    log_weights : array, (R, M), or None
        Where the logarithms of the weights are expected to be.
    """

    draws: CoalitionDraws
    log_weights: FloatArray | None

    def within(self, n_coalitions: int) -> OddDesign:
        """Return the design that the first coalitions make."""
        draws = self.draws.within(n_coalitions)
        return replace(self, table=draws.table, draws=draws)

    def of_rows(self, indices: IntArray) -> OddDesign:
        """Return the design of some of the rows."""
        if self.log_weights is None:
            return self
        return replace(self, log_weights=self.log_weights[indices])


@dataclass(frozen=True)
class OddGP(Estimator[OddDesign]):
    """Gaussian-process regression on the odd part of the game.

    The prior holds interactions of all odd sizes. It knows how strongly each player takes part in
    them, and which sizes matter; both are learned from the values of the row by their marginal
    likelihood. What it does not explain is a part of the game as well, so that the posterior is
    exact once all pairs are known. The
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
    unbiased : bool
        Draw all pairs at random, and let the posterior mean given all but a fold of them be the
        control variate of that fold; see `cross_fitting`. Standard errors are then those of the
        draws.
    """

    is_drawn_by_labels: ClassVar[bool] = True  # little else is drawn
    solution_exponent: ClassVar[float] = 3.0  # of the factorisation of a matrix

    weights: str = "learned"
    cooperators: str | ScoreArray | None = None
    unbiased: bool = False

    def __post_init__(self) -> None:
        checked_choice("weights", self.weights, WEIGHTS)
        checked_flag("unbiased", self.unbiased)
        checked_prior(self.cooperators, self.weights)

    @property
    def score_source(self) -> str | ScoreArray | None:
        """How the scores of the prior are computed; what derivatives do not tell, values will."""
        return checked_prior(self.cooperators, self.weights)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one pair, or of two for errors of draws, and the end points."""
        del n_players  # the prior fills in what the values leave open
        return 6 if with_errors and self.unbiased else 4

    def useful_budget(self, n_players: int) -> int:
        """Return two evaluations per player, which pay for each single player and its complement.

        With fewer, most of an attribution is the equal share that the prior gives. Measured with 20
        to 100 players of models, the share of the prior is .6 to .9 at one evaluation per player
        and .02 to .3 at two. An unbiased estimate has no such share.
        """
        return 0 if self.unbiased else 2 * n_players

    def memory(self, n_players: int, budget: int) -> int:
        """Return what the coalitions take, and the kernels of all pairs that are solved exactly."""
        n_dense = min(budget // 2, _DENSE_PAIRS)
        return (10 * budget + 700 * n_dense) * n_players

    def design(self, request: DesignRequest) -> OddDesign:
        """Choose the pairs that tell most, or draw them; which player plays which part is drawn."""
        if self.unbiased:
            draws: CoalitionDraws = draw_folds(request)
        else:
            members = spread_pairs(request.n_players, (request.budget - 2) // 2, request.rng)
            draws = select_draws(request, members, paired=True)
        if request.scores is None or request.has_scores is None or not request.has_scores.any():
            return OddDesign(draws.table, draws, None)
        return OddDesign(draws.table, draws, log_weights_from_scores(request.scores))

    def solve(self, design: OddDesign, values: ValueArray) -> Solution:
        """Return the attributions and standard errors of all rows and outputs."""
        draws, log_weights = design.draws, design.log_weights
        total = (values[:, 1] - values[:, 0])[:, None] / 2  # the odd part at all players together
        targets = draws.targets(values, centred=False)
        if isinstance(draws, FoldedDraws):

            def fit(known: IntArray, others: IntArray) -> tuple[FloatArray, FloatArray]:
                members = draws.members[known], draws.members[others]
                results = self._solved(
                    members[0], total, targets[:, known], log_weights, members[1]
                )
                return results.means, results.predictions

            return cross_fitted(draws, targets, fit)
        n_pairs, n_players = draws.members.shape
        results = self._solved(draws.members, total, targets, log_weights, draws.members[:0])
        errors = np.sqrt(results.variances)
        freedom = _FREEDOM_OF_FEW if n_pairs <= n_players else np.inf
        return Solution(results.means, errors, freedom, prior_shares(results.means, errors))

    def _solved(
        self,
        members: CoalitionArray,
        total: FloatArray,
        targets: FloatArray,
        log_weights: FloatArray | None,
        others: CoalitionArray,
    ) -> Posterior:
        """Return the posterior of all rows and outputs, (R, ..., K).

        Parameters
        ----------
        members : array, (n, M)
            The coalitions.
        total, targets : arrays, (R, 1, K) and (R, n, K)
            The odd part of the game at all players together, and at these coalitions.
        log_weights : array, (R, M), or None
            Where the logarithms of the weights are expected to be.
        others : array, (m, M)
            Coalitions whose values are predicted.
        """
        n_players = members.shape[1]
        targets = np.concatenate([total, targets], axis=1)
        n_rows, n, n_outputs = targets.shape
        flat = np.ascontiguousarray(targets.transpose(1, 0, 2)).reshape(n, -1)
        # Each sum is over neighbours in memory, so that its order is that of a row alone.
        size = np.sqrt((np.ascontiguousarray(flat.T) ** 2).mean(axis=1))
        is_something = size > 0
        lengths = (n_players, n_players, len(others))
        results = Posterior(*(np.zeros((length, len(size))) for length in lengths))
        if is_something.any():
            with_all = np.concatenate([np.ones((1, n_players), dtype=bool), members])
            centres = log_weights
            if centres is not None:
                centres = np.repeat(centres, n_outputs, axis=0)[is_something]
            scale = size[is_something]
            scaled = self._posterior(
                _signs(with_all), flat[:, is_something] / scale, centres, _signs(others)
            )
            results.means[:, is_something] = scaled.means * scale
            results.variances[:, is_something] = scaled.variances * scale**2
            results.predictions[:, is_something] = scaled.predictions * scale
        means, variances, predictions = (
            np.ascontiguousarray(array.reshape(-1, n_rows, n_outputs).transpose(1, 0, 2))
            for array in (results.means, results.variances, results.predictions)
        )
        # What rounding leaves of the efficiency residual.
        residual = 2 * total - means.sum(axis=1, keepdims=True)
        return Posterior(means + residual / n_players, variances, predictions)

    def _posterior(
        self,
        signs: FloatArray,
        targets: FloatArray,
        centres: FloatArray | None,
        others: FloatArray | None = None,
    ) -> Posterior:
        """Return the posterior for targets, (n, B), of mean square 1."""
        n, n_players = signs.shape
        others = signs[:0] if others is None else others
        predictions = np.zeros((len(others), targets.shape[1]))
        if n_players <= _COUNTED_PLAYERS and n == 2 ** (n_players - 1):
            values = shapley_weights(signs).T @ targets  # all pairs are there
            return Posterior(values, np.zeros_like(values), predictions)
        first_values = slice(0, _LEARNED_FROM + 1)
        starts = best_of_grid(signs[first_values], targets[first_values])
        means, variances = np.empty((2, signs.shape[1], targets.shape[1]))
        if self.weights == "equal":
            blocks = _blocks_of_equal(starts)
            solve, n_threads = _with_equal_weights, 1
        else:
            blocks = _even_blocks(len(starts), _block_size(len(signs)))
            solve, n_threads = _with_learned_weights, _most_threads(len(signs))

        def solve_block(block: list[int]) -> Posterior:
            of_block = None if centres is None else centres[block]
            starts_of_block = [starts[index] for index in block]
            return solve(signs, targets[:, block], starts_of_block, of_block, others)

        solved = map_in_threads(solve_block, blocks, n_threads)
        for block, results in zip(blocks, solved, strict=True):
            means[:, block], variances[:, block] = results.means, results.variances
            predictions[:, block] = results.predictions
        return Posterior(means, variances, predictions)


def _signs(members: CoalitionArray) -> FloatArray:
    """Return 1 for the members of coalitions, −1 for the other players."""
    signs: FloatArray = np.where(members, 1.0, -1.0)
    return signs


def _blocks_of_equal(starts: list[Prior]) -> list[list[int]]:
    """Return the rows that start at the same prior, which share factorisations."""
    blocks: dict[int, list[int]] = {}
    for index, start in enumerate(starts):
        blocks.setdefault(id(start), []).append(index)
    return list(blocks.values())


def _even_blocks(n_rows: int, limit: int) -> list[list[int]]:
    """Return rows in blocks of almost one size, at most `limit`; an even number keeps cores busy.

    A row's result does not depend on the size of its block.
    """
    n_blocks = -(-n_rows // limit)
    if n_rows >= _WORTH_SHARING:
        n_blocks = min(n_blocks + n_blocks % 2, n_rows)
    return [block.tolist() for block in np.array_split(np.arange(n_rows), n_blocks)]


def _block_size(n: int) -> int:
    """Return how many rows are solved together at most, by their number of values."""
    n_dense = min(n, _DENSE_PAIRS)
    return int(np.clip(_BLOCK_NUMBERS // n_dense**2, 1, _MOST_TOGETHER))


def _most_threads(n: int) -> int:
    """Return how many threads pay for blocks of rows of `n` values, and fit into memory."""
    if n < _FEW_VALUES:
        return 1
    n_bytes = _MATRICES * 8 * _block_size(n) * min(n, _DENSE_PAIRS) * n
    return max(1, _THREADS_BYTES // n_bytes)


def _with_equal_weights(
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Prior],
    centres: FloatArray | None,
    others: FloatArray,
) -> Posterior:
    """Return the posterior for targets, (n, B), that start at the same prior."""
    del centres  # they are of fitted strengths
    is_dense = len(signs) <= _DENSE_PAIRS
    n_first = len(signs) if is_dense else min(_FIRST_VALUES, _DENSE_PAIRS)
    kernel = OddKernel.at(signs[:n_first], starts[0].strengths)
    if not is_dense:
        sparse = SparseInteractions.empty()
        return posterior_through_first_values(
            signs, targets, kernel, starts[0], 0.0, sparse, others
        )
    return posterior(signs, targets, choices_of_equal(kernel, starts[0]), 0.0, [], others)


def _with_learned_weights(
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Prior],
    centres: FloatArray | None,
    others: FloatArray,
) -> Posterior:
    """Return the posterior for targets, (n, B), each with strengths of its own."""
    n_fitted = _SHARE_LEARNED * signs.shape[1]
    stack = np.ascontiguousarray(targets.T)  # (B, n)
    first_values = slice(0, _LEARNED_FROM + 1)
    expectation = strength_prior(centres, (len(stack), signs.shape[1]))
    start = around_centres(Prior.stack(starts), expectation)
    prior = fit_priors(signs[first_values], stack[:, first_values], start, expectation)
    n_searched = min(_SEARCHED_PER_PLAYER * signs.shape[1], _MOST_SEARCHED)
    searched = slice(0, max(n_searched, _LEARNED_FROM) + 1)
    kernel = OddKernel.at(signs[searched], prior.strengths)
    sparse = [SparseInteractions.empty()] * len(stack)
    if len(signs) - 1 > signs.shape[1]:  # fewer pairs do not even determine single players
        sparse, prior = find_sparse_interactions(kernel, stack[:, searched], prior)
    if len(signs) > _DENSE_PAIRS:
        results = _through_first_values(signs, stack, prior, n_fitted, sparse, others)
    else:
        small = kernel.within(_LEARNED_FROM + 1)
        choices = choices_around(small, prior, start, expectation)
        if len(signs) <= _LEARNED_FROM + 1:
            results = posterior(signs, stack[:, :, None], choices, n_fitted, sparse, others)
        else:
            results = _by_likely_choices(signs, stack, list(choices), n_fitted, sparse, others)
    if not len(others):  # predictions belong to the means of the posterior itself
        results = with_exact_games(kernel, stack[:, searched], prior, sparse, results)
    return Posterior(
        results.means[:, :, 0].T, results.variances[:, :, 0].T, results.predictions[:, :, 0].T
    )


def _by_likely_choices(
    signs: FloatArray,
    stack: FloatArray,
    choices: list[PriorChoice],
    n_fitted: float,
    sparse: list[SparseInteractions],
    others: FloatArray,
) -> Posterior:
    """Return the posterior of each game of a stack, (B, n), by the choices its first values leave.

    Kernels of the choices are those of the first values.
    """
    of_games = []
    for game, own_choices in enumerate(likely_choices(choices, stack, sparse)):
        with_kernels = [choice.at(signs) for choice in own_choices]
        values = stack[[game], :, None]
        of_games.append(posterior(signs, values, with_kernels, n_fitted, [sparse[game]], others))
    return Posterior.stack(of_games)


def _through_first_values(
    signs: FloatArray,
    stack: FloatArray,
    prior: Prior,
    n_fitted: float,
    sparse: list[SparseInteractions],
    others: FloatArray,
) -> Posterior:
    """Return the posterior of each game of a stack, (B, n), of many values."""
    of_games = []
    for game, values in enumerate(stack):
        of_game = prior.of_games(game)
        first = OddKernel.at(signs[: min(_FIRST_VALUES, _DENSE_PAIRS)], of_game.strengths)
        results = posterior_through_first_values(
            signs, values[:, None], first, of_game, n_fitted, sparse[game], others
        )
        of_games.append(
            Posterior(results.means[None], results.variances[None], results.predictions[None])
        )
    return Posterior.stack(of_games)
