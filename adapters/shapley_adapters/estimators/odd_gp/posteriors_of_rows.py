"""Posteriors of many rows, each with its own prior, in stacks and threads."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np

from ...array_types import DistanceArray, FloatArray, IntArray
from ...thread_limits import map_in_threads, n_threads_for_rows, n_threads_within_memory
from .equal_posterior import equal_posterior
from .estimands import Estimand, ShapleyValues
from .exact_games import ExactFit, additive_games, with_exact_games
from .expected_triples import expected_triples
from .first_values import posterior_through_first_values
from .kernels import Kernel, Prior, UpperKernel
from .left_out_values import checked_last
from .local_interactions import find_local_interactions
from .marginal_likelihood import Features, column_by_column
from .posterior import Posterior, PriorChoice, choices_around, posterior, with_error_sizes
from .prior_fitting import (
    around_centres,
    fit_common_prior,
    fit_priors,
    strength_prior,
    with_errors,
)
from .prior_grid import best_of_grid
from .sparse_interactions import SparseInteractions, find_sparse_interactions
from .sparse_main_effects import main_effects, with_sparse_singles
from .values_evidence import MOST_PRIORS
from .values_posterior import similar_outputs
from .wider_intervals import variances_of_fading, variances_of_jumps

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

_FEW_PLAYERS, _SHARE_OF_SINGLES = 30, 1.0
"""Among more players than the first, a few may matter much more than the others. The variance of
each player's effect uses up so many degrees of freedom. Measured on sums of small games, contexts,
attention and pooling with 50 and 200 players: without these, 95 % intervals hold .84 to .99, with
them .90 to 1."""

_NOISE_OF_GROUPS, _MOST_FITTED = 0.1, 8
"""Share of the values that is not of single players, where outputs are grouped; and the number of
outputs of a group that weights are learned from."""

_SHARE_LEARNED, _SHARE_OF_PAIRS = 0.5, 2.0
"""Degrees of freedom that each learned weight uses up: less than 1, because it has a prior, and
more for interactions of pairs, which are more than the players. Measured on fitted models of 10 and
12 features: with 0.5, 87 to 98 % of the interactions lie in 95 % intervals, with 2 92 to 99 %."""


def posteriors_of_rows(
    estimand: Estimand,
    signs: FloatArray,
    targets: FloatArray,
    weights: str,
    centres: FloatArray | None = None,
    other_signs: FloatArray | None = None,
    evens: FloatArray | None = None,
    errors: FloatArray | None = None,
    error_freedom: float = np.inf,
    distances: DistanceArray | None = None,
    rows: IntArray | None = None,
) -> Posterior:
    """Return the posterior for targets, (n, B), of mean square 1.

    Parameters
    ----------
    estimand : Estimand
        What is estimated.
    signs : array, (n, M)
        The coalitions, that of all players first.
    targets : array, (n, B)
        The part of the game that the estimand depends on, for each row and output. Of an even part,
        the differences from its first value.
    weights : {"learned", "equal"}
        Whether each player has its own weight in interactions.
    centres : array, (B, M), optional
        Prior means of the logarithms of the weights.
    other_signs : array, (m, M), optional
        Other coalitions, whose values are predicted.
    evens : array, (n - 1, B), optional
        The even part of the games, as `even_differences`. Learned weights use it to expect
        interactions.
    errors : array, (n, B), optional
        Variances of the errors of the targets.
    error_freedom : float
        Degrees of freedom of these variances; infinite if they are sure.
    distances : array of arrays, (B,), optional
        The distances between the players on a graph, (M, M). Learned weights use them to expect
        interactions.
    rows : array, (B,), optional
        The row of each target. Many outputs of a row of many players share weights in groups.
    """
    n, n_players = signs.shape
    other_signs = signs[:0] if other_signs is None else other_signs
    predictions = np.zeros((len(other_signs), targets.shape[1]))
    freedom = np.full((1, targets.shape[1]), np.inf)
    if n_players <= _COUNTED_PLAYERS and n == 2 ** (n_players - 1):
        of_all_pairs = estimand.weights(signs).T
        values = column_by_column(lambda block: of_all_pairs @ block, targets)
        variances = np.zeros_like(values) if errors is None else of_all_pairs**2 @ errors
        return Posterior(values, variances, predictions, freedom)
    if not isinstance(estimand, ShapleyValues):
        return _posteriors(
            estimand,
            signs,
            targets,
            weights,
            centres,
            other_signs,
            None,
            errors,
            error_freedom,
            distances,
        )
    if len(other_signs) or errors is not None:  # the means must be those of the predictions
        exact = ExactFit.none(n_players, targets.shape[1])
    else:
        exact = additive_games(signs, targets)
    means, variances = exact.means, exact.variances
    # With fewer values, games may look additive because interactions cancel: errors remain.
    is_sure = exact.is_exact & (n - n_players > min(n_players, _SPARE_OF_SURE))
    others = np.flatnonzero(~is_sure)
    if len(others):
        of_others = _posteriors(
            estimand,
            signs,
            targets[:, others],
            weights,
            None if centres is None else centres[others],
            other_signs,
            None if evens is None else evens[:, others],
            None if errors is None else errors[:, others],
            error_freedom,
            None if distances is None else distances[others],
            None if rows is None or centres is not None else rows[others],
        )
        is_exact = exact.is_exact[others]
        means[:, others] = np.where(is_exact, means[:, others], of_others.means)
        variances[:, others] = of_others.variances
        predictions[:, others], freedom[:, others] = of_others.predictions, of_others.freedom
    variances += variances_of_fading(signs, targets, means, variances)
    variances += variances_of_jumps(signs, targets, means, variances)
    return Posterior(means, variances, predictions, freedom)


def _posteriors(
    estimand: Estimand,
    signs: FloatArray,
    targets: FloatArray,
    weights: str,
    centres: FloatArray | None,
    other_signs: FloatArray,
    evens: FloatArray | None = None,
    errors: FloatArray | None = None,
    error_freedom: float = np.inf,
    distances: DistanceArray | None = None,
    rows: IntArray | None = None,
) -> Posterior:
    """Return the posterior for targets, (n, B), each by a prior that suits it, in blocks."""
    n, first_values = len(signs), slice(0, _LEARNED_FROM + 1)
    starts = best_of_grid(signs[first_values], targets[first_values], estimand.is_even)
    n_threads = _most_threads(n, estimand)
    with_equal: list[int] = []
    others: list[int] = []
    groups: list[list[int]] = []
    has_groups = weights == "learned" and not len(other_signs) and n - 1 < DENSE_PAIRS
    if has_groups and rows is not None and errors is None and distances is None:
        groups = _groups_of_outputs(signs, targets, starts, rows)
    are_in_groups = set(chain.from_iterable(groups))
    for row in chain.from_iterable(_rows_by_start(starts)):
        if row in are_in_groups:
            continue
        is_equal = weights == "equal" or starts[row].jumps  # all players alike
        is_equal &= isinstance(estimand, ShapleyValues) and errors is None
        (with_equal if is_equal else others).append(row)
    n_rows = len(others) // min(n_threads, n_threads_for_rows())
    blocks = _even_blocks(others, _block_size(n, estimand, n_rows))

    def solve_block(block: list[int]) -> Posterior:
        own_centres = None if centres is None else centres[block]
        own_starts = [starts[index] for index in block]
        own_evens = None if evens is None else np.ascontiguousarray(evens[:, block].T)
        of_block = targets[:, block], own_starts, own_centres
        is_fitted = weights == "learned"
        own_errors = None if errors is None else np.ascontiguousarray(errors[:, block].T)
        return _with_own_weights(
            estimand,
            signs,
            *of_block,
            other_signs,
            own_evens,
            is_fitted,
            own_errors,
            error_freedom,
            None if distances is None else distances[block],
        )

    solved = map_in_threads(solve_block, blocks, n_threads)
    for group in groups:
        solved.append(_with_shared_weights(estimand, signs, targets[:, group], starts[group[0]]))
        blocks.append(group)
    if with_equal:
        own_starts = [starts[index] for index in with_equal]
        solved.append(_with_equal_weights(signs, targets[:, with_equal], own_starts, other_signs))
        blocks.append(with_equal)
    back = np.argsort(np.concatenate(blocks))
    arrays = zip(*(of_block.arrays for of_block in solved), strict=True)
    return Posterior(*(np.concatenate(of_all, axis=1)[:, back] for of_all in arrays))


def _rows_by_start(starts: list[Prior]) -> list[list[int]]:
    """Return the rows that start at the same prior of the grid."""
    rows: dict[int, list[int]] = {}
    for row, start in enumerate(starts):
        rows.setdefault(id(start), []).append(row)
    return list(rows.values())


def _even_blocks(rows: list[int], limit: int) -> list[list[int]]:
    """Return rows in blocks of almost equal size, at most `limit`; an even number suits two cores.

    A row's result does not depend on its block.
    """
    n_blocks = -(-len(rows) // limit)
    if not n_blocks:
        return []
    if len(rows) >= _WORTH_SHARING:
        n_blocks = min(n_blocks + n_blocks % 2, len(rows))
    return [block.tolist() for block in np.array_split(rows, n_blocks)]


def _numbers_of_row(n: int, estimand: Estimand) -> int:
    """Return the numbers in the largest matrix of a row of `n` values that is in a stack."""
    n_in_stack = min(n, _n_searched(estimand.n_players))
    return n_in_stack * max(n_in_stack, estimand.n_outputs)


def _block_size(n: int, estimand: Estimand, n_rows: int) -> int:
    """Return how many of `n_rows` rows, of `n` values each, a thread solves together at most."""
    n_together = _BLOCK_NUMBERS // _numbers_of_row(n, estimand)
    if n_rows < 2 * n_together:
        n_together //= 2
    return int(np.clip(n_together, 1, _MOST_TOGETHER))


def _most_threads(n: int, estimand: Estimand) -> int:
    """Return how many threads make rows of `n` values faster, and fit into memory."""
    if n < _FEW_VALUES:
        return 1
    of_row = _numbers_of_row(n, estimand)
    of_stack = max(of_row, min(_BLOCK_NUMBERS, _MOST_TOGETHER * of_row))
    return n_threads_within_memory(8 * _MATRICES * max(of_stack, min(n, DENSE_PAIRS) * n))


def _n_searched(n_players: int) -> int:
    """Return how many values, at most, show sparse interactions."""
    return max(min(_SEARCHED_PER_PLAYER * n_players, _MOST_SEARCHED), _LEARNED_FROM) + 1


def _with_equal_weights(
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Prior],
    other_signs: FloatArray,
) -> Posterior:
    """Return the posterior for targets, (n, B), with the same strengths for all players."""
    if len(signs) <= DENSE_PAIRS:
        return equal_posterior(signs, targets, starts, other_signs)
    results = Posterior.unknown(signs.shape[1], len(other_signs), targets.shape[1])
    for games in _rows_by_start(starts):
        of_games = posterior_through_first_values(
            signs,
            targets[:, games],
            starts[games[0]],
            _n_first(),
            0.0,
            SparseInteractions.empty(),
            other_signs,
        )
        for array, part in zip(results.arrays, of_games.arrays, strict=True):
            array[:, games] = part
    return results


def _with_own_weights(
    estimand: Estimand,
    signs: FloatArray,
    targets: FloatArray,
    starts: list[Prior],
    centres: FloatArray | None,
    other_signs: FloatArray,
    evens: FloatArray | None,
    is_fitted: bool,
    errors: FloatArray | None = None,
    error_freedom: float = np.inf,
    distances: DistanceArray | None = None,
) -> Posterior:
    """Return the posterior for targets, (n, B), with strengths fitted to each target, if asked."""
    n, n_players = signs.shape
    stack = np.ascontiguousarray(targets.T)  # (B, n)
    prior, n_fitted, first_values = Prior.stack(starts), 0.0, slice(0, _LEARNED_FROM + 1)
    if is_fitted:
        expectation = strength_prior(centres, (len(stack), n_players))
        start = around_centres(prior, expectation)
        of_first = None if errors is None else errors[:, first_values]
        prior = fit_priors(
            signs[first_values], stack[:, first_values], start, expectation, of_first
        )
        n_fitted = n_players * (_SHARE_OF_PAIRS if estimand.is_even else _SHARE_LEARNED)
    if errors is not None:
        prior = with_errors(signs[first_values], stack[:, first_values], prior, errors)
    searched = slice(0, _n_searched(n_players))
    kernel = Kernel.at(signs[searched], prior.strengths, is_even=estimand.is_even)
    # Fewer pairs do not even determine single players.
    is_searched = is_fitted and n - 1 > n_players
    separate, prior = _separate_interactions(
        kernel,
        stack[:, searched],
        prior,
        is_searched,
        evens if n <= _MOST_EXPECTED else None,
        distances,
    )
    if errors is not None:  # separate variances explain a part of the values
        features = Features([own.features(signs[searched]) for own in separate])
        for _ in range(2):
            prior = with_errors(signs[searched], stack[:, searched], prior, errors, features)
    of_values, left, centres = prior, stack, np.zeros((len(stack), n_players))
    are_many = n_players > _FEW_PLAYERS and n_players < n - 1 < DENSE_PAIRS
    has_sparse = is_fitted and are_many and not len(other_signs)
    if has_sparse and isinstance(estimand, ShapleyValues):
        features = Features([own.features(signs[searched]) for own in separate])
        of_values, centres = with_sparse_singles(kernel, stack[:, searched], prior, features)
        left = stack - np.array([signs @ own for own in centres])
        n_fitted += _SHARE_OF_SINGLES * n_players
    if n <= _LEARNED_FROM + 1:
        choices = with_error_sizes(choices_around(kernel, of_values), errors, error_freedom)
        columns = left[:, :, None]
        found = posterior(estimand, signs, columns, choices, n_fitted, separate, other_signs)
    else:
        found = _posteriors_one_by_one(
            estimand,
            signs,
            left,
            of_values,
            n_fitted,
            separate,
            other_signs,
            errors,
            error_freedom,
        )
    if centres.any():
        found = replace(found, means=found.means + 2 * centres[:, :, None])
    if isinstance(estimand, ShapleyValues) and not len(other_signs) and errors is None:
        # With other signs, the means must be those of the predictions.
        found = with_exact_games(kernel, stack[:, searched], prior, separate, found)
    return Posterior(*(array[:, :, 0].T for array in found.arrays))


def _groups_of_outputs(
    signs: FloatArray, targets: FloatArray, starts: list[Prior], rows: IntArray
) -> list[list[int]]:
    """Return groups of outputs of a row, where it has many, for which similar players matter."""
    groups = []
    for row in np.unique(rows):
        outputs = [index for index in np.flatnonzero(rows == row) if not starts[index].jumps]
        if len(outputs) <= MOST_PRIORS or not _FEW_PLAYERS < signs.shape[1] < len(signs) - 1:
            continue
        values = targets[:, outputs] / np.sqrt(_NOISE_OF_GROUPS)
        scaled, squares = signs / np.sqrt(_NOISE_OF_GROUPS), (values**2).sum(axis=0)
        equations = scaled.T @ scaled, scaled.T @ values, squares, len(signs)
        effects = main_effects(*equations, is_sparse=True)[-1]
        found = similar_outputs(effects.second_moments)
        groups += [[outputs[at] for at in group] for group in found if len(group) > 1]
    return groups


def _with_shared_weights(
    estimand: Estimand, signs: FloatArray, targets: FloatArray, start: Prior
) -> Posterior:
    """Return the posterior for targets, (n, K), with the same strengths and interactions."""
    n, n_players = signs.shape
    stack, first_values = np.ascontiguousarray(targets.T), slice(0, _LEARNED_FROM + 1)
    expectation = strength_prior(None, (1, n_players))
    # Of the group, outputs in even steps; the search for sparse interactions sees the middle one.
    seen = stack[:: -(-len(stack) // _MOST_FITTED)]
    prior = around_centres(Prior.stack([start]), expectation)
    prior = fit_common_prior(signs[first_values], seen[:, first_values], prior, expectation)
    searched = slice(0, _n_searched(n_players))
    kernel = Kernel.at(signs[searched], prior.strengths)
    middle = seen[len(seen) // 2][None, searched]
    separate, prior = _separate_interactions(kernel, middle, prior, True, None, None)
    features = Features([own.features(signs[searched]) for own in separate])
    of_values, centres = with_sparse_singles(kernel, stack[:, searched], prior, features)
    left = stack - centres @ signs.T
    n_fitted = (_SHARE_LEARNED + _SHARE_OF_SINGLES) * n_players
    if n <= _LEARNED_FROM + 1:
        order, choices = np.arange(n), choices_around(kernel, of_values)
    else:
        order = checked_last(signs)
        upper = UpperKernel(signs[order], of_values.strengths, of_values.is_even)
        choices = [PriorChoice(upper, of_values)]
    columns = np.ascontiguousarray(left[:, order].T)[None]
    found = posterior(estimand, signs[order], columns, choices, n_fitted, separate, signs[:0])
    means, variances, predictions, freedom = (array[0] for array in found.arrays)
    return Posterior(means + 2 * centres.T, variances, predictions, freedom)


def _separate_interactions(
    kernel: Kernel,
    targets: FloatArray,
    fitted: Prior,
    is_searched: bool,
    evens: FloatArray | None,
    distances: DistanceArray | None,
) -> tuple[list[SparseInteractions], Prior]:
    """Return the interactions with variances of their own, and the prior of all others.

    Those of near players come first, if there is a graph. Then the values are searched for sparse
    ones, which those that the even part expects may replace.
    """
    none = SparseInteractions.empty(kernel.is_even)
    local, prior = None, fitted
    if distances is not None:
        local, prior = find_local_interactions(kernel, targets, fitted, distances)
    if not is_searched:
        return local or [none] * len(targets), prior
    sparse, prior = find_sparse_interactions(kernel, targets, prior, local)
    expected = {}
    if evens is not None:
        expected = expected_triples(kernel, targets, fitted, prior, sparse, evens, local)
    if local is not None:
        sparse = [own.plus(of_game) for own, of_game in zip(local, sparse, strict=True)]
    for game, (triples, of_others) in expected.items():
        sparse[game], prior = triples, prior.with_games(np.array([game]), of_others)
    return sparse, prior


def _posteriors_one_by_one(
    estimand: Estimand,
    signs: FloatArray,
    stack: FloatArray,
    prior: Prior,
    n_fitted: float,
    sparse: list[SparseInteractions],
    other_signs: FloatArray,
    errors: FloatArray | None,
    error_freedom: float,
) -> Posterior:
    """Return the posterior of each game of a stack, (B, n), whose matrices are large."""
    order, solved = checked_last(signs), []
    for game, (values, own) in enumerate(zip(stack[:, :, None], sparse, strict=True)):
        if len(signs) > DENSE_PAIRS:
            found = posterior_through_first_values(
                signs, values, prior.subset_games(game), _n_first(), n_fitted, own, other_signs
            )
            solved.append(Posterior(*(array[None] for array in found.arrays)))
        else:
            of_game = prior.subset_games(np.array([game]))
            if of_game.errors is not None:
                of_game = replace(of_game, errors=of_game.errors[:, order])
            kernel = UpperKernel(signs[order], of_game.strengths, of_game.is_even)
            of_values = None if errors is None else errors[game : game + 1, order]
            choices = with_error_sizes([PriorChoice(kernel, of_game)], of_values, error_freedom)
            columns = values[None, order]
            solved.append(
                posterior(estimand, signs[order], columns, choices, n_fitted, [own], other_signs)
            )
    return Posterior.stack(solved)


def _n_first() -> int:
    """Return the number of first values that interactions are approximated through."""
    return min(FIRST_VALUES, DENSE_PAIRS)
