"""What `--each-value-once` leaves of a product of parameters."""

from itertools import product
from types import SimpleNamespace

from tests.helpers.thin_products import each_value_once


class Item:
    """What the choice reads of a pytest item."""

    def __init__(self, nodeid, params=None):
        self.nodeid = nodeid
        if params is not None:
            self.callspec = SimpleNamespace(params=params)


def items_of(function, **values):
    """Return the items of a test with each combination of the values."""
    return [
        Item(f"{function}[{row}]", dict(zip(values, row, strict=True)))
        for row in product(*values.values())
    ]


def test_each_value_appears_in_as_few_items_as_that_takes():
    items = items_of("test_a", x=["p", "q", "r", "s", "t"], y=["u", "v", "w"])
    kept = each_value_once(items)
    assert len(kept) == 5
    for name in ("x", "y"):
        assert {i.callspec.params[name] for i in kept} == {i.callspec.params[name] for i in items}


def test_tests_of_one_parameter_or_none_stay_in_their_order():
    items = [*items_of("test_a", x=["p", "q"]), Item("test_b"), *items_of("test_c", x=["p", "q"])]
    assert each_value_once(items) == items
