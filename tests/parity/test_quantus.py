"""The criteria that quantus (0.6) defines alike give the same numbers; skipped without it."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.optional import nn, torch

quantus = pytest.importorskip("quantus")

from shapley_adapters.criteria import complexity, faithfulness, sensitivity  # noqa: E402
from tests.helpers.reference_games import TableGame  # noqa: E402

N_FEATURES, N_ROWS = 8, 6
QUIET: dict[str, Any] = {"disable_warnings": True, "display_progressbar": False}


class AsDouble(nn.Module):
    """Undo that quantus brings inputs to single precision."""

    def forward(self, x):
        return x.double()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(N_FEATURES, 16), nn.Tanh(), nn.Linear(16, 3)).double().eval()


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def outputs_for_coalitions(net, rows, classes):
    """Return the games of rows with zeros for what is absent, as a table."""
    places = np.arange(2**N_FEATURES)
    present = (places[:, None] >> np.arange(N_FEATURES)) % 2 == 1
    with torch.no_grad():
        values = [
            net(torch.as_tensor(present * row)).numpy()[:, c]
            for row, c in zip(rows, classes, strict=True)
        ]
    return TableGame(np.array(values)[..., None])


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


def test_complexity():
    """quantus adds 1e-12 within the logarithm."""
    rows, attributions = numbers(N_ROWS, N_FEATURES), numbers(N_ROWS, N_FEATURES, seed=1)
    metric = quantus.Complexity(abs=True, normalise=False, **QUIET)
    theirs = call(metric, network(), rows, np.zeros(N_ROWS, dtype=int), attributions)
    np.testing.assert_allclose(complexity(attributions), theirs, atol=1e-9)


def test_faithfulness():
    """quantus draws subsets with repetition: the standard error of its correlation is 1/√n."""
    net, rows = network(), numbers(N_ROWS, N_FEATURES)
    attributions, classes = numbers(N_ROWS, N_FEATURES, seed=1), np.arange(N_ROWS) % 3
    n_runs = 2000
    metric = quantus.FaithfulnessCorrelation(
        nr_runs=n_runs,
        subset_size=3,
        perturb_func=put_zeros,
        similarity_func=correlations,
        abs=False,
        normalise=False,
        return_aggregate=False,
        **QUIET,
    )
    np.random.seed(0)  # noqa: NPY002  quantus draws from the global generator
    flat = nn.Sequential(nn.Flatten(), AsDouble(), net).eval()  # quantus wants a channel
    theirs = call(metric, flat, rows[:, None], classes, attributions[:, None])
    ours = faithfulness(
        attributions, outputs_for_coalitions(net, rows, classes), subset_size=3, n_subsets=10**6
    )
    assert (abs(theirs - ours) < 5 / np.sqrt(n_runs)).all()
    assert np.ptp(ours) > 10 / np.sqrt(n_runs)


def put_zeros(arr, indices, **_):
    changed = arr.copy()
    np.put_along_axis(changed, np.asarray(indices), 0.0, axis=1)
    return changed


def correlations(a, b, **_):
    return np.array([np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)])


@pytest.mark.parametrize("name", ["MaxSensitivity", "AvgSensitivity"])
def test_sensitivity(name):
    """Both get the same neighbours, one after the other; quantus divides by the explanation."""
    net, rows = network(), numbers(N_ROWS, N_FEATURES)
    classes, steps = np.arange(N_ROWS) % 3, 0.1 * numbers(7, N_FEATURES, seed=2)
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
