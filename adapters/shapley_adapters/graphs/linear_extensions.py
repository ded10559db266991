"""The orders of elements that a partial order allows, called its linear extensions.

All of them are equally likely here. An order adds one element after the other to a set that holds
the predecessors of each of its elements, an ideal. The number of ways to complete an ideal is the
sum of those of the ideals with one element more, so that both the probability of each step and
random orders follow from a pass over the ideals (Brightwell and Winkler, 1991, show that counting
without such a pass is hard).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..array_types import BoolArray, FloatArray, IntArray
from ..coalitions.tables import pack
from ..errors import InvalidArgumentError

_MOST_IDEALS = 2**16
"""Ideals that are listed to draw orders: 0.3 s and 20 MB for 30 elements."""


class TooManyIdealsError(Exception):
    """A partial order has more ideals than the limit."""


@dataclass(frozen=True)
class Steps:
    """All ways to add an element to the ideals of one size.

    Attributes
    ----------
    ideals : array, (L, n)
        The ideals of k of the n elements.
    source, element, target : arrays, (T,)
        The ideal, in ascending order, the added element, and the place of the resulting ideal among
        those of k + 1 elements.
    probability : array, (T,)
        Of the step, given the ideal.
    """

    ideals: BoolArray
    source: IntArray
    element: IntArray
    target: IntArray
    probability: FloatArray


def weighted_steps(
    precedes: BoolArray, limit: int
) -> Iterator[tuple[BoolArray, IntArray, FloatArray]]:
    """Yield, for each size, the ideal before each step, (T, n), its element and its probability.

    The probability is that of a random order, so that those of each size sum to 1.

    Raises
    ------
    TooManyIdealsError
        If there are more ideals than `limit`.
    """
    reached: FloatArray = np.ones(1)
    for steps in _all_steps(precedes, limit):
        of_steps = reached[steps.source] * steps.probability
        yield steps.ideals[steps.source], steps.element, of_steps
        reached = np.asarray(np.bincount(steps.target, weights=of_steps), dtype=np.float64)


def draw_orders_within(precedes: BoolArray, n_orders: int, rng: np.random.Generator) -> IntArray:
    """Draw linear extensions, each as likely as the others: the elements in order, (U, n).

    Parts of which no element is related to one of another part are drawn apart and shuffled. Parts
    that come one after the other are drawn apart, too: trees and lists of lists consist of nothing
    else. Of other parts, ideals are listed.

    Raises
    ------
    InvalidArgumentError
        If such a part has more than 65,536 ideals.
    """
    n_elements = len(precedes)
    if n_elements == 1:
        return np.zeros((n_orders, 1), dtype=np.intp)
    n_parts, labels = connected_components(precedes, directed=False)
    if n_parts > 1:
        slots = rng.permuted(np.tile(labels, (n_orders, 1)), axis=1)
        orders = np.empty_like(slots, dtype=np.intp)
        for part in range(n_parts):
            own = np.flatnonzero(labels == part)
            drawn = draw_orders_within(precedes[np.ix_(own, own)], n_orders, rng)
            orders[slots == part] = own[drawn].ravel()
        return orders
    is_apart = ~(precedes | precedes.T)
    n_parts, labels = connected_components(is_apart, directed=False)
    if n_parts > 1:
        n_before = precedes.sum(axis=0)
        parts = [np.flatnonzero(labels == part) for part in range(n_parts)]
        parts.sort(key=lambda own: int(n_before[own].min()))
        of_parts = [
            own[draw_orders_within(precedes[np.ix_(own, own)], n_orders, rng)] for own in parts
        ]
        return np.concatenate(of_parts, axis=1)
    try:
        levels = _all_steps(precedes, _MOST_IDEALS)
    except TooManyIdealsError:
        raise InvalidArgumentError(
            f"The partial order of {n_elements} features has too many orders to draw from them: "
            f"more than {_MOST_IDEALS:,} sets hold the causes of all their features. Group "
            "features, leave out edges, or pass an order, a list of lists of features. Trees of "
            "causes, and parts that follow each other, have no limit."
        ) from None
    orders, ideals = np.empty((n_orders, n_elements), dtype=np.intp), np.zeros(n_orders, np.intp)
    for size, steps in enumerate(levels):
        ends = np.cumsum(steps.probability)  # each ideal has an interval of length 1
        drawn = np.searchsorted(ends, ideals + rng.random(n_orders), side="right")
        first, last = (np.searchsorted(steps.source, ideals, side) for side in ("left", "right"))
        drawn = np.clip(drawn, first, last - 1)  # rounding errors of the sums
        orders[:, size], ideals = steps.element[drawn], steps.target[drawn]
    return orders


def _all_steps(precedes: BoolArray, limit: int) -> list[Steps]:
    """Return the steps from ideals of each size."""
    n_elements = len(precedes)
    n_before = precedes.sum(axis=0)
    ideals, n_ideals, levels = np.zeros((1, n_elements), dtype=bool), 1, []
    for _ in range(n_elements):
        n_present = ideals.astype(np.float32) @ precedes.astype(np.float32)
        source, element = np.nonzero(~ideals & (n_present == n_before))
        grown = ideals[source]
        grown[np.arange(len(element)), element] = True
        _, index, target = np.unique(pack(grown), axis=0, return_index=True, return_inverse=True)
        levels.append(Steps(ideals, source, element, target.ravel(), np.ones(len(source))))
        ideals = grown[index]
        n_ideals += len(ideals)
        if n_ideals > limit:
            raise TooManyIdealsError
    completions: FloatArray = np.ones(1)
    for size, steps in reversed(list(enumerate(levels))):
        ways = completions[steps.target]
        completions = np.asarray(np.bincount(steps.source, weights=ways), dtype=np.float64)
        levels[size] = Steps(
            steps.ideals,
            steps.source,
            steps.element,
            steps.target,
            ways / completions[steps.source],
        )
        completions /= completions.max()  # their numbers have no bound
    return levels
