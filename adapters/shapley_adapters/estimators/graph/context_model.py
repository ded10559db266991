"""What split contexts say about those that are not split, and how far this may be off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from ...array_types import FloatArray, IntArray
from ..value_errors import SparseMatrix
from .union_contexts import UnionContexts

_NO_LEVEL = 1000.0
_RIDGES_OF_SHARES = [(_NO_LEVEL, slope) for slope in (1.0, 0.3, 0.1, 10.0, 1000.0)]
_RIDGES_OF_LEVELS = [(1.0, 1.0), (0.3, 0.3), (0.1, 0.1), (3.0, 0.3), (10.0, 1.0)]
"""Ridges of the levels and of the slopes, in contexts."""

_LEVEL_ERRORS = 1.0
"""Levels are taken if they are better by so many standard errors. Ten kinds of drawn games have .97
of the error that they have with two, and texts of 256 words 1.1 times."""

_SMALL_SQUARE = 0.1
"""Squared errors count in units of the squared value of the union in their context, plus this part
of its mean square: contexts are split where values are large, and the others are predicted."""

_MOST_UNKNOWN = 3.0
"""The largest ridge of a slope that counts as the unknown part of a square, in gains."""

_MOST_EXTRAPOLATED = 4.0
"""The most by which contexts that are not split may have larger squares than the others, in the
errors of slopes."""

_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Powers of the squared value of a union with which squared errors may grow."""

_PRIOR_DRAWS = 2.0
"""The variance that is expected counts as so many draws beside those of one part or size."""

_SMALL_VALUE = 0.001
"""The part of the mean square that is added to squared values in variances."""

_TINY = float(np.finfo(float).tiny)


