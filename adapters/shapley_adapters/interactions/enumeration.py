"""Interactions from the values of all coalitions, exact up to rounding and the errors of these."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from ..array_types import CoalitionArray, FloatArray, IntArray, ValueArray
from .indices import Index, IndexOfSize


def enumerated(index: Index, coalitions: CoalitionArray, values: ValueArray) -> FloatArray:
    """Return the interactions of each row and output, (R, k, K).

    Parameters
    ----------
    index : Index
        What is wanted.
    coalitions : array, (2^M, M)
        All coalitions.
    values : array, (R, 2^M, K)
        Their values.
    """
    n_players = coalitions.shape[1]
    sizes, found = _sizes_of_masks(n_players), []
    for of_row in _by_mask(coalitions, values):
        coefficients = _coefficients(of_row)
        sums = []
        for part in index.parts:
            weights = np.zeros(n_players + 1)
            weights[part.size :] = part.by_degree
            of_supersets = _superset_sums(weights[sizes][:, None] * coefficients)
            sums.append(of_supersets[_masks(part.sets)])
        found.append(np.concatenate(sums))
    return np.array(found)


def enumerated_variances(
    index: Index, coalitions: CoalitionArray, of_even: FloatArray, of_odd: FloatArray
) -> FloatArray:
    """Return the variances, (R, k, K), by those of the even and odd part at each coalition."""
    # With weights a and b of a coalition and its complement, a v + b v′ is (a + b) times the even
    # and (a − b) times the odd part. All coalitions hold each pair twice.
    evens, odds = (_by_mask(coalitions, part) for part in (of_even, of_odd))
    found = []
    for even, odd in zip(evens, odds, strict=True):
        sums = []
        for part in index.parts:
            of_complements = part.by_members[::-1, ::-1]
            sums.append(
                _weighted(part, (part.by_members + of_complements) ** 2 / 2, even)
                + _weighted(part, (part.by_members - of_complements) ** 2 / 2, odd)
            )
        found.append(np.concatenate(sums))
    return np.maximum(np.array(found), 0.0)


def _weighted(part: IndexOfSize, weights: FloatArray, numbers: FloatArray) -> FloatArray:
    """Return sums over all coalitions S, (k, K), weighted by the players of A in S and its size.

    The weights, (a + 1, M + 1), are sums over the subsets B of A that S contains.
    """
    sizes = _sizes_of_masks(part.n_players)
    found = np.zeros((len(part.sets), numbers.shape[1]))
    for n_inside in range(part.size + 1):
        signs = [(-1) ** (n_inside - i) * comb(n_inside, i) for i in range(n_inside + 1)]
        of_size = np.array(signs) @ weights[: n_inside + 1]
        sums = _superset_sums(of_size[sizes][:, None] * numbers)
        for inside in combinations(range(part.size), n_inside):
            found += sums[_masks(part.sets[:, list(inside)])]
    return found


def _by_mask(coalitions: CoalitionArray, values: ValueArray) -> ValueArray:
    """Return the values, (R, 2^M, K), in the order of the bits of the coalitions."""
    ordered = np.empty_like(values)
    ordered[:, coalitions @ (1 << np.arange(coalitions.shape[1]))] = values
    return ordered


def _masks(sets: IntArray) -> IntArray:
    """Return a bit for each player of each set, (k,)."""
    return (1 << sets).sum(axis=1)


def _sizes_of_masks(n_players: int) -> IntArray:
    """Return the size of each coalition, (2^M,)."""
    return np.bitwise_count(np.arange(2**n_players)).astype(np.intp)


def _coefficients(values: FloatArray) -> FloatArray:
    """Return the coefficients c_T of v(z) = Σ_T c_T Π_{j∈T} z_j, (2^M, K)."""
    found = values.copy()
    for absent, present in _halves(found):
        absent[:], present[:] = (absent + present) / 2, (present - absent) / 2
    return found


def _superset_sums(numbers: FloatArray) -> FloatArray:
    """Return the sum over all T ⊇ A of each A, (2^M, K), in the same memory."""
    for absent, present in _halves(numbers):
        np.add(absent, present, out=absent)
    return numbers


def _halves(numbers: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return views of those without and with each player in turn."""
    n = len(numbers)
    views = (numbers.reshape(n >> (j + 1), 2, -1) for j in range(n.bit_length() - 1))
    return [(view[:, 0], view[:, 1]) for view in views]
