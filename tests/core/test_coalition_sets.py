"""Enumerating, finding duplicates, buying; weights and draws of sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import comb

from shapley_adapters.coalitions.tables import (
    all_coalitions,
    end_points,
    first_occurrences,
    kernel_mass,
    pack,
    select_uneven_units,
    select_units,
    size_probabilities,
    unpack,
)
from shapley_adapters.estimators.linear_algebra import fit_with_fixed_sum


def as_sets(coalitions):
    """Return each coalition, (n, M), as a frozenset."""
    return [frozenset(np.flatnonzero(row).tolist()) for row in coalitions]


def selected_one_by_one(known, units, budget):
    """Return the table and the number of units that `select_units` must give, by sets."""
    table, n_units = as_sets(known), 0
    for unit in units:
        longer = list(table)
        for coalition in as_sets(unit):
            if coalition not in longer:
                longer.append(coalition)
        if len(longer) > budget:
            break
        table, n_units = longer, n_units + 1
    return table, n_units


@pytest.mark.parametrize("n_players", range(6))
def test_all_coalitions_are_all_and_numbered_by_their_bits(n_players):
    coalitions = all_coalitions(n_players)
    assert coalitions.shape == (2**n_players, n_players)
    assert (coalitions @ (1 << np.arange(n_players)) == np.arange(2**n_players)).all()


# Around the borders of the words of 1, 2, 4, 8 and several times 8 bytes.
WIDTHS = [1, 7, 8, 9, 16, 17, 32, 33, 64, 65, 130]


@pytest.mark.parametrize("n_players", WIDTHS)
def test_packed_coalitions_keep_their_players_and_set_operations(n_players):
    first, second = np.random.default_rng(0).random((2, 3, 20, n_players)) < 0.5
    assert (unpack(pack(first), n_players) == first).all()
    assert (unpack(pack(first) | pack(second), n_players) == (first | second)).all()
    assert (unpack(pack(first) & ~pack(second), n_players) == (first & ~second)).all()


@pytest.mark.parametrize("differ", [slice(0, 4), slice(-4, None), slice(None)], ids=str)
@pytest.mark.parametrize("n_players", WIDTHS)
def test_first_occurrences_as_a_dictionary_finds_them(n_players, differ):
    """Coalitions that differ in their first players only, in their last only, or anywhere."""
    rng = np.random.default_rng(n_players)
    coalitions = np.tile(rng.random((3, 1, n_players)) < 0.5, (1, 40, 1))
    kinds = rng.random((3, 9, n_players)) < 0.5
    chosen = np.take_along_axis(kinds, rng.integers(0, 9, (3, 40))[:, :, None], axis=1)
    coalitions[:, :, differ] = chosen[:, :, differ]
    for table, found in zip(coalitions, first_occurrences(pack(coalitions)), strict=True):
        first = {}
        assert found.tolist() == [
            first.setdefault(coalition, place) for place, coalition in enumerate(as_sets(table))
        ]


@st.composite
def offers(draw):
    n_players = draw(st.integers(1, 4))  # few, so that duplicates abound
    shape = (draw(st.integers(1, 3)), draw(st.integers(0, 7)), draw(st.integers(1, 4)), n_players)
    bits = draw(st.lists(st.booleans(), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    known = end_points(n_players)
    if draw(st.booleans()) and n_players > 1:
        known = np.concatenate([known, np.eye(n_players, dtype=bool)[:1]])
    return known, np.array(bits, dtype=bool).reshape(shape), draw(st.integers(0, 18))


@given(offers())
def test_selection_agrees_with_sets(offer):
    known, units, budget = offer
    selection = select_units(known, pack(units), budget)
    assert selection.table.coalitions.shape[1] == selection.table.counts.max()
    for row in range(len(units)):
        expected, n_units = selected_one_by_one(known, units[row], budget)
        count, table = selection.table.counts[row], selection.table.coalitions[row]
        assert selection.n_units[row] == n_units
        assert as_sets(table[:count]) == expected  # the known ones first, each once, in order
        assert not table[count:].any()
        assert (table[selection.positions[row, :n_units]] == units[row, :n_units]).all()
        assert (selection.positions[row, n_units:] == 0).all()
        assert count <= max(budget, len(known))


@given(offers(), st.data())
def test_units_of_different_sizes_are_selected_alike(offer, data):
    known, units, budget = offer
    coalitions = units[0].reshape(-1, units.shape[3])
    n_left, sizes = len(coalitions), []
    while n_left:
        sizes.append(data.draw(st.integers(1, n_left)))
        n_left -= sizes[-1]
    split = np.split(coalitions, np.cumsum(sizes)[:-1]) if sizes else []
    selection = select_uneven_units(known, pack(coalitions), np.array(sizes, dtype=np.intp), budget)
    expected, n_units = selected_one_by_one(known, split, budget)
    table = selection.table.coalitions[0]
    assert selection.n_units == n_units
    assert as_sets(table) == expected
    assert (table[selection.positions] == coalitions[: sum(sizes[:n_units])]).all()


@pytest.mark.parametrize("distribution", ["kernel", "leverage"])
@pytest.mark.parametrize("n_players", [2, 3, 10])
def test_probabilities_sum_to_one_and_are_symmetric(distribution, n_players):
    probabilities = size_probabilities(n_players, distribution)
    assert probabilities.shape == (n_players - 1,)
    assert probabilities.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(probabilities, probabilities[::-1])


def test_leverage_draws_each_size_by_its_leverages_in_the_regression():
    coalitions = all_coalitions(7)[1:-1]
    sizes = coalitions.sum(axis=1)
    weights = kernel_mass(7)[sizes - 1] / comb(7, sizes)
    leverages = fit_with_fixed_sum(coalitions.astype(float), weights).leverages
    by_size = np.bincount(sizes, leverages)[1:]
    np.testing.assert_allclose(by_size / by_size.sum(), size_probabilities(7, "leverage"))
