"""The parity table: estimators × hosts × kinds of input and model.

Each cell compares an estimator, called as a user of the host calls it, with the Shapley values of
the same masked model by their definition, one coalition at a time, where the budget pays for all
coalitions: number by number, to the tolerance that the kind states with its reason.

The host's own plot or visualiser draws the results of all coalitions.
"""

import functools
import warnings

import numpy as np
import pytest

from tests.helpers.estimator_table import ESTIMATORS
from tests.helpers.optional import HAS_TORCH
from tests.parity import shap_kinds

KINDS = [*shap_kinds.KINDS]
if HAS_TORCH:
    from tests.parity import torch_kinds

    KINDS += torch_kinds.KINDS
TABLE = [row for row in ESTIMATORS if row.is_in_matrix]

pytestmark = [
    pytest.mark.versions,
    pytest.mark.filterwarnings("ignore:.*:PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_the_table_is_as_large_as_it_should_be():
    assert {row.explainer for row in TABLE} == {row.explainer for row in ESTIMATORS}
    assert len({str(kind) for kind in KINDS}) == len(KINDS)
    assert len(TABLE) * len(KINDS) >= 150


@functools.cache
def built(kind):
    """Return the case and its exact values, made once for all estimators."""
    case = kind.build()
    return case, case.exact()


def over(table):
    return pytest.mark.parametrize("row", table, ids=lambda row: row.id)


each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@each_kind
@over(TABLE)
def test_all_coalitions_give_the_exact_values(row, kind):
    case, exact = built(kind)
    _, values = case.run(row, 2**case.n_players, 0)
    np.testing.assert_allclose(values, exact, rtol=0, atol=kind.atol)
    assert np.abs(exact).max() > 10 * kind.atol  # not nothing against nothing


@each_kind
@over(TABLE)
def test_the_plot_of_the_host_draws_the_result(row, kind):
    case, _ = built(kind)
    result, _ = case.run(row, 2**case.n_players, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what hosts' plots use of matplotlib and pandas
        case.draw(result)
