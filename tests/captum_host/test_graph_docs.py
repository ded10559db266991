"""What the table of docs/neighbouring_features.md says that calls cost."""

import re
from pathlib import Path

import pytest

from tests.captum_host.networks import examples
from tests.captum_host.test_graphs import smooth

PAGE = Path(__file__).parents[2] / "docs" / "neighbouring_features.md"


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_table_of_costs(order):
    """A few less than said at the ends: no more than the square of the order times the factor."""
    from captum_ext import CShapley, LShapley

    d = 40
    x = examples(1, d)
    methods = {
        "L-Shapley": LShapley(smooth, order=order, graph="line"),
        "C-Shapley": CShapley(smooth, order=order, graph="line"),
        'C-Shapley, `marginals="components"`': CShapley(
            smooth, order=order, graph="line", marginals="components"
        ),
        "regression on runs of up to `order` words": CShapley(
            smooth, order=order, graph="line", variant="regression"
        ),
    }
    page = PAGE.read_text(encoding="utf-8")
    for name, method in methods.items():
        (line,) = re.findall(rf"^\| {re.escape(name)} \| (\$.*\$) \|$", page, re.MULTILINE)
        said = int(line.split(" | ")[order - 1].strip("$d") or 1)
        method.attribute(x)
        found = int(method.last_estimate.evaluations[0])
        assert said * (d - 2 * order - 2) <= found <= said * d + 2, name
