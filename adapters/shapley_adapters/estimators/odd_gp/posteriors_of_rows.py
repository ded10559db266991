"""Posteriors of many rows, each with its own prior, in stacks and threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...array_types import FloatArray, IntArray
from ...threads.row_threads import (
    map_in_threads,
    n_threads_for_rows,
    n_threads_within_memory,
)
from .attribution_covariances import shapley_weights
from .effects_by_size import variances_of_fading
from .equal_posterior import equal_posterior, likely_of_equal
from .exact_fits import ExactFit, additive_games
from .exact_terms import with_exact_games
from .expected_triples import expected_triples
from .few_numbers import variances_of_jumps
from .first_values import posterior_through_first_values
from .kernels import OddKernel, Prior
from .left_out_values import checked_last
from .marginal_likelihood import column_by_column
from .posterior import Posterior, PriorChoice, posterior
from .prior_choices import choices_around, likely_choices
from .prior_fitting import StrengthPrior, around_centres, fit_priors, strength_prior
from .prior_grid import best_of_grid
from .sparse_triples import SparseInteractions, find_sparse_interactions

_LEARNED_FROM = 240
"""Number of pairs that the weights are learned from: the first, most informative pairs."""

_SEARCHED_PER_PLAYER, _MOST_SEARCHED = 32, 1024
"""Number of values in the search for sparse interactions: per player, and at most."""

DENSE_PAIRS, FIRST_VALUES = 5000, 2048
"""With at most so many pairs, the posterior is exact, given all values. With more pairs, the prior
is approximated through the first so many values. At the bound, both take as long."""

_MOST_EXPECTED = 2048
"""With more values than this, the even part is not used. It was measured with fewer."""

_BLOCK_NUMBERS, _MOST_TOGETHER = 600_000, 25
"""Bounds on the numbers in the matrices of a stack, and on its rows. Rows are solved in stacks, so
that one NumPy operation works on several matrices while another thread runs. Matrices of more
values than the search for sparse interactions has are made for one row after the other. Stacks are
half as large where there would be fewer than two for each thread."""

_WORTH_SHARING = 8
"""From so many rows on, there are at least two blocks, for two threads."""

_FEW_VALUES = 32
"""Rows with fewer values are solved without threads, which take longer to start."""

_MATRICES = 20
"""Number of matrices that a row needs at once."""

_COUNTED_PLAYERS = 24
"""Up to here, all pairs may be evaluated."""

_SPARE_OF_SURE = 10
"""With more spare values than this, or than players, a game that looks additive is sure to be."""

_SHARE_LEARNED = 0.5
"""Degrees of freedom that each learned weight uses up; less than 1, because it has a prior."""


def posteriors_of_rows(
    signs: FloatArray,
    targets: FloatArray,
    weights: str,
    centres: FloatArray | None = None,
    other_signs: FloatArray | None = None,
    evens: FloatArray | None = None,
) -> Posterior:
    """Return the posterior for targets, (n, B), of mean square 1.

    Parameters
    ----------
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (n, B)
        The values of each row and output.
    weights : {"learned", "equal"}
        Whether each player has its own weight in interactions.
    centres : array, (B, M), optional
        Prior means of the logarithms of the weights.
    other_signs : array, (m, M), optional
        Other coalitions, whose values are predicted.
    evens : array, (n - 1, B), optional
        The even part of the games, as `even_differences`. Learned weights use it to expect
        interactions.
    """
    n, n_players = signs.shape
    other_signs = signs[:0] if other_signs is None else other_signs
    predictions = np.zeros((len(other_signs), targets.shape[1]))
    freedom = np.full((1, targets.shape[1]), np.inf)
    if n_players <= _COUNTED_PLAYERS and n == 2 ** (n_players - 1):
        of_all_pairs = shapley_weights(signs).T
        values = column_by_column(lambda block: of_all_pairs @ block, targets)
        return Posterior(values, np.zeros_like(values), predictions, freedom)
    if len(other_signs):  # the means must be those of the predictions
        exact = ExactFit.none(n_players, targets.shape[1])
    else:
        exact = additive_games(signs, targets)
    means, variances = exact.means, exact.variances
    # With fewer values, games may look additive because interactions cancel: errors remain.
    is_sure = exact.is_exact & (n - n_players > min(n_players, _SPARE_OF_SURE))
    others = np.flatnonzero(~is_sure)
    if len(others):
        of_others = _posteriors(
            signs,
            targets[:, others],
            weights,
            None if centres is None else centres[others],
            other_signs,
            None if evens is None else evens[:, others],
        )
        is_exact = exact.is_exact[others]
        means[:, others] = np.where(is_exact, means[:, others], of_others.means)
        variances[:, others] = of_others.variances
        predictions[:, others], freedom[:, others] = of_others.predictions, of_others.freedom
    variances += variances_of_fading(signs, targets, means, variances)
    variances += variances_of_jumps(signs, targets, means, variances)
    return Posterior(means, variances, predictions, freedom)


def _posteriors(
    signs: FloatArray,
    targets: FloatArray,
    weights: str,
    centres: FloatArray | None,
    other_signs: FloatArray,
    evens: FloatArray | None,
) -> Posterior:
    """Return the posterior for targets, (n, B), each by a prior that suits it, in blocks."""
    n, n_players = signs.shape
    first_values = slice(0, _LEARNED_FROM + 1)
    starts = best_of_grid(signs[first_values], targets[first_values])
    if weights == "equal":
        blocks = [list(range(len(starts)))]
        solve, n_threads = _with_equal_weights, 1
    else:
        solve, n_threads = _with_learned_weights, _most_threads(n, n_players)
        n_rows = len(starts) // min(n_threads, n_threads_for_rows())
        blocks = _even_blocks(_by_start(starts), _block_size(n, n_players, n_rows))

    def solve_block(block: list[int]) -> Posterior:
        of_block = None if centres is None else centres[block]
        evens_of_block = None if evens is None else np.ascontiguousarray(evens[:, block].T)
        starts_of_block = [starts[index] for index in block]
        of_starts = starts_of_block, of_block
        return solve(signs, targets[:, block], *of_starts, other_signs, evens_of_block)

    solved = map_in_threads(solve_block, blocks, n_threads)
    back = np.argsort(np.concatenate(blocks))
    arrays = zip(*(of_block.arrays for of_block in solved), strict=True)
    return Posterior(*(np.concatenate(of_all, axis=1)[:, back] for of_all in arrays))


def _by_start(starts: list[Prior]) -> list[int]:
    """Return the rows in an order in which those that start at the same prior are neighbours."""
    rows_by_start: dict[int, list[int]] = {}
    for row, start in enumerate(starts):
        rows_by_start.setdefault(id(start), []).append(row)
    return [row for rows in rows_by_start.values() for row in rows]


def _even_blocks(rows: list[int], limit: int) -> list[list[int]]:
    """Return rows in blocks of almost equal size, at most `limit`; an even number suits two cores.

    A row's result does not depend on its block.
    """
    n_blocks = -(-len(rows) // limit)
    if len(rows) >= _WORTH_SHARING:
        n_blocks = min(n_blocks + n_blocks % 2, len(rows))
    return [block.tolist() for block in np.array_split(rows, n_blocks)]


def _block_size(n: int, n_players: int, n_rows: int) -> int:
    """Return how many of `n_rows` rows, of `n` values each, a thread solves together at most."""
    n_together = _BLOCK_NUMBERS // min(n, _n_searched(n_players)) ** 2
    if n_rows < 2 * n_together:
        n_together //= 2
    return int(np.clip(n_together, 1, _MOST_TOGETHER))


def _most_threads(n: int, n_players: int) -> int:
    """Return how many threads make rows of `n` values faster, and fit into memory."""
    if n < _FEW_VALUES:
        return 1
    of_stack = min(_BLOCK_NUMBERS, _MOST_TOGETHER * min(n, _n_searched(n_players)) ** 2)
    return n_threads_within_memory(8 * _MATRICES * max(of_stack, min(n, DENSE_PAIRS) * n))


def _n_searched(n_players: int) -> int:
    """Return how many values, at most, show sparse interactions."""
    return max(min(_SEARCHED_PER_PLAYER * n_players, _MOST_SEARCHED), _LEARNED_FROM) + 1


def _with_equal_weights(
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Prior],
    centres: FloatArray | None,
    other_signs: FloatArray,
    evens: FloatArray | None = None,
) -> Posterior:
    """Return the posterior for targets, (n, B), with the same strengths for all players."""
    del centres, evens  # only for fitted strengths
    if len(signs) <= DENSE_PAIRS:
        return equal_posterior(signs, targets, starts, other_signs)
    choices, sparse = likely_of_equal(signs, targets, starts), SparseInteractions.empty()
    return posterior_through_first_values(
        signs, targets, choices, _n_first(), 0.0, sparse, other_signs
    )


def _with_learned_weights(
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Prior],
    centres: FloatArray | None,
    other_signs: FloatArray,
    evens: FloatArray | None = None,
) -> Posterior:
    """Return the posterior for targets, (n, B), with strengths fitted to each target."""
    stack = np.ascontiguousarray(targets.T)  # (B, n)
    first_values = slice(0, _LEARNED_FROM + 1)
    expectation = strength_prior(centres, (len(stack), signs.shape[1]))
    start = around_centres(Prior.stack(starts), expectation)
    prior = fit_priors(signs[first_values], stack[:, first_values], start, expectation)
    searched = slice(0, _n_searched(signs.shape[1]))
    kernel = OddKernel.at(signs[searched], prior.strengths)
    sparse = [SparseInteractions.empty()] * len(stack)
    is_enough = len(signs) - 1 > signs.shape[1]  # fewer pairs do not even determine single players
    fitted = prior
    if is_enough:
        sparse, prior = find_sparse_interactions(kernel, stack[:, searched], prior)
    fit = _Fit(signs, stack, kernel, prior, start, expectation, sparse)
    if evens is None or not is_enough or len(signs) > _MOST_EXPECTED:
        return fit.posterior(other_signs)
    expected = expected_triples(kernel, stack[:, searched], fitted, prior, sparse, evens)
    if not expected:
        return fit.posterior(other_signs)
    # Games with expected interactions are solved alone: sums over many interactions are rounded
    # differently beside games that have more of them.
    others = np.setdiff1d(np.arange(len(stack)), list(expected))
    parts = [fit.of_games(others)] if len(others) else []
    parts += [fit.of_games(np.array([game])).with_prior(*expected[game]) for game in expected]
    of_parts = [part.posterior(other_signs).arrays for part in parts]
    order = np.argsort([*others, *expected])
    arrays = zip(*of_parts, strict=True)
    return Posterior(*(np.concatenate(of_all, axis=1)[:, order] for of_all in arrays))


@dataclass(frozen=True)
class _Fit:
    """Fitted priors of a stack of games.

    Attributes
    ----------
    signs : array, (n, M)
        The coalitions.
    stack : array, (B, n)
        Their values.
    kernel : OddKernel
        Between the first coalitions, at the fitted strengths.
    prior, start : Prior
        The fitted prior, and the one that the fit started from.
    expectation : StrengthPrior
        The prior of the strengths.
    sparse : list of SparseInteractions
        The interactions with separate variances, of each game.
    """

    signs: FloatArray
    stack: FloatArray
    kernel: OddKernel
    prior: Prior
    start: Prior
    expectation: StrengthPrior
    sparse: list[SparseInteractions]

    def of_games(self, games: IntArray) -> _Fit:
        """Return the fits of some games."""
        return _Fit(
            self.signs,
            self.stack[games],
            self.kernel.of_games(games),
            self.prior.of_games(games),
            self.start.of_games(games),
            replace(self.expectation, centres=self.expectation.centres[games]),
            [self.sparse[game] for game in games],
        )

    def with_prior(self, expected: SparseInteractions, prior: Prior) -> _Fit:
        """Return the fit of one game with expected interactions and the prior of all others."""
        return replace(self, prior=prior, sparse=[expected])

    def posterior(self, other_signs: FloatArray) -> Posterior:
        """Return the posterior, (M, B)."""
        signs, stack, kernel, prior = self.signs, self.stack, self.kernel, self.prior
        n_fitted, sparse = _SHARE_LEARNED * signs.shape[1], self.sparse
        small = kernel.within(_LEARNED_FROM + 1)
        choices = choices_around(small, prior, self.start, self.expectation)
        of_prior = n_fitted, sparse, other_signs
        if len(signs) <= _LEARNED_FROM + 1:
            results = posterior(signs, stack[:, :, None], choices, *of_prior)
        else:
            solve = _by_likely_choices if len(signs) <= DENSE_PAIRS else _through_first_values
            results = solve(signs, stack, list(choices), *of_prior)
        if not len(other_signs):  # the means must be those of the predictions
            values = stack[:, : len(kernel.signs)]
            results = with_exact_games(kernel, values, prior, sparse, results)
        return Posterior(*(array[:, :, 0].T for array in results.arrays))


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
    choices: list[PriorChoice],
    n_fitted: float,
    sparse: list[SparseInteractions],
    other_signs: FloatArray,
) -> Posterior:
    """Return the posterior of each game of a stack, (B, n), of many values."""
    of_games = []
    all_likely = likely_choices(choices, stack, sparse, signs)
    for values, own_choices, of_game in zip(stack, all_likely, sparse, strict=True):
        priors = [
            (prior.of_games(0), float(choice.log_chance[0]))
            for choice in own_choices
            for prior in choice.priors()
        ]
        results = posterior_through_first_values(
            signs, values[:, None], [priors], _n_first(), n_fitted, of_game, other_signs
        )
        of_games.append(Posterior(*(array[None] for array in results.arrays)))
    return Posterior.stack(of_games)


def _n_first() -> int:
    """Return the number of first values that interactions are approximated through."""
    return min(FIRST_VALUES, DENSE_PAIRS)
