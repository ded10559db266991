"""What is left of a product of parameters."""

from itertools import combinations, product
from types import SimpleNamespace

from tests.helpers.thin_products import one_of_each, thinned


class Item:
    """What the choice reads of a pytest item."""

    def __init__(self, function, indices=None, names=(), marker=None):
        self.nodeid, self.names, self.marker = f"{function}[{indices}]", names, marker
        if indices is not None:
            self.callspec = SimpleNamespace(params=indices)

    def get_closest_marker(self, name):
        return name == self.marker

    def iter_markers(self, name):
        return (SimpleNamespace(args=(names,)) for names in self.names if name == "parametrize")


def items_of(function, marker=None, **numbers):
    """Return the items of a test with each combination of so many values, as indices."""
    return [
        Item(
            function,
            {name: i for names, i in zip(numbers, row, strict=True) for name in names.split("_")},
            [names.replace("_", ", ") for names in numbers],
            marker,
        )
        for row in product(*map(range, numbers.values()))
    ]


def test_of_two_parameters_each_value_is_left_and_all_about_as_often():
    kept = thinned(items_of("test_a", x=7, y=3))
    assert sorted(item.callspec.params["x"] for item in kept) == list(range(7))
    used = [item.callspec.params["y"] for item in kept]
    assert sorted(used.count(value) for value in range(3)) == [2, 2, 3]


def test_of_more_parameters_each_pair_of_values_is_left():
    items = items_of("test_a", x=5, y=3, z=3, flag=2)
    kept = thinned(items)
    assert 15 <= len(kept) <= 20 < len(items)

    def pairs(of):
        return {pair for i in of for pair in combinations(i.callspec.params.items(), 2)}

    assert pairs(kept) == pairs(items)


def test_all_of_what_is_no_large_product_stays_in_its_order():
    items = [
        *items_of("test_a", x=7),
        Item("test_b"),
        *items_of("test_c", x=2, y=2),
        *items_of("test_d", "every_combination", x=3, y=3),
        *items_of("test_e", x_y_z=7),  # rows of a table
    ]
    assert thinned(items) == items
    assert len(thinned(items_of("test_f", x_y=7, z=2))) == 7


def test_one_of_each_test_is_left_and_all_that_depend_on_versions():
    items = [*items_of("test_a", x=5, y=3), *items_of("test_b", "versions", x=5, y=3)]
    assert [item.nodeid[:6] for item in one_of_each(items)] == ["test_a"] + 15 * ["test_b"]
    assert one_of_each(items)[0].callspec.params == {"x": 2, "y": 1}