class ContextModel:
    """Values of the parts of unions, in contexts that are split and in those that are not.

    In a context in which its union has the value m, part j has the value

        m s_j + a_j + b_j m / r,

    where s_j is its share of the players and r the root of the mean of m². The levels a and slopes
    b of each union are fitted to its contexts that are split, by ridge regression. One pair of
    ridges serves all unions: that with the least errors for contexts left out. All parts together
    have the value m, whatever a and b are.

    Parameters
    ----------
    contexts : UnionContexts
        The contexts, n of U unions.
    values : array, (C, G)
        The values of its coalitions in G games: rows and outputs.
    """

    def __init__(self, contexts: UnionContexts, values: FloatArray) -> None:
        self.contexts, unions = contexts, contexts.unions
        self.unions, self.sizes, self.n_games = unions, unions.sizes, values.shape[1]
        self.steps: FloatArray = values[contexts.after] - values[contexts.before]
        self.splits = Splits.of(contexts)
        self.n_contexts = np.bincount(contexts.union, minlength=len(self.sizes))
        squares = _sums(self.steps**2, contexts.union, len(self.sizes))
        self.mean_squares = squares / np.maximum(self.n_contexts, 1)[:, None]
        self._set_sums()
        self.ridges = self._best_ridges()
        self.levels, self.slopes, self.residuals = self._fitted(*self.ridges)
        self._predict()

    def _set_sums(self) -> None:
        """Set what the regressions of all unions need, with the weights of contexts."""
        splits, n_unions = self.splits, len(self.sizes)
        weights = self.contexts.weights[splits.contexts]
        self.n_split = np.bincount(splits.unions, minlength=n_unions)
        totals = np.bincount(splits.unions, weights, minlength=n_unions)
        means = (totals / np.maximum(self.n_split, 1))[splits.unions]
        self.split_weights = (weights / means)[:, None]
        whole = self.steps[splits.contexts]
        squares = _sums(self.split_weights * whole**2, splits.unions, n_unions)
        counts = np.maximum(self.n_split, 1)[:, None]
        self.roots = np.sqrt(squares / counts)
        self.roots[self.roots == 0] = 1.0
        self.whole = whole / self.roots[splits.unions]
        shares = self.sizes[splits.parts] / self.sizes[splits.unions[splits.split]]
        self.observed = splits.means @ self.steps - shares[:, None] * whole[splits.split]
        weighted = self.split_weights * self.whole
        self.sum_1 = _sums(weighted, splits.unions, n_unions)
        self.sum_2 = _sums(weighted * self.whole, splits.unions, n_unions)
        of_parts = self.split_weights[splits.split] * self.observed
        self.observed_0 = _sums(of_parts, splits.parts, n_unions)
        self.observed_1 = _sums(of_parts * self.whole[splits.split], splits.parts, n_unions)

    def _fitted(
        self, level: FloatArray | float, slope: FloatArray | float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return levels and slopes, (U, G), and errors of contexts left out, (N, G)."""
        splits, parents = self.splits, self.unions.parents
        first, last = self.n_split[:, None] + level, self.sum_2 + slope
        determinant = first * last - self.sum_1**2
        a, b, c = last / determinant, -self.sum_1 / determinant, first / determinant
        levels = a[parents] * self.observed_0 + b[parents] * self.observed_1
        slopes = b[parents] * self.observed_0 + c[parents] * self.observed_1
        of, x = splits.unions, self.whole
        leverage = self.split_weights * (a[of] + x * (2 * b[of] + x * c[of]))
        predicted = levels[splits.parts] + x[splits.split] * slopes[splits.parts]
        left_out = (self.observed - predicted) / (1 - leverage)[splits.split]
        return levels, slopes, left_out

    def _best_ridges(self) -> tuple[FloatArray, FloatArray]:
        """Return the ridges of levels and slopes, (G,) each."""
        splits = self.splits
        counts = (self.n_split > 1)[splits.unions][:, None]

        def costs(ridges: tuple[float, float]) -> FloatArray:
            squares = self._fitted(*ridges)[2] ** 2 / self.sizes[splits.parts][:, None]
            of_contexts = _sums(squares, splits.split, len(splits.contexts))
            relative: FloatArray = of_contexts / (self.whole**2 + _SMALL_SQUARE)
            return np.where(counts, relative, 0.0)

        shares = np.array([costs(ridges) for ridges in _RIDGES_OF_SHARES])
        levels = np.array([costs(ridges) for ridges in _RIDGES_OF_LEVELS])
        best = shares.sum(axis=1).argmin(axis=0), levels.sum(axis=1).argmin(axis=0)
        games = np.arange(self.n_games)
        gained = shares[best[0], :, games] - levels[best[1], :, games]  # (G, m)
        has_levels = gained.sum(axis=1) > _LEVEL_ERRORS * np.sqrt((gained**2).sum(axis=1))
        pairs = np.where(
            has_levels[:, None],
            np.array(_RIDGES_OF_LEVELS)[best[1]],
            np.array(_RIDGES_OF_SHARES)[best[0]],
        )
        return pairs[:, 0], pairs[:, 1]

    def _predict(self) -> None:
        """Set what is predicted of each union: the weight of its contexts, and their values."""
        contexts, weights = self.contexts, self.contexts.weights
        is_open = contexts.n_orders == 0
        n_unions = len(self.sizes)
        self.open_weights = np.bincount(contexts.union[is_open], weights[is_open], n_unions)
        self.values = _sums(
            weights[is_open, None] * self.steps[is_open], contexts.union[is_open], n_unions
        )
        for parents, parts in self.unions.levels:
            passed = self.shares(parts) * self.values[parents]
            passed += self.levels[parts] * self.open_weights[parents, None]
            self.values[parts] += passed
            self.open_weights[parts] += self.open_weights[parents]

    def shares(self, parts: IntArray) -> FloatArray:
        """Return the share of parts in a change of the value of their unions, (p, G)."""
        parents = self.unions.parents[parts]
        of_players = (self.sizes[parts] / self.sizes[parents])[:, None]
        return of_players + self.slopes[parts] / self.roots[parents]

    @property
    def unknown_share(self) -> FloatArray:
        """The share of a squared value that its split may move between the parts, (G,)."""
        return np.minimum(self.ridges[1], _MOST_UNKNOWN)

    def gains(self) -> FloatArray:
        """Return how much one more order of each context may lower the squared error, (n, G).

        Per coalition. A first order observes a context, and adds to the levels and slopes of its
        union. Later ones lower the variance between orders.
        """
        contexts, union = self.contexts, self.contexts.union
        unknown = self.unknown_share
        squares = contexts.weights[:, None] ** 2 * self.steps**2
        of_union = self.mean_squares * self.open_weights[:, None] ** 2
        of_union *= unknown / (self.n_split[:, None] + unknown)
        orders = contexts.n_orders[:, None]
        first = unknown * squares + of_union[union]
        later = self.order_share() * squares * 2 / np.maximum(orders * (orders + 1), 1)
        gains = np.where(orders == 0, first, later)
        costs = np.maximum(self.unions.n_parts[union] - 1, 1)[:, None]
        return np.where(contexts.can_be_split[:, None], gains / costs, 0.0)

    def order_share(self) -> FloatArray:
        """Return the variance between orders as a share of squared values, (G,).

        Where parts have levels, they gain less from more orders: two contexts with opposite first
        orders cancel what orders add to both alike. Without levels, the share is that of a first
        order, which also counts that more orders make more contexts.
        """
        splits, contexts = self.splits, self.contexts
        ranks, n_orders = contexts.ranks[splits.contexts], contexts.n_orders[splits.contexts]
        couples = splits.unions * (ranks.max() + 1) + ranks // 2
        couples = np.unique(couples, return_inverse=True)[1]
        is_known = (np.bincount(couples, n_orders > 1) == 2)[couples]
        observed = is_known[splits.split]
        of_parts = couples[splits.split][observed] * len(self.sizes) + splits.parts[observed]
        keys, places = np.unique(of_parts, return_inverse=True)
        both = _sums((splits.half_differences @ self.steps)[observed], places, len(keys))
        squares = self.steps[splits.contexts] ** 2
        prior = _PRIOR_DRAWS * squares.mean(axis=0) + _TINY
        measured = (both**2).sum(axis=0) / 2 + np.minimum(self.ridges[1], 1.0) * prior
        measured /= squares[is_known].sum(axis=0) + prior
        return np.where(self.ridges[0] < _NO_LEVEL, measured, self.unknown_share)

    def variances(self) -> FloatArray:
        """Return the variances of the values of all unions, (U, G)."""
        contexts, splits, unions = self.contexts, self.splits, self.unions
        is_open, n_unions = (contexts.n_orders == 0)[:, None], len(self.sizes)
        spread, ratios = self._spread_of_parts()
        weights = np.where(is_open, contexts.weights[:, None] ** 2, 0.0)
        of_contexts = spread.at(self.steps**2, self.size_classes[contexts.union])
        of_open = _sums(weights * of_contexts, contexts.union, n_unions)
        n_open = _sums(weights, contexts.union, n_unions)[:, 0]
        # Contexts that come from unions above have no values; they count as the mean square, and
        # unions without any as the smallest.
        positive = np.where(self.mean_squares > 0, self.mean_squares, np.inf).min(axis=0)
        smallest = np.where(np.isinf(positive), 0.0, positive)
        squares = np.where(self.n_contexts[:, None] > 0, self.mean_squares, smallest)
        typical = spread.at(squares, self.size_classes)
        of_fit = self._fit_variances(np.clip(squares / self.roots**2, 1.0, _MOST_EXTRAPOLATED))
        variances = _sums(self._order_variances(), splits.parts, n_unions)
        n_passed = np.zeros(n_unions)
        for parents, parts in unions.levels:
            added = typical[parents] * (of_fit[parents] + n_passed[parents, None])
            added = (added + of_open[parents]) * ratios[parts]
            variances[parts] += self.shares(parts) ** 2 * variances[parents] + added
            n_passed[parts] += n_passed[parents] + n_open[parents]
        return variances

    @property
    def freedom(self) -> float:
        """The degrees of freedom: contexts that are split, but for the first of each union."""
        return 1.0 + float(np.maximum(self.n_split - 1, 0).sum())

    def _spread_of_parts(self) -> tuple[Spread, FloatArray]:
        """Return the variance of parts in contexts left out, and that of each part over it."""
        splits, n_split = self.splits, self.n_split
        # What comes from the fit is taken off.
        n_others = n_split[splits.unions[splits.split], None] - 1
        squares = self.residuals**2 / (1 + 1 / (n_others + self.ridges[1]))
        spread, expected = self._spread(squares, np.arange(len(splits.contexts)))
        sums = _sums(squares / np.maximum(expected, _TINY), splits.parts, len(self.sizes))
        draws = _PRIOR_DRAWS + n_split[self.unions.parents, None]
        return spread, (_PRIOR_DRAWS + sums) / draws

    def _fit_variances(self, scales: FloatArray) -> FloatArray:
        """Return the variances from levels and slopes, over that of a context, (U, G)."""
        level, slope = self.ridges
        n_split = self.n_split[:, None]
        of_levels = np.where(level < _NO_LEVEL, 1 / (n_split + level), 0.0)
        variances: FloatArray = scales * (1 / (n_split + slope) + of_levels)
        return variances * self.open_weights[:, None] ** 2

    def _order_variances(self) -> FloatArray:
        """Return the variances of the means over the orders of split contexts, (N, G)."""
        contexts, splits = self.contexts, self.splits
        n_orders = contexts.n_orders[splits.contexts]
        has_pair = n_orders > 1
        squares = (splits.half_differences @ self.steps) ** 2
        _, expected = self._spread(squares, np.flatnonzero(has_pair))
        # An order and its reverse err at most as two independent orders.
        of_pair = (squares + _PRIOR_DRAWS * expected) / (1 + _PRIOR_DRAWS) / 2
        pairs, observation = splits.pair_means
        around = pairs @ self.steps - (splits.means @ self.steps)[observation]
        between = _sums(around**2, observation, len(squares))
        n_pairs = np.maximum(n_orders // 2, 1)
        # Of few parts, the pairs that are left are fewer with each that was drawn.
        possible = contexts.n_possible[splits.contexts] / 2
        left = np.where(possible > 1, 1 - (n_pairs - 1) / np.maximum(possible - 1, 1), 0.0)
        n_pairs, left = n_pairs[splits.split, None], left[splits.split, None]
        of_pairs = (between + _PRIOR_DRAWS * of_pair) / (n_pairs - 1 + _PRIOR_DRAWS) / n_pairs
        variances = np.where(has_pair[splits.split, None], of_pairs * left, expected)
        return variances * contexts.weights[splits.contexts][splits.split, None] ** 2

    def _spread(self, squares: FloatArray, use: IntArray) -> tuple[Spread, FloatArray]:
        """Return how squared errors grow with the union's value in some of the splits.

        `squares` has the errors of all observations, (N, G). Also returns what is expected of each.
        """
        splits, n_splits = self.splits, len(self.splits.contexts)
        n_parts = self.unions.n_parts[splits.unions][:, None]
        means = _sums(squares, splits.split, n_splits) / n_parts
        values = self.steps[splits.contexts] ** 2
        classes = self.size_classes[splits.unions]
        largest = int(self.size_classes.max())
        spread = Spread.fitted(means[use], values[use], classes[use], largest)
        return spread, spread.at(values, classes)[splits.split]

    @cached_property
    def size_classes(self) -> IntArray:
        """The logarithm of the number of players of each union, in whole numbers."""
        return np.log2(self.sizes).astype(np.intp)


@dataclass(frozen=True)
class Splits:
    """The contexts that are split, and what their orders observe of each part.

    Attributes
    ----------
    contexts, unions : arrays, (m,)
        The contexts, and their unions.
    split : array, (N,)
        The context of each observation, as a place in `contexts`.
    parts : array, (N,)
        The part of each observation.
    means : sparse matrix, (N, n)
        The mean over orders.
    half_differences : sparse matrix, (N, n)
        Half the difference of the first order and its reverse; 0 where there is no reverse.
    pair_means : sparse matrix, (P, n), and array, (P,)
        The mean over each order and its reverse, and its observation, where there are two or more.
    """

    contexts: IntArray
    unions: IntArray
    split: IntArray
    parts: IntArray
    means: SparseMatrix
    half_differences: SparseMatrix
    pair_means: tuple[SparseMatrix, IntArray]

    @classmethod
    def of(cls, contexts: UnionContexts) -> Splits:
        """Return those of contexts."""
        n_parts, n_orders = contexts.unions.n_parts, contexts.n_orders
        split_contexts = np.flatnonzero(n_orders)
        unions = contexts.union[split_contexts]
        counts = n_parts[unions]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.full(len(n_orders), -1)
        places[split_contexts] = np.arange(len(split_contexts))
        made = np.arange(1, len(n_orders))  # contexts that orders made: those of all but the first
        parents, part = contexts.parents[made], contexts.union[made]
        rank = part - contexts.unions.first_parts[contexts.union[parents]]
        rows = starts[places[parents]] + rank
        # The orders of a context are numbered in the order of its contexts.
        by_row = np.argsort(rows, kind="stable")
        number = np.empty(len(made), dtype=np.intp)
        repeats = np.bincount(rows, minlength=int(starts[-1]))
        number[by_row] = np.arange(len(made)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        orders = n_orders[parents]
        shape = int(starts[-1]), len(n_orders)
        halves = np.where((orders > 1) & (number < 2), 0.5 - number, 0.0)
        n_pairs = np.where(repeats > 3, repeats // 2, 0)
        pair_starts = np.cumsum(n_pairs) - n_pairs
        in_pair = (orders > 3) & (number // 2 < orders // 2)
        pair_rows = (pair_starts[rows] + number // 2)[in_pair]
        observed = np.repeat(np.arange(shape[0]), n_pairs)

        def matrix(weights: FloatArray, rows: IntArray, columns: IntArray, n: int) -> SparseMatrix:
            return scipy.sparse.csr_matrix((weights, (rows, columns)), shape=(n, shape[1]))

        return cls(
            contexts=split_contexts,
            unions=unions,
            split=np.repeat(np.arange(len(unions)), counts),
            parts=np.repeat(contexts.unions.first_parts[unions] - starts[:-1], counts)
            + np.arange(shape[0]),
            means=matrix(1 / orders, rows, made, shape[0]),
            half_differences=matrix(halves, rows, made, shape[0]),
            pair_means=(
                matrix(np.full(len(pair_rows), 0.5), pair_rows, made[in_pair], len(observed)),
                observed,
            ),
        )


@dataclass(frozen=True)
class Spread:
    """Variances that grow with a power of a squared value, with a factor for each class of sizes.

    Attributes
    ----------
    powers, small : arrays, (G,)
        The powers, and what is added to squares.
    factors : array, (classes, G)
        The factors.
    """

    powers: FloatArray
    small: FloatArray
    factors: FloatArray

    @classmethod
    def fitted(
        cls, variances: FloatArray, squares: FloatArray, classes: IntArray, largest: int
    ) -> Spread:
        """Return the most likely one for normal errors with these squared errors, (m, G)."""
        n_games = squares.shape[1]
        small = _SMALL_VALUE * (squares.mean(axis=0) if len(squares) else np.ones(n_games)) + _TINY
        best = np.full(n_games, np.inf)
        powers, factors = np.zeros(n_games), np.zeros((largest + 1, n_games))
        for power in _POWERS:
            of_power = cls(np.full(n_games, power), small, np.ones((largest + 1, n_games)))
            relative = variances / of_power.at(squares, classes)
            of_power = cls(of_power.powers, small, _shrunk(relative, classes, largest))
            expected = np.maximum(of_power.at(squares, classes), _TINY)
            likelihood = (np.log(expected) + variances / expected).sum(axis=0)
            is_better = likelihood < best
            best = np.where(is_better, likelihood, best)
            powers = np.where(is_better, power, powers)
            factors = np.where(is_better, of_power.factors, factors)
        return cls(powers, small, factors)

    def at(self, squares: FloatArray, classes: IntArray) -> FloatArray:
        """Return the variances for some squared values, (m, G)."""
        return self.factors[classes] * (squares + self.small) ** self.powers


def _shrunk(numbers: FloatArray, classes: IntArray, largest: int) -> FloatArray:
    """Return the mean of numbers, (m, G), of each class, shrunk to that of the class above it."""
    means = np.zeros((largest + 1, numbers.shape[1]))
    above = numbers.mean(axis=0) if len(numbers) else np.zeros(numbers.shape[1])
    for size_class in range(largest, -1, -1):
        own = numbers[classes == size_class]
        above = (own.sum(axis=0) + _PRIOR_DRAWS * above) / (len(own) + _PRIOR_DRAWS)
        means[size_class] = above
    return means


def _sums(numbers: FloatArray, places: IntArray, n_places: int) -> FloatArray:
    """Return the sums of numbers, (m, G), by their places."""
    sums = np.empty((n_places, numbers.shape[1]))
    for game, of_game in enumerate(numbers.T):
        sums[:, game] = np.bincount(places, of_game, n_places)
    return sums
