"""What the table of docs/coming_from_shap.md says that calls cost."""

from pathlib import Path

import numpy as np
import pytest
import shap

import shap_ext  # noqa: F401 # it makes shap know the algorithms
from tests.shap_host.games import Seen, rows

PAGE = Path(__file__).parents[2] / "docs" / "coming_from_shap.md"
TEXT = PAGE.read_text(encoding="utf-8")
BACKGROUND, X = rows(5, 12, seed=1), rows(1, 12)
CALL, VALUES = "__call__", "shap_values"


def predict(x):
    return np.tanh(x.sum(axis=1)) + x[:, 0] * x[:, 1] * x[:, 2]


def kernel(model):
    return shap.KernelExplainer(model, BACKGROUND)


def permutation(model):
    return shap.PermutationExplainer(model, BACKGROUND)


def oddgp(model):
    return shap.Explainer(model, BACKGROUND, algorithm="oddgp", seed=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "build", "call", "options", "n_built", "n_called"),
    [
        ("`KernelExplainer`, `nsamples=200`", kernel, VALUES, {"nsamples": 200}, 5, 1001),
        ("`PermutationExplainer`, `max_evals=200`", permutation, CALL, {"max_evals": 200}, 0, 1000),
        ('`"oddgp"`, `max_evals=200`', oddgp, CALL, {"max_evals": 200}, 0, 1045),
        ('`"oddgp"`, `shap_values(nsamples=200)`', oddgp, VALUES, {"nsamples": 200}, 0, 1055),
        ('`"oddgp"`, `max_evals="auto"`', oddgp, CALL, {}, 0, 2590),
    ],
)
def test_calls_cost_what_the_table_says(row, build, call, options, n_built, n_called):
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {row} |")]
    told = f"{n_called:,}" + (f", and {n_built} when it is built" if n_built else "")
    assert line.endswith(f"| {told} |")
    seen = Seen(predict)
    explainer = build(seen)
    assert sum(map(len, seen.calls)) == n_built
    seen.calls.clear()
    getattr(explainer, call)(X, silent=True, **options)
    assert sum(map(len, seen.calls)) == n_called
