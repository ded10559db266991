"""Unbiased estimates by a regression that is fitted to all evaluations but those of one fold.

The evaluated pairs are split into folds. For each fold, a regression is fitted to all other pairs
and predicts the pairs of the fold. Given the other pairs, the fold is a random sample of the
remaining pairs. So it gives an unbiased estimate of the Shapley values of the prediction errors.
The Shapley values of the regression plus this estimate are unbiased, however wrong the regression
is. If the regression is exact, the errors are 0. The result is the mean over all folds
(Chernozhukov et al., Double/Debiased Machine Learning, 2018).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..array_types import AttributionArray, FloatArray, IntArray
from .pair_folds import FoldedDraws, pair_counts
from .protocol import Solution

SHARED = 2.0
"""Covariances between folds add this multiple of a fold's part to the variance. Measured on 19
kinds of games with 10 players: mostly 1 to 2, more where errors are tiny."""

_ROUNDING = 1e-12
"""Errors below this, relative to the values, are rounding."""

_LEAST_SHARE = 1e-4
"""Posterior deviations below this, relative to the attributions, are noise of the prior."""

_FAR_BELOW = 0.1
"""Variances of draws below this, relative to those of the prior, come from too few pairs."""

_LEAST_SPREAD = 1e-3
"""Least variance of the squares that a variance is a mean of, relative to the square of it."""

Fit = Callable[[IntArray, IntArray], tuple[FloatArray, FloatArray, FloatArray]]
"""Takes the indices of the pairs to fit to, and of those to predict, (m,).

It returns the Shapley values, (R, M, K), of the game that has the known values at the pairs of the
fit and predicted ones elsewhere; the predicted odd part of the game at the others, (R, m, K); and
the posterior variances of the Shapley values, (R, M, K).
"""


def cross_fitted(draws: FoldedDraws, targets: FloatArray, fit: Fit) -> Solution:
    """Return the mean over the folds, and its standard errors.

    Parameters
    ----------
    draws : FoldedDraws
        The pairs.
    targets : array, (R, n, K)
        The odd part of the game at the pairs.
    fit : callable
        The regression.
    """
    coefficients = draws.coefficients
    residuals = np.zeros_like(targets)
    estimates: list[AttributionArray] = []
    of_priors: list[AttributionArray] = []
    for fold in draws.folds():
        attributions, predictions, of_prior = fit(fold.other_indices, fold.indices)
        # `take` keeps rows contiguous, so that a row alone has the same sums as among others.
        residuals[:, fold.indices] = errors = targets.take(fold.indices, axis=1) - predictions
        of_fold = coefficients[fold.indices] * fold.factors[:, None]
        estimates.append(attributions + of_fold.T @ errors)
        of_priors.append(of_prior)
    variances, freedom = _variances(draws, targets, residuals)
    means, of_prior = np.mean(estimates, axis=0), np.mean(of_priors, axis=0)
    # Few pairs may be predicted without error, but leave open how players share what they add.
    least = (_LEAST_SHARE * np.abs(means).mean(axis=1, keepdims=True)) ** 2
    is_open = (of_prior > least) & (variances < _FAR_BELOW * of_prior)
    variances = np.where(is_open, of_prior, variances)
    return Solution(means, np.sqrt(variances), freedom)


def _variances(
    draws: FoldedDraws, targets: FloatArray, residuals: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the variances of the mean over the folds, and their degrees of freedom, (R, M, K).

    Folds whose regressions share most of their pairs err alike, which adds `SHARED` of a fold's
    part. A variance of few large squares has few degrees of freedom, and never more than squares.
    A single pair that is predicted without error says nothing of the others.
    """
    is_drawn = draws.blocks >= 0
    number = int(np.count_nonzero(is_drawn))
    of_sizes = [_part_of_size(draws, residuals, size) for size in np.unique(draws.sizes[is_drawn])]
    variances, fourths = np.sum(of_sizes, axis=0)
    if number == 1:
        rounding = _ROUNDING * np.abs(targets).max(axis=1, keepdims=True)
        variances = np.where(variances > rounding**2, variances, np.nan)
    freedom = np.minimum(freedom_of_sums(variances, fourths, number), number)
    n_folds = draws.n_folds
    return variances * (1 + SHARED / n_folds if n_folds > 1 else 1.0), freedom


