"""Fewer tests of products of parameters, for runs that look for one difference only."""

from collections import defaultdict


def each_value_once(items):
    """Return those of the tests that together have each value of each parameter, in their order.

    A test of 20 estimators and 7 inputs stands for 140 items, of which 20 are returned: the first
    estimator with the first input, the second with the second, and so on. A test with one parameter
    keeps all its items.
    """
    items_by_function = defaultdict(list)
    for item in items:
        items_by_function[item.nodeid.partition("[")[0]].append(item)
    kept = {item for group in items_by_function.values() for item in _covering(group)}
    return [item for item in items if item in kept]


def _covering(items):
    """Return items that have each value: first those with new values only, then what is missing."""
    values = {item: _values(item) for item in items}
    seen, kept = set(), set()
    for has_news in (set.isdisjoint, lambda own, seen: not own <= seen):
        for item in items:
            if has_news(values[item], seen):
                kept.add(item)
                seen |= values[item]
    return kept


def _values(item):
    """Return the item's values. The items of a function share them, so that identity tells them."""
    if not hasattr(item, "callspec"):
        return {None}
    return {(name, id(value)) for name, value in item.callspec.params.items()}
