"""The criteria that quantus (0.6) defines alike give the same numbers; skipped without it."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.optional import torch
from tests.shap_host import games

quantus = pytest.importorskip("quantus")

from shapley_adapters.criteria import sensitivity  # noqa: E402

N_FEATURES, N_ROWS = 8, 6
QUIET: dict[str, Any] = {"disable_warnings": True, "display_progressbar": False}


def call(metric, net, rows, classes, attributions, **options):
    found = metric(
        model=net,
        x_batch=rows,
        y_batch=classes,
        a_batch=attributions.copy(),
        softmax=False,
        channel_first=True,
        **options,
    )
    return np.array(found, dtype=float)


@pytest.mark.parametrize("name", ["MaxSensitivity", "AvgSensitivity"])
def test_sensitivity(name):
    """Both get the same neighbours, one after the other; quantus divides by the explanation."""
    net, rows = games.network(N_FEATURES, 3), games.rows(N_ROWS, N_FEATURES)
    classes, steps = np.arange(N_ROWS) % 3, 0.1 * games.rows(7, N_FEATURES, seed=2)
    queue = iter(steps)

    def explain(inputs, **_):
        x = torch.as_tensor(np.asarray(inputs)).requires_grad_()
        (slope,) = torch.autograd.grad(net(x)[np.arange(len(x)), classes].sum(), x)
        return (slope * x).detach().numpy()

    metric = getattr(quantus, name)(
        nr_samples=7,
        perturb_func=lambda arr, indices=None, **_: arr + next(queue),
        norm_numerator=lambda a: np.linalg.norm(a, axis=-1),
        norm_denominator=lambda a: np.linalg.norm(a, axis=-1),
        abs=False,
        normalise=False,
        **QUIET,
    )
    own = explain(rows)
    theirs = call(metric, net, rows, classes, own, explain_func=lambda **k: explain(k["inputs"]))
    near = np.stack([explain(rows + step) for step in steps], axis=1)
    found = sensitivity(own, near, relative=True)
    ours = found.maximum if name == "MaxSensitivity" else found.average
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
