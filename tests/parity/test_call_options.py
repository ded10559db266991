"""The options of calls: signatures, texts, and errors of all ways to call."""

import inspect

import numpy as np
import pytest

import shap_ext
from tests.helpers.optional import captum_ext, torch

EXPLAINER = shap_ext.OddGPExplainer(lambda x: x.sum(axis=1), np.zeros((1, 3)), seed=0)
METHOD = captum_ext.OddGP(lambda x: x.sum(dim=1), seed=0)
X, TENSOR = np.ones((1, 3)), torch.ones(1, 3)
WAYS = [
    (EXPLAINER.__call__, X, "max_evals"),
    *((getattr(EXPLAINER, name), X, "max_evals") for name in (
        "budget_of", "explain_stream", "batch_function", "global_importance", "semivalues",
        "set_interactions", "shap_interaction_values",
    )),
    *((getattr(METHOD, name), TENSOR, "n_samples") for name in (
        "attribute", "budget_of", "attribute_stream", "batch_function", "global_importance",
        "interactions", "semivalues", "set_interactions",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("way", "rows", "budget"), WAYS)
def test_signatures_and_errors_of_all_ways(way, rows, budget, tmp_path):
    parameters = inspect.signature(way).parameters
    assert budget in parameters
    assert "options" not in parameters
    assert f"\n{budget} : " in way.__doc__
    further = (tmp_path / "out.npy",) if "stream" in way.__name__ else ()
    with pytest.raises(TypeError, match=f"{budget}s.*Did you mean {budget}"):
        way(rows, *further, **{f"{budget}s": 100})


def test_options_that_a_way_does_not_take_say_why():
    with pytest.raises(ValueError, match="max_seconds=3 .* part after part"):
        EXPLAINER.batch_function(X, max_seconds=3)
    with pytest.raises(ValueError, match="tolerance=0.1 .* mean over rows"):
        METHOD.global_importance(TENSOR, tolerance=0.1)
