"""Fewer tests of the same function: those that together have each value, or each pair; or one."""

from collections import Counter, defaultdict
from itertools import combinations
from operator import itemgetter

MOST_UNTHINNED = 4
"""Products of so many combinations, such as those of two flags, run whole."""


def thinned(items):
    """Return the tests without those whose values others have, in their order.

    A test of two parameters keeps as many items as have each value of each: one of 20 estimators
    and 7 inputs stands for 140 items, of which 20 are returned, three for each input. A test of
    more parameters keeps as many as have each pair of values of two parameters. All items stay of
    a test with one parameter, and of one with the marker `every_combination`.
    """
    kept = {item for group in _by_function(items) for item in _kept(group)}
    return [item for item in items if item in kept]


def one_of_each(items):
    """Return one of the items of each test, and all of those with the marker `versions`.

    It is the one in the middle: the first is often the simplest, such as an exact estimator.
    """
    middle = {group[len(group) // 2] for group in _by_function(items)}
    return [item for item in items if item in middle or item.get_closest_marker("versions")]


def covering(rows):
    """Return the places of rows that together have each value, or each pair, of all columns."""
    values = [list(enumerate(row)) for row in rows]
    parts = dict(enumerate(map(_parts, values)))
    missing = set().union(*parts.values())
    n_uses, kept = Counter(), []
    while missing:
        # What has most that is missing; of these, what has the values that were used least.
        best = max(
            parts, key=lambda i: (len(parts[i] & missing), -sum(n_uses[part] for part in values[i]))
        )
        kept.append(best)
        missing -= parts.pop(best)
        n_uses.update(values[best])
    return sorted(kept)


def _by_function(items):
    items_by_function = defaultdict(list)
    for item in items:
        items_by_function[item.nodeid.partition("[")[0]].append(item)
    return items_by_function.values()


def _parts(values):
    return set(combinations(values, 2)) if len(values) > 2 else set(values)


def _kept(items):
    if len(items) <= MOST_UNTHINNED or items[0].get_closest_marker("every_combination"):
        return items
    return [items[place] for place in covering([_columns(item) for item in items])]


def _columns(item):
    """Return what tells the values of each parameter; names that are set together are one."""
    first_of = {}
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
        first_of |= dict.fromkeys(names, names[0])
    columns = defaultdict(tuple)
    for name, value in sorted(item.callspec.params.items(), key=itemgetter(0)):
        columns[first_of.get(name, name)] += (id(value),)  # the items of a function share values
    return list(columns.values())
