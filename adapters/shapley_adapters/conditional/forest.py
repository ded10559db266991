"""Absent features taken from rows in the same leaves of a forest as the present ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # which loads its submodules where they are used

from ..array_types import BoolArray, FloatArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from .draws import CoalitionCache, named_column
from .weighted_rows import WeightedRows, codes_of

_N_TREES, _LEAST_LEAF = 20, 3
"""Trees of each coalition, and rows in a leaf at least. Each split chooses among all features: one
of a few may be noise, and end the tree where another tells something."""

_SHARE_OF_ROWS, _SIGNIFICANCE = 0.5, 0.2
"""Rows that are drawn for each tree, with replacement, so that six of ten are left to test it, and
the probability that a split without meaning passes. With .1, or as many drawn rows as there are
rows, dependent features are found less often, and independent ones are left alone as well."""


@dataclass(frozen=True)
class _FittedTrees:
    """The trees of a coalition, the leaves that their nodes are part of, and those of the data.

    Leaves of the data are an array, (N, trees).
    """

    trees: list[tuple[Any, npt.NDArray[np.intp]]]
    leaves: npt.NDArray[np.intp]

    @property
    def nbytes(self) -> int:
        """Memory of the leaves, which is most of it."""
        return self.leaves.nbytes

    def weights(self, cells: npt.NDArray[np.float32]) -> FloatArray:
        """Return the weights of the data, (N,): equal in each tree for the rows in the leaf."""
        own = [int(leaf_of[tree.apply(cells[None])[0]]) for tree, leaf_of in self.trees]
        if not own:  # no feature is present
            return np.ones(len(self.leaves))
        together = self.leaves == own
        return (together / together.sum(axis=0)).mean(axis=1)


@dataclass
class Forest(WeightedRows):
    """Rows weighted by how often they share a leaf with the present features.

    For each coalition, trees predict the absent features, together, from the present ones. The
    weights are those of quantile regression forests (Meinshausen, 2006). Splits are tested, as in
    conditional inference trees (Hothorn, Hornik and Zeileis, 2006), but on rows that the tree has
    not seen, for which the choice of the split needs no correction.

    Attributes
    ----------
    cells : array, (N, D)
        Numbers of the data; numbers of categories, where columns have these.
    targets : list of arrays, (N, k) each
        What predictions of a column aim at: the number in units of its spread, or an indicator of
        each category.
    categories : list of pandas Index, or None
        The categories of each column; None for numbers.
    """

    cells: npt.NDArray[np.float32]
    targets: list[FloatArray]
    categories: list[Any]
    _trees: CoalitionCache = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._trees = CoalitionCache(self._fit)

    @classmethod
    def fitted(cls, data: npt.NDArray[Any], names: Any = None) -> Forest:
        """Return the distribution on rows, (N, D), of numbers and categories.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If there are fewer rows than two leaves need, or columns of dates.
        """
        import pandas as pd

        least = round(2 * _LEAST_LEAF / _SHARE_OF_ROWS)
        if len(data) < least:
            raise InvalidArgumentError(
                f"data has {len(data)} rows; trees need at least {least}. Pass more rows."
            )
        cells, targets, categories = [], [], []
        for place, column in enumerate(data.T):
            if pd.Series(column.tolist()).dtype.kind in "mM":
                raise InvalidArgumentTypeError(
                    f"data holds dates or times in {named_column(place, names)}. Convert them to "
                    "numbers, such as days since the first one."
                )
            numbers = _numbers(column)
            if numbers is None:
                codes, different = pd.factorize(column)
                cells.append(codes.astype(float))
                targets.append((codes[:, None] == np.arange(len(different))) * 1.0)
                categories.append(pd.Index(different))
            elif np.isinf(numbers).any():
                raise InvalidArgumentError(
                    f"data holds infinite numbers in {named_column(place, names)}. Replace them by "
                    "a large number, or by NaN if they are missing."
                )
            else:
                filled = np.where(np.isnan(numbers), _missing(numbers), numbers)
                cells.append(filled)
                targets.append((filled / (filled.std() if np.ptp(filled) else 1.0))[:, None])
                categories.append(None)
        return cls(data, np.array(cells, dtype=np.float32).T, targets, categories)

    def weights(self, row: npt.NDArray[Any], masks: BoolArray) -> FloatArray:
        """Return the weights of the data, (P, N)."""
        import pandas as pd

        own = np.empty(len(row), dtype=np.float32)
        for place, (cell, different) in enumerate(zip(row, self.categories, strict=True)):
            if different is None:
                own[place] = _missing(self.cells[:, place]) if pd.isna(cell) else cell
            else:
                own[place] = codes_of([cell], [different])[0]
        # One by one: the trees of many coalitions may take more memory than the cache keeps.
        trees = (self._trees.entries(mask[None])[0] for mask in masks)
        return np.array([one.weights(own[mask]) for one, mask in zip(trees, masks, strict=True)])

    def _fit(self, masks: BoolArray) -> list[_FittedTrees]:
        """Return the trees of a coalition, (1, D)."""
        from sklearn.ensemble import RandomForestRegressor

        (mask,) = masks
        if not mask.any():
            return [_FittedTrees([], np.zeros((len(self.data), 0), dtype=np.intp))]
        seed = np.random.default_rng(np.packbits(mask).tolist()).integers(2**31)
        forest = RandomForestRegressor(
            _N_TREES,
            min_samples_leaf=_LEAST_LEAF,
            max_samples=_SHARE_OF_ROWS,
            random_state=int(seed),
        )
        targets = [target for target, given in zip(self.targets, mask, strict=True) if not given]
        present, together = self.cells[:, mask], np.concatenate(targets, axis=1)
        forest.fit(present, together[:, 0] if together.shape[1] == 1 else together)
        trees, leaves = [], []
        for fitted, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            tree, is_left = fitted.tree_, np.bincount(drawn, minlength=len(present)) == 0
            leaf_of = _tested_leaves(tree, present[is_left], together[is_left])
            trees.append((tree, leaf_of))
            leaves.append(leaf_of[tree.apply(present)])
        return [_FittedTrees(trees, np.array(leaves).T)]


def _tested_leaves(
    tree: Any, cells: npt.NDArray[np.float32], targets: FloatArray
) -> npt.NDArray[np.intp]:
    """Return the leaf that each node of a tree is part of, without splits that fail a test.

    A split is kept if those above it are, and if the means of a target on both sides differ, by
    t-tests with Bonferroni's correction for the number of targets.

    Parameters
    ----------
    tree : Tree of scikit-learn
    cells, targets : arrays, (n, D) and (n, k)
        Rows that the tree was not fitted to.
    """
    left, right = tree.children_left, tree.children_right
    paths = tree.decision_path(cells)  # (n, nodes)
    centred = targets - targets.mean(axis=0)
    counts = np.asarray(paths.sum(axis=0)).reshape(-1, 1)
    # Nodes without rows pass no test, nor do constant targets: differences of rounding errors are
    # small beside the root of the least sum of squares. All targets have a spread of about 1.
    with np.errstate(divide="ignore", invalid="ignore"):
        means = paths.T @ centred / counts
        squares = np.maximum(paths.T @ centred**2 - counts * means**2, np.finfo(float).eps)
        variances = (squares[left] + squares[right]) / (counts - 2)
        scales = np.sqrt(variances * (1 / counts[left] + 1 / counts[right]))
        t = np.abs(means[left] - means[right]) / scales
        p = scipy.stats.t.sf(t, counts - 2) * 2 * targets.shape[1]
    is_kept = (p < _SIGNIFICANCE).any(axis=1)
    leaf_of = np.arange(len(left))
    for node in np.flatnonzero(left >= 0):  # before its children
        if leaf_of[node] != node or not is_kept[node]:
            leaf_of[[left[node], right[node]]] = leaf_of[node]
    return leaf_of


def _numbers(column: npt.NDArray[Any]) -> FloatArray | None:
    """Return a column of numbers, with NaN where they are missing; None for categories."""
    import pandas as pd

    if any(isinstance(cell, (str, bytes)) for cell in column.tolist()):
        return None
    try:
        return np.asarray(pd.to_numeric(pd.Series(column)), dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _missing(numbers: npt.NDArray[Any]) -> float:
    """Return a number that stands for missing ones: below all others by their range."""
    low, high = np.nanmin(numbers, initial=np.inf), np.nanmax(numbers, initial=-np.inf)
    if low > high:  # all are missing
        return 0.0
    return float(low - max(high - low, 1.0))
