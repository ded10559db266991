"""Whether the intervals of `oddgp` hold, for functions that jump and for smooth ones."""

import numpy as np
import pytest

import shap_ext

N_PLAYERS, N_ROWS = 10, 20


def above_threshold(x):
    return (x.sum(axis=1) > 0.22 * N_PLAYERS).astype(float)


def steep(x):
    return 1 / (1 + np.exp(8 * (0.25 * N_PLAYERS - x.sum(axis=1))))


def network(x):
    rng = np.random.default_rng(3)
    inner, outer = rng.normal(size=(N_PLAYERS, 12)), rng.normal(size=12)
    return np.tanh(x @ inner) @ outer


def shares_inside(model, weights):
    """Return the shares of exact values in 95 % and 68 % intervals, over rows and three seeds."""
    rows = np.random.default_rng(1).uniform(size=(N_ROWS, N_PLAYERS))
    exact = shap_ext.OddGPExplainer(model, 0 * rows[:1])(rows, max_evals=2**N_PLAYERS).values
    inside = []
    for seed in range(3):
        explainer = shap_ext.OddGPExplainer(model, 0 * rows[:1], seed=seed, weights=weights)
        explainer(rows, max_evals=32 * N_PLAYERS)
        intervals = [explainer.last_estimate.interval(share) for share in (0.95, 0.6827)]
        inside.append(
            [
                ((lower[..., 0] <= exact) & (exact <= upper[..., 0])).mean()
                for lower, upper in intervals
            ]
        )
    return np.mean(inside, axis=0)


@pytest.mark.parametrize("weights", ["learned", "equal"])
@pytest.mark.parametrize("model", [above_threshold, steep])
def test_intervals_of_functions_that_jump(model, weights):
    """With learned weights and one scale for all sizes, they held 71 and 43 %."""
    wide, narrow = shares_inside(model, weights)
    assert 0.88 < wide <= 0.99
    assert 0.55 < narrow < 0.85


def test_intervals_of_smooth_functions_are_not_too_wide():
    wide, narrow = shares_inside(network, "learned")
    assert wide > 0.91
    assert 0.6 < narrow < 0.95
