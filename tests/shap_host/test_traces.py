"""Estimates from the first evaluations of a call, through shap."""

import numpy as np
import pytest

import shap_ext
from shapley_adapters.errors import InvalidArgumentError
from tests.shap_host.games import curved, rows

BACKGROUND, X = rows(3, 9, 1), rows(3, 9)


def explained(model=curved, x=X, **options):
    """Return the Explanation and the trace."""
    explainer = shap_ext.OddGPExplainer(model, BACKGROUND, seed=0)
    e = explainer(x, **{"max_evals": 200, "trace": True, "silent": True, **options})
    return e, explainer.last_estimate.trace


def test_a_trace_costs_nothing_and_changes_nothing():
    calls = []

    def counted(x):
        calls.append(len(x))
        return curved(x)

    plain, _ = explained(counted, trace=False, error_bounds=True)
    n_plain = sum(calls)
    traced, trace = explained(counted)
    assert sum(calls) == 2 * n_plain
    for field in ("values", "error_std", "lower_bounds", "upper_bounds"):
        np.testing.assert_array_equal(getattr(traced, field), getattr(plain, field))
    np.testing.assert_array_equal(trace.values[:, :, -1, 0], plain.values)
    assert (trace.evaluations[:, -1] == 200).all()


def test_interactions_have_no_trace():
    with pytest.raises(InvalidArgumentError, match="trace=True"):
        explained(interactions=True)
