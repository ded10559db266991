"""Odd Gaussian-process regression: the posterior of the Shapley values, given some values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...arguments import checked_choice, checked_flag
from ...array_types import (
    AttributionArray,
    CoalitionArray,
    FloatArray,
    IntArray,
    ScoreArray,
    ValueArray,
)
from ...cooperators.choices import checked_prior
from ...interactions.indices import INDICES
from ...interactions.result import PairSolution
from ...threads.row_threads import map_in_threads, n_threads_within_memory
from ..cross_fitting import cross_fitted
from ..kernel_draws import CoalitionDraws, select_draws
from ..pair_folds import FOLDS, FoldedDraws, draw_folds
from ..protocol import Design, DesignRequest, Estimator, Operations, Solution
from .attribution_covariances import shapley_weights
from .design import spread_pairs
from .equal_posterior import equal_posterior
from .even_part import even_memory, even_pair_solution
from .exact_terms import with_exact_games
from .kernels import OddKernel, Prior
from .left_out_values import checked_last
from .posterior import Posterior, PriorChoice, posterior, posterior_through_first_values
from .prior_choices import choices_around, likely_choices
from .prior_fitting import around_centres, fit_priors, log_weights_from_scores, strength_prior
from .prior_grid import best_of_grid
from .prior_shares import prior_shares
from .sparse_triples import SparseInteractions, find_sparse_interactions
from .taylor_part import with_odd_part

WEIGHTS = ("learned", "equal")

_LEARNED_FROM = 240
"""Number of pairs that the weights are learned from: the first, most informative pairs."""

_SEARCHED_PER_PLAYER, _MOST_SEARCHED = 32, 1024
"""Number of values in the search for sparse interactions: per player, and at most."""

_DENSE_PAIRS, _FIRST_VALUES = 2048, 1024
"""With at most so many pairs, the posterior is exact, given all values. With more pairs, the prior
is approximated through the first so many values."""

_BLOCK_NUMBERS, _MOST_TOGETHER = 300_000, 25
"""Bounds on the numbers in the matrices of a stack, and on its rows. Rows are solved in stacks, so
that one NumPy operation works on several matrices while another thread runs."""

_WORTH_SHARING = 8
"""From so many rows on, there are at least two blocks, for two threads."""

_FEW_VALUES = 32
"""Rows with fewer values are solved without threads, which take longer to start."""

_MATRICES = 20
"""Number of matrices that a row needs at once."""

_FREEDOM_OF_FEW = 2.0
"""Degrees of freedom of the errors if there are at most as many pairs as players. So few pairs
hardly determine the scale of a game. Measured with 20 to 100 players: with these degrees of
freedom, confidence intervals have their nominal coverage on most games."""

_COUNTED_PLAYERS = 24
"""Up to here, all pairs may be evaluated."""

_SHARE_LEARNED = 0.5
"""Degrees of freedom that each learned weight uses up; less than 1, because it has a prior."""


@dataclass(frozen=True)
class OddDesign(Design):
    """Pairs of complements, and the prior means of the weights of each row.

    Attributes
    ----------
    draws : CoalitionDraws
        The pairs, shared by all rows; with folds if the estimate is unbiased.
    log_weights : array, (R, M), or None
        Prior means of the logarithms of the weights.
    """

    draws: CoalitionDraws
    log_weights: FloatArray | None

    @property
    def fewest_coalitions(self) -> int:
        """Those that the pairs need, if the estimate is unbiased."""
        return self.draws.fewest_coalitions

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

    The prior has interactions of all odd sizes. Its hyperparameters say how strongly each player
    takes part in interactions, and which sizes matter. They are fitted to the values of the row by
    the marginal likelihood. The interactions do not explain each value exactly. The residual is a
    part of the game as well, so that the posterior is exact once all pairs are evaluated. Given the
    hyperparameters, the posterior mean is linear in the values. It satisfies efficiency exactly. It
    shrinks towards the prior mean, and so is not unbiased over the choice of coalitions. Standard
    errors are posterior standard deviations: the uncertainty about the game, given the values.

    Parameters
    ----------
    weights : {"learned", "equal"}
        Whether each player has its own weight in interactions. With equal weights, rows share the
        factorisations of matrices, which is faster for many rows.
    cooperators : {None, "auto", "hessian", "gradient", "difference"} or array
        How to compute the players' scores, which give the prior of the weights; None for no prior.
    unbiased : bool
        Draw all pairs at random, in folds. The posterior mean, given all other pairs, is the
        control variate of a fold; see `cross_fitting`. Standard errors are then those of the draws.
    """

    solution_exponent: ClassVar[float] = 3.0  # of the factorisation of a matrix
    interaction_indices: ClassVar[tuple[str, ...]] = INDICES

    weights: str = "learned"
    cooperators: str | ScoreArray | None = None
    unbiased: bool = False

    def __post_init__(self) -> None:
        checked_choice("weights", self.weights, WEIGHTS)
        checked_flag("unbiased", self.unbiased)
        checked_prior(self.cooperators, self.weights)

    @property
    def is_drawn_by_labels(self) -> bool:
        """Little else is drawn, except for an unbiased estimate.

        Its folds correct each other without bias only over the draws of all folds. Rows that shared
        the draws and differed in labels would share a part of their errors.
        """
        return not self.unbiased

    @property
    def is_unbiased(self) -> bool:
        """If asked for; otherwise the estimate shrinks."""
        return self.unbiased

    @property
    def score_source(self) -> str | ScoreArray | None:
        """How the scores of the prior are computed: by derivatives, or else by values."""
        return checked_prior(self.cooperators, self.weights)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one pair, or of two for errors of draws, and the end points."""
        del n_players  # the posterior exists for any number of values
        return 6 if with_errors and self.unbiased else 4

    def useful_budget(self, n_players: int) -> int:
        """Return two evaluations per player: enough for each single player and its complement.

        With fewer, most of an attribution is the equal share that the prior gives. Measured on
        models with 20 to 100 players: the share of the prior is .6 to .9 at one evaluation per
        player, and .02 to .3 at two. An unbiased estimate has no such share.
        """
        return 0 if self.unbiased else 2 * n_players

    def memory(self, n_players: int, budget: int) -> int:
        """Return the bytes of the coalitions, and of the kernels of all pairs solved exactly."""
        n_dense = min(budget // 2, _DENSE_PAIRS)
        return (10 * budget + 700 * n_dense) * n_players

    def operations(self, n_players: int, budget: int) -> Operations:
        """Return those of products of matrices where the prior goes through the first values."""
        n_pairs = budget // 2
        n_kept = n_players + _FIRST_VALUES
        solution = 2.0 * n_pairs * n_kept * (n_kept + n_players) * (n_pairs > _DENSE_PAIRS)
        if self.unbiased:
            solution *= FOLDS
        is_shared = self.weights == "equal"
        return Operations(solution * is_shared, solution * (not is_shared))

    def interaction_memory(self, n_players: int, budget: int) -> int:
        """Return the bytes of the posterior of all pairs; further threads have a bound."""
        return even_memory(n_players, budget // 2)

    def design(self, request: DesignRequest) -> OddDesign:
        """Choose the most informative pairs, or draw them; the players are in random order."""
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

            def fit(pairs: IntArray, other_pairs: IntArray) -> tuple[FloatArray, FloatArray]:
                members, other_members = draws.members[pairs], draws.members[other_pairs]
                results = self._solved(
                    members, total, targets[:, pairs], log_weights, other_members
                )
                return results.means, results.predictions

            return cross_fitted(draws, targets, fit)
        n_pairs, n_players = draws.members.shape
        results = self._solved(draws.members, total, targets, log_weights, draws.members[:0])
        errors = np.sqrt(results.variances)
        most_freedom = _FREEDOM_OF_FEW if n_pairs <= n_players else np.inf
        freedom = np.minimum(results.freedom, most_freedom)
        return Solution(results.means, errors, freedom, prior_shares(results.means, errors))

    def predict(
        self,
        members: CoalitionArray,
        total: FloatArray,
        targets: FloatArray,
        other_members: CoalitionArray,
    ) -> Posterior:
        """Return the posterior of all rows and outputs, (R, ..., K), without scores.

        Parameters
        ----------
        members : array, (n, M)
            Distinct coalitions, without the complements of each other.
        total, targets : arrays, (R, 1, K) and (R, n, K)
            The odd part of the game at all players together, and at these coalitions.
        other_members : array, (m, M)
            Other coalitions, whose values are predicted.
        """
        return self._solved(members, total, targets, None, other_members)

    def pair_interactions(
        self, design: OddDesign, values: ValueArray, errors: AttributionArray, index: str
    ) -> PairSolution:
        """Return the posterior of the interactions: their means and standard deviations."""
        draws = design.draws
        first, second = (np.take(values, draws.positions[:, side], axis=1) for side in (0, 1))
        first = np.concatenate([values[:, 1:2], first], axis=1)  # of all players, then of the draws
        second = np.concatenate([values[:, :1], second], axis=1)
        is_taylor = index == "shapley_taylor"
        solution = even_pair_solution(
            "shapley" if is_taylor else index,
            draws.members,
            (first + second) / 2,
            self.weights,
            design.log_weights,
            np.zeros_like(errors) if is_taylor else errors,
        )
        if not is_taylor:
            return solution
        attributions = self.solve(design, values).values
        odd = (first - second) / 2
        return with_odd_part(solution, draws.members, odd, attributions, errors)

    def _solved(
        self,
        members: CoalitionArray,
        total: FloatArray,
        targets: FloatArray,
        log_weights: FloatArray | None,
        other_members: CoalitionArray,
    ) -> Posterior:
        """Return the posterior of all rows and outputs, (R, ..., K).

        Parameters
        ----------
        members : array, (n, M)
            The coalitions.
        total, targets : arrays, (R, 1, K) and (R, n, K)
            The odd part of the game at all players together, and at these coalitions.
        log_weights : array, (R, M), or None
            Prior means of the logarithms of the weights.
        other_members : array, (m, M)
            Other coalitions, whose values are predicted.
        """
        n_players = members.shape[1]
        targets = np.concatenate([total, targets], axis=1)
        n_rows, n, n_outputs = targets.shape
        flat = np.ascontiguousarray(targets.transpose(1, 0, 2)).reshape(n, -1)
        # Each sum runs over contiguous memory: its order is the same as for one row alone.
        size = np.sqrt((np.ascontiguousarray(flat.T) ** 2).mean(axis=1))
        is_something = size > 0
        lengths = (n_players, n_players, len(other_members), 1)
        results = Posterior(*(np.zeros((length, len(size))) for length in lengths))
        results.freedom[:] = np.inf
        if is_something.any():
            with_all = np.concatenate([np.ones((1, n_players), dtype=bool), members])
            centres = log_weights
            if centres is not None:
                centres = np.repeat(centres, n_outputs, axis=0)[is_something]
            scale = size[is_something]
            scaled = self._posterior(
                _signs(with_all), flat[:, is_something] / scale, centres, _signs(other_members)
            )
            results.means[:, is_something] = scaled.means * scale
            results.variances[:, is_something] = scaled.variances * scale**2
            results.predictions[:, is_something] = scaled.predictions * scale
            results.freedom[:, is_something] = scaled.freedom
        means, variances, predictions, freedom = (
            np.ascontiguousarray(array.reshape(-1, n_rows, n_outputs).transpose(1, 0, 2))
            for array in (results.means, results.variances, results.predictions, results.freedom)
        )
        # The residual of efficiency, which is rounding.
        residual = 2 * total - means.sum(axis=1, keepdims=True)
        return Posterior(means + residual / n_players, variances, predictions, freedom)

    def _posterior(
        self,
        signs: FloatArray,
        targets: FloatArray,
        centres: FloatArray | None,
        other_signs: FloatArray | None = None,
    ) -> Posterior:
        """Return the posterior for targets, (n, B), of mean square 1."""
        n, n_players = signs.shape
        other_signs = signs[:0] if other_signs is None else other_signs
        predictions = np.zeros((len(other_signs), targets.shape[1]))
        freedom = np.full((1, targets.shape[1]), np.inf)
        if n_players <= _COUNTED_PLAYERS and n == 2 ** (n_players - 1):
            values = shapley_weights(signs).T @ targets  # all pairs are evaluated
            return Posterior(values, np.zeros_like(values), predictions, freedom)
        first_values = slice(0, _LEARNED_FROM + 1)
        starts = best_of_grid(signs[first_values], targets[first_values])
        means, variances = np.empty((2, signs.shape[1], targets.shape[1]))
        if self.weights == "equal":
            blocks = [list(range(len(starts)))] if n <= _DENSE_PAIRS else _blocks_of_equal(starts)
            solve, n_threads = _with_equal_weights, 1
        else:
            blocks = _even_blocks(_by_start(starts), _block_size(len(signs)))
            solve, n_threads = _with_learned_weights, _most_threads(len(signs))

        def solve_block(block: list[int]) -> Posterior:
            of_block = None if centres is None else centres[block]
            starts_of_block = [starts[index] for index in block]
            return solve(signs, targets[:, block], starts_of_block, of_block, other_signs)

        solved = map_in_threads(solve_block, blocks, n_threads)
        for block, results in zip(blocks, solved, strict=True):
            means[:, block], variances[:, block] = results.means, results.variances
            predictions[:, block], freedom[:, block] = results.predictions, results.freedom
        return Posterior(means, variances, predictions, freedom)


def _signs(members: CoalitionArray) -> FloatArray:
    """Return 1 for the members of coalitions, −1 for the other players."""
    signs: FloatArray = np.where(members, 1.0, -1.0)
    return signs


def _blocks_of_equal(starts: list[Prior]) -> list[list[int]]:
    """Return the rows that start at the same prior."""
    blocks: dict[int, list[int]] = {}
    for index, start in enumerate(starts):
        blocks.setdefault(id(start), []).append(index)
    return list(blocks.values())


def _by_start(starts: list[Prior]) -> list[int]:
    """Return the rows in an order in which those that start at the same prior are neighbours."""
    return [row for block in _blocks_of_equal(starts) for row in block]


def _even_blocks(rows: list[int], limit: int) -> list[list[int]]:
    """Return rows in blocks of almost equal size, at most `limit`; an even number suits two cores.

    A row's result does not depend on its block.
    """
    n_blocks = -(-len(rows) // limit)
    if len(rows) >= _WORTH_SHARING:
        n_blocks = min(n_blocks + n_blocks % 2, len(rows))
    return [block.tolist() for block in np.array_split(rows, n_blocks)]


def _block_size(n: int) -> int:
    """Return how many rows are solved together at most, by their number of values."""
    n_dense = min(n, _DENSE_PAIRS)
    return int(np.clip(_BLOCK_NUMBERS // n_dense**2, 1, _MOST_TOGETHER))


def _most_threads(n: int) -> int:
    """Return how many threads make rows of `n` values faster, and fit into memory."""
    if n < _FEW_VALUES:
        return 1
    n_bytes = _MATRICES * 8 * _block_size(n) * min(n, _DENSE_PAIRS) * n
    return n_threads_within_memory(n_bytes)


def _with_equal_weights(
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Prior],
    centres: FloatArray | None,
    other_signs: FloatArray,
) -> Posterior:
    """Return the posterior for targets, (n, B); with many values, all have the same start."""
    del centres  # only fitted strengths have centres
    if len(signs) <= _DENSE_PAIRS:
        return equal_posterior(signs, targets, starts, other_signs)
    n_first = min(_FIRST_VALUES, _DENSE_PAIRS)
    kernel, sparse = OddKernel.at(signs[:n_first], starts[0].strengths), SparseInteractions.empty()
    return posterior_through_first_values(
        signs, targets, kernel, starts[0], 0.0, sparse, other_signs
    )


def _with_learned_weights(
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Prior],
    centres: FloatArray | None,
    other_signs: FloatArray,
) -> Posterior:
    """Return the posterior for targets, (n, B), with strengths fitted to each target."""
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
        results = _through_first_values(signs, stack, prior, n_fitted, sparse, other_signs)
    else:
        small = kernel.within(_LEARNED_FROM + 1)
        choices = choices_around(small, prior, start, expectation)
        if len(signs) <= _LEARNED_FROM + 1:
            results = posterior(signs, stack[:, :, None], choices, n_fitted, sparse, other_signs)
        else:
            results = _by_likely_choices(signs, stack, list(choices), n_fitted, sparse, other_signs)
    if not len(other_signs):  # the means must be those of the predictions
        results = with_exact_games(kernel, stack[:, searched], prior, sparse, results)
    arrays = results.means, results.variances, results.predictions, results.freedom
    return Posterior(*(array[:, :, 0].T for array in arrays))


def _by_likely_choices(
    signs: FloatArray,
    stack: FloatArray,
    choices: list[PriorChoice],
    n_fitted: float,
    sparse: list[SparseInteractions],
    other_signs: FloatArray,
) -> Posterior:
    """Return the posterior of each game of a stack, (B, n), averaged over its likely choices.

    The first values decide which choices are likely; the kernels of `choices` are between these.
    """
    of_games, order = [], checked_last(signs)
    all_likely = likely_choices(choices, stack, sparse, signs)
    signs, stack = signs[order], stack[:, order]
    for game, own_choices in enumerate(all_likely):
        with_kernels = [choice.at(signs) for choice in own_choices]
        values = stack[[game], :, None]
        of_games.append(
            posterior(signs, values, with_kernels, n_fitted, [sparse[game]], other_signs)
        )
    return Posterior.stack(of_games)


def _through_first_values(
    signs: FloatArray,
    stack: FloatArray,
    prior: Prior,
    n_fitted: float,
    sparse: list[SparseInteractions],
    other_signs: FloatArray,
) -> Posterior:
    """Return the posterior of each game of a stack, (B, n), of many values."""
    of_games = []
    for game, values in enumerate(stack):
        of_game = prior.of_games(game)
        first = OddKernel.at(signs[: min(_FIRST_VALUES, _DENSE_PAIRS)], of_game.strengths)
        results = posterior_through_first_values(
            signs, values[:, None], first, of_game, n_fitted, sparse[game], other_signs
        )
        arrays = results.means, results.variances, results.predictions, results.freedom
        of_games.append(Posterior(*(array[None] for array in arrays)))
    return Posterior.stack(of_games)
