"""Posteriors of many rows, each with its own prior, in stacks and threads."""

from __future__ import annotations

import numpy as np

from ...array_types import FloatArray
from ...threads.row_threads import map_in_threads, n_threads_within_memory
from .attribution_covariances import shapley_weights
from .equal_posterior import equal_posterior, likely_of_equal
from .exact_terms import with_exact_games
from .first_values import posterior_through_first_values
from .kernels import OddKernel, Prior
from .left_out_values import checked_last
from .marginal_likelihood import column_by_column
from .posterior import Posterior, PriorChoice, posterior
from .prior_choices import choices_around, likely_choices
from .prior_fitting import around_centres, fit_priors, strength_prior
from .prior_grid import best_of_grid
from .sparse_triples import SparseInteractions, find_sparse_interactions

_LEARNED_FROM = 240
"""Number of pairs that the weights are learned from: the first, most informative pairs."""

_SEARCHED_PER_PLAYER, _MOST_SEARCHED = 32, 1024
"""Number of values in the search for sparse interactions: per player, and at most."""

DENSE_PAIRS, FIRST_VALUES = 5000, 2048
"""With at most so many pairs, the posterior is exact, given all values. With more pairs, the prior
is approximated through the first so many values. At the bound, both take as long."""

_BLOCK_NUMBERS, _MOST_TOGETHER = 300_000, 25
"""Bounds on the numbers in the matrices of a stack, and on its rows. Rows are solved in stacks, so
that one NumPy operation works on several matrices while another thread runs."""

_WORTH_SHARING = 8
"""From so many rows on, there are at least two blocks, for two threads."""

_FEW_VALUES = 32
"""Rows with fewer values are solved without threads, which take longer to start."""

_MATRICES = 20
"""Number of matrices that a row needs at once."""

_COUNTED_PLAYERS = 24
"""Up to here, all pairs may be evaluated."""

_SHARE_LEARNED = 0.5
"""Degrees of freedom that each learned weight uses up; less than 1, because it has a prior."""


def posteriors_of_rows(
    signs: FloatArray,
    targets: FloatArray,
    weights: str,
    centres: FloatArray | None = None,
    other_signs: FloatArray | None = None,
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
    """
    n, n_players = signs.shape
    other_signs = signs[:0] if other_signs is None else other_signs
    predictions = np.zeros((len(other_signs), targets.shape[1]))
    freedom = np.full((1, targets.shape[1]), np.inf)
    if n_players <= _COUNTED_PLAYERS and n == 2 ** (n_players - 1):
        of_all_pairs = shapley_weights(signs).T
        values = column_by_column(lambda block: of_all_pairs @ block, targets)
        return Posterior(values, np.zeros_like(values), predictions, freedom)
    first_values = slice(0, _LEARNED_FROM + 1)
    starts = best_of_grid(signs[first_values], targets[first_values])
    means, variances = np.empty((2, signs.shape[1], targets.shape[1]))
    if weights == "equal":
        blocks = [list(range(len(starts)))]
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


def _block_size(n: int) -> int:
    """Return how many rows are solved together at most, by their number of values."""
    n_dense = min(n, DENSE_PAIRS)
    return int(np.clip(_BLOCK_NUMBERS // n_dense**2, 1, _MOST_TOGETHER))


def _most_threads(n: int) -> int:
    """Return how many threads make rows of `n` values faster, and fit into memory."""
    if n < _FEW_VALUES:
        return 1
    n_bytes = _MATRICES * 8 * _block_size(n) * min(n, DENSE_PAIRS) * n
    return n_threads_within_memory(n_bytes)


def _with_equal_weights(
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Prior],
    centres: FloatArray | None,
    other_signs: FloatArray,
) -> Posterior:
    """Return the posterior for targets, (n, B), with the same strengths for all players."""
    del centres  # only fitted strengths have centres
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
    small = kernel.within(_LEARNED_FROM + 1)
    choices = choices_around(small, prior, start, expectation)
    if len(signs) <= _LEARNED_FROM + 1:
        results = posterior(signs, stack[:, :, None], choices, n_fitted, sparse, other_signs)
    else:
        solve = _by_likely_choices if len(signs) <= DENSE_PAIRS else _through_first_values
        results = solve(signs, stack, list(choices), n_fitted, sparse, other_signs)
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
        arrays = results.means, results.variances, results.predictions, results.freedom
        of_games.append(Posterior(*(array[None] for array in arrays)))
    return Posterior.stack(of_games)


def _n_first() -> int:
    """Return the number of first values that interactions are approximated through."""
    return min(FIRST_VALUES, DENSE_PAIRS)