def variances_of_errors(draws: FoldedDraws, errors: FloatArray) -> FloatArray:
    """Return the variances by errors of the values, (R, M, K), that the spread does not show.

    A pair counts for the pairs of its size that it stands for. The variance of n pairs that are
    drawn of N has the factor 1 − n / N, because the pairs that are left are fewer. Errors do not
    fall with that: n / N of their variance is missing, and all of it in sizes that are complete.

    Parameters
    ----------
    draws : FoldedDraws
        The pairs.
    errors : array, (R, n, K)
        The variances of the errors of the odd parts of the pairs.
    """
    sizes, is_drawn = draws.sizes, draws.blocks >= 0
    counts = pair_counts(draws.members.shape[1])
    n_open = counts - np.bincount(sizes[~is_drawn], minlength=len(counts))
    n_drawn = np.bincount(sizes[is_drawn], minlength=len(counts))
    shares = np.divide(n_open, counts, out=np.ones_like(counts), where=np.isfinite(counts))
    drawn_shares = np.divide(n_drawn, n_open, out=np.zeros_like(counts), where=n_open > 0)
    of_drawn = np.divide(shares, n_drawn, out=np.zeros_like(counts), where=n_drawn > 0)
    factors = np.where(is_drawn, of_drawn[sizes] ** 2 * drawn_shares[sizes], counts[sizes] ** -2.0)
    return (draws.coefficients**2 * factors[:, None]).T @ errors


def freedom_of_sums(variances: FloatArray, fourths: FloatArray, number: int) -> FloatArray:
    """Return the degrees of freedom of variances that are sums of squares.

    Parameters
    ----------
    variances, fourths : arrays of one shape
        The sums of the squares, and of their squares.
    number : int
        The number of squares.
    """
    at_least = variances**2 / max(1, number)
    beyond = np.maximum(fourths - at_least, _LEAST_SPREAD * at_least)
    freedom = np.full_like(variances, np.inf)
    np.divide(2 * variances**2, beyond, out=freedom, where=beyond > 0)
    return freedom


def _part_of_size(
    draws: FoldedDraws, residuals: FloatArray, size: int
) -> tuple[FloatArray, FloatArray]:
    """Return the part of the pairs of a size in the variances, and the sum of its squared terms.

    Both have the shape (R, M, K). The part is the variance of a sample without replacement. If the
    number of pairs of a fold is random, the variance includes the mean of their errors. It then
    counts for the pairs of other sizes as well, of which there may be none. So its factor has the
    expected number, and is not 0 if all pairs of this size happen to be drawn.
    """
    is_of_size, is_drawn = draws.sizes == size, draws.blocks >= 0
    pairs = np.flatnonzero(is_of_size & is_drawn)
    coefficients, number = draws.coefficients[pairs], len(pairs)
    errors = residuals.take(pairs, axis=1)
    n_pairs = pair_counts(draws.members.shape[1])[size]
    n_open = n_pairs - np.count_nonzero(is_of_size & ~is_drawn)
    share = n_open / n_pairs if np.isfinite(n_open) else 1.0
    squares = (coefficients**2).T @ errors**2
    if np.floor(draws.expected[:, size] + 1e-9).sum() >= draws.n_folds and number > 1:
        in_design = float(number)
        spread = (squares - (coefficients.T @ errors) ** 2 / number) * number / (number - 1)
        # After equal errors, the next one differs with a chance of 1 / (number + 1).
        squares = np.maximum(spread, squares / (number + 1))
    else:
        in_design = float(draws.expected[:, size].sum())
    factor = share**2 * max(0.0, 1 - in_design / n_open) / in_design**2
    return factor * squares, factor**2 * ((coefficients**4).T @ errors**4)
